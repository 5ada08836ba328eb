"""Carry only the columns that somebody above reads.

State is kept per column, so a column that is dropped before a join costs nothing in it. DISTINCT, INTERSECT, EXCEPT and
the stream operators read whole rows, and so does the order of rows, in which all columns break ties; a row that is
needed for its existence alone keeps one column.
"""

from __future__ import annotations

from dataclasses import replace

from transom.plan.algebra import (
    Aggregate,
    Deduplicate,
    Distinct,
    Filter,
    Join,
    KeptForever,
    Node,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    SetOperation,
    Stream,
    StreamFilter,
    StreamProject,
    TopN,
    ToStream,
    Unnest,
    Window,
    WindowTable,
    a_relation,
    a_stream,
)
from transom.plan.expression import ColumnRef, Expression, SubQuery, columns_of, remap, walk

Positions = dict[int, int]


def prune_columns(query: Node) -> Node:
    return _Pruner().prune_columns(query)


class _Pruner:
    """Prunes one query. A node that is asked for the same columns again is done once."""

    def __init__(self) -> None:
        self._pruned: dict[tuple[Node, frozenset[int]], tuple[Node, Positions]] = {}

    def prune_columns(self, node: Node) -> Node:
        pruned, kept = self._prune(node, frozenset(range(len(node.schema))))
        return _narrow(pruned, kept, list(range(len(node.schema))))

    def _prune(self, node: Node, needed: frozenset[int]) -> tuple[Node, Positions]:
        pruned = self._pruned.get((node, needed))
        if pruned is None:
            pruned = self._pruned[node, needed] = self._pruned_now(node, needed)
        return pruned

    def _pruned_now(self, node: Node, needed: frozenset[int]) -> tuple[Node, Positions]:
        """The node with at least the needed columns, and where each of those is now."""
        everything = {i: i for i in range(len(node.schema))}
        if not node.inputs:
            return node, everything
        if isinstance(node, Project):
            wanted = _at_least_one(needed)
            expressions = [node.expressions[i] for i in wanted]
            if any(_opaque(expression) for expression in expressions):
                child = self.prune_columns(node.input)
                return replace(node, input=a_relation(child)), everything
            child, at = self._child(node.input, expressions)
            moved = tuple(remap(expression, at) for expression in expressions)
            kept = {old: new for new, old in enumerate(wanted)}
            names = tuple(node.names[i] for i in wanted)
            return Project(a_relation(child), moved, names, excerpt=node.excerpt), kept
        if isinstance(node, Filter | StreamFilter):
            if _opaque(node.predicate):
                return node.with_inputs((self.prune_columns(node.input),)), everything
            child, at = self._prune(node.input, needed | columns_of(node.predicate))
            return replace(node.with_inputs((child,)), predicate=remap(node.predicate, at)), at  # type: ignore[call-arg]
        if isinstance(node, KeptForever):
            child, at = self._prune(node.input, needed)
            return KeptForever(a_relation(child), excerpt=node.excerpt), at
        if isinstance(node, Unnest):
            width = len(node.input.schema)
            used = columns_of(node.array)
            wanted = _at_least_one(frozenset(i for i in needed if i < width) | used)
            child, at = self._prune(node.input, frozenset(wanted))
            to = {old: new for new, old in enumerate(wanted)}
            pruned = replace(node, input=a_relation(_narrow(child, at, wanted)), array=remap(node.array, to))
            return pruned, to | {i: i - width + len(wanted) for i in range(width, len(node.schema))}
        if isinstance(node, Window):
            wanted = _at_least_one(needed | frozenset(node.spec.partition or ()))
            child, at = self._prune(node.input, frozenset(wanted))
            child = _narrow(child, at, wanted)
            to = {old: new for new, old in enumerate(wanted)}
            spec = node.spec
            if spec.partition is not None:
                spec = replace(spec, partition=tuple(to[i] for i in spec.partition))
            return Window(a_stream(child), spec, excerpt=node.excerpt), to
        if isinstance(node, Deduplicate):
            wanted = _at_least_one(needed | frozenset(node.partition))
            child, at = self._prune(node.input, frozenset(wanted))
            to = {old: new for new, old in enumerate(wanted)}
            partition = tuple(to[i] for i in node.partition)
            return Deduplicate(a_stream(_narrow(child, at, wanted)), partition, node.length), to
        if isinstance(node, WindowTable):
            return self._prune_window_table(node, needed)
        if isinstance(node, Join):
            return self._prune_join(node, needed)
        if isinstance(node, OuterJoin | SemiJoin):
            return self._prune_pair(node, needed)
        if isinstance(node, Aggregate):
            expressions = [*node.keys, *(each for call in node.calls for each in call.expressions)]
            child, at = self._child(node.input, expressions)
            keys = tuple(remap(key, at) for key in node.keys)
            calls = tuple(call.over(lambda expression: remap(expression, at)) for call in node.calls)
            return replace(node, input=a_relation(child), keys=keys, calls=calls), everything
        if isinstance(node, SetOperation) and node.kind == "union" and node.all:
            wanted = _at_least_one(needed)
            sides = []
            for side in (node.left, node.right):
                child, at = self._prune(side, frozenset(wanted))
                sides.append(a_relation(_narrow(child, at, wanted)))
            return replace(node, left=sides[0], right=sides[1]), {old: new for new, old in enumerate(wanted)}
        if isinstance(node, TopN):
            wanted_number = node.number if len(node.input.schema) in needed else None
            child = self.prune_columns(node.input)
            kept = {i: i for i in range(len(node.input.schema) + (wanted_number is not None))}
            return replace(node, input=a_relation(child), number=wanted_number), kept
        assert isinstance(node, ToStream | Distinct | SetOperation), node
        return node.with_inputs(tuple(self.prune_columns(child) for child in node.inputs)), everything

    def _prune_window_table(self, node: WindowTable, needed: frozenset[int]) -> tuple[Node, Positions]:
        """The columns of the windows are always there; of a stream a row keeps one column at least."""
        width, spec = len(node.input.schema), node.spec
        wanted = _at_least_one(frozenset(i for i in needed if i < width) | frozenset(spec.partition or ()))
        child, at = self._prune(node.input, frozenset(wanted))
        to = {old: new for new, old in enumerate(wanted)}
        if spec.partition is not None:
            spec = replace(spec, partition=tuple(to[i] for i in spec.partition))
        pruned = WindowTable(a_stream(_narrow(child, at, wanted)), spec, excerpt=node.excerpt)
        return pruned, to | {i: i - width + len(wanted) for i in range(width, len(node.schema))}

    def _prune_join(self, join: Join, needed: frozenset[int]) -> tuple[Node, Positions]:
        relations, to = self._sides(join.relations, needed, join.predicate)
        predicate = None if join.predicate is None else remap(join.predicate, to)
        return Join(relations, predicate), to

    def _prune_pair(self, join: OuterJoin | SemiJoin, needed: frozenset[int]) -> tuple[Node, Positions]:
        """A semi join gives the left alone; of the right it reads what its predicate does."""
        (left, right), to = self._sides((join.left, join.right), needed, join.predicate)
        predicate = None if join.predicate is None else remap(join.predicate, to)
        return replace(join, left=left, right=right, predicate=predicate), to  # type: ignore[arg-type]

    def _sides(
        self, sides: tuple[Relation, ...], needed: frozenset[int], predicate: Expression | None
    ) -> tuple[tuple[Relation, ...], Positions]:
        """Relations side by side with what is needed of them, and what the predicate reads; and where that is now."""
        used = needed | (columns_of(predicate) if predicate is not None else frozenset())
        relations = []
        to: Positions = {}
        first = width = 0
        for relation in sides:
            own = frozenset(i - first for i in used if first <= i < first + len(relation.schema))
            child, at = self._prune(relation, own)
            wanted = sorted(own) or [next(iter(at), 0)]
            child = _narrow(child, at, wanted)
            to.update({first + old: width + new for new, old in enumerate(wanted)})
            relations.append(a_relation(child))
            first += len(relation.schema)
            width += len(wanted)
        return tuple(relations), to

    def _child(self, node: Node, expressions: list[Expression]) -> tuple[Node, Positions]:
        used = frozenset(column for expression in expressions for column in columns_of(expression))
        return self._prune(node, used)


def _narrow(node: Node, at: Positions, wanted: list[int]) -> Node:
    """A projection to the wanted columns in that order, where the node has others."""
    positions = [at[i] for i in wanted]
    if positions == list(range(len(node.schema))):
        return node
    schema = node.schema
    expressions = tuple(ColumnRef(i, schema[i].type, schema[i].name) for i in positions)
    names = tuple(schema[i].name for i in positions)
    if isinstance(node, Stream):
        return StreamProject(node, expressions, names)
    return Project(a_relation(node), expressions, names)


def _at_least_one(needed: frozenset[int]) -> list[int]:
    return sorted(needed) or [0]


def _opaque(expression: Expression) -> bool:
    """A sub-query reads columns that `columns_of` does not see."""
    return any(isinstance(node, SubQuery) for node in walk(expression))
