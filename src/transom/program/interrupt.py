"""Signals that ask a program to end: Ctrl-C, SIGTERM, and SIGHUP where it is not ignored.

While a query runs they are only noted: the step that is under way is finished first, so that nothing is left half done.
Otherwise they are raised, Ctrl-C as KeyboardInterrupt and the others as `Terminated`, so that `with` and `finally` do
their work. A handler that somebody else has installed stays, and what is ignored stays ignored.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ONE: Final = 1.0
"""SIGTERM or SIGHUP again within so many seconds is the same one: a shell and the kernel both send it at a hang-up, and
`timeout` signals the process and then its group."""

_heard: dict[int, float] = {}
"""When each signal was last heard."""

_now: Callable[[], float] = time.monotonic


class Terminated(SystemExit):
    """A signal has asked the program to end; the code is the one that a shell reports for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = 128 + number
        super().__init__(self.status)

    def __str__(self) -> str:
        return f"ended by {signal.Signals(self.number).name}"


class Interrupt:
    """Within it a signal is only noted; a second one interrupts at once. It does nothing outside the main thread."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        return self._number is not None

    def notify(self) -> None:
        """Raise what was noted, if anything was."""
        if self._number is not None:
            _raise(self._number)

    def __enter__(self) -> Interrupt:
        for number in _unclaimed():
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if _again(number):
            return
        if self._number is not None:
            _raise(number)
        self._number = number


def listen() -> None:
    """Raise in this program, from now on, signals that would end it at once; only in the main thread.

    So a program that is told to end closes its session, and leaves no files behind.
    """
    for number in _unclaimed():
        if number != signal.SIGINT:
            signal.signal(number, _end)


def ending() -> bool:
    """Whether this program has been asked to end."""
    return bool(_heard)


def _unclaimed() -> list[signal.Signals]:
    """The signals that have no handler but Python's, or ours."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [
        number for number in ENDING if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL, _end)
    ]


def _end(number: int, frame: FrameType | None) -> None:
    if not _again(number):
        _raise(number)


def _again(number: int) -> bool:
    """Whether it is the one that was heard a moment ago. A person who types Ctrl-C twice means it."""
    last, _heard[number] = _heard.get(number), _now()
    return number != signal.SIGINT and last is not None and _heard[number] - last < _ONE


def _raise(number: int) -> None:
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)
