"""Operators behind their inputs, and the answer that they write: one step of a plan, for everybody who takes one.

A whole query is a stage, and so is the part of it that a partition hosts, the shared sub-plan of several queries, and
what each of these does with it. Whoever hosts a stage brings what comes to it, and takes what it gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.timers import Brought

_NO_SLIDES: Final[Mapping[int, int]] = MappingProxyType({})


class StageState(Protocol):
    """What a stage remembers, whatever else its host keeps beside it."""

    part: PartState
    emit: Any
    rows_out: int


@dataclass(frozen=True)
class Advanced:
    """What a step gave: the deltas of all operators, by their numbers; the rows of the answer, if written here.

    `unmatched` has by channel the positions of the changes of tables that met no row.
    """

    deltas: list[Brought]
    rows: pa.RecordBatch | None
    unmatched: dict[str, Int64s]


class Stage:
    """`root` is the operator whose rows are the answer; where it is none of `part`, what comes in is the answer."""

    def __init__(self, part: Part, output: OutputWriter | None = None, root: Operator | None = None) -> None:
        self.part = part
        self.output = output
        self._answer = -1 if root is None else part.number[id(root)]

    def advance(
        self,
        state: StageState,
        brought: Mapping[str, Brought],
        step: Step,
        last_used: int,
        slides: Mapping[int, int] = _NO_SLIDES,
    ) -> Advanced:
        """From `step.before` to `step.frontier`. For `last_used` and `slides` see `Part.step`."""
        deltas, unmatched = self.part.step(state.part, brought, step, last_used, slides)
        rows = None
        if self.output is not None:
            answer = deltas[self._answer] if deltas else next(iter(brought.values()))
            rows = self.output.write(state.emit, answer, step)
            state.rows_out += len(rows)
        state.part.open_ids.finish_step()
        return Advanced(deltas, rows, unmatched)

    def idle(self, state: StageState, step: Step) -> Advanced | None:
        """Go on with what was put off, while nothing comes in; None if there is nothing. It is part of the answer."""
        given = self.part.slides.idle(state.part, step)
        if given is None or self.output is None:
            return None
        rows = self.output.write(state.emit, given, step)
        state.rows_out += len(rows)
        return Advanced([], rows, {})

    def holds(self, state: StageState) -> bool:
        """Whether rows of the answer wait for the end of the batch."""
        return self.output is not None and self.output.holds(state.emit)

    def flush(self, state: StageState) -> pa.RecordBatch | None:
        """The batch is over: the rows of the answer that have waited for that, if there are any."""
        if self.output is None or not self.output.holds(state.emit):
            return None
        rows = self.output.flush(state.emit)
        state.rows_out += len(rows)
        return rows

    def next_timer(self, state: StageState) -> int:
        """The first instant at which an operator or the output has something to do though nothing comes.

        A step up to it would give nothing. FOREVER: never; BEGINNING or less: one cannot tell, so it is at every step.
        """
        next_timer = self.part.next_timer(state.part)
        return next_timer if self.output is None else min(next_timer, self.output.changes_at(state.emit))
