"""How hot loops are compiled: nopython, without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled into whoever calls it: a call would count references to every array that it is handed."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, forceinline=True)(function)
    return compiled
