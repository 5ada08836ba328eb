"""Aggregates with OVER become aggregates with GROUP BY, joined to the rows that ask for them.

Without a frame the groups are the partitions. With one, rows are numbered, each place meets the rows that its frame
holds, and those are grouped by it; where a frame goes by distances, the value of the order stands for the place. A
frame of one row, as that of LAG, needs no groups: that row is looked up by its number. NULLs of a partition are one
partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal as OneOf

import pyarrow as pa

from transom.core.schema import BIGINT, BOOLEAN
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Node,
    OrderedBy,
    OuterJoin,
    Over,
    OverFrame,
    Project,
    Relation,
    SortKey,
    TopN,
    WindowTable,
    a_relation,
)
from transom.plan.expression import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SubQuery,
    conjunction,
    shifted,
    transform,
)
from transom.plan.rewrites.outer_columns import with_expressions
from transom.plan.rewrites.per_row import columns, same_values


def join_frames(query: Node) -> Node:
    done: dict[int, tuple[Node, Node]] = {}  # with the node itself, so that its id is not given to another

    def in_query(part: Expression) -> Expression:
        return part.with_query(a_relation(of(part.query))) if isinstance(part, SubQuery) else part

    def of(node: Node) -> Node:
        if id(node) not in done:
            rebuilt = node.over(tuple(of(child) for child in node.inputs))
            rebuilt = with_expressions(rebuilt, lambda expression: transform(expression, in_query))
            done[id(node)] = node, _joined(rebuilt) if isinstance(rebuilt, Over) else rebuilt
        return done[id(node)][1]

    return of(query)


def _joined(node: Over) -> Relation:
    rows, calls = node.input, node.calls
    if node.frame is None:
        keys = tuple(columns(rows)[i] for i in node.partition)
        groups = Aggregate(rows, keys, calls, group_names(keys, node), bool(keys), excerpt=node.excerpt)
        return with_groups(node, rows, node.partition, groups)
    numbered = rows if node.frame.distance is not None else _numbered(node, node.frame)
    by = (*node.partition, node.order[0].column if numbered is rows else len(rows.schema))
    if node.frame.start == node.frame.end and not node.frame.peers and all(map(_of_one_row, calls)):
        return with_groups(node, numbered, by, _moved(node, numbered, by))
    names = tuple(numbered.schema[i].name for i in by)
    places: Relation = Project(numbered, tuple(columns(numbered)[i] for i in by), names)
    places = Distinct(places) if node.frame.peers else places
    seen = [shifted(column, len(by)) for column in columns(numbered)]
    keys = columns(places)
    met = [part for key, i in zip(keys, node.partition, strict=False) for part in _same(numbered, i, key, seen[i])]
    place = seen[by[-1]]
    met += _near(node, keys[-1], place) if numbered is rows else _in_frame(node.frame, keys[-1], place)
    pairs = Join((places, numbered), conjunction(tuple(met)), excerpt=node.excerpt)
    made = tuple(ordered_by(call.over(lambda each: shifted(each, len(by))), place) for call in calls)
    groups = Aggregate(pairs, keys, made, group_names(keys, node), True, excerpt=node.excerpt)
    return with_groups(node, numbered, by, groups)


def _numbered(node: Over, frame: OverFrame) -> TopN:
    function: OneOf["row_number", "dense_rank"] = "dense_rank" if frame.peers else "row_number"
    return TopN(node.input, node.partition, node.order, function, number="place", excerpt=node.excerpt)


def _same(rows: Relation, i: int, left: Expression, right: Expression) -> tuple[Expression, ...]:
    """That two values of a column are the same. Where it is never NULL the planner is to see the column itself: one
    that says when rows enter lets joins forget."""
    return (Call("=", (left, right), BOOLEAN),) if _is_never_null(rows, i) else same_values(left, right)


def _is_never_null(node: Node, i: int) -> bool:
    """Of numbers, and of the bounds of windows."""
    if isinstance(node, WindowTable) or (isinstance(node, TopN) and node.number is not None):
        own = len(node.inputs[0].schema)
        return i >= own or (isinstance(node, TopN) and _is_never_null(node.input, i))
    if isinstance(node, Project):
        value = node.expressions[i]
        return isinstance(value, ColumnRef) and _is_never_null(node.input, value.index)
    return isinstance(node, Filter | TopN | Distinct) and _is_never_null(node.input, i)


def _in_frame(frame: OverFrame, own: Expression, seen: Expression) -> list[Expression]:
    if frame.start == frame.end and frame.start is not None:
        return [Call("=", (_later(own, frame.start), seen), BOOLEAN)]
    bounds = ((">=", frame.start), ("<=", frame.end))
    return [Call(sign, (seen, _later(own, by)), BOOLEAN) for sign, by in bounds if by is not None]


def _near(node: Over, own: Expression, seen: Expression) -> list[Expression]:
    """That a value is as near the row's own as the frame allows; NULLs are near each other and far from all others."""
    assert node.frame is not None
    (key,) = node.order
    bounds = ((">=", node.frame.start, not key.nulls_first), ("<=", node.frame.end, key.nulls_first))
    if _is_never_null(node.input, key.column):
        return [_within(node.frame, key, sign, own, seen, far) for sign, far, _ in bounds if far is not None]
    near: list[Expression] = []
    for sign, far, nulls_are_within in bounds:
        if far is None:
            continue
        of_null = Call("is_null", (seen,), BOOLEAN) if nulls_are_within else Literal(True, BOOLEAN)
        null_seen = Literal(nulls_are_within, BOOLEAN)
        within = Call("coalesce", (_within(node.frame, key, sign, own, seen, far), null_seen), BOOLEAN)
        own_is_null = Call("is_null", (own,), BOOLEAN)
        near.append(
            Call(
                "and",
                (
                    Call("or", (Call("not", (own_is_null,), BOOLEAN), of_null), BOOLEAN),
                    Call("or", (own_is_null, within), BOOLEAN),
                ),
                BOOLEAN,
            )
        )
    return near


def _within(frame: OverFrame, key: SortKey, sign: str, own: Expression, seen: Expression, far: int) -> Expression:
    if key.descending:
        sign, far = {">=": "<=", "<=": ">="}[sign], -far
    if frame.distance == "time":
        limit = Call("add_interval", (own, Literal(far, BIGINT)), own.type) if far else own
        return Call(sign, (seen, limit), BOOLEAN)
    return Call(sign, (_as_bigint(seen), _later(_as_bigint(own), far)), BOOLEAN)


def _as_bigint(value: Expression) -> Expression:
    return value if value.type == BIGINT else Cast(value, BIGINT)


def _later(place: Expression, by: int) -> Expression:
    return Call("+", (place, Literal(by, BIGINT)), BIGINT) if by else place


def ordered_by(call: AggregateCall, place: Expression) -> AggregateCall:
    """The call with the order of its frame, if it asks for the first row of that."""
    if call.function != "first" or call.order or call.argument is None:
        return call
    return replace(call, order=(OrderedBy(place), OrderedBy(call.argument)))


def _of_one_row(call: AggregateCall) -> bool:
    """Whether its value for one row is plainly that of its argument."""
    return (call.function == "first" and call.condition is None) or (call.function == "count" and call.argument is None)


def _moved(node: Over, numbered: Relation, by: tuple[int, ...]) -> Relation:
    """Each row at the place that sees it, with what the calls say of it alone."""
    assert node.frame is not None and node.frame.start is not None
    *keys, place = (columns(numbered)[i] for i in by)
    values = (Literal(1, BIGINT) if call.argument is None else _one_zero(call.argument) for call in node.calls)
    return Project(numbered, (*keys, _later(place, -node.frame.start), *values), group_names((*keys, place), node))


def _one_zero(value: Expression) -> Expression:
    """As an aggregate gives it: -0.0 + 0.0 is 0.0."""
    if not pa.types.is_floating(value.type):
        return value
    return Call("+", (value, Literal(0.0, value.type)), value.type)


def with_groups(node: Over, rows: Relation, by: tuple[int, ...], groups: Relation) -> Relation:
    """The rows with what is said of their group: over nothing COUNT is 0, all others are NULL."""
    width = len(rows.schema)
    theirs = tuple(shifted(column, width) for column in columns(groups))
    same = [part for i, key in zip(by, theirs, strict=False) for part in _same(rows, i, columns(rows)[i], key)]
    frame = node.frame
    sure = frame is None or ((frame.start or 0) <= 0 <= (frame.end or 0))
    predicate = conjunction(tuple(same))
    joined: Relation
    if sure:
        joined = Join((rows, groups), predicate, excerpt=node.excerpt)
    else:
        assert predicate is not None
        joined = OuterJoin(rows, groups, "left", predicate, excerpt=node.excerpt)
    values = [
        Call("coalesce", (value, Literal(0, value.type)), value.type)
        if call.function == "count" and not sure
        else value
        for call, value in zip(node.calls, theirs[len(by) :], strict=True)
    ]
    return Project(joined, (*columns(node.input), *values), tuple(node.schema.names))


def group_names(keys: Sequence[Expression], node: Over) -> tuple[str, ...]:
    return (*(key.name if isinstance(key, ColumnRef) else "key" for key in keys), *node.names)
