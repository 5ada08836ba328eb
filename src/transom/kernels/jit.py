"""How hot loops are compiled: nopython, without the GIL, cached on disk; and whether any is being compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event
from numba.extending import register_jitable


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    return compiled


def borrowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """For what compiled loops call for every row, and which itself calls nothing but the like and makes no arrays.

    A call counts references to every array that it is handed, which takes several times as long as to look at a row;
    here the caller holds them, and nothing is counted. Called from elsewhere it is the function as it is written.
    """
    made: Callable[..., Any] = register_jitable(nogil=True, _nrt=False)(function)
    return made


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled into whoever calls it: a call would count references to every array that it is handed."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, forceinline=True)(function)
    return compiled


@contextmanager
def when_compiling(notify: Callable[[], None]) -> Iterator[None]:
    """Within it, `notify` is called once, in whatever thread, when the first loop is compiled that is not cached."""
    with event.install_listener("numba:compile", _First(notify)):
        yield


def from_now_on_when_compiling(notify: Callable[[], None]) -> None:
    """Call `notify` once, when the first loop is compiled that is not cached, however late that is."""
    event.register("numba:compile", _First(notify))  # type: ignore[no-untyped-call]


class _First(event.Listener):
    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: event.Event) -> None:
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: event.Event) -> None: ...
