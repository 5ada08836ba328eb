"""The results of a step as a delta: final columns, or partial ones for a merge to add up.

Partial columns are the keys, the number of join rows (it says that there are some, and how many where a call counts
them; otherwise it may be that of an instant before), and per call what `partial_columns` of node.py says: the
count; for a sum of whole numbers also its three words, for a floating one the digits of the exact sum; for MIN and MAX
the value alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Delta, Int64s
from transom.kernels.aggregate import cells, exact_sum
from transom.kernels.columns import empty_batch, is_text, text_parts
from transom.kernels.joinagg.rows import GroupedRows
from transom.kernels.joinagg.spec import ARGUMENT, OFFSET, TEXT, JoinAggregateSpec, JoinCall
from transom.kernels.joinagg.totals import CLOSED, GONE, MADE, StepResults, Totals
from transom.kernels.kernel import OPEN_END, Step, open_rows

_DIGITS = np.dtype(np.int64).itemsize * exact_sum.WIDTH


def show(spec: JoinAggregateSpec, totals: Totals, rows: GroupedRows, out: StepResults, step: Step) -> Delta:
    """The delta of a step. Groups without rows are forgotten; the rows that ended may be after it, not before."""
    out.check()
    made, closed = int(out.fill[MADE]), int(out.fill[CLOSED])
    ends = step.open_ids.close(out.open_id[:closed], out.end[:closed])
    group, ta, te = out.group[:made], out.ta[:made], out.te[:made]
    if made:
        arrays = group_keys(spec, totals, rows, group)
        if spec.partial:
            arrays.append(pa.array(out.rows[:made], pa.int64()))
        for c, call in enumerate(spec.calls):
            arrays += _columns(spec, rows, c, call, len(arrays), out)
        values = pa.RecordBatch.from_arrays(arrays, schema=spec.schema)
    else:
        values = empty_batch(spec.schema)
    delta, open_id = open_rows(values, ta, te, step, ends)
    still = te == OPEN_END
    totals.shown[group[still]] = open_id[still]
    totals.forget_empty(out.gone[: int(out.fill[GONE])])
    return delta


def float_totals(column: pa.Array) -> Int64s:
    """Exact sums, a row each, out of the column of a partial result."""
    starts, data = text_parts(column)
    return data[starts[0] : starts[-1]].copy().view(np.int64).reshape(-1, exact_sum.WIDTH)


def group_keys(spec: JoinAggregateSpec, totals: Totals, rows: GroupedRows, group: Int64s) -> list[pa.Array]:
    """The values that groups are grouped by."""
    arrays: dict[tuple[int, int], pa.Array] = {}
    for p, i in enumerate(spec.group_inputs):
        columns = spec.group_columns[i]
        types = [spec.input_types[i][c] for c in columns]
        gathered = rows.parts[p].values.gather(totals.groups.words[p, group], types)
        arrays.update({(i, c): array for c, array in zip(columns, gathered, strict=True)})
    return [arrays[key] for key in spec.group]


def _columns(
    spec: JoinAggregateSpec, rows: GroupedRows, c: int, call: JoinCall, index: int, out: StepResults
) -> list[pa.Array]:
    """The columns of a call; the first of them is column `index` of the schema."""
    made = int(out.fill[MADE])
    top, hi, lo, n = out.top[c, :made], out.hi[c, :made], out.lo[c, :made], out.n[c, :made]
    type_ = spec.schema.types[index] if index < len(spec.schema.types) else pa.int64()
    if call.function in ("min", "max"):
        return [_extreme(spec, rows, c, type_, hi, n)]
    if spec.partial:
        return _partial(spec, c, call, top, hi, lo, n, out)
    if call.function == "count":
        return [pa.array(n, pa.int64())]
    if call.function == "sum":
        return [cells.sums(type_, top, hi, lo, n)]
    argument = spec.argument_type(call)
    scale = argument.scale if pa.types.is_decimal(argument) else 0
    floating = pa.types.is_floating(argument)
    return [cells.averages(floating, scale, top, hi, lo, n)]


def _partial(
    spec: JoinAggregateSpec,
    c: int,
    call: JoinCall,
    top: Int64s,
    hi: Int64s,
    lo: cells.Words,
    n: Int64s,
    out: StepResults,
) -> list[pa.Array]:
    if call.of_rows:
        return []
    counted = pa.array(n, pa.int64())
    if call.function == "count":
        return [counted]
    if not pa.types.is_floating(spec.argument_type(call)):
        return [counted, *sum_words(top, hi, lo)]
    width, count = spec.float_width, len(n)
    index = spec.table[c, OFFSET]
    digits = np.ascontiguousarray(out.floats[: count * width].reshape(count, width, exact_sum.WIDTH)[:, index])
    offsets: Any = np.arange(count + 1, dtype=np.int32) * _DIGITS
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(digits)]
    return [counted, pa.Array.from_buffers(pa.binary(), count, buffers)]


def sum_words(top: Int64s, hi: Int64s, lo: cells.Words) -> list[pa.Array]:
    """The columns of partial sums of whole numbers."""
    return [pa.array(words, pa.int64()) for words in (top, hi, lo.view(np.int64))]


def _extreme(spec: JoinAggregateSpec, rows: GroupedRows, c: int, type_: pa.DataType, hi: Int64s, n: Int64s) -> pa.Array:
    there = n > 0
    if not there.any():
        return pa.nulls(len(n), type_)
    slots = np.where(there, hi, 0)
    if is_text(type_):
        text = slots * spec.text_width + spec.table[c, TEXT]
        texts = rows.texts.gather(text, [pa.binary()])[0]
        return pc.if_else(pa.array(there), texts, pa.scalar(None, pa.binary())).cast(type_)
    a = spec.table[c, ARGUMENT]
    return cells.from_cells(type_, rows.cell_hi[a, slots], rows.cell_lo[a, slots], there)
