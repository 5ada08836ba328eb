"""Messages that say how a table changes: rows that come (+) and rows that go (-), for a changing table.

| format | a message |
| --- | --- |
| upsert-json | the row that its key has from now on; one without a value says that it has none |
| debezium-json | an envelope with `before`, `after` and op: c, r: comes, u: changes, d: goes; without a value skipped |

Whoever writes them may write some again after a failure. Where the table has a primary key a repeated row reindexes
itself, and nothing changes by it; without one every row counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.conform import DeclaredRows, ParsedRows, conform
from transom.connectors.json_lines import JsonLines
from transom.connectors.lines import not_utf8
from transom.connectors.message_values import JsonValues, Values, joined
from transom.core.delta import Int64s
from transom.core.schema import BIGINT, TIMESTAMP, VARCHAR, Column, Schema

FORMATS: Final = ("upsert-json", "debezium-json")
SOURCE_TIME: Final = "value.source.timestamp"
INGESTION_TIME: Final = "value.ingestion-timestamp"
TIMES: Final = (SOURCE_TIME, INGESTION_TIME)
"""Times that an envelope has, by their names in Flink."""

_BEFORE_IS_MISSING: Final = "has no 'before', which says what goes (PostgreSQL writes it with REPLICA IDENTITY FULL)"


@dataclass(frozen=True)
class MessageRows:
    """Rows of messages, in the order of their `origin`; of changes their signs, and times that came with them."""

    rows: ParsedRows
    signs: pa.Array | None = None
    times: Mapping[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True)
class UpsertJson:
    """The value is a row; where there is none its key goes."""

    declared: DeclaredRows

    def parsed(self, values: Values) -> tuple[list[MessageRows], dict[int, str]]:
        gone = np.array([at for at, value in enumerate(values) if value is None], dtype=np.int64)
        there = np.array([at for at, value in enumerate(values) if value is not None], dtype=np.int64)
        parts, wrong = JsonValues(self.declared).parsed([value for value in values if value is not None])
        message_rows = [
            MessageRows(ParsedRows(there[part.origin], part.columns), pa.repeat("+", len(part.origin)))
            for part in parts
        ]
        if len(gone):
            nothing = [pa.nulls(len(gone), column.type) for column in self.declared.columns]
            message_rows.append(MessageRows(ParsedRows(gone, nothing), pa.repeat("-", len(gone))))
        return message_rows, {int(there[at]): why for at, why in wrong.items()}


@dataclass(frozen=True)
class DebeziumJson:
    """`keyed`: rows replace each other by a primary key, so what was before a change need not be known.

    With `wrapped` the envelope is the payload beside its schema.
    """

    declared: DeclaredRows
    keyed: bool
    wrapped: bool
    name: str

    def parsed(self, values: Values) -> tuple[list[MessageRows], dict[int, str]]:
        there = np.array([at for at, value in enumerate(values) if value is not None], dtype=np.int64)
        envelope = self._envelope()
        records = joined([value for value in values if value is not None])
        records.broken.update(not_utf8(records))
        parts, wrong = JsonLines(envelope).parsed(records)
        rows, unfit = conform(parts, envelope, self.name)
        wrong |= unfit
        origin = np.setdiff1d(np.arange(len(there)), np.fromiter(wrong, np.int64, len(wrong)))
        columns = rows.columns
        if self.wrapped:
            columns = columns[0].flatten()
        changed, more = self._changes(there[origin], *columns)
        return changed, {int(there[at]): why for at, why in wrong.items()} | more

    def _envelope(self) -> DeclaredRows:
        row = pa.struct([(column.name, column.type) for column in self.declared.columns])
        times = pa.struct([("ts_ms", BIGINT), ("ts_us", BIGINT)])
        columns = [("before", row), ("after", row), ("op", VARCHAR), ("source", times), ("ts_ms", BIGINT)]
        if self.wrapped:
            columns = [("payload", pa.struct(columns))]
        return DeclaredRows(Schema(tuple(Column(name, type_) for name, type_ in columns)), None, None)

    def _changes(
        self, origin: Int64s, before: pa.Array, after: pa.Array, op: pa.Array, source: pa.Array, ts_ms: pa.Array
    ) -> tuple[list[MessageRows], dict[int, str]]:
        """A change is two rows where there is no key: first the one that goes."""
        comes, goes = _among(op, "c", "r", "u"), _among(op, "d") if self.keyed else _among(op, "d", "u")
        reasons = [
            (~(comes | goes), "has an 'op' that is none of c, r, u and d"),
            (comes & ~_valid(after), "has no 'after', which says what comes"),
            (goes & ~_valid(before), _BEFORE_IS_MISSING),
        ]
        bad = np.zeros(len(origin), dtype=np.bool_)
        wrong: dict[int, str] = {}
        for which, why in reasons:
            wrong = {int(origin[at]): why for at in np.flatnonzero(which)} | wrong
            bad |= which
        leave, enter = np.flatnonzero(goes & ~bad), np.flatnonzero(comes & ~bad)
        indexes = np.concatenate([leave, enter])
        order = np.argsort(indexes, kind="stable")  # those that go lie before those that come
        rows = pa.concat_arrays([before.take(pa.array(leave)), after.take(pa.array(enter))]).take(pa.array(order))
        signs = np.repeat(np.array(["-", "+"]), [len(leave), len(enter)])[order]
        micros, millis = source.flatten()[::-1]
        at = pc.coalesce(micros, pc.multiply(millis, 1000)).cast(TIMESTAMP)
        ingested = pc.multiply(ts_ms, 1000).cast(TIMESTAMP)
        indexes = indexes[order]
        times = {SOURCE_TIME: at.take(pa.array(indexes)), INGESTION_TIME: ingested.take(pa.array(indexes))}
        return [MessageRows(ParsedRows(origin[indexes], rows.flatten()), pa.array(signs), times)], wrong


def _among(op: pa.Array, *letters: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    are_these: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.is_in(op, pa.array(letters)).to_numpy(
        zero_copy_only=False
    )
    return are_these


def _valid(rows: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    are_valid: np.ndarray[tuple[int], np.dtype[np.bool_]] = rows.is_valid().to_numpy(zero_copy_only=False)
    return are_valid


def plain(parts: Sequence[ParsedRows]) -> list[MessageRows]:
    """Rows of a stream."""
    return [MessageRows(part) for part in parts]
