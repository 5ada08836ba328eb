"""The columns that files have, for whoever declares none.

Parquet says what its columns are. Of text the first rows are looked at: up to LOOKED_AT of the first file, in the
order of names, that has any. A column is of the first type in this list that all its values there have:

| in CSV | type |
| --- | --- |
| true, false | BOOLEAN |
| 7, -12 | BIGINT, from 19 digits on DECIMAL(38, 0); with a zero in front, as in 007, it is no number |
| 1.5, 2e3 | DOUBLE |
| 2024-05-01 | DATE |
| 2024-05-01 10:00:00 | TIMESTAMP |
| others, and a column without values | VARCHAR |

JSON says itself what is a number and what is true or false; its texts may be dates and timestamps. Fields that hold
arrays or objects are left out, as are columns of Parquet that no SQL type can hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.arrow_input import columns_of, readable
from transom.connectors.compressed import open_text
from transom.connectors.conform import fold
from transom.connectors.files import FileSource
from transom.connectors.fit import fit
from transom.connectors.listing import Listed, cannot_read, list_files, show
from transom.connectors.parquet_rows import parquet_schema
from transom.connectors.properties import FileProperties, read_file_properties
from transom.connectors.source import START
from transom.connectors.text_rows import first_byte, read_names
from transom.core.errors import SourceError
from transom.core.location import Within
from transom.core.schema import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, TIMESTAMP, VARCHAR, Column, Schema

LOOKED_AT: Final = 1000
"""So many rows of text are looked at."""

_MOST_BYTES: Final = 1024 * 1024
_MOST_FILES: Final = 16
_MOST_DIGITS: Final = 18
"""So many fit a BIGINT whatever they are."""

_MORE_DIGITS: Final = 38

_DECLARE: Final = "declare the columns: CREATE TABLE t (a INTEGER, ..) WITH (..)"
_TRUE_OR_FALSE: Final = r"(?i)^(true|false)$"
_WHOLE: Final = rf"^[+-]?(0|[1-9]\d{{0,{_MOST_DIGITS - 1}}})$"
_LONG: Final = rf"^[+-]?(0|[1-9]\d{{0,{_MORE_DIGITS - 1}}})$"
_NUMBER: Final = r"(?i)^[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[+-]?\d+)?$|^[+-]?(nan|inf|infinity)$"


def columns_of_files(owner: str, properties: dict[str, str], within: Within | None) -> Schema:
    """The columns of the files that the properties of a stream or table name; it is called `owner`."""
    file_properties = read_file_properties(properties, source=True)
    files = list_files(file_properties.path, may_be_empty=True, within=within)
    for file in files[:_MOST_FILES]:
        columns = _columns_in(file, file_properties, properties, owner, within)
        if columns is not None:
            _check_names(columns, file)
            return columns
    why = "there is none yet" if not files else "those that are there have no rows yet"
    raise SourceError(f"the columns of '{owner}' cannot be taken from its files: {why}", remedy=_DECLARE)


def _columns_in(
    file: Listed, file_properties: FileProperties, properties: dict[str, str], owner: str, within: Within | None
) -> Schema | None:
    """The columns of a file; None where it has no rows to tell them by."""
    format_ = file_properties.format_of(file.name)
    if format_ == "parquet":
        return columns_of(readable(parquet_schema(file)), owner)
    if format_ == "csv":
        return _csv_columns(file, file_properties, properties, within)
    if format_ == "jsonl":
        return _json_columns(file)
    raise SourceError(
        f"nothing says how file '{show(file.name)}' is written", remedy="write format = 'parquet', 'csv' or 'jsonl'"
    )


def _check_names(columns: Schema, file: Listed) -> None:
    seen: set[str] = set()
    for name in columns.names:
        if fold(name) in seen:
            raise SourceError(
                f"file '{show(file.name)}' has column '{name}' twice",
                remedy="give the columns of the file different names, or declare those to be read",
            )
        seen.add(fold(name))


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_columns(
    file: Listed, file_properties: FileProperties, properties: dict[str, str], within: Within | None
) -> Schema | None:
    try:
        with open_text(file) as handle:
            header = read_names(handle, file, first_byte(handle), file_properties, growing=False)
    except OSError as error:
        raise cannot_read(file.path, error) from None
    names = [] if header is None else [name for name in header[0] if name]
    if not names:
        return None
    texts = Schema(tuple(Column(name, VARCHAR) for name in names))
    _check_names(texts, file)
    source = FileSource(texts, {**properties, "path": file.path}, time_column=None, within=within)
    rows = source.read(START, LOOKED_AT).rows
    if not len(rows):
        return None
    return Schema(tuple(Column(name, _type_of_text(rows.column(at))) for at, name in enumerate(names)))


def _type_of_text(values: pa.Array) -> pa.DataType:
    values = pc.utf8_trim_whitespace(values.drop_null())
    if not len(values):
        return VARCHAR
    for pattern, type_ in ((_TRUE_OR_FALSE, BOOLEAN), (_WHOLE, BIGINT), (_LONG, HUGEINT), (_NUMBER, DOUBLE)):
        if pc.all(pc.match_substring_regex(values, pattern)).as_py():
            return type_
    return _type_of_moment(values)


def _type_of_moment(values: pa.Array) -> pa.DataType:
    return next((type_ for type_ in (DATE, TIMESTAMP) if not fit(values, type_).bad), VARCHAR)


# --- JSON lines ------------------------------------------------------------------------------------------------------


def _json_columns(file: Listed) -> Schema | None:
    spelling: dict[str, str] = {}
    values: dict[str, list[Any]] = {}
    for row in _objects(file):
        for name, value in row.items():
            values.setdefault(spelling.setdefault(fold(name), name), []).append(value)
    typed = [
        (name, _type_of_values([value for value in column if value is not None])) for name, column in values.items()
    ]
    columns = tuple(Column(name, type_) for name, type_ in typed if name and type_ is not None)
    return Schema(columns) if columns else None


def _objects(file: Listed) -> Iterator[dict[str, Any]]:
    """The first rows; a line that is no object is passed over here, and rejected when it is read."""
    try:
        with open_text(file) as handle:
            handle.seek(first_byte(handle).offset)
            lines = handle.read(_MOST_BYTES).split(b"\n")
            whole = not handle.read(1)
    except OSError as error:
        raise cannot_read(file.path, error) from None
    for line in lines[: min(LOOKED_AT, len(lines) if whole or len(lines) == 1 else len(lines) - 1)]:
        try:
            row = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _type_of_values(values: list[Any]) -> pa.DataType | None:
    """The type that holds all of these values; None: no column can."""
    kinds = {type(value) for value in values}
    if kinds & {list, dict}:
        return None
    if kinds == {bool}:
        return BOOLEAN
    if kinds == {int}:
        most = max(map(abs, values))
        return BIGINT if most < 10**_MOST_DIGITS else HUGEINT if most < 10**_MORE_DIGITS else DOUBLE
    if kinds and kinds <= {int, float}:
        return DOUBLE
    if kinds == {str}:
        return _type_of_moment(pa.array([value.encode("utf-8", "replace").decode() for value in values], VARCHAR))
    return VARCHAR
