"""DEDUPLICATE.

Meaning: a row passes if none of its key passed in (t - T, t]; of rows of one instant, in arrival order. A row that does
    not pass changes nothing. NULL is a key like any other.
Emits: the rows that pass, as they came.
Keeps: the keys of the rows that passed within T, each with its instant; one is forgotten with the first row that comes
    when nothing can repeat it any more.
Needs: rows in time order, rows of one instant in arrival order.
Costs: a hash look-up a row.

>>> from transom.state.open_ids import OpenIdPool
>>> rows = StreamDelta(pa.record_batch({"k": ["x", "x", "y", "x"]}), np.array([5, 9, 9, 15]), frontier=16)
>>> kernel = DeduplicateKernel((0,), 10)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 16, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist()  # the second x does not keep the third away
(['x', 'y', 'x'], [5, 9, 15])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.jit import jit
from transom.kernels.kernel import Step
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.window.range import end_after
from transom.state.checks import need, rooms
from transom.state.fifo import Fifo
from transom.state.slots import grown


@dataclass
class DeduplicateState:
    """`until[n]` is when key n may pass again; `due` are those instants in order, each with its key."""

    keys: KeyIndex = field(default_factory=KeyIndex)
    until: Int64s = field(default_factory=no_int64s)
    due: Fifo = field(default_factory=lambda: Fifo.of(2))

    def check(self) -> None:
        rooms(self.keys.slots.high, self.until)
        until, number = self.due.column(0), self.due.column(1)
        need(bool((until[1:] >= until[:-1]).all()))
        need(len(number) == self.keys.slots.in_use and bool((np.sort(number) == self.keys.slots.used()).all()))
        need(bool((self.until[number] == until).all()))


@dataclass(frozen=True)
class DeduplicateKernel:
    partition: tuple[int, ...]
    length: int

    def start(self) -> DeduplicateState:
        return DeduplicateState()

    def next_timer(self, state: DeduplicateState) -> int:
        """Never: nothing happens here by itself."""
        return FOREVER

    def step(self, state: DeduplicateState, inputs: tuple[StreamDelta], step: Step) -> StreamDelta:
        (rows,) = inputs
        if not len(rows):
            return rows
        keys, brought = state.keys.number(encode_keys([rows.values.column(i) for i in self.partition], len(rows)))
        if state.keys.slots.high > len(state.until):
            state.until = grown(state.until, state.keys.slots.high)
        until = end_after(rows.t, self.length)
        new = np.zeros(len(rows), dtype=np.bool_)
        new[brought] = True
        passed = passing(keys, new, rows.t, until, state.until)
        state.due.append(until[passed], keys[passed])
        self._forget(state, step.frontier)
        if len(passed) == len(rows):
            return rows
        return StreamDelta(rows.values.take(pa.array(passed)), rows.t[passed], step.frontier)

    def _forget(self, state: DeduplicateState, frontier: int) -> None:
        """The keys that may pass again from the frontier on; what has passed since is in the queue once more."""
        over = int(np.searchsorted(state.due.column(0), frontier, side="right"))
        until, keys = state.due.column(0)[:over], state.due.column(1)[:over]
        state.keys.forget(keys[state.until[keys] == until])
        state.due.drop(over)


@jit
def passing(keys, new, t, until, until_of):  # type: ignore[no-untyped-def]
    """The rows that pass; `until_of` is brought up to date. Where a key is `new`, it says nothing yet."""
    passed = np.empty(len(keys), dtype=np.int64)
    count = 0
    for i in range(len(keys)):
        if new[i] or t[i] >= until_of[keys[i]]:
            until_of[keys[i]] = until[i]
            passed[count] = i
            count += 1
    return passed[:count]
