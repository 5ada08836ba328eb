"""The rows of all inputs that are alive, in one space of slots: their arguments as cells, and their group part.

A row of input i has a cell for each of `spec.arguments[i]`, in the places 0, 1, .. (`spec.table` says which a call
reads), and the number of its values in the columns to group by among those of its input. NULL is `valid` 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels.aggregate import cells
from transom.kernels.columns import Bytes, is_text, validity
from transom.kernels.joinagg.spec import JoinAggregateSpec
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys, normalised
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import numbered
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.state.checks import need, within
from transom.state.slots import SlotPool, grown


@dataclass
class Parts:
    """The distinct values of one input's columns to group by, numbered; each is held by so many rows."""

    values: RowStore
    keys: KeyIndex = field(default_factory=KeyIndex)
    held: Int64s = field(default_factory=no_int64s)

    def check(self) -> None:
        within(self.keys.slots.used(), min(len(self.held), self.values.capacity))

    def check_held(self, numbers: Int64s) -> None:
        """Each of the numbers is held by one row."""
        numbered(numbers, self.keys.slots)
        need(np.array_equal(np.bincount(numbers, minlength=len(self.held)), self.held))

    def number(self, columns: list[pa.Array], rows: int) -> Int64s:
        """The number of each row's values; the row holds it."""
        numbers, brought = self.keys.number(encode_keys(columns, rows))
        if len(brought):
            high = int(numbers.max()) + 1
            if high > len(self.held):
                self.held = grown(self.held, high)
                self.values.reserve(len(self.held))
            self.values.write(numbers[brought], normalised([column.take(pa.array(brought)) for column in columns]))
        np.add.at(self.held, numbers, 1)
        return numbers

    def release(self, numbers: Int64s) -> None:
        """Rows with these numbers are gone, one for each."""
        np.subtract.at(self.held, numbers, 1)
        unique = np.unique(numbers)
        gone = unique[self.held[unique] == 0]
        self.keys.forget(gone)
        self.values.free(gone)


class CellArrays(NamedTuple):
    """The arguments of rows, by argument and slot, and the texts among them."""

    hi: Int64s
    lo: cells.Words
    valid: Bytes
    start: Int64s
    length: Int64s
    arena: Bytes
    text_width: int


@dataclass
class GroupedRows:
    """`part` is 0 for rows of an input that has no columns to group by; `parts` are those of `spec.group_inputs`."""

    cell_hi: Int64s
    cell_lo: cells.Words
    valid: Any
    texts: RowStore
    parts: list[Parts]
    input: Int64s = field(default_factory=no_int64s)
    part: Int64s = field(default_factory=no_int64s)
    slots: SlotPool = field(default_factory=SlotPool)

    def check_spec(self, spec: JoinAggregateSpec) -> None:
        size = len(self.input)
        need(self.slots.high <= size and all(a.shape[-1] == size for a in (self.cell_hi, self.cell_lo, self.valid)))
        need(len(self.part) == size and self.texts.capacity >= size * spec.text_width)
        slots = self.slots.used()
        inputs = self.input[slots]
        within(inputs, len(spec.input_types))
        for parts, i in zip(self.parts, spec.group_inputs, strict=True):
            parts.check_held(self.part[slots[inputs == i]])

    @staticmethod
    def of(spec: JoinAggregateSpec) -> GroupedRows:
        width = spec.cell_width
        kept = [[spec.input_types[i][c] for c in spec.group_columns[i]] for i in spec.group_inputs]
        return GroupedRows(
            cell_hi=np.zeros((width, 0), dtype=np.int64),
            cell_lo=np.zeros((width, 0), dtype=np.uint64),
            valid=np.zeros((width, 0), dtype=np.uint8),
            texts=RowStore.of([pa.binary()]),
            parts=[Parts(RowStore.of(types)) for types in kept],
        )

    def admit(self, spec: JoinAggregateSpec, i: int, values: pa.RecordBatch) -> Int64s:
        """Slots for rows of input i, with their cells and parts."""
        count = values.num_rows
        slots = self.slots.take(count)
        if self.slots.high > len(self.input):
            self.input = grown(self.input, self.slots.high)
            size = len(self.input)
            for name in ("part", "cell_hi", "cell_lo", "valid"):
                setattr(self, name, grown(getattr(self, name), size))
            self.texts.reserve(size * spec.text_width)
        self.input[slots] = i
        self.part[slots] = 0
        if i in spec.group_inputs:
            columns = [values.column(c) for c in spec.group_columns[i]]
            self.part[slots] = self.parts[spec.group_inputs.index(i)].number(columns, count)
        text = 0
        for a, column in enumerate(spec.arguments[i]):
            array = values.column(column)
            self.cell_hi[a, slots], self.cell_lo[a, slots] = cells.to_cells(array)
            valid = validity(array)
            self.valid[a, slots] = 1 if valid is None else valid
            if is_text(array.type):
                self.texts.write(slots * spec.text_width + text, [array.cast(pa.binary())])
                text += 1
        return slots

    def release(self, spec: JoinAggregateSpec, slots: Int64s) -> None:
        """Forget these rows."""
        if not len(slots):
            return
        inputs = self.input[slots]
        for p, i in enumerate(spec.group_inputs):
            self.parts[p].release(self.part[slots[inputs == i]])
        for text in range(spec.text_width):
            indexes = slots * spec.text_width + text
            self.texts.free(indexes)
        self.slots.give_back(slots)

    def compacted(self) -> GroupedRows:
        return trimmed(self, self.slots.high, ("cell_hi", "cell_lo", "valid", "input", "part"))

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())

    def cells(self, spec: JoinAggregateSpec) -> CellArrays:
        """What compiled loops read."""
        text = self.texts.columns[0]
        assert isinstance(text, TextColumn)
        return CellArrays(self.cell_hi, self.cell_lo, self.valid, text.start, text.length, text.arena, spec.text_width)
