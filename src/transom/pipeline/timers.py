"""Which operators have something to do in a step; the others are left alone, so that a step with few rows costs little.

An operator runs if something comes to it, or if one of its kernels says that something is due before `frontier`.
Kernels that say nothing run in every step. When something is due is asked after each run, as nothing else can
change it; of a state that was not seen before everybody runs. What comes from one that was left alone is the same
nothing every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from typing import Any, Final, cast

import numpy as np

from transom.core.delta import Changelog, Delta, StreamDelta, no_int64s
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Kernel, Punctual

Brought = Delta | Changelog | StreamDelta

Source = tuple[str | None, int]
"""What comes to an input: by a channel, or from another operator, by its number."""

_ALWAYS: Final = int(np.iinfo(np.int64).min)


def is_something(delta: Brought) -> bool:
    """Whether a delta brings rows or ends. The rows of a static table have no times."""
    if len(delta):
        return True
    if isinstance(delta, Delta):
        return bool(delta.ends.chunks)
    return isinstance(delta, StreamDelta) and bool(delta.values.num_rows)


def nothing_like(delta: Brought) -> Brought:
    """A delta of the same kind and columns that brings nothing; it belongs to no step, so it is good for all."""
    values = empty_batch(delta.values.schema)
    if isinstance(delta, Delta):
        return Delta(values, _NONE, _NONE, _NONE, BEGINNING)
    if isinstance(delta, Changelog):
        return Changelog(values, _NONE, 0, BEGINNING)
    return StreamDelta(values, _NONE, BEGINNING)


_NONE: Final = no_int64s()


@cache
def _is_punctual(kind: type) -> bool:
    return issubclass(kind, Punctual)


def _timed(kernels: tuple[Kernel, ...]) -> list[tuple[int, Punctual]] | None:
    """The kernels of an operator that can tell when they are due, and their indexes; None where one cannot.

    For one without a memory nothing is ever due by itself, so it need not be asked.
    """
    timed: list[tuple[int, Punctual]] = []
    for index, kernel in enumerate(kernels):
        if not _is_punctual(type(kernel)):
            return None
        if kernel.start() is not None:
            timed.append((index, cast(Punctual, kernel)))
    return timed


class Timers:
    """`sources` are the inputs of each operator, whose numbers are below its own."""

    def __init__(self, kernels: Sequence[tuple[Kernel, ...]], sources: Sequence[Sequence[Source]]) -> None:
        self._timed_kernels = [_timed(of_one) for of_one in kernels]
        self._followers: list[list[int]] = [[] for _ in kernels]
        self._readers: dict[str, list[int]] = {}
        for number, inputs in enumerate(sources):
            for channel, child in inputs:
                (self._followers[child] if channel is None else self._readers.setdefault(channel, [])).append(number)
        self._state: Any = None
        self._next_timers: list[int] = []
        self._nothing: list[Any] = []
        self._timely: list[int] = []
        self._wanted: list[int] = []
        self._queued: set[int] = set()

    def begin(self, state: Any, brought: Mapping[str, Brought], frontier: int) -> list[Any]:
        """A step of the operators with this state. Then ask who is wanted, and note what each of those gave.

        What the operators give in this step, by their numbers, is to be written into the list: there is nothing in it
        yet.
        """
        if state is not self._state:
            self._state = state
            self._next_timers = [_ALWAYS] * len(self._timed_kernels)
            self._nothing = [None] * len(self._timed_kernels)
            self._timely = list(range(len(self._timed_kernels)))
        elif len(self._timely) == len(self._timed_kernels):  # those that were never due by themselves never will be
            self._timely = [n for n in self._timely if self._timed_kernels[n] != [] or self._next_timers[n] < FOREVER]
        next_timer = self._next_timers
        self._wanted = [n for n in self._timely if next_timer[n] < frontier]  # in order, so it is a heap
        self._queued = set(self._wanted)
        for channel, delta in brought.items():
            if is_something(delta):
                self._want(self._readers.get(channel, ()))
        return self._nothing.copy()

    def next_timer(self, state: Any) -> int:
        """The first instant at which somebody is due by time alone; before all instants where one cannot tell."""
        if state is not self._state:
            return _ALWAYS if self._timed_kernels else FOREVER
        return min(self._next_timers, default=FOREVER)

    @property
    def wanted(self) -> Iterator[int]:
        """The operators that have to run, children first; what one gives decides on those after it."""
        while self._wanted:
            yield heappop(self._wanted)

    def note(self, number: int, memories: Sequence[Any], delta: Brought) -> None:
        """What an operator gave, and what it remembers now."""
        if is_something(delta):
            self._want(self._followers[number])
        if self._nothing[number] is None:
            self._nothing[number] = nothing_like(delta)
        timed = self._timed_kernels[number]
        if timed is not None:
            next_timer = FOREVER
            for index, kernel in timed:
                next_timer = min(next_timer, kernel.next_timer(memories[index]))
            self._next_timers[number] = next_timer

    def _want(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number not in self._queued:
                self._queued.add(number)
                heappush(self._wanted, number)
