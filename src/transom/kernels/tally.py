"""How often each value is there, instant by instant.

That is what DISTINCT, the set operations and the stream operators have in common.

A `Tally` numbers the values of one or two inputs and counts them per input. A step turns the rows' beginnings and ends
into `Steps`: for every instant, in order, the values whose counts changed there, with the counts before and after. Rows
that come and go at the same instant cancel, so ghosts leave no trace. Of negative tuples departures count down and
arrivals up, and no row is kept at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Changelog, Delta, Ends, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import Keys, encode_keys, normalised
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.mould import ColumnAddresses
from transom.kernels.row_store import RowStore
from transom.kernels.sound import numbered
from transom.state.checks import need, rooms, within
from transom.state.slots import SlotPool, grown


@dataclass(frozen=True)
class Steps:
    """Entry i: at t[i] the counts of value key[i] went from before[:, i] to after[:, i]. Ascending in t."""

    t: Int64s
    key: Int64s
    before: Int64s
    after: Int64s


@dataclass
class Tally:
    """Numbers, bytes and columns of the values; `counts[side, key]`; the rows alive with their value and side."""

    values: RowStore
    keys: KeyIndex = field(default_factory=KeyIndex)
    counts: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))
    entry_of: Int64s = field(default_factory=no_int64s)
    row_slots: SlotPool = field(default_factory=SlotPool)
    rows: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def __post_init__(self) -> None:
        self.addresses = ColumnAddresses([self.values], [-1])  # found again from the rest, so it is not saved

    def check(self) -> None:
        high = self.keys.slots.high
        rooms(high, self.counts)
        need(
            self.counts.shape[0] == 2
            and len(self.entry_of) == self.counts.shape[1]
            and bool((self.entry_of == -1).all())
        )
        need(self.values.capacity >= high and bool((self.counts >= 0).all()))
        used = self.keys.slots.mask()
        need(not self.counts[:, :high][:, ~used].any() and not self.counts[:, high:].any())
        rooms(self.row_slots.high, self.rows)
        slots = self.row_slots.used()
        if len(slots):  # of negative tuples no row is kept
            within(self.rows[1, slots], 2)
            numbered(self.rows[0, slots], self.keys.slots)
            counts = np.zeros_like(self.counts)
            np.add.at(counts, (self.rows[1, slots], self.rows[0, slots]), 1)
            need(bool((counts == self.counts).all()))
        self.lifetimes.check_slots(self.row_slots.mask())

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> Tally:
        return Tally(RowStore.of(types))

    def number(self, batch: pa.RecordBatch) -> Int64s:
        """The number of each row's value; new values are kept."""
        return self.number_by(batch, self._encoded(batch.columns, len(batch)), self._kept)[0]

    def number_by(
        self, batch: pa.RecordBatch, encoded: Keys, kept: Callable[[Sequence[pa.Array]], Sequence[pa.Array]] = list
    ) -> tuple[Int64s, Int64s]:
        """The number of each row's value by keys that are given, and the rows that brought one."""
        columns = batch.columns
        keys, brought = self.keys.number(encoded)
        if self.keys.slots.high > self.counts.shape[1]:
            self.counts = grown(self.counts, self.keys.slots.high)
            self.entry_of = grown(self.entry_of, self.counts.shape[1], -1)
        self.values.reserve(self.counts.shape[1])
        if len(brought):
            if len(brought) < len(batch):
                columns = batch.take(pa.array(brought)).columns
            self.values.write(keys[brought], kept(columns))
            self.addresses.refresh(0, -1)
        return keys, brought

    def _encoded(self, columns: Sequence[pa.Array], rows: int) -> Keys:
        return encode_keys(columns, rows)

    def _kept(self, columns: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return normalised(columns)

    def advance(
        self,
        inputs: Sequence[Delta | Changelog],
        frontier: int,
        number: Callable[[pa.RecordBatch], Int64s] | None = None,
    ) -> Steps:
        """Take what began and what ended before `frontier`; the inputs are all of one kind.

        `number` numbers the values of rows, for whoever has other keys for them.
        """
        signed = [delta for delta in inputs if isinstance(delta, Changelog)]
        if signed:
            return self._count_signed(signed, number or self.number)
        return self._count_lifetimes(
            [delta for delta in inputs if isinstance(delta, Delta)], frontier, number or self.number
        )

    def _count_signed(self, inputs: Sequence[Changelog], number: Callable[[pa.RecordBatch], Int64s]) -> Steps:
        t = _joined([delta.t for delta in inputs])
        key = _joined([number(delta.values) for delta in inputs])
        side = np.repeat(np.arange(len(inputs)), [len(delta) for delta in inputs])
        sign = _joined([signs(delta) for delta in inputs])
        order = np.argsort(t, kind="stable")
        return Steps(*count_changes(t[order], key[order], side[order], sign[order], self.counts, self.entry_of))

    def _count_lifetimes(
        self, inputs: Sequence[Delta], frontier: int, number: Callable[[pa.RecordBatch], Int64s]
    ) -> Steps:
        parts: list[tuple[Int64s, Int64s, Int64s, int]] = []  # t, key, side, sign
        ended, te = no_int64s(), no_int64s()
        for delta in inputs:
            slots, ends = self.lifetimes.closed(delta.ends)
            ended, te = np.concatenate([ended, slots]), np.concatenate([te, ends])
        slots, ends = self.lifetimes.leave(Ends(), frontier)
        ended, te = np.concatenate([ended, slots]), np.concatenate([te, ends])
        if len(ended):
            parts.append((te, self.rows[0, ended], self.rows[1, ended], -1))
            self.row_slots.give_back(ended)
        for side, delta in enumerate(inputs):
            if not len(delta):
                continue
            key = number(delta.values)
            sides = np.full(len(key), side, dtype=np.int64)
            parts.append((delta.ta, key, sides, 1))
            gone = (delta.te < frontier) & (delta.open_id == NO_OPEN_ID)
            if gone.any():
                parts.append((delta.te[gone], key[gone], sides[gone], -1))
            self._keep(key[~gone], side, delta.te[~gone], delta.open_id[~gone])
        if not parts:
            return Steps(no_int64s(), no_int64s(), np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64))
        t = np.concatenate([part[0] for part in parts])
        signs = np.concatenate([np.full(len(part[0]), part[3], dtype=np.int64) for part in parts])
        order = np.argsort(t, kind="stable")
        key = np.concatenate([part[1] for part in parts])[order]
        side_of = np.concatenate([part[2] for part in parts])[order]
        return Steps(*count_changes(t[order], key, side_of, signs[order], self.counts, self.entry_of))

    def apply(self, t: Int64s, key: Int64s, signs: Int64s) -> Steps:
        """Take changes of the counts of side 0 given outright, ascending in t."""
        return Steps(*count_changes(t, key, np.zeros(len(t), dtype=np.int64), signs, self.counts, self.entry_of))

    def forget_gone(self, steps: Steps) -> None:
        """Free the values that are nowhere any more; to be called when the step's output is gathered."""
        if len(steps.key):
            self.forget_values(nowhere_left(steps.key, self.counts, self.entry_of))

    def forget_values(self, gone: Int64s) -> None:
        """Free values that are nowhere any more, each named once."""
        self.keys.forget(gone)
        self.values.free(gone)

    def trimmed(self) -> Tally:
        """A copy without the room for more: values and rows are numbered anew."""
        alive = np.flatnonzero(self.counts.any(axis=0))
        keys = self.keys.picked(alive)
        number = np.full(max(self.counts.shape[1], 1), -1, dtype=np.int64)
        number[alive] = np.arange(len(alive))
        slots = self.row_slots.used()
        rows = self.rows[:, slots].copy()
        rows[0] = number[rows[0]]
        counts = grown(self.counts[:, alive], len(alive))
        return Tally(
            values=self.values.picked(alive, counts.shape[1]),
            keys=keys,
            counts=counts,
            entry_of=np.full(counts.shape[1], -1, dtype=np.int64),
            row_slots=SlotPool(high=len(slots)),
            rows=rows,
            lifetimes=self.lifetimes.renumbered(slots),
        )

    def trimmed_bytes(self) -> int:
        """About what `trimmed` takes."""
        values, rows = self.keys.slots.in_use, self.row_slots.in_use
        return 64 * values + 32 * rows + self.values.bytes_of(values) + self.keys.keys.bytes_of(values)

    def _keep(self, key: Int64s, side: int, te: Int64s, open_id: Int64s) -> None:
        slots = self.row_slots.take(len(key))
        if self.row_slots.high > self.rows.shape[1]:
            self.rows = grown(self.rows, self.row_slots.high)
        self.rows[0, slots] = key
        self.rows[1, slots] = side
        self.lifetimes.add(slots, te, open_id)


@dataclass
class SignedTally(Tally):
    """Of rows that are to be shown as they came: -0.0 is not 0.0."""

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> SignedTally:
        return SignedTally(RowStore.of(types))

    def _encoded(self, columns: Sequence[pa.Array], rows: int) -> Keys:
        return encode_keys(columns, rows, signed_zeros=True)

    def _kept(self, columns: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return columns


def signs(delta: Changelog) -> Int64s:
    """-1 for each row that departed, 1 for each that arrived."""
    diff = np.ones(len(delta), dtype=np.int64)
    diff[: delta.departed] = -1
    return diff


def _joined(parts: Sequence[Int64s]) -> Int64s:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@jit
def nowhere_left(keys, counts, entry_of):  # type: ignore[no-untyped-def]
    """The keys that count nothing any more, each once. `entry_of` is -1 everywhere before and after."""
    gone = np.empty(len(keys), dtype=np.int64)
    count = 0
    for k in keys:
        if counts[0, k] == 0 and counts[1, k] == 0 and entry_of[k] < 0:
            entry_of[k] = count
            gone[count] = k
            count += 1
    for k in gone[:count]:
        entry_of[k] = -1
    return gone[:count].copy()


@jit
def count_changes(t, key, side, sign, counts, entry_of):  # type: ignore[no-untyped-def]
    """`entry_of[key]` is the entry of a key at the present instant; it is -1 everywhere before and after."""
    n = len(t)
    out_t = np.empty(n, dtype=np.int64)
    out_key = np.empty(n, dtype=np.int64)
    before = np.empty((2, n), dtype=np.int64)
    after = np.empty((2, n), dtype=np.int64)
    done = 0
    i = 0
    while i < n:
        first = done
        now = t[i]
        while i < n and t[i] == now:
            k = key[i]
            entry = entry_of[k]
            if entry < 0:
                entry = done
                entry_of[k] = entry
                out_t[entry] = now
                out_key[entry] = k
                before[0, entry] = counts[0, k]
                before[1, entry] = counts[1, k]
                done += 1
            counts[side[i], k] += sign[i]
            i += 1
        last = done
        done = first
        for entry in range(first, last):
            k = out_key[entry]
            entry_of[k] = -1
            if counts[0, k] != before[0, entry] or counts[1, k] != before[1, entry]:
                out_t[done] = now
                out_key[done] = k
                before[0, done] = before[0, entry]
                before[1, done] = before[1, entry]
                after[0, done] = counts[0, k]
                after[1, done] = counts[1, k]
                done += 1
    return out_t[:done], out_key[:done], before[:, :done], after[:, :done]
