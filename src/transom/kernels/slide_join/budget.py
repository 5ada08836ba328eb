"""How a memory budget is divided, and what goes to disk when it is full (Algorithm 1).

Three quarters are for windows and stored results. One quarter is the work area: shares of what is on disk, results on
their way out, and what is being sorted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from transom.kernels.slide_join.memory import BasicWindow, SlideJoinState, Stored
from transom.state.spill import SpillStore


@dataclass(frozen=True)
class MemoryLimits:
    """In bytes: for all that is kept, shares, a chunk of results, results to be stored or emitted, and a sorted run.

    `answer` is what a step gives at most where nobody takes rows before it is over, and slides can be put off.
    """

    room: float
    shares: int
    chunk: int
    buffer: int
    run: int
    answer: float


def limits_of(memory: int | None) -> MemoryLimits:
    """
    >>> limits_of(64 << 20).room / (1 << 20)
    48.0
    """
    if memory is None:
        return MemoryLimits(math.inf, 1 << 30, 4 << 20, 4 << 20, 32 << 20, math.inf)
    work = memory // 4
    return MemoryLimits(memory - work, 3 * work // 8, work // 8, work // 12, max(memory // 16, 1), work)


def victim(state: SlideJoinState) -> Stored | BasicWindow | None:
    """What goes to disk next: stored results, the oldest first; only then basic windows, the oldest first."""
    stored = [part for part in state.stored if part.batch is not None]
    if stored:
        return min(stored, key=lambda part: part.birth)
    windows = [window for window in state.windows if window.in_memory]
    return min(windows, key=lambda window: window.at, default=None)


def put_away(part: Stored | BasicWindow, store: SpillStore) -> None:
    """To disk; a basic window as one, of all inputs."""
    if isinstance(part, Stored):
        part.spill(store)
    else:
        for run in part.runs:
            if run.in_memory:
                run.spill(store)
