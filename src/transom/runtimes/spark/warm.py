"""Loads the machine code of the kernels, by running small queries once.

Importing a kernel does not load its compiled code: Numba reads it from its cache (or compiles it) at the first call.
The daemon calls `warm_up` before it forks, so that a hundred workers find the code already there.
"""

from __future__ import annotations

import pyarrow as pa

from transom.core.schema import TIMESTAMP, Column, Schema
from transom.core.time import SECOND
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Aggregate, AggregateCall, Join, Relation, StreamScan, Window, WindowSpec
from transom.plan.catalogue import Catalogue, StreamDefinition, TimeColumn
from transom.plan.expression import Call, ColumnRef
from transom.planner.plan import plan

VALUES = {pa.int64(): [1, 2, 1], pa.string(): ["a", "b", "a"]}


def warm_up() -> None:
    """Windowed joins and grouped aggregates, over whole numbers and over texts."""
    for key in VALUES:
        _run(_join(key), key)
        _run(_aggregate(key), key)


def _columns(key: pa.DataType) -> Schema:
    return Schema((Column("t", TIMESTAMP), Column("k", key), Column("x", pa.float64())))


def _window(name: str, key: pa.DataType) -> Relation:
    return Window(StreamScan(name, _columns(key)), WindowSpec(range=SECOND))


def _join(key: pa.DataType) -> Relation:
    same = Call("=", (ColumnRef(1, key, "k"), ColumnRef(4, key, "k")), pa.bool_())
    return Join((_window("a", key), _window("b", key)), same)


def _aggregate(key: pa.DataType) -> Relation:
    x = ColumnRef(2, pa.float64(), "x")
    calls = (AggregateCall("count", None, pa.int64()), AggregateCall("sum", x, pa.float64()))
    group = (ColumnRef(1, key, "k"),)
    return Aggregate(_window("a", key), group, calls, ("k", "n", "x"), grouped=True)


def _run(query: Relation, key: pa.DataType) -> None:
    catalogue = Catalogue()
    for name in ("a", "b"):
        catalogue.relations[name] = StreamDefinition(name, _columns(key), TimeColumn("t", 0))
    pipeline = Pipeline(plan(query, catalogue), catalogue)
    for second in (1, 2, 3):
        times = pa.array([second * SECOND] * 3, pa.int64()).cast(TIMESTAMP)
        rows = [times, pa.array(VALUES[key], key), pa.array([1.0, 2.0, 3.0])]
        for name in pipeline.names:
            pipeline.push(name, pa.RecordBatch.from_arrays(rows, schema=_columns(key).arrow()))
        pipeline.advance()
    for name in pipeline.names:
        pipeline.end(name)
    pipeline.advance()
