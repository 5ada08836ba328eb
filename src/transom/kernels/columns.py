"""Arrow arrays seen as flat numpy arrays, and back, without copying where the layouts agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.errors import EvaluationError
from transom.core.schema import JSON, is_nested

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]

MAX_STRING_BYTES = 2**31 - 1


def validity(array: pa.Array) -> Bytes | None:
    """1 where a value is, 0 where NULL is; None when there is no NULL."""
    if array.null_count == 0:
        return None
    return _unpacked(array.buffers()[0], array.offset, len(array))


def _unpacked(bitmap: pa.Buffer, offset: int, count: int) -> Bytes:
    first = offset // 8
    touched = np.frombuffer(bitmap, dtype=np.uint8)[first : (offset + count + 7) // 8]
    return np.unpackbits(touched, bitorder="little")[offset - 8 * first : offset - 8 * first + count]


def bitmap_of(valid: Bytes | None) -> pa.Buffer | None:
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def is_text(type_: pa.DataType) -> bool:
    """Whether a value of this type is held as a text or a byte string."""
    return type_.id in _TEXTS or is_nested(type_)


_TEXTS = frozenset((pa.string().id, pa.binary().id, JSON.id))


def storage_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """How a value of a fixed width is kept: booleans as a byte, decimals as two int64 (low, high)."""
    dtype = _STORAGE.get(type_.id)
    if dtype is None:
        dtype = _STORAGE[type_.id] = _storage_dtype(type_)
    return dtype


_STORAGE: dict[int, np.dtype[Any]] = {}  # no type of ours has several widths


def _storage_dtype(type_: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_boolean(type_):
        return np.dtype(np.uint8)
    if pa.types.is_floating(type_):
        return np.dtype(f"f{type_.bit_width // 8}")
    if pa.types.is_decimal(type_):
        return np.dtype([("lo", np.uint64), ("hi", np.int64)])
    return np.dtype(f"i{type_.bit_width // 8}")


def fixed_values(array: pa.Array) -> Array:
    """The values of a fixed-width array in `storage_dtype`; what stands under a NULL is anything."""
    return values_in(array, storage_dtype(array.type))


def values_in(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The values of a fixed-width array as this type, which the caller knows: to ask an array for it takes its time."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype=dtype)
    if dtype == np.uint8:  # booleans, and nothing else
        return _unpacked(buffer, array.offset, len(array))
    return np.frombuffer(buffer, dtype=dtype)[array.offset : array.offset + len(array)]


def text_parts(array: pa.Array) -> tuple[Int64s, Bytes]:
    """Offsets (n + 1, into the bytes) and the bytes of a string or binary array."""
    offsets, data = text_buffers(array)
    return offsets.astype(np.int64), data


def text_buffers(array: pa.Array) -> tuple[npt.NDArray[np.int32], Bytes]:
    """Offsets and bytes of a string or binary array as they lie there: offsets of 32 bits, and nothing is copied."""
    if len(array) == 0:
        return np.zeros(1, dtype=np.int32), np.frombuffer(b"", dtype=np.uint8)
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(b"" if data_buffer is None else data_buffer, dtype=np.uint8)


def alike(array: Array) -> Array:
    """An array for a loop to read: in one piece and not read-only, as most are; each other kind is compiled anew."""
    return array if array.flags.carray else np.require(array, requirements=("C", "W"))


def fixed_array(type_: pa.DataType, values: Array, valid: Bytes | None) -> pa.Array:
    """An Arrow array over values in `storage_dtype`."""
    data = np.packbits(values, bitorder="little") if pa.types.is_boolean(type_) else np.ascontiguousarray(values)
    return pa.Array.from_buffers(type_, len(values), [bitmap_of(valid), pa.py_buffer(data)])


def reject_too_long(text_bytes: int) -> None:
    """A column of texts has no more bytes than its offsets can tell."""
    if text_bytes > MAX_STRING_BYTES:
        raise EvaluationError(
            f"one batch of results holds {text_bytes:,} bytes of text in a column, more than 2 GiB",
            remedy="SET batch_rows to a smaller number",
        )


def text_array(type_: pa.DataType, offsets: Int64s, data: Bytes, valid: Bytes | None) -> pa.Array:
    reject_too_long(int(offsets[-1]) if len(offsets) else 0)
    buffers = [bitmap_of(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
