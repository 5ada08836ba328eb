"""What every scalar kernel works with: values, the error it raises, and the slow road for what Arrow cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import EvaluationError
from transom.plan.expression import Expression

Value: TypeAlias = "pa.Array | pa.Scalar"
"""A column, or a constant for all rows. A kernel gets at least one column among its arguments."""

Kernel = Callable[..., Value]

TRUE: Final = pa.scalar(True)
FALSE: Final = pa.scalar(False)
UNKNOWN: Final = pa.scalar(None, pa.bool_())

_SHOWN: Final = 160


@lru_cache(maxsize=512)
def whole(number: int) -> pa.Scalar:
    """A BIGINT constant, made once: Arrow takes ten times longer for a bare Python number than for its kernel."""
    return pa.scalar(number, pa.int64())


def is_true(value: Value) -> Value:
    """A condition without its NULLs, which do not hold."""
    return pc.coalesce(value, FALSE)


def nulled(column: pa.Array, bad: pa.Array) -> pa.Array:
    """The column with NULL in the bad rows."""
    return pc.if_else(bad, pa.scalar(None, column.type), column) if bad.true_count else column


def valid_like(result: pa.Array, *sources: pa.Array) -> pa.Array:
    """The result with NULL wherever one of the sources is NULL."""
    for source in sources:
        if source.null_count:
            result = pc.if_else(source.is_valid(), result, pa.scalar(None, result.type))
    return result


def as_array(value: Value, rows: int) -> pa.Array:
    """The value as a column."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def as_arrays(values: Sequence[Value]) -> list[pa.Array]:
    rows = rows_of(values)
    return [as_array(value, rows) for value in values]


def rows_of(values: Sequence[Value]) -> int:
    return next(len(value) for value in values if isinstance(value, pa.Array))


def failure(expression: Expression, reason: str, values: Sequence[Value], row: int) -> EvaluationError:
    """The error for a row: what was computed, from which values, and why it has no result."""
    shown = [_shorten(_show(value, row)) for value in values]
    return EvaluationError(
        f"{_shorten(str(expression))} failed on {', '.join(shown)}: {reason}",
        remedy="widen the type with CAST, filter such rows out, or use TRY_CAST where a text is read",
    )


def _show(value: Value, row: int) -> str:
    at = value[row] if isinstance(value, pa.Array) else value
    return str(at) if not isinstance(at, pa.StringScalar | pa.ListScalar | pa.StructScalar) else repr(at.as_py())


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 2] + ".."


def first_true(mask: pa.Array) -> int | None:
    """The first row where the mask is true, None when there is none."""
    if mask.true_count == 0:
        return None
    return int(pc.index(mask, True).as_py())


def reject_rows(expression: Expression, reason: str, values: Sequence[Value], bad: pa.Array) -> None:
    """Raise for the first bad row, if there is one."""
    row = first_true(bad)
    if row is not None:
        raise failure(expression, reason, values, row)


def by_row(function: Callable[..., Any], values: Sequence[Value], type_: pa.DataType) -> pa.Array:
    """The slow road: a Python function of one row, for the few things that Arrow has no kernel for.

    NULL in, NULL out. With one column it runs once for each distinct value, otherwise once for each distinct row.
    """
    columns = [value for value in values if isinstance(value, pa.Array)]
    if len(columns) == 1:
        encoded = columns[0].dictionary_encode()
        constants = [None if isinstance(value, pa.Array) else value.as_py() for value in values]
        at = next(i for i, value in enumerate(values) if isinstance(value, pa.Array))

        def fill(item: Any) -> list[Any]:
            return [*constants[:at], item, *constants[at + 1 :]]

        mapped = [_apply(function, fill(item)) for item in encoded.dictionary.to_pylist()]
        return pa.array(mapped, type_).take(encoded.indices)
    memory: dict[tuple[Any, ...], Any] = {}
    out = []
    for row in _zip_rows(values):
        if row not in memory:
            memory[row] = _apply(function, row)
        out.append(memory[row])
    return pa.array(out, type_)


def _zip_rows(values: Sequence[Value]) -> Iterable[tuple[Any, ...]]:
    return zip(*(array.to_pylist() for array in as_arrays(values)), strict=True)


def _apply(function: Callable[..., Any], row: Sequence[Any]) -> Any:
    return None if any(item is None for item in row) else function(*row)
