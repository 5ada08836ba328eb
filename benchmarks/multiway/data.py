"""Streams and queries for joins of many inputs.

A **round** brings one row of every stream, in an order that is drawn anew each time, so that each stream is as often
the last as any other. Rows have ten numeric columns, the first of them the join key:

| keys | a row finds in another window |
| --- | --- |
| counter | one row, that of its round |
| few | all rows of its key; the distance over all nine values leaves the one of its round |
| drawn | as many rows as a window has for each key, on average |

All numbers are whole or eighths, so that sums of them are exact in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.schema import TIMESTAMP

VALUES: Final = tuple(f"a{i}" for i in range(1, 10))
SECOND: Final = 1_000_000
ROUND: Final = 50_000
"""Microseconds between two rows of a stream in the paper: 20 rows a second."""
NEAR: Final = 2.0
"""Squared distance below which rows are of one round: there it is at most 9 * (3/8)^2."""


@dataclass(frozen=True)
class Cell:
    """`x` is what the experiment changes. `window` is rows of one stream, `round_us` the time between two of them.

    `timed`: rows have their own times and come in batches; otherwise they are stamped on arrival. `emit` is how the
    answer leaves.
    """

    part: int
    experiment: str
    x: float
    streams: int
    window: int
    round_us: int
    keys: OneOf["counter", "few", "drawn"] = "counter"
    values: int = 0  # of the key, unless it is a counter
    columns: int = 1  # of each stream that are selected, besides the key
    timed: bool = False
    emit: OneOf["lifetimes", "changes"] = "lifetimes"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"s{i}" for i in range(self.streams))

    @property
    def candidates(self) -> float:
        """Rows of another window that have the key of a row."""
        return self.window / self.values if self.values else 1.0

    @property
    def ticked(self) -> bool:
        """Whether rows are stamped at equal distances, also those that come together."""
        return self.part > 1

    def __str__(self) -> str:
        shown = {
            "streams": f"{self.streams} streams, {self.seconds:g} s",
            "window": f"{self.streams} streams, {self.seconds:g} s",
            "columns": f"{self.streams} streams, {self.columns + 1} columns of each",
            "changes": f"{self.streams} streams, emitted as changes",
            "paced": f"{self.streams} streams, {self.seconds:g} s, real time",
            "probes": f"{self.streams} streams, {self.candidates:,.0f} candidates",
            "rate": f"{self.streams} streams, {self.candidates:g} match{'es' if self.candidates > 1 else ''}",
        }
        return f"part {self.part}: {shown[self.experiment]}"

    @property
    def seconds(self) -> float:
        return self.window * self.round_us / SECOND

    def as_json(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "experiment": self.experiment,
            "label": str(self),
            "x": self.x,
            "streams": self.streams,
            "window_rows": self.window,
            "window_s": self.seconds,
            "candidates": self.candidates,
        }

    def declarations(self) -> str:
        """The tick and the streams."""
        columns = ", ".join(["k BIGINT", *(f"{name} DOUBLE" for name in VALUES)])
        rate = f"rate = {SECOND / self.round_us:.6g}"
        if self.timed:
            columns = f"ts TIMESTAMP, {columns}, WATERMARK FOR ts AS ts"
        else:
            rate += ", time = 'arrival'"
        tick = "SET tick = '1 MILLISECOND';\n" if self.ticked else ""
        return tick + "".join(
            f"CREATE STREAM {name} ({columns}) WITH (connector = 'memory', {rate});\n" for name in self.names
        )

    def query(self) -> str:
        """With two columns or more the key of each stream is selected too."""
        first, *others = self.names
        wanted = [f"{first}.k"]
        for name in self.names:
            wanted += [f"{name}.k AS {name}_k"] * (self.columns > 1 and name != first)
            wanted += [f"{name}.{value} AS {name}_{value}" for value in VALUES[1 : 1 + self.columns]]
            wanted += [f"{name}.a1 AS {name}_a1"] * (self.columns == len(VALUES))
        tables = ", ".join(f"{name} [RANGE {self.window * self.round_us // 1_000} MILLISECONDS]" for name in self.names)
        where = [f"{first}.k = {name}.k" for name in others]
        if self.keys == "few":
            pairs = [(one, other) for at, one in enumerate(self.names) for other in self.names[at + 1 :]]
            where += [f"{_squared_distance(one, other)} < {NEAR}" for one, other in pairs]
        return f"SELECT {', '.join(wanted)} FROM {tables} WHERE {' AND '.join(where)}"


@dataclass(frozen=True)
class Row:
    """A row of a stream, and the instant at which it comes."""

    stream: str
    batch: pa.RecordBatch
    at: int


Batch = Sequence[tuple[str, pa.RecordBatch]]
"""What comes together: some rows of each stream."""


class Feed:
    """The rows of a cell, the same whenever it is begun."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self._random = np.random.default_rng(3)
        self._round = 0

    def rows(self, rounds: int) -> list[Row]:
        """One by one, in the order in which they come."""
        cell = self.cell
        first, drawn = self._round, self._drawn(rounds)
        order = self._random.permuted(np.tile(np.arange(cell.streams), (rounds, 1)), axis=1)
        found = []
        for at in range(rounds):
            for index, stream in enumerate(order[at].tolist()):
                values = [column[at : at + 1, stream] for column in drawn]
                instant = (first + at) * cell.round_us + index * cell.round_us // cell.streams
                found.append(Row(cell.names[stream], self._batch(values, None), instant))
        return found

    def batch(self, rounds: int) -> Batch:
        """So many rounds together."""
        first, drawn = self._round, self._drawn(rounds)
        found = []
        for stream, name in enumerate(self.cell.names):
            times = (first + np.arange(rounds)) * self.cell.round_us + stream * self.cell.round_us // self.cell.streams
            found.append((name, self._batch([np.ascontiguousarray(column[:, stream]) for column in drawn], times)))
        return found

    def _drawn(self, rounds: int) -> list[npt.NDArray[Any]]:
        """The columns: an array each, by round and stream."""
        cell, shape = self.cell, (rounds, self.cell.streams)
        number = np.repeat(np.arange(self._round, self._round + rounds)[:, None], cell.streams, axis=1)
        self._round += rounds
        keys = {"counter": lambda: number, "few": lambda: number % cell.values}
        keys["drawn"] = lambda: self._random.integers(0, cell.values, shape)
        columns = [self._random.integers(0, 1_000, shape).astype(np.float64) for _ in VALUES]
        if cell.keys == "few":  # rows of one round lie near each other
            middle = [number.astype(np.float64), *(column[:, :1] for column in columns[1:])]
            columns = [at + self._random.integers(0, 4, shape) / 8 for at in middle]
        return [keys[cell.keys](), *columns]

    def _batch(self, columns: Sequence[npt.NDArray[Any]], times: Int64s | None) -> pa.RecordBatch:
        arrays = [pa.array(column) for column in columns]
        names = ["k", *VALUES]
        if self.cell.timed:
            assert times is not None
            return pa.RecordBatch.from_arrays([pa.array(times).cast(TIMESTAMP), *arrays], ["ts", *names])
        stamps = pa.nulls(len(columns[0]), TIMESTAMP)  # filled in on arrival
        return pa.RecordBatch.from_arrays([*arrays, stamps], [*names, "arrival_time"])


def _squared_distance(one: str, other: str) -> str:
    return " + ".join(f"({one}.{a} - {other}.{a}) * ({one}.{a} - {other}.{a})" for a in VALUES)
