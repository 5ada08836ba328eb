"""What the operators of a part have to do with slides: joins that put some off, and windows that slide.

A slide that was put off is made while nothing comes in. Where snapshots are emitted at multiples of slides, the last of
them is where the last row of the windows below begins or ends, wherever these run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from transom.core.delta import StreamDelta
from transom.kernels.kernel import Kernel, Step
from transom.kernels.operator import Operator
from transom.kernels.shared_plan.windowed import WindowedState
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.node import SlideJoin, SlideMarks
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.to_stream.tactic import slide_windows_below
from transom.kernels.window.slide_range import SlideRangeWindowState
from transom.pipeline.spilling import Spilling
from transom.plan.algebra import ToStream

if TYPE_CHECKING:
    from transom.pipeline.part import PartState


class PartSlides:
    def __init__(
        self, operators: Sequence[Operator], kernels: Sequence[tuple[Kernel, ...]], spilling: Spilling | None
    ) -> None:
        self._operators = operators
        self._kernels = kernels
        self._spilling = spilling

    @cached_property
    def puts_off(self) -> bool:
        """Whether slides may be left for later in any step."""
        return any(isinstance(k, SlideJoinKernel) and k.put_off is not None for of_one in self._kernels for k in of_one)

    def unfinished(self, state: PartState) -> bool:
        """Whether there are slides to be made while nothing comes in."""
        return any(isinstance(s, SlideJoinState) and bool(s.works) for of_one in state.operators for s in of_one)

    def idle(self, state: PartState, step: Step) -> StreamDelta | None:
        """Go on with what an operator has put off, while nothing comes in; None if there is nothing."""
        for i, (kernel, *_) in enumerate(kernels or (None,) for kernels in self._kernels):
            if isinstance(kernel, SlideJoinKernel) and self._spilling is not None:
                started = time.perf_counter()
                given = kernel.idle(state.operators[i][0], self._spilling.given(step))
                if given is not None:
                    self.count_emitted(state, len(given), time.perf_counter() - started)
                    self._spilling.end_step()
                return given
        return None

    def count_emitted(self, state: PartState, rows: int, seconds: float = 0.0) -> None:
        """Rows of the answer that went out past the operators behind the one that emitted them."""
        for i, operator in enumerate(self._operators):
            if isinstance(operator.node, SlideJoin | SlideMarks):
                state.counters[i].rows_out += rows
                state.counters[i].rows_in += rows * isinstance(operator.node, SlideMarks)
                state.counters[i].seconds += seconds * isinstance(operator.node, SlideJoin)

    def last_of_windows(self, state: PartState) -> dict[int, int]:
        """The last instant at which a row of a RANGE .. SLIDE window begins or ends, by the id of the window."""
        windows = zip(self._operators, state.operators, strict=True)
        return {id(o): s[0].last for o, s in windows if s and isinstance(s[0], SlideRangeWindowState | WindowedState)}

    def horizon(self, operator: Operator, state: PartState, last_used: int, elsewhere: Mapping[int, int]) -> int | None:
        """Where the slides of an operator end at the end of time, with windows that are `elsewhere` as in
        `last_of_windows`; None if it emits none."""
        if not _slides(operator):
            return None
        last_of = {**elsewhere, **self.last_of_windows(state)}
        return max([last_used, *(last_of[id(window)] for window in slide_windows_below(operator))])


def _slides(operator: Operator) -> bool:
    """Whether the operator emits snapshots at multiples of slides."""
    if isinstance(operator.node, SlideJoin):
        return True
    return isinstance(operator.node, ToStream) and bool(slide_windows_below(operator))
