"""What a state that was read back must fulfil before anything is looked up in it."""

from __future__ import annotations

from typing import Any

import numpy as np


class Unsound(ValueError):
    """A saved state says something of itself that cannot be true."""


def need(condition: bool) -> None:
    if not condition:
        raise Unsound


def within(numbers: Any, high: int, low: int = 0) -> None:
    """Every number lies in [low, high)."""
    if numbers.size:
        need(bool(low <= numbers.min() and numbers.max() < high))


def rooms(count: int, *arrays: Any) -> None:
    """The arrays have room for so many, along their last axis."""
    need(count >= 0 and all(array.shape[-1] >= count for array in arrays))


def alike(expected: Any, found: Any) -> None:
    """A state must be built like a fresh one of the same operator: the same classes, types of numbers and columns.

    What is empty or None in a fresh state says nothing of what may be there.
    """
    if expected is None:
        return
    kind = type(expected)
    if kind is np.ndarray:
        need(isinstance(found, np.ndarray) and found.dtype == expected.dtype and found.ndim == expected.ndim)
        if expected.ndim > 1:  # all axes but the one that grows
            need(sum(a != b for a, b in zip(expected.shape, found.shape, strict=True)) <= 1)
    elif kind is list or kind is tuple:
        need(type(found) is kind)
        if expected:
            need(len(found) == len(expected))
            for one, other in zip(expected, found, strict=True):
                alike(one, other)
    elif kind is dict:
        need(isinstance(found, dict) and (not expected or expected.keys() == found.keys()))
        for key, one in expected.items():
            alike(one, found[key])
    else:
        need(type(found) is kind)
        for name in getattr(kind, "__dataclass_fields__", ()):
            alike(getattr(expected, name), getattr(found, name))
