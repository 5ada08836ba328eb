"""RANGE T SLIDE S windows.

Meaning: the RANGE relation sampled at the multiples of S and held: [ceil(t / S) S, ceil((t + T) / S) S).
Emits: each row once progress is past its first sample, its end determined; rows that no sample sees are left out.
Keeps: the rows that wait for their first sample, at most those of one slide.
Needs: rows in time order.
Costs: O(1) a row.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> window = SlideRangeWindow(20, 10)
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([10, 15]), frontier=16)
>>> out = window.step(window.start(), (rows,), Step(0, 16, 0, OpenIdPool()))
>>> out.ta.tolist(), out.te.tolist()
([10], [30])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, StreamDelta
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.jit import jit
from transom.kernels.kernel import Step
from transom.kernels.window.range import end_after


@dataclass
class Waiting:
    """Rows that came in one step and have not been sampled yet."""

    values: pa.RecordBatch
    ta: Int64s
    te: Int64s


@dataclass
class SlideRangeWindowState:
    """`last` is the greatest finite instant at which a row of this window begins or ends."""

    last: int = BEGINNING
    waiting: list[Waiting] = field(default_factory=list)


@dataclass(frozen=True)
class SlideRangeWindow:
    length: int
    slide: int

    def start(self) -> SlideRangeWindowState:
        return SlideRangeWindowState()

    def next_timer(self, state: SlideRangeWindowState) -> int:
        return int(state.waiting[0].ta[0]) if state.waiting else FOREVER

    def step(self, state: SlideRangeWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        ta = ceil_to(rows.t, self.slide)
        te = ceil_to(end_after(rows.t, self.length), self.slide)
        seen = np.flatnonzero(ta < te)
        values = rows.values if len(seen) == len(rows) else rows.values.take(pa.array(seen))
        arrived = Waiting(values, ta[seen], te[seen])
        if len(seen):
            last = te[seen[-1]] if te[seen[-1]] < FOREVER else ta[seen[-1]]
            state.last = max(state.last, int(last))
        # Samples are in order: while the oldest row waits for its own, nobody else need be looked at.
        all_wait = bool(state.waiting) and state.waiting[0].ta[0] >= step.frontier
        later = state.waiting if all_wait else []
        sampled = []
        for part in [arrived] if all_wait else [*state.waiting, arrived]:
            due = int(np.searchsorted(part.ta, step.frontier))
            if due or part is arrived:
                sampled.append(Waiting(part.values.slice(0, due), part.ta[:due], part.te[:due]))
            if due < len(part.ta):
                later.append(Waiting(part.values.slice(due), part.ta[due:], part.te[due:]))
        state.waiting = later
        out_ta = np.concatenate([part.ta for part in sampled])
        return Delta(
            pa.concat_batches([part.values for part in sampled]),
            out_ta,
            np.concatenate([part.te for part in sampled]),
            np.full(len(out_ta), NO_OPEN_ID, dtype=np.int64),
            step.frontier,
        )


@jit
def ceil_to(t, slide):  # type: ignore[no-untyped-def]
    """The least multiple of `slide` that is not before t, of each; forever stays forever.

    Times come in order, as a rule, so the multiple before is looked at first: to divide takes longer than all else.
    """
    out = np.empty(len(t), dtype=np.int64)
    at = np.int64(FOREVER)
    for i in range(len(t)):
        if t[i] >= FOREVER:
            out[i] = FOREVER
            continue
        if at >= FOREVER or t[i] > at or t[i] <= at - slide:
            at = min(-(-t[i] // slide) * slide, np.int64(FOREVER))
        out[i] = at
    return out
