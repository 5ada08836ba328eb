"""The experiment of paper 5, section 3: its streams, queries and rows.

| experiment | what changes |
| --- | --- |
| window | the rows in a window; keys are fixed, so that the matches of a row grow with the window |
| rate | the rate of the streams: that of second i is 1 / i^2 of the first, after 20 seconds at the first rate |
| grouped | the rows in a window, with GROUP BY a column that is not the join key |
| inputs | the number of streams, all joined on one key |
| matches | the keys, so that a row has more or less matches in a window of the same size |

At a steady rate rows of the streams come in turn, each at an instant of its own, at which a row of its stream expires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta

STREAMS: Final = ("a", "b", "c", "d", "e")
COLUMNS: Final = "ts TIMESTAMP, k BIGINT, g BIGINT, v BIGINT, WATERMARK FOR ts AS ts"
DECLARATIONS: Final = "".join(f"CREATE STREAM {name} ({COLUMNS});\n" for name in STREAMS)
SELECTED: Final = {
    "window": "COUNT(*) AS n, SUM(b.v) AS s",
    "rate": "COUNT(*) AS n",
    "grouped": "a.g, COUNT(*) AS n",
    "inputs": "COUNT(*) AS n",
    "matches": "COUNT(*) AS n, SUM(b.v) AS s",
}
GROUPS: Final = 10
WINDOW_SECONDS: Final = 20  # of the experiment with the falling rate
FALLING_SECONDS: Final = 5

_MILLISECOND: Final = 1_000
_SECOND: Final = 1_000_000


@dataclass(frozen=True)
class Cell:
    """`window` and `batch` are rows of one stream; a row has `window` / `keys` matches in each of the others."""

    experiment: str
    window: int
    keys: int
    batch: int
    inputs: int = 2

    @property
    def x(self) -> float:
        """What the experiment changes; with the falling rate that is the second."""
        return {"inputs": self.inputs, "matches": round(self.matches)}.get(self.experiment, self.window)

    def __str__(self) -> str:
        return f"{self.experiment}, {self.x:,g}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "x": self.x, "matches": self.matches}

    @property
    def streams(self) -> tuple[str, ...]:
        return STREAMS[: self.inputs]

    @property
    def matches(self) -> float:
        """Rows of one other stream that a row meets."""
        return self.window / self.keys

    @property
    def join_rows(self) -> float:
        """Rows of the join that are alive."""
        return self.keys * self.matches**self.inputs

    @property
    def text(self) -> str:
        millis = 1_000 * WINDOW_SECONDS if self.experiment == "rate" else self.window * self.inputs
        tables = ", ".join(f"{name} [RANGE {millis} MILLISECONDS]" for name in self.streams)
        same = " AND ".join(f"a.k = {name}.k" for name in self.streams[1:])
        grouping = " GROUP BY a.g" if self.experiment == "grouped" else ""
        return f"SELECT {SELECTED[self.experiment]} FROM {tables} WHERE {same}{grouping}"


@dataclass(frozen=True)
class Brought:
    """What a step brings: rows of each stream, and how many that is together."""

    batches: Mapping[str, StreamDelta]
    rows: int
    frontier: int


def steady(cell: Cell) -> Iterator[Brought]:
    """Batches at a steady rate, without end; the same rows whenever it is asked."""
    random = np.random.default_rng(5)
    first = 0
    while True:
        rows = np.arange(first, first + cell.batch)
        first += cell.batch
        frontier = first * cell.inputs * _MILLISECOND
        times = [(rows * cell.inputs + index) * _MILLISECOND for index in range(cell.inputs)]
        yield brought(cell, times, frontier, random)


def falling(cell: Cell) -> Iterator[Brought]:
    """One second after the other: those that fill the window, then those of the falling rate.

    In the paper the answer is requested at arrivals; here it changes whenever something expires. To have both together
    there are as many instants in a second as rows in the last one; what shares an instant expires at once.
    """
    random = np.random.default_rng(5)
    rate = cell.window // WINDOW_SECONDS
    instants = rate // FALLING_SECONDS**2
    for number, rows in enumerate([rate] * WINDOW_SECONDS + falling_rates(cell)):
        times = (np.arange(rows) * instants // rows) * (_SECOND // instants) + number * _SECOND
        yield brought(cell, [times] * cell.inputs, (number + 1) * _SECOND, random)


def falling_rates(cell: Cell) -> list[int]:
    """Rows of one stream in each second after the windows are full."""
    return [cell.window // WINDOW_SECONDS // i**2 for i in range(1, FALLING_SECONDS + 1)]


def brought(cell: Cell, times: list[Int64s], frontier: int, random: np.random.Generator) -> Brought:
    """Rows of every stream at these times, with keys that are drawn uniformly."""
    batches = {}
    for name, t in zip(cell.streams, times, strict=True):
        columns = [pa.Array.from_buffers(pa.timestamp("us"), len(t), [None, pa.py_buffer(t)])]
        columns += [pa.array(random.integers(0, high, len(t))) for high in (cell.keys, GROUPS, 1_000)]
        batches[name] = StreamDelta(pa.RecordBatch.from_arrays(columns, names=["ts", "k", "g", "v"]), t, frontier)
    return Brought(batches, sum(map(len, times)), frontier)
