"""What a query with windows of its own sees of a join of streams that several queries share.

Meaning: a tuple is the query's while every member is within the query's window over its stream; where that slides, at
    the samples of the window.
Emits: the query's columns of each such tuple, its end determined, once progress is past its beginning.
Keeps: tuples that wait for the first sample that sees them, at most those of one slide.
Needs: the time of every member among the columns; windows that the shared ones hold, a slide more where they slide.
Costs: O(inputs) a tuple of the shared join.

>>> from transom.state.open_ids import OpenIdPool
>>> tuples = pa.record_batch({"k": [7, 8], "a": [10, 29], "b": [31, 33]})
>>> delta = Delta(tuples, np.array([31, 33]), np.full(2, FOREVER), no_open_ids(2), frontier=41)
>>> members = MemberWindow("a", 1, 20, 10), MemberWindow("b", 2, 30)
>>> kernel = WindowedKernel((0,), members, 1, pa.schema([("k", pa.int64())]))
>>> out = kernel.step(kernel.start(), (delta,), Step(30, 41, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist(), out.te.tolist()
([8], [33], [50])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Delta, no_int64s, no_open_ids
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.jit import jit
from transom.kernels.kernel import Step
from transom.kernels.shared_plan.node import MemberWindow
from transom.kernels.window.slide_range import Waiting


@dataclass
class WindowedState:
    """`last` is the greatest finite instant at which a tuple begins or ends."""

    last: int = BEGINNING
    waiting: list[Waiting] = field(default_factory=list)


@dataclass(frozen=True)
class WindowedKernel:
    columns: tuple[int, ...]
    members: tuple[MemberWindow, ...]
    tick: int
    schema: pa.Schema

    def start(self) -> WindowedState:
        return WindowedState()

    def next_timer(self, state: WindowedState) -> int:
        return min((int(part.ta.min()) for part in state.waiting), default=FOREVER)

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> WindowedKernel:
        """The kernel that gives only some of the columns, in this order and under these names."""
        return replace(self, columns=tuple(self.columns[i] for i in picks), schema=schema)

    def step(self, state: WindowedState, inputs: tuple[Delta], step: Step) -> Delta:
        (tuples,) = inputs
        due, later = [], []
        for part in [*state.waiting, self._seen(tuples, state)]:
            begun = part.ta < step.frontier
            count = int(np.count_nonzero(begun))
            if count:
                due.append(_chosen(part, begun, count))
            if count < len(begun):
                later.append(_chosen(part, ~begun, len(begun) - count))
        state.waiting = later
        if not due:
            none = no_int64s()
            return Delta(empty_batch(self.schema), none, none, none, step.frontier)
        values = pa.concat_batches([part.values for part in due]) if len(due) > 1 else due[0].values
        ta, te = np.concatenate([part.ta for part in due]), np.concatenate([part.te for part in due])
        return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier)

    def _seen(self, tuples: Delta, state: WindowedState) -> Waiting:
        """The tuples that are the query's, and when."""
        ta, te = np.full(len(tuples), BEGINNING), np.full(len(tuples), FOREVER)
        for member in self.members:
            t = tuples.values.column(member.time).cast(pa.int64()).to_numpy()
            within(t, member.length, member.slide or 0, self.tick, ta, te)
        columns = [tuples.values.column(i) for i in self.columns]
        values = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        seen = ta < te
        waiting = _chosen(Waiting(values, ta, te), seen, int(np.count_nonzero(seen)))
        state.last = latest(waiting.ta, waiting.te, state.last)
        return waiting


def _chosen(part: Waiting, rows: npt.NDArray[np.bool_], count: int) -> Waiting:
    if count == len(rows):
        return part
    at = np.flatnonzero(rows)
    taken = pa.array(at)
    columns = [pc.take(column, taken, boundscheck=False) for column in part.values.columns]
    return Waiting(pa.RecordBatch.from_arrays(columns, schema=part.values.schema), part.ta[at], part.te[at])


@jit
def within(t, length, slide, tick, ta, te):  # type: ignore[no-untyped-def]
    """Cut lifetimes down to those of members that came at t, in a window that is so long and slides so."""
    for i in range(len(t)):
        begin = t[i] - t[i] % tick if tick > 1 else t[i]
        end = min(begin, FOREVER - length) + length
        if slide > 0:
            begin = -(-begin // slide) * slide
            if end < FOREVER:
                end = min(-(-end // slide) * slide, FOREVER)
        ta[i] = max(ta[i], begin)
        te[i] = min(te[i], end)


@jit
def latest(ta, te, last):  # type: ignore[no-untyped-def]
    """The greatest finite instant of these lifetimes, or what was known."""
    for i in range(len(ta)):
        last = max(last, te[i] if te[i] < FOREVER else ta[i])
    return last
