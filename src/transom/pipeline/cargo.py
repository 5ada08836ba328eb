"""What travels between places: parts, packed.

A **part** is a description that JSON can hold, and rows. Many parts for one place are packed into one blob, so that
whoever carries it sees a few blobs and never a row. Nothing that is read back is ever executed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

CARGO, OUT, SIDE_ROWS, STATUS, FILES, STORED = range(6)
"""What a parcel holds: parts for a bucket; rows of the answer; refused rows; how a bucket is doing; files with rows;
the place where parts for a bucket lie."""

_HEAD: Final = struct.Struct("<IQ")


@dataclass(frozen=True)
class CargoPart:
    """`about["kind"]` tells what the rows are."""

    about: dict[str, Any]
    rows: pa.RecordBatch | None = None

    @property
    def kind(self) -> str:
        return str(self.about["kind"])


@dataclass(frozen=True)
class Parcel:
    """A blob for a bucket of a fragment; for the sink (fragment 0) the bucket tells where it comes from."""

    fragment: int
    bucket: int
    kind: int
    blob: bytes


def pack(parts: Iterable[CargoPart]) -> bytes:
    """
    >>> [part.about for part in unpack(pack([CargoPart({"kind": "a"}), CargoPart({"kind": "b"})]))]
    [{'kind': 'a'}, {'kind': 'b'}]
    """
    pieces: list[bytes | memoryview] = []
    for part in parts:
        about = json.dumps(part.about, separators=(",", ":")).encode()
        rows = b"" if part.rows is None else memoryview(_written(part.rows))
        pieces += [_HEAD.pack(len(about), len(rows)), about, rows]
    return b"".join(pieces)


def unpack(blob: bytes | pa.Buffer) -> Iterator[CargoPart]:
    """The parts, whose rows lie in the blob."""
    buffer = blob if isinstance(blob, pa.Buffer) else pa.py_buffer(blob)
    at = 0
    while at < len(buffer):
        about_size, rows_size = _HEAD.unpack(buffer[at : at + _HEAD.size])
        at += _HEAD.size
        about = json.loads(bytes(buffer[at : at + about_size]))
        at += about_size
        rows = None
        if rows_size:
            with pa.ipc.open_stream(buffer[at : at + rows_size]) as reader:
                rows = reader.read_next_batch()
        at += rows_size
        yield CargoPart(about, rows)


def _written(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue()
