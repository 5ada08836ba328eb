"""Matches and totals: what the tactics that find matches one by one share.

Matches of one event are taken in **runs**, members[input, first:last] and their groups of[0 .. last - first]. Matches
that follow on one another in one group come to its totals together: what the event's own row brings counts as often as
they are many, and what the other rows bring is added up, call by call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels.aggregate import exact_sum
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.aggregate.cells import Words, to_cells
from transom.kernels.columns import Bytes, validity
from transom.kernels.jit import borrowing, jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.rows import CellArrays
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    COUNT,
    INPUT,
    KIND,
    LEAST,
    OF_MATCH,
    OFFSET,
    SUM_FLOAT,
    SUM_WHOLE,
    JoinAggregateSpec,
)
from transom.kernels.joinagg.totals import (
    CLOSED,
    COUNT_LEFT,
    GONE,
    MADE,
    TOUCHED,
    GroupArrays,
    ResultArrays,
    StepResults,
    Totals,
    settle,
    touch,
)
from transom.kernels.joinagg.tuple_index import IndexArrays, hash_tuple

USED, NOW, NEEDED = range(3)  # of `cursor`
RUN = 256  # matches taken together, at most; and at least, if there are as many
LEAST_RUN = 64
ROOM = 256  # groups that may be new or touched before a loop comes back for more room


class Rules(NamedTuple):
    """What compiled loops have to know of the query."""

    everything: bool
    partial: bool
    table: Int64s
    width: int
    grouping: Int64s


class MatchCells(NamedTuple):
    """Arguments that are computed for matches: cells by argument and number of the match, as those of rows."""

    hi: Int64s
    lo: Words
    valid: Bytes

    @staticmethod
    def of(arrays: Sequence[pa.Array], matches: int) -> MatchCells:
        made = MatchCells(
            np.zeros((len(arrays), matches), dtype=np.int64),
            np.zeros((len(arrays), matches), dtype=np.uint64),
            np.ones((len(arrays), matches), dtype=np.uint8),
        )
        for a, array in enumerate(arrays):
            made.hi[a], made.lo[a] = to_cells(array)
            valid = validity(array)
            if valid is not None:
                made.valid[a] = valid
        return made


class RoomArrays(NamedTuple):
    """Where compiled loops find groups, make them, and write what they show."""

    fresh: Int64s
    cursor: Int64s
    numbering: IndexArrays
    groups: GroupArrays
    out: ResultArrays


@dataclass
class GroupRoom:
    """Room for the groups that a loop makes and touches in a step, and where the loop stands. Not state.

    `cursor`: how many of the `fresh` groups are used; the instant that is not settled yet; and, when a loop stops,
    for how many groups there must be room before it can go on.
    """

    spec: JoinAggregateSpec
    totals: Totals
    results: StepResults
    fresh: Int64s = field(default_factory=no_int64s)
    cursor: Int64s = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    size: int = ROOM

    @staticmethod
    def of(spec: JoinAggregateSpec, totals: Totals, origin: int, events: int) -> GroupRoom:
        """Room to begin with; an aggregate over everything is looked at at the origin."""
        begun = totals.begin(spec)
        room = GroupRoom(spec, totals, StepResults.of(spec, events + ROOM))
        room.cursor[NOW] = origin
        room.more()
        if begun:
            touch(0, totals.arrays(), room.results.arrays())
        return room

    def more(self) -> None:
        """Room for what the loop stopped for, and some more each time."""
        self.close()
        needed = max(self.size, int(self.cursor[NEEDED]))
        self.results.room(needed)
        self.fresh = self.totals.group_room(self.spec, self.size if self.spec.group else 1)
        self.size *= 2

    def close(self) -> None:
        """Give back the groups that were not used."""
        self.totals.groups.give_back(self.fresh[int(self.cursor[USED]) :])
        self.fresh = no_int64s()
        self.cursor[USED] = 0

    def finish(self, cells: CellArrays) -> None:
        """Everything has happened: settle the last instant."""
        self.close()
        if self.results.fill[TOUCHED]:
            rules = self.rules()
            settle(
                int(self.cursor[NOW]), rules.everything, rules.partial, rules.table, rules.width, cells,
                self.totals.arrays(), self.results.arrays(),
            )  # fmt: skip

    def rules(self) -> Rules:
        spec = self.spec
        grouping = np.array(spec.group_inputs, dtype=np.int64)
        return Rules(spec.everything, spec.partial, spec.table, spec.float_width, grouping)

    def arrays(self) -> RoomArrays:
        return RoomArrays(
            self.fresh, self.cursor, self.totals.groups.arrays(), self.totals.arrays(), self.results.arrays(),
        )  # fmt: skip


@jit
def turn_to(now, rules, cells, room):  # type: ignore[no-untyped-def]
    """Something is about to happen at this instant: the one before it is over."""
    cursor = room.cursor
    if cursor[NOW] != now:
        if room.out.fill[TOUCHED] > 0:
            settle(cursor[NOW], rules.everything, rules.partial, rules.table, rules.width, cells, room.groups, room.out)
        cursor[NOW] = now


# What follows is called for every run, and borrows its arrays: to count references to them costs far more than what is
# done with them.


@borrowing
def groups_for(grouping, room):  # type: ignore[no-untyped-def]
    """How many matches more there is surely room for: each may make a group and touch it."""
    fresh, cursor, touched, fill = room.fresh, room.cursor, room.out.touched, room.out.fill
    results = len(touched) - max(fill[MADE], fill[CLOSED], fill[GONE]) - fill[TOUCHED]
    made = len(fresh) - cursor[USED]
    cursor[NEEDED] = LEAST_RUN
    if len(grouping) == 0:  # one group
        return np.int64(RUN) if made > 0 and results > 0 else np.int64(0)
    return min(results, made)


@borrowing
def enter_run(members, first, last, of, key, grouping, part, room):  # type: ignore[no-untyped-def]
    """The groups of the matches of a run, to which something happens now. There is room for them."""
    fresh, cursor, mark = room.fresh, room.cursor, room.groups.mark
    words, head, chain = room.numbering
    touched, fill = room.out.touched, room.out.fill
    width = len(words)
    g = np.int64(-1)
    for k in range(first, last):
        same = bool(g >= 0)
        for w in range(len(grouping)):
            number = part[members[grouping[w], k]]
            same = same and key[w] == number
            key[w] = number
        if not same:
            bucket = hash_tuple(key, width) & np.uint64(len(head) - 1)
            g = head[bucket]
            while g >= 0:
                same = True
                for w in range(width):
                    same = same and words[w, g] == key[w]
                if same:
                    break
                g = chain[g]
            if g < 0:
                g = fresh[cursor[USED]]
                cursor[USED] += 1
                for w in range(width):
                    words[w, g] = key[w]
                chain[g] = head[bucket]
                head[bucket] = g
            if mark[g] == 0:
                mark[g] = 1
                touched[fill[TOUCHED]] = g
                fill[TOUCHED] += 1
        of[k - first] = g


@borrowing
def add_run(slot, own_input, sign, members, first, last, of, table, width, cells, room):  # type: ignore[no-untyped-def]
    """The groups of a run of the row in `slot` get (or, with sign -1, lose) its matches."""
    hi, lo, valid = cells.hi, cells.lo, cells.valid
    rows, counts, floats, fill = room.groups.rows, room.groups.counts, room.groups.floats, room.out.fill
    sum_top, sum_hi, sum_lo = room.groups.sum_top, room.groups.sum_hi, room.groups.sum_lo
    count = last - first
    beyond = False
    for c in range(-1, len(table)):  # -1: the join rows
        kind = np.int64(COUNT) if c < 0 else table[c, KIND]
        i = own_input if c < 0 else table[c, INPUT]
        if i < 0 or kind >= LEAST:
            continue
        a = np.int64(0) if c < 0 else table[c, ARGUMENT]
        there = c < 0 or i != own_input or valid[a, slot] == 1
        k = 0
        while k < count and there:
            g = of[k]
            n = np.int64(0)
            high = np.int64(0)
            low = np.uint64(0)
            top = np.int64(0)
            if i == own_input:
                while k < count and of[k] == g:
                    n += 1
                    k += 1
                if kind == SUM_WHOLE:
                    high, low, top = wide.times(hi[a, slot], lo[a, slot], n)
                elif kind == SUM_FLOAT:
                    value = np.uint64(lo[a, slot]).view(np.float64)
                    exact_times.add_value(floats[g * width + table[c, OFFSET]], value, sign * n)
            else:
                while k < count and of[k] == g:
                    s = members[i, first + k]
                    k += 1
                    if valid[a, s] == 0:
                        continue
                    n += 1
                    if kind == SUM_WHOLE:
                        high, low, carry = add_wide(high, low, hi[a, s], lo[a, s], 1)
                        top += carry
                    elif kind == SUM_FLOAT:
                        value = np.uint64(lo[a, s]).view(np.float64)
                        exact_sum.add(floats[g * width + table[c, OFFSET]], value, sign)
            if c < 0:
                rows[g], over = wide.add_count(rows[g], sign * n)
            else:
                counts[c, g], over = wide.add_count(counts[c, g], sign * n)
            beyond = beyond or over
            if kind == SUM_WHOLE:
                sum_hi[c, g], sum_lo[c, g], carry = add_wide(sum_hi[c, g], sum_lo[c, g], high, low, sign)
                if carry != 0 or top != 0:
                    sum_top[c, g] += carry + sign * top
    if beyond:
        fill[COUNT_LEFT] = 1


@borrowing
def add_matches(sign, first, last, of, table, width, made, groups):  # type: ignore[no-untyped-def]
    """The groups of a run get (or, with sign -1, lose) what was computed for its matches."""
    hi, lo, valid = made.hi, made.lo, made.valid
    counts, floats = groups.counts, groups.floats
    sum_top, sum_hi, sum_lo = groups.sum_top, groups.sum_hi, groups.sum_lo
    for c in range(len(table)):
        if table[c, INPUT] != OF_MATCH:
            continue
        kind = table[c, KIND]
        a = table[c, ARGUMENT]
        for k in range(first, last):
            if valid[a, k] == 0:
                continue
            g = of[k - first]
            counts[c, g] += sign  # never more than there are join rows
            if kind == SUM_WHOLE:
                sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], hi[a, k], lo[a, k], sign)
                if over != 0:
                    sum_top[c, g] += over
            elif kind == SUM_FLOAT:
                value = np.uint64(lo[a, k]).view(np.float64)
                exact_sum.add(floats[g * width + table[c, OFFSET]], value, sign)
