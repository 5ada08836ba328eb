"""What every kernel is: logic without memory, stepped over deltas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Halves, Int64s, StreamDelta
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.decisions import Decisions
from transom.kernels.taken import taken_rows
from transom.kernels.worker_pool import WorkerPool
from transom.state.open_ids import OpenIdPool
from transom.state.spill import SpillStore

if TYPE_CHECKING:
    from transom.kernels.slide_join.budget import BudgetPool


@dataclass(frozen=True)
class Step:
    """Time moves from `before` (in the first step: the origin) to `frontier`; instants below `frontier` become final.

    `horizon` is the last instant at which something can happen when all input has ended; RSTREAM over slides stops
    there. `worker_pool` are threads for kernels that say `uses_worker_pool`; without one, everything is done by the
    caller. `spill` is room on disk for those that keep to a memory budget. `emit_rows` takes rows of the answer before
    the step is over, where there is somebody to take them. `clock` is there if rows are stamped on arrival: they do not
    wait. `budget` is who keeps to a memory budget together; where they are in other places, so many are `sharing` it
    (0: as many as in the step before). `decisions` is there if the step may have to be taken again: what is measured
    decides through it alone. `last_row` is the greatest instant of a row that has come, of any input.
    """

    before: int
    frontier: int
    origin: int
    open_ids: OpenIdPool
    horizon: int = FOREVER
    worker_pool: WorkerPool | None = None
    spill: SpillStore | None = None
    budget: BudgetPool | None = None
    sharing: int = 0
    emit_rows: Callable[[StreamDelta], None] | None = None
    clock: Callable[[], int] | None = None
    decisions: Decisions | None = None
    last_row: int = BEGINNING


class Kernel(Protocol):
    """A frozen dataclass. `start` makes its empty state, `step` takes one delta per input and gives one out.

    A kernel may also have `next_timer` (see `Punctual`). One with `uses_worker_pool = True` is given a worker
    pool with its steps; it may leave work to it that goes on after the step, and waits for that in its next one.
    """

    def start(self) -> Any: ...

    def step(self, state: Any, inputs: Any, step: Step) -> Any: ...


@runtime_checkable
class Punctual(Protocol):
    """A kernel that can be left alone while nothing comes in.

    `next_timer` is the first instant at which something happens though no row and no end comes in, FOREVER if there is
    none. A step up to that instant or an earlier one would then give nothing and change nothing, so it need not be
    made.
    """

    def next_timer(self, state: Any) -> int: ...


def select_rows(delta: Delta, mask: npt.NDArray[np.bool_]) -> Delta:
    """The delta with only the rows of the mask; the ends are kept by reference."""
    if mask.all():
        return delta
    rows = np.flatnonzero(mask)
    values = taken_rows(delta.values, rows)
    halves = None if delta.halves is None else Halves(delta.halves.sides, delta.halves.names[:, rows])
    return Delta(values, delta.ta[rows], delta.te[rows], delta.open_id[rows], delta.frontier, delta.ends, halves)


def open_rows(
    values: pa.RecordBatch, ta: Int64s, te: Int64s, step: Step, ends: Ends, halves: Halves | None = None
) -> tuple[Delta, Int64s]:
    """Rows whose `te` is OPEN_END get an open row id each, ghosts are left out.

    Returns the delta, and for every given row its open row id (NO_OPEN_ID for determined rows and ghosts).
    """
    still_open = te == OPEN_END
    open_id = np.full(len(ta), NO_OPEN_ID, dtype=np.int64)
    count = int(still_open.sum())
    if count:
        open_id[still_open] = step.open_ids.take(count)
        te = np.where(still_open, FOREVER, te)
    return select_rows(Delta(values, ta, te, open_id, step.frontier, ends, halves), ta < te), open_id


OPEN_END = np.iinfo(np.int64).max  # within a kernel: an end that this step did not bring
