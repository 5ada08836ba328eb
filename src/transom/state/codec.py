"""One codec for all state: any tree of dataclasses, lists, numbers, texts, flat arrays and Arrow batches <-> bytes.

A state is written as a JSON description of the tree, the bytes of its arrays one after the other, as they lie, how long
each is, and a checksum of it all: a flipped bit is damage, never another state. What a tree refers to need not be in
memory before its bytes are due (`Deferred`), so that a state can be written that would not fit. Nothing read back is
ever executed: a dataclass is rebuilt only when its name is in `classes`, the closed list of the caller. Every dataclass
may carry `STATE_VERSION`; another version is rejected, not guessed at. One with a method `compacted` is written as that
gives it, without the room that it keeps for more.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.errors import CheckpointError, TransomError
from transom.state.allocator import aligned_copy

FORMAT: Final = b"transom-state-4\n"

_SIZE_BYTES: Final = 8
_CHECKSUM_BYTES: Final = 4
_ALIGNED: Final = 64
"""Arrays begin at multiples of so many bytes, as Arrow likes them."""


@dataclasses.dataclass(frozen=True)
class Deferred:
    """A batch of a state that is elsewhere, and read when it is written."""

    read: Callable[[], pa.RecordBatch]


Blob: TypeAlias = "bytes | memoryview | Callable[[], bytes | memoryview]"
"""Bytes, or what makes them when they are due."""


def encode(state: Any) -> bytes:
    """The state as bytes."""
    return b"".join(buffers(state))


def buffers(state: Any) -> Iterator[bytes | memoryview]:
    """The bytes of a state one after the other; arrays are not copied, and must stay as they are until then."""
    blobs: list[Blob] = []

    def put(blob: Any) -> int:
        blobs.append(_bytes_of(blob) if isinstance(blob, np.ndarray) else blob)
        return len(blobs) - 1

    tree = describe(state, put)
    yield from sealed(json.dumps(tree).encode(), blobs)


def sealed(tree: bytes, blobs: Iterable[Blob]) -> Iterator[bytes | memoryview]:
    """A description and the bytes of arrays in the form that is read back."""
    checksum = 0
    for buffer in _laid_out(tree, blobs):
        checksum = zlib.crc32(buffer, checksum)
        yield buffer
    yield checksum.to_bytes(_CHECKSUM_BYTES, "little")


def _laid_out(tree: bytes, blobs: Iterable[Blob]) -> Iterator[bytes | memoryview]:
    yield FORMAT + len(tree).to_bytes(_SIZE_BYTES, "little")
    yield tree
    at = len(FORMAT) + _SIZE_BYTES + len(tree)
    sizes = []
    for blob in blobs:
        buffer = blob() if callable(blob) else blob
        sizes.append(len(buffer))
        if len(buffer):
            yield bytes(-at % _ALIGNED)
            yield buffer
            at += -at % _ALIGNED + len(buffer)
    tail = json.dumps(sizes).encode()
    yield tail + len(tail).to_bytes(_SIZE_BYTES, "little")


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def decode(data: bytes, classes: Iterable[type]) -> Any:
    """The state that `encode` wrote; dataclasses are looked up by name among `classes`."""
    try:
        tree, blobs = unsealed(data)

        def get(tree: dict[str, Any]) -> Any:
            buffer = blobs[tree["at"]]
            return buffer if "batch" in tree else aligned_copy(array_of(tree, buffer))

        return rebuild(tree, get, classes, check=True)
    except CheckpointError:
        raise
    except Exception as error:  # what reading bytes that lie may raise is anybody's guess
        raise damaged() from error


def unsealed(data: bytes) -> tuple[Any, list[pa.Buffer]]:
    """The description and the bytes of arrays, as they were sealed."""
    if not data.startswith(FORMAT):
        raise CheckpointError("this is not a saved state", remedy="point at a checkpoint written by this program")
    end = len(data) - _CHECKSUM_BYTES
    if zlib.crc32(memoryview(data)[:end]) != int.from_bytes(data[end:], "little"):
        raise damaged()
    at = len(FORMAT) + _SIZE_BYTES
    size = int.from_bytes(data[len(FORMAT) : at], "little")
    tree = json.loads(data[at : at + size])
    tail_end = end - _SIZE_BYTES
    tail = tail_end - int.from_bytes(data[tail_end:end], "little")
    if tail < at + size:
        raise damaged()
    buffers, whole, at = [], pa.py_buffer(data), at + size
    for size in json.loads(data[tail:tail_end]):
        at += -at % _ALIGNED if size else 0
        buffers.append(whole[at : at + size])
        at += size
    if at != tail:
        raise damaged()
    return tree, buffers


def saved_bytes(state: Any, whole: bool = False) -> int:
    """About how many bytes `encode` would write; with `whole` those of all arrays, the room for more included."""
    kind = type(state)
    if kind is np.ndarray or kind is pa.RecordBatch:
        return int(state.nbytes)
    if kind in _PLAIN:
        return 0
    if kind is list or kind is tuple:
        parts = state
    elif kind is dict:
        parts = state.values()
    elif hasattr(kind, "array_bytes"):
        return int(state.array_bytes())
    elif not whole and hasattr(kind, "compacted_bytes"):
        return int(state.compacted_bytes())
    else:
        parts = [getattr(state, name) for name in _fields(kind)]
    total = 0
    for part in parts:
        kind = type(part)
        if kind is np.ndarray:
            total += part.nbytes
        elif kind not in _PLAIN:
            total += saved_bytes(part, whole)
    return total


_PLAIN: Final = frozenset((type(None), bool, int, float, str))


_NAMES: Final[dict[Any, tuple[str, ...]]] = {}


def _fields(kind: Any) -> tuple[str, ...]:
    """The names of a dataclass's fields; asked for often."""
    if kind not in _NAMES:
        attributes = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        _NAMES[kind] = tuple(field.name for field in attributes)
    return _NAMES[kind]


@contextmanager
def restoring() -> Iterator[None]:
    """Whatever goes wrong while a saved state is taken over is reported as damage of the checkpoint."""
    try:
        yield
    except TransomError:
        raise
    except Exception as error:
        raise damaged() from error


def damaged() -> CheckpointError:
    return CheckpointError(
        "a saved state cannot be read; it is damaged or cut short",
        remedy="restore the checkpoint from a copy, or start without it",
    )


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Before a value is read: offsets that lie would lead anywhere."""
    batch.validate(full=True)
    return batch


def _version(cls: type) -> int:
    return int(getattr(cls, "STATE_VERSION", 1))


@cache
def _described(dtype: Any) -> Any:
    """A type of numbers as JSON has it."""
    return np.lib.format.dtype_to_descr(dtype)


def describe(value: Any, put: Callable[[Any], Any], whole: bool = False) -> Any:
    """A tree that JSON can hold. `put` takes arrays, and what makes the bytes of a batch when they are due, and says
    where they are. `whole`: not compacted."""
    kind = type(value)
    if kind in _PLAIN:  # most of what there is
        return {"v": value}
    if kind is Deferred:
        return {"batch": True, "at": put(lambda: _stream_of(value.read()))}
    if dataclasses.is_dataclass(kind):
        if not whole and hasattr(value, "compacted"):
            value = value.compacted()
            kind = type(value)
        fields = {}
        for name in _fields(kind):
            part = getattr(value, name)
            fields[name] = {"v": part} if type(part) in _PLAIN else describe(part, put, whole)
        return {"class": kind.__name__, "version": _version(kind), "fields": fields}
    if isinstance(value, np.ndarray):
        return {"array": _described(value.dtype), "shape": list(value.shape), "at": put(value)}
    if isinstance(value, list | tuple):
        return {"list": [describe(item, put, whole) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"dict": [[key, describe(item, put, whole)] for key, item in value.items()]}
    if isinstance(value, np.integer):
        return {"v": int(value)}
    if isinstance(value, int | float | str):
        return {"v": value}
    if isinstance(value, pa.RecordBatch):
        return {"batch": True, "at": put(partial(_stream_of, value))}
    raise TypeError(f"a state cannot hold a {kind.__name__}")


def _stream_of(batch: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def rebuild(tree: Any, get: Callable[[dict[str, Any]], Any], classes: Iterable[type], check: bool = False) -> Any:
    """The value of a tree; `get` gives the array, or the buffer of a batch, that a part of the tree stands for.

    With `check` every dataclass that has a method of this name is asked whether what it holds can be true.
    """
    return _rebuild(tree, get, _by_name(tuple(classes)), check)


@cache
def _by_name(classes: tuple[type, ...]) -> dict[str, type]:
    return {cls.__name__: cls for cls in classes}


def array_of(tree: dict[str, Any], buffer: Any) -> Any:
    """The array that a buffer holds, by its description."""
    described = tree["array"]
    if isinstance(described, list):  # JSON has no tuples
        described = tuple(tuple(field) for field in described)
    return np.frombuffer(buffer, dtype=_type_of(described)).reshape(tree["shape"])


@cache
def _type_of(described: Any) -> Any:
    """The type of numbers that was described."""
    return np.lib.format.descr_to_dtype(list(described) if isinstance(described, tuple) else described)


def _rebuild(tree: Any, get: Callable[[dict[str, Any]], Any], classes: dict[str, type], check: bool) -> Any:
    if "v" in tree:
        return tree["v"]
    if "array" in tree:
        return get(tree)
    if "batch" in tree:
        with pa.ipc.open_stream(get(tree)) as reader:
            return _checked(next(iter(reader)))
    if "list" in tree:
        items = [item["v"] if "v" in item else _rebuild(item, get, classes, check) for item in tree["list"]]
        return tuple(items) if tree["tuple"] else items
    if "dict" in tree:
        return {key: _rebuild(item, get, classes, check) for key, item in tree["dict"]}
    cls = classes.get(tree["class"])
    if cls is None:
        raise CheckpointError(f"a saved state holds '{tree['class']}', which this query does not have")
    if tree["version"] != _version(cls):
        raise CheckpointError(
            f"the saved state of '{tree['class']}' has version {tree['version']}, this program reads {_version(cls)}",
            remedy="go on with the version of the program that wrote it, or start without the checkpoint",
        )
    fields = {
        name: item["v"] if "v" in item else _rebuild(item, get, classes, check) for name, item in tree["fields"].items()
    }
    rebuilt = cls(**fields)
    if check and hasattr(rebuilt, "check"):
        rebuilt.check()
    return rebuilt
