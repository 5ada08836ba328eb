"""Rows as messages: whole columns made into text at once, then a key and a value for each row.

| format | a message |
| --- | --- |
| json, csv | a row, with the columns that say what it is: the change and its time |
| arrow | a batch of rows as an Arrow IPC stream |
| upsert-json | the row that its key has from now on; one without a value says that it has none |
| debezium-json | an envelope: `after` with op c is a row that comes, `before` with op d one that goes |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.connector import Opening
from transom.connectors.csv_lines import split_records
from transom.connectors.properties import read_delimiter, read_null
from transom.connectors.row_text import csv_text, json_text, value_text
from transom.core.errors import OptionError
from transom.core.schema import CHANGE_COLUMN

FORMATS: Final = ("json", "csv", "arrow", "upsert-json", "debezium-json")
KEY_FORMATS: Final = ("json", "raw")


class MessageWriter(Protocol):
    def messages(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        """The messages as the client library takes them."""


@dataclass(frozen=True)
class WriterProperties:
    format: str
    key: tuple[str, ...]
    raw_key: bool
    delimiter: str
    null: str

    def opened(self, opening: Opening) -> MessageWriter:
        """The format for rows of a schema; OptionError where the form of the answer does not go with it."""
        names = {name.lower(): name for name in opening.schema.names}
        if unknown := [name for name in self.key if name.lower() not in names]:
            raise OptionError(
                f"'key.fields' names '{unknown[0]}', which is no column of the answer",
                remedy=f"{', '.join(opening.schema.names)} are",
            )
        key = tuple(names[name.lower()] for name in self.key)
        changes = opening.schema.names and opening.schema.field(0).equals(CHANGE_COLUMN)
        timed = bool(changes) and opening.schema.names[1:2] == ["at"] and opening.key is None
        if self.format == "upsert-json":
            key = key or opening.key or ()
            if not changes or not key:
                raise OptionError(
                    "upsert-json writes the changes of an answer whose rows have a key",
                    remedy="write emit = 'net' for an answer with GROUP BY or a primary key, or 'key.fields' = '..'",
                )
            return _Upserts(self._keys(key))
        if self.format == "debezium-json":
            if not changes or opening.key is not None:
                raise OptionError(
                    "debezium-json writes rows that come and rows that go",
                    remedy="write emit = 'changes', or format = 'upsert-json' for the net changes of a key",
                )
            return _Envelopes(self._keys(key) if key else None, timed)
        keys = self._keys(key) if key else None
        if self.format == "arrow":
            if keys is not None:
                raise OptionError("an Arrow message has many rows, and no key", remedy="leave 'key.fields' out")
            return _ArrowBatches()
        return _Lines(keys, None if self.format == "json" else (self.delimiter, self.null))

    def _keys(self, columns: tuple[str, ...]) -> _Keys:
        if self.raw_key and len(columns) != 1:
            raise OptionError("a raw key is one column", remedy="write 'key.format' = 'json' for several")
        return _Keys(columns, self.raw_key)


def read_writer(properties: Mapping[str, str]) -> WriterProperties:
    given = properties.get("format", properties.get("value.format", "")).lower()
    if given not in FORMATS:
        what = f"there is no message format '{given}'" if given else "the messages of a topic have a format"
        raise OptionError(what, remedy=f"write format = 'json'; formats are {', '.join(FORMATS)}")
    key_format = properties.get("key.format", "json").lower()
    if key_format not in KEY_FORMATS:
        raise OptionError(f"there is no key format '{key_format}'", remedy=f"formats are {', '.join(KEY_FORMATS)}")
    key = tuple(name.strip() for name in properties.get("key.fields", "").split(";") if name.strip())
    delimiter = read_delimiter(properties.get("delimiter")) or ","
    null = read_null(properties.get("null", ""), properties.get("delimiter"))
    return WriterProperties(given, key, key_format == "raw", delimiter, null)


@dataclass(frozen=True)
class _Keys:
    columns: tuple[str, ...]
    raw: bool

    def of(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        if self.raw:
            values: list[bytes | None] = value_text(batch.column(self.columns[0])).cast(pa.large_binary()).to_pylist()
            return values
        return _json_lines(batch.select(list(self.columns)))


def _json_lines(batch: pa.RecordBatch) -> list[bytes]:
    """A line has no line end inside: JSON writes it otherwise."""
    return json_text(batch, batch.schema.names).split(b"\n")[:-1]


def _messages(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> list[dict[str, Any]]:
    if keys is None:
        return [{"value": value} for value in values]
    return [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]


@dataclass(frozen=True)
class _Lines:
    """JSON, or with a delimiter and a null text CSV."""

    keys: _Keys | None
    csv: tuple[str, str] | None

    def messages(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        values: Sequence[bytes] = _json_lines(batch) if self.csv is None else self._records(batch, *self.csv)
        return _messages(values, None if self.keys is None else self.keys.of(batch))

    def _records(self, batch: pa.RecordBatch, delimiter: str, null: str) -> list[bytes]:
        text, lines, start = csv_text(batch, delimiter, null), [], 0
        for end in split_records(text, delimiter, True).ends.tolist():
            lines.append(text[start:end])
            start = end + 1
        return lines


@dataclass(frozen=True)
class _ArrowBatches:
    def messages(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        return [{"value": out.getvalue().to_pybytes()}]


@dataclass(frozen=True)
class _Upserts:
    keys: _Keys

    def messages(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        goes = pc.equal(batch.column(0), "-").to_pylist()
        values = _json_lines(batch.select(batch.schema.names[1:]))
        return _messages([None if gone else v for gone, v in zip(goes, values, strict=True)], self.keys.of(batch))


@dataclass(frozen=True)
class _Envelopes:
    """Envelopes as Flink writes them: a row that is changed goes and comes. With the time of the change, if known."""

    keys: _Keys | None
    timed: bool

    def messages(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        rows = _json_lines(batch.select(batch.schema.names[2 if self.timed else 1 :]))
        source = [b""] * len(batch)
        if self.timed:
            micros = batch.column(1).cast(pa.int64()).to_pylist()
            source = [b', "source": {"ts_ms": %d, "ts_us": %d}' % (t // 1000, t) for t in micros]
        values = [
            b'{"before": %s, "after": null, "op": "d"%s}' % (row, about)
            if gone
            else b'{"before": null, "after": %s, "op": "c"%s}' % (row, about)
            for row, about, gone in zip(rows, source, pc.equal(batch.column(0), "-").to_pylist(), strict=True)
        ]
        return _messages(values, None if self.keys is None else self.keys.of(batch))
