"""Kernels from the operators of a physical plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pyarrow as pa

from transom.core.schema import BOOLEAN
from transom.core.time import UNBOUNDED
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.join.join import JoinKernel
from transom.kernels.joinagg.credit import CreditKernel
from transom.kernels.joinagg.factorised import FactorisedKernel
from transom.kernels.joinagg.incremental import IncrementalKernel
from transom.kernels.joinagg.merge import MergeAggregateKernel, MergeCall
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall
from transom.kernels.kernel import Kernel
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.mjoin import MJoinKernel
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.parallel_mjoin import ParallelMJoinKernel
from transom.kernels.multiway.parallel_tree import ParallelTreeKernel
from transom.kernels.negative.aggregate import NegativeAggregateKernel
from transom.kernels.negative.departures import DeparturesKernel
from transom.kernels.negative.join import NegativeJoinKernel
from transom.kernels.negative.set_operation import NegativeSetOperationKernel
from transom.kernels.negative.window import NegativeWindow
from transom.kernels.operator import Operator, told_directly
from transom.kernels.scan.table import ChangesTable, StaticTable
from transom.kernels.select.select import FilterKernel, NegativeUnionKernel, ProjectKernel, UnionKernel
from transom.kernels.set_operation.set_operation import SetOperationKernel
from transom.kernels.shared_join.counted_window import CountedWindowKernel
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.kernels.shared_join.narrow import NarrowKernel
from transom.kernels.shared_join.narrow_rows import NarrowRowsKernel, SideWindow
from transom.kernels.shared_join.node import NUMBERS, CountedWindow, Narrow, SharedJoin
from transom.kernels.slide_join.marks import SlideMarksKernel
from transom.kernels.slide_join.node import SlideJoin, SlideMarks
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.slide_join.spec import Side, SlideSpec
from transom.kernels.to_stream.direct_stream import DirectStreamKernel
from transom.kernels.to_stream.to_stream import ToStreamKernel
from transom.kernels.window.partition_rows import PartitionRowsWindow
from transom.kernels.window.range import RangeWindow
from transom.kernels.window.rows import RowsWindow
from transom.kernels.window.slide_range import SlideRangeWindow
from transom.kernels.window.slide_rows import SlideRowsWindow
from transom.plan.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    SetOperation,
    StreamFilter,
    StreamProject,
    ToStream,
    Window,
    WindowSpec,
)
from transom.plan.catalogue import TableDefinition
from transom.plan.expression import Call, ColumnRef, Expression, columns_of, conjunction, conjuncts, remap


def negative_window_kernels(spec: WindowSpec, tick: int, schema: pa.Schema) -> tuple[Kernel, ...]:
    """Under negative tuples; where rows end in no simple order, lifetimes are found first and told twice then."""
    if spec.slide is not None or spec.partition is not None:
        return window_kernel(spec, tick), DeparturesKernel(schema)
    length = UNBOUNDED if spec.range is None else spec.range
    return (NegativeWindow(None, tick) if spec.now else NegativeWindow(spec.rows, length),)


def window_kernel(spec: WindowSpec, tick: int) -> Kernel:
    length = UNBOUNDED if spec.range is None else spec.range
    if spec.now:
        return RangeWindow(tick)
    if spec.rows is None:
        return RangeWindow(length) if spec.slide is None else SlideRangeWindow(length, spec.slide)
    if spec.slide is not None:
        return SlideRowsWindow(spec.rows, spec.slide)
    if spec.partition is not None:
        return PartitionRowsWindow(spec.partition, spec.rows, length)
    return RowsWindow(spec.rows, length)


def table_kernel(definition: TableDefinition) -> StaticTable | ChangesTable:
    if definition.time is None:
        return StaticTable()
    names = [column.name.lower() for column in definition.relation_columns]
    if definition.primary_key:
        identity = tuple(names.index(name.lower()) for name in definition.primary_key)
    else:
        identity = tuple(i for i, name in enumerate(names) if name != definition.time.column.lower())
    has_change_column = definition.change_column is not None
    return ChangesTable(definition.relation_columns.arrow(), identity, bool(definition.primary_key), has_change_column)


def operator_kernel(operator: Operator, tick: int, places: int = 1, final: bool = False) -> tuple[Kernel, ...]:
    """The kernels of an operator that is not a scan, run one after the other; in one of so many places.

    `final`: only what it gives at the end of a step is seen (see `planner/final.py`).
    """
    node = operator.node
    schema = operator.schema.arrow()
    negative = operator.negative
    if isinstance(node, Window):
        return negative_window_kernels(node.spec, tick, schema) if negative else (window_kernel(node.spec, tick),)
    if isinstance(node, Filter | StreamFilter):
        return (FilterKernel(node.predicate),)
    if isinstance(node, Project | StreamProject):
        return (ProjectKernel(node.expressions, schema),)
    if isinstance(node, Join):
        assert operator.keys is not None
        keys = operator.keys
        width = len(operator.inputs[0].schema)
        join = NegativeJoinKernel if negative else JoinKernel
        if operator.tactic.name == "nested_loop":
            return (join("nested_loop", (), (), _whole_predicate(operator), schema, width),)
        return (join(operator.tactic.name, keys.left, keys.right, keys.residual, schema, width),)
    if isinstance(node, MultiwayJoin):
        types = tuple(tuple(relation.schema.arrow().types) for relation in node.relations)
        growing = tuple(child.ends_grow for child in operator.inputs)
        graph = JoinGraph(types, node.keys, node.residual, node.last, growing)
        return (_MULTIWAY_JOINS[operator.tactic.name](graph, schema),)
    if isinstance(node, CountedWindow | SharedJoin | Narrow):
        return _shared(operator, node, tick)
    if isinstance(node, SlideJoin):
        return (slide_join_kernel(node, operator.tactic.name, places),)
    if isinstance(node, SlideMarks):
        return (SlideMarksKernel(),)
    set_operation = NegativeSetOperationKernel if negative else SetOperationKernel
    if isinstance(node, Distinct):
        return (set_operation("distinct", False, schema),)
    if isinstance(node, SetOperation):
        if node.kind == "union":
            return (NegativeUnionKernel(schema) if negative else UnionKernel(schema),)
        return (set_operation(node.kind, node.all, schema),)
    if isinstance(node, ToStream):
        if told_directly(node, operator.inputs):
            return (DirectStreamKernel(node.change.value, schema),)
        return (ToStreamKernel(node.change.value, schema, _slides(operator)),)
    if isinstance(node, JoinAggregate):
        return (_JOIN_AGGREGATES[operator.tactic.name](_join_aggregate(node, schema)),)
    if isinstance(node, MergeAggregate):
        calls = tuple(
            MergeCall(call.function, None if call.argument is None else call.argument.type) for call in node.calls
        )
        return (MergeAggregateKernel(tuple(schema.types[: node.key_count]), calls, schema),)
    assert isinstance(node, Aggregate)
    if negative:
        return _aggregate(node, schema, NegativeAggregateKernel)
    running = operator.tactic.name == "running"
    return _aggregate(node, schema, partial(AggregateKernel, running=running, final=final))


def _shared(operator: Operator, node: CountedWindow | SharedJoin | Narrow, tick: int) -> tuple[Kernel, ...]:
    schema = operator.schema.arrow()
    if isinstance(node, CountedWindow):
        return (CountedWindowKernel(node.length, node.rows, schema),)
    if isinstance(node, SharedJoin):
        keys, width = operator.keys, len(operator.inputs[0].schema)
        assert keys is not None
        pair = schema.remove(len(schema) - 1)
        if operator.tactic.name == "nested_loop":
            return (SharedJoinKernel("nested_loop", (), (), _whole_predicate(operator), pair, width),)
        return (SharedJoinKernel(operator.tactic.name, keys.left, keys.right, keys.residual, pair, width),)
    trunk = operator.inputs[0]
    assert isinstance(trunk.node, SharedJoin)
    places = trunk.node.places
    columns = tuple(places.index(place) for place in node.read)
    age = len(trunk.schema) - 1
    lengths = [tick if spec.now else UNBOUNDED if spec.range is None else spec.range for spec in node.windows]
    if not node.counts:
        return (NarrowKernel(columns, age, (lengths[0], lengths[1]), node.begin, schema),)
    left, right = (
        SideWindow(spec.rows, length, None if spec.rows is None else places.index(NUMBERS[side]))
        for side, (spec, length) in enumerate(zip(node.windows, lengths, strict=True))
    )
    return (NarrowRowsKernel(columns, age, (left, right), node.begin, schema),)


def slide_join_kernel(node: SlideJoin, tactic: str, places: int) -> SlideJoinKernel:
    sides = tuple(Side(s.length, s.slide, s.predicate, s.expressions, s.keys, s.same) for s in node.sources)
    spec = SlideSpec(sides, node.residual, node.expressions, node.names)
    return SlideJoinKernel(spec, tactic, None if node.memory is None else node.memory // places, node.marked)


def _aggregate(
    node: Aggregate, schema: pa.Schema, kernel: Callable[..., AggregateKernel | NegativeAggregateKernel]
) -> tuple[Kernel, ...]:
    """A projection to the keys and arguments where they are not plain columns, then the aggregate."""
    inner: dict[Expression, int] = {}

    def place(expression: Expression) -> int:
        return inner.setdefault(expression, len(inner))

    keys = tuple(place(key) for key in node.keys)
    calls = tuple(
        AggregateSpec(call.function, None if call.argument is None else place(call.argument), call.distinct)
        for call in node.calls
    )
    if not inner:
        place(ColumnRef(0, node.input.schema[0].type, "any"))
    types = tuple(expression.type for expression in inner)
    project = ProjectKernel(tuple(inner), pa.schema([(str(i), type_) for i, type_ in enumerate(types)]))
    return project, kernel(keys, calls, schema, types)


_MULTIWAY_JOINS: Final[dict[str, Callable[[JoinGraph, pa.Schema], Kernel]]] = {
    "mjoin": MJoinKernel,
    "parallel_mjoin": ParallelMJoinKernel,
    "parallel_tree": ParallelTreeKernel,
}

_JOIN_AGGREGATES: Final[dict[str, Callable[[JoinAggregateSpec], Kernel]]] = {
    "factorised": FactorisedKernel,
    "ic": IncrementalKernel,
    "tc": CreditKernel,
}


def _join_aggregate(node: JoinAggregate, schema: pa.Schema) -> JoinAggregateSpec:
    """Columns of all relations side by side become columns of one input."""
    owners = [(i, at) for i, relation in enumerate(node.relations) for at in range(len(relation.schema))]

    def place(expression: Expression) -> tuple[int, int]:
        assert isinstance(expression, ColumnRef)
        return owners[expression.index]

    calls = tuple(
        JoinCall(call.function, *((None, None) if call.argument is None else place(call.argument)))
        for call in node.calls
    )
    types = tuple(tuple(relation.schema.types) for relation in node.relations)
    group = tuple(place(key) for key in node.keys)
    return JoinAggregateSpec(types, node.join_keys, node.residual, group, calls, schema, node.partial)


def _whole_predicate(operator: Operator) -> Expression | None:
    assert operator.keys is not None
    width = len(operator.inputs[0].schema)
    parts: list[Expression] = []
    for left, right in zip(operator.keys.left, operator.keys.right, strict=True):
        moved = remap(right, {column: column + width for column in columns_of(right)})
        parts.append(Call("=", (left, moved), BOOLEAN))
    return conjunction((*parts, *conjuncts(operator.keys.residual)))


def slide_windows_below(operator: Operator) -> tuple[Operator, ...]:
    """The RANGE .. SLIDE windows that feed a stream operator, if nothing else can change its input."""
    found: list[Operator] = []
    pending = list(operator.inputs)
    while pending:
        below = pending.pop()
        if isinstance(below.node, Window):
            spec = below.node.spec
            if spec.range is None or spec.slide is None or spec.rows is not None:
                return ()
            found.append(below)
        elif below.tactic.name in ("changes_table", "upsert_table"):
            return ()
        else:
            pending.extend(below.inputs)
    return tuple(found)


def _slides(operator: Operator) -> tuple[int, ...]:
    windows = [window.node for window in slide_windows_below(operator)]
    return tuple(sorted({node.spec.slide for node in windows if isinstance(node, Window) and node.spec.slide}))
