"""Credits: what a row brought to the groups as the member of its matches that ends first (CV and MV of paper 5).

A credit belongs to a row, its owner, and a group. It holds the number of matches, and per call the count and the sum of
what other rows brought to them; for MIN and MAX it is an entry of the totals (see totals.py) whose value is that of the
row with the best one: that row ends no sooner than the owner, so it is there as long as it is needed. What the owner
itself brought is its own value so many times, and needs no sum. Floating sums of other rows' values are exact and
large, so they lie in a pool of their own and only credits that have such values have one.

The credits of an owner are a list from `entries[owner, CREDIT]` on; `index` finds that of (owner, group) at once where
it is not the first of the list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.kernels.aggregate import exact_sum, ordered
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.jit import borrowing, jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.live_rows import CREDIT, TE
from transom.kernels.joinagg.matches import NEEDED, turn_to
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    INPUT,
    KIND,
    LEAST,
    OFFSET,
    SUM_FLOAT,
    SUM_WHOLE,
    TEXT,
    JoinAggregateSpec,
)
from transom.kernels.joinagg.totals import (
    COUNT_LEFT,
    TOUCHED,
    Totals,
    room_left,
    set_entry,
)
from transom.kernels.joinagg.tuple_index import IndexArrays, TupleIndex, hash_tuple
from transom.kernels.sound import belong, listed_in_use, numbered
from transom.state.checks import need, within
from transom.state.slots import SlotPool

OWNER, GROUP = range(2)  # words of a credit in the index
NEXT_CREDIT, MATCHES, CALLS = range(3)  # columns of `cells`; then PER_CALL for each: a count and the words of a sum
PER_CALL = 4
USED_CREDITS, USED_FLOATS = range(2)  # of `cursor`
ROOM = 256


class BookArrays(NamedTuple):
    """Where compiled loops find credits, and make them."""

    fresh: Int64s
    fresh_floats: Int64s
    cursor: Int64s
    numbering: IndexArrays
    cells: Int64s
    float_at: Int64s
    floats: Int64s


@dataclass
class Credits:
    cells: Int64s
    float_at: Int64s  # by float total and credit: the row of `floats`, or -1
    floats: Int64s
    index: TupleIndex = field(default_factory=lambda: TupleIndex.of(2))
    float_slots: SlotPool = field(default_factory=SlotPool)

    def check_spec(self, owners: Int64s, first: Int64s, groups: SlotPool) -> None:
        """`first` starts the list of the credits of each owner."""
        pool = self.index.slots
        need(pool.high <= len(self.cells) and pool.high <= self.float_at.shape[1])
        following = np.ascontiguousarray(self.cells[:, NEXT_CREDIT])
        listed_in_use(first, following, pool)
        of = np.ascontiguousarray(self.index.words[OWNER])
        need(bool(belong(np.ascontiguousarray(first), owners, following, of)))
        numbered(self.index.words[GROUP, pool.used()], groups)
        floats = self.float_at[:, pool.used()]
        floats = floats[floats != -1]
        numbered(floats, self.float_slots)
        need(len(np.unique(floats)) == len(floats))
        within(self.float_slots.used(), len(self.floats))

    @staticmethod
    def of(spec: JoinAggregateSpec) -> Credits:
        return Credits(
            cells=np.zeros((0, CALLS + PER_CALL * len(spec.calls)), dtype=np.int64),
            float_at=np.full((spec.float_width, 0), -1, dtype=np.int64),
            floats=np.zeros((0, exact_sum.WIDTH), dtype=np.int64),
        )

    def forget(self, ended: Int64s, entries: Int64s) -> Int64s:
        """The credits of these owners have been taken away: they are free again. Says which they were."""
        gone: Int64s = listed(ended, entries, self.cells)
        used = self.float_at[:, gone]
        used = used[used >= 0]
        self.floats[used] = 0
        self.float_slots.give_back(used)
        self.float_at[:, gone] = -1
        self.cells[gone] = 0
        self.index.forget(gone)
        return gone


@dataclass
class CreditRoom:
    """Room for the credits that a loop makes in a step. Not state."""

    credits: Credits
    fresh: Int64s = field(default_factory=no_int64s)
    fresh_floats: Int64s = field(default_factory=no_int64s)
    cursor: Int64s = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    size: int = ROOM

    def more(self, totals: Totals) -> None:
        self.close()
        credits = self.credits
        self.fresh = credits.index.room(self.size)
        capacity = len(credits.index.next)
        if capacity > len(credits.cells):
            credits.cells = _longer(credits.cells, capacity)
            float_at = np.full((len(credits.float_at), capacity), -1, dtype=np.int64)
            float_at[:, : credits.float_at.shape[1]] = credits.float_at
            credits.float_at = float_at
            totals.reserve_entries(capacity)
        if len(credits.float_at):
            self.fresh_floats = credits.float_slots.take(self.size * len(credits.float_at))
            if credits.float_slots.high > len(credits.floats):
                credits.floats = _longer(credits.floats, max(credits.float_slots.high, 2 * len(credits.floats)))
        self.size *= 2

    def close(self) -> None:
        """Give back what was not used."""
        self.credits.index.give_back(self.fresh[int(self.cursor[USED_CREDITS]) :])
        self.credits.float_slots.give_back(self.fresh_floats[int(self.cursor[USED_FLOATS]) :][::-1])
        self.fresh = self.fresh_floats = no_int64s()
        self.cursor[:] = 0

    def arrays(self) -> BookArrays:
        credits = self.credits
        return BookArrays(
            self.fresh, self.fresh_floats, self.cursor, credits.index.arrays(), credits.cells, credits.float_at,
            credits.floats,
        )  # fmt: skip


def _longer(array: Int64s, size: int) -> Int64s:
    bigger = np.zeros((size, array.shape[1]), dtype=np.int64)
    bigger[: len(array)] = array
    return bigger


@jit
def listed(owners, entries, credit_cells):  # type: ignore[no-untyped-def]
    """The credits of these owners, whose lists are empty from now on."""
    count = 0
    for s in owners:
        e = entries[s, CREDIT]
        while e >= 0:
            count += 1
            e = credit_cells[e, NEXT_CREDIT]
    credits = np.empty(count, dtype=np.int64)
    count = 0
    for s in owners:
        e = entries[s, CREDIT]
        while e >= 0:
            credits[count] = e
            count += 1
            e = credit_cells[e, NEXT_CREDIT]
        entries[s, CREDIT] = -1
    return credits


# What follows is called for every run or credit, and borrows its arrays: see matches.py.


@borrowing
def room_for(book):  # type: ignore[no-untyped-def]
    """How many matches more there is surely room for: each may make a credit, with all its floating sums."""
    room = len(book.fresh) - book.cursor[USED_CREDITS]
    if len(book.float_at):
        room = min(room, (len(book.fresh_floats) - book.cursor[USED_FLOATS]) // len(book.float_at))
    return room


@borrowing
def find_credits(slot, members, first, last, of, owners, credits, pair, entries, book):  # type: ignore[no-untyped-def]
    """Who gets the matches of a run, and in which credits; these are made where they are not there yet.

    It is the member that ends first; of equal ends, one that was there before the row in `slot`, which found them.
    `pair` is room for two words.
    """
    fresh, cursor, credit_cells = book.fresh, book.cursor, book.cells
    words, head, chain = book.numbering
    for k in range(first, last):
        g = of[k - first]
        owner = slot
        for i in range(len(members)):
            s = members[i, k]
            if entries[s, TE] < entries[owner, TE] or (owner == slot and entries[s, TE] == entries[owner, TE]):
                owner = s
        e = entries[owner, CREDIT]
        if e < 0 or words[GROUP, e] != g:
            pair[OWNER] = owner
            pair[GROUP] = g
            bucket = hash_tuple(pair, 2) & np.uint64(len(head) - 1)
            e = head[bucket]
            while e >= 0 and (words[OWNER, e] != owner or words[GROUP, e] != g):
                e = chain[e]
            if e < 0:
                e = fresh[cursor[USED_CREDITS]]
                cursor[USED_CREDITS] += 1
                words[OWNER, e] = owner
                words[GROUP, e] = g
                chain[e] = head[bucket]
                head[bucket] = e
                credit_cells[e, NEXT_CREDIT] = entries[owner, CREDIT]
                entries[owner, CREDIT] = e
        credit_cells[e, MATCHES] += 1
        owners[k - first] = owner
        credits[k - first] = e


@borrowing
def credit_run(  # type: ignore[no-untyped-def]
    members, first, last, of, owners, credits, heaped, table, cells, book, groups
):
    """The matches of a run go into their credits: counts, sums of what rows other than the owner bring, best values.

    Best values are put in the heaps of the groups, too, or, where not `heaped`, only written down.
    """
    hi, lo, valid, at = cells.hi, cells.lo, cells.valid, groups.at
    credit_cells, float_at, floats = book.cells, book.float_at, book.floats
    fresh_floats, cursor = book.fresh_floats, book.cursor
    for c in range(len(table)):
        i = table[c, INPUT]
        if i < 0:
            continue
        a = table[c, ARGUMENT]
        kind = table[c, KIND]
        index = table[c, OFFSET]
        cell = CALLS + PER_CALL * c
        for k in range(first, last):
            s = members[i, k]
            if valid[a, s] == 0:
                continue
            e = credits[k - first]
            credit_cells[e, cell] += 1
            if kind >= LEAST:
                best = at[index, e]
                if best < 0 or (best != s and better(c, s, best, table, cells)):
                    if heaped:
                        set_entry(c, of[k - first], e, s, table, cells, groups)
                    else:
                        at[index, e] = s
            elif s == owners[k - first]:
                continue
            elif kind == SUM_WHOLE:
                high, low, over = add_wide(
                    credit_cells[e, cell + 1], np.uint64(credit_cells[e, cell + 2]), hi[a, s], lo[a, s], 1
                )
                credit_cells[e, cell + 1] = high
                credit_cells[e, cell + 2] = np.int64(low)
                if over != 0:
                    credit_cells[e, cell + 3] += over
            elif kind == SUM_FLOAT:
                if float_at[index, e] < 0:
                    float_at[index, e] = fresh_floats[cursor[USED_FLOATS]]
                    cursor[USED_FLOATS] += 1
                exact_sum.add(floats[float_at[index, e]], np.uint64(lo[a, s]).view(np.float64), 1)


@borrowing
def better(c, s, than, table, cells):  # type: ignore[no-untyped-def]
    """Whether the row in a slot has a better value for a MIN or MAX than another one."""
    hi, lo = cells.hi, cells.lo
    a = table[c, ARGUMENT]
    if hi[a, s] != hi[a, than]:
        return (hi[a, s] < hi[a, than]) == (table[c, KIND] == LEAST)
    if lo[a, s] != lo[a, than]:
        return (lo[a, s] < lo[a, than]) == (table[c, KIND] == LEAST)
    if table[c, TEXT] < 0:
        return False
    text = (cells.start, cells.length, cells.arena, cells.text_width, table[c, TEXT])
    order = ordered.compare(s, than, (hi[a], lo[a]), text)
    return order < 0 if table[c, KIND] == LEAST else order > 0


@borrowing
def count_credit(e, g, owner, own_input, sign, table, width, cells, book, room):  # type: ignore[no-untyped-def]
    """The sums of a credit come to its group, or, with sign -1, are taken away."""
    hi, lo, credit_cells, float_at, credit_floats = cells.hi, cells.lo, book.cells, book.float_at, book.floats
    rows, counts, floats, fill = room.groups.rows, room.groups.counts, room.groups.floats, room.out.fill
    sum_top, sum_hi, sum_lo = room.groups.sum_top, room.groups.sum_hi, room.groups.sum_lo
    rows[g], beyond = wide.add_count(rows[g], sign * credit_cells[e, MATCHES])
    for c in range(len(table)):
        kind = table[c, KIND]
        i = table[c, INPUT]
        cell = CALLS + PER_CALL * c
        n = credit_cells[e, cell]
        if i < 0 or n == 0 or kind >= LEAST:
            continue
        a = table[c, ARGUMENT]
        counts[c, g], left = wide.add_count(counts[c, g], sign * n)
        beyond = beyond or left
        if kind == SUM_WHOLE:
            high, low, top = credit_cells[e, cell + 1], np.uint64(credit_cells[e, cell + 2]), credit_cells[e, cell + 3]
            if i == own_input:
                high, low, top = wide.times(hi[a, owner], lo[a, owner], n)
            sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], high, low, sign)
            if over != 0 or top != 0:
                sum_top[c, g] += over + sign * top
        elif kind == SUM_FLOAT:
            total = floats[g * width + table[c, OFFSET]]
            if i == own_input:
                exact_times.add_value(total, np.uint64(lo[a, owner]).view(np.float64), sign * n)
            else:
                exact_times.add_total(total, credit_floats[float_at[table[c, OFFSET], e]], sign)
    if beyond:
        fill[COUNT_LEFT] = 1


@jit
def take_away(now, owner, own_input, rules, cells, entries, book, room):  # type: ignore[no-untyped-def]
    """An owner ends, and its credits with it; no other row is touched. False: there must be more room first."""
    table, groups, mark = rules.table, room.groups, room.groups.mark
    words, credit_cells = book.numbering.words, book.cells
    touched, fill = room.out.touched, room.out.fill
    count = 0
    e = entries[owner, CREDIT]
    while e >= 0:
        count += 1
        e = credit_cells[e, NEXT_CREDIT]
    if count == 0:
        return True
    turn_to(now, rules, cells, room)
    if room_left(room.out) < count:
        room.cursor[NEEDED] = count
        return False
    e = entries[owner, CREDIT]
    while e >= 0:
        g = words[GROUP, e]
        if mark[g] == 0:
            mark[g] = 1
            touched[fill[TOUCHED]] = g
            fill[TOUCHED] += 1
        count_credit(e, g, owner, own_input, -1, table, rules.width, cells, book, room)
        for c in range(len(table)):
            if table[c, KIND] >= LEAST and groups.at[table[c, OFFSET], e] >= 0:
                set_entry(c, g, e, -1, table, cells, groups)
        e = credit_cells[e, NEXT_CREDIT]
    return True
