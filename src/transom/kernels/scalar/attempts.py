"""Values that may fail, where a failure is not an error yet: NULL in the rows that have none, and which rows those are.

An expression is computed for all rows at once; only where that fails the rows are halved until those are found for
which it does. Aggregates over joins are made of these, and of variances that are put together from sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import EvaluationError
from transom.core.schema import held_type
from transom.kernels.aggregate.exact_variance import WHOLE_FIRST, WHOLE_WIDTH, variance
from transom.kernels.jit import jit
from transom.kernels.scalar.rows import Compiled, SelectedRows, SomeRows
from transom.kernels.scalar.values import Kernel, Value, as_array
from transom.plan.expression import Call, Literal


def attempt(call: Call, compiled: Compiled) -> Compiled:
    """The value where there is one, NULL where it fails."""
    type_ = held_type(call.type)

    def run(rows: SelectedRows) -> Value:
        pieces = [pa.nulls(some.count, type_) if value is None else value for some, value in _pieces(compiled, rows)]
        return pa.concat_arrays(pieces)

    return run


def fails(call: Call, compiled: Compiled) -> Compiled:
    """TRUE where it fails, NULL where there is a value."""

    def run(rows: SelectedRows) -> Value:
        pieces = _pieces(compiled, rows)
        unknown, bad = pa.scalar(None, pa.bool_()), pa.scalar(True)
        return pa.concat_arrays([pa.repeat(bad if value is None else unknown, some.count) for some, value in pieces])

    return run


def _pieces(compiled: Compiled, rows: SelectedRows) -> list[tuple[SelectedRows, pa.Array | None]]:
    """The rows in order, in pieces with their values; None for a row that has none."""
    try:
        return [(rows, as_array(compiled(rows), rows.count))]
    except EvaluationError:
        if rows.count == 1:
            return [(rows, None)]
    half = rows.count // 2
    parts = np.split(np.arange(rows.count), [half])
    return [piece for part in parts for piece in _pieces(compiled, SomeRows(rows, pa.array(part)))]


def unless_failed(call: Call) -> Kernel:
    """The first argument; an error where a number after it, of rows for which what is named then fails, is not 0."""
    named = [str(each.value) for each in call.arguments[2::2] if isinstance(each, Literal)]

    def run(value: Value, *failures: Value) -> Value:
        for count, name in zip(failures[::2], named, strict=True):
            if pc.any(pc.greater(count, 0)).as_py():
                raise EvaluationError(
                    f"{name} fails for a row that has matches in the join",
                    remedy="widen the type with CAST, filter such rows out, or use TRY_CAST where a text is read",
                )
        return value

    return run


def variance_of_sums(call: Call) -> Kernel:
    """The variance of whole numbers: their count, their sum, and the sum of their squares."""
    sample = call.function == "var_samp_of_sums"

    def run(count: Value, total: Value, squares: Value) -> Value:
        rows = next(len(value) for value in (count, total, squares) if isinstance(value, pa.Array))
        n = pc.fill_null(as_array(count, rows), 0).to_numpy()
        out = _variances(n, _words(as_array(total, rows)), _words(as_array(squares, rows)), sample)
        return pa.array(out, mask=n < (2 if sample else 1))

    return run


def _words(array: pa.Array) -> Any:
    """128-bit numbers as four digits of 32 bits, the last of them signed; of NULL anything."""
    start, buffer = array.offset, array.buffers()[1]
    digits = np.frombuffer(buffer, dtype=np.uint32)[4 * start : 4 * (start + len(array))].reshape(-1, 4)
    words = digits.astype(np.int64)
    words[:, 3] = digits[:, 3].astype(np.int32)
    return words


@jit
def _variances(n, total, squares, sample):  # type: ignore[no-untyped-def]
    out = np.zeros(len(n), dtype=np.float64)
    sums = np.zeros(WHOLE_WIDTH, dtype=np.int64)
    for i in range(len(n)):
        if n[i] < (2 if sample else 1):
            continue
        sums[:] = 0
        sums[:4] = total[i]
        sums[WHOLE_FIRST : WHOLE_FIRST + 4] = squares[i]
        out[i] = variance(sums, n[i], sample, 0)
    return out
