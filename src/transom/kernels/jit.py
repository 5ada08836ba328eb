"""How hot loops are compiled: nopython, without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    compiled: Function = numba.njit(cache=True, nogil=True)(function)
    return compiled
