"""CSV text as columns of text, by RFC 4180: fields may be quoted, and quoted fields may hold line ends.

A quote means something only at the beginning of a field; elsewhere it is a character like any other (`5" disk`).
A quote that is opened and never properly closed spoils its own line, not the lines after it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from transom.connectors.conform import Piece
from transom.connectors.lines import Cut, Stretch, records_at
from transom.core.delta import Int64s
from transom.core.schema import VARCHAR, Schema

_QUOTE = ord('"')
_NEWLINE = ord("\n")
_RETURN = ord("\r")
_OPEN = "has a quote that is opened and not closed"


def split_records(data: bytes, delimiter: str, last: bool) -> Cut:
    """Line feeds outside quotes end records. Well-formed quotes are counted all at once, others looked at in turn."""
    buffer = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(buffer == _NEWLINE)
    quotes = np.flatnonzero(buffer == _QUOTE)
    if not len(quotes):
        return Cut(feeds)
    unclosed = len(quotes) % 2 == 1
    if _well_formed(buffer, quotes, ord(delimiter)) and not (unclosed and last):
        return Cut(feeds[np.searchsorted(quotes, feeds) % 2 == 0])
    return _split_in_turn(data, feeds, delimiter.encode(), last)


def _well_formed(buffer: npt.NDArray[np.uint8], quotes: Int64s, delimiter: int) -> bool:
    """Whether every first quote of a pair begins a field, and every second one ends it or is doubled."""
    padded = np.concatenate([[_NEWLINE], buffer, [_NEWLINE]]).astype(np.uint8)
    before, after = padded[quotes[0::2]], padded[quotes[1::2] + 2]
    opens = (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    closes = (after == delimiter) | (after == _NEWLINE) | (after == _QUOTE) | (after == _RETURN)
    return bool(opens.all() and closes.all())


def _split_in_turn(data: bytes, feeds: Int64s, delimiter: bytes, last: bool) -> Cut:
    """Only lines with quotes in them are visited; between them every line feed ends a record."""
    ends: list[Int64s] = []
    broken: dict[int, str] = {}
    at = 0
    while (quote := data.find(b'"', at)) >= 0:
        start = max(data.rfind(b"\n", at, quote) + 1, at)
        first, behind = np.searchsorted(feeds, (at, start))
        ends.append(feeds[first:behind])
        line_end = data.find(b"\n", start)
        end, closed = _record_end(data, start, delimiter)
        if not closed:
            if end < 0 and not last:
                at = len(data)
                break
            broken[start], end = _OPEN, line_end
        if end < 0:
            at = len(data)
            break
        ends.append(np.array([end], dtype=np.int64))
        at = end + 1
    ends.append(feeds[np.searchsorted(feeds, at) :])
    return Cut(np.concatenate(ends), broken)


def _record_end(data: bytes, start: int, delimiter: bytes) -> tuple[int, bool]:
    """The line feed that ends the record (-1: it is not there yet), and whether its quotes are in order."""
    at = start
    line_end = data.find(b"\n", start)
    while True:
        if data[at : at + 1] == b'"':
            close = data.find(b'"', at + 1)
            while close >= 0 and data[close + 1 : close + 2] == b'"':
                close = data.find(b'"', close + 2)
            if close < 0:
                return -1, False
            if 0 <= line_end < close:
                if data[close + 1 : close + 2] not in (delimiter, b"\n", b"\r", b""):
                    return close, False
                line_end = data.find(b"\n", close)
            at = close + 1
        field_end = data.find(delimiter, at, line_end if line_end >= 0 else len(data))
        if field_end < 0:
            return line_end, True
        at = field_end + 1


@dataclass(frozen=True)
class CsvLines:
    """How the lines of a CSV file become columns: `header` names them, `wanted` are the places of the declared ones."""

    header: Sequence[str]
    wanted: Sequence[int]
    declared: Schema
    delimiter: str
    null: str

    @property
    def blank_is_row(self) -> bool:
        """With one column an empty line is a row: its value is NULL."""
        return len(self.header) == 1

    def split(self, data: bytes, last: bool) -> Cut:
        return split_records(data, self.delimiter, last)

    def pieces(self, stretch: Stretch) -> tuple[list[Piece], dict[int, str]]:
        """The declared columns as text, and what is wrong with the lines that have other fields than the header."""
        wrong = dict(stretch.broken)
        single = self._lone_returns(stretch)
        good = np.ones(len(stretch), dtype=bool)
        good[[*wrong, *single]] = False
        pieces = []
        numbers = np.flatnonzero(good)
        if len(numbers):
            columns, uneven, count = self._parse(stretch.only(good)[0])
            if count == len(numbers):
                wrong |= {int(numbers[row]): why for row, why in uneven.items()}
                pieces.append(Piece(np.delete(numbers, list(uneven)), columns))
            else:  # somewhere we and the parser disagree about what a record is
                single = sorted({*single, *numbers.tolist()})
        for number in single:
            columns, uneven, count = self._parse(stretch.raw(number))
            if count == 1 and not uneven:
                pieces.append(Piece(np.array([number]), columns))
            else:
                wrong[number] = uneven.get(0, "") if count == 1 else "has a line end outside quotes"
        return pieces, wrong

    def _lone_returns(self, stretch: Stretch) -> list[int]:
        """Records with a carriage return that is no part of a line end: to be parsed on their own."""
        if stretch.data.count(b"\r") == stretch.data.count(b"\r\n"):
            return []
        returns = np.flatnonzero(np.frombuffer(stretch.data, np.uint8) == _RETURN)
        following = np.frombuffer(stretch.data + b"\n", np.uint8)[returns + 1]
        return [row for row in records_at(stretch, returns[following != _NEWLINE]) if row not in stretch.broken]

    def _parse(self, data: bytes) -> tuple[list[pa.Array], dict[int, str], int]:
        """Columns, the rows with too many or too few fields, and the number of all rows."""
        uneven: dict[int, str] = {}

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            expected, found = row.expected_columns, row.actual_columns
            uneven[row.number - 1] = f"has {found} field{'s' * (found != 1)} where the header has {expected}"
            return "skip"

        table = pyarrow.csv.read_csv(
            # Without a last line end Arrow takes an empty last field for quoted when the one before it was.
            pa.BufferReader(data if data.endswith(b"\n") else data + b"\n"),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(data) + 2, column_names=self._names, encoding="utf8"
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=not self.blank_is_row,
                invalid_row_handler=skip,
            ),
            convert_options=self._convert,
        )
        columns = []
        for place, column in zip(self.wanted, self.declared, strict=True):
            values = table.column(str(place)).combine_chunks()
            values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
            if column.type != VARCHAR:  # a quoted NULL text can only be meant as one where text is none
                values = pc.if_else(pc.equal(values, self.null), pa.scalar(None, VARCHAR), values)
            columns.append(values)
        return columns, uneven, table.num_rows + len(uneven)

    @cached_property
    def _names(self) -> list[str]:
        return [str(place) for place in range(len(self.header))]

    @cached_property
    def _convert(self) -> pyarrow.csv.ConvertOptions:
        wanted = sorted(set(self.wanted))
        return pyarrow.csv.ConvertOptions(
            check_utf8=False,  # looked at before
            column_types={str(place): VARCHAR for place in wanted},
            include_columns=[str(place) for place in wanted],
            null_values=[self.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )


def header_fields(line: bytes, delimiter: str) -> list[str]:
    """The names in the first line of a file.

    >>> header_fields(b'id, "full name"\\r', ',')
    ['id', 'full name']
    """
    text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    return [name.strip() for row in rows[:1] for name in row]
