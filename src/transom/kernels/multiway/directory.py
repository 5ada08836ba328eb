"""Where the arrays of all inputs of a join are, so that one compiled call can go over any of them.

It is no part of what a join remembers: it is made anew for a state that was read back. An input is looked at again
after rows were written to it, which is when arrays are replaced, or freed. The arrays are kept here as well, so an
address never leads to memory that is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from transom.kernels.chain_table import OLDEST, table_row
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway.input_rows import InputRows


class Directory:
    """`tables[first[i] + t]` describes table t of input i; `addresses` of the columns of all inputs."""

    def __init__(self, inputs: Sequence[InputRows]) -> None:
        self._inputs = inputs
        self.first = [0, *np.cumsum([len(own.tables) for own in inputs], dtype=np.int64).tolist()]
        self.tables = np.zeros((self.first[-1], 9), dtype=np.int64)
        self.addresses = ColumnAddresses([own.rows for own in inputs], [own.mask for own in inputs])
        self._arrays: list[list[Any]] = [[] for _ in inputs]
        for i in range(len(inputs)):
            self.refresh(i)

    def freed(self, i: int) -> None:
        """Rows of an input were freed."""
        self.tables[self.first[i] : self.first[i + 1], OLDEST] = self._inputs[i].oldest

    def refresh(self, i: int) -> None:
        """Rows were written to an input: its arrays may have been replaced."""
        own = self._inputs[i]
        self.addresses.refresh(i, own.mask)
        arrays: list[Any] = []
        for table in own.tables:
            arrays += (table.head, table.entries)
            for key in table.keys.columns:
                arrays += (key.start, key.length, key.arena)  # type: ignore[union-attr]
        before = self._arrays[i]
        if len(arrays) != len(before) or not all(map(is_, arrays, before)):
            self._arrays[i] = arrays
            self._write(i, own)

    def _write(self, i: int, own: InputRows) -> None:
        for at, table in enumerate(own.tables, self.first[i]):
            self.tables[at] = table_row(table.head, table.entries, own.mask, own.oldest, table.keys)
