"""Reading a source in splits, as tasks on several machines would, beside reading it with `read`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Limits, Plan, Source, Split
from transom.connectors.source import Position, SourceBatch, rejected_batch


@dataclass(frozen=True)
class Read:
    rows: list[dict[str, Any]]
    rejected: list[dict[str, str]]
    position: Position
    ended: bool
    over: bool


def of_batch(batch: SourceBatch) -> Read:
    return Read(batch.rows.to_pylist(), batch.rejected.to_pylist(), batch.position, batch.ended, batch.over)


def of_plan(plan: Plan, reader: Source, splits: Iterable[Split] | None = None) -> Read:
    """The splits of a plan, or the given ones instead, read one after the other by some other source."""
    rows: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    for split in plan.splits if splits is None else splits:
        reported = Split.unpacked(json.loads(json.dumps(split.packed())))
        assert reported == split
        count = len(rows) + len(rejected)
        for chunk in reader.read_split(reported):
            assert isinstance(chunk.rows, pa.RecordBatch)
            rows += chunk.rows.to_pylist()
            rejected += rejected_batch(chunk.rejected).to_pylist()
        assert len(rows) + len(rejected) - count == split.rows > 0
    return Read(rows, rejected, json.loads(json.dumps(plan.position)), plan.ended, plan.over)


def agree(make: Callable[[], Source], max_rows: int, position: Position, *, growing: bool = False) -> Read:
    """Reads from a position to the end in both ways, each batch compared with its twin; all of it in one."""
    reading, planning, executing = make(), make(), make()
    rows: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    while True:
        expected = of_batch(reading.read(position, max_rows, growing=growing))
        planned = of_plan(planning.plan(position, Limits(max_rows), growing=growing), executing)
        assert planned == expected
        rows += planned.rows
        rejected += planned.rejected
        position = planned.position
        if planned.ended:
            return Read(rows, rejected, position, True, planned.over)
