"""What a query with a window that counts rows sees of a shared join.

Meaning: as `narrow.py`, where a row of a ROWS N window ends when the N-th row after it comes, or by its RANGE.
Emits: the query's columns of each of its pairs, once; its end at once where it is known, else when the first of its
    rows ends.
Keeps: of each open pair its open row id, the numbers of the rows that end it, and when it ends by time.
Needs: pairs with their age and the running numbers of their rows; of the counted windows all rows, in order.
Costs: O(1) a pair of the shared join; O(log n) to end an open pair.

>>> from transom.state.open_ids import OpenIdPool
>>> pairs = pa.record_batch({"k": [7, 8], "number": [0, 1], "age": [1, 0]})
>>> delta = Delta(pairs, np.array([31, 31]), np.full(2, FOREVER), no_open_ids(2), frontier=40)
>>> numbers = pa.record_batch({"number": [0, 1]})
>>> arrived = Delta(numbers, np.array([30, 31]), np.full(2, FOREVER), no_open_ids(2), frontier=40)
>>> side, other = SideWindow(1, FOREVER, 1), SideWindow(None, 5, None)
>>> narrow = NarrowRowsKernel((0,), 2, (side, other), None, pa.schema([("k", pa.int64())]))
>>> out = narrow.step(narrow.start(), (delta, arrived), Step(30, 40, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.te.tolist()
([8], [36])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, no_int64s, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.window.range import end_after
from transom.state.checks import rooms
from transom.state.slots import SlotPool, grown

BY_LEFT, BY_RIGHT, BY_TIME = range(3)
_NEVER: Final = FOREVER  # no row has that number


@dataclass(frozen=True)
class SideWindow:
    """The query's window of one side; `number` is the place of the running number among the columns of the pairs."""

    rows: int | None
    length: int
    number: int | None


@dataclass
class NarrowRowsState:
    """Open pairs by slot. `waiting` has them by the number of the left row that ends them, of the right one, by time.

    A slot is used again when no set has it any more; until then its open row id is NO_OPEN_ID once the pair has ended.
    """

    seen: list[int] = field(default_factory=lambda: [0, 0])
    slots: SlotPool = field(default_factory=SlotPool)
    open_id: Int64s = field(default_factory=no_int64s)
    sets: Int64s = field(default_factory=no_int64s)
    waiting: list[LifetimeSet] = field(default_factory=lambda: [LifetimeSet() for _ in range(3)])

    def check(self) -> None:
        rooms(self.slots.high, self.open_id, self.sets)
        for waiting in self.waiting:
            waiting.check_slots(self.slots.mask())

    def owned(self) -> list[Int64s]:
        open_ids = self.open_id[self.slots.used()]
        return [open_ids[open_ids != NO_OPEN_ID]]


@dataclass(frozen=True)
class _Arrived:
    """Rows of one side from number `first` on, that came in this step, at these times."""

    first: int
    t: Int64s

    def ends(self, numbers: Int64s) -> Int64s:
        """When the rows of these numbers came: before anything of this step, at a time of it, or not yet."""
        at = numbers - self.first
        indexes = np.minimum(np.maximum(at, 0), max(len(self.t) - 1, 0))
        times = self.t[indexes] if len(self.t) else np.zeros(len(at), dtype=np.int64)
        return np.where(at < 0, -OPEN_END, np.where(at < len(self.t), times, OPEN_END))


@dataclass(frozen=True)
class NarrowRowsKernel:
    """`inputs` of a step are the pairs, and the rows of each counted side."""

    columns: tuple[int, ...]
    age: int
    sides: tuple[SideWindow, SideWindow]
    begin: int | None
    schema: pa.Schema

    def start(self) -> NarrowRowsState:
        return NarrowRowsState()

    def next_timer(self, state: NarrowRowsState) -> int:
        return state.waiting[BY_TIME].next_timer

    def step(self, state: NarrowRowsState, inputs: Sequence[Delta], step: Step) -> Delta:
        pairs, *counted = inputs
        arrived = self._arrived(state, counted)
        ends = self._close(state, arrived, step)
        if not len(pairs):
            none = no_int64s()
            return Delta(empty_batch(self.schema), none, none, none, step.frontier, ends)
        age = pairs.values.column(self.age).to_numpy()
        older = pairs.ta - np.abs(age)
        begins = pairs.ta - np.maximum(age, 0), pairs.ta + np.minimum(age, 0)
        by_time = np.minimum(end_after(begins[0], self.sides[0].length), end_after(begins[1], self.sides[1].length))
        numbers = [self._last_numbers(pairs, side) for side in self.sides]
        by_count = np.minimum(*(came.ends(at) for came, at in zip(arrived, numbers, strict=True)))
        te = np.minimum(by_time, by_count)
        wanted = te > pairs.ta
        if self.begin is not None:
            wanted &= older >= self.begin
        rows = np.flatnonzero(wanted)
        te, by_time, ta = te[rows], by_time[rows], pairs.ta[rows]
        numbers = [at[rows] for at in numbers]
        # Somebody who has not come yet may end the pair, but not before `frontier`.
        undecided = (numbers[0] >= state.seen[0]) & (numbers[0] < _NEVER)
        undecided |= (numbers[1] >= state.seen[1]) & (numbers[1] < _NEVER)
        is_open = undecided & (te >= step.frontier)
        te = np.where(is_open, OPEN_END, te)
        values = pa.RecordBatch.from_arrays(
            [pairs.values.column(i).take(pa.array(rows)) for i in self.columns], schema=self.schema
        )
        if not is_open.any():
            return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier, ends)
        delta, open_id = open_rows(values, ta, te, step, ends)
        self._keep(state, open_id[is_open], [*(at[is_open] for at in numbers), by_time[is_open]])
        return delta

    def _arrived(self, state: NarrowRowsState, counted: Sequence[Delta]) -> list[_Arrived]:
        brought = iter(counted)
        arrived = []
        for index, side in enumerate(self.sides):
            t, first = no_int64s(), state.seen[index]
            if side.rows is not None and len(rows := next(brought)):
                t, first = rows.ta, rows.values.column(rows.values.num_columns - 1)[0].as_py()
                state.seen[index] = first + len(t)
            arrived.append(_Arrived(first, t))
        return arrived

    def _last_numbers(self, pairs: Delta, side: SideWindow) -> Int64s:
        """The number of the row that ends each pair's row of this side."""
        if side.rows is None or side.number is None:
            return np.full(len(pairs), _NEVER, dtype=np.int64)
        numbers: Int64s = pairs.values.column(side.number).to_numpy() + side.rows
        return numbers

    def _keep(self, state: NarrowRowsState, open_id: Int64s, numbers: Sequence[Int64s]) -> None:
        slots = state.slots.take(len(open_id))
        if state.slots.high > len(state.open_id):
            state.open_id = grown(state.open_id, state.slots.high)
            state.sets = grown(state.sets, len(state.open_id))
        state.open_id[slots] = open_id
        state.sets[slots] = 0
        for waiting, at in zip(state.waiting, numbers, strict=True):
            waiting.add(slots, at, no_open_ids(len(slots)))
            state.sets[slots] += at < _NEVER

    def _close(self, state: NarrowRowsState, arrived: Sequence[_Arrived], step: Step) -> Ends:
        """End the open pairs that a row which came, or time, has ended: at the first of these."""
        ended_rows: list[tuple[Int64s, Int64s]] = []
        for index, came in enumerate(arrived):
            if len(came.t):
                slots, numbers = state.waiting[index].leave(Ends(), came.first + len(came.t))
                ended_rows.append((slots, came.ends(numbers)))
        ended_rows.append(state.waiting[BY_TIME].leave(Ends(), step.frontier))
        slots = np.concatenate([part[0] for part in ended_rows])
        if not len(slots):
            return Ends()
        te = np.concatenate([part[1] for part in ended_rows])
        order = np.lexsort((te, slots))
        ended, first = np.unique(slots[order], return_index=True)
        te = te[order][first]
        open_id = state.open_id[ended]
        alive = open_id != NO_OPEN_ID
        ends = step.open_ids.close(open_id[alive], te[alive])
        state.open_id[ended] = NO_OPEN_ID
        np.subtract.at(state.sets, slots, 1)
        state.slots.give_back(ended[state.sets[ended] == 0])
        return ends
