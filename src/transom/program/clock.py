"""The wall clock of a run: what decides that a stream has been silent for long, and stamps rows on arrival."""

from __future__ import annotations

import time
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """Microseconds since 1970."""

    def now(self) -> int: ...

    def sleep(self, micros: int, woken: Event | None = None) -> None:
        """Sleep so long, or until somebody sets the event."""


class RealClock:
    def now(self) -> int:
        return time.time_ns() // 1_000

    def sleep(self, micros: int, woken: Event | None = None) -> None:
        (woken or Event()).wait(micros / 1_000_000)


class HeldClock:
    """A clock that only moves when somebody moves it, or sleeps.

    >>> clock = HeldClock(10)
    >>> clock.sleep(5)
    >>> clock.now()
    15
    """

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def sleep(self, micros: int, woken: Event | None = None) -> None:
        self._now += micros
