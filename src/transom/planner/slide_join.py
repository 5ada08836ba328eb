"""Joins of windows that slide, emitted slide by slide (paper 4): whether they run as one operator, and by which tactic.

They are in `kernels/slide_join/tactic.py`; off takes anything: windows, joins and RSTREAM by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import gcd
from typing import Final

from transom.core.errors import UnsupportedError
from transom.kernels.aggregate.tactic import RunningTactic
from transom.kernels.all_tactics import tactics_of
from transom.kernels.joinagg.shape import Shape, may_fail
from transom.kernels.operator import SINGLE, Operator, Partitioning, column
from transom.kernels.slide_join.node import SlideGroups, SlideInput, SlideJoin, SlideMarks
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


@dataclass(frozen=True)
class Shaped:
    """What a query asks for, if it is one that can run slide by slide."""

    inputs: tuple[SlideInput, ...]
    residual: Expression | None
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]
    groups: SlideGroups | None


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
    shaped = _shaped(query, tick)
    if isinstance(shaped, str):
        if memory is not None:
            return None  # it may need no memory at all: see `check_memory`
        raise UnsupportedError(f"the slide join tactic '{forced}' cannot run this query: {shaped}", remedy=_REMEDY)
    node = SlideJoin(
        shaped.inputs,
        shaped.residual,
        shaped.expressions,
        shaped.names,
        memory is not None,
        put_off,
        memory,
        shaped.groups,
    )
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
    # All tuples of a group have to meet, so of the join keys only those spread rows that a group agrees on.
    agreed = range(len(node.sources[0].keys)) if node.groups is None else node.groups.agree
    keys = [
        Partitioning("keys", tuple(_over_stream(source, source.keys[number]) for number in agreed))
        for source in node.sources
    ]
    # A key that could fail must not be computed before the selection of the input.
    alone = any(may_fail(key) for need in keys for key in need.keys)
    # An attempt is void as a whole: who may put its work off makes all of it.
    needs = (SINGLE,) * len(inputs) if alone or node.put_off is not None or not agreed else tuple(keys)
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
    """A join whose slides a stream emits, and what becomes of a row on its way: predicates, and the columns that it
    ends in, over the columns of the join. `instants`: the rows were taken through [NOW], slide by slide. With `groups`
    the columns that it ends in are over those of the groups."""

    relations: tuple[Relation, ...]
    parts: tuple[Expression, ...]
    outer: tuple[Expression, ...]
    instants: bool = False
    groups: SlideGroups | None = None

    def then(self, parts: tuple[Expression, ...], outer: tuple[Expression, ...]) -> _Joined:
        """A selection and a projection above it."""
        parts = tuple(substitute(part, self.outer) for part in parts)
        outer = tuple(substitute(e, self.outer) for e in outer)
        if self.groups is None:
            return replace(self, parts=(*self.parts, *parts), outer=outer)
        having = conjunction((*conjuncts(self.groups.predicate), *parts))
        return replace(self, outer=outer, groups=replace(self.groups, predicate=having))


def _joined(stream: Node) -> _Joined | str:
    """The join below selections and projections of its slides, or why there is none such.

    RSTREAM and ISTREAM over [NOW] emit what comes in, as long as instants are more than a tick apart.
    """
    stream, parts, outer = _absorbed(stream, (), _columns(stream))
    if not isinstance(stream, ToStream):
        return _NONE if isinstance(stream, Stream) else f"{_NONE}: its rows live on, and slides are over once emitted"
    below, parts, outer = _absorbed(stream.input, parts, outer)
    made = _grouped if isinstance(below, Aggregate | Distinct) else _slides
    slides = made(below, stream.change)
    return slides if isinstance(slides, str) else slides.then(parts, outer)


def _slides(below: Node, change: Change) -> _Joined | str:
    """The tuples of a slide: those of a join, or what another stream has made of them."""
    if isinstance(below, Join):
        if change is not Change.RSTREAM:
            return f"{_NONE}: {change.name} compares a slide with the one before it, which may be put off"
        return _flat(below, (), _columns(below))
    if isinstance(below, Window) and isinstance(_absorbed(below.input, (), ())[0], ToStream):
        if not below.spec.now or change is Change.DSTREAM:
            return f"{_NONE}: {below.spec} keeps rows of slides, and one that is put off would come after later ones"
        inner = _joined(below.input)
        return inner if isinstance(inner, str) else replace(inner, instants=True)
    if isinstance(below, SetOperation):
        return f"{_NONE}: {below.kind.upper()} takes slides as a whole, and they are emitted row by row"
    return _OF_GROUPS if isinstance(below, Aggregate | Distinct) else _NONE


def _grouped(node: Node, change: Change) -> _Joined | str:
    """The groups of a slide, whose results are folded into them."""
    assert isinstance(node, Aggregate | Distinct)
    calls: tuple[AggregateCall, ...] = ()
    if isinstance(node, Aggregate):
        keys, calls = node.keys, node.calls
        again = [call for call in calls if call.order or call.condition or call.fraction is not None]
        if not node.grouped:
            return f"{_NONE}: an aggregate without GROUP BY has a row even where nothing is joined"
        if again or not RunningTactic.runs(node, True):
            which = again[0].function if again else "a call"
            return f"{_NONE}: {which} keeps the rows of a slide, not only their totals"
    else:
        keys = _columns(node)
    below, parts, outer = _absorbed(node.input, (), _columns(node.input))
    slides = _slides(below, change)
    if isinstance(slides, str):
        return slides
    slides = slides.then(parts, outer)
    if slides.groups is not None:
        return _OF_GROUPS
    keys = tuple(substitute(key, slides.outer) for key in keys)
    calls = tuple(call.over(partial(substitute, values=slides.outer)) for call in calls)
    return replace(slides, groups=SlideGroups(keys, calls, None), outer=_columns(node))


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


def _shaped(query: Node, tick: int) -> Shaped | str:
    """The parts of the query, or why it has none such."""
    joined = _joined(query)
    if isinstance(joined, str):
        return joined
    relations, predicates, outer = joined.relations, joined.parts, joined.outer
    groups = joined.groups
    grouping = () if groups is None else (*groups.keys, *(e for call in groups.calls for e in call.expressions))
    having = () if groups is None or groups.predicate is None else (groups.predicate,)
    if any(isinstance(part, SubQuery) for e in (*predicates, *outer, *grouping, *having) for part in walk(e)):
        return "it has a sub-query"
    if len(relations) > MOST_INPUTS:
        return f"it joins more than {MOST_INPUTS} inputs"
    shape = Shape(relations, predicates, (), ())
    if not shape.join_keys:
        return "there is no equality that all inputs take part in"
    inputs = []
    for i, relation in enumerate(relations):
        shaped_input = _input(relation, shape, i)
        if isinstance(shaped_input, str):
            return shaped_input
        inputs.append(shaped_input)
    if joined.instants and gcd(*(each.slide for each in inputs)) <= tick:
        return "its slides are a tick apart, and rows of one may still be alive under [NOW] when the next begins"
    if groups is not None:
        members = [shape.member(key) for key in groups.keys]
        agree = tuple(i for i, same in enumerate(shape.join_keys) if any(each in same for each in members))
        groups = replace(groups, agree=agree)
    return Shaped(tuple(inputs), conjunction(shape.residual), outer, tuple(query.schema.names), groups)


def _input(relation: Relation, shape: Shape, i: int) -> SlideInput | str:
    """A RANGE .. SLIDE window with selections and projections over it."""
    keys = tuple(next(key for at, key in key_members if at == i) for key_members in shape.join_keys)
    same = conjunction(tuple(shape.same_on_one_input(i)))
    below, parts, outer = _absorbed(relation, (), _columns(relation))
    if any(isinstance(part, SubQuery) for e in (*parts, *outer) for part in walk(e)):
        return "it has a sub-query"
    if not isinstance(below, Window):
        return "an input is no window over a stream"
    spec = below.spec
    if spec.range is None or spec.slide is None or spec.rows is not None:
        return f"an input has the window {spec}, which does not slide by time"
    return SlideInput(below.input, spec.range, spec.slide, conjunction(parts), outer, keys, same)
