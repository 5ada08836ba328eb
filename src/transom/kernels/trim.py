"""States without the room that they keep for more: arrays up to the highest slot that was ever in use at once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from transom.state.codec import saved_bytes

State = TypeVar("State")


def trimmed(state: State, high: int, names: tuple[str, ...], **others: Any) -> State:
    """A copy in which the named arrays have `high` slots along their last axis; `others` are as they are given."""
    cut = {name: getattr(state, name)[..., :high] for name in names}
    return replace(state, **cut, **others)  # type: ignore[type-var]


def trimmed_bytes(state: Any) -> int:
    """About how many bytes the parts of a trimmed state take."""
    return sum(saved_bytes(getattr(state, field.name)) for field in fields(state))
