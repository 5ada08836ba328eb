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


def alike(expected: Any, actual: Any) -> None:
    """A state must be built like a fresh one of the same operator: the same classes, types of numbers and columns.

    What is empty or None in a fresh state says nothing of what may be there.
    """
    if expected is None:
        return
    kind = type(expected)
    if kind is np.ndarray:
        need(isinstance(actual, np.ndarray) and actual.dtype == expected.dtype and actual.ndim == expected.ndim)
        if expected.ndim > 1:  # all axes but the one that grows
            need(sum(a != b for a, b in zip(expected.shape, actual.shape, strict=True)) <= 1)
    elif kind is list or kind is tuple:
        need(type(actual) is kind)
        if expected:
            need(len(actual) == len(expected))
            for actual_part, other in zip(expected, actual, strict=True):
                alike(actual_part, other)
    elif kind is dict:
        need(isinstance(actual, dict) and (not expected or expected.keys() == actual.keys()))
        for key, actual_part in expected.items():
            alike(actual_part, actual[key])
    else:
        need(type(actual) is kind)
        for name in getattr(kind, "__dataclass_fields__", ()):
            alike(getattr(expected, name), getattr(actual, name))
