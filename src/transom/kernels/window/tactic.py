"""Tactics of windows: each kind has one; what it keeps and whether its rows end in the order in which they came."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from transom.core.schema import Schema
from transom.core.time import UNBOUNDED, format_duration
from transom.kernels.kernel import Kernel
from transom.kernels.negative.departures import DeparturesKernel
from transom.kernels.negative.window import NegativeWindow, NegativeWindowState
from transom.kernels.operator import ANY, SINGLE, Alive, Key, Operator, Partitioning, Site, Tactic, column
from transom.kernels.to_stream.direct_stream import AliveRows
from transom.kernels.window.partition_rows import PartitionRowsWindow, PartitionRowsWindowState
from transom.kernels.window.range import RangeWindow
from transom.kernels.window.rows import RowsWindow, RowsWindowState
from transom.kernels.window.session import SessionWindow, SessionWindowState
from transom.kernels.window.slide_range import SlideRangeWindow, SlideRangeWindowState
from transom.kernels.window.slide_rows import SlideRowsWindow, SlideRowsWindowState
from transom.plan.algebra import StreamScan, Window, WindowSpec
from transom.plan.expression import Expression

_WHOLE = "the rows of the window, whole"


class WindowTactic(Tactic):
    nodes = (Window,)
    title = "window "
    cheap = True

    @abstractmethod
    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        """What gives rows their lifetimes."""

    def describe(self, operator: Operator) -> str:
        """As it is written; positions of PARTITION BY are given by name."""
        spec = _spec(operator)
        text = str(spec)
        for i in sorted(spec.partition or (), reverse=True):
            text = text.replace(f"#{i}", operator.schema[i].name)
        return text

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        """Where rows end in no simple order, negative tuples are made of the lifetimes once these are found."""
        kernel = self.kernel(_spec(operator), site.tick)
        return (kernel, DeparturesKernel(operator.schema.held())) if operator.negative else (kernel,)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="nothing" if _endless(_spec(operator)) else f"{self.keeps}; {_WHOLE}")

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        return (key,) if operator.needs[0].kind == "any" else super().keys_below(operator, key)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        spec = _spec(operator)
        return spec.partition or () if spec.rows == 1 and spec.slide is None else None

    def lasts(self, operator: Operator, below: bool) -> bool:
        return _spec(operator).unbounded

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        """Of a stream that is made by ISTREAM, the streams that it is made of."""
        if not _spec(operator).unbounded:
            return Alive(end=True)
        names = (o.node.name for o in operator.walk() if isinstance(o.node, StreamScan))
        return Alive(tuple(dict.fromkeys(names)))

    def counts_rows(self, operator: Operator) -> bool:
        return _spec(operator).rows is not None


class RangeTactic(WindowTactic):
    name = "range"
    states = (NegativeWindowState,)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        if spec.now:
            return RangeWindow(tick)
        return RangeWindow(_length(spec))

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        if not operator.negative:
            return super().kernels(operator, site)
        spec = _spec(operator)
        return (NegativeWindow(None, site.tick if spec.now else _length(spec)),)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="nothing" if _endless(_spec(operator)) else _WHOLE)


class SlideRangeTactic(WindowTactic):
    name = "slide_range"
    states = (SlideRangeWindowState, AliveRows)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        assert spec.slide is not None
        return SlideRangeWindow(_length(spec), spec.slide)


class RowsTactic(WindowTactic):
    name = "rows"
    states = (RowsWindowState, NegativeWindowState)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        assert spec.rows is not None
        return RowsWindow(spec.rows, _length(spec))

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        if not operator.negative:
            return super().kernels(operator, site)
        spec = _spec(operator)
        return (NegativeWindow(spec.rows, _length(spec)),)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps=_WHOLE)


class SlideRowsTactic(WindowTactic):
    name = "slide_rows"
    states = (SlideRowsWindowState, AliveRows)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        assert spec.rows is not None and spec.slide is not None
        return SlideRowsWindow(spec.rows, spec.slide)


class PartitionRowsTactic(WindowTactic):
    name = "partition_rows"
    states = (PartitionRowsWindowState, AliveRows)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        assert spec.rows is not None and spec.partition is not None
        return PartitionRowsWindow(spec.partition, spec.rows, _length(spec))


class SessionTactic(WindowTactic):
    name = "session"
    states = (SessionWindowState, AliveRows)

    def kernel(self, spec: WindowSpec, tick: int) -> Kernel:
        assert spec.session is not None and spec.partition is not None
        return SessionWindow(spec.partition, spec.session)


@dataclass(frozen=True)
class WindowChoice:
    tactic: WindowTactic
    needs: Partitioning
    ends_grow: bool
    open_ends: bool


def choose(spec: WindowSpec, schema: Schema, negative: bool = False) -> WindowChoice:
    """Under negative tuples rows that begin together must end together for their order to outlive an exchange."""
    if spec.session is not None:
        assert spec.partition is not None
        of_session = tuple(column(schema, i) for i in spec.partition)
        kept = "an open row id for each row of every session that is not over, and its key"
        needs = Partitioning("keys", of_session) if of_session else SINGLE
        return WindowChoice(SessionTactic(kept, "a hash look-up a row"), needs, False, True)
    if spec.rows is None:
        if spec.slide is None:
            return WindowChoice(RangeTactic("nothing"), ANY, True, False)
        kept = f"the rows of the last {format_duration(spec.slide)}, until they are sampled"
        in_order = not negative or spec.range is None or spec.range % spec.slide == 0
        return WindowChoice(SlideRangeTactic(kept), ANY, in_order, False)
    if spec.slide is not None:
        kept = f"fewer than {spec.slide} rows, and a number for each of {spec.rows + spec.slide} rows"
        return WindowChoice(SlideRowsTactic(kept), SINGLE, True, True)
    if spec.partition is None:
        more = ", and its time" if spec.range is not None else ""
        return WindowChoice(RowsTactic(f"an open row id for each of {spec.rows} rows{more}"), SINGLE, True, True)
    keys = Partitioning("keys", tuple(column(schema, i) for i in spec.partition))
    if spec.range is None:
        kept = f"four numbers for each of {spec.rows} rows of every partition, and the partitions"
    else:
        kept = f"eight numbers for each of {spec.rows} rows of every partition until they end, and the partitions alive"
    return WindowChoice(PartitionRowsTactic(kept), keys, False, True)


def _spec(operator: Operator) -> WindowSpec:
    assert isinstance(operator.node, Window)
    return operator.node.spec


def _length(spec: WindowSpec) -> int:
    return UNBOUNDED if spec.range is None else spec.range


def _endless(spec: WindowSpec) -> bool:
    return spec.unbounded
