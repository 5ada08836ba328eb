"""Tactics of ISTREAM, DSTREAM and RSTREAM: by counts, or directly where all rows say at once when they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from transom.kernels import description
from transom.kernels.kernel import Kernel
from transom.kernels.operator import SINGLE, Operator, Partitioning, Site, Tactic, all_columns
from transom.kernels.scan.tactic import ChangesTableTactic
from transom.kernels.shared_plan.node import WindowedPlan
from transom.kernels.to_stream.direct_stream import AliveRows, DirectStreamKernel
from transom.kernels.to_stream.to_stream import ToStreamKernel, ToStreamState
from transom.plan.algebra import Change, ToStream, Window

_LOOK_UP: Final = "a hash look-up a row"


class ToStreamTactic(Tactic):
    nodes = (ToStream,)
    states: ClassVar[tuple[type, ...]] = (ToStreamState,)
    cheap = True

    def describe(self, operator: Operator) -> str:
        return description.columns(operator.schema)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        slides: set[int] = set()
        for below in slide_windows_below(operator):
            if isinstance(below.node, WindowedPlan):
                slides |= set(below.node.slides)
            elif isinstance(below.node, Window) and below.node.spec.slide:
                slides.add(below.node.spec.slide)
        return (ToStreamKernel(self.name, operator.schema.held(), tuple(sorted(slides))),)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="each distinct row alive once, with its count", costs=_LOOK_UP)


class IStreamTactic(ToStreamTactic):
    name = "istream"


class DStreamTactic(ToStreamTactic):
    name = "dstream"


class RStreamTactic(ToStreamTactic):
    name = "rstream"


class DirectStreamTactic(ToStreamTactic):
    """Emits rows as they begin or end: nothing has to be counted, as all rows know their end when they come."""

    states = (AliveRows,)
    counted: ClassVar[type[ToStreamTactic]]

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (DirectStreamKernel(self.name, operator.schema.held()),)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return self.counted(self.keeps).with_negative_tuples(operator)

    def grows_by(self, operator: Operator) -> str | None:
        return None


class DirectIStreamTactic(DirectStreamTactic):
    name = "istream"
    counted = IStreamTactic


class DirectDStreamTactic(DirectStreamTactic):
    name = "dstream"
    counted = DStreamTactic


def choose(node: ToStream, inputs: Sequence[Operator]) -> tuple[ToStreamTactic, Partitioning]:
    """The tactic, and how rows may be spread.

    RSTREAM emits the whole snapshot whenever any of it changes, so whoever makes it must see all of it.
    """
    kept = "each distinct row alive once, two numbers per row alive"
    if node.change is Change.RSTREAM:
        return RStreamTactic(kept, _LOOK_UP), SINGLE
    entering = node.change is Change.ISTREAM
    if inputs[0].ends_known:
        direct = DirectIStreamTactic if entering else DirectDStreamTactic
        costs = "rows are compared where some begin as others end"
        return direct("the rows alive that will end", costs), all_columns(inputs[0])
    return (IStreamTactic if entering else DStreamTactic)(kept, _LOOK_UP), all_columns(inputs[0])


def slide_windows_below(operator: Operator) -> tuple[Operator, ...]:
    """The RANGE .. SLIDE windows that feed a stream operator, if nothing else can change its input."""
    windows: list[Operator] = []
    pending = list(operator.inputs)
    while pending:
        below = pending.pop()
        if isinstance(below.node, Window):
            spec = below.node.spec
            if spec.range is None or spec.slide is None or spec.rows is not None:
                return ()
            windows.append(below)
        elif isinstance(below.node, WindowedPlan):
            if not below.node.slides:
                return ()
            windows.append(below)
        elif isinstance(below.tactic, ChangesTableTactic):
            return ()
        else:
            pending.extend(below.inputs)
    return tuple(windows)
