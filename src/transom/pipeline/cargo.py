"""What travels between places: parts, packed.

A **part** is a description that JSON can hold, and rows. Many parts for one place are packed into one blob, so that
whoever carries it sees a few blobs and never a row. Nothing that is read back is ever executed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

CARGO, OUT, SIDE_ROWS, STATUS, FILES, STORED, SPLITS = range(7)
"""What a parcel holds: parts for a bucket; rows of the answer; refused rows; how a bucket is doing; files with rows;
the place where parts for a bucket lie; what a bucket is to read by itself."""

Piece: TypeAlias = "bytes | memoryview | pa.Buffer"

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
    """Parts for a bucket of a fragment; for the sink (fragment 0) the bucket tells where they come from.

    They are packed when they leave the process: `blob` has those that are already, `parts` those before them.
    """

    fragment: int
    bucket: int
    kind: int
    blob: bytes | pa.Buffer = b""
    parts: tuple[CargoPart, ...] = ()

    @property
    def size(self) -> int:
        """About so many bytes."""
        size: int = len(self.blob) + sum(part.rows.nbytes for part in self.parts if part.rows is not None)
        return size

    def opened(self) -> Iterator[CargoPart]:
        yield from self.parts
        yield from unpack(self.blob)

    def packed(self) -> bytes | pa.Buffer:
        """
        >>> a, b = CargoPart({"kind": "a"}), CargoPart({"kind": "b"})
        >>> [part.kind for part in Parcel(1, 0, CARGO, Parcel(1, 0, CARGO, pack([b]), (a,)).packed()).opened()]
        ['a', 'b']
        """
        return b"".join(self.pieces()) if self.parts else self.blob

    def closed(self) -> Parcel:
        """The same, packed: it refers to nothing that others may change."""
        return replace(self, blob=self.packed(), parts=()) if self.parts else self

    def pieces(self) -> Iterator[Piece]:
        """What it is packed to, one after the other."""
        yield from _pieces(self.parts)
        yield self.blob


def pack(parts: Iterable[CargoPart]) -> bytes:
    """
    >>> [part.about for part in unpack(pack([CargoPart({"kind": "a"}), CargoPart({"kind": "b"})]))]
    [{'kind': 'a'}, {'kind': 'b'}]
    """
    return b"".join(_pieces(parts))


def _pieces(parts: Iterable[CargoPart]) -> Iterator[Piece]:
    for part in parts:
        about = json.dumps(part.about, separators=(",", ":")).encode()
        rows = b"" if part.rows is None else memoryview(_written(part.rows))
        yield from (_HEAD.pack(len(about), len(rows)), about, rows)


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
