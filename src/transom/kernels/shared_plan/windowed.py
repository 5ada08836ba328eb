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

from transom.core.delta import Delta, no_open_ids
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.shared_plan.node import MemberWindow
from transom.kernels.window.range import end_after
from transom.kernels.window.slide_range import Waiting, ceil_to


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
        """The same, giving only some of its columns, in this order and under these names."""
        return replace(self, columns=tuple(self.columns[i] for i in picks), schema=schema)

    def step(self, state: WindowedState, inputs: tuple[Delta], step: Step) -> Delta:
        (tuples,) = inputs
        parts = state.waiting if self.next_timer(state) < step.frontier else []
        state.waiting = [] if parts else state.waiting
        if len(tuples):
            parts = [*parts, self._seen(tuples)]
            ends = parts[-1].te[parts[-1].te < FOREVER]
            state.last = max(state.last, int(parts[-1].ta.max(initial=BEGINNING)), int(ends.max(initial=BEGINNING)))
        due: list[Waiting] = []
        for part in parts:
            begun = part.ta < step.frontier
            due.append(_chosen(part, begun))
            if not begun.all():
                state.waiting.append(_chosen(part, ~begun))
        values = pa.concat_batches([part.values for part in due]) if due else empty_batch(self.schema)
        ta, te = (np.concatenate([getattr(part, name) for part in due] or [_NONE]) for name in ("ta", "te"))
        return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier)

    def _seen(self, tuples: Delta) -> Waiting:
        """The tuples that are the query's, and when."""
        ta, te = np.full(len(tuples), BEGINNING), np.full(len(tuples), FOREVER)
        for member in self.members:
            t = tuples.values.column(member.time).cast(pa.int64()).to_numpy()
            t = t - t % self.tick
            begin, end = t, end_after(t, member.length)
            if member.slide is not None:
                begin, end = ceil_to(begin, member.slide), ceil_to(end, member.slide)
            ta, te = np.maximum(ta, begin), np.minimum(te, end)
        values = pa.RecordBatch.from_arrays([tuples.values.column(i) for i in self.columns], schema=self.schema)
        return _chosen(Waiting(values, ta, te), ta < te)


def _chosen(part: Waiting, rows: npt.NDArray[np.bool_]) -> Waiting:
    if rows.all():
        return part
    at = np.flatnonzero(rows)
    return Waiting(part.values.take(pa.array(at)), part.ta[at], part.te[at])


_NONE = np.empty(0, dtype=np.int64)
