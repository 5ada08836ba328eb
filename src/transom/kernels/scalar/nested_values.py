"""Arrays and structs: put together, looked into, cast; on the bytes that the engine holds of them."""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BOOLEAN, INTEGER, VARCHAR, is_array, is_nested
from transom.kernels import nested
from transom.kernels.scalar.text import pieces
from transom.kernels.scalar.values import Kernel, Value, as_arrays, reject_rows, valid_like
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


def most_frequent(call: Call) -> Kernel:
    return lambda arrays: nested.most_frequent(as_arrays((arrays,))[0], call.type)


def concatenated(*arrays: Value) -> Value:
    return nested.joined(as_arrays(arrays))


def reversed_elements(array: Value) -> Value:
    return nested.reversed_elements(as_arrays((array,))[0])


def sorted_elements(call: Call) -> Kernel:
    once = call.function == "list_distinct"
    return lambda array: nested.sorted_elements(as_arrays((array,))[0], once)


def sliced(*values: Value) -> Value:
    return nested.elements_between(*as_arrays(values))


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


MOST_NUMBERS: Final = 10_000_000
"""That the series of one batch may have together."""


def series(call: Call) -> Kernel:
    closed = call.function == "generate_series"

    def run(*values: Value) -> Value:
        arrays = as_arrays(values)
        there = reduce(pc.and_, [each.is_valid() for each in arrays]).to_numpy(zero_copy_only=False)
        start, stop, step = (each.fill_null(0).to_numpy().astype(object) for each in arrays)
        spans = [
            range(a, b + (np.sign(c) if closed else 0), c) if ok and c else range(0)
            for a, b, c, ok in zip(start.tolist(), stop.tolist(), step.tolist(), there.tolist(), strict=True)
        ]
        counts = np.fromiter(map(len, spans), dtype=np.int64, count=len(spans))
        too_long = pa.array(np.cumsum(counts) > MOST_NUMBERS)
        reject_rows(call, f"there are more than {MOST_NUMBERS:,} numbers", values, too_long)
        begins = np.cumsum(counts) - counts
        first, by = (np.repeat(each.astype(np.int64), counts) for each in (start, step))
        numbers = first + (np.arange(len(first)) - np.repeat(begins, counts)) * by
        offsets = pa.array(np.append(begins, len(numbers)), pa.int32())
        lists = pa.ListArray.from_arrays(offsets, pa.array(numbers), mask=pa.array(~there))
        return nested.encoded(lists)

    return run


def split(text: Value, separator: Value) -> Value:
    """The parts of a text between separators; without one it is one part."""
    if isinstance(separator, pa.Scalar) and separator.as_py():
        (texts,) = as_arrays((text,))
        return nested.encoded(pc.split_pattern(texts, separator.as_py()))
    rows = zip(*(each.to_pylist() for each in as_arrays((text, separator))), strict=True)
    parts = [None if whole is None else pieces(whole, by) for whole, by in rows]
    return nested.encoded(pa.array(parts, pa.list_(VARCHAR)))


def joined(array: Value, separator: Value) -> Value:
    """All elements as one text, without those that are NULL; NULL if all are. No separator is an empty one."""
    arrays, separators = as_arrays((array, separator))
    rows = zip(nested.decoded(arrays, pa.list_(VARCHAR)).to_pylist(), separators.to_pylist(), strict=True)
    return pa.array([None if parts is None else _joined(parts, by or "") for parts, by in rows], VARCHAR)


def _joined(parts: list[str | None], separator: str) -> str | None:
    texts = [each for each in parts if each is not None]
    return separator.join(texts) if texts or not parts else None


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
