"""Values that rows are ordered by, as one byte string that compares like them (keys.py), in any direction each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transom.kernels.jit import jit
from transom.kernels.keys import encode_keys
from transom.kernels.scalar.values import Kernel, Value, as_array
from transom.plan.algebra import OrderedBy
from transom.plan.expression import Call, Expression, Literal

DESCENDING, NULLS_FIRST = 1, 2


def sort_key_of(order: tuple[OrderedBy, ...]) -> Expression:
    """The byte string of an order: the directions as digits, and the values."""
    ways = "".join(str(DESCENDING * each.descending + NULLS_FIRST * each.nulls_first) for each in order)
    return Call("sort_key", (Literal(ways, pa.string()), *(each.expression for each in order)), pa.binary())


def sort_key(call: Call) -> Kernel:
    (ways, *_) = call.arguments
    assert isinstance(ways, Literal)
    directions = [int(digit) for digit in ways.value]

    def run(_: Value, *values: Value) -> pa.Array:
        rows = next((len(value) for value in values if isinstance(value, pa.Array)), 1)
        parts = [encode_keys([as_array(value, rows)], rows) for value in values]
        lengths = np.sum([np.diff(part.offsets) for part in parts], axis=0)
        offsets = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        out, cursor = np.empty(int(offsets[-1]), dtype=np.uint8), offsets[:-1].copy()
        for part, way in zip(parts, directions, strict=True):
            turn(part.data, part.offsets, way, cursor, out)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.binary(), rows, buffers)

    return run


@jit
def turn(data, offsets, way, cursor, out):  # type: ignore[no-untyped-def]
    """Write keys of one value: NULL before (0) or behind (2) all others (1), whose bytes are turned to descend."""
    turned = np.uint8(255 if way & 1 else 0)
    for i in range(len(cursor)):
        at = cursor[i]
        first = offsets[i]
        if data[first] == 0:
            out[at] = 0 if way & 2 else 2
        else:
            out[at] = 1
        for j in range(first + 1, offsets[i + 1]):
            out[at + j - first] = data[j] ^ turned
        cursor[i] = at + offsets[i + 1] - first
