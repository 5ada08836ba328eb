"""Tables from outside: static ones, and changing ones given by + and - or by upserts.

Meaning: a static row is alive from the origin forever. A changing row lives from its + to its -; with a primary key a + replaces
    the row of that key. Changes of one instant apply in arrival order and then count net.
Emits: open rows and their ends.
Keeps: each row alive once.
Needs: changes in time order, changes of one instant in arrival order.
Costs: a hash look-up a change.

>>> from transom.state.holders import HolderPool
>>> table = ChangesTable(pa.schema([("a", pa.int64())]))
>>> changes = StreamDelta(pa.record_batch({"a": [1, 1], "op": ["+", "-"]}), np.array([3, 5]), upto=9)
>>> out, rejected = table.apply(table.start(), changes, Step(0, 9, 0, HolderPool()))
>>> out.ta.tolist(), out.te.tolist(), rejected.tolist()
([3], [5], [])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import NO_HOLDER, Delta, Int64s, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.multiplicity import Shown, show
from transom.kernels.tally import Tally
from transom.state.slots import grown


@dataclass(frozen=True)
class StaticTable:
    """The input delta of the first step holds all rows; they begin at the origin."""

    def start(self) -> None:
        return None

    def step(self, state: None, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        count = len(rows)
        ta = np.full(count, step.origin, dtype=np.int64)
        forever = np.full(count, FOREVER, dtype=np.int64)
        return Delta(rows.values, ta, forever, np.full(count, NO_HOLDER, dtype=np.int64), step.upto)


@dataclass
class ChangesTableState:
    tally: Tally
    shown: Shown = field(default_factory=Shown)


@dataclass(frozen=True)
class ChangesTable:
    """The last column of the input is the change, '+' or '-'; the others are the row."""

    schema: pa.Schema

    def start(self) -> ChangesTableState:
        return ChangesTableState(Tally.of(self.schema.types))

    def apply(self, state: ChangesTableState, changes: StreamDelta, step: Step) -> tuple[Delta, Int64s]:
        """The delta, and the changes that took away a row which was not there."""
        batch = changes.values.select(range(len(self.schema)))
        key = state.tally.number(batch)
        signs = _signs(changes.values.column(len(self.schema)))
        touched, local = np.unique(key, return_inverse=True)
        valid = applicable_changes(local, signs, state.tally.counts[0, touched])
        steps = state.tally.apply(changes.t[valid], key[valid], signs[valid])
        out = show(
            state.shown, state.tally, steps.t, steps.key, steps.before[0], steps.after[0], self.schema, step
        )
        gone = touched[state.tally.counts[0, touched] == 0]
        state.tally.keys.forget(gone)
        state.tally.values.free(gone)
        return out, np.flatnonzero(~valid)


@dataclass
class UpsertTableState:
    """`holder[key]` of the row that is there now, -1 for none."""

    keys: KeyIndex = field(default_factory=KeyIndex)
    holder: Int64s = field(default_factory=no_int64s)


@dataclass(frozen=True)
class UpsertTable:
    """Without a change column every row is a +; with one it is the last column of the input."""

    schema: pa.Schema
    primary_key: tuple[int, ...]
    has_change_column: bool

    def start(self) -> UpsertTableState:
        return UpsertTableState()

    def apply(self, state: UpsertTableState, changes: StreamDelta, step: Step) -> tuple[Delta, Int64s]:
        """The delta, and the changes that took away a row which was not there."""
        count = len(changes)
        batch = changes.values.select(range(len(self.schema)))
        signs = np.ones(count, dtype=np.int64)
        if self.has_change_column:
            signs = _signs(changes.values.column(len(self.schema)))
        if not count:
            return Delta(empty_batch(self.schema), *(no_int64s(),) * 3, step.upto), no_int64s()
        key, _ = state.keys.number(encode_keys([batch.column(i) for i in self.primary_key], count))
        if state.keys.slots.high > len(state.holder):
            state.holder = grown(state.holder, state.keys.slots.high, -1)
        te, closed_holder, closed_te, rejected = replace_rows(changes.t, key, signs, state.holder)
        ends = step.holders.close(closed_holder, closed_te)
        alive = signs > 0
        te[~alive] = changes.t[~alive]  # a deletion is no row: a ghost, left out below
        delta, holder = open_rows(batch, changes.t, te, step, ends)
        still = te == OPEN_END
        state.holder[key[still]] = holder[still]
        touched = np.unique(key)
        state.keys.forget(touched[state.holder[touched] == -1])
        return delta, rejected


def _signs(changes: pa.Array) -> Int64s:
    return np.where(pc.equal(changes, "+").to_numpy(zero_copy_only=False).astype(bool), 1, -1)


@jit
def applicable_changes(key, signs, now):  # type: ignore[no-untyped-def]
    """False where a - finds no row, going through the changes in order; `now` counts the rows there."""
    valid = np.ones(len(key), dtype=np.bool_)
    for i in range(len(key)):
        if signs[i] < 0 and now[key[i]] == 0:
            valid[i] = False
        else:
            now[key[i]] += signs[i]
    return valid


@jit
def replace_rows(t, key, signs, holder):  # type: ignore[no-untyped-def]
    """holder[key] is -2 - i while row i of this step is the one that is there."""
    n = len(t)
    te = np.full(n, OPEN_END, dtype=np.int64)
    closed_holder = np.empty(n, dtype=np.int64)
    closed_te = np.empty(n, dtype=np.int64)
    rejected = np.empty(n, dtype=np.int64)
    closed = 0
    refused = 0
    for i in range(n):
        old = holder[key[i]]
        if old == -1 and signs[i] < 0:
            rejected[refused] = i
            refused += 1
            continue
        if old <= -2:
            te[-2 - old] = t[i]
        elif old >= 0:
            closed_holder[closed] = old
            closed_te[closed] = t[i]
            closed += 1
        holder[key[i]] = -2 - i if signs[i] > 0 else -1
    return te, closed_holder[:closed], closed_te[:closed], rejected[:refused]
