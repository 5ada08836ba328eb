"""A split of a text file cut into records: complete ones only, so many, and where they stand.

A split holds at most the rows asked for and about `BLOCK_BYTES`, whatever the size of the file. How records end is
the format's business: a `Split` says. Files are read as bytes and offsets count them, so reading can go on anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.core.errors import SourceError

BLOCK_BYTES: Final = 16 * 1024 * 1024
LONGEST_RECORD: Final = 64 * 1024 * 1024
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_CHUNK: Final = 256 * 1024
_NEWLINE: Final = 10
_RETURN: Final = 13


class Readable(Protocol):
    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def read(self, count: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Cut:
    """The line feeds that end records in some bytes. `broken`: offsets of lines that are no record, and why."""

    ends: Int64s
    broken: dict[int, str] = field(default_factory=dict)


Split = Callable[[bytes, bool], Cut]
"""split(data, last): the record ends in `data`. With `last` nothing will follow that could close what is open."""


@dataclass(frozen=True)
class TextOffset:
    """A place in a text file: how many bytes are before it, and how many line feeds."""

    offset: int = 0
    line: int = 0


@dataclass(frozen=True)
class RecordSplit:
    """Records of a file: record i is data[starts[i]:ends[i]], without its line end, and begins on line lines[i].

    `broken` says what is wrong with records that cannot be parsed. `after` is the place behind the last record;
    with `finished` nothing is left to read there now.
    """

    data: bytes
    starts: Int64s
    ends: Int64s
    lines: Int64s
    broken: dict[int, str]
    after: TextOffset
    finished: bool

    def __len__(self) -> int:
        return len(self.starts)

    def raw(self, record: int) -> bytes:
        return self.data[self.starts[record] : self.ends[record]]

    def only(self, records: npt.NDArray[np.bool_]) -> tuple[bytes, Int64s]:
        """The chosen records one after the other with their line ends, and where each begins, then the length.

        All of them are the bytes as they stand, blank lines included.
        """
        if records.all():
            return self.data, np.append(self.starts, len(self.data))
        starts, ends = self.starts[records], self.ends[records]
        edges = np.zeros(len(self.data) + 1, dtype=np.int8)
        edges[starts] += 1
        edges[ends] -= 1
        keep = np.cumsum(edges, dtype=np.int8).astype(bool)
        buffer = np.append(np.frombuffer(self.data, np.uint8), np.uint8(_NEWLINE))
        buffer[ends] = _NEWLINE  # in place of the first byte of the line end
        keep[ends] = True
        return buffer[keep].tobytes(), np.append(0, np.cumsum(ends - starts + 1))


def split_lines(data: bytes, last: bool) -> Cut:
    """Every line is a record."""
    return Cut(np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE))


def read_records(
    file: Readable, name: str, at: TextOffset, max_rows: int, split: Split, *, growing: bool, blank_is_row: bool = False
) -> RecordSplit:
    """At most `max_rows` complete records from `at` on; blank lines are none unless `blank_is_row`."""
    file.seek(at.offset)
    data = bytearray()
    feeds = 0
    wanted = _CHUNK
    while True:
        chunk = file.read(wanted)
        data += chunk
        feeds += chunk.count(b"\n")
        ended = len(chunk) < wanted
        if not ended and feeds < max_rows and len(data) < BLOCK_BYTES:
            continue
        whole = bytes(data)
        cut = split(whole, ended and not growing)
        if not len(cut.ends) and not ended:
            if len(whole) < LONGEST_RECORD:
                wanted = len(whole)  # a record of megabytes: look again when there is twice as much
                continue
            cut = split(whole, True)  # what has been open for so long is taken for a slip
            if not len(cut.ends):
                raise too_long(name, at)
        return _records(
            whole, cut, at, max_rows, take_rest=ended and not growing, ended=ended, blank_is_row=blank_is_row
        )


def too_long(name: str, at: TextOffset) -> SourceError:
    return SourceError(
        f"line {at.line + 1} of file '{name}' is longer than {LONGEST_RECORD // 1024 // 1024} MiB",
        remedy="break the file into lines, one row each",
    )


def records_of(data: bytes, at: TextOffset, split: Split, *, blank_is_row: bool) -> RecordSplit:
    """All of some bytes that begin and end where records do; the last one may lack its line end."""
    return _records(data, split(data, True), at, len(data) + 1, take_rest=True, ended=True, blank_is_row=blank_is_row)


def _records(
    data: bytes, cut: Cut, at: TextOffset, max_rows: int, *, take_rest: bool, ended: bool, blank_is_row: bool
) -> RecordSplit:
    buffer = np.frombuffer(data, np.uint8)
    starts, ends, behind, complete = bounds(buffer, cut, take_rest=take_rest, blank_is_row=blank_is_row)
    consumed = int(behind[max_rows - 1]) if len(starts) >= max_rows else complete
    starts, ends = starts[:max_rows], ends[:max_rows]
    feeds = np.flatnonzero(buffer[:consumed] == _NEWLINE)
    return RecordSplit(
        data=data[:consumed],
        starts=starts,
        ends=ends,
        lines=at.line + 1 + np.searchsorted(feeds, starts),
        broken={int(np.searchsorted(starts, start)): why for start, why in cut.broken.items() if start < consumed},
        after=TextOffset(at.offset + consumed, at.line + len(feeds)),
        finished=ended and consumed == complete,
    )


def bounds(
    buffer: npt.NDArray[np.uint8], cut: Cut, *, take_rest: bool, blank_is_row: bool
) -> tuple[Int64s, Int64s, Int64s, int]:
    """Where records start, end, and have their line ends behind them; and how many bytes hold complete records."""
    rest = int(cut.ends[-1]) + 1 if len(cut.ends) else 0
    ends = np.append(cut.ends, len(buffer)) if take_rest and rest < len(buffer) else cut.ends
    behind = np.minimum(ends + 1, len(buffer))
    starts = np.append(0, behind[:-1]) if len(ends) else ends
    ends = ends - ((ends > starts) & (buffer[ends - 1] == _RETURN))
    if not blank_is_row:
        written = ends > starts
        if not written.all():
            starts, ends, behind = starts[written], ends[written], behind[written]
    return starts, ends, behind, len(buffer) if take_rest else rest


def count_feeds(data: bytes, first: int, behind: int) -> int:
    """The line feeds in data[first:behind]."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8)[first:behind] == _NEWLINE))


def records_at(split: RecordSplit, positions: Int64s) -> list[int]:
    """The records that hold these bytes, each once; bytes between records belong to none."""
    records = np.unique(np.searchsorted(split.starts, positions, side="right") - 1)
    return [int(record) for record in records if record >= 0]


def not_utf8(split: RecordSplit) -> dict[int, str]:
    """The records that are not valid UTF-8, each with its first wrong byte."""
    wrong: dict[int, str] = {}
    view = memoryview(split.data)
    at = 0
    while True:
        try:
            str(view[at:], "utf-8")
            return wrong
        except UnicodeDecodeError as error:
            position = at + error.start
            record = int(np.searchsorted(split.starts, position, side="right")) - 1
            if record >= 0:
                wrong[record] = f"is not valid UTF-8 (byte 0x{split.data[position]:02x})"
            if record + 1 >= len(split):
                return wrong
            at = int(split.starts[record + 1])
