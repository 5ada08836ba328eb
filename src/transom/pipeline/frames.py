"""Frames, and the messages that carry them between partitions.

A **frame** is a description that JSON can hold, and rows. Many frames for one partition are packed into one blob, so
that whoever carries it sees a few blobs and never a row. Nothing that is read back is ever executed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

FRAMES, OUT, DEAD_LETTERS, STATUS, FILES, STORED, SPLITS = range(7)
"""The kind of a message: frames for a partition; rows of the answer; rejected rows; the status of a partition; files
with rows; the file that frames for a partition lie in; what a partition is to read by itself."""

Buffer: TypeAlias = "bytes | memoryview | pa.Buffer"

_HEAD: Final = struct.Struct("<IQ")


@dataclass(frozen=True)
class Frame:
    """Rows with a description; `about["kind"]` says what the rows are."""

    about: dict[str, Any]
    rows: pa.RecordBatch | None = None

    @property
    def kind(self) -> str:
        return str(self.about["kind"])


@dataclass(frozen=True)
class Message:
    """Frames for a partition of a fragment; for the sink (fragment 0) `partition` is where they come from.

    Frames are packed when they leave the process: `blob` has those that are packed already, `parts` those before them.
    """

    fragment: int
    partition: int
    kind: int
    blob: bytes | pa.Buffer = b""
    parts: tuple[Frame, ...] = ()

    @property
    def size(self) -> int:
        """About so many bytes."""
        size: int = len(self.blob) + sum(part.rows.nbytes for part in self.parts if part.rows is not None)
        return size

    def opened(self) -> Iterator[Frame]:
        yield from self.parts
        yield from unpack(self.blob)

    def packed(self) -> bytes | pa.Buffer:
        """
        >>> a, b = Frame({"kind": "a"}), Frame({"kind": "b"})
        >>> [part.kind for part in Message(1, 0, FRAMES, Message(1, 0, FRAMES, pack([b]), (a,)).packed()).opened()]
        ['a', 'b']
        """
        return b"".join(self.buffers()) if self.parts else self.blob

    def closed(self) -> Message:
        """This message with its parts packed, so that it refers to nothing that others may change."""
        return replace(self, blob=self.packed(), parts=()) if self.parts else self

    def buffers(self) -> Iterator[Buffer]:
        """The buffers that a message is packed to, one after the other."""
        yield from _buffers(self.parts)
        yield self.blob


def pack(parts: Iterable[Frame]) -> bytes:
    """
    >>> [part.about for part in unpack(pack([Frame({"kind": "a"}), Frame({"kind": "b"})]))]
    [{'kind': 'a'}, {'kind': 'b'}]
    """
    return b"".join(_buffers(parts))


def _buffers(parts: Iterable[Frame]) -> Iterator[Buffer]:
    for part in parts:
        about = json.dumps(part.about, separators=(",", ":")).encode()
        rows = b"" if part.rows is None else memoryview(_written(part.rows))
        yield from (_HEAD.pack(len(about), len(rows)), about, rows)


def unpack(blob: bytes | pa.Buffer) -> Iterator[Frame]:
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
        yield Frame(about, rows)


def _written(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue()
