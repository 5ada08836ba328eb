"""Tactics of joins of windows that slide, emitted slide by slide (paper 4), and of the markers between slides.

| tactic | takes | keeps |
| --- | --- | --- |
| incremental | RSTREAM over a join of RANGE .. SLIDE windows on a key of all inputs | the windows and earlier results |
| full | the same | the windows |
| hybrid | the same | the windows, and earlier results while they are worth it |
"""

from __future__ import annotations

from typing import ClassVar, Final

import pyarrow as pa

from transom.core.schema import held_type
from transom.core.time import format_duration
from transom.kernels import description
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Operator, Site, Tactic
from transom.kernels.slide_join.fold import Fold
from transom.kernels.slide_join.marks import SlideMarksKernel
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.node import SlideGroups, SlideJoin, SlideMarks
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.slide_join.spec import SlideSide, SlideSpec
from transom.plan.expression import Expression

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
        sources = [description.origin(child) for child in operator.inputs]
        keys = zip(*(source.keys for source in node.sources), strict=True)
        parts = [
            " = ".join(description.of_origin(key, source) for key, source in zip(same, sources, strict=True))
            for same in keys
        ]
        if node.residual is not None:
            parts.append(str(node.residual))
        grouped = "" if node.groups is None else f", {_grouping(node.groups)}"
        return f"{' AND '.join(parts)} over {_windows(node)}{grouped}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        sides = tuple(SlideSide(s.length, s.slide, s.predicate, s.expressions, s.keys, s.same) for s in node.sources)
        spec = SlideSpec(sides, node.residual, node.expressions, node.names)
        if node.groups is not None:
            spec = _folding(node, node.groups, sides)
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


def _folding(node: SlideJoin, groups: SlideGroups, sides: tuple[SlideSide, ...]) -> SlideSpec:
    """A join that makes the keys and arguments of groups, each once, and an aggregate of these."""
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
    types = tuple(held_type(expression.type) for expression in inner)
    shown = pa.schema([(str(i), held_type(type_)) for i, type_ in enumerate(groups.types)])
    aggregate = AggregateKernel(keys, calls, shown, types, running=True)
    fold = Fold(aggregate, groups.predicate, node.expressions, node.names)
    return SlideSpec(sides, node.residual, tuple(inner), tuple(map(str, range(len(inner)))), fold)


def _grouping(groups: SlideGroups) -> str:
    """
    >>> from transom.core.schema import BIGINT
    >>> from transom.plan.algebra import AggregateCall
    >>> from transom.plan.expression import ColumnRef
    >>> _grouping(SlideGroups((ColumnRef(0, BIGINT, "k"),), (AggregateCall("count", None, BIGINT),), None))
    'count(*) by k'
    """
    calls = ", ".join(map(str, groups.calls))
    return f"{calls or 'each once'} by {', '.join(map(str, groups.keys))}"


def _windows(node: SlideJoin) -> str:
    """As they are written; one where all are equal."""
    shown = [f"[RANGE {format_duration(s.length)} SLIDE {format_duration(s.slide)}]" for s in node.sources]
    return shown[0] if len(set(shown)) == 1 else ", ".join(shown)
