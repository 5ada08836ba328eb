"""Expressions that give the same key, however they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from transom.plan.expression import Cast, ColumnRef, Expression, transform


def same_key(left: Expression, right: Expression) -> bool:
    """Whether two expressions over the same columns spread rows alike, whatever the columns are called."""
    return plain(left) == plain(right)


@lru_cache(maxsize=4096)
def plain(key: Expression) -> Expression:
    """Without names, and without casts from an integer to a wider one: they change no value."""
    return transform(transform(key, _without_cast), _without_name)


def without_widening(key: Expression) -> Expression:
    """The key without the casts around it that change no value."""
    while (inner := _without_cast(key)) is not key:
        key = inner
    return key


def columns_in(keys: Sequence[Expression]) -> tuple[int, ...] | None:
    """The columns that the keys are, widened or not; None where one of them is none."""
    bare = [without_widening(each) for each in keys]
    columns = tuple(each.index for each in bare if isinstance(each, ColumnRef))
    return columns if len(columns) == len(bare) else None


def _without_cast(part: Expression) -> Expression:
    if not isinstance(part, Cast) or not pa.types.is_integer(part.target) or not pa.types.is_integer(part.operand.type):
        return part
    return part.operand if part.target.bit_width >= part.operand.type.bit_width else part


def _without_name(part: Expression) -> Expression:
    return replace(part, name="") if isinstance(part, ColumnRef) else part
