"""One marker for a slide, however many places have made parts of it.

Meaning: the rows that come in; of markers that end the same attempt one, behind all rows of the attempt.
Emits: rows ascending in time; those of one instant by attempt, its marker last.
Keeps: nothing.
Needs: all parts of a slide in one step, or a slide that is made in one place.
Costs: a sort of the times of a step in which a marker comes twice; else nothing.

>>> from transom.state.open_ids import OpenIdPool
>>> emitted = pa.record_batch({"attempt": [1, 1, 1], "status": ["complete", None, "complete"], "a": [None, 7, None]})
>>> rows = StreamDelta(emitted, np.array([10, 10, 10]), 11)
>>> SlideMarksKernel().step(None, (rows,), Step(0, 11, 0, OpenIdPool())).values.column(1).to_pylist()
[None, 'complete']
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step


@dataclass(frozen=True)
class SlideMarksKernel:
    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[StreamDelta], step: Step) -> StreamDelta:
        (rows,) = inputs
        marks = np.flatnonzero(rows.values.column(1).is_valid().to_numpy(zero_copy_only=False))
        if len(marks) < 2:
            return rows
        attempts = rows.values.column(0).to_numpy()
        ends = np.stack([rows.t[marks], attempts[marks]])
        if np.unique(ends, axis=1).shape[1] == len(marks):
            return rows  # an attempt ends once, so there is nothing to unite
        _, kept = np.unique(ends, axis=1, return_index=True)
        is_mark = np.zeros(len(rows), dtype=np.bool_)
        is_mark[marks] = True
        wanted = ~is_mark
        wanted[marks[kept]] = True
        order = np.lexsort((is_mark, attempts, rows.t))
        order = order[wanted[order]]
        return StreamDelta(rows.values.take(pa.array(order)), rows.t[order], rows.frontier)
