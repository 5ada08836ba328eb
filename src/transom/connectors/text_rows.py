"""Rows of a CSV or JSON-lines file from any byte on."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

from transom.connectors.compressed import open_text
from transom.connectors.conform import DeclaredRows, ParsedRows, conform, find_columns
from transom.connectors.csv_lines import CsvLines, LoneReturn, header_fields, split_records
from transom.connectors.json_lines import JsonLines
from transom.connectors.lines import (
    BYTE_ORDER_MARK,
    Cut,
    RecordSplit,
    TextOffset,
    not_utf8,
    read_records,
    records_of,
    split_lines,
)
from transom.connectors.listing import Listed, cannot_read, show
from transom.connectors.properties import FileProperties
from transom.connectors.recognise import mark_of_text, read_entry, reject_another
from transom.connectors.source import Chunk, Rejected
from transom.connectors.storage import ReadFile
from transom.core.errors import SourceError

_FIRST: Final = 64 * 1024
_RETURNED_OBJECTS: Final = re.compile(rb"\}\s*\r\s*\{")
_CONTINUED: Final = "goes on with a line that has been read already, when it looked complete"


class Lines(Protocol):
    """A text format: where its records end, and the columns in them."""

    @property
    def blank_is_row(self) -> bool: ...

    def split(self, data: bytes, last: bool) -> Cut: ...

    def parsed(self, records: RecordSplit) -> tuple[list[ParsedRows], dict[int, str]]: ...


def read_text_split(
    file: Listed, at: Sequence[Any], rows: int, declared: DeclaredRows, properties: FileProperties
) -> Chunk:
    """The records of a split: `at` is [first byte, line feeds before it, byte behind its last record, mark there].

    Nothing behind that byte is looked at: what has been added to the file meanwhile is no part of the split.
    """
    (start, line, stop), mark = read_entry(at, 3)
    try:
        with open_text(file) as handle:
            reject_replaced(handle, file, [stop, line, mark])
            format_ = open_lines(handle, file, declared, properties, growing=False)
            if format_ is None:
                raise _changed(file)
            lines, beginning = format_
            continued = start > beginning.offset and not _ends_line(handle, TextOffset(start))
            handle.seek(start)
            data = handle.read(stop - start)
    except OSError as error:
        raise cannot_read(file.path, error) from None
    if continued and data != b"\r":  # see go_on
        records = records_of(data, TextOffset(start, line), split_lines, blank_is_row=False)
        chunk = _chunk_continued(records, file, declared)
    else:
        records = records_of(data, TextOffset(start, line), lines.split, blank_is_row=lines.blank_is_row)
        chunk = _chunk_of(records, lines, file, declared)
    if len(records) != rows:
        raise _changed(file)
    return chunk


def begin_at(handle: ReadFile, file: Listed, at: Sequence[Any] | None) -> TextOffset:
    """The place of an entry in a position, in the file that it was taken in."""
    if not at:
        return TextOffset()
    reject_replaced(handle, file, at)
    return TextOffset(*read_entry(at, 2)[0])


def reject_replaced(handle: ReadFile, file: Listed, at: Sequence[Any]) -> None:
    """Raise SourceError where a file is not the one of which so much has been read."""
    (read, _), mark = read_entry(at, 2)
    size = handle.status()[0]
    if size < read:
        raise SourceError(
            f"file '{show(file.name)}' has {size} bytes, and {read} of it have been read before",
            remedy="lines may be added to a file, but not taken away; start the query anew",
        )
    reject_another(file, mark, mark_of_text(handle, read), f"{read} bytes")


def _changed(file: Listed) -> SourceError:
    return SourceError(
        f"file '{show(file.name)}' is not what it was when its reading was planned",
        remedy="lines may be added to a file, but not changed; start the query anew",
    )


def open_lines(
    handle: ReadFile, file: Listed, declared: DeclaredRows, properties: FileProperties, growing: bool
) -> tuple[Lines, TextOffset] | None:
    """How the lines of a file are read and where they begin; None while it has no header, but needs one."""
    beginning = first_byte(handle)
    if properties.format_of(file.name) == "csv":
        return _read_header(handle, file, beginning, declared, properties, growing)
    if _RETURNED_OBJECTS.search(_first_line(handle, beginning)):
        raise _lone_returns(file)
    return JsonLines(declared), beginning


def first_byte(handle: ReadFile) -> TextOffset:
    """Where a file that has just been opened begins, behind the mark that some programs write."""
    return TextOffset(len(BYTE_ORDER_MARK)) if handle.read(3) == BYTE_ORDER_MARK else TextOffset()


def _first_line(handle: ReadFile, at: TextOffset) -> bytes:
    """The beginning of a file as far as its first line feed, if it is not far."""
    return handle.pread(_FIRST, at.offset).partition(b"\n")[0]


def _lone_returns(file: Listed) -> SourceError:
    return SourceError(
        f"the lines of file '{show(file.name)}' end with carriage returns alone, and line feeds are expected",
        remedy="write line feeds instead: tr '\\r' '\\n' < old > new",
    )


def _read_header(
    handle: ReadFile, file: Listed, at: TextOffset, declared: DeclaredRows, properties: FileProperties, growing: bool
) -> tuple[CsvLines, TextOffset] | None:
    """How the lines of a CSV file are read, by its first line, and where they begin; None while there is no header."""
    header = read_names(handle, file, at, properties, growing)
    if header is None:
        return None
    names, after = header
    wanted = find_columns(declared.columns, names, show(file.name))
    return CsvLines(names, wanted, declared.columns, properties.delimiter_of(file.name), properties.null), after


def read_names(
    handle: ReadFile, file: Listed, at: TextOffset, properties: FileProperties, growing: bool
) -> tuple[list[str], TextOffset] | None:
    """The names in the first line of a CSV file, and where the others begin; None while there is no header."""
    delimiter = properties.delimiter_of(file.name)
    header = read_records(
        handle, show(file.name), at, 1, lambda data, last: split_records(data, delimiter, last), growing=growing
    )
    try:
        if not len(header):
            header_fields(_first_line(handle, at), delimiter)  # which may never end as it should
            return None
        return header_fields(header.raw(0), delimiter), header.after
    except LoneReturn:
        raise _lone_returns(file) from None
    except csv.Error as error:
        raise SourceError(
            f"the header of file '{show(file.name)}' cannot be read: {error}",
            remedy="write the names of the columns there",
        ) from None


def resume(handle: ReadFile, text_offset: TextOffset, beginning: TextOffset) -> tuple[TextOffset, bool]:
    """Where reading goes on that stopped at `text_offset`; and whether the rest of a line stands there that has been
    read."""
    if text_offset.offset <= beginning.offset:
        return beginning, False
    return (text_offset, False) if _ends_line(handle, text_offset) else _skip_line_end(handle, text_offset)


def _ends_line(handle: ReadFile, text_offset: TextOffset) -> bool:
    handle.seek(text_offset.offset - 1)
    return handle.read(1) == b"\n"


def _skip_line_end(handle: ReadFile, text_offset: TextOffset) -> tuple[TextOffset, bool]:
    """A last line without its end was read; now more has come: only its end, or (True) more of the line itself."""
    handle.seek(text_offset.offset)
    following = handle.read(2)
    for end in (b"\n", b"\r\n"):
        if following.startswith(end):
            return TextOffset(text_offset.offset + len(end), text_offset.line + 1), False
    return text_offset, following not in (b"", b"\r")


def _chunk_of(records: RecordSplit, lines: Lines, file: Listed, declared: DeclaredRows) -> Chunk:
    records.broken.update(not_utf8(records))
    parsed, wrong = lines.parsed(records)
    return _chunk(records, parsed, wrong, file, declared)


def _chunk_continued(rest: RecordSplit, file: Listed, declared: DeclaredRows) -> Chunk:
    return _chunk(rest, [], dict.fromkeys(range(len(rest)), _CONTINUED), file, declared)


def _chunk(
    records: RecordSplit, parsed: list[ParsedRows], wrong: dict[int, str], file: Listed, declared: DeclaredRows
) -> Chunk:
    rows, unfit = conform(parsed, declared, show(file.name))
    reasons = {row: f"the line {why}" for row, why in wrong.items()} | unfit
    rejected = [
        Rejected(
            f"{show(file.name)}, line {records.lines[row]}",
            reasons[row],
            records.raw(row).decode("utf-8", "backslashreplace"),
        )
        for row in sorted(reasons)
    ]
    return Chunk(rows, rejected, [records.after.offset, records.after.line], records.finished)
