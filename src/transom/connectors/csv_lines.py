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

from transom.connectors.conform import ParsedRows
from transom.connectors.lines import Cut, RecordSplit, records_at
from transom.core.delta import Int64s
from transom.core.schema import VARCHAR, Schema

_QUOTE = ord('"')
_NEWLINE = ord("\n")
_RETURN = ord("\r")
_FEW_QUOTES = 16
_MOST_VISITS = 64
_OPEN = "has a quote that is opened and not closed"


def split_records(data: bytes, delimiter: str, last: bool) -> Cut:
    """Line feeds outside quotes end records. Well-formed quotes are counted all at once, others looked at in turn."""
    buffer = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(buffer == _NEWLINE)
    quotes = np.flatnonzero(buffer == _QUOTE)
    if not len(quotes):
        return Cut(feeds)
    fit = _Fit(buffer, quotes, ord(delimiter))
    in_order = len(quotes) % 2 == 0 or (fit.opens[-1] and not last)  # a field may be open where more will follow
    if in_order and fit.pairs(0, len(quotes)) == len(quotes) // 2:
        return Cut(feeds[np.searchsorted(quotes, feeds) % 2 == 0])
    return _split_in_turn(data, feeds, fit, delimiter.encode(), last)


class _Fit:
    """Which quotes stand where a field begins, and which where one ends or as the first of a doubled one."""

    def __init__(self, buffer: npt.NDArray[np.uint8], quotes: Int64s, delimiter: int) -> None:
        opening, closing = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
        opening[[delimiter, _NEWLINE, _QUOTE]] = True
        closing[[delimiter, _NEWLINE, _QUOTE, _RETURN]] = True
        self.quotes = quotes
        self.opens = opening[buffer[quotes - 1]]
        self.opens[0] |= quotes[0] == 0
        self.closes = closing[buffer[np.minimum(quotes + 1, len(buffer) - 1)]]  # the last byte is a quote, if it is met

    def pairs(self, first: int, behind: int) -> int:
        """How many pairs of the quotes [first, behind), one after the other from the first, are well-formed."""
        whole = (behind - first) // 2
        good = self.opens[first:behind:2][:whole] & self.closes[first + 1 : behind : 2]
        return whole if good.all() else int(np.argmin(good))


def _split_in_turn(data: bytes, feeds: Int64s, fit: _Fit, delimiter: bytes, last: bool) -> Cut:
    """Records that have an ill-formed quote are visited one by one; those between them are still counted at once.

    Counting is tried with more quotes at a time as long as it succeeds, and less often where it does not.
    """
    ends: list[Int64s] = []
    broken: dict[int, str] = {}
    at, window, visits, patience = 0, _FEW_QUOTES, 0, 1
    while (quote := data.find(b'"', at)) >= 0:
        if not visits:
            first = int(np.searchsorted(fit.quotes, quote))
            behind = min(first + window, len(fit.quotes))
            pairs = fit.pairs(first, behind)
            counted = _ends_outside(feeds, fit.quotes, at, first, first + 2 * pairs)
            if len(counted):
                ends.append(counted)
                at = int(counted[-1]) + 1
            if 2 * pairs >= window:
                window *= 2
                continue
            window = _FEW_QUOTES
            patience = 1 if len(counted) else min(2 * patience, _MOST_VISITS)
            visits = patience
            continue
        visits -= 1
        start = max(data.rfind(b"\n", at, quote) + 1, at)
        before, behind = np.searchsorted(feeds, (at, start))
        ends.append(feeds[before:behind])
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


def _ends_outside(feeds: Int64s, quotes: Int64s, at: int, first: int, behind: int) -> Int64s:
    """The line feeds outside quotes from `at` on, where the quotes [first, behind) are well-formed, up to the next."""
    stop = np.searchsorted(feeds, quotes[behind]) if behind < len(quotes) else len(feeds)
    some = feeds[np.searchsorted(feeds, at) : stop]
    outside: Int64s = some[np.searchsorted(quotes[first:behind], some) % 2 == 0]
    return outside


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

    def parsed(self, records: RecordSplit) -> tuple[list[ParsedRows], dict[int, str]]:
        """The declared columns as text, and what is wrong with the lines that have other fields than the header."""
        wrong = dict(records.broken)
        single = self._lone_returns(records)
        good = np.ones(len(records), dtype=bool)
        good[[*wrong, *single]] = False
        parsed = []
        numbers = np.flatnonzero(good)
        if len(numbers):
            columns, uneven, count = self._parse(records.only(good)[0])
            if count == len(numbers):
                wrong |= {int(numbers[row]): why for row, why in uneven.items()}
                parsed.append(ParsedRows(np.delete(numbers, list(uneven)), columns))
            else:  # somewhere we and the parser disagree about what a record is
                single = sorted({*single, *numbers.tolist()})
        for number in single:
            columns, uneven, count = self._parse(records.raw(number))
            if count == 1 and not uneven:
                parsed.append(ParsedRows(np.array([number]), columns))
            else:
                wrong[number] = uneven.get(0, "") if count == 1 else "has a line end outside quotes"
        return parsed, wrong

    def _lone_returns(self, records: RecordSplit) -> list[int]:
        """Records with a carriage return that is no part of a line end: to be parsed on their own."""
        if records.data.count(b"\r") == records.data.count(b"\r\n"):
            return []
        returns = np.flatnonzero(np.frombuffer(records.data, np.uint8) == _RETURN)
        following = np.frombuffer(records.data + b"\n", np.uint8)[returns + 1]
        return [row for row in records_at(records, returns[following != _NEWLINE]) if row not in records.broken]

    def _parse(self, data: bytes) -> tuple[list[pa.Array], dict[int, str], int]:
        """Columns, the rows with too many or too few fields, and the number of all rows."""
        uneven: dict[int, str] = {}

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            expected, actual = row.expected_columns, row.actual_columns
            uneven[row.number - 1] = f"has {actual} field{'s' * (actual != 1)} where the header has {expected}"
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
        for index, column in zip(self.wanted, self.declared, strict=True):
            values = table.column(str(index)).combine_chunks()
            values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
            if column.type != VARCHAR:  # a quoted NULL text can only be meant as one where text is none
                values = pc.if_else(pc.equal(values, self.null), pa.scalar(None, VARCHAR), values)
            columns.append(values)
        return columns, uneven, table.num_rows + len(uneven)

    @cached_property
    def _names(self) -> list[str]:
        return [str(index) for index in range(len(self.header))]

    @cached_property
    def _convert(self) -> pyarrow.csv.ConvertOptions:
        wanted = sorted(set(self.wanted))
        return pyarrow.csv.ConvertOptions(
            check_utf8=False,  # looked at before
            column_types={str(index): VARCHAR for index in wanted},
            include_columns=[str(index) for index in wanted],
            null_values=[self.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )


class LoneReturn(Exception):
    """A carriage return without a line feed ends a line."""


def header_fields(line: bytes, delimiter: str) -> list[str]:
    """The names in the first line of a file; raises LoneReturn where it is several lines to other programs.

    >>> header_fields(b'id, "full name"\\r', ',')
    ['id', 'full name']
    """
    text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    if len(rows) > 1:
        raise LoneReturn
    return [name.strip() for row in rows for name in row]
