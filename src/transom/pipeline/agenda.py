"""Which operators have something to do in a step; the others are left alone, so that a step with few rows costs little.

An operator runs if something comes to it, or if one of its kernels says that something is due before `upto`. Kernels
that say nothing run in every step. When something is due is asked for after each run, as nothing else can change it; of
a state that was not seen before everybody runs. What comes from one that was left alone is the same nothing every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np

from transom.core.delta import Delta, SignedDelta, StreamDelta, no_int64s
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Kernel, Punctual

Brought = Delta | SignedDelta | StreamDelta

Source = tuple[str | None, int]
"""What comes to an input: by a port, or from another operator, by its number."""

_ALWAYS: Final = int(np.iinfo(np.int64).min)


def is_something(delta: Brought) -> bool:
    """Whether a delta brings rows or ends. The rows of a static table have no times."""
    if len(delta):
        return True
    if isinstance(delta, Delta):
        return bool(delta.ends.chunks)
    return isinstance(delta, StreamDelta) and bool(delta.values.num_rows)


def nothing_like(delta: Brought) -> Brought:
    """As a delta of that kind and of these columns, which brings nothing; in no step, so it is good for all."""
    values = empty_batch(delta.values.schema)
    if isinstance(delta, Delta):
        return Delta(values, _NONE, _NONE, _NONE, BEGINNING)
    if isinstance(delta, SignedDelta):
        return SignedDelta(values, _NONE, 0, BEGINNING)
    return StreamDelta(values, _NONE, BEGINNING)


_NONE: Final = no_int64s()


def _asked(kernels: tuple[Kernel, ...]) -> list[tuple[int, Punctual]] | None:
    """Those of an operator's kernels that can tell when they are due, and their places; None where one cannot.

    For one without a memory nothing is ever due by itself, so it need not be asked.
    """
    found: list[tuple[int, Punctual]] = []
    for place, kernel in enumerate(kernels):
        if not isinstance(kernel, Punctual):
            return None
        if kernel.start() is not None:
            found.append((place, kernel))
    return found


class Agenda:
    """`sources` are the inputs of each operator, whose numbers are below its own."""

    def __init__(self, kernels: Sequence[tuple[Kernel, ...]], sources: Sequence[Sequence[Source]]) -> None:
        self._ask = [_asked(of_one) for of_one in kernels]
        self._followers: list[list[int]] = [[] for _ in kernels]
        self._readers: dict[str, list[int]] = {}
        for number, inputs in enumerate(sources):
            for port, child in inputs:
                (self._followers[child] if port is None else self._readers.setdefault(port, [])).append(number)
        self._state: Any = None
        self._due: list[int] = []
        self._nothing: list[Any] = []
        self._timely: list[int] = []
        self._wanted: list[int] = []
        self._known: set[int] = set()

    def begin(self, state: Any, brought: Mapping[str, Brought], upto: int) -> list[Any]:
        """A step of the operators with this state. Then ask who is wanted, and note what each of those gave.

        What the operators give in this step, by their numbers, is to be written into the list: there is nothing in it
        yet.
        """
        if state is not self._state:
            self._state = state
            self._due = [_ALWAYS] * len(self._ask)
            self._nothing = [None] * len(self._ask)
            self._timely = list(range(len(self._ask)))
        elif len(self._timely) == len(self._ask):  # those that were never due by themselves never will be
            self._timely = [n for n in self._timely if self._ask[n] != [] or self._due[n] < FOREVER]
        due = self._due
        self._wanted = [n for n in self._timely if due[n] < upto]  # in order, so it is a heap
        self._known = set(self._wanted)
        for port, delta in brought.items():
            if is_something(delta):
                self._want(self._readers.get(port, ()))
        return self._nothing.copy()

    def due(self, state: Any) -> int:
        """The first instant at which somebody is due by time alone; before all instants where one cannot tell."""
        if state is not self._state:
            return _ALWAYS if self._ask else FOREVER
        return min(self._due, default=FOREVER)

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
        asked = self._ask[number]
        if asked is not None:
            due = FOREVER
            for place, kernel in asked:
                due = min(due, kernel.due(memories[place]))
            self._due[number] = due

    def _want(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number not in self._known:
                self._known.add(number)
                heappush(self._wanted, number)
