"""ISTREAM, DSTREAM and the changes of a relation, by its rows as they come and go: nothing is counted.

Meaning: as `to_stream.py`, but for RSTREAM.
Emits: the same rows in the same order.
Keeps: the rows alive that will end or may, whole.
Needs: nothing; where many rows are equal, or few of those that are open ever end, counting keeps less.
Costs: values are compared only where rows begin at the instant at which others end, or several at one instant. Where
    none do, and rows come in the order of time, an ISTREAM gives the very columns that came.

>>> from transom.core.delta import no_open_ids
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"a": [7, 7]}), np.array([1, 4]), np.array([4, 6]), no_open_ids(2), frontier=9)
>>> kernel = DirectStreamKernel("istream", pa.schema([("a", pa.int64())]))
>>> kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool())).t.tolist()
[1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, StreamDelta, no_int64s
from transom.core.schema import CHANGE_COLUMN
from transom.core.time import FOREVER
from transom.kernels.address import address_of, byte_at, int_at, word_at
from transom.kernels.columns import Array, Bytes, alike, fixed_values, is_text, text_buffers, validity
from transom.kernels.jit import borrowing, jit
from transom.kernels.kernel import Step
from transom.kernels.keys import normalised, order_words
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore
from transom.kernels.taken import taken, taken_rows
from transom.state.checks import need
from transom.state.slots import SlotPool

Mask = npt.NDArray[np.bool_]

SHORT = 16  # rows that are quickly put in order one by one
MANY = 64  # rows of one instant that are worth to be sorted by words first
WORD, WIDE, TEXT = range(3)  # kinds of columns that are compared: of one word, of two, of any number of bytes


@dataclass
class AliveRows:
    """The rows that are to leave, by slot."""

    rows: RowStore
    slots: SlotPool = field(default_factory=SlotPool)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(self.rows.capacity >= self.slots.high)
        self.lifetimes.check_slots(self.slots.mask())

    def leave(self, ends: Ends, frontier: int, types: Sequence[pa.DataType]) -> tuple[list[pa.Array], Int64s]:
        """The rows that end before `frontier`, by these ends or by what they said when they came, and when they do."""
        slots, te = self.leaving(ends, frontier)
        values = self.rows.gather(slots, types)
        self.rows.free(slots)
        self.slots.give_back(slots)
        return values, te

    def leaving(self, ends: Ends, frontier: int) -> tuple[Int64s, Int64s]:
        """The slots of these, and when they end. Of those that turn out to stay nothing is kept."""
        slots, te = self.lifetimes.leave(ends, frontier)
        stay = te == FOREVER
        if stay.any():
            self.rows.free(slots[stay])
            self.slots.give_back(slots[stay])
            slots, te = slots[~stay], te[~stay]
        return slots, te

    def keep(self, rows: Delta, values: pa.RecordBatch, which: Int64s) -> None:
        """Some of the rows, with these values."""
        if not len(which):
            return
        slots = self.slots.take(len(which))
        self.rows.reserve(self.slots.high)
        self.rows.write(slots, values.columns if len(which) == len(rows) else _picked(values, which))
        self.lifetimes.add(slots, rows.te[which], rows.open_id[which])


@dataclass(frozen=True)
class DirectStreamKernel:
    change: str  # istream, dstream, changes
    schema: pa.Schema

    def start(self) -> AliveRows:
        return AliveRows(RowStore.of(self.schema.types))

    def next_timer(self, state: AliveRows) -> int:
        return state.lifetimes.next_timer

    def step(self, state: AliveRows, inputs: tuple[Delta], step: Step) -> StreamDelta:
        (rows,) = inputs
        values = rows.values
        if self._floating:  # as they are compared
            values = pa.RecordBatch.from_arrays(normalised(values.columns), schema=values.schema)
        slots, te = state.leaving(rows.ends, step.frontier)
        short = np.flatnonzero(rows.te < step.frontier)
        gone_at, came_at = np.concatenate([te, rows.te[short]]), rows.ta
        # Of what is not emitted only that is looked at which may cancel with what is.
        gone = np.arange(len(gone_at)) if self.change != "istream" else np.flatnonzero(_among(gone_at, came_at))
        came = None if self.change != "dstream" else np.flatnonzero(_among(came_at, gone_at))
        earlier = gone[: np.searchsorted(gone, len(te))]
        parts = [
            state.rows.gather(slots[earlier], self.schema.types) if len(earlier) else None,
            _picked(values, short[gone[len(earlier) :] - len(te)]) if len(earlier) < len(gone) else None,
            values.columns if came is None else _picked(values, came) if len(came) else None,
        ]
        state.rows.free(slots)
        state.slots.give_back(slots)
        ending = (rows.te < FOREVER) | (rows.open_id != NO_OPEN_ID)
        state.keep(rows, values, np.flatnonzero((rows.te >= step.frontier) & ending))
        t = np.concatenate([gone_at[gone], came_at if came is None else came_at[came]])
        entered = np.arange(len(t)) >= len(gone)
        columns = _together([part for part in parts if part is not None], values)
        return self._emitted(columns, t, entered, step.frontier)

    def _emitted(self, columns: list[pa.Array], t: Int64s, entered: Mask, frontier: int) -> StreamDelta:
        order = in_order(t, entered, columns)
        if order is not None:
            if self.change != "changes":
                order = order[entered[order] == (self.change == "istream")]
            columns, t, entered = taken(columns, order), t[order], entered[order]
        out = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if self.change == "changes":
            out = out.add_column(0, CHANGE_COLUMN, signs(entered))
        return StreamDelta(out, t, frontier)

    @cached_property
    def _floating(self) -> bool:
        return any(map(pa.types.is_floating, self.schema.types))


def _picked(values: pa.RecordBatch, rows: Int64s) -> list[pa.Array]:
    columns: list[pa.Array] = taken_rows(values, rows).columns
    return columns


def _together(parts: list[list[pa.Array]], values: pa.RecordBatch) -> list[pa.Array]:
    """The columns of the parts, one behind the other; of none, no rows of `values`."""
    if len(parts) < 2:
        return parts[0] if parts else values.slice(0, 0).columns
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


def _among(these: Int64s, those: Int64s) -> Mask:
    """Whether each of these instants is among those."""
    if not len(these) or not len(those):
        return np.zeros(len(these), dtype=np.bool_)
    if (these[1:] >= these[:-1]).all() and (those[1:] >= those[:-1]).all():
        flags: Mask = among(alike(these), alike(those))
        return flags
    return np.isin(these, those)


@jit
def among(these, those):  # type: ignore[no-untyped-def]
    """Which of these are among those; both are ascending."""
    flags = np.zeros(len(these), dtype=np.bool_)
    at = 0
    for i in range(len(these)):
        while at < len(those) and those[at] < these[i]:
            at += 1
        flags[i] = at < len(those) and those[at] == these[i]
    return flags


class _Compared:
    """Columns whose rows are compared where they lie: nothing is copied but words that compare like the numbers."""

    def __init__(self, columns: list[pa.Array]) -> None:
        self._columns = columns
        self._words: dict[int, tuple[Array, Bytes | None]] = {}

    def numbers_first(self) -> list[int]:
        """The columns of which `words` are known."""
        types = [column.type for column in self._columns]
        comparable = [i for i, type_ in enumerate(types) if not pa.types.is_decimal(type_)]
        return sorted(comparable, key=lambda i: is_text(types[i]))

    def words(self, i: int) -> tuple[Array, Bytes | None]:
        """Of column i: numbers as words that are alike and ordered as these are, of texts their lengths; and NULLs."""
        if i not in self._words:
            column = self._columns[i]
            column = pc.binary_length(column) if is_text(column.type) else column
            self._words[i] = np.ascontiguousarray(order_words(column)), validity(column)
        return self._words[i]

    def nearly_sorted(self, rows: Int64s, t: Int64s, entered: Mask) -> Int64s:
        """The rows by time, sign and the first two columns, as far as these are numbers; where NULLs are, anyhow.

        Many rows are sorted much faster by words, and to sort what is in order costs little.
        """
        leading = []
        for i, column in enumerate(self._columns[:2]):
            if is_text(column.type) or pa.types.is_decimal(column.type):
                break
            leading.append(self.words(i)[0][rows])
        return rows[np.lexsort((*leading[::-1], entered[rows], t[rows]))] if leading else rows

    def table(self) -> tuple[Int64s, list[Any]]:
        """A line for each column: its kind, where its values are, where the rest of them, and where it has NULLs (0:
        nowhere); and what is to be held while somebody reads there."""
        lines, held = [], []
        parts: tuple[Array, Array]
        for i, column in enumerate(self._columns):
            valid = validity(column)
            if is_text(column.type):
                kind, parts = TEXT, text_buffers(column)
            elif pa.types.is_decimal(column.type):
                values = fixed_values(column)
                kind, parts = WIDE, (np.ascontiguousarray(values["hi"]), np.ascontiguousarray(values["lo"]))
            else:
                kind, parts = WORD, (self.words(i)[0], no_int64s())
            lines.append((kind, address_of(parts[0]), address_of(parts[1]), 0 if valid is None else address_of(valid)))
            held.append((*parts, valid))
        return np.array(lines, dtype=np.int64).reshape(-1, 4), held


def in_order(t: Int64s, entered: Mask, columns: list[pa.Array]) -> Int64s | None:
    """Which of the changes are emitted, by time; those of one instant by sign and value, without what cancels out.

    What left is given before what entered. None: all of them, as they are, no two at one instant.

    >>> in_order(np.array([5, 5, 3, 5]), np.array([False, False, True, True]), [pa.array([1, 2, 9, 1])]).tolist()
    [2, 1]
    """
    if (t[1:] > t[:-1]).all():
        return None
    order = np.argsort(t, kind="stable")
    at, sign = t[order], entered[order]
    values = _Compared(columns)
    compared = _compared(at, sign, order, values)
    if not len(compared):
        return order
    among = order[compared]
    if len(among) > MANY * (1 + np.count_nonzero(np.diff(t[among]))):
        among = values.nearly_sorted(among, t, entered)
    table, held = values.table()
    by, kept = settle(t[among], entered[among], among, table)
    del held
    emitted = np.ones(len(t), dtype=np.bool_)
    order[compared] = by
    emitted[compared] = kept
    return order[emitted]


def _compared(at: Int64s, sign: Mask, order: Int64s, values: _Compared) -> Int64s:
    """The places of rows whose values matter: several that enter or leave at one instant, or such as may cancel out.

    Rows that begin as others end differ most often, and most often in a number: so that is looked at first.
    """
    same = at[1:] == at[:-1]
    if not same.any():
        return no_int64s()
    wanted = np.zeros(len(at), dtype=np.bool_)
    beside = same & (sign[1:] == sign[:-1])
    wanted[1:] |= beside
    wanted[:-1] |= beside
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    left, came = pairs_of(first, sign)  # of one row that left and one that entered; of more, all are compared
    for column in values.numbers_first():
        if not len(left):
            break
        words, valid = values.words(column)
        alike = words[order[left]] == words[order[came]]
        if valid is not None:
            left_valid, came_valid = valid[order[left]], valid[order[came]]
            alike = (left_valid == came_valid) & (alike | (left_valid == 0))
        left, came = left[alike], came[alike]
    wanted[left] = True
    wanted[came] = True
    bounds = np.append(first, len(at))
    mixed = np.add.reduceat(sign, first, dtype=np.int64)
    size = np.diff(bounds)
    many = (size > 2) & (mixed > 0) & (mixed < size)
    if many.any():
        wanted |= np.repeat(many, size)
    return np.flatnonzero(wanted)


@jit
def pairs_of(first, sign):  # type: ignore[no-untyped-def]
    """The places of the two rows of each instant, given where it begins, that has one that left and one that came."""
    left = np.empty(len(first), dtype=np.int64)
    count = 0
    for i in range(len(first)):
        behind = first[i + 1] if i + 1 < len(first) else len(sign)
        if behind - first[i] == 2 and sign[first[i]] != sign[first[i] + 1]:
            left[count] = first[i]
            count += 1
    return left[:count].copy(), left[:count] + 1


@jit
def settle(t, sign, rows, table):  # type: ignore[no-untyped-def]
    """The rows of each instant, what left and then what came, each by value; and which of these are emitted.

    Of equal rows as many that came are not emitted as left. Instants ascend, and of one what left is first.
    """
    n = len(t)
    order = rows.copy()
    spare = np.empty(n, dtype=np.int64)
    kept = np.ones(n, dtype=np.bool_)
    lead = np.empty(n, dtype=np.uint64)
    for i in range(n):
        lead[i] = beginning(order[i], table)
    first = 0
    while first < n:
        middle = first
        while middle < n and t[middle] == t[first] and not sign[middle]:
            middle += 1
        behind = middle
        while behind < n and t[behind] == t[first]:
            behind += 1
        sort_part(order, lead, spare, first, middle, table)
        sort_part(order, lead, spare, middle, behind, table)
        i = first
        j = middle
        while i < middle and j < behind:
            if lead[i] != lead[j]:
                i, j = (i + 1, j) if lead[i] < lead[j] else (i, j + 1)
                continue
            order_of_two = compare(order[i], order[j], table)
            if order_of_two == 0:
                kept[i] = False
                kept[j] = False
            i += order_of_two <= 0
            j += order_of_two >= 0
        first = behind
    return order, kept


@borrowing
def sort_part(order, lead, spare, first, behind, table):  # type: ignore[no-untyped-def]
    """Equal rows stay as they are. A few are put in their places one by one, of more ever longer runs are merged."""
    if behind - first <= SHORT:
        for k in range(first + 1, behind):
            row, its = order[k], lead[k]
            to = k
            while to > first and (
                its < lead[to - 1] or (its == lead[to - 1] and compare(row, order[to - 1], table) < 0)
            ):
                order[to] = order[to - 1]
                lead[to] = lead[to - 1]
                to -= 1
            order[to] = row
            lead[to] = its
        return
    size = 1
    while size < behind - first:
        for left in range(first, behind, 2 * size):
            middle = min(left + size, behind)
            right = min(left + 2 * size, behind)
            i = left
            j = middle
            if middle < right and compare(order[middle - 1], order[middle], table) <= 0:
                j = right  # one behind the other they are in order
            for k in range(left, right):
                if j == right or (i < middle and compare(order[i], order[j], table) <= 0):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for k in range(first, behind):
            order[k] = spare[k]
        size *= 2
    for k in range(first, behind):
        lead[k] = beginning(order[k], table)


@borrowing
def beginning(row, table):  # type: ignore[no-untyped-def]
    """Of the first column as much as fits into a word: where it is less the row comes before, where it is equal it is
    not known."""
    there = np.uint64(1) << np.uint64(63)
    if len(table) == 0:
        return there
    kind, values, valid = table[0, 0], table[0, 1], table[0, 3]
    if valid != 0 and np.int64(byte_at(valid, row)) == 0:
        return np.uint64(0)
    if kind == TEXT:
        at = table[0, 2] + np.int64(int_at(values, row))
        behind = table[0, 2] + np.int64(int_at(values, row + 1))
        head = np.uint64(0)
        for _ in range(7):
            head <<= np.uint64(8)
            if at < behind:
                head |= np.uint64(byte_at(at, 0))
            at += 1
        return there | head
    word = np.uint64(word_at(values, row))
    if kind == WIDE:
        word ^= there  # it has a sign
    return there | (word >> np.uint64(1))


@borrowing
def compare(a, b, table):  # type: ignore[no-untyped-def]
    """Negative, zero or positive as row a comes before, is or comes after row b, column by column, NULL first."""
    for column in range(len(table)):
        kind, values, rest, valid = table[column, 0], table[column, 1], table[column, 2], table[column, 3]
        if valid != 0:
            there = np.int64(byte_at(valid, a))
            if there != np.int64(byte_at(valid, b)):
                return np.int64(1) if there else np.int64(-1)
            if there == 0:
                continue
        if kind == TEXT:
            i, j = np.int64(int_at(values, a)), np.int64(int_at(values, b))
            length, other = int_at(values, a + 1) - i, int_at(values, b + 1) - j
            shorter = np.int64(min(length, other))
            k = np.int64(0)
            while k + 8 <= shorter and word_at(rest + i + k, 0) == word_at(rest + j + k, 0):
                k += 8
            while k < shorter:
                x, y = np.int64(byte_at(rest, i + k)), np.int64(byte_at(rest, j + k))
                if x != y:
                    return x - y
                k += 1
            if length != other:
                return length - other
            continue
        if kind == WIDE and word_at(values, a) != word_at(values, b):
            return np.int64(-1) if word_at(values, a) < word_at(values, b) else np.int64(1)
        words = rest if kind == WIDE else values
        u, v = np.uint64(word_at(words, a)), np.uint64(word_at(words, b))
        if u != v:
            return np.int64(-1) if u < v else np.int64(1)
    return np.int64(0)


def signs(entered: Mask) -> pa.Array:
    """
    >>> signs(np.array([True, False])).to_pylist()
    ['+', '-']
    """
    letters = np.where(entered, ord("+"), ord("-")).astype(np.uint8)
    offsets = np.arange(len(letters) + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(letters), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
