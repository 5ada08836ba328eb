"""Joins of unbounded streams whose condition bounds the streams' own times to each other.

A pair lives forever once it is made, but a row makes pairs only with rows that come soon enough after it. So the rows
are kept for as long as the condition allows, and every pair that begins stays. With a.ts <= b.ts <= a.ts + X the rows
of a are those of [RANGE X and a tick], and those of b of [NOW].

A row with a partner keeps it, and one that had none by the end of that time will never have one. So a semi join gives a
row once, with its partner; an outer and an anti join show a row without a partner at once, and when its time is over
say that it stays. Nobody but the answer expects an end that is not past, so these two are bounded where nothing but
selections and projections is above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from transom.core.time import format_duration
from transom.plan.algebra import (
    AntiJoin,
    Deduplicate,
    Filter,
    Join,
    KeptForever,
    Node,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    StreamFilter,
    StreamProject,
    StreamScan,
    Window,
    WindowSpec,
)
from transom.plan.catalogue import Catalogue, StreamDefinition
from transom.plan.expression import Call, ColumnRef, Expression, Literal, conjuncts

_OPPOSITE: Final = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "="}


def bound_joins(query: Node, catalogue: Catalogue, tick: int, partners: bool = True) -> tuple[Node, dict[Node, str]]:
    """The query with such joins over windows; and of each window which conditions bound it.

    `partners`: whether it may be done to joins that know which rows have a partner, if the query is an answer.
    """
    made: dict[Node, Node] = {}
    reasons: dict[Node, str] = {}
    at_the_top = query
    while isinstance(at_the_top, Filter | Project):
        at_the_top = at_the_top.input

    def bound(node: Node) -> Node:
        rebuilt = made.get(node)
        if rebuilt is None:
            rebuilt = node.over(tuple(bound(child) for child in node.inputs))
            if isinstance(rebuilt, Join):
                rebuilt = _bound_join(rebuilt, catalogue, tick, reasons)
            elif isinstance(rebuilt, OuterJoin | SemiJoin) and partners and _may_stay(rebuilt, node == at_the_top):
                rebuilt = _bound_partners(rebuilt, catalogue, tick, reasons)
            made[node] = rebuilt
        return rebuilt

    return bound(query), reasons


def _bound_join(join: Join, catalogue: Catalogue, tick: int, reasons: dict[Node, str]) -> Node:
    relations = _bound_relations(join.relations, join.predicate, catalogue, tick, reasons)
    return join if relations is None else KeptForever(replace(join, relations=relations))


def _may_stay(join: OuterJoin | SemiJoin, is_the_answer: bool) -> bool:
    return is_the_answer or not isinstance(join, OuterJoin | AntiJoin)


def _bound_partners(
    join: OuterJoin | SemiJoin, catalogue: Catalogue, tick: int, reasons: dict[Node, str]
) -> OuterJoin | SemiJoin:
    relations = _bound_relations((join.left, join.right), join.predicate, catalogue, tick, reasons)
    return join if relations is None else replace(join, left=relations[0], right=relations[1], stays=True)


def _bound_relations(
    inputs: Sequence[Relation], predicate: Expression | None, catalogue: Catalogue, tick: int, reasons: dict[Node, str]
) -> tuple[Relation, ...] | None:
    """The inputs of a join over windows; None where nothing bounds any of them."""
    times: dict[int, int] = {}  # which input a column is the time of
    width = 0
    for i, relation in enumerate(inputs):
        at = time_columns(relation, catalogue)
        if at is None:
            return None
        times |= {width + column: i for column in at}
        width += len(relation.schema)
    bounds_of = {part: bounds for part in conjuncts(predicate) if (bounds := _bounds(part, times))}
    latest = _longest(len(inputs), [bound for bounds in bounds_of.values() for bound in bounds])
    relations: list[Relation] = []
    for i, relation in enumerate(inputs):
        waits = [row[i] for j, row in enumerate(latest) if j != i]
        if any(wait is None for wait in waits):
            relations.append(relation)
            continue
        longest = max(0, *(wait for wait in waits if wait is not None))
        assert isinstance(relation, Window)
        window = replace(relation, spec=WindowSpec(range=-(-longest // tick) * tick + tick))
        predicates = [
            str(part) for part, bounds in bounds_of.items() if any(i in (one, other) for one, other, _ in bounds)
        ]
        later = f"later than {format_duration(longest)}" if longest else "later"
        reasons[window] = f"what comes {later} matches no row, by {' AND '.join(predicates)}"
        relations.append(window)
    if all(new is old for new, old in zip(relations, inputs, strict=True)):
        return None
    return tuple(relations)


def time_columns(relation: Relation, catalogue: Catalogue) -> tuple[int, ...] | None:
    """Where the time of a stream that never ends is among its columns; None if the relation is anything else."""
    if not isinstance(relation, Window) or not relation.spec.unbounded:
        return None
    columns: list[int | None] = list(range(len(relation.schema)))
    node: Node = relation.input
    while isinstance(node, StreamFilter | StreamProject | Deduplicate):
        if isinstance(node, StreamProject):
            values = [None if i is None else node.expressions[i] for i in columns]
            columns = [value.index if isinstance(value, ColumnRef) else None for value in values]
        node = node.input
    if not isinstance(node, StreamScan):
        return None
    definition = catalogue.relations[node.name.lower()]
    if not isinstance(definition, StreamDefinition) or definition.arrival_time:
        return None
    names = [None if i is None else node.schema[i].name.lower() for i in columns]
    return tuple(i for i, name in enumerate(names) if name == definition.time.column.lower())


def _bounds(part: Expression, times: dict[int, int]) -> list[tuple[int, int, int]]:
    """(i, j, most): the time of input i is at most so much later than that of input j."""
    if not isinstance(part, Call) or part.function not in _OPPOSITE:
        return []
    left, right = (_moved_time(side, times) for side in part.arguments)
    if left is None or right is None or left[0] == right[0]:
        return []
    (later, first), (other, second) = left, right
    function = part.function
    bounds = []
    if function in ("<=", "<", "="):
        bounds.append((later, other, second - first))
    if function in (">=", ">", "="):
        bounds.append((other, later, first - second))
    return bounds


def _moved_time(side: Expression, times: dict[int, int]) -> tuple[int, int] | None:
    """The time of an input and what is added to it, in microseconds."""
    if isinstance(side, ColumnRef) and side.index in times:
        return times[side.index], 0
    if isinstance(side, Call) and side.function == "add_interval":
        moved, by = side.arguments[:2]
        inner = _moved_time(moved, times)
        if inner is not None and isinstance(by, Literal) and isinstance(by.value, int) and len(side.arguments) == 2:
            return inner[0], inner[1] + by.value
    return None


def _longest(inputs: int, bounds: list[tuple[int, int, int]]) -> list[list[int | None]]:
    """By how much the time of i is later than that of j at most, also by way of others; None where nothing says so."""
    most: list[list[int | None]] = [[0 if i == j else None for j in range(inputs)] for i in range(inputs)]

    def lower(i: int, j: int, by: int) -> None:
        before = most[i][j]
        most[i][j] = by if before is None else min(before, by)

    for i, j, by in bounds:
        lower(i, j, by)
    for k in range(inputs):
        for i in range(inputs):
            for j in range(inputs):
                first, second = most[i][k], most[k][j]
                if first is not None and second is not None and i != j:
                    lower(i, j, first + second)
    return most
