"""Which operators have something to do in a step; the others are left alone, so that a step with few rows costs little.

An operator runs if something comes to it, or if one of its kernels says that something is due before `upto`. Kernels
that say nothing run in every step. When something is due is asked for after each run, as nothing else can change it; of
a state that was not seen before everybody runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
    if len(delta) or (isinstance(delta, Delta) and delta.ends.chunks):
        return True
    return isinstance(delta, StreamDelta) and bool(delta.values.num_rows)


def nothing_like(delta: Brought, upto: int) -> Brought:
    """As a delta of that kind and of these columns, which brings nothing on the way to `upto`."""
    if isinstance(delta, Delta):
        return Delta(delta.values, _NONE, _NONE, _NONE, upto)
    if isinstance(delta, SignedDelta):
        return SignedDelta(delta.values, _NONE, 0, upto)
    return StreamDelta(delta.values, _NONE, upto)


_NONE: Final = no_int64s()


class Given:
    """What the operators gave in a step, by their numbers; whoever was left alone gave nothing."""

    def __init__(self, nothing: Sequence[Brought | None], upto: int) -> None:
        self._deltas: list[Brought | None] = [None] * len(nothing)
        self._nothing = nothing
        self._upto = upto

    def __getitem__(self, number: int) -> Brought:
        delta = self._deltas[number]
        if delta is None:
            like = self._nothing[number]
            assert like is not None, "an operator was left alone that has never run"
            delta = self._deltas[number] = nothing_like(like, self._upto)
        return delta

    def __setitem__(self, number: int, delta: Brought) -> None:
        self._deltas[number] = delta


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
        self._nothing: list[Brought | None] = []
        self._wanted: list[bool] = []

    def begin(self, state: Any, brought: Mapping[str, Brought], upto: int) -> Given:
        """A step of the operators with this state. Then ask who is wanted, and note what each of those gave."""
        if state is not self._state:
            self._state = state
            self._due = [_ALWAYS] * len(self._ask)
            self._nothing = [None] * len(self._ask)
        self._wanted = [due < upto for due in self._due]
        for port, delta in brought.items():
            if is_something(delta):
                self._want(self._readers.get(port, ()))
        return Given(self._nothing, upto)

    @property
    def wanted(self) -> Iterable[int]:
        """The operators that have to run, children first; what one gives decides on those after it."""
        return (number for number, wanted in enumerate(self._wanted) if wanted)

    def note(self, number: int, memories: Sequence[Any], delta: Brought) -> None:
        """What an operator gave, and what it remembers now."""
        if is_something(delta):
            self._want(self._followers[number])
        if self._nothing[number] is None:
            self._nothing[number] = replace(nothing_like(delta, BEGINNING), values=empty_batch(delta.values.schema))
        asked = self._ask[number]
        if asked is not None:
            due = FOREVER
            for place, kernel in asked:
                due = min(due, kernel.due(memories[place]))
            self._due[number] = due

    def _want(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._wanted[number] = True
