"""The experiment of paper 1, section 5: its schemas, queries and rows, one a millisecond in each stream.

| query | what it is |
| --- | --- |
| selection | `cb > 3`; cb is drawn uniformly from 0 .. 9, so 60 of 100 rows pass |
| projection | two of the columns |
| union | UNION ALL of two streams |
| join | an equi-join; as in the paper both streams bring the same new key at the same instant |
| join_spread | the same; each row of the second stream has the key of some row in the window of the first |

Every row of a join's second stream meets exactly one row: the newest, or one anywhere in the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta

DECLARATIONS: Final = """
CREATE STREAM stru (ts TIMESTAMP, ca VARCHAR, cb INTEGER, cc VARCHAR, WATERMARK FOR ts AS ts);
CREATE STREAM strb0 (ts TIMESTAMP, ca INTEGER, cb VARCHAR, cc INTEGER, WATERMARK FOR ts AS ts);
CREATE STREAM strb1 (ts TIMESTAMP, ca INTEGER, cb VARCHAR, cc INTEGER, WATERMARK FOR ts AS ts);
"""
_JOIN: Final = "SELECT * FROM strb0 [{window}], strb1 [{window}] WHERE strb0.ca = strb1.ca"
QUERIES: Final = {
    "selection": "SELECT * FROM stru [{window}] WHERE cb > 3",
    "projection": "SELECT ca, cb FROM stru [{window}]",
    "union": "SELECT * FROM strb0 [{window}] UNION ALL SELECT * FROM strb1 [{window}]",
    "join": _JOIN,
    "join_spread": _JOIN,
}
STATELESS: Final = ("selection", "projection", "union")
JOINS: Final = ("join", "join_spread")
KINDS: Final = ("rows", "time")

_POOL: Final = 8  # different batches of texts and numbers; times and keys are fresh in every batch
_MILLISECOND: Final = 1_000


@dataclass(frozen=True)
class Cell:
    """`rows` is the population of all windows together, half of it on each side where there are two."""

    query: str
    kind: str
    rows: int
    batch: int

    @property
    def sides(self) -> int:
        return 1 if self.query in ("selection", "projection") else 2

    @property
    def side_rows(self) -> int:
        return self.rows // self.sides

    @property
    def text(self) -> str:
        window = f"ROWS {self.side_rows}" if self.kind == "rows" else f"RANGE {self.side_rows} MILLISECONDS"
        return QUERIES[self.query].format(window=window)

    def __str__(self) -> str:
        return f"{self.query}, {self.kind} windows of {self.rows:,} rows, batches of {self.batch:,}"


def deltas(cell: Cell) -> Iterator[dict[str, StreamDelta]]:
    """What every step brings, without end; the same rows whenever it is asked."""
    random = np.random.default_rng(7)
    pools = _unary_pool(cell.batch) if cell.sides == 1 else _binary_pool(cell.batch)
    number = 0
    while True:
        first = number * cell.batch
        rows = np.arange(first, first + cell.batch)
        t = rows * _MILLISECOND
        frontier = int(t[-1]) + _MILLISECOND
        brought = {}
        for name, pool in pools.items():
            columns = [_instants(t), *pool[number % len(pool)]]
            if cell.sides == 2:
                columns[1] = pa.array(_keys(cell, name, rows, random).astype(np.int32))
            brought[name] = StreamDelta(
                pa.RecordBatch.from_arrays(columns, names=["ts", "ca", "cb", "cc"]), t, frontier
            )
        yield brought
        number += 1


def _keys(cell: Cell, name: str, rows: Int64s, random: np.random.Generator) -> Int64s:
    if cell.query == "join_spread" and name == "strb1":
        return rows - random.integers(0, cell.side_rows, len(rows))
    return rows


def _instants(t: Int64s) -> pa.Array:
    return pa.Array.from_buffers(pa.timestamp("us"), len(t), [None, pa.py_buffer(t)])


@cache
def _unary_pool(batch: int) -> dict[str, list[list[pa.Array]]]:
    random = np.random.default_rng(8)
    texts = pa.array([f"text{i:04d}" for i in range(1_000)])
    pool = []
    for _ in range(_POOL):
        ca, cc = (texts.take(pa.array(random.integers(0, len(texts), batch))) for _ in range(2))
        pool.append([ca, pa.array(random.integers(0, 10, batch).astype(np.int32)), cc])
    return {"stru": pool}


@cache
def _binary_pool(batch: int) -> dict[str, list[list[pa.Array]]]:
    """The key, in front, is put there later."""
    return {
        f"strb{i}": [[None, pa.array([f"s{i}"] * batch), pa.array(np.full(batch, i, dtype=np.int32))]] for i in (0, 1)
    }
