"""When an operator has changed its tactic, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transom.kernels.changing import ChangingState


def changes_of(memories: Sequence[Any]) -> tuple[str, ...]:
    """The changes of an operator, by what its kernels remember, of each partition on its own; none if it never does."""
    return changes_in([state.lines() for state in memories if isinstance(state, ChangingState)])


def changes_in(partitions: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The lines of an operator in its partitions.

    >>> changes_in([["pc now"]]), changes_in([["pc now"], ["factorised now"]])
    (('pc now',), ('partition 0: pc now', 'partition 1: factorised now'))
    """
    if len(partitions) == 1:
        return tuple(partitions[0])
    return tuple(f"partition {number}: {line}" for number, lines in enumerate(partitions) for line in lines)
