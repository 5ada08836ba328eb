"""How hot loops are compiled: nopython, without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
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
