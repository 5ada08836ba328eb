"""A topic of Kafka as a source: its position is the next offset of each partition, a split is a range of offsets.

| property | meaning |
| --- | --- |
| topic | its name |
| properties.bootstrap.servers | the brokers; other `properties.` go to Kafka's client library as they are |
| format, value.format | `json`, `csv`, `arrow`, or a format of changes: `upsert-json`, `debezium-json` |
| key.format, key.fields | `raw` or `json`: these columns are in the key of a message (and not in its value) |
| scan.startup.mode | `earliest-offset` (the default), `latest-offset`, `timestamp`, `specific-offsets` |
| scan.startup.timestamp-millis | milliseconds since 1970: messages from then on |
| scan.startup.specific-offsets | `partition:0,offset:42;partition:1,offset:300` |
| scan.topic-partition-discovery.interval | how often new partitions are looked for, by default `10 SECONDS` |
| delimiter, null, time_unit | as of files |
| metadata.COLUMN | what fills a column: `COLUMN type METADATA FROM 'offset'` writes it |

The end of a partition is its last stable offset: what a transaction has written that is still open is not there yet.
Partitions are written side by side, so each has a watermark of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.connectors.conform import DeclaredRows, ParsedRows, column_index, conform, fold
from transom.connectors.connector import Declaration, Limits, Plan, Source, Split, SplitRows
from transom.connectors.kafka_client import Topic, read_client_properties
from transom.connectors.kafka_messages import BESIDE, MessageBlock
from transom.connectors.kafka_reader import reader_of, shrunken
from transom.connectors.lines import BLOCK_BYTES
from transom.connectors.message_changes import FORMATS as CHANGE_FORMATS
from transom.connectors.message_changes import SOURCE_TIME, TIMES, DebeziumJson, MessageRows, UpsertJson, plain
from transom.connectors.message_values import ArrowValues, CsvValues, JsonValues, ValueFormat, Values
from transom.connectors.properties import read_delimiter, read_null, read_time_unit
from transom.connectors.source import Growing, Position, Rejected
from transom.core.errors import OptionError, SourceError
from transom.core.schema import BIGINT, INTEGER, TIMESTAMP, VARCHAR, Schema, sql_name
from transom.core.time import SECOND, parse_duration

FORMATS: Final = ("json", "csv", "arrow", *CHANGE_FORMATS)
KEY_FORMATS: Final = ("raw", "json")
METADATA: Final = "metadata."
_BLOCK: Final = 1 << 15
"""So many messages are parsed at a time."""

_OFFSETS: Final = re.compile(r"\s*partition:(\d+)\s*,\s*offset:(\d+)\s*")
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES: Final = {
    "topic": VARCHAR,
    "partition": INTEGER,
    "offset": BIGINT,
    "timestamp": TIMESTAMP,
    "headers": _HEADERS,
    **dict.fromkeys(TIMES, TIMESTAMP),
}
"""What is known of a message beside its key and its value, by its name in Flink."""

_KNOWN: Final = (
    *("format", "value.format", "key.format", "key.fields", "value.fields-include", "delimiter", "null", "time_unit"),
    *("scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets"),
    *(
        "scan.topic-partition-discovery.interval",
        "json.fail-on-missing-field",
        "json.fail-on-unknown-field",
        "debezium-json.schema-include",
    ),
)
_MODES: Final = ("earliest-offset", "latest-offset", "timestamp", "specific-offsets")


class KafkaSource(Source):
    distributed = True

    def __init__(self, declared: Declaration) -> None:
        properties = declared.properties
        self._topic_name, self._client = read_client_properties(
            properties, _KNOWN, "a source of connector 'kafka'", (METADATA,)
        )
        self._columns = declared.columns
        self._declared = _declared_rows(declared)
        self._metadata = _read_metadata(declared)
        self._keys = _read_keys(declared, self._metadata)
        self._stamped = None if declared.stamped is None else column_index(declared.columns, declared.stamped)
        self._change = None if declared.change is None else column_index(declared.columns, declared.change)
        self._format = self._value_format(declared)
        beside = {what for what in self._metadata.values() if what in BESIDE}
        self._wanted = frozenset(beside | ({"key"} if self._keys is not None else set()))
        self._start = _Start(properties)
        self._look_every = _interval(properties)
        self._topic = Topic(self._topic_name, self._client)
        self._begun: dict[int, int] | None = None
        self._partitions: tuple[float, list[int]] | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._columns.arrow()

    # --- how far -----------------------------------------------------------------------------------------------------

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """Partitions share a batch by what is left of them, so that all come to their ends, and to a time, together."""
        from confluent_kafka.admin import OffsetSpec

        at = self._begin(position)
        ends = self._topic.offsets(at, OffsetSpec.latest())
        left = {partition: ends[partition] - offset for partition, offset in at.items()}
        for partition, count in left.items():
            if count < 0 and at[partition] > 0:
                raise shrunken(self._topic_name, partition, at[partition], ends[partition])
        total = sum(left.values())
        splits, after = [], dict(at)
        for partition, count in left.items():
            if limits.rows is not None and total > limits.rows:
                count = min(count, max(1, limits.rows * count // total))
            if count:
                splits.append(Split(str(partition), at[partition], count, divisible=True))
                after[partition] += count
        live = {str(partition): after[partition] >= ends[partition] for partition in at}
        written = {str(partition): offset for partition, offset in after.items()}
        return Plan(written, tuple(splits), all(live.values()), live=live)

    def _begin(self, position: Position) -> dict[int, int]:
        """The next offset of each partition. Those that have come since then are read from their beginning."""
        from confluent_kafka.admin import OffsetSpec

        next_of = {int(partition): int(offset) for partition, offset in position.items()}
        self._topic.begins = not next_of
        if not next_of:
            if self._begun is None:  # once for a run: what comes while nobody reads is not before the latest
                self._begun = self._start.offsets(self._topic, self._find_partitions())
            next_of = self._begun
        new = [partition for partition in self._find_partitions() if partition not in next_of]
        merged = next_of if not new else {**next_of, **self._topic.offsets(new, OffsetSpec.earliest())}
        return dict(sorted(merged.items()))

    def _find_partitions(self) -> list[int]:
        if self._partitions is None or time.monotonic() > self._partitions[0]:
            self._partitions = time.monotonic() + self._look_every, self._topic.partitions()
        return self._partitions[1]

    # --- rows --------------------------------------------------------------------------------------------------------

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        partition, start, stop = int(split.partition), int(split.at), int(split.at) + split.rows
        with reader_of(self._topic_name, partition, self._client, start) as reader:
            block = MessageBlock(self._wanted)
            for messages in reader.read(start, stop):
                block.add(messages)
                if len(block) >= _BLOCK or block.bytes >= BLOCK_BYTES:
                    yield self._rows(block, partition)
                    block = MessageBlock(self._wanted)
            if len(block):
                yield self._rows(block, partition)

    def _rows(self, block: MessageBlock, partition: int) -> SplitRows:
        values = block.values
        parts, wrong = self._parsed(values)
        if self._keys is not None:
            parts, more = self._keys.added(parts, block.keys)
            wrong = more | wrong
        whole = [self._with_metadata(part, block, partition) for part in parts]
        rows, unfit = conform(whole, self._declared, f"topic {self._topic_name}")
        reasons = {row: f"the message {why}" for row, why in wrong.items()} | unfit
        offsets = block.offsets if reasons else []
        rejected = [
            Rejected(
                f"topic {self._topic_name}, partition {partition}, offset {offsets[row]}",
                reasons[row],
                (values[row] or b"").decode("utf-8", "backslashreplace"),
            )
            for row in sorted(reasons)
        ]
        return SplitRows(rows, rejected)

    def _parsed(self, values: Values) -> tuple[list[MessageRows], dict[int, str]]:
        if isinstance(self._format, UpsertJson | DebeziumJson):
            return self._format.parsed(values)
        parts, wrong = self._format.parsed(values)
        return plain(parts), wrong

    def _with_metadata(self, message_rows: MessageRows, block: MessageBlock, partition: int) -> ParsedRows:
        """All declared columns, of the value, the key and what else is known of a message."""
        part = message_rows.rows
        of_value, of_key = iter(part.columns), iter(())
        if self._keys is not None:
            count = len(self._keys.columns)
            of_value, of_key = iter(part.columns[: len(part.columns) - count]), iter(part.columns[-count:])
        columns: list[pa.Array] = []
        for at, column in enumerate(self._columns):
            if at == self._stamped:
                columns.append(pa.nulls(len(part.origin), column.type))
            elif at == self._change:
                columns.append(message_rows.signs)
            elif at in self._metadata and self._metadata[at] in TIMES:
                columns.append(message_rows.times[self._metadata[at]])
            elif at in self._metadata:
                everyone = _metadata(self._metadata[at], block, self._topic_name, partition)
                same = np.array_equal(part.origin, np.arange(len(block)))
                columns.append(everyone if same else everyone.take(pa.array(part.origin)))
            elif self._keys is not None and at in self._keys.columns:
                columns.append(next(of_key))
            else:
                columns.append(next(of_value))
        return ParsedRows(part.origin, columns)

    def _value_format(self, declared_input: Declaration) -> ValueFormat | UpsertJson | DebeziumJson:
        properties = declared_input.properties
        given = properties.get("format", properties.get("value.format"))
        if given is None or given.lower() not in FORMATS:
            what = "the messages of a topic have a format" if given is None else f"there is no message format '{given}'"
            remedy = f"write format = 'json'; formats are {', '.join(FORMATS)}"
            if given is not None and given.lower().startswith("avro"):
                remedy = "have the topic written as json or arrow, or register a connector that decodes Avro"
            raise OptionError(what, remedy=remedy)
        elsewhere = {*self._metadata, *(() if self._keys is None else self._keys.columns), self._stamped}
        if given.lower() in CHANGE_FORMATS:
            _check_changes(declared_input, given.lower(), self._declared.time_column, self._metadata)
            elsewhere.add(self._change)
        elif clash := [key for key in self._metadata.values() if key in TIMES]:
            raise OptionError(f"a message of format '{given}' has no '{clash[0]}'", remedy="write FROM 'timestamp'")
        of_value = Schema(tuple(column for at, column in enumerate(self._columns) if at not in elsewhere))
        declared = DeclaredRows(of_value, None, self._declared.time_unit)
        if given.lower() == "upsert-json":
            return UpsertJson(declared)
        if given.lower() == "debezium-json":
            wrapped = _is_true(properties, "debezium-json.schema-include")
            return DebeziumJson(declared, bool(declared_input.primary_key), wrapped, f"topic {self._topic_name}")
        if given.lower() == "csv":
            delimiter = read_delimiter(properties.get("delimiter")) or ","
            return CsvValues(declared, delimiter, read_null(properties.get("null", ""), properties.get("delimiter")))
        if given.lower() == "arrow":
            return ArrowValues(declared, self._topic_name)
        complete, closed = (_is_true(properties, f"json.fail-on-{what}-field") for what in ("missing", "unknown"))
        return JsonValues(declared, complete, closed)


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").lower()
    if text not in ("true", "false"):
        raise OptionError(f"'{name}' cannot be '{text}'", remedy="write 'true' or 'false'")
    return text == "true"


def _declared_rows(declared: Declaration) -> DeclaredRows:
    at = None if declared.time_column is None else column_index(declared.columns, declared.time_column)
    return DeclaredRows(declared.columns, at, read_time_unit(declared.properties))


# --- beside the value ------------------------------------------------------------------------------------------------


class _KeyColumns:
    """Columns that are in the key of a message: `columns` are their indexes among the declared ones."""

    def __init__(self, columns: Schema, indexes: Sequence[int], given: str, declared: DeclaredRows) -> None:
        self.columns = tuple(indexes)
        self._raw = given == "raw"
        self._format = JsonValues(DeclaredRows(Schema(tuple(columns[at] for at in indexes)), None, declared.time_unit))

    def added(
        self, parts: Sequence[MessageRows], keys: Sequence[bytes | None]
    ) -> tuple[list[MessageRows], dict[int, str]]:
        """The parts with the columns of the keys behind the others, without rows whose key cannot be read."""
        if self._raw:
            parsed = [ParsedRows(np.arange(len(keys)), [pa.array(keys, pa.binary())])]
            wrong: dict[int, str] = {}
        else:
            parsed, wrong = self._format.parsed(keys)
        if not parsed:
            return [], {row: f"has a key that {why}" for row, why in wrong.items()}
        origin = np.concatenate([part.origin for part in parsed])
        columns = [pa.concat_arrays(some) for some in zip(*_castable(parsed), strict=True)]
        row_of = np.full(len(keys), -1, dtype=np.int64)
        row_of[origin] = np.arange(len(origin))
        with_keys = []
        for each in parts:
            part, there = each.rows, row_of[each.rows.origin]
            good = np.flatnonzero(there >= 0)
            of_value, signs, times = part.columns, each.signs, each.times
            if len(good) < len(there):
                chosen = pa.array(good)
                of_value = [values.take(chosen) for values in of_value]
                signs = None if signs is None else signs.take(chosen)
                times = {name: values.take(chosen) for name, values in times.items()}
            of_key = [values.take(pa.array(there[good])) for values in columns]
            with_keys.append(MessageRows(ParsedRows(part.origin[good], [*of_value, *of_key]), signs, times))
        return with_keys, {row: f"has a key that {why}" for row, why in wrong.items()}


def _castable(parts: Sequence[ParsedRows]) -> list[Sequence[pa.Array]]:
    """Columns of the same types: as text where a few were read one by one."""
    if len(parts) == 1:
        return [parts[0].columns]
    return [[values.cast(VARCHAR) for values in part.columns] for part in parts]


def _read_keys(declared: Declaration, metadata: Mapping[int, str]) -> _KeyColumns | None:
    properties, fields = declared.properties, declared.properties.get("key.fields")
    if fields is None and properties.get("format", properties.get("value.format", "")).lower() == "upsert-json":
        fields, properties = ";".join(declared.primary_key), {"key.format": "json", **properties}
    if fields is None:
        if "key.format" in properties:
            raise OptionError("'key.format' is there without 'key.fields'", remedy="write 'key.fields' = 'id'")
        return None
    given = properties.get("key.format", "raw").lower()
    if given not in KEY_FORMATS:
        raise OptionError(f"there is no key format '{given}'", remedy=f"formats are {', '.join(KEY_FORMATS)}")
    if properties.get("value.fields-include", "EXCEPT_KEY").upper() != "EXCEPT_KEY":
        raise OptionError(
            "a column is in the key or in the value of a message, not in both",
            remedy="write 'value.fields-include' = 'EXCEPT_KEY', or leave 'key.fields' out to have them of the value",
        )
    names = [name.strip() for name in fields.split(";") if name.strip()]
    indexes = sorted(_index_of(declared.columns, name, "key.fields") for name in names)
    if given == "raw" and len(indexes) != 1:
        raise OptionError("a raw key is one column", remedy="write 'key.format' = 'json' for several")
    if clash := [declared.columns[at].name for at in indexes if at in metadata]:
        raise OptionError(f"column '{clash[0]}' is of the key and METADATA", remedy="leave one of them out")
    return _KeyColumns(declared.columns, indexes, given, _declared_rows(declared))


def _read_metadata(declared: Declaration) -> dict[int, str]:
    metadata: dict[int, str] = {}
    for name, what in declared.properties.items():
        if name.startswith(METADATA):
            at, key = _index_of(declared.columns, name.removeprefix(METADATA), name), what.lower()
            if key not in _TYPES:
                raise OptionError(
                    f"a message of Kafka has no metadata '{what}'", remedy=f"there is {', '.join(sorted(_TYPES))}"
                )
            given = declared.columns[at].type
            if key in ("timestamp", "topic", *TIMES) and given != _TYPES[key]:
                raise OptionError(
                    f"the column '{declared.columns[at].name}' METADATA FROM '{key}' is a {sql_name(given)}",
                    remedy=f"declare it {sql_name(_TYPES[key])}",
                )
            metadata[at] = key
    return metadata


def _check_changes(declared: Declaration, given: str, time: int | None, metadata: Mapping[int, str]) -> None:
    """What a table by changes needs: to be a table, a time that goes on with deletes, and of upserts a key."""
    if declared.change is None:
        raise OptionError(
            f"messages of format '{given}' change the rows of a table",
            remedy="write CREATE TABLE with a WATERMARK, and a PRIMARY KEY if its rows have one",
        )
    if time not in metadata:
        time_of_change = "'timestamp'" if given == "upsert-json" else f"'{SOURCE_TIME}'"
        raise OptionError(
            f"the time of a change is not among the values of '{given}': a row that goes has those it had before",
            remedy=f"declare the time column as ts TIMESTAMP METADATA FROM {time_of_change}",
        )
    if given == "upsert-json" and not declared.primary_key:
        raise OptionError("upsert-json needs a key", remedy="write PRIMARY KEY (id) among the columns")


def _metadata(key: str, block: MessageBlock, topic: str, partition: int) -> pa.Array:
    if key == "topic":
        return pa.repeat(pa.scalar(topic), len(block))
    if key == "partition":
        return pa.repeat(pa.scalar(partition, pa.int32()), len(block))
    if key == "offset":
        return pa.array(block.offsets, pa.int64())
    if key == "timestamp":
        millis = [millis if kind else None for kind, millis in block.stamps]
        return pa.array(millis, pa.timestamp("ms")).cast(TIMESTAMP)
    return pa.array([_header_list(headers) for headers in block.headers], _HEADERS)


def _header_list(headers: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in headers or ()]


def _index_of(columns: Schema, name: str, owner: str) -> int:
    indexes = [at for at, column in enumerate(columns) if fold(column.name) == fold(name)]
    if not indexes:
        raise OptionError(f"'{owner}' names '{name}', which is no column", remedy=f"{', '.join(columns.names)} are")
    return indexes[0]


# --- where it begins -------------------------------------------------------------------------------------------------


class _Start:
    """Where a topic is read from by a query that has not read of it before."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._mode = properties.get("scan.startup.mode", "earliest-offset").lower()
        if self._mode not in _MODES:
            raise OptionError(
                f"a topic cannot be read from '{self._mode}' on", remedy=f"'scan.startup.mode' is {', '.join(_MODES)}"
            )
        self._millis = self._offsets = None
        of = {"timestamp": "scan.startup.timestamp-millis", "specific-offsets": "scan.startup.specific-offsets"}
        for mode, name in of.items():
            if (name in properties) != (self._mode == mode):
                raise OptionError(
                    f"'{name}' and 'scan.startup.mode' = '{mode}' belong together", remedy="write both, or neither"
                )
        if self._mode == "timestamp":
            text = properties["scan.startup.timestamp-millis"]
            if not text.isdigit():
                raise OptionError(f"'{text}' counts no milliseconds since 1970", remedy="write a whole number")
            self._millis = int(text)
        if self._mode == "specific-offsets":
            self._offsets = _specific_offsets(properties["scan.startup.specific-offsets"])

    def offsets(self, topic: Topic, partitions: Sequence[int]) -> dict[int, int]:
        from confluent_kafka.admin import OffsetSpec

        if self._offsets is not None:
            unknown = [str(partition) for partition in self._offsets if partition not in partitions]
            if unknown:
                raise SourceError(
                    f"topic '{topic.name}' has no partition {', '.join(unknown)}",
                    remedy=f"it has {len(partitions)}; correct 'scan.startup.specific-offsets'",
                )
            others = [partition for partition in partitions if partition not in self._offsets]
            return {**topic.offsets(others, OffsetSpec.earliest()), **self._offsets}
        if self._mode == "latest-offset":
            return topic.offsets(partitions, OffsetSpec.latest())
        if self._millis is None:
            return topic.offsets(partitions, OffsetSpec.earliest())
        offset_of = topic.offsets(partitions, OffsetSpec.for_timestamp(self._millis))
        none = [partition for partition, offset in offset_of.items() if offset < 0]  # no message is so young
        return offset_of | topic.offsets(none, OffsetSpec.latest())


def _specific_offsets(text: str) -> dict[int, int]:
    matches = [_OFFSETS.fullmatch(part) for part in text.split(";") if part.strip()]
    if not matches or None in matches:
        raise OptionError(f"'{text}' names no offsets", remedy="write 'partition:0,offset:42;partition:1,offset:300'")
    return {int(match[1]): int(match[2]) for match in matches if match is not None}


def _interval(properties: Mapping[str, str]) -> float:
    text = properties.get("scan.topic-partition-discovery.interval", "10 SECONDS")
    micros = parse_duration(text)
    if not micros:
        raise OptionError(f"'{text}' is no interval", remedy="write '10 SECONDS'")
    return micros / SECOND
