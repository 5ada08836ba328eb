"""What one tactic of a join hands over to another: its rows alive, and the open row ids of what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.kernel import OPEN_END
from transom.kernels.lifetimes import LifetimeSet


class Rows(Protocol):
    """Where the values of rows are, by slot."""

    def gather(
        self, slots: Int64s, types: Sequence[pa.DataType], columns: Sequence[int] | None = None
    ) -> list[pa.Array]: ...


class KeptRows(Protocol):
    """An input of a join, as it keeps its rows: `te[slot]` is OPEN_END while the end of a row is open."""

    @property
    def rows(self) -> Rows: ...

    @property
    def lifetimes(self) -> LifetimeSet: ...

    @property
    def capacity(self) -> int: ...

    @property
    def te(self) -> Int64s: ...

    @property
    def alive(self) -> int: ...

    def used(self) -> Int64s: ...


def alive_rows(own: KeptRows, types: Sequence[pa.DataType]) -> Delta:
    """The rows alive of an input, those of a ring in the order in which they came; where they began is not said."""
    slots = own.used()
    values = pa.RecordBatch.from_arrays(own.rows.gather(slots, types), names=[str(i) for i in range(len(types))])
    te = own.te[slots]
    open_id = own.lifetimes.open_ids(own.capacity)[slots]
    return Delta(values, no_int64s(), np.where(te == OPEN_END, FOREVER, te), open_id, FOREVER)


def as_of(rows: Delta, at: int) -> Delta:
    """Rows alive as if all of them had come at the last instant before `at`, which is over."""
    return Delta(rows.values, np.full(len(rows.te), at - 1, dtype=np.int64), rows.te, rows.open_id, at)


def replace_ids(shown: Int64s, open_ids: Int64s, instead: Int64s) -> None:
    """Every open row id of `open_ids` by the one at the same place of `instead`; -1 stays."""
    if len(open_ids):
        to = np.arange(int(open_ids.max()) + 1)
        to[open_ids] = instead
        there = shown >= 0
        shown[there] = to[shown[there]]
