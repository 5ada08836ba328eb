"""TC: a match is credited to the member that ends first, so that its end takes it away (paper 5, sections 1.2 and 2).

Meaning: at every instant the aggregates of the join of the snapshots, by group.
Emits: an open row when the results of a group change, and the end of the one before.
Keeps: the rows alive (key, group columns, arguments, columns of the residual), a credit per row and group that it has
    matches in, and the totals of the groups; not the matches. Freed when rows end and groups are empty.
Needs: ends that are known when a row begins. Any predicate over two inputs; more inputs on one key.
Costs: a walk over the matches of a row when it begins; its end costs its own credits and touches no other row. MIN and
    MAX, O(log n) more where the best value of a credit changes.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(ta, te):
...     return Delta(pa.record_batch({"k": [7]}), np.array([ta]), np.array([te]), np.full(1, NO_OPEN_ID), frontier=9)
>>> types = (pa.int64(),)
>>> calls = (JoinCall("count"), JoinCall("max", 1, 0))
>>> schema = pa.schema([("n", pa.int64()), ("m", pa.int64())])
>>> kernel = CreditKernel(JoinAggregateSpec((types, types), ((0,), (0,)), None, (), calls, schema))
>>> out = kernel.step(kernel.start(), (rows(1, 5), rows(2, 8)), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(1).to_pylist(), out.ta.tolist()
([None, 7, None], [0, 2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # noqa: F401 -- for the example above

from transom.core.delta import NO_OPEN_ID, Delta
from transom.kernels.jit import jit
from transom.kernels.joinagg.credit_entries import (
    GROUP,
    CreditRoom,
    Credits,
    credit_run,
    find_credits,
    room_for,
    take_away,
)
from transom.kernels.joinagg.live_rows import (
    CHAIN,
    CREDIT,
    NEXT,
    LifetimeEvents,
    LiveRows,
    candidates,
    first_tuple,
    link,
    next_round,
    unlink,
)
from transom.kernels.joinagg.matches import LEAST_RUN, RUN, GroupRoom, add_run, enter_run, groups_for, turn_to
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall  # noqa: F401 -- JoinCall for the example above
from transom.kernels.joinagg.step_delta import show
from transom.kernels.joinagg.totals import Totals
from transom.kernels.kernel import Step

BLOCK = 1 << 18  # candidate tuples looked at together where there is a residual


@dataclass
class CreditState:
    live: LiveRows
    totals: Totals
    credits: Credits


@dataclass(frozen=True)
class CreditKernel:
    spec: JoinAggregateSpec

    def start(self) -> CreditState:
        return CreditState(LiveRows.of(self.spec, credited=True), Totals.of(self.spec), Credits.of(self.spec))

    def check(self, state: CreditState) -> None:
        live, credits = state.live, state.credits
        live.check_spec(self.spec)
        slots = live.rows.slots.used()
        credits.check_spec(slots, live.entries[slots, CREDIT], state.totals.groups.slots)
        state.totals.check_spec(self.spec, len(live.rows.input), credits.index.words[GROUP])

    def step(self, state: CreditState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        assert all((delta.open_id == NO_OPEN_ID).all() for delta in inputs), "credits need ends that are known"
        live, totals = state.live, state.totals
        events = live.events(self.spec, inputs, step.frontier)
        room = GroupRoom.of(self.spec, totals, step.origin, len(events.t))
        book = CreditRoom(state.credits)
        book.more(totals)
        if self.spec.residual is None:
            self._walk(live, events, room, book)
        else:
            self._filter(live, events, room, book)
        book.close()
        room.finish(live.rows.cells(self.spec))
        out = show(self.spec, totals, live.rows, room.results, step)
        state.credits.forget(events.ended, live.entries)
        live.release(self.spec, events.ended)
        return out

    def _walk(self, live: LiveRows, events: LifetimeEvents, room: GroupRoom, book: CreditRoom) -> None:
        """All matches of all rows, in one loop; it comes back only for more room."""
        event, going = 0, False
        index = np.zeros(len(self.spec.input_types), dtype=np.int64)
        rows = (live.entries, live.head, live.rows.part)
        while True:
            event, going = walk(
                event, going, index, events, rows, room.rules(), live.rows.cells(self.spec),
                book.arrays(), room.arrays(),
            )  # fmt: skip
            if event == len(events.t):
                return
            room.more()
            book.more(room.totals)

    def _filter(self, live: LiveRows, events: LifetimeEvents, room: GroupRoom, book: CreditRoom) -> None:
        """Make candidate tuples in blocks; those that satisfy the residual count."""
        event, last, going = 0, 0, False
        index = np.zeros(len(self.spec.input_types), dtype=np.int64)
        rows = (live.entries, live.rows.part)
        while last < len(events.t):
            of_event, members, last, going = candidates(
                last, going, index, events, False, live.entries, live.head, BLOCK
            )
            kept = live.satisfying(self.spec, members)
            of_event, members = of_event[kept], members.take(kept, axis=1)
            pair = 0
            while event < last or pair < len(of_event):
                event, pair, stopped = apply(
                    event, last, pair, of_event, members, events, rows, room.rules(), live.rows.cells(self.spec),
                    book.arrays(), room.arrays(),
                )  # fmt: skip
                if stopped:
                    room.more()
                    book.more(room.totals)


@jit
def walk(event, going, index, events, rows, rules, cells, book, room):  # type: ignore[no-untyped-def]
    """Go through the events; stops where more room is needed and says where. `going`: `index` is the next match."""
    t, slot, sign, _ = events
    entries, head, part = rows
    _, _, table, width, grouping = rules
    key = np.zeros(max(len(grouping), 1), dtype=np.int64)
    of = np.empty(RUN, dtype=np.int64)
    pair_key = np.empty(2, dtype=np.int64)
    owners = np.empty(RUN, dtype=np.int64)
    credits = np.empty(RUN, dtype=np.int64)
    inputs = len(index)
    members = np.empty((inputs, RUN), dtype=np.int64)
    while event < len(t):
        s = slot[event]
        own_input = entries[s, CHAIN] % inputs
        fastest = inputs - 1 if own_input < inputs - 1 else inputs - 2
        if not going:
            if sign[event] < 0:
                if not take_away(t[event], s, own_input, rules, cells, entries, book, room):
                    return event, False
                unlink(s, entries, head)
                event += 1
                continue
            going = first_tuple(s, index, entries, head)
            if going:
                turn_to(t[event], rules, cells, room)
        while going:
            most = min(groups_for(grouping, room), room_for(book))
            if most < LEAST_RUN:
                return event, True
            count = 0
            while going and count < min(RUN, most):
                for i in range(inputs):
                    members[i, count] = index[i]
                count += 1
                index[fastest] = entries[index[fastest], NEXT]
                if index[fastest] < 0:
                    going = next_round(s, fastest, index, entries, head)
            enter_run(members, 0, count, of, key, grouping, part, room)
            add_run(s, own_input, 1, members, 0, count, of, table, width, cells, room)
            find_credits(s, members, 0, count, of, owners, credits, pair_key, entries, book)
            credit_run(members, 0, count, of, owners, credits, True, table, cells, book, room.groups)
        link(s, entries, head)
        event += 1
    return event, False


@jit
def apply(  # type: ignore[no-untyped-def]
    event, last, pair, of_event, members, events, rows, rules, cells, book, room
):
    """As `walk`, up to event `last`, for tuples matched before; some of event `last` may be among them, too."""
    t, slot, sign, _ = events
    entries, part = rows
    _, _, table, width, grouping = rules
    key = np.zeros(max(len(grouping), 1), dtype=np.int64)
    of = np.empty(RUN, dtype=np.int64)
    pair_key = np.empty(2, dtype=np.int64)
    owners = np.empty(RUN, dtype=np.int64)
    credits = np.empty(RUN, dtype=np.int64)
    while event < last or pair < len(of_event):
        s = slot[event]
        own_input = entries[s, CHAIN] % len(members)
        if sign[event] < 0 and not take_away(t[event], s, own_input, rules, cells, entries, book, room):
            return event, pair, True
        if pair < len(of_event) and of_event[pair] == event:
            turn_to(t[event], rules, cells, room)
        while pair < len(of_event) and of_event[pair] == event:
            most = min(groups_for(grouping, room), room_for(book))
            if most < LEAST_RUN:
                return event, pair, True
            first = pair
            while pair < len(of_event) and of_event[pair] == event and pair - first < min(RUN, most):
                pair += 1
            enter_run(members, first, pair, of, key, grouping, part, room)
            add_run(s, own_input, 1, members, first, pair, of, table, width, cells, room)
            find_credits(s, members, first, pair, of, owners, credits, pair_key, entries, book)
            credit_run(members, first, pair, of, owners, credits, True, table, cells, book, room.groups)
        if event == last:
            break
        event += 1
    return event, pair, False
