"""Joins of windows that slide, emitted slide by slide within a memory budget (paper 4).

Meaning: at every multiple of a slide at which a row of a window is alive, the expressions of all tuples of rows that
    are alive then, one of each input, and agree on the keys and the residual; with UNION ALL those of several joins.
    With GROUP BY or DISTINCT over that, the groups of these tuples; without GROUP BY one row, at every multiple from
    the origin on.
Emits: rows ascending in time, those of one slide in chunks, and groups when all of it is made; where results may be
    put off, each with its attempt, and a last row for every attempt that says whether it was complete.
Keeps: the rows of the windows, sorted by hash, and the results of earlier slides that live on, in memory or on disk;
    the groups of slides that are being made, in memory.
Needs: rows in time order; a spill store where there is a budget.
Costs: by tactic, the new rows or all rows of the windows a slide; every byte on disk is read once a slide.

>>> import numpy as np
>>> from transom.core.schema import BIGINT
>>> from transom.kernels.slide_join.spec import SlideSide, TupleSpec
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> k = ColumnRef(0, BIGINT, "k")
>>> side = SlideSide(20, 10, None, (k,), (k,))
>>> kernel = SlideJoinKernel(SlideSpec((TupleSpec((side, side), None, (k,)),), ("k",)), "incremental")
>>> rows = StreamDelta(pa.record_batch({"k": [7, 8]}), np.array([5, 12]), frontier=21)
>>> out = kernel.step(kernel.start(), (rows, rows), Step(0, 21, 0, OpenIdPool()))
>>> list(zip(out.t.tolist(), out.values.column(0).to_pylist()))
[(10, 7), (20, 7), (20, 8)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from transom.core.delta import StreamDelta
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.kernel import Step
from transom.kernels.slide_join.budget import limits_of
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.outlet import Outlet
from transom.kernels.slide_join.spec import SlideSpec
from transom.kernels.slide_join.turn import Turn
from transom.state.checks import need


@dataclass(frozen=True)
class SlideJoinKernel:
    """`memory` is a budget in bytes; `marked`: attempts are emitted, with how they ended.

    `put_off`: so many microseconds a step works on slides, if it has a clock.
    """

    spec: SlideSpec
    tactic: str  # incremental, full, hybrid
    memory: int | None = None
    marked: bool = False
    put_off: int | None = None

    def start(self) -> SlideJoinState:
        return SlideJoinState()

    def check(self, state: SlideJoinState) -> None:
        for work in state.works:
            if work.groups is not None:
                need(self.spec.fold is not None)
                if self.spec.fold is not None:
                    self.spec.fold.check(work.groups)

    def next_timer(self, state: SlideJoinState) -> int:
        if state.works or (self.spec.always and state.at == BEGINNING):
            return BEGINNING
        if self.spec.always:
            return self.spec.instant_from(state.at + 1)
        begins = [run.ta for run in state.runs if run.te > state.at]
        next_slide = self.spec.instant_from(max(state.at + 1, min(begins))) if begins else FOREVER
        return min([next_slide, *(window.at for window in state.windows if window.loose)])

    def step(self, state: SlideJoinState, inputs: Sequence[StreamDelta], step: Step) -> StreamDelta:
        turn = self._turn(state, step)
        turn.take(inputs)
        return turn.close()

    def idle(self, state: SlideJoinState, step: Step) -> StreamDelta | None:
        """Go on with what was put off, while nothing comes in; None if there is nothing."""
        if not state.works:
            return None
        turn = self._turn(state, step)
        if self.put_off is None:
            turn.work_a_while()
        else:
            turn.catch_up()
        return turn.close()

    def _turn(self, state: SlideJoinState, step: Step) -> Turn:
        assert self.memory is None or step.spill is not None
        state.sharing = step.sharing or state.sharing
        limits = limits_of(None if self.memory is None else self.memory // state.sharing)
        outlet = Outlet(self._schema, self.marked, limits.buffer, step.emit_rows)
        return Turn(self.spec, self.tactic, limits, state, step, outlet, self.put_off)

    @cached_property
    def _schema(self) -> pa.Schema:
        marks = [pa.field("attempt", pa.int64()), pa.field("status", pa.string())]
        return pa.schema([*marks, *self.spec.schema]) if self.marked else self.spec.schema
