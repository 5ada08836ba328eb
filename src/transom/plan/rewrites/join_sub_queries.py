"""Sub-queries in conditions become joins.

EXISTS and IN that must hold become semi joins, NOT EXISTS and NOT IN anti joins, whose predicate is what binds the
sub-query to the row around it. Elsewhere, under OR or in a CASE, the rows with a partner and those without are put
together again with a column that says which they are. IN is unknown for a NULL on either side (semantics.md, "Joins
that keep rows without a partner"), so what is not in the sub-query must also meet no NULL there.

A query as a value is joined to the rows that want it: it has one row at most. So is one in LATERAL, with all its rows.

A sub-query of joins, selections and projections is taken apart. Any other one that reads the row around it is computed
for all rows around at once (`per_row.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from transom.core.schema import BOOLEAN
from transom.plan.algebra import (
    AntiJoin,
    Distinct,
    Filter,
    Join,
    Lateral,
    Node,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    SetOperation,
    a_relation,
)
from transom.plan.expression import (
    Call,
    Case,
    ColumnRef,
    Exists,
    Expression,
    InQuery,
    Literal,
    ScalarQuery,
    SubQuery,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    shifted,
    substitute,
    transform,
)
from transom.plan.rewrites.outer_columns import expressions_of, has_query, outer_columns, over_row, seen_from
from transom.plan.rewrites.per_row import columns, per_row, same_row
from transom.plan.rewrites.push_filters import tells_zeros_apart

_TRUE, _FALSE, _UNKNOWN = (Literal(value, BOOLEAN) for value in (True, False, None))


def join_sub_queries(query: Node) -> Node:
    return _Joiner().done(query)


@dataclass(frozen=True)
class _Picked:
    """The rows of a sub-query, its columns as expressions over them, and what picks those that a row around sees."""

    relation: Relation
    outputs: tuple[Expression, ...]
    conditions: tuple[Expression, ...] = ()


class _Joiner:
    """Does one query; each node once."""

    def __init__(self) -> None:
        self._done: dict[Node, Node] = {}

    def done(self, node: Node) -> Node:
        joined = self._done.get(node)
        if joined is None:
            joined = self._done[node] = self._now(node)
        return joined

    def _now(self, node: Node) -> Node:
        if isinstance(node, Filter) and has_query(node.predicate):
            return self._selected(self._relation(node.input), conjuncts(node.predicate))
        if isinstance(node, Project) and any(map(has_query, node.expressions)):
            relation, values = self._marked(self._relation(node.input), node.expressions)
            return Project(relation, values, node.names)
        if isinstance(node, Lateral):
            return self._lateral(node)
        return node.over(tuple(self.done(child) for child in node.inputs))

    def _relation(self, node: Relation) -> Relation:
        return a_relation(self.done(node))

    def _lateral(self, node: Lateral) -> Relation:
        """The rows of the left beside those of the right that were computed for them."""
        left = self._relation(node.left)
        width = len(left.schema)
        picked = None if any(isinstance(each, Distinct) for each in _walked(node.right)) else self._picked(node.right)
        if picked is not None and node.outer and not all(isinstance(each, ColumnRef) for each in picked.outputs):
            picked = None  # a value that is made for a row of the right is NULL where there is none
        if picked is None:
            sub_query, around = per_row(left, node.right)
            picked = _Picked(sub_query, columns(sub_query)[len(around) :], same_row(sub_query, around))
        right = self._relation(picked.relation)

        def there(each: Expression) -> Expression:
            return over_row(each, _column_of(right, width), _column_of(left))

        outputs = (*columns(left), *map(there, picked.outputs))
        own = tuple(substitute(part, outputs) for part in conjuncts(node.predicate))
        predicate = conjunction((*map(there, picked.conditions), *own))
        joined: Relation = Join((left, right), predicate)
        if node.outer:
            joined = OuterJoin(left, right, "left", predicate or _TRUE)
        return Project(joined, outputs, tuple(node.schema.names))

    def _selected(self, relation: Relation, parts: tuple[Expression, ...]) -> Relation:
        """The rows for which all parts are true: the plain ones come first."""
        plain = conjunction(tuple(part for part in parts if not has_query(part)))
        relation = relation if plain is None else Filter(relation, plain)
        for part in filter(has_query, parts):
            relation = self._kept(relation, part)
        return relation

    def _kept(self, relation: Relation, part: Expression) -> Relation:
        negated = isinstance(part, Call) and part.function == "not"
        condition = part.children[0] if negated else part
        if isinstance(condition, Exists):
            return self._with_partner(relation, condition.query, AntiJoin if negated else SemiJoin)
        if isinstance(condition, InQuery) and not has_query(condition.operand):
            if negated:
                return self._not_in(relation, condition)
            return self._with_partner(relation, condition.query, SemiJoin, condition.operand)
        if isinstance(condition, Case) and (tested := _tested(condition, not negated)) is not None:
            return reduce(self._kept, tested, relation)
        if isinstance(part, Call) and part.function == "or" and all(map(_parts_rows, part.arguments)):
            return self._any_of(relation, part.arguments)
        marked, (value,) = self._marked(relation, (part,))
        return Project(Filter(marked, value), columns(relation), tuple(relation.schema.names))

    def _any_of(self, relation: Relation, parts: tuple[Expression, ...]) -> Relation:
        """The rows for which one part is true: each is tested on those alone for which none before it was."""
        kept: list[Relation] = []
        for part in sorted(parts, key=has_query):
            true, relation = self._parted(relation, part)
            kept.append(true)
        return reduce(lambda left, right: SetOperation("union", True, left, right), kept)

    def _parted(self, relation: Relation, part: Expression) -> tuple[Relation, Relation]:
        """The rows for which a part is true, and the others."""
        if not has_query(part):
            return Filter(relation, part), Filter(relation, Case((part,), (_FALSE,), _TRUE))
        negated = isinstance(part, Call) and part.function == "not"
        tested = part.children[0] if negated else part
        assert isinstance(tested, Exists | InQuery)
        operand = tested.operand if isinstance(tested, InQuery) else None
        there, rest = (self._with_partner(relation, tested.query, kind, operand) for kind in (SemiJoin, AntiJoin))
        return (rest, there) if negated else (there, rest)

    def _not_in(self, relation: Relation, condition: InQuery) -> Relation:
        """Nothing equal; and no row at all if x is NULL, no NULL if it is not."""
        relation = self._with_partner(relation, condition.query, AntiJoin, condition.operand)
        return self._with_partner(relation, condition.query, AntiJoin, condition.operand, unknown=True)

    def _marked(self, relation: Relation, values: tuple[Expression, ...]) -> tuple[Relation, tuple[Expression, ...]]:
        """The rows with the answers of the sub-queries as columns behind theirs, and the values over them."""
        column_of: dict[Expression, Expression] = {}
        rows = [relation]

        def mark(query: Relation, operand: Expression | None = None, unknown: bool = False) -> Expression:
            here = rows[-1]
            parts: list[Relation] = []
            names = (*here.schema.names, "is_in")
            for kind, said in ((SemiJoin, _TRUE), (AntiJoin, _FALSE)):
                joined = self._with_partner(here, query, kind, operand, unknown)
                parts.append(Project(joined, (*columns(here), said), names))
            rows.append(SetOperation("union", True, parts[0], parts[1]))
            return ColumnRef(len(here.schema), BOOLEAN, "is_in")

        def value(query: Relation) -> Expression:
            here = rows[-1]
            rows.append(self._with_value(here, query))
            return columns(rows[-1])[-1]

        def answer(part: Expression) -> Expression:
            if not isinstance(part, SubQuery):
                return part
            column = column_of.get(part)
            if column is None:
                if isinstance(part, Exists):
                    column = mark(part.query)
                elif isinstance(part, ScalarQuery):
                    column = value(part.query)
                else:
                    assert isinstance(part, InQuery)
                    there = mark(part.query, part.operand)
                    unknown = mark(part.query, part.operand, unknown=True)
                    column = Case((there, unknown), (_TRUE, _UNKNOWN), _FALSE)
                column_of[part] = column
            return column

        answers = tuple(transform(value, answer) for value in values)
        return rows[-1], answers

    def _with_value(self, relation: Relation, query: Relation) -> Relation:
        """The rows with the value of a sub-query of at most one row behind their columns."""
        width = len(relation.schema)
        sub_query: Relation = query
        conditions: tuple[Expression, ...] = ()
        if outer_columns(query):
            sub_query, around = per_row(relation, query)
            conditions = same_row(sub_query, around)
        right = self._relation(sub_query)
        parts = tuple(over_row(part, _column_of(right, width), _column_of(relation)) for part in conditions)
        joined = OuterJoin(relation, right, "left", conjunction(parts) or _TRUE)
        names = (*relation.schema.names, right.schema.names[-1])
        return Project(joined, (*columns(relation), columns(joined)[-1]), names)

    def _with_partner(
        self,
        relation: Relation,
        query: Relation,
        kind: type[SemiJoin],
        operand: Expression | None = None,
        unknown: bool = False,
    ) -> Relation:
        """The rows for which the sub-query has a row, or (an anti join) has none.

        With an operand one that is equal to it; `unknown`: one of which nobody can say whether it is.
        """
        width = len(relation.schema)
        picked = self._picked(query)
        if picked is None:
            sub_query, around = per_row(relation, query)
            picked = _Picked(self._relation(sub_query), columns(sub_query)[len(around) :], same_row(sub_query, around))
        right, conditions = picked.relation, picked.conditions
        if operand is not None and unknown:
            right, null = _with_null(right, picked.outputs[0])
            conditions = (*conditions, Call("or", (null, Call("is_null", (seen_from(operand, 1),), BOOLEAN)), BOOLEAN))
        elif operand is not None:
            conditions = (*conditions, Call("=", (seen_from(operand, 1), picked.outputs[0]), BOOLEAN))
        own = conjunction(tuple(part for part in conditions if not outer_columns(part)))
        right = self._relation(right if own is None else Filter(right, own))
        across = tuple(part for part in conditions if outer_columns(part))
        if unknown or not across:
            right, across = _each_once(right, across)
        predicate = [over_row(part, _column_of(right, width), _column_of(relation)) for part in across]
        return kind(relation, right, conjunction(tuple(predicate)))

    def _picked(self, node: Relation) -> _Picked | None:
        """A sub-query taken apart, as far as only it matters whether there is a row; None where that cannot be."""
        if not outer_columns(node):
            return _Picked(node, columns(node))
        if isinstance(node, Distinct):
            return self._picked(node.input)
        if any(map(has_query, expressions_of(node))):
            return None
        if isinstance(node, Filter):
            below = self._picked(node.input)
            if below is None:
                return None
            more = tuple(substitute(part, below.outputs) for part in conjuncts(node.predicate))
            return replace(below, conditions=(*below.conditions, *more))
        if isinstance(node, Project):
            below = self._picked(node.input)
            if below is None:
                return None
            return replace(below, outputs=tuple(substitute(each, below.outputs) for each in node.expressions))
        if isinstance(node, Join):
            return self._picked_of_join(node)
        return None

    def _picked_of_join(self, join: Join) -> _Picked | None:
        outputs: list[Expression] = []
        conditions: list[Expression] = []
        relations: list[Relation] = []
        width = 0
        for each in join.relations:
            below = self._picked(each)
            if below is None:
                return None
            outputs += [shifted(value, width) for value in below.outputs]
            conditions += [shifted(part, width) for part in below.conditions]
            relations.append(below.relation)
            width += len(below.relation.schema)
        conditions += [substitute(part, tuple(outputs)) for part in conjuncts(join.predicate)]
        return _Picked(Join(tuple(relations), None), tuple(outputs), tuple(conditions))


def _walked(node: Node) -> Iterator[Node]:
    yield node
    for child in node.inputs:
        yield from _walked(child)


def _tested(case: Case, wanted: bool) -> tuple[Expression, ...] | None:
    """What must hold so that a CASE of EXISTS and constants gives the truth value that is wanted; None: it is another.

    Its conditions are true or false, never unknown.
    """
    values = [each.value if isinstance(each, Literal) else case for each in (*case.results, case.otherwise)]
    if case in values or not all(isinstance(each, Exists) for each in case.conditions):
        return None
    *taken, otherwise = [each is wanted for each in values]
    if taken == [True] + [False] * (len(taken) - 1) and not otherwise:
        return case.conditions[:1]
    if otherwise and not any(taken):
        return tuple(Call("not", (each,), BOOLEAN) for each in case.conditions)
    return None


def _parts_rows(part: Expression) -> bool:
    """Whether a semi and an anti join tell rows for which it is true from all others; NOT IN may be unknown."""
    if isinstance(part, InQuery):
        return not has_query(part.operand)
    negated = isinstance(part, Call) and part.function == "not"
    return isinstance(part.children[0] if negated else part, Exists) or not has_query(part)


def _with_null(right: Relation, value: Expression) -> tuple[Relation, Expression]:
    """Whether a value of the sub-query is NULL, as a column behind its own, if it does not depend on the row around."""
    null = Call("is_null", (value,), BOOLEAN)
    if outer_columns(value):
        return right, null
    names = (*right.schema.names, "is_null")
    return Project(right, (*columns(right), null), names), ColumnRef(len(right.schema), BOOLEAN, "is_null")


def _each_once(right: Relation, across: tuple[Expression, ...]) -> tuple[Relation, tuple[Expression, ...]]:
    """What the conditions read of the right, each once: one row is as good as many, and here they are few."""
    if any(map(tells_zeros_apart, across)):
        return right, across
    used = sorted(frozenset().union(*map(columns_of, across)))
    values: tuple[Expression, ...] = tuple(columns(right)[i] for i in used) or (_TRUE,)
    names = tuple(right.schema[i].name for i in used) or ("is_there",)
    at = {old: new for new, old in enumerate(used)}
    return Distinct(Project(right, values, names)), tuple(remap(part, at) for part in across)


def _column_of(relation: Relation, width: int = 0) -> Callable[[int], Expression]:
    """The columns of a relation, in a row in which so many stand before them."""
    return lambda i: ColumnRef(width + i, relation.schema[i].type, relation.schema[i].name)
