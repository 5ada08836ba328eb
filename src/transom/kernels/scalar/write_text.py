"""Values written as texts, in DuckDB's spelling."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BOOLEAN, DOUBLE, TIMESTAMP, TIMESTAMPTZ, VARCHAR
from transom.kernels.scalar import decimals
from transom.kernels.scalar.values import valid_like, whole
from transom.plan.typing_rules import is_decimal


def writer(source: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """How values of a type are written."""
    if source == DOUBLE:
        return _write_doubles
    if is_decimal(source):
        return _write_decimals
    if source == TIMESTAMP:
        return _write_timestamps
    if source == TIMESTAMPTZ:
        return lambda column: pc.binary_join_element_wise(_write_timestamps(column.cast(TIMESTAMP)), "+00", "")
    if source == BOOLEAN:
        words = (pa.scalar("true"), pa.scalar("false"))
        return lambda column: pc.if_else(column, *words)
    return lambda column: column.cast(VARCHAR)


def _write_doubles(column: pa.Array) -> pa.Array:
    """The shortest digits that give the number back; Python changes to 1e+16 where DuckDB does.

    NaN is always nan. DuckDB shows its sign, which no comparison sees and which is an accident of the processor.
    A number at a time: Arrow writes 1.0 as 1, and no other column-wise writer of shortest digits is at hand.
    """
    values = column.to_numpy(zero_copy_only=False)
    return valid_like(pa.array([repr(x) for x in values.tolist()], VARCHAR), column)


def _write_timestamps(column: pa.Array) -> pa.Array:
    """A fraction only where there is one, without its last zeros."""
    return pc.utf8_rtrim(pc.utf8_rtrim(column.cast(VARCHAR), "0"), ".")


def _write_decimals(column: pa.Array) -> pa.Array:
    """All places, also those that are zero; DuckDB writes no zero before the point if the type has no digit there."""
    scale, precision = column.type.scale, column.type.precision
    numbers = decimals.unscaled(column) if precision <= 18 or scale == 0 else None
    if scale == 0 and numbers is not None:
        return numbers.cast(VARCHAR)
    if numbers is None:
        exact = decimals.exact(column)
        return pa.array([None if n is None else _write_exact(n, scale, precision) for n in exact], VARCHAR)
    digits = pc.utf8_lpad(pc.abs(numbers).cast(VARCHAR), scale + (precision > scale), "0")
    sign = pc.if_else(pc.less(numbers, whole(0)), pa.scalar("-"), pa.scalar(""))
    before, after = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, before, pa.scalar("."), after, "")


def _write_exact(number: int, scale: int, precision: int) -> str:
    digits = str(abs(number)).rjust(scale + (precision > scale), "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"
