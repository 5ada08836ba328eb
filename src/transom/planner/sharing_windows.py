"""Joins of three and more streams, or of two whose windows slide, that queries have with windows of their own, by time.

The join is made once, with the widest of their windows, as a part (`sharing_plan.py`) in which every tuple has the
times of its members. By these a query knows which tuples are its own, and when they begin and end (`WindowedPlan`).
Selections are the query's own, above the join; what the queries have in common is which columns are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transom.core.schema import Schema
from transom.core.time import UNBOUNDED
from transom.kernels.joinagg.shape import may_fail
from transom.kernels.operator import column
from transom.kernels.shared_plan.node import MemberWindow, WindowedPlan
from transom.plan.algebra import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Project,
    Relation,
    StreamScan,
    ToStream,
    Window,
    WindowSpec,
)
from transom.plan.catalogue import Catalogue, StreamDefinition
from transom.plan.expression import Call, Expression, columns_of, conjunction, conjuncts, remap, shifted, substitute
from transom.plan.options import OPTIONS, time_settings
from transom.plan.rewrites import rewrite
from transom.planner.join import reordered
from transom.planner.sharing import length_of
from transom.planner.sharing_plan import SharablePlan, surroundings_of, why_no_part
from transom.planner.sharing_shape import NotSharedError, replaced, side_of, the_join
from transom.planner.time_bounds import bound_joins


@dataclass(frozen=True)
class SharableWindows:
    """A query over a join of streams under windows by time. Expressions are over all columns of the streams in turn.

    `read` are the columns that the query wants, and `equal` what of the predicate is common to those who share it.
    """

    scans: tuple[StreamScan, ...]
    windows: tuple[WindowSpec, ...]
    equal: tuple[Expression, ...]
    above: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    read: frozenset[int]
    query: Node
    join: Join
    catalogue: Catalogue

    @property
    def common(self) -> tuple[object, ...]:
        """What queries must have in common to share the join."""
        return self.names, self.equal, surroundings_of(self.names, self.catalogue)

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return tuple(scan.name.lower() for scan in self.scans)


def sharable_windows(query: Node, catalogue: Catalogue) -> SharableWindows | str:
    """What the query asks of such a join, or why it can have none."""
    reason = why_no_part(catalogue)
    if reason is not None:
        return reason
    try:
        return _sharable(rewrite(query), catalogue)
    except NotSharedError as reason_of_shape:
        return str(reason_of_shape)


def widened(requests: Sequence[SharableWindows]) -> list[SharablePlan]:
    """The same queries over a join with the widest of their windows."""
    first = requests[0]
    tick = time_settings(first.catalogue)[0]
    times = [_time_of(scan, first.catalogue) for scan in first.scans]
    bounds = _bounds(first.scans)
    wanted = frozenset().union(*(query.read for query in requests), *map(columns_of, first.equal))
    inputs: list[Relation] = []
    at: dict[int, int] = {}
    for i, scan in enumerate(first.scans):
        wanted_here = sorted({each - bounds[i] for each in wanted if bounds[i] <= each < bounds[i + 1]} | {times[i]})
        at |= {bounds[i] + each: len(at) + number for number, each in enumerate(wanted_here)}
        widest = max(_held(query.windows[i], tick) for query in requests)
        window = Window(scan, WindowSpec() if widest >= UNBOUNDED else WindowSpec(range=widest))
        columns = tuple(column(scan.schema, each) for each in wanted_here)
        inputs.append(Project(window, columns, tuple(scan.schema[each].name for each in wanted_here)))
    predicate = conjunction(tuple(remap(part, at) for part in first.equal))
    part = Join(tuple(inputs), predicate)
    surroundings = surroundings_of(first.names, first.catalogue)
    return [SharablePlan(part, _over(query, part.schema, at, times, bounds, tick), surroundings) for query in requests]


def differ(requests: Sequence[SharableWindows]) -> bool:
    """Whether their windows do: otherwise the join is a part as it is."""
    return len({query.windows for query in requests}) > 1


def _over(
    query: SharableWindows, part: Schema, at: dict[int, int], times: Sequence[int], bounds: Sequence[int], tick: int
) -> Node:
    """The query over the columns of the part."""
    read = sorted(query.read) or [bounds[0] + times[0]]
    members = tuple(
        MemberWindow(scan.name, at[bounds[i] + times[i]], length_of(window, tick), window.slide)
        for i, (scan, window) in enumerate(zip(query.scans, query.windows, strict=True))
    )
    indexes = tuple(at[each] for each in read)
    made: Relation = WindowedPlan(Schema(tuple(part[index] for index in indexes)), indexes, members)
    own = {each: number for number, each in enumerate(read)}
    predicate = conjunction(query.above)
    if predicate is not None:
        made = Filter(made, remap(predicate, own))
    made = Project(made, tuple(remap(e, own) for e in query.outputs), tuple(query.join.schema.names))
    return replaced(query.query, Join, lambda join: made)


def _held(window: WindowSpec, tick: int) -> int:
    """How long a row has to be there: one that slides lets it go at the sample after its time."""
    return min(length_of(window, tick) + (window.slide or 0), UNBOUNDED)


def _sharable(query: Node, catalogue: Catalogue) -> SharableWindows:
    join = the_join(query)
    option = catalogue.options.get("joinagg", OPTIONS["joinagg"].default)
    if option not in ("auto", "pc"):
        raise NotSharedError(f"SET joinagg asks for '{option}'")
    tick = time_settings(catalogue)[0]
    if bound_joins(join, catalogue, tick)[1]:
        raise NotSharedError("the times of its streams say what it keeps, and a shared join keeps what its windows say")
    names = [side_of(relation, slides=True).scan.name.lower() for relation in join.relations]
    ordered, positions = reordered(join, sorted(range(len(names)), key=lambda i: names[i]))
    sides = [side_of(relation, slides=True) for relation in ordered.relations]
    scans = tuple(side.scan for side in sides)
    if len(sides) == 2 and all(side.window.slide is None for side in sides):
        raise NotSharedError("joins of two whose windows do not slide are shared in a way of their own")
    if any(side.window.rows is not None for side in sides):
        raise NotSharedError("a window counts rows")
    if any(side.window.slide is not None for side in sides) and _needs_every_slide(query):
        raise NotSharedError("an aggregate without groups is emitted slide by slide")
    for scan in scans:
        _time_of(scan, catalogue)
    bounds = _bounds(scans)
    outputs = tuple(shifted(e, bounds[i]) for i, side in enumerate(sides) for e in side.outputs)
    parts = tuple(substitute(part, outputs) for part in conjuncts(ordered.predicate))
    equal = tuple(sorted({part for part in parts if _is_equality(part, bounds)}, key=repr))
    if not _connected(equal, bounds):
        raise NotSharedError("no equalities connect all of its inputs")
    above = tuple(shifted(e, bounds[i]) for i, side in enumerate(sides) for e in side.predicates)
    above += tuple(part for part in parts if part not in equal)
    back = tuple(outputs[i] for i in positions)
    read = frozenset(i for e in (*back, *above) for i in columns_of(e))
    return SharableWindows(scans, tuple(s.window for s in sides), equal, above, back, read, query, join, catalogue)


def _needs_every_slide(query: Node) -> bool:
    """Whether it has a row where the join has none, at every slide up to the last that any row of a window sees."""
    nodes = list(_walk(query))
    snapshots = any(isinstance(node, ToStream) and node.change is Change.RSTREAM for node in nodes)
    return snapshots and any(isinstance(node, Aggregate) and not node.grouped for node in nodes)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.inputs:
        yield from _walk(child)


def _is_equality(part: Expression, bounds: Sequence[int]) -> bool:
    """Of two streams, and of what cannot fail: an error must not come of rows that another query has no use for."""
    if not isinstance(part, Call) or part.function != "=" or may_fail(part):
        return False
    of_sides = [{_stream_of(index, bounds) for index in columns_of(argument)} for argument in part.arguments]
    return all(len(streams) == 1 for streams in of_sides) and of_sides[0] != of_sides[1]


def _connected(equal: Sequence[Expression], bounds: Sequence[int]) -> bool:
    reached = {0}
    while True:
        more = {
            s for part in equal if (s_of := {_stream_of(i, bounds) for i in columns_of(part)}) & reached for s in s_of
        }
        if more <= reached:
            return len(reached) == len(bounds) - 1
        reached |= more


def _stream_of(index: int, bounds: Sequence[int]) -> int:
    return max(i for i, begin in enumerate(bounds[:-1]) if begin <= index)


def _bounds(scans: Sequence[StreamScan]) -> list[int]:
    bounds = [0]
    for scan in scans:
        bounds.append(bounds[-1] + len(scan.schema))
    return bounds


def _time_of(scan: StreamScan, catalogue: Catalogue) -> int:
    """Where the time of its rows is among its columns."""
    definition = catalogue.relations[scan.name.lower()]
    assert isinstance(definition, StreamDefinition)
    names = [name.lower() for name in scan.schema.names]
    if definition.time.column.lower() not in names:
        raise NotSharedError("the time of a stream is none of its columns")
    return names.index(definition.time.column.lower())
