"""The values of messages as columns: many messages joined to one text and parsed at once, as lines of a file are.

A message is a record, whatever line ends it has inside. What is wrong with one message never touches its neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

import numpy as np
import pyarrow as pa

from transom.connectors.conform import DeclaredRows, ParsedRows, find_columns, fold
from transom.connectors.csv_lines import CsvLines, split_records
from transom.connectors.json_lines import JsonLines
from transom.connectors.lines import RecordSplit, TextOffset, not_utf8
from transom.core.delta import Int64s
from transom.core.errors import SourceError

Values = Sequence[bytes | None]
"""Of messages; None is one without a value."""

_BLANK: Final = b" \t\r\n"
_NO_VALUE: Final = "has no value"


class ValueFormat(Protocol):
    """How values become columns."""

    def parsed(self, values: Values) -> tuple[list[ParsedRows], dict[int, str]]:
        """The columns of the messages that can be read, and what is wrong with the others."""


@dataclass(frozen=True)
class JsonValues:
    """A message is one JSON object, in one line or in several. If it is to be `complete`, it has every column; if it is
    `closed`, it has nothing else."""

    declared: DeclaredRows
    complete: bool = False
    closed: bool = False

    def parsed(self, values: Values) -> tuple[list[ParsedRows], dict[int, str]]:
        missing = [at for at, value in enumerate(values) if value is None] if None in values else []
        texts = [value or b"" for value in values] if missing else cast("Sequence[bytes]", values)
        if texts and (texts[0][-1:] in _BLANK or texts[0][:1] in _BLANK):
            texts = [text.strip(_BLANK) for text in texts]
        records = joined(texts)
        records.broken.update(not_utf8(records))
        records.broken.update(dict.fromkeys(missing, _NO_VALUE))
        parts, wrong = JsonLines(self.declared, self.closed).parsed(records)
        return self._without_incomplete(parts, wrong, texts) if self.complete else (parts, wrong)

    def _without_incomplete(
        self, parts: Sequence[ParsedRows], wrong: dict[int, str], texts: Sequence[bytes]
    ) -> tuple[list[ParsedRows], dict[int, str]]:
        """Only the rows that have all fields: where a value is NULL, it is looked whether its field is there."""
        incomplete: dict[int, str] = {}
        for part in parts:
            for column, values in zip(self.declared.columns, part.columns, strict=True):
                for row in (
                    part.origin[values.is_null().to_numpy(zero_copy_only=False)].tolist() if values.null_count else ()
                ):
                    if fold(column.name) not in map(fold, json.loads(texts[row])):
                        incomplete.setdefault(row, f"has no field '{column.name}'")
        if not incomplete:
            return list(parts), wrong
        gone = np.fromiter(incomplete, np.int64, len(incomplete))
        complete = []
        for part in parts:
            good = np.flatnonzero(~np.isin(part.origin, gone))
            complete.append(ParsedRows(part.origin[good], [values.take(pa.array(good)) for values in part.columns]))
        return complete, wrong | incomplete


@dataclass(frozen=True)
class CsvValues:
    """A message is one CSV record, with a field for each declared column in their order."""

    declared: DeclaredRows
    delimiter: str
    null: str

    def parsed(self, values: Values) -> tuple[list[ParsedRows], dict[int, str]]:
        names = self.declared.columns.names
        lines = CsvLines(names, range(len(names)), self.declared.columns, self.delimiter, self.null)
        texts = [b"" if value is None else value.rstrip(b"\r\n") for value in values]
        records = joined(texts)
        records.broken.update(not_utf8(records))
        cut = split_records(records.data, self.delimiter, True)
        if cut.broken or not np.array_equal(cut.ends, records.ends):
            records.broken.update(self._not_one(texts))
        for at, value in enumerate(values):
            if value is None or (not value and not lines.blank_is_row):
                records.broken[at] = _NO_VALUE
        return lines.parsed(records)

    def _not_one(self, texts: Sequence[bytes]) -> dict[int, str]:
        """Messages that are not one record each."""
        wrong: dict[int, str] = {}
        for at, text in enumerate(texts):
            if b"\n" in text or b'"' in text:
                cut = split_records(text + b"\n", self.delimiter, True)
                if cut.broken:
                    wrong[at] = next(iter(cut.broken.values()))
                elif cut.ends.tolist() != [len(text)]:
                    wrong[at] = "has a line end outside quotes"
        return wrong


@dataclass(frozen=True)
class ArrowValues:
    """A message is an Arrow IPC stream: some batches of rows whose columns are found by name."""

    declared: DeclaredRows
    name: str

    def parsed(self, values: Values) -> tuple[list[ParsedRows], dict[int, str]]:
        parts: list[tuple[int, pa.RecordBatch]] = []
        wrong: dict[int, str] = {}
        for at, value in enumerate(values):
            try:
                if value is None:
                    wrong[at] = _NO_VALUE
                else:
                    with pa.ipc.open_stream(value) as reader:
                        parts += [(at, batch) for batch in reader.read_all().to_batches()]
            except (pa.ArrowException, OSError) as error:
                wrong[at] = f"is no Arrow IPC stream: {str(error).splitlines()[0]}"
        alike: dict[pa.Schema, list[tuple[int, pa.RecordBatch]]] = {}
        for at, batch in parts:
            alike.setdefault(batch.schema.remove_metadata(), []).append((at, batch))
        parsed = []
        for schema, some in alike.items():
            try:
                indexes = find_columns(self.declared.columns, schema.names, self.name)
            except SourceError as error:
                wrong.update(dict.fromkeys([at for at, _ in some], f"has other columns: {error.what}"))
                continue
            origin: Int64s = np.repeat([at for at, _ in some], [len(batch) for _, batch in some])
            whole = [pa.concat_arrays([batch.column(index) for _, batch in some]) for index in indexes]
            parsed.append(ParsedRows(origin, whole))
        return parsed, wrong


def joined(texts: Sequence[bytes]) -> RecordSplit:
    """Each text as a record, with a line feed behind it.

    >>> joined([b"a", b"", b"bc"]).starts.tolist()
    [0, 2, 3]
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    behind = np.cumsum(lengths + 1)
    data = b"\n".join([*texts, b""]) if texts else b""
    starts = behind - lengths - 1
    return RecordSplit(data, starts, behind - 1, starts, {}, TextOffset(), True)
