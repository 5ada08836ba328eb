"""Where the records of a text file end, found without parsing them: a file is looked through once, block by block.

The last block is kept with its record ends, so that a batch that ends in the middle of it costs the next one nothing.
The file itself is not kept open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from transom.connectors.compressed import open_text
from transom.connectors.conform import DeclaredRows
from transom.connectors.connector import Split
from transom.connectors.lines import (
    BLOCK_BYTES,
    LONGEST_RECORD,
    Cut,
    TextOffset,
    bounds,
    count_feeds,
    read_records,
    split_lines,
    too_long,
)
from transom.connectors.listing import Listed, cannot_read, show
from transom.connectors.properties import FileProperties
from transom.connectors.recognise import mark_of_text
from transom.connectors.splits import SPLIT_RECORDS
from transom.connectors.storage import ReadFile
from transom.connectors.text_rows import Lines, begin_at, open_lines, resume
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
class _TextBlock:
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
        count = int(np.searchsorted(self.behind, offset - self.offset, side="right"))
        begins = offset == self.offset or (count > 0 and self.behind[count - 1] == offset - self.offset)
        return count if begins else None


@dataclass(frozen=True)
class _Open:
    """A split in the making. `finished`: nothing is left behind it now."""

    start: TextOffset
    after: TextOffset
    rows: int = 0
    finished: bool = False

    def closed(self, name: str, handle: ReadFile) -> Split:
        after = self.after.offset
        return Split(name, [self.start.offset, self.start.line, after, mark_of_text(handle, after)], self.rows)


class TextScan:
    """One file, looked through from any place that `plan` stopped at."""

    def __init__(self, file: Listed, declared: DeclaredRows, properties: FileProperties) -> None:
        self.file = file
        self._declared = declared
        self._properties = properties
        self._lines: tuple[Lines, TextOffset] | None = None
        self._block: _TextBlock | None = None
        self._identity = 0

    def plan(self, at: Sequence[Any] | None, max_rows: int, max_bytes: int, growing: bool) -> TextPlan:
        """Splits as far as `max_rows` records go from `at`, and not much further than `max_bytes`."""
        try:
            with open_text(self.file) as handle:
                text_offset = begin_at(handle, self.file, at)
                return self._plan(handle, text_offset, max_rows, max_bytes, growing)
        except OSError as error:
            raise cannot_read(self.file.path, error) from None

    def _plan(
        self, handle: ReadFile, text_offset: TextOffset, max_rows: int, max_bytes: int, growing: bool
    ) -> TextPlan:
        size, _, identity = handle.status()
        if identity != self._identity:  # another file of this name
            self._identity, self._lines, self._block = identity, None, None
        opened = self._lines or open_lines(handle, self.file, self._declared, self._properties, growing)
        if opened is None:
            return TextPlan([], None, finished=True)
        lines, beginning = opened
        if size > beginning.offset + 3:  # until then it may be half a header, or half a mark
            self._lines = opened
        splits: list[Split] = []
        text_offset, continued = resume(handle, text_offset, beginning)
        if continued:
            rest = read_records(handle, show(self.file.name), text_offset, 1, split_lines, growing=growing)
            if len(rest):
                splits.append(_Open(text_offset, rest.after, 1).closed(self.file.name, handle))
                max_rows -= 1
            text_offset = rest.after
            if rest.finished or not max_rows:
                return TextPlan(splits, _entry(handle, text_offset), rest.finished)
        finished, start = False, text_offset.offset
        for made in self._splits(handle, text_offset, max_rows, max_bytes, lines, growing):
            text_offset, finished = made.after, made.finished
            if made.rows:
                splits.append(made.closed(self.file.name, handle))
            if text_offset.offset - start >= max_bytes:
                break
        return TextPlan(splits, _entry(handle, text_offset), finished, text_offset.offset - start)

    def _splits(
        self, handle: ReadFile, text_offset: TextOffset, left: int, max_bytes: int, lines: Lines, growing: bool
    ) -> Iterator[_Open]:
        """The next splits, of at most so many bytes and one record each; the last one may be empty."""
        run, most = _Open(text_offset, text_offset), min(BLOCK_BYTES, max_bytes)
        while True:
            block = self._block_at(handle, run.after, lines, growing)
            taken = block.records_before(run.after.offset) or 0
            while taken < len(block.behind) and left:
                longest = int(np.searchsorted(block.behind, run.start.offset + most - block.offset, "right"))
                stop = min(taken + left, taken + SPLIT_RECORDS - run.rows, len(block.behind), longest)
                if stop > taken:
                    after = _on(block, run.after, int(block.behind[stop - 1]))
                    run = replace(run, after=after, rows=run.rows + stop - taken)
                    left, taken = left - (stop - taken), stop
                elif not run.rows:  # a record that is longer than a piece should be
                    run = replace(run, after=_on(block, run.after, int(block.behind[taken])), rows=1)
                    left, taken = left - 1, taken + 1
                if left and (stop == longest or run.rows == SPLIT_RECORDS) and taken < len(block.behind):
                    yield run
                    run = _Open(run.after, run.after)
            if left:  # all of the block has been taken, and the blank lines at its end, too
                run = replace(run, after=_on(block, run.after, block.complete))
            if not left and taken == len(block.behind):  # whether anything is left is for the next block to say
                block = self._block_at(handle, run.after, lines, growing)
            if not left or block.state is not None:
                rest = block.offset + block.complete - run.after.offset
                yield replace(run, finished=block.state is not None and not rest)
                return

    def _block_at(self, handle: ReadFile, text_offset: TextOffset, lines: Lines, growing: bool) -> _TextBlock:
        """The block at hand if it has a record at this place or after it, else one that begins there."""
        state = (*handle.status()[:2], growing)
        block = self._block
        if block is not None and block.state in (None, state):
            taken = block.records_before(text_offset.offset)
            if taken is not None and (taken < len(block.behind) or block.state is not None):
                return block
        self._block = _read_block(handle, text_offset, lines, state, show(self.file.name))
        return self._block


def _entry(handle: ReadFile, text_offset: TextOffset) -> list[Any]:
    return [text_offset.offset, text_offset.line, mark_of_text(handle, text_offset.offset)]


def _on(block: _TextBlock, text_offset: TextOffset, behind: int) -> TextOffset:
    """The place `behind` bytes into a block, counted on from one in it."""
    return TextOffset(
        block.offset + behind, text_offset.line + count_feeds(block.data, text_offset.offset - block.offset, behind)
    )


def _read_block(
    handle: ReadFile, text_offset: TextOffset, lines: Lines, state: tuple[int, int, bool], name: str
) -> _TextBlock:
    """The block that begins at a place: longer than others where a record is."""
    size, _, growing = state
    wanted = _BLOCK
    while True:
        data = handle.pread(min(wanted, size - text_offset.offset), text_offset.offset)
        ended = text_offset.offset + len(data) >= size
        last = ended and not growing
        cut = lines.split(data, last)
        if not len(cut.ends) and not ended:
            if len(data) < LONGEST_RECORD:
                wanted = 2 * len(data)
                continue
            cut = lines.split(data, True)  # what has been open for so long is taken for a slip
            if not len(cut.ends):
                raise too_long(name, text_offset)
            cut = Cut(cut.ends[:1])  # the others may only look open because the block ends in them
        _, _, behind, complete = bounds(
            np.frombuffer(data, np.uint8), cut, take_rest=last, blank_is_row=lines.blank_is_row
        )
        return _TextBlock(text_offset.offset, data, behind, complete, state if ended else None)
