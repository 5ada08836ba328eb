"""IC: the new value of an aggregate over a join of two from the old one (paper 5, sections 1.1 and 2.1).

Meaning: at every instant the aggregates of the join of the two snapshots, by group.
Emits: an open row when the results of a group change, and the end of the one before.
Keeps: the rows alive of both inputs (key, group columns, arguments, columns of the residual and of arguments that read
    both) and the totals of the groups: O(a + b), however many rows the join has. Freed when rows end and groups are
    empty.
Needs: two inputs; COUNT, SUM and AVG only, because a MIN cannot be taken away. Ends may be open.
Costs: a walk over the matches of a row when it begins and another when it ends; an argument that reads both inputs is
    computed for all of them in both.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(ta, te):
...     return Delta(pa.record_batch({"k": [7]}), np.array([ta]), np.array([te]), np.full(1, NO_OPEN_ID), frontier=9)
>>> types = (pa.int64(),)
>>> calls = (JoinCall("count"), JoinCall("sum", 1, 0))
>>> schema = pa.schema([("n", pa.int64()), ("s", pa.decimal128(38, 0))])
>>> kernel = IncrementalKernel(JoinAggregateSpec((types, types), ((0,), (0,)), None, (), calls, schema))
>>> out = kernel.step(kernel.start(), (rows(1, 5), rows(2, 8)), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist()
([0, 1, 0], [0, 2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # noqa: F401 -- for the example above

from transom.core.delta import Delta, Int64s, no_int64s
from transom.kernels import scalar
from transom.kernels.jit import jit
from transom.kernels.joinagg.live_rows import (
    CHAIN,
    NEXT,
    LifetimeEvents,
    LiveRows,
    candidates,
    link,
    over_read,
    unlink,
)
from transom.kernels.joinagg.matches import (
    LEAST_RUN,
    RUN,
    GroupRoom,
    MatchCells,
    add_matches,
    add_run,
    enter_run,
    groups_for,
    turn_to,
)
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall  # noqa: F401 -- JoinCall for the example above
from transom.kernels.joinagg.step_delta import show
from transom.kernels.joinagg.totals import Totals
from transom.kernels.kernel import Step

BLOCK = 1 << 18  # candidate pairs looked at together where there is a residual
_HEAD = -2  # the walk of an event has not begun


@dataclass
class IncrementalState:
    live: LiveRows
    totals: Totals


@dataclass(frozen=True)
class IncrementalKernel:
    spec: JoinAggregateSpec

    def start(self) -> IncrementalState:
        return IncrementalState(LiveRows.of(self.spec), Totals.of(self.spec))

    def check(self, state: IncrementalState) -> None:
        state.live.check_spec(self.spec)
        state.totals.check_spec(self.spec, len(state.live.rows.input), no_int64s())

    def step(self, state: IncrementalState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        live, totals = state.live, state.totals
        events = live.events(self.spec, inputs, step.frontier)
        room = GroupRoom.of(self.spec, totals, step.origin, len(events.t))
        if self.spec.residual is None and not self.spec.of_matches:
            self._walk(live, events, room)
        else:
            self._filter(live, events, room)
        room.finish(live.rows.cells(self.spec))
        out = show(self.spec, totals, live.rows, room.results, step)
        live.release(self.spec, events.ended)
        return out

    def _walk(self, live: LiveRows, events: LifetimeEvents, room: GroupRoom) -> None:
        """All matches of all events, in one loop; it comes back only for more room."""
        event, at = 0, _HEAD
        rows = (live.entries, live.head, live.rows.part)
        while True:
            event, at = walk(event, at, events, rows, room.rules(), live.rows.cells(self.spec), room.arrays())
            if event == len(events.t):
                return
            room.more()

    def _filter(self, live: LiveRows, events: LifetimeEvents, room: GroupRoom) -> None:
        """Make candidate pairs in blocks; those that satisfy the residual count. With arguments that read
        both inputs: these are computed for the pairs that count, so that none fails for others."""
        event, going = 0, False
        index = np.zeros(2, dtype=np.int64)
        while event < len(events.t):
            of_event, members, event, going = candidates(
                event, going, index, events, True, live.entries, live.head, BLOCK
            )
            if self.spec.residual is not None:
                kept = live.satisfying(self.spec, members)
                of_event, members = of_event[kept], members.take(kept, axis=1)
            made = self._made(live, members)
            pair = 0
            while pair < len(of_event):
                pair = apply(
                    pair, of_event, members, made, events, live.rows.part, room.rules(), live.rows.cells(self.spec),
                    room.arrays(),
                )  # fmt: skip
                if pair < len(of_event):
                    room.more()

    def _made(self, live: LiveRows, members: Int64s) -> MatchCells:
        """The arguments that read both inputs, for these pairs."""
        wanted = self.spec.of_matches
        if not wanted or not members.shape[1]:
            return MatchCells.of((), 0)
        batch = live.columns(self.spec, members)
        return MatchCells.of([scalar.evaluate(over_read(self.spec, e), batch) for e in wanted], members.shape[1])


@jit
def walk(event, at, events, rows, rules, cells, room):  # type: ignore[no-untyped-def]
    """Go through the events; stops where more room is needed and says where.

    With the expired rows already out of the windows, the paper's new value is the old one

        + |{f} x SWB| - |SetA x SWB| - |SetB x (SWA - f)| - |SetA x SetB|

    Here the rows of SetA and SetB leave one after another, before f comes. One of SetA meets what is still in the
    window of B: SWB and those of SetB that have not left yet. One of SetB meets what is left of A, in which f is not
    yet. So each pair of SetA x SetB is taken away once, by whichever of the two leaves first.
    """
    t, slot, sign, _ = events
    entries, head, part = rows
    _, _, table, width, grouping = rules
    key = np.zeros(max(len(grouping), 1), dtype=np.int64)
    of = np.empty(RUN, dtype=np.int64)
    members = np.empty((2, RUN), dtype=np.int64)
    while event < len(t):
        s = slot[event]
        own_input = entries[s, CHAIN] & 1
        other_input = 1 - own_input
        if at == _HEAD:
            if sign[event] < 0:
                unlink(s, entries, head)
            at = head[entries[s, CHAIN] ^ 1]
            if at >= 0:
                turn_to(t[event], rules, cells, room)
        while at >= 0:
            # A run: f, or a row of SetA or SetB, with what is in the other window.
            most = min(RUN, groups_for(grouping, room))
            if most < LEAST_RUN:
                return event, at
            count = 0
            while at >= 0 and count < most:
                members[own_input, count] = s
                members[other_input, count] = at
                count += 1
                at = entries[at, NEXT]
            enter_run(members, 0, count, of, key, grouping, part, room)
            add_run(s, own_input, sign[event], members, 0, count, of, table, width, cells, room)
        if sign[event] > 0:
            link(s, entries, head)
        event += 1
        at = _HEAD
    return event, at


@jit
def apply(pair, of_event, members, made, events, part, rules, cells, room):  # type: ignore[no-untyped-def]
    """Apply the events' pairs that were matched before, as `walk` does its own, from number `pair` on."""
    t, slot, sign, _ = events
    _, _, table, width, grouping = rules
    key = np.zeros(max(len(grouping), 1), dtype=np.int64)
    of = np.empty(RUN, dtype=np.int64)
    while pair < len(of_event):
        event = of_event[pair]
        s = slot[event]
        own_input = 0 if members[0, pair] == s else 1
        turn_to(t[event], rules, cells, room)
        most = min(RUN, groups_for(grouping, room))
        if most < LEAST_RUN:
            return pair
        first = pair
        while pair < len(of_event) and of_event[pair] == event and pair - first < most:
            pair += 1
        enter_run(members, first, pair, of, key, grouping, part, room)
        add_run(s, own_input, sign[event], members, first, pair, of, table, width, cells, room)
        if len(made.hi):
            add_matches(sign[event], first, pair, of, table, width, made, room.groups)
    return pair
