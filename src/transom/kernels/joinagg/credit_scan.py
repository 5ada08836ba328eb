"""TC as the paper has it: the answer is added up from the credits of all rows alive, at each arrival (section 1.2).

Meaning: at every instant the aggregates of the join of the snapshots.
Emits: an open row when the results change, and the end of the one before.
Keeps: the rows alive and a credit for each that has matches.
Needs: ends that are known when a row begins; one key or none, no other predicate; no groups. It is there to be measured
    beside credit.py, which keeps running totals instead.
Costs: at each arrival a walk over its matches and one over all rows alive; at an instant at which rows only end, one
    over all rows alive.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(ta, te):
...     return Delta(pa.record_batch({"k": [7]}), np.array([ta]), np.array([te]), np.full(1, NO_OPEN_ID), frontier=9)
>>> types = (pa.int64(),)
>>> spec = JoinAggregateSpec(
...     (types, types), ((0,), (0,)), None, (), (JoinCall("count"),), pa.schema([("n", pa.int64())])
... )
>>> kernel = CreditScanKernel(spec)
>>> out = kernel.step(kernel.start(), (rows(1, 5), rows(2, 8)), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist()
([0, 1, 0], [0, 2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # noqa: F401 -- for the example above

from transom.core.delta import NO_OPEN_ID, Delta
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.jit import jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.credit import CreditState
from transom.kernels.joinagg.credit_entries import (
    CALLS,
    MATCHES,
    OWNER,
    PER_CALL,
    CreditRoom,
    Credits,
    better,
    credit_run,
    find_credits,
    room_for,
)
from transom.kernels.joinagg.live_rows import CHAIN, CREDIT, LiveRows, first_tuple, link, next_tuple, unlink
from transom.kernels.joinagg.matches import NOW, RUN, GroupRoom, turn_to
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    INPUT,
    KIND,
    LEAST,
    OFFSET,
    SUM_FLOAT,
    SUM_WHOLE,
    JoinAggregateSpec,
    JoinCall,  # noqa: F401 -- for the example above
)
from transom.kernels.joinagg.step_delta import show
from transom.kernels.joinagg.totals import COUNT_LEFT, Totals, touch
from transom.kernels.kernel import Step


@dataclass(frozen=True)
class CreditScanKernel:
    spec: JoinAggregateSpec

    def start(self) -> CreditState:
        assert self.spec.everything and self.spec.residual is None, "the paper's algorithm has no groups"
        return CreditState(LiveRows.of(self.spec, credited=True), Totals.of(self.spec), Credits.of(self.spec))

    def step(self, state: CreditState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        assert all((delta.open_id == NO_OPEN_ID).all() for delta in inputs), "credits need ends that are known"
        live, totals = state.live, state.totals
        events = live.events(self.spec, inputs, step.frontier)
        room = GroupRoom.of(self.spec, totals, step.origin, len(events.t))
        book = CreditRoom(state.credits)
        event, going = 0, False
        index = np.zeros(len(inputs), dtype=np.int64)
        while event < len(events.t):
            book.more(totals)
            event, going = scan(
                event, going, index, book.credits.index.slots.high, events, (live.entries, live.head), room.rules(),
                live.rows.cells(self.spec), book.arrays(), room.arrays(),
            )  # fmt: skip
        book.close()
        room.finish(live.rows.cells(self.spec))
        out = show(self.spec, totals, live.rows, room.results, step)
        totals.entry_at[:, state.credits.forget(events.ended, live.entries)] = -1
        live.release(self.spec, events.ended)
        return out


@jit
def add_up(inputs, high, rows, rules, cells, book, room):  # type: ignore[no-untyped-def]
    """The totals, from nothing: lines (8) to (11) of TC-COUNT, (15) to (18) of TC-MAX.

    The credits lie side by side and are read in that order, those of all rows alive; what ended has none. One pass for
    each call, with its totals in registers: to hand the arrays over for every credit, as to `count_credit`, would cost
    ten times as much as to add it up.
    """
    entries, _ = rows
    _, _, table, width, _ = rules
    groups, fill = room.groups, room.out.fill
    words, credit_cells, float_at, own_floats = book.numbering.words, book.cells, book.float_at, book.floats
    total_rows, counts, floats, roots, at = groups.rows, groups.counts, groups.floats, groups.roots, groups.at
    sum_top, sum_hi, sum_lo = groups.sum_top, groups.sum_hi, groups.sum_lo
    cell_hi, cell_lo = cells.hi, cells.lo
    matches = np.int64(0)
    beyond = False
    for e in range(high):
        matches, left = wide.add_count(matches, credit_cells[e, MATCHES])
        beyond = beyond or left
    total_rows[0] = matches
    if beyond:
        fill[COUNT_LEFT] = 1
    floats[:width] = 0
    for c in range(len(table)):
        kind = table[c, KIND]
        i = table[c, INPUT]
        if i < 0:
            continue
        a = table[c, ARGUMENT]
        index = table[c, OFFSET]
        cell = CALLS + PER_CALL * c
        count = np.int64(0)
        hi = np.int64(0)
        lo = np.uint64(0)
        top = np.int64(0)
        best = -1
        for e in range(high):
            n = credit_cells[e, cell]
            if n == 0:
                continue
            if kind >= LEAST:
                if best < 0 or better(c, at[index, e], at[index, best], table, cells):
                    best = e
                continue
            count += n  # no more than the matches
            owner = words[OWNER, e]
            own = entries[owner, CHAIN] % inputs == i  # then what came in is the owner's value, so many times
            if kind == SUM_WHOLE:
                more_hi, more_lo = credit_cells[e, cell + 1], np.uint64(credit_cells[e, cell + 2])
                more_top = credit_cells[e, cell + 3]
                if own:
                    more_hi, more_lo, more_top = wide.times(cell_hi[a, owner], cell_lo[a, owner], n)
                hi, lo, over = add_wide(hi, lo, more_hi, more_lo, 1)
                top += over + more_top
            elif kind == SUM_FLOAT and own:
                exact_times.add_value(floats[index], np.uint64(cell_lo[a, owner]).view(np.float64), n)
            elif kind == SUM_FLOAT:
                exact_times.add_total(floats[index], own_floats[float_at[index, e]], 1)
        counts[c, 0] = count
        sum_top[c, 0] = top
        sum_hi[c, 0] = hi
        sum_lo[c, 0] = lo
        if kind >= LEAST:
            roots[index, 0] = best


@jit
def scan(event, going, index, high, events, rows, rules, cells, book, room):  # type: ignore[no-untyped-def]
    """Go through the events; stops where more room is needed and says where. `going`: `index` is the next match."""
    t, slot, sign, _ = events
    entries, head = rows
    _, _, table, _, _ = rules
    cursor, groups, out, credit_cells = room.cursor, room.groups, room.out, book.cells
    members = np.empty((len(index), RUN), dtype=np.int64)
    of = np.zeros(RUN, dtype=np.int64)  # there is one group
    pair = np.empty(2, dtype=np.int64)
    owners = np.empty(RUN, dtype=np.int64)
    credits = np.empty(RUN, dtype=np.int64)
    changed = False
    while event < len(t):
        s = slot[event]
        if not going:
            if changed and t[event] != cursor[NOW]:
                add_up(len(index), high, rows, rules, cells, book, room)
                changed = False
            turn_to(t[event], rules, cells, room)
            touch(0, groups, out)
            changed = True
            if sign[event] < 0:
                unlink(s, entries, head)
                if entries[s, CREDIT] >= 0:  # with one group it has no more than one
                    credit_cells[entries[s, CREDIT], MATCHES:] = 0
                event += 1
                continue
            going = first_tuple(s, index, entries, head)
        while going:
            most = min(RUN, room_for(book))
            if most == 0:
                return event, True
            count = 0
            while going and count < most:
                members[:, count] = index
                count += 1
                going = next_tuple(s, index, entries, head)
            find_credits(s, members, 0, count, of, owners, credits, pair, entries, book)
            credit_run(members, 0, count, of, owners, credits, False, table, cells, book, groups)
        link(s, entries, head)
        add_up(len(index), high, rows, rules, cells, book, room)
        changed = False
        event += 1
    if changed:
        add_up(len(index), high, rows, rules, cells, book, room)
    return event, False
