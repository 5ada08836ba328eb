"""How the C library treats memory that is freed, and large pages for what is read at random.

A step makes arrays of a few megabytes and frees them again. At first the C library gives each such block back to the
system at once and gets it anew in the next step, page by page: a union in batches of 100,000 rows was five times
slower. It learns to keep blocks once it has seen a great one freed; here is one.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_GREAT = 31 << 20  # bytes; from 32 MB on it would learn nothing. Never touched, so it takes no memory

_LINE: Final = 64
_LARGE_PAGE: Final = 2 << 20


def aligned_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros from the beginning of a cache line on, in large pages if there are many.

    To read at random in pages of 4 kB is to look up where each of them is, which can take longer than to read.
    """
    dtype = np.dtype(dtype)
    size = dtype.itemsize * (prod(shape) if isinstance(shape, tuple) else shape)
    if size >= _LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        return _within(_large_pages(size + _LARGE_PAGE), size, _LARGE_PAGE).view(dtype).reshape(shape)
    return _within(np.zeros(size + _LINE, dtype=np.uint8), size, _LINE).view(dtype).reshape(shape)


def aligned_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.nbytes < _LARGE_PAGE:
        return array.copy()
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def _large_pages(size: int) -> npt.NDArray[np.uint8]:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a system that has none: small ones do
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)


def _within(raw: npt.NDArray[np.uint8], size: int, alignment: int) -> npt.NDArray[np.uint8]:
    first = -raw.ctypes.data % alignment
    return raw[first : first + size]


@cache
def keep_freed_memory() -> None:
    """Once a process."""
    np.empty(_GREAT, dtype=np.uint8)


@cache
def use_one_allocator() -> None:
    """Once a process that keeps to a budget: Arrow's own allocator would hold on to twice of what is in use."""
    pa.set_memory_pool(pa.system_memory_pool())


def give_back_freed_memory() -> None:
    """To the system, what all threads have freed: the C library keeps dozens of megabytes otherwise, since
    `keep_freed_memory`. It takes half a millisecond."""
    pa.system_memory_pool().release_unused()
