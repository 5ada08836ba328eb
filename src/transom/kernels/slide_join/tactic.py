"""Tactics of joins of windows that slide, emitted slide by slide (paper 4), and of the markers between slides.

| tactic | takes | keeps |
| --- | --- | --- |
| incremental | RSTREAM over a join of RANGE .. SLIDE windows on a key of all inputs | the windows and earlier results |
| full | the same | the windows |
| hybrid | the same | the windows, and earlier results while they are worth it |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa

from transom.core.schema import BIGINT, held_type
from transom.core.time import format_duration
from transom.kernels import description
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Operator, Site, Tactic
from transom.kernels.slide_join.fold import Fold
from transom.kernels.slide_join.marks import SlideMarksKernel
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.node import SlideGroups, SlideJoin, SlideMarks, SlideTuples
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.slide_join.spec import SlideSide, SlideSpec, TupleSpec
from transom.plan.expression import Expression, Literal, substitute

_WINDOWS: Final = "the rows of the windows once, sorted by hash"


class SlideJoinTactic(Tactic):
    nodes = (SlideJoin,)
    title = "slide join "
    states = (SlideJoinState,)
    in_one_partition = "a join of windows that slide may put off its work, and does it in one place"

    kept: ClassVar[str]
    work: ClassVar[str]
    """What a slide costs."""

    drawback: ClassVar[str]
    """Why it does not run unless it is forced."""

    @classmethod
    def chosen(cls, node: SlideJoin, not_taken: tuple[tuple[str, str], ...]) -> SlideJoinTactic:
        budget = "in memory" if node.memory is None else f"within {node.memory:,} bytes, the rest on disk"
        return cls(f"{cls.kept}, {budget}", cls.work, not_taken)

    def describe(self, operator: Operator) -> str:
        """What is joined, over which windows."""
        node = _node(operator)
        origins = iter([description.origin(child) for child in operator.inputs])
        joins = [_joined(join, [next(origins) for _ in join.sources]) for join in node.joins]
        grouped = "" if node.groups is None else f", {_grouping(node.groups)}"
        return f"{' UNION ALL '.join(joins)}{grouped}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        spec = SlideSpec(tuple(map(_tuples, node.joins)), node.names)
        if node.groups is not None:
            spec = _folding(node, node.groups)
        memory = None if node.memory is None else node.memory // site.partitions
        return (SlideJoinKernel(spec, self.name, memory, node.marked, node.put_off),)


class IncrementalSlideTactic(SlideJoinTactic):
    name = "incremental"
    kept = f"{_WINDOWS}, and the results of earlier slides that live on"
    work = "the new rows a slide, and reading the results that live on"
    drawback = "results that do not fit into memory may cost more to read than to join again"


class FullSlideTactic(SlideJoinTactic):
    name = "full"
    kept = _WINDOWS
    work = "all rows of the windows a slide"
    drawback = "joins what it has joined before"


class HybridSlideTactic(SlideJoinTactic):
    name = "hybrid"
    kept = f"{_WINDOWS}; the results of earlier slides while reading them costs less than joining again"
    work = "the cheaper of joining the new rows and joining all, a slide"
    drawback = "not requested"


class MarkersTactic(Tactic):
    name = "markers"
    nodes = (SlideMarks,)
    title = "slide "

    def describe(self, operator: Operator) -> str:
        return f"a marker a slide, {description.columns(operator.schema)}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (SlideMarksKernel(),)


def _node(operator: Operator) -> SlideJoin:
    assert isinstance(operator.node, SlideJoin)
    return operator.node


def _tuples(join: SlideTuples) -> TupleSpec:
    sides = tuple(SlideSide(s.length, s.slide, s.predicate, s.expressions, s.keys, s.same) for s in join.sources)
    return TupleSpec(sides, join.residual, join.expressions)


def _folding(node: SlideJoin, groups: SlideGroups) -> SlideSpec:
    """Joins that make the keys and arguments of groups, each once, and an aggregate of these."""
    joins = tuple(map(_tuples, node.joins))
    inner: dict[Expression, int] = {}
    keys = tuple(inner.setdefault(key, len(inner)) for key in groups.keys)
    calls = tuple(
        AggregateSpec(
            call.function,
            None if call.argument is None else inner.setdefault(call.argument, len(inner)),
            call.distinct,
            other=None if call.other is None else inner.setdefault(call.other, len(inner)),
        )
        for call in groups.calls
    )
    if not inner:
        inner[Literal(None, BIGINT)] = 0  # rows have a column
    types = tuple(held_type(expression.type) for expression in inner)
    shown = pa.schema([(str(i), held_type(type_)) for i, type_ in enumerate(groups.types)])
    aggregate = AggregateKernel(keys, calls, shown, types, running=True)
    fold = Fold(aggregate, groups.predicate, groups.expressions, node.names)
    made = tuple(replace(each, expressions=tuple(substitute(e, each.expressions) for e in inner)) for each in joins)
    return SlideSpec(made, tuple(map(str, range(len(inner)))), fold)


def _grouping(groups: SlideGroups) -> str:
    """
    >>> from transom.core.schema import BIGINT
    >>> from transom.plan.algebra import AggregateCall
    >>> from transom.plan.expression import ColumnRef
    >>> _grouping(SlideGroups((ColumnRef(0, BIGINT, "k"),), (AggregateCall("count", None, BIGINT),), None, ()))
    'count(*) by k'
    """
    calls = ", ".join(map(str, groups.calls))
    by = f" by {', '.join(map(str, groups.keys))}" if groups.keys else ""
    return f"{calls or 'each once'}{by}"


def _joined(join: SlideTuples, origins: Sequence[str | None]) -> str:
    """What is joined, and over which windows, as they are written; one where all are equal."""
    keys = zip(*(source.keys for source in join.sources), strict=True)
    parts = [
        " = ".join(description.of_origin(key, source) for key, source in zip(same, origins, strict=True))
        for same in keys
    ]
    if join.residual is not None:
        parts.append(str(join.residual))
    shown = [f"[RANGE {format_duration(s.length)} SLIDE {format_duration(s.slide)}]" for s in join.sources]
    return f"{' AND '.join(parts)} over {shown[0] if len(set(shown)) == 1 else ', '.join(shown)}"
