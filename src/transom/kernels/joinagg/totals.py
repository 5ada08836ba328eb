"""The totals of the groups of a join-aggregate, and the loop pieces that all its tactics share.

A group is a tuple of part numbers (see rows.py), one for each input that has columns to group by. Its totals are the
number of join rows, and per call a count, a sum (three words or an exact floating one) or a heap. A heap holds entries:
an **entry** is a member of a group whose value is that of a row (`at[h, entry]` is its slot, -1: none); the row must
stay in its slot until the entry lets go of it. Groups without rows are all zeros, so a new group needs no care.

A tactic goes through what happens in the order of time in a compiled loop, touches each group that something happens
to, changes its totals, and, when an instant is over, calls `settle` (or `emit_rows`). That writes a result for each
touched group that shows another one than before. Before the loop goes on there must be room: for a new group in
`fresh`, and in the results for every group that may be touched (`StepResults.room`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.core.errors import EvaluationError
from transom.kernels.aggregate import exact_sum, ordered
from transom.kernels.aggregate.cells import Words
from transom.kernels.aggregate.ordered import check_heaps
from transom.kernels.jit import inlined, jit
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    COUNT_ROWS,
    KIND,
    LEAST,
    OFFSET,
    SUM_FLOAT,
    SUM_WHOLE,
    TEXT,
    JoinAggregateSpec,
)
from transom.kernels.joinagg.tuple_index import TupleIndex
from transom.kernels.kernel import OPEN_END
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.state.checks import need, within
from transom.state.slots import SlotPool, grown

MADE, CLOSED, GONE, TOUCHED, COUNT_LEFT = range(5)  # what `StepResults.fill` counts, and a flag
_WORDS: Final = ("sum_top", "sum_hi", "sum_lo", "last_top", "last_hi", "last_lo", "last_n")


class GroupArrays(NamedTuple):
    """What compiled loops read and write of the totals; as they are called there."""

    rows: Int64s
    shown: Int64s
    mark: Int64s
    counts: Int64s
    sum_top: Int64s
    sum_hi: Int64s
    sum_lo: Words
    last_top: Int64s
    last_hi: Int64s
    last_lo: Words
    last_n: Int64s
    floats: Int64s
    roots: Int64s
    links: Int64s
    at: Int64s


class ResultArrays(NamedTuple):
    """What compiled loops write of the results."""

    group: Int64s
    ta: Int64s
    te: Int64s
    rows: Int64s
    top: Int64s
    hi: Int64s
    lo: Words
    n: Int64s
    floats: Int64s
    open_id: Int64s
    end: Int64s
    gone: Int64s
    touched: Int64s
    fill: Int64s


@dataclass
class Totals:
    """By group: what it is now and what it last showed. `shown` is an open row id, -1 for nothing."""

    groups: TupleIndex
    counts: Int64s
    sum_top: Int64s
    sum_hi: Int64s
    sum_lo: Words
    last_top: Int64s
    last_hi: Int64s
    last_lo: Words
    last_n: Int64s
    roots: Int64s
    floats: Int64s
    entry_links: Int64s
    entry_at: Int64s
    rows: Int64s = field(default_factory=no_int64s)
    shown: Int64s = field(default_factory=no_int64s)
    mark: Int64s = field(default_factory=no_int64s)
    entries: SlotPool = field(default_factory=SlotPool)
    started: bool = False

    def check_spec(self, spec: JoinAggregateSpec, rows: int, of_group: Int64s) -> None:
        """`rows` is how many slots there are, and `of_group` the group of each entry of the heaps."""
        groups = len(self.rows)
        by_group = (
            self.counts, self.sum_top, self.sum_hi, self.sum_lo, self.last_top, self.last_hi, self.last_lo, self.last_n,
            self.roots,
        )  # fmt: skip
        need(self.groups.slots.high <= groups and all(array.shape[-1] == groups for array in by_group))
        need(len(self.shown) == len(self.mark) == groups and not self.mark.any())
        need(len(self.floats) >= groups * spec.float_width and (not spec.everything or not self.started or groups > 0))
        calls = np.array([kind >= LEAST for kind in spec.table[:, KIND]], dtype=np.bool_)
        within(self.last_hi[calls][self.last_n[calls] > 0], rows)
        entries = self.entry_at.shape[1]
        need(self.entry_links.shape[-1] == entries)
        within(self.entry_at, max(rows, 1), -1)
        group = np.full(entries, -1, dtype=np.int64)
        group[: len(of_group)] = of_group[:entries]
        for roots, links, at in zip(self.roots, self.entry_links, self.entry_at, strict=True):
            check_heaps(roots, links, at >= 0, group)

    def owned(self) -> list[Int64s]:
        return [self.shown[self.shown != -1]]

    @staticmethod
    def of(spec: JoinAggregateSpec) -> Totals:
        calls, heaps = len(spec.calls), spec.heap_width
        numbers = np.zeros((calls, 0), dtype=np.int64)
        words = np.zeros((calls, 0), dtype=np.uint64)
        return Totals(
            groups=TupleIndex.of(max(len(spec.group_inputs), 1)),
            counts=numbers,
            sum_top=numbers.copy(),
            sum_hi=numbers.copy(),
            sum_lo=words,
            last_top=numbers.copy(),
            last_hi=numbers.copy(),
            last_lo=words.copy(),
            last_n=numbers.copy(),
            roots=np.zeros((heaps, 0), dtype=np.int64),
            floats=np.zeros((0, exact_sum.WIDTH), dtype=np.int64),
            entry_links=np.zeros((heaps, 3, 0), dtype=np.int64),
            entry_at=np.zeros((heaps, 0), dtype=np.int64),
        )

    def group_room(self, spec: JoinAggregateSpec, count: int) -> Int64s:
        """Numbers for so many new groups, to be used in order; give those not used back to `groups`."""
        fresh = self.groups.room(count)
        self._grow(spec)
        return fresh

    def number(self, spec: JoinAggregateSpec, words: Int64s) -> Int64s:
        """The group of each tuple of part numbers words[:, i]; one constant word where nothing is grouped by."""
        numbers, _ = self.groups.number(words)
        self._grow(spec)
        return numbers

    def _grow(self, spec: JoinAggregateSpec) -> None:
        if self.groups.slots.high <= len(self.rows):
            return
        self.rows = grown(self.rows, self.groups.slots.high)
        size = len(self.rows)
        for name in ("shown", "roots"):
            setattr(self, name, grown(getattr(self, name), size, -1))
        for name in ("mark", "counts", *_WORDS):
            setattr(self, name, grown(getattr(self, name), size))
        bigger = np.zeros((size * spec.float_width, exact_sum.WIDTH), dtype=np.int64)
        bigger[: len(self.floats)] = self.floats
        self.floats = bigger

    def begin(self, spec: JoinAggregateSpec) -> bool:
        """True once, for an aggregate over everything: its group is number 0 and is to be looked at at the origin."""
        if self.started or not spec.everything:
            return False
        self.started = True
        self.number(spec, np.zeros((1, 1), dtype=np.int64))
        return True

    def entry_room(self, count: int) -> Int64s:
        """Numbers for so many new entries; give those not used back to `entries`."""
        fresh = self.entries.take(count)
        self.reserve_entries(self.entries.high)
        return fresh

    def reserve_entries(self, high: int) -> None:
        """Room for entries below `high`, where others number them."""
        if high > self.entry_at.shape[1]:
            self.entry_at = grown(self.entry_at, high, -1)
            self.entry_links = grown(self.entry_links, self.entry_at.shape[1], -1)

    def arrays(self) -> GroupArrays:
        return GroupArrays(
            self.rows, self.shown, self.mark, self.counts, self.sum_top, self.sum_hi, self.sum_lo,
            self.last_top, self.last_hi, self.last_lo, self.last_n, self.floats, self.roots, self.entry_links,
            self.entry_at,
        )  # fmt: skip

    def compacted(self) -> Totals:
        names = ("counts", *_WORDS, "roots", "rows", "shown", "mark")
        high = self.groups.slots.high
        width = len(self.floats) // max(len(self.rows), 1)
        return trimmed(self, high, names, floats=self.floats[: high * width])

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())

    def forget_empty(self, gone: Int64s) -> None:
        """Groups that had no rows at some instant of the step: those that have none now are forgotten."""
        if len(gone):
            unique = np.unique(gone)
            self.groups.forget(unique[self.rows[unique] == 0])


@dataclass
class StepResults:
    """What a step shows: rows by group with their lifetimes, and the open row ids that it closes. Not state.

    `top`, `hi`, `lo`, `n` are by call: top and high word (or, for MIN and MAX, the slot of the row), low word, count.
    `rows` are the join rows. `floats` are exact totals, kept for partial results only.
    """

    capacity: int
    group: Int64s
    ta: Int64s
    te: Int64s
    rows: Int64s
    top: Int64s
    hi: Int64s
    lo: Words
    n: Int64s
    floats: Int64s
    open_id: Int64s
    end: Int64s
    gone: Int64s
    touched: Int64s
    fill: Int64s

    @staticmethod
    def of(spec: JoinAggregateSpec, capacity: int) -> StepResults:
        """Empty, with room for so many rows."""
        calls = len(spec.calls)
        floats = spec.float_width if spec.partial else 0
        flat = [np.empty(capacity, dtype=np.int64) for _ in range(8)]
        return StepResults(
            capacity, flat[0], flat[1], flat[2], flat[3],
            np.empty((calls, capacity), dtype=np.int64), np.empty((calls, capacity), dtype=np.int64),
            np.empty((calls, capacity), dtype=np.uint64), np.empty((calls, capacity), dtype=np.int64),
            np.empty((capacity * floats, exact_sum.WIDTH), dtype=np.int64),
            flat[4], flat[5], flat[6], flat[7], np.zeros(5, dtype=np.int64),
        )  # fmt: skip

    def room(self, more: int) -> None:
        """Make room for `more` touched groups beyond what is in it."""
        needed = int(self.fill[:4].max() + self.fill[TOUCHED]) + more
        if needed <= self.capacity:
            return
        size = max(needed, 2 * self.capacity, 64)
        for name in ("group", "ta", "te", "rows", "open_id", "end", "gone", "touched", "top", "hi", "lo", "n"):
            old = getattr(self, name)
            bigger = np.empty((*old.shape[:-1], size), dtype=old.dtype)
            bigger[..., : old.shape[-1]] = old
            setattr(self, name, bigger)
        if len(self.floats):
            width = len(self.floats) // self.capacity
            bigger = np.empty((size * width, exact_sum.WIDTH), dtype=np.int64)
            bigger[: len(self.floats)] = self.floats
            self.floats = bigger
        self.capacity = size

    def arrays(self) -> ResultArrays:
        return ResultArrays(
            self.group, self.ta, self.te, self.rows, self.top, self.hi, self.lo, self.n, self.floats,
            self.open_id, self.end, self.gone, self.touched, self.fill,
        )  # fmt: skip

    def check(self) -> None:
        """Raise what the loop could not."""
        if self.fill[COUNT_LEFT]:
            raise EvaluationError(
                f"a join has more than {2**63 - 1:,} rows at one instant", remedy="use narrower windows or more keys"
            )


@jit
def touch(g, groups, out):  # type: ignore[no-untyped-def]
    """Remember that something happens to a group at this instant."""
    if groups.mark[g] == 0:
        groups.mark[g] = 1
        touched, fill = out.touched, out.fill
        touched[fill[TOUCHED]] = g
        fill[TOUCHED] += 1


@jit
def room_left(out):  # type: ignore[no-untyped-def]
    """How many more groups may be touched before the results need more room."""
    fill = out.fill
    used = max(max(fill[MADE], fill[CLOSED]), fill[GONE])
    return len(out.group) - used - fill[TOUCHED]


@jit
def set_entry(c, g, entry, slot, table, cells, groups):  # type: ignore[no-untyped-def]
    """The value of an entry in the heap of a MIN or MAX becomes that of the row in a slot; -1: it has none."""
    h = table[c, OFFSET]
    a = table[c, ARGUMENT]
    turn = 1 if table[c, KIND] == LEAST else -1
    roots, links, at = groups.roots, groups.links, groups.at
    values = (cells.hi[a], cells.lo[a], at[h])
    text = (cells.start, cells.length, cells.arena, cells.text_width, table[c, TEXT])
    if at[h, entry] == slot:
        return
    if at[h, entry] >= 0:
        roots[h, g] = ordered.remove(roots[h, g], entry, turn, links[h], values, text)
    at[h, entry] = slot
    if slot >= 0:
        roots[h, g] = ordered.insert(roots[h, g], entry, turn, links[h], values, text)


@jit
def settle(now, everything, partial, table, width, cells, groups, out):  # type: ignore[no-untyped-def]
    """The instant is over: emit the results of the touched groups that changed. `width` is that of the floats."""
    emit_rows(now, everything, partial, table, width, cells, groups, out)


@inlined
def emit_rows(now, everything, partial, table, width, cells, groups, out):  # type: ignore[no-untyped-def]
    """As `settle`, for loops. For a constant it would be compiled once more: it is given np.bool_(False), not False."""
    rows, shown, mark, counts, sum_top, sum_hi, sum_lo, last_top, last_hi, last_lo, last_n, floats, roots, _, at = (
        groups
    )
    (
        out_group,
        out_ta,
        out_te,
        out_rows,
        out_top,
        out_hi,
        out_lo,
        out_n,
        out_floats,
        open_id,
        end,
        gone,
        touched,
        fill,
    ) = out
    made = fill[MADE]
    closed = fill[CLOSED]
    for k in range(fill[TOUCHED]):
        g = touched[k]
        mark[g] = 0
        empty = rows[g] == 0 and not everything
        same = shown[g] != -1 and not empty
        if not empty:
            for c in range(len(table)):
                kind = table[c, KIND]
                now_n = rows[g] if kind == COUNT_ROWS else counts[c, g]
                now_top = np.int64(0)
                now_hi = np.int64(0)
                now_lo = np.uint64(0)
                if kind == SUM_WHOLE:
                    now_top = sum_top[c, g]
                    now_hi = sum_hi[c, g]
                    now_lo = sum_lo[c, g]
                elif kind == SUM_FLOAT:
                    if partial:
                        same = False  # the exact sum may differ where the rounded one does not
                    else:
                        now_lo = np.float64(exact_sum.rounded(floats[g * width + table[c, OFFSET]])).view(np.uint64)
                elif kind >= LEAST:
                    h = table[c, OFFSET]
                    now_hi = np.int64(-1) if roots[h, g] < 0 else at[h, roots[h, g]]
                    now_n = np.int64(1) if now_hi >= 0 else np.int64(0)
                if now_n != last_n[c, g]:
                    same = False
                elif kind < LEAST:
                    same = same and now_hi == last_hi[c, g] and now_lo == last_lo[c, g] and now_top == last_top[c, g]
                elif same and now_n and now_hi != last_hi[c, g]:
                    a = table[c, ARGUMENT]
                    text = (cells.start, cells.length, cells.arena, cells.text_width, table[c, TEXT])
                    same = ordered.compare(now_hi, last_hi[c, g], (cells.hi[a], cells.lo[a]), text) == 0
                last_top[c, g] = now_top
                last_hi[c, g] = now_hi
                last_lo[c, g] = now_lo
                last_n[c, g] = now_n
        if same:
            continue
        if shown[g] >= 0:
            open_id[closed] = shown[g]
            end[closed] = now
            closed += 1
        elif shown[g] <= -2:
            out_te[-2 - shown[g]] = now
        if empty:
            shown[g] = -1
            gone[fill[GONE]] = g
            fill[GONE] += 1
            continue
        shown[g] = -2 - made
        out_group[made] = g
        out_ta[made] = now
        out_te[made] = OPEN_END
        out_rows[made] = rows[g]
        for c in range(len(table)):
            out_top[c, made] = last_top[c, g]
            out_hi[c, made] = last_hi[c, g]
            out_lo[c, made] = last_lo[c, g]
            out_n[c, made] = last_n[c, g]
        if partial:
            for f in range(width):
                exact_sum.carry(floats[g * width + f])
                out_floats[made * width + f] = floats[g * width + f]
        made += 1
    fill[MADE] = made
    fill[CLOSED] = closed
    fill[TOUCHED] = 0
