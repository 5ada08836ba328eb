"""Make one join of joins of joins, so that the planner sees all inputs and all predicates at once."""

from __future__ import annotations

from transom.plan.algebra import Join, Node, Relation
from transom.plan.expression import Expression, columns_of, conjunction, conjuncts, remap


def flatten_joins(query: Node) -> Node:
    made: dict[Node, Node] = {}

    def flat(node: Node) -> Node:
        flat_node = made.get(node)
        if flat_node is None:
            flat_node = made[node] = _flattened(node.over(tuple(flat(child) for child in node.inputs)))
        return flat_node

    return flat(query)


def _flattened(node: Node) -> Node:
    """The node, over inputs that are flat already."""
    if not isinstance(node, Join) or not any(isinstance(relation, Join) for relation in node.relations):
        return node
    relations: list[Relation] = []
    parts: list[Expression] = list(conjuncts(node.predicate))
    first = 0
    for relation in node.relations:
        if isinstance(relation, Join):
            relations.extend(relation.relations)
            for part in conjuncts(relation.predicate):
                parts.append(remap(part, {column: column + first for column in columns_of(part)}))
        else:
            relations.append(relation)
        first += len(relation.schema)
    return Join(tuple(relations), conjunction(tuple(parts)))
