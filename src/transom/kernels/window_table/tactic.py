"""Tactics of TUMBLE, HOP and SESSION as tables, and of aggregates over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from transom.core.schema import held_type
from transom.core.time import format_duration
from transom.kernels import description
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.aggregate.tactic import RunningTactic
from transom.kernels.kernel import Kernel
from transom.kernels.negative.departures import DeparturesKernel
from transom.kernels.operator import ANY, SINGLE, Alive, Key, Operator, Partitioning, Site, Tactic, column
from transom.kernels.select.select import ProjectKernel
from transom.kernels.to_stream.direct_stream import AliveRows
from transom.kernels.window_table.aggregate import WindowAggregateKernel, WindowAggregateState
from transom.kernels.window_table.node import WindowAggregate
from transom.kernels.window_table.session_windows import SessionWindows, SessionWindowsState
from transom.kernels.window_table.time_windows import TimeGrid, TimeWindows, TimeWindowsState
from transom.plan.algebra import Aggregate, Node, StreamScan, WindowTable, WindowTableSpec
from transom.plan.expression import ColumnRef, Expression, columns_of
from transom.plan.same_key import plain


class WindowTableTactic(Tactic):
    """Rows that enter when their window is over, and stay."""

    nodes: ClassVar[tuple[type[Node], ...]] = (WindowTable,)
    title = "window table "
    cheap = True

    def describe(self, operator: Operator) -> str:
        spec = _node(operator).spec
        text = str(spec)
        for i in sorted(spec.partition or (), reverse=True):
            text = text.replace(f"#{i}", operator.schema[i].name)
        return text

    def lasts(self, operator: Operator, below: bool) -> bool:
        return True

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return _forever(operator)

    def grows_by(self, operator: Operator) -> str | None:
        return None

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        if any(index >= len(operator.inputs[0].schema) for index in columns_of(key)):
            return None
        return (key,) if operator.needs[0].kind == "any" else super().keys_below(operator, key)


class TimeWindowsTactic(WindowTableTactic):
    name = "time"
    states = (TimeWindowsState, AliveRows)

    @classmethod
    def chosen(cls, spec: WindowTableSpec) -> TimeWindowsTactic:
        assert spec.slide is not None
        kept = f"the rows of the last {format_duration(spec.size)}, until their windows are over"
        return cls(kept, f"O(1) a row and window, {_windows(spec)} a row")

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        kernel = TimeWindows(_grid(_node(operator).spec, site.tick))
        return (kernel, DeparturesKernel(operator.schema.held())) if operator.negative else (kernel,)


class SessionWindowsTactic(WindowTableTactic):
    name = "session"
    states = (SessionWindowsState, AliveRows)

    @classmethod
    def chosen(cls) -> SessionWindowsTactic:
        return cls("the rows of the sessions that are not over", "a hash look-up a row")

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        spec = _node(operator).spec
        kernel = SessionWindows(spec.partition or (), spec.size, operator.inputs[0].schema.held())
        return (kernel, DeparturesKernel(operator.schema.held())) if operator.negative else (kernel,)


def table_operator(node: WindowTable, below: Operator) -> Operator:
    """Sessions of a key have to meet; of other windows a row knows by itself which they are."""
    spec = node.spec
    if spec.slide is not None:
        return Operator(node, TimeWindowsTactic.chosen(spec), (below,), None, (ANY,), ends_grow=True)
    keys = tuple(column(below.schema, i) for i in spec.partition or ())
    needs = Partitioning("keys", keys) if keys else SINGLE
    return Operator(node, SessionWindowsTactic.chosen(), (below,), None, (needs,), ends_grow=True)


class WindowAggregateTactic(Tactic):
    """Totals are made as rows come, so that no row has to be kept until its window is over."""

    nodes = (WindowAggregate,)
    title = "aggregate "
    name = "windowed"
    states = (WindowAggregateState,)
    cheap = True

    @staticmethod
    def runs(node: Aggregate) -> bool:
        """Over a window table, with a bound of the window among the keys, and calls that need no row again."""
        table = node.input
        if not isinstance(table, WindowTable) or table.spec.slide is None:
            return False
        width = len(table.input.schema)
        bounded = any(isinstance(key, ColumnRef) and key.index >= width for key in node.keys)
        counted_once = any(call.distinct and call.function not in ("min", "max") for call in node.calls)
        plain_calls = not any(call.order or call.condition or call.fraction is not None for call in node.calls)
        return bounded and plain_calls and not counted_once and RunningTactic.runs(node, True)

    @classmethod
    def chosen(cls, spec: WindowTableSpec) -> WindowAggregateTactic:
        return cls("totals per group of each window that is not over", f"O(1) a row and window, {_windows(spec)} a row")

    def describe(self, operator: Operator) -> str:
        node = _aggregate(operator)
        return f"{description.calls_by(node.calls, node.names, [str(key) for key in node.keys])} of {node.spec}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _aggregate(operator)
        inner: dict[Expression, int] = {}
        keys = tuple(inner.setdefault(key, len(inner)) for key in node.keys)
        calls = tuple(
            AggregateSpec(
                call.function,
                None if call.argument is None else inner.setdefault(call.argument, len(inner)),
                call.distinct,
                other=None if call.other is None else inner.setdefault(call.other, len(inner)),
            )
            for call in node.calls
        )
        types = tuple(held_type(expression.type) for expression in inner)
        project = ProjectKernel(tuple(inner), pa.schema([(str(i), type_) for i, type_ in enumerate(types)]))
        aggregate = AggregateKernel(keys, calls, operator.schema.held(), types, running=True)
        return (WindowAggregateKernel(_grid(node.spec, site.tick), project, aggregate, operator.negative),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        keys, column = row_keys(operator), plain(key)
        if not isinstance(column, ColumnRef) or column.index >= len(_aggregate(operator).keys):
            return None
        below = _aggregate(operator).keys[column.index]
        return (below,) if below in keys else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return tuple(range(len(_aggregate(operator).keys)))

    def lasts(self, operator: Operator, below: bool) -> bool:
        return True

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return _forever(operator)

    def grows_by(self, operator: Operator) -> str | None:
        return None


def aggregate_operator(node: Aggregate, below: Operator) -> Operator:
    """The aggregate and the window table under it as one, over the stream."""
    table = node.input
    assert isinstance(table, WindowTable)
    made = WindowAggregate(table.input, table.spec, node.keys, node.calls, node.names)
    keys = _keys_of_rows(made)
    needs = Partitioning("keys", keys) if keys else SINGLE
    tactic = WindowAggregateTactic.chosen(table.spec)
    return Operator(made, tactic, (below,), None, (needs,), ends_grow=True)


def row_keys(operator: Operator) -> tuple[Expression, ...]:
    return _keys_of_rows(_aggregate(operator))


def _keys_of_rows(node: WindowAggregate) -> tuple[Expression, ...]:
    """The keys that a row has before its windows are known: by these rows are spread."""
    width = len(node.input.schema)
    return tuple(key for key in node.keys if columns_of(key) and max(columns_of(key)) < width)


def _forever(operator: Operator) -> Alive:
    names = (o.node.name for o in operator.walk() if isinstance(o.node, StreamScan))
    return Alive(tuple(dict.fromkeys(names)))


def _grid(spec: WindowTableSpec, tick: int) -> TimeGrid:
    assert spec.slide is not None
    return TimeGrid(spec.size, spec.slide, spec.offset, tick)


def _windows(spec: WindowTableSpec) -> str:
    assert spec.slide is not None
    most = -(-spec.size // spec.slide)
    return "one" if most == 1 else f"up to {most}"


def _node(operator: Operator) -> WindowTable:
    assert isinstance(operator.node, WindowTable)
    return operator.node


def _aggregate(operator: Operator) -> WindowAggregate:
    assert isinstance(operator.node, WindowAggregate)
    return operator.node
