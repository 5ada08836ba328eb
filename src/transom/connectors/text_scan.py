"""Where the records of a text file end, found without parsing them: a file is looked through once, block by block.

The last block is kept with its record ends, so that a batch that ends in the middle of it costs the next one nothing.
The file itself is not kept open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

import numpy as np

from transom.connectors.conform import Declared
from transom.connectors.connector import Split
from transom.connectors.lines import (
    BLOCK_BYTES,
    LONGEST_RECORD,
    Cut,
    Place,
    bounds,
    count_feeds,
    read_stretch,
    split_lines,
    too_long,
)
from transom.connectors.listing import Listed, cannot_read, show
from transom.connectors.properties import FileProperties
from transom.connectors.recognise import mark_of_text
from transom.connectors.splits import SPLIT_RECORDS
from transom.connectors.text_rows import Lines, begin_at, go_on, open_lines
from transom.core.delta import Int64s

_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True)
class TextPlan:
    """The next splits of a file and its position behind them: bytes, line feeds and a mark (None: it has not begun
    yet). `bytes` is how many they have."""

    splits: list[Split]
    at: list[Any] | None
    finished: bool
    bytes: int = 0


@dataclass(frozen=True)
class _Block:
    """Bytes that begin with a record, and where its records have their line ends behind them.

    `complete` bytes hold complete records and blank lines. What was found at the end of the file holds for a `state` of
    it alone, (size, time, growing); None holds for good, as lines can only be added.
    """

    offset: int
    data: bytes
    behind: Int64s
    complete: int
    state: tuple[int, int, bool] | None

    def records_before(self, offset: int) -> int | None:
        """How many records end at or before a place, if a record begins there."""
        found = int(np.searchsorted(self.behind, offset - self.offset, side="right"))
        begins = offset == self.offset or (found > 0 and self.behind[found - 1] == offset - self.offset)
        return found if begins else None


@dataclass(frozen=True)
class _Open:
    """A split in the making. `finished`: nothing is left behind it now."""

    start: Place
    after: Place
    rows: int = 0
    finished: bool = False

    def closed(self, name: str, handle: BinaryIO) -> Split:
        after = self.after.offset
        return Split(name, [self.start.offset, self.start.line, after, mark_of_text(handle, after)], self.rows)


class TextScan:
    """One file, looked through from any place that `plan` stopped at."""

    def __init__(self, file: Listed, declared: Declared, properties: FileProperties) -> None:
        self.file = file
        self._declared = declared
        self._properties = properties
        self._lines: tuple[Lines, Place] | None = None
        self._block: _Block | None = None
        self._inode = 0

    def plan(self, at: Sequence[Any] | None, max_rows: int, max_bytes: int, growing: bool) -> TextPlan:
        """As far as `max_rows` records go from `at`, and not much further than `max_bytes`."""
        try:
            with open(self.file.path, "rb") as handle:
                place = begin_at(handle, self.file, at)
                return self._plan(handle, place, max_rows, max_bytes, growing)
        except OSError as error:
            raise cannot_read(self.file.path, error) from None

    def _plan(self, handle: BinaryIO, place: Place, max_rows: int, max_bytes: int, growing: bool) -> TextPlan:
        status = os.fstat(handle.fileno())
        if status.st_ino != self._inode:  # another file of this name
            self._inode, self._lines, self._block = status.st_ino, None, None
        found = self._lines or open_lines(handle, self.file, self._declared, self._properties, growing)
        if found is None:
            return TextPlan([], None, finished=True)
        lines, beginning = found
        if status.st_size > beginning.offset + 3:  # until then it may be half a header, or half a mark
            self._lines = found
        splits: list[Split] = []
        place, continued = go_on(handle, place, beginning)
        if continued:
            rest = read_stretch(handle, show(self.file.name), place, 1, split_lines, growing=growing)
            if len(rest):
                splits.append(_Open(place, rest.after, 1).closed(self.file.name, handle))
                max_rows -= 1
            place = rest.after
            if rest.finished or not max_rows:
                return TextPlan(splits, _entry(handle, place), rest.finished)
        finished, start = False, place.offset
        for made in self._splits(handle, place, max_rows, max_bytes, lines, growing):
            place, finished = made.after, made.finished
            if made.rows:
                splits.append(made.closed(self.file.name, handle))
            if place.offset - start >= max_bytes:
                break
        return TextPlan(splits, _entry(handle, place), finished, place.offset - start)

    def _splits(
        self, handle: BinaryIO, place: Place, left: int, max_bytes: int, lines: Lines, growing: bool
    ) -> Iterator[_Open]:
        """The next splits, of at most so many bytes and one record each; the last one may be empty."""
        piece, most = _Open(place, place), min(BLOCK_BYTES, max_bytes)
        while True:
            block = self._block_at(handle, piece.after, lines, growing)
            taken = block.records_before(piece.after.offset) or 0
            while taken < len(block.behind) and left:
                longest = int(np.searchsorted(block.behind, piece.start.offset + most - block.offset, "right"))
                stop = min(taken + left, taken + SPLIT_RECORDS - piece.rows, len(block.behind), longest)
                if stop > taken:
                    after = _on(block, piece.after, int(block.behind[stop - 1]))
                    piece = replace(piece, after=after, rows=piece.rows + stop - taken)
                    left, taken = left - (stop - taken), stop
                elif not piece.rows:  # a record that is longer than a piece should be
                    piece = replace(piece, after=_on(block, piece.after, int(block.behind[taken])), rows=1)
                    left, taken = left - 1, taken + 1
                if left and (stop == longest or piece.rows == SPLIT_RECORDS) and taken < len(block.behind):
                    yield piece
                    piece = _Open(piece.after, piece.after)
            if left:  # all of the block has been taken, and the blank lines at its end, too
                piece = replace(piece, after=_on(block, piece.after, block.complete))
            if not left and taken == len(block.behind):  # whether anything is left is for the next block to tell
                block = self._block_at(handle, piece.after, lines, growing)
            if not left or block.state is not None:
                rest = block.offset + block.complete - piece.after.offset
                yield replace(piece, finished=block.state is not None and not rest)
                return

    def _block_at(self, handle: BinaryIO, place: Place, lines: Lines, growing: bool) -> _Block:
        """The block at hand if it has a record at this place or after it, else one that begins there."""
        status = os.fstat(handle.fileno())
        state = (status.st_size, status.st_mtime_ns, growing)
        block = self._block
        if block is not None and block.state in (None, state):
            taken = block.records_before(place.offset)
            if taken is not None and (taken < len(block.behind) or block.state is not None):
                return block
        self._block = _read_block(handle, place, lines, state, show(self.file.name))
        return self._block


def _entry(handle: BinaryIO, place: Place) -> list[Any]:
    return [place.offset, place.line, mark_of_text(handle, place.offset)]


def _on(block: _Block, place: Place, behind: int) -> Place:
    """The place `behind` bytes into a block, counted on from one in it."""
    return Place(block.offset + behind, place.line + count_feeds(block.data, place.offset - block.offset, behind))


def _read_block(handle: BinaryIO, place: Place, lines: Lines, state: tuple[int, int, bool], name: str) -> _Block:
    """The block that begins at a place: longer than others where a record is."""
    size, _, growing = state
    wanted = _BLOCK
    while True:
        data = os.pread(handle.fileno(), min(wanted, size - place.offset), place.offset)
        ended = place.offset + len(data) >= size
        last = ended and not growing
        cut = lines.split(data, last)
        if not len(cut.ends) and not ended:
            if len(data) < LONGEST_RECORD:
                wanted = 2 * len(data)
                continue
            cut = lines.split(data, True)  # what has been open for so long is taken for a slip
            if not len(cut.ends):
                raise too_long(name, place)
            cut = Cut(cut.ends[:1])  # the others may only look open because the block ends in them
        _, _, behind, complete = bounds(
            np.frombuffer(data, np.uint8), cut, take_rest=last, blank_is_row=lines.blank_is_row
        )
        return _Block(place.offset, data, behind, complete, state if ended else None)
