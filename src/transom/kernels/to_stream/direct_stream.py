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
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import MISSING, NAMELESS, TAKEN_BACK, Delta, Ends, Int64s, StreamDelta
from transom.core.schema import CHANGE_COLUMN
from transom.core.time import FOREVER
from transom.kernels.address import byte_at, int_at, word_at
from transom.kernels.columns import alike
from transom.kernels.jit import borrowing, jit
from transom.kernels.kernel import Step
from transom.kernels.keys import normalised, order_words
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.record_store import RecordStore, RowsBeside, fetch_kept, name_of
from transom.kernels.time_order import by_time
from transom.state.checks import need
from transom.state.slots import SlotPool

Mask = npt.NDArray[np.bool_]

SHORT = 16  # rows that are quickly put in order one by one
MANY = 64  # rows of one instant that are worth to be sorted by words first
TEXT, WIDE = 0, 16  # kinds of columns; of other numbers their width, of floating ones it is negative
KIND, SIDE, OFFSET, VALID_OFFSET, SOURCE, DATA, VALID, OTHER = range(8)  # what is known of a column
NEVER_NULL = -1
BLOCK = 256  # rows of which the beginnings are read together
AHEAD = 32  # rows of which the records are fetched before they are looked at


@dataclass
class AliveRows:
    """The rows that are to leave, by slot."""

    STATE_VERSION: ClassVar[int] = 2

    rows: RecordStore
    slots: SlotPool = field(default_factory=SlotPool)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> AliveRows:
        """None, in columns of these types."""
        return AliveRows(RecordStore.of(types))

    def check(self) -> None:
        need(self.rows.capacity >= self.slots.high)
        self.lifetimes.check_slots(self.slots.mask())

    def leave(self, ends: Ends, frontier: int, types: Sequence[pa.DataType]) -> tuple[list[pa.Array], Int64s]:
        """The rows that end before `frontier`, by these ends or by what they said when they came, and when they do."""
        slots, te = self.leaving(ends, frontier)
        values = self.rows.gather(slots, types)
        self.free(slots)
        return values, te

    def leaving(self, ends: Ends, frontier: int) -> tuple[Int64s, Int64s]:
        """The slots of these, and when they end. Of those that turn out to stay nothing is kept."""
        slots, te = self.lifetimes.leave(ends, frontier)
        stay = te == FOREVER
        if stay.any():
            self.free(slots[stay])
            slots, te = slots[~stay], te[~stay]
        return slots, te

    def free(self, slots: Int64s) -> None:
        self.rows.free(slots)
        self.slots.give_back(slots)

    def keep(self, rows: Delta, columns: Sequence[pa.Array], which: Int64s) -> None:
        """Some of the rows, with the values of these columns."""
        if len(which):
            self.keep_of(self.rows.beside(columns, rows.halves), rows, which)

    def keep_of(self, batch: RowsBeside, rows: Delta, which: Int64s) -> None:
        """Some of the rows, which are in this batch."""
        slots = self.slots.take(len(which))
        self.rows.reserve(self.slots.high)
        self.rows.write(slots, batch, which)
        self.lifetimes.add(slots, rows.te[which], rows.open_id[which])


@dataclass(frozen=True)
class DirectStreamKernel:
    change: str  # istream, dstream, changes
    schema: pa.Schema

    def start(self) -> AliveRows:
        return AliveRows.of(self.schema.types)

    def next_timer(self, state: AliveRows) -> int:
        return state.lifetimes.next_timer

    def step(self, state: AliveRows, inputs: tuple[Delta], step: Step) -> StreamDelta:
        (rows,) = inputs
        columns = rows.values.columns
        if self._floating:  # as they are compared
            columns = normalised(columns)
        slots, slots_te = state.leaving(rows.ends, step.frontier)
        times = alike(rows.ta), alike(rows.te), alike(rows.open_id)
        t, changes, left, kept = changes_of(alike(slots), alike(slots_te), *times, step.frontier)
        # Of what is not emitted only that is looked at which may cancel with what is.
        if self.change == "istream":
            wanted = np.concatenate([_among(t[:left], t[left:]), np.ones(len(t) - left, dtype=np.bool_)])
            t, changes = t[wanted], changes[wanted]
        elif self.change == "dstream":
            wanted = np.concatenate([np.ones(left, dtype=np.bool_), _among(t[left:], t[:left])])
            t, changes = t[wanted], changes[wanted]
        beside = state.rows.beside(columns, rows.halves)
        emitted = in_order(t, changes, beside)
        which, t, entered = emitted.rows, emitted.t, emitted.entered
        if self.change != "changes":
            of_these = entered == (self.change == "istream")
            if not of_these.all():
                which, t, entered = which[of_these], t[of_these], entered[of_these]
        if self.change == "istream" and len(which) == len(rows) and (which[1:] > which[:-1]).all():
            emitted_columns = columns
        else:
            emitted_columns = beside.gather(which, self.schema.types)
        state.free(slots)
        if len(kept):
            state.keep_of(beside, rows, kept)
        out = pa.RecordBatch.from_arrays(emitted_columns, schema=self.schema)
        if self.change == "changes":
            out = out.add_column(0, CHANGE_COLUMN, signs(entered))
        return StreamDelta(out, t, step.frontier)

    @cached_property
    def _floating(self) -> bool:
        return any(map(pa.types.is_floating, self.schema.types))


def _among(these: Int64s, those: Int64s) -> Mask:
    """Whether each of these instants is among those."""
    if not len(these) or not len(those):
        return np.zeros(len(these), dtype=np.bool_)
    if (these[1:] >= these[:-1]).all() and (those[1:] >= those[:-1]).all():
        among_those: Mask = among(alike(these), alike(those))
        return among_those
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


@jit
def changes_of(slots, slots_te, ta, te, open_id, frontier):  # type: ignore[no-untyped-def]
    """What a step says: the instants of the changes, and for each twice its row, one more if it came.

    Those that left (`slots`, and rows that came and went) are first, so many as is given next. Then the rows that are
    to be kept, since they are to leave.
    """
    n = len(te)
    t = np.empty(len(slots) + 2 * n, dtype=np.int64)
    changes = np.empty(len(slots) + 2 * n, dtype=np.int64)
    kept = np.empty(n, dtype=np.int64)
    count = len(slots)
    keeps = 0
    for i in range(count):
        t[i] = slots_te[i]
        changes[i] = ~slots[i] << 1
    for i in range(n):
        t[count] = te[i]
        changes[count] = i << 1
        kept[keeps] = i
        short = te[i] < frontier
        count += short
        keeps += (not short) & ((te[i] < FOREVER) | (open_id[i] >= 0))
    left = count
    for i in range(n):
        t[count] = ta[i]
        changes[count] = (i << 1) | 1
        count += open_id[i] != TAKEN_BACK
    return t[:count], changes[:count], left, kept[:keeps]


class EmittedRows(NamedTuple):
    """What is emitted, in the order in which it is: rows of a store and a batch, when, and whether they came."""

    rows: Int64s
    t: Int64s
    entered: Mask


def in_order(t: Int64s, changes: Int64s, beside: RowsBeside) -> EmittedRows:
    """Which of the changes are emitted, by time; those of one instant by sign and value, without what cancels out.

    `changes` are as `changes_of` gives them, what left before what entered.

    >>> from transom.kernels.record_store import RecordStore
    >>> beside = RecordStore.of([pa.int64()]).beside([pa.array([1, 2, 9, 1])])
    >>> in_order(np.array([5, 5, 3, 5]), np.array([0, 2, 5, 7]), beside).rows.tolist()
    [2, 1]
    """
    if not (t[1:] > t[:-1]).all():
        t, changes = by_time(t, changes)
    rows, entered = changes >> 1, (changes & 1).astype(np.bool_)
    alone = t[1:] != t[:-1]
    if alone.all():
        return EmittedRows(rows, t, entered)
    if len(t) > MANY * (1 + np.count_nonzero(alone)):
        rows = _nearly_sorted(rows, t, entered, beside)
    rows, kept = settle(t, entered, rows, beside.at, compared_columns(beside))
    return EmittedRows(rows, t, entered) if kept.all() else EmittedRows(rows[kept], t[kept], entered[kept])


def _nearly_sorted(rows: Int64s, t: Int64s, entered: Mask, beside: RowsBeside) -> Int64s:
    """The rows by time, sign and the first two columns, as far as these are numbers; where NULLs are, anyhow.

    Many rows are sorted much faster by words, and to sort what is in order costs little.
    """
    numbers = []
    for number, dtype in enumerate(beside.store.dtypes[:2]):
        if dtype is None or dtype.itemsize == 16:
            break
        numbers.append(number)
    if not numbers:
        return rows
    types = [beside.types[number] for number in numbers]
    leading = [order_words(column) for column in beside.gather(rows, types, numbers)]
    by_words: Int64s = rows[np.lexsort((*leading[::-1], entered, t))]
    return by_words


def compared_columns(beside: RowsBeside) -> Int64s:
    """Of each column what `compare` needs to know: its kind, its side, where it is in a record and in the batch, and
    which is the next one of the other side."""
    store, lines = beside.store, []
    sides = store.sides.tolist()
    for number, dtype in enumerate(store.dtypes):
        if dtype is None:
            kind = TEXT
        elif dtype.itemsize == 16:
            kind = WIDE
        else:
            kind = -dtype.itemsize if dtype.kind == "f" else dtype.itemsize
        valid = store.valid_offsets[number] if store.nullable[number] else NEVER_NULL
        lines.append(
            (
                kind,
                int(store.sides[number]),
                store.offsets[number],
                valid,
                beside.sources[number],
                beside.data[number],
                beside.valid[number],
                next((other for other in range(number, len(sides)) if sides[other] != sides[number]), len(sides)),
            )
        )
    return np.array(lines, dtype=np.int64).reshape(-1, 8)


@jit
def settle(t, entered, rows, at, columns):  # type: ignore[no-untyped-def]
    """The rows of each instant, what left and then what came, each by value; and which of these are emitted.

    Of equal rows as many that came are not emitted as left. Instants ascend, and of one what left is first.
    """
    n = len(t)
    order = rows.copy()
    spare = np.empty(n, dtype=np.int64)
    kept = np.ones(n, dtype=np.bool_)
    lead = np.empty(n, dtype=np.uint64)
    ready = (
        0  # before this one `lead` is written: not much sooner than it is read, while what was fetched is in the cache
    )
    first = 0
    while first < n:
        middle = first
        while middle < n and t[middle] == t[first] and not entered[middle]:
            middle += 1
        behind = middle
        while behind < n and t[behind] == t[first]:
            behind += 1
        if behind > ready:
            begin, ready = ready, min(n, behind + BLOCK)
            leads(t, rows, at, columns, lead, begin, ready)
        if behind - first > 1:
            for begin, end in ((first, middle), (middle, behind)):
                if end - begin > 1:
                    sort_part(order, lead, spare, begin, end, at, columns)
        i = first
        j = middle
        while i < middle and j < behind:
            if lead[i] != lead[j]:
                i, j = (i + 1, j) if lead[i] < lead[j] else (i, j + 1)
                continue
            order_of_two = compare(order[i], order[j], at, columns)
            if order_of_two == 0:
                kept[i] = False
                kept[j] = False
            i += order_of_two <= 0
            j += order_of_two >= 0
        first = behind
    return order, kept


@jit
def leads(t, rows, at, columns, lead, begin, end):  # type: ignore[no-untyped-def]
    """Write the `beginning` of each of these rows that is not alone in its instant.

    Mostly it is a number that is never NULL; then this does without branches, since nobody can foretell of which kind
    the next row is.
    """
    n = len(t)
    there = np.uint64(1) << np.uint64(63)
    first, other = 0, columns[0, OTHER] if len(columns) else 0
    plain = len(columns) > 0 and is_plain(columns, first)
    if other == len(columns):
        other = first
    elif plain:
        plain = is_plain(columns, other)
    for i in range(begin - AHEAD if begin == 0 else begin, end):
        if i + AHEAD < n:
            fetch_kept(at, rows[i + AHEAD])
        if i < 0:
            continue
        row = rows[i]
        if plain:
            misses = name_of(at, row, columns[first, SIDE]) == MISSING
            column = other if misses else first
            kind = columns[column, KIND]
            record = at.records + ~row * at.stride + columns[column, OFFSET]
            beside = columns[column, SOURCE] + abs(kind) * row
            head = word_of(record if row < 0 else beside, kind) >> np.uint64(1)
            none = name_of(at, row, columns[column, SIDE]) == MISSING
            lead[i] = np.uint64(0) if none else head | (np.uint64(0) if misses else there)
        elif (i > 0 and t[i] == t[i - 1]) or (i + 1 < n and t[i] == t[i + 1]):
            lead[i] = beginning(row, at, columns)


@borrowing
def is_plain(columns, column):  # type: ignore[no-untyped-def]
    """Whether it is a number of a word or less, and never NULL where its half is there."""
    kind = columns[column, KIND]
    return (kind != TEXT) & (kind != WIDE) & (columns[column, VALID_OFFSET] == NEVER_NULL)


@borrowing
def sort_part(order, lead, spare, first, behind, at, columns):  # type: ignore[no-untyped-def]
    """Equal rows stay as they are. A few are put in their places one by one, of more ever longer runs are merged."""
    if behind - first <= SHORT:
        for k in range(first + 1, behind):
            row, its = order[k], lead[k]
            to = k
            while to > first and (
                its < lead[to - 1] or (its == lead[to - 1] and compare(row, order[to - 1], at, columns) < 0)
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
            if middle < right and compare(order[middle - 1], order[middle], at, columns) <= 0:
                j = right  # one behind the other they are in order
            for k in range(left, right):
                if j == right or (i < middle and compare(order[i], order[j], at, columns) <= 0):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for k in range(first, behind):
            order[k] = spare[k]
        size *= 2
    for k in range(first, behind):
        lead[k] = beginning(order[k], at, columns)


@borrowing
def is_there(row, record, column, columns):  # type: ignore[no-untyped-def]
    """Whether the row, which has this record or is one of the batch, has a value in a column of a half that it has."""
    offset, valid = columns[column, VALID_OFFSET], columns[column, VALID]
    if offset == NEVER_NULL:
        return True
    if row < 0:
        return np.int64(byte_at(record + offset, 0)) != 0
    return valid == 0 or np.int64(byte_at(valid, row)) != 0


@borrowing
def word_of(address, kind):  # type: ignore[no-untyped-def]
    """A number as a word that compares as numbers do; of floats there is one zero, and one NaN, the greatest."""
    sign = np.uint64(1) << np.uint64(63)
    if kind == 8:
        return np.uint64(word_at(address, 0)) ^ sign
    if kind == 4:
        return np.uint64(np.int64(int_at(address, 0))) ^ sign
    if kind == 1:
        return np.uint64(np.int64(np.int8(byte_at(address, 0)))) ^ sign
    if kind == 2:
        high = np.int64(np.int8(byte_at(address, 1)))
        return np.uint64((high << 8) | np.int64(byte_at(address, 0))) ^ sign
    bits = np.uint64(word_at(address, 0)) if kind == -8 else np.uint64(np.int64(int_at(address, 0)) << 32)
    return ~bits if bits & sign else bits | sign


@borrowing
def beginning(row, at, columns):  # type: ignore[no-untyped-def]
    """Of the first column as much as fits into a word: where it is less the row comes before, where it is equal it is
    not known. Where the half of that column is missing, as only then it is NULL, of the first column of the other."""
    there = np.uint64(1) << np.uint64(63)
    if len(columns) == 0:
        return there
    other = columns[0, OTHER] if columns[0, VALID_OFFSET] == NEVER_NULL else len(columns)
    misses = name_of(at, row, columns[0, SIDE]) == MISSING
    if other == len(columns):
        return np.uint64(0) if misses else head_of(row, 0, at, columns)
    # Which half is missing nobody can foretell.
    column = other if misses else 0
    if name_of(at, row, columns[column, SIDE]) == MISSING:
        return np.uint64(0)
    return head_of(row, column, at, columns) & (~there if misses else ~np.uint64(0))


@borrowing
def head_of(row, column, at, columns):  # type: ignore[no-untyped-def]
    """As much of a column as fits into a word, of a half that the row has; NULL is less than any value."""
    there = np.uint64(1) << np.uint64(63)
    record = at.records + ~row * at.stride
    if not is_there(row, record, column, columns):
        return np.uint64(0)
    kind, offset, source = columns[column, KIND], columns[column, OFFSET], columns[column, SOURCE]
    if kind == TEXT:
        if row < 0:
            place = at.arena + word_at(record + at.texts, 0) + texts_between(record, 0, column, columns)
            behind = place + int_at(record + offset, 0)
        else:
            place = columns[column, DATA] + np.int64(int_at(source, row))
            behind = columns[column, DATA] + np.int64(int_at(source, row + 1))
        head = np.uint64(0)
        for _ in range(7):
            head <<= np.uint64(8)
            if place < behind:
                head |= np.uint64(byte_at(place, 0))
            place += 1
        return there | head
    width = abs(kind)
    address = record + offset if row < 0 else source + width * row
    word = np.uint64(word_at(address, 1)) ^ there if kind == WIDE else word_of(address, kind)  # which has a sign
    return there | (word >> np.uint64(1))


@borrowing
def texts_between(record, begin, end, columns):  # type: ignore[no-untyped-def]
    """How many bytes a record has in the texts among these columns."""
    size = np.int64(0)
    for column in range(begin, end):
        if columns[column, KIND] == TEXT:
            size += int_at(record + columns[column, OFFSET], 0)
    return size


@borrowing
def compare(a, b, at, columns):  # type: ignore[no-untyped-def]
    """Negative, zero or positive as row a comes before, is or comes after row b, column by column, NULL first."""
    first, second = at.records + ~a * at.stride, at.records + ~b * at.stride
    a_text = at.arena + word_at(first + at.texts, 0) if a < 0 else 0
    b_text = at.arena + word_at(second + at.texts, 0) if b < 0 else 0
    reached = 0  # the column whose texts these would be
    a_left, a_right, b_left, b_right = name_of(at, a, 0), name_of(at, a, 1), name_of(at, b, 0), name_of(at, b, 1)
    column = 0
    while column < len(columns):
        kind, offset, source = columns[column, KIND], columns[column, OFFSET], columns[column, SOURCE]
        name, its_name = (a_left, b_left) if columns[column, SIDE] == 0 else (a_right, b_right)
        if name == its_name and name != NAMELESS:  # made of the same row
            column = columns[column, OTHER]
            continue
        there = name != MISSING and is_there(a, first, column, columns)
        if there != (its_name != MISSING and is_there(b, second, column, columns)):
            return np.int64(1) if there else np.int64(-1)
        if not there:
            column += 1
            continue
        if kind == TEXT:
            a_text += texts_between(first, reached, column, columns) if a < 0 else 0
            b_text += texts_between(second, reached, column, columns) if b < 0 else 0
            reached = column
            length = np.int64(int_at(first + offset, 0) if a < 0 else int_at(source, a + 1) - int_at(source, a))
            other = np.int64(int_at(second + offset, 0) if b < 0 else int_at(source, b + 1) - int_at(source, b))
            i = a_text if a < 0 else columns[column, DATA] + np.int64(int_at(source, a))
            j = b_text if b < 0 else columns[column, DATA] + np.int64(int_at(source, b))
            shorter = min(length, other)
            k = np.int64(0)
            while k + 8 <= shorter and word_at(i + k, 0) == word_at(j + k, 0):
                k += 8
            while k < shorter:
                x, y = np.int64(byte_at(i + k, 0)), np.int64(byte_at(j + k, 0))
                if x != y:
                    return x - y
                k += 1
            if length != other:
                return length - other
        else:
            width = abs(kind)
            i = first + offset if a < 0 else source + width * a
            j = second + offset if b < 0 else source + width * b
            if kind == WIDE:
                if word_at(i, 1) != word_at(j, 1):
                    return np.int64(-1) if word_at(i, 1) < word_at(j, 1) else np.int64(1)
                u, v = np.uint64(word_at(i, 0)), np.uint64(word_at(j, 0))
            else:
                u, v = word_of(i, kind), word_of(j, kind)
            if u != v:
                return np.int64(-1) if u < v else np.int64(1)
        column += 1
    return np.int64(0)


def signs(entered: Mask) -> pa.Array:
    """
    >>> signs(np.array([True, False])).to_pylist()
    ['+', '-']
    """
    letters = np.uint8(ord("-")) - 2 * entered.view(np.uint8)
    rows = len(letters)
    offsets = _EACH_OF_ONE[: rows + 1] if rows < len(_EACH_OF_ONE) else np.arange(rows + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


_EACH_OF_ONE: Final = np.arange(1 << 17, dtype=np.int32)  # offsets of texts of one letter; nobody writes to them
