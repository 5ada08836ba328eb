"""What every kernel is: logic without memory, stepped over deltas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Ends, Int64s, StreamDelta
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.crew import Crew
from transom.kernels.decisions import Decisions
from transom.state.holders import HolderPool
from transom.state.spill import SpillStore


@dataclass(frozen=True)
class Step:
    """Time moves from `before` (in the first step: the origin) to `upto`; instants below `upto` become final.

    `horizon` is the last instant at which something can happen when all input has ended; RSTREAM over slides stops
    there. `crew` are threads for kernels that say `uses_crew`; without one, everything is done by the caller.
    `spill` is room on disk for those that keep to a memory budget. `tell` takes rows of the answer before the step is
    over, where there is somebody to take them. `clock` is there if rows are stamped on arrival: they do not wait.
    `decisions` is there if the step may have to be taken again: what is measured decides through it alone. `last_row`
    is the greatest instant of a row that has come, of any input.
    """

    before: int
    upto: int
    origin: int
    holders: HolderPool
    horizon: int = FOREVER
    crew: Crew | None = None
    spill: SpillStore | None = None
    tell: Callable[[StreamDelta], None] | None = None
    clock: Callable[[], int] | None = None
    decisions: Decisions | None = None
    last_row: int = BEGINNING


class Kernel(Protocol):
    """A frozen dataclass. `start` makes its empty state, `step` takes one delta per input and gives one out.

    A kernel may also say when it is `due`: see `Punctual`. One with `uses_crew = True` is given a crew with its steps;
    it may leave work to it that goes on after the step, and waits for that in its next one.
    """

    def start(self) -> Any: ...

    def step(self, state: Any, inputs: Any, step: Step) -> Any: ...


@runtime_checkable
class Punctual(Protocol):
    """A kernel that can be left alone while nothing comes in.

    `due` is the first instant at which something happens though no row and no end comes in, FOREVER if there is none. A
    step up to that instant or an earlier one would then give nothing and change nothing, so it need not be made.
    """

    def due(self, state: Any) -> int: ...


def select_rows(delta: Delta, mask: npt.NDArray[np.bool_]) -> Delta:
    """The delta with only the rows of the mask; the ends are kept by reference."""
    if mask.all():
        return delta
    rows = np.flatnonzero(mask)
    values = delta.values.take(pa.array(rows))
    return Delta(values, delta.ta[rows], delta.te[rows], delta.holder[rows], delta.upto, delta.ends)


def open_rows(values: pa.RecordBatch, ta: Int64s, te: Int64s, step: Step, ends: Ends) -> tuple[Delta, Int64s]:
    """Rows whose `te` is OPEN_END get a holder each, ghosts are left out.

    Returns the delta, and for every given row its holder (NO_HOLDER for determined rows and ghosts).
    """
    still_open = te == OPEN_END
    holder = np.full(len(ta), NO_HOLDER, dtype=np.int64)
    count = int(still_open.sum())
    if count:
        holder[still_open] = step.holders.take(count)
        te = np.where(still_open, FOREVER, te)
    return select_rows(Delta(values, ta, te, holder, step.upto, ends), ta < te), holder


OPEN_END = np.iinfo(np.int64).max  # within a kernel: an end that this step did not bring
