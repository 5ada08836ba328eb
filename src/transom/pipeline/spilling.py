"""Room on disk for the operators of a part that need it, and what becomes of it at a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from transom.kernels.kernel import Kernel, Step
from transom.kernels.slide_join.budget import BudgetPool
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.plan.catalogue import Catalogue
from transom.plan.options import check_spill
from transom.state.allocator import give_back_freed_memory, use_one_allocator
from transom.state.spill import SpillStore


def store_of(catalogue: Catalogue, home: str | None = None, *, referred: bool = True) -> SpillStore:
    """A store as SET spill and SET disk_speed have it, in a folder of its own or at `home`."""
    options = catalogue.options
    check_spill(catalogue)
    if options.get("memory") is not None:
        use_one_allocator()
    return SpillStore(options.get("spill"), home=home, referred=referred, speed=options.get("disk_speed"))


class Spilling:
    """The store of a part; a durable one has its folder beside a checkpoint, which refers to the files in it.

    `bounded`: there is a budget, and the process is to have little memory besides; `pool` are those who share it.
    """

    def __init__(self, store: SpillStore, bounded: bool, pool: BudgetPool | None = None) -> None:
        self.store = store
        self._bounded = bounded
        self._pool = (BudgetPool() if pool is None else pool) if bounded else None
        self._attached: list[SlideJoinState] = []

    @staticmethod
    def wanted(kernels: Iterable[tuple[Kernel, ...]]) -> bool:
        return any(isinstance(kernel, SlideJoinKernel) for of_one in kernels for kernel in of_one)

    def end_step(self) -> None:
        """What was freed in a step is the system's again."""
        if self._bounded:
            give_back_freed_memory()

    def attach(self, memories: Sequence[Any]) -> None:
        """What is in files is read from this store."""
        self._leave()
        for state in self._states(memories):
            state.attach(self.store)
            if self._pool is not None:
                self._pool.join(state, self.store)
                self._attached.append(state)

    def given(self, step: Step) -> Step:
        """The step with all that a join wants which keeps to a budget."""
        return replace(step, spill=self.store, budget=self._pool)

    def close(self) -> None:
        self._leave()
        self.store.close()

    def _leave(self) -> None:
        for state in self._attached:
            if self._pool is not None:
                self._pool.leave(state)
        self._attached = []

    def save(self, memories: Sequence[Any]) -> None:
        """Before a checkpoint is written: everything is in files by then that it can refer to."""
        if self.store.durable:
            for state in self._states(memories):
                state.save(self.store)
            self.store.hold()

    def adopt(self, memories: Sequence[Any]) -> None:
        """After a checkpoint was read: what was on disk is there again."""
        if self.store.durable:
            self.store.adopt([file for state in self._states(memories) for file in state.files])
        self.attach(memories)
        for state in self._states(memories):
            state.move_in()

    def _states(self, memories: Sequence[Any]) -> Iterable[SlideJoinState]:
        return (state for of_one in memories for state in of_one if isinstance(state, SlideJoinState))
