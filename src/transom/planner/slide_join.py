"""Joins of windows that slide, emitted slide by slide (paper 4): whether they run as one operator, and by which tactic.

They are in `kernels/slide_join/tactic.py`; off takes anything: windows, joins and RSTREAM by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import gcd
from typing import Final

from transom.core.errors import UnsupportedError
from transom.kernels.aggregate.tactic import RunningTactic
from transom.kernels.all_tactics import tactics_of
from transom.kernels.joinagg.shape import Shape, may_fail
from transom.kernels.operator import SINGLE, Operator, Partitioning, column
from transom.kernels.slide_join.node import SlideGroups, SlideInput, SlideJoin, SlideMarks, SlideTuples
from transom.kernels.slide_join.tactic import MarkersTactic, SlideJoinTactic
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    Change,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
    Relation,
    SetOperation,
    Stream,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    ToStream,
    Window,
)
from transom.plan.expression import Expression, SubQuery, conjunction, conjuncts, substitute, walk

TACTICS: Final = tuple(tactic.name for tactic in tactics_of(SlideJoin))
LEAST_MEMORY: Final = 4 << 20
"""Bytes; a smaller budget is rejected."""

MOST_INPUTS: Final = 8
_NONE: Final = "it is no RSTREAM over a join"
_OF_GROUPS: Final = f"{_NONE}: groups of groups are made of slides as a whole"
_REMEDY: Final = "write RSTREAM(SELECT .. FROM a [RANGE .. SLIDE ..], b [RANGE .. SLIDE ..] WHERE a.k = b.k)"


def choose(query: Node, forced: str, memory: int | None, put_off: int | None, tick: int) -> SlideJoin | None:
    """The query as one node, if it is to run so; an error where something was asked for that cannot be had."""
    if put_off is not None and memory is None:
        raise UnsupportedError(
            "slides can be put off within a memory budget only: attempts are emitted with their status then",
            remedy="SET memory = '64 MB', or leave SET put_off out",
        )
    if forced == "off" or (forced == "auto" and memory is None):
        if memory is not None:
            raise UnsupportedError(
                "the query cannot keep to SET memory while SET slide_join = 'off'",
                remedy="SET slide_join = 'auto', or run it without SET memory",
            )
        return None
    node = _shaped(query, tick)
    if isinstance(node, str):
        if memory is not None:
            return None  # it may need no memory at all: see `check_memory`
        raise UnsupportedError(f"the slide join tactic '{forced}' cannot run this query: {node}", remedy=_REMEDY)
    node = replace(node, marked=memory is not None, put_off=put_off, memory=memory)
    check_share(node, 1)
    return node


def check_share(node: SlideJoin, indexes: int, sharing: int = 1) -> None:
    """A budget that is divided among so many partitions of so many queries must be enough for each."""
    parts = indexes * sharing
    if node.memory is not None and node.memory // parts < LEAST_MEMORY:
        queries = f"{sharing} queries" if sharing > 1 else ""
        partitions = f"{indexes} partitions" if indexes > 1 else ""
        among = f", divided among {' of '.join(filter(None, (partitions, queries)))}," if parts > 1 else ""
        raise UnsupportedError(
            f"a memory budget of {node.memory:,} bytes{among} is too small to join in",
            remedy=f"SET memory to at least '{parts * LEAST_MEMORY >> 20} MB'",
        )


def check_memory(root: Operator, query: Node, memory: int | None, tick: int) -> None:
    """A budget that nobody keeps to is rejected before anything starts."""
    if memory is None or isinstance(root.node, SlideMarks):
        return
    keeping = [o for o in root.walk() if o.tactic.keeps != "nothing" and not isinstance(o.node, StreamScan | TableScan)]
    if keeping:
        reason = _shaped(query, tick)
        raise UnsupportedError(
            f"the query cannot keep to SET memory: {reason}",
            remedy=f"{_REMEDY}, or run it without SET memory",
        )


def operator(node: SlideJoin, inputs: tuple[Operator, ...], forced: str) -> Operator:
    """One operator for windows, join, selection, projection and RSTREAM; where there are markers, one that unites them.

    A slide is complete when all partitions have made their part of it.
    """
    name = "hybrid" if forced == "auto" else forced
    keys = [
        Partitioning("keys", tuple(_over_stream(source, source.keys[number]) for number in join.meeting))
        for join in node.joins
        for source in join.sources
    ]
    # A key that could fail must not be computed before the selection of the input.
    alone = not keys[0].keys or any(may_fail(key) for need in keys for key in need.keys)
    # An attempt is void as a whole: who may put its work off makes all of it.
    needs = (SINGLE,) * len(inputs) if alone or node.put_off is not None else tuple(keys)
    tactics = [tactic for tactic in tactics_of(SlideJoin) if issubclass(tactic, SlideJoinTactic)]
    (kind,) = (tactic for tactic in tactics if tactic.name == name)
    not_taken = tuple(
        (tactic.name, tactic.drawback if forced == "auto" else "not requested")
        for tactic in tactics
        if tactic is not kind
    )
    made = Operator(node, kind.chosen(node, not_taken), inputs, None, needs)
    return Operator(SlideMarks(node), MarkersTactic("nothing"), (made,), None, (SINGLE,)) if node.marked else made


def _over_stream(source: SlideInput, key: Expression) -> Expression:
    return substitute(key, source.expressions)


@dataclass(frozen=True)
class _Joined:
    """A join, and what becomes of a row on its way: predicates, and the columns that it ends in, over those of the
    join."""

    relations: tuple[Relation, ...]
    parts: tuple[Expression, ...]
    outer: tuple[Expression, ...]

    def then(self, parts: tuple[Expression, ...], outer: tuple[Expression, ...]) -> _Joined:
        """A selection and a projection above it."""
        parts = tuple(substitute(part, self.outer) for part in parts)
        return replace(self, parts=(*self.parts, *parts), outer=tuple(substitute(e, self.outer) for e in outer))


@dataclass(frozen=True)
class _Slides:
    """The rows of all `joins`, of which a stream emits slides, and the groups that are made of these. `instants`: the
    rows were taken through [NOW], slide by slide."""

    joins: tuple[_Joined, ...]
    instants: bool = False
    groups: SlideGroups | None = None

    def then(self, parts: tuple[Expression, ...], outer: tuple[Expression, ...]) -> _Slides:
        """A selection and a projection above it."""
        groups = self.groups
        if groups is None:
            return replace(self, joins=tuple(join.then(parts, outer) for join in self.joins))
        parts = tuple(substitute(part, groups.expressions) for part in parts)
        having = conjunction((*conjuncts(groups.predicate), *parts))
        shown = tuple(substitute(e, groups.expressions) for e in outer)
        return replace(self, groups=replace(groups, predicate=having, expressions=shown))


def _emitted(stream: Node) -> _Slides | str:
    """The joins below selections and projections of their slides, or why there are none such.

    RSTREAM and ISTREAM over [NOW] emit what comes in, as long as instants are more than a tick apart.
    """
    stream, parts, outer = _absorbed(stream, (), _columns(stream))
    if not isinstance(stream, ToStream):
        return _NONE if isinstance(stream, Stream) else f"{_NONE}: its rows live on, and slides are over once emitted"
    below, parts, outer = _absorbed(stream.input, parts, outer)
    made = _grouped if _groups(below) else _slides
    slides = made(below, stream.change)
    return slides if isinstance(slides, str) else slides.then(parts, outer)


def _groups(node: Node) -> bool:
    """Whether rows that are equal, or in one group, become one."""
    return isinstance(node, Aggregate | Distinct) or (isinstance(node, SetOperation) and _unites(node) and not node.all)


def _unites(node: SetOperation) -> bool:
    return node.kind == "union"


def _slides(below: Node, change: Change, each_once: bool = False) -> _Slides | str:
    """The rows of a slide: those of joins, or what another stream has made of them. `each_once`: of equal rows one is
    enough."""
    if isinstance(below, Join):
        if change is not Change.RSTREAM:
            return f"{_NONE}: {change.name} compares a slide with the one before it, which may be put off"
        return _Slides((_flat(below, (), _columns(below)),))
    if isinstance(below, Window) and isinstance(_absorbed(below.input, (), ())[0], ToStream):
        if not below.spec.now or change is Change.DSTREAM:
            return f"{_NONE}: {below.spec} keeps rows of slides, and one that is put off would come after later ones"
        inner = _emitted(below.input)
        return inner if isinstance(inner, str) else replace(inner, instants=True)
    if isinstance(below, SetOperation) and _unites(below) and (below.all or each_once):
        return _united(below, change, each_once)
    if isinstance(below, SetOperation) and not _unites(below):
        return f"{_NONE}: {below.kind.upper()} takes slides as a whole, and they are emitted row by row"
    if isinstance(below, Distinct) and each_once:
        below, parts, outer = _absorbed(below.input, (), _columns(below.input))
        slides = _slides(below, change, each_once)
        return slides if isinstance(slides, str) else slides.then(parts, outer)
    return _OF_GROUPS if _groups(below) else _NONE


def _united(node: SetOperation, change: Change, each_once: bool) -> _Slides | str:
    """The rows of both sides together."""
    sides: list[_Slides] = []
    for side in (node.left, node.right):
        below, parts, outer = _absorbed(side, (), _columns(side))
        slides = _slides(below, change, each_once)
        if isinstance(slides, str):
            return slides
        if slides.groups is not None:
            return _OF_GROUPS
        sides.append(slides.then(parts, outer))
    left, right = sides
    if left.instants != right.instants:
        return f"{_NONE}: of what UNION unites some was taken through [NOW], and is there for a tick alone"
    return replace(left, joins=(*left.joins, *right.joins))


def _grouped(node: Node, change: Change) -> _Slides | str:
    """The groups of a slide, whose results are folded into them."""
    calls: tuple[AggregateCall, ...] = ()
    if isinstance(node, Aggregate):
        keys, calls = node.keys, node.calls
        again = [call for call in calls if call.order or call.condition or call.fraction is not None]
        if again or not RunningTactic.runs(node, True):
            which = again[0].function if again else "a call"
            return f"{_NONE}: {which} keeps the rows of a slide, not only their totals"
    else:
        assert isinstance(node, Distinct | SetOperation)
        keys = _columns(node)
    if isinstance(node, SetOperation):
        slides = _united(node, change, True)
    else:
        below, parts, outer = _absorbed(node.input, (), _columns(node.input))
        slides = _slides(below, change, isinstance(node, Distinct))
        slides = slides if isinstance(slides, str) else slides.then(parts, outer)
    if isinstance(slides, str):
        return slides
    if slides.groups is not None:
        return _OF_GROUPS
    if slides.instants and not keys:
        return f"{_NONE}: an aggregate without GROUP BY over [NOW] has a row between slides as well"
    return replace(slides, groups=SlideGroups(keys, calls, None, _columns(node)))


def _flat(join: Join, parts: tuple[Expression, ...], outer: tuple[Expression, ...]) -> _Joined:
    """The inputs of a join; of those that are joins themselves, as views are, theirs."""
    relations: list[Relation] = []
    inner: list[Expression] = []
    columns: list[Expression] = []
    """What the columns of the join are over those of all relations."""
    width = 0
    for relation in join.relations:
        below, of_one, given = _absorbed(relation, (), _columns(relation))
        flat = _flat(below, of_one, given) if isinstance(below, Join) else _Joined((relation,), (), _columns(relation))
        schemas = [each.schema for each in flat.relations]
        own = [column(schema, i) for schema in schemas for i in range(len(schema))]
        shifted = tuple(replace(each, index=width + i) for i, each in enumerate(own))
        inner += [substitute(part, shifted) for part in flat.parts]
        columns += [substitute(e, shifted) for e in flat.outer]
        relations += flat.relations
        width += len(own)
    of_join = (*conjuncts(join.predicate), *parts)
    parts = (*inner, *(substitute(part, tuple(columns)) for part in of_join))
    return _Joined(tuple(relations), parts, tuple(substitute(e, tuple(columns)) for e in outer))


def _columns(node: Node) -> tuple[Expression, ...]:
    return tuple(column(node.schema, i) for i in range(len(node.schema)))


def _absorbed(
    below: Node, parts: tuple[Expression, ...], outer: tuple[Expression, ...]
) -> tuple[Node, tuple[Expression, ...], tuple[Expression, ...]]:
    """What is below selections and projections, and the predicates and columns above it over its columns."""
    while isinstance(below, Project | Filter | StreamProject | StreamFilter):
        if isinstance(below, Filter | StreamFilter):
            parts = (*conjuncts(below.predicate), *parts)
        else:
            outer = tuple(substitute(e, below.expressions) for e in outer)
            parts = tuple(substitute(part, below.expressions) for part in parts)
        below = below.input
    return below, parts, outer


def _shaped(query: Node, tick: int) -> SlideJoin | str:
    """The query as a node, or why it is none such."""
    slides = _emitted(query)
    if isinstance(slides, str):
        return slides
    groups = slides.groups
    of_groups: tuple[Expression, ...] = ()
    if groups is not None:
        called = [e for call in groups.calls for e in call.expressions]
        of_groups = (*groups.keys, *called, *conjuncts(groups.predicate), *groups.expressions)
    if _has_sub_query(of_groups):
        return "it has a sub-query"
    joins: list[SlideTuples] = []
    meeting: list[dict[int, int]] = []
    for joined in slides.joins:
        made = _tuples(joined)
        if isinstance(made, str):
            return made
        tuples, shape = made
        joins.append(tuples)
        meeting.append(_meeting(shape, joined, groups))
    every_slide = [{source.slide for source in join.sources} for join in joins]
    if slides.instants and gcd(*set().union(*every_slide)) <= tick:
        return "its slides are a tick apart, and rows of one may still be alive under [NOW] when the next begins"
    if slides.instants and any(own != every_slide[0] for own in every_slide):
        return "what UNION unites through [NOW] has other slides, at which the rest is gone"
    # Inputs are spread by keys that stand for the same, equally many: those of a group that all joins have.
    together = sorted(set.intersection(*map(set, meeting)))
    numbers = dict.fromkeys(tuple(own[at] for own in meeting) for at in together)
    placed = (replace(join, meeting=tuple(each[i] for each in numbers)) for i, join in enumerate(joins))
    return SlideJoin(tuple(placed), tuple(query.schema.names), False, groups=groups)


def _tuples(joined: _Joined) -> tuple[SlideTuples, Shape] | str:
    """The tuples that a join makes, not spread yet, or why it cannot make them."""
    if _has_sub_query((*joined.parts, *joined.outer)):
        return "it has a sub-query"
    if len(joined.relations) > MOST_INPUTS:
        return f"it joins more than {MOST_INPUTS} inputs"
    shape = Shape(joined.relations, joined.parts, (), ())
    if not shape.join_keys:
        return "there is no equality that all inputs take part in"
    inputs = []
    for i, relation in enumerate(joined.relations):
        shaped_input = _input(relation, shape, i)
        if isinstance(shaped_input, str):
            return shaped_input
        inputs.append(shaped_input)
    return SlideTuples(tuple(inputs), conjunction(shape.residual), joined.outer, ()), shape


def _meeting(shape: Shape, joined: _Joined, groups: SlideGroups | None) -> dict[int, int]:
    """The join keys that rows may be spread by, so that what has to meet does: any, or, by the number of a key of the
    groups, those on which all results of a group agree."""
    if groups is None:
        return {number: number for number in range(len(shape.join_keys))}
    members = [shape.member(substitute(key, joined.outer)) for key in groups.keys]
    return {
        at: number for at, member in enumerate(members) for number, same in enumerate(shape.join_keys) if member in same
    }


def _has_sub_query(expressions: Iterable[Expression]) -> bool:
    return any(isinstance(part, SubQuery) for e in expressions for part in walk(e))


def _input(relation: Relation, shape: Shape, i: int) -> SlideInput | str:
    """A RANGE .. SLIDE window with selections and projections over it."""
    keys = tuple(next(key for at, key in key_members if at == i) for key_members in shape.join_keys)
    same = conjunction(tuple(shape.same_on_one_input(i)))
    below, parts, outer = _absorbed(relation, (), _columns(relation))
    if _has_sub_query((*parts, *outer)):
        return "it has a sub-query"
    if not isinstance(below, Window):
        return "an input is no window over a stream"
    spec = below.spec
    if spec.range is None or spec.slide is None or spec.rows is not None:
        return f"an input has the window {spec}, which does not slide by time"
    return SlideInput(below.input, spec.range, spec.slide, conjunction(parts), outer, keys, same)
