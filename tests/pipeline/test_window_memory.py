"""What a row of a window costs in memory, as docs/lifetimes.md states it: a small constant, whatever the row holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import StreamDelta
from transom.cql.statements import parse_statements
from transom.kernels.kernel import Step
from transom.kernels.operator import scanned
from transom.pipeline.memory import state_bytes
from transom.pipeline.part import Part
from transom.plan.algebra import StreamScan
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan

DECLARATION = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, note VARCHAR, WATERMARK FOR ts AS ts);"
BATCH = 1_000


def kept(window: str, rows: int) -> int:
    """Bytes of all arrays behind `SELECT k FROM s [window]` after so many rows, and as many again."""
    catalogue = Catalogue()
    statement = parse_statements(f"{DECLARATION} SELECT k FROM s [{window}]", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    operators = list(plan(statement.query, catalogue).walk())
    (scan,) = (o for o in operators if isinstance(o.node, StreamScan))
    part = Part(operators, {(id(scan), 0): scanned(scan)}, catalogue, 1)
    state = part.start()
    notes = pa.array(["a text of some forty characters, or a bit"] * BATCH)
    for first in range(0, 2 * rows, BATCH):
        t = np.arange(first, first + BATCH)
        values = pa.record_batch([pa.array(t).cast(pa.timestamp("us")), pa.array(t % 7), notes], ["ts", "k", "note"])
        delta = StreamDelta(values, t, first + BATCH)
        part.step(state, {"s": delta}, Step(first, first + BATCH, 0, state.open_ids), first, {})
        state.open_ids.finish_step()
    return state_bytes(state)


@pytest.mark.parametrize(
    ("window", "constant"),
    [
        ("ROWS {n}", 8),
        ("ROWS {n} RANGE 1 DAY", 16),
        ("ROWS {n} SLIDE 1000", 32),
        ("PARTITION BY k ROWS {n}", 56),
        ("RANGE {n} MICROSECONDS", 0),
    ],
)
def test_a_window_keeps_a_small_constant_a_row(window: str, constant: int) -> None:
    """Arrays keep room for more: at most twice what is in use, and a batch."""
    for rows in (20_000, 200_000):
        per_partition = rows // 7 if "PARTITION" in window else rows
        assert kept(window.format(n=per_partition), rows) <= 2 * constant * (rows + BATCH) + 20_000, rows
