"""Which tests run, and how many examples: by day those that a change is held to, at night all (`make nightly`).

With a planted bug they are those of the day, and an example that fails is not made smaller.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

NIGHTLY: Final = os.environ.get("TRANSOM_TESTS") == "nightly"
PLANTED: Final = os.environ.get("TRANSOM_TESTS") == "planted"


def examples(by_day: int, at_night: int) -> int:
    return at_night if NIGHTLY else by_day


def in_turn(ways: Sequence[T], number: int) -> Sequence[T]:
    """All ways to run a case at night, and by day one of them: of the case with this number."""
    return ways if NIGHTLY else ways[number % len(ways) :][:1]


def first_of(first: T, *others: T) -> Sequence[T]:
    """All of them at night, and by day the first."""
    return (first, *others) if NIGHTLY else (first,)
