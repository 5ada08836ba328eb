"""Arrays and structs: put together, looked into, cast; on the bytes that the engine holds of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BOOLEAN, INTEGER, is_array, is_nested
from transom.kernels import nested
from transom.kernels.scalar.values import Kernel, Value, as_arrays, valid_like
from transom.plan.expression import Call, Literal


def array(call: Call) -> Kernel:
    if not call.arguments:
        empty = nested.array_values([], 1)[0]
        return lambda: empty
    return lambda *values: nested.array_values(arrays := as_arrays(values), len(arrays[0]))


def struct(call: Call) -> Kernel:
    return lambda *values: nested.struct_values(arrays := as_arrays(values), len(arrays[0]))


def field(call: Call) -> Kernel:
    value, name = call.arguments
    assert isinstance(name, Literal)
    fields, number = value.type.num_fields, value.type.get_field_index(name.value)
    return lambda structs, _: nested.field_of(as_arrays((structs,))[0], number, fields, call.type)


def element(call: Call) -> Kernel:
    def run(*values: Value) -> Value:
        arrays, indexes = as_arrays(values)
        return nested.elements_at(arrays, indexes, call.type)

    return run


def length(value: Value) -> Value:
    return nested.lengths(as_arrays((value,))[0])


def as_element(value: Value) -> Value:
    """A value as the element that ARRAY_AGG collects."""
    return nested.elements(as_arrays((value,))[0])


def contains(call: Call) -> Kernel:
    def run(*values: Value) -> Value:
        arrays, wanted = as_arrays(values)
        positions = nested.positions(arrays, wanted)
        return valid_like(pc.greater(positions, 0), wanted).cast(BOOLEAN)

    return run


def position(call: Call) -> Kernel:
    def run(*values: Value) -> Value:
        positions = nested.positions(*as_arrays(values))
        return pc.if_else(pc.equal(positions, 0), pa.scalar(None, pa.int64()), positions).cast(INTEGER)

    return run


def converted(values: pa.Array, target: pa.DataType, convert):  # type: ignore[no-untyped-def]
    """Nested values with every part in its own type of the target, and whether one of them is bad.

    `convert(source, target)` gives the converter of parts that are not nested; a part that it cannot convert is NULL.
    """
    source = values.type
    if source == target:
        return values, False
    if pa.types.is_null(source):
        return pa.nulls(len(values), target), False
    if not is_nested(source):
        result, bad = convert(source, target)(values)
        return result, bad is not None and bool(pc.any(bad).as_py())
    if is_array(source):
        elements, bad = converted(values.values, target.value_type, convert)
        return pa.Array.from_buffers(
            target, len(values), values.buffers()[:2], offset=values.offset, children=[elements]
        ), bad
    parts = [converted(values.field(i), target.field(i).type, convert) for i in range(source.num_fields)]
    children = [part for part, _ in parts]
    whole = pa.Array.from_buffers(target, len(values), values.buffers()[:1], offset=values.offset, children=children)
    return whole, any(bad for _, bad in parts)
