"""Scalar expressions over the columns of a batch, with DuckDB's values.

Meaning   evaluate(e, batch)[i] = e(row i), for every row; keep(p, batch) = the rows i where p(row i) is true.
Emits     one Arrow array of exactly the expression's type and the batch's length.
Keeps     nothing but the compiled closures of the expressions seen last.
Needs     columns at the positions and of the types that the expression names.
Costs     one Arrow kernel for a node and a batch; the few slow roads are marked in `text`, `read_text` and `decimals`.

>>> from transom.core.schema import INTEGER
>>> from transom.plan.expression import ColumnRef, Literal
>>> from transom.plan.functions import resolve
>>> batch = pa.record_batch({"a": pa.array([1, None, 5], INTEGER)})
>>> a = ColumnRef(0, INTEGER, "a")
>>> evaluate(resolve("*", (a, Literal(2, INTEGER))), batch).to_pylist()
[2, None, 10]
>>> keep(resolve(">", (a, Literal(2, INTEGER))), batch).to_pylist()
[2]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import UnsupportedError
from transom.core.schema import held_type
from transom.kernels.scalar.compiler import can_fail, compile_expression
from transom.kernels.scalar.rows import AllRows, Compiled, SelectedRows, SomeRows
from transom.kernels.scalar.values import as_array
from transom.plan.expression import Expression, conjuncts


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """The expression's value in every row; raises EvaluationError, with an example, where it has none."""
    if batch.num_rows == 0:
        return pa.array([], held_type(expression.type))
    rows = AllRows(batch)
    return as_array(_compiled(expression)(rows), rows.count)


def _compiled(expression: Expression) -> Compiled:
    try:
        return compile_expression(expression)
    except RecursionError:
        raise UnsupportedError(
            "an expression is nested too deeply", remedy="compute a part of it in a sub-query"
        ) from None


def keep(predicate: Expression, batch: pa.RecordBatch) -> pa.Array | None:
    """The positions of the rows where the predicate is true, None when it is true in all.

    The parts of an AND are taken in order, each on the rows that the ones before it left.
    """
    return keep_by(parts(predicate), batch)


def keep_by(compiled: Sequence[Compiled], batch: pa.RecordBatch) -> pa.Array | None:
    """The positions of the rows where a predicate is true, None for all, by the `parts` that it was compiled to."""
    if batch.num_rows == 0:
        return None
    rows: SelectedRows = AllRows(batch)
    positions: pa.Array | None = None
    for part in compiled:
        mask = as_array(part(rows), rows.count)
        kept = mask.true_count
        if kept == rows.count:
            continue
        here = pc.indices_nonzero(mask)
        positions = here if positions is None else positions.take(here)
        if kept == 0:
            return positions
        rows = SomeRows(rows, here)
    return positions


@lru_cache(maxsize=1024)
def parts(predicate: Expression) -> tuple[Compiled, ...]:
    """The parts of an AND, compiled."""
    return tuple(_compiled(part) for part in conjuncts(predicate))


def project(expressions: Sequence[Expression], names: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of the expressions' values under the given names, which may repeat."""
    fields = [pa.field(name, held_type(e.type)) for name, e in zip(names, expressions, strict=True)]
    return pa.RecordBatch.from_arrays([evaluate(e, batch) for e in expressions], schema=pa.schema(fields))


__all__ = ["can_fail", "compile_expression", "evaluate", "keep", "keep_by", "parts", "project"]
