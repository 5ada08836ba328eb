"""How an answer leaves a stage: in the form that was asked for, by the cheapest way that the plan admits.

A step writes what came to the answer, what is due of it by time alone, and at the end of all input what is still open.
Net changes wait until the batch is over, which may have several steps.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.pipeline.answer import held_output, output_form
from transom.pipeline.emit import (
    ChangesEmit,
    Emit,
    LatestEmit,
    LifetimesEmit,
    LifetimesState,
    NegativeLifetimesEmit,
    emit_of,
)
from transom.pipeline.net import NetEmit
from transom.pipeline.timers import Brought, is_something
from transom.plan.algebra import Filter, OuterJoin, Project, SemiJoin
from transom.planner.answer_key import answer_key

AnyEmit = Emit | NetEmit


class OutputWriter:
    """Writes an answer in the form of this name."""

    def __init__(self, name: str, emit: AnyEmit) -> None:
        self.name = name
        self.emit = emit
        self.schema = held_output(name, emit.schema)
        self._nothing = empty_batch(self.schema)

    @staticmethod
    def of(root: Operator, emit: str) -> OutputWriter:
        """The writer for the rows of an operator."""
        name = output_form(root, emit)
        if name == "changes" and _emitted_directly(root):
            return OutputWriter(name, ChangesEmit(root.schema, direct=True))
        if name == "net":
            return OutputWriter(name, NetEmit(root.schema, answer_key(root)))
        return OutputWriter(name, emit_of(name, root.schema, negative=root.negative))

    def start(self) -> Any:
        return self.emit.start()

    def next_timer(self, state: Any) -> int:
        """The first instant at which there is something to write though nothing comes."""
        if isinstance(state, LifetimesState) and state.slots.in_use:
            return FOREVER - 1  # at the end of all input the rows that are open are written
        return self.emit.next_timer(state)

    def changes_at(self, state: Any) -> int:
        """The first instant at which the answer changes though nothing comes: an unchanged snapshot is not written."""
        return state.lifetimes.next_timer if isinstance(self.emit, LatestEmit) else self.next_timer(state)

    def write(self, state: Any, answer: Brought, step: Step) -> pa.RecordBatch:
        rows = self._nothing
        if is_something(answer) or self.emit.next_timer(state) < step.frontier:
            rows = self.emit.write(state, answer, step)  # type: ignore[arg-type]
        if step.frontier == FOREVER and isinstance(self.emit, LifetimesEmit | NegativeLifetimesEmit):
            rows = pa.concat_batches([rows, self.emit.remaining(state)])
        return rows

    def holds(self, state: Any) -> bool:
        """Whether rows wait for the end of the batch."""
        return isinstance(self.emit, NetEmit) and bool(state.noted)

    def flush(self, state: Any) -> pa.RecordBatch:
        """The batch is over: the rows that have waited for that."""
        return self.emit.flush(state) if isinstance(self.emit, NetEmit) else self._nothing


def _emitted_directly(root: Operator) -> bool:
    """Whether no values are counted: where rows know their end, and of joins whose rows come and go with partners, of
    which few are equal."""
    below = root
    while isinstance(below.node, Filter | Project):
        (below,) = below.inputs
    return root.ends_known or (isinstance(below.node, OuterJoin | SemiJoin) and not root.negative)
