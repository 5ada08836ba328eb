"""What a join of two inputs asks of a pair, however lifetimes are represented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels import scalar
from transom.kernels.columns import empty_batch, is_text
from transom.plan.expression import Expression, columns_of, remap


class Gathers(Protocol):
    """A side of a join, as far as the values of its rows go."""

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]: ...


@dataclass(frozen=True)
class JoinPredicate:
    """`left_keys[i] = right_keys[i]` and the residual, an expression over the columns of both sides, must hold."""

    tactic: str  # ring_hash, lazy_hash, nested_loop
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    residual: Expression | None
    schema: pa.Schema
    left_width: int

    def values(self, left: Gathers, right: Gathers, of_left: Int64s, of_right: Int64s) -> pa.RecordBatch:
        """The columns of the pairs."""
        types = self.schema.types
        arrays = left.gather(of_left, range(self.left_width), types[: self.left_width])
        arrays += right.gather(of_right, range(len(types) - self.left_width), types[self.left_width :])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def satisfying(self, left: Gathers, right: Gathers, of_left: Int64s, of_right: Int64s) -> Int64s | None:
        """Which of the pairs satisfy the residual, None if all do; only the columns that it reads are gathered."""
        expression, left_columns, right_columns = self._narrow_residual
        types = self.schema.types
        arrays = left.gather(of_left, left_columns, types[: self.left_width])
        arrays += right.gather(of_right, right_columns, types[self.left_width :])
        if not arrays:  # a constant
            arrays = [pa.nulls(len(of_left))]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
        positions = scalar.keep(expression, batch)
        return None if positions is None else positions.to_numpy().astype("int64")

    @cached_property
    def no_values(self) -> pa.RecordBatch:
        return empty_batch(self.schema)

    @cached_property
    def keyed(self) -> bool:
        """Whether equal hashes do not yet mean equal keys."""
        if len(self.left_keys) == 1:
            type_ = self.left_keys[0].type
            return is_text(type_) or pa.types.is_decimal(type_)
        return bool(self.left_keys)

    @cached_property
    def _narrow_residual(self) -> tuple[Expression, list[int], list[int]]:
        """The residual over only the columns it reads, and which those are on either side."""
        assert self.residual is not None
        used = sorted(columns_of(self.residual))
        narrow = remap(self.residual, {column: i for i, column in enumerate(used)})
        left = [column for column in used if column < self.left_width]
        return narrow, left, [column - self.left_width for column in used if column >= self.left_width]
