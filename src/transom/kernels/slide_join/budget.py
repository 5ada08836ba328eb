"""How a memory budget is divided, and what goes to disk when it is full (Algorithm 1).

Three quarters are for windows and stored results, of all joins that share the budget: what goes to disk is chosen among
all of them. One quarter is the work area, of the one that is at work: shares of what is on disk, results on their way
out, and what is being sorted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from transom.kernels.slide_join.memory import BasicWindow, SlideJoinState, Stored
from transom.kernels.slide_join.sorted_run import SortedRun
from transom.state.spill import SpillStore


@dataclass(frozen=True)
class MemoryLimits:
    """In bytes: the budget, for all that is kept, shares, a chunk of results, results to be stored or emitted, and a
    sorted run.

    `answer` is what a step gives at most where nobody takes rows before it is over, and slides can be put off.
    """

    budget: float
    room: float
    shares: int
    chunk: int
    buffer: int
    run: int
    answer: float


def sink_part(memory: int) -> int:
    """What a sink is to have in memory at most.

    >>> sink_part(64 << 20) >> 20
    8
    """
    return memory // 8


def limits_of(memory: int | None) -> MemoryLimits:
    """
    >>> limits_of(64 << 20).room / (1 << 20)
    48.0
    """
    if memory is None:
        return MemoryLimits(math.inf, math.inf, 1 << 30, 4 << 20, 4 << 20, 32 << 20, math.inf)
    work = memory // 4
    return MemoryLimits(memory, memory - work, 3 * work // 8, work // 8, work // 12, max(memory // 16, 1), work)


class BudgetPool:
    """Joins that keep to a budget together: those of a run that are in one place, of which one works at a time.

    Each has its state and the store that it spills to; `emitted` are bytes of their rows that sinks have in memory.
    What goes to disk follows from the states alone, by age and, of equal age, by who came first: so a step that is
    taken again chooses as it did before.
    """

    def __init__(self, emitted: Callable[[], int] = lambda: 0) -> None:
        self._emitted = emitted
        self._members: dict[int, tuple[SlideJoinState, SpillStore]] = {}
        self._peak = 0

    def join(self, state: SlideJoinState, store: SpillStore) -> None:
        self._members[id(state)] = state, store

    def leave(self, state: SlideJoinState) -> None:
        self._members.pop(id(state), None)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def bytes(self) -> int:
        return self._emitted() + sum(state.bytes for state, _ in self._members.values())

    def beside(self, state: SlideJoinState) -> int:
        """What all but one have."""
        return self._emitted() + sum(other.bytes for other, _ in self._members.values() if other is not state)

    @property
    def write_seconds(self) -> float:
        """What it took to write, whoever it was written for."""
        return sum(store.write_seconds for store in {id(store): store for _, store in self._members.values()}.values())

    def make_room(self, size: int, room: float) -> None:
        """For so many bytes more: results and windows go to disk. Unfinished slides that need a window which goes are
        put off; whose they are says so in its next turn."""
        while room < math.inf and self.bytes + size > room and (chosen := self.victim()) is not None:
            state, store, part = chosen
            if isinstance(part, BasicWindow):
                state.void(part, store)
            self._put_away(state, store, part)

    def store_results(self, state: SlideJoinState, store: SpillStore, part: Stored, room: float) -> None:
        """Keep results: in memory if there is room once the oldest ones are on disk, whoever stored them; no window
        goes for them."""
        while room < math.inf and self.bytes + part.bytes > room:
            oldest = self._oldest_stored()
            self._put_away(*(oldest or (state, store, part)))
            if oldest is None:
                break
        state.stored.append(part)

    def make_room_of_results(self, room: float) -> None:
        """For groups, which stay in memory while the windows that they are made of are looked at."""
        while room < math.inf and self.bytes > room and (oldest := self._oldest_stored()) is not None:
            self._put_away(*oldest)

    def victim(self) -> tuple[SlideJoinState, SpillStore, Stored | BasicWindow] | None:
        """What goes to disk next: stored results, the oldest first; only then basic windows, the oldest first."""
        windows = (
            (state, store, window)
            for state, store in self._members.values()
            for window in state.windows
            if window.in_memory
        )
        return self._oldest_stored() or min(windows, key=lambda member: member[2].at, default=None)

    def note_peak(self, state: SlideJoinState, working: int, limits: MemoryLimits) -> None:
        """Of the one that works and has `working` bytes in its hands, and of all together."""
        report, own = state.report, state.bytes + working
        report.peak_bytes = max(report.peak_bytes, own)
        if limits.budget < math.inf:
            self._peak = max(self._peak, own + self.beside(state))
            report.budget, report.peak_together = int(limits.budget), self._peak
            report.sharing = max(len(self), state.sharing)

    def _oldest_stored(self) -> tuple[SlideJoinState, SpillStore, Stored] | None:
        stored = (
            (state, store, part)
            for state, store in self._members.values()
            for part in state.stored
            if part.batch is not None
        )
        return min(stored, key=lambda member: member[2].birth, default=None)

    @staticmethod
    def _put_away(state: SlideJoinState, store: SpillStore, part: Stored | BasicWindow) -> None:
        """To disk; a basic window as one, of all inputs."""
        before = store.written
        for each in _in_memory(part):
            each.spill(store)
        state.report.bytes_written += store.written - before


def _in_memory(part: Stored | BasicWindow) -> Iterator[Stored | SortedRun]:
    if isinstance(part, Stored):
        yield part
    else:
        yield from (run for run in part.runs if run.in_memory)


class RunBudget:
    """The budget of a run in one process: of every partition a pool, of which the budget is divided among as many.

    The rows that wait in the hands of sinks count as well: `sinks` say how many bytes those are. Who looks at a join
    waits for the step of any of them, under `lock`: it may put away what others keep.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sinks: list[Callable[[], int]] = []
        self._pools: dict[tuple[int, int], BudgetPool] = {}

    def pool(self, partition: int, partitions: int) -> BudgetPool:
        return self._pools.setdefault((partition, partitions), BudgetPool(lambda: self._emitted() // partitions))

    def _emitted(self) -> int:
        return sum(held() for held in self.sinks)
