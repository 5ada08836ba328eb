"""CREATE STREAM, TABLE and SINK: what their columns and options declare."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from transom.core.emit_modes import EMITS, Emit
from transom.core.schema import DATE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Column, Schema, sql_name, unique_names
from transom.core.time import parse_duration
from transom.cql import syntax
from transom.cql.literals import bind_duration, bind_type
from transom.cql.query_text import QueryText
from transom.plan.catalogue import ColumnsOf, SinkDefinition, StreamDefinition, TableDefinition, TimeColumn

ARRIVAL_TIME: Final = "arrival_time"
"""The time column of a stream that is stamped when its rows arrive."""

Late = OneOf["drop", "dead_letter", "fail"]

_OWN: Final = frozenset({"late", "idle", "heartbeat", "ahead", "time", "bound", "rate", "changes"})
"""What WITH says of an input rather than of where it comes from."""

_CHANGE_FORMATS: Final = ("upsert-json", "debezium-json")


@dataclass
class _Settings:
    """The options of WITH: taken one by one, what is left belongs to the connector."""

    source: QueryText
    left: dict[str, syntax.Setting]
    metadata: dict[str, str] = field(default_factory=dict)
    """What the connector is to fill columns with, as properties."""

    def take(self, key: str, read: Callable[[str], Any], expects: str) -> Any:
        """The value of an option, or None when it is not there."""
        setting = self.left.pop(key, None)
        if setting is None:
            return None
        text = setting.args["value"].name
        value = read(text)
        if value is None:
            raise self.source.option_error(f"'{key}' cannot be '{text}'", setting.args["value"], f"write {expects}")
        return value

    def one_of(self, key: str, *words: str) -> Any:
        expects = " or ".join(f"{key} = '{word}'" for word in words)
        return self.take(key, lambda text: text.lower() if text.lower() in words else None, expects)

    def span_at(self, key: str) -> exp.Expr:
        value: exp.Expr = self.left[key].args["value"]
        return value

    @property
    def properties(self) -> dict[str, str]:
        return {key: setting.args["value"].name for key, setting in self.left.items()} | self.metadata


def _settings(node: exp.Expr, source: QueryText) -> _Settings:
    settings: dict[str, syntax.Setting] = {}
    for setting in node.args.get("settings") or ():
        key = setting.this.name.lower()
        if key in settings:
            raise source.option_error(f"'{key}' is there twice", setting.this, "leave one of them out")
        settings[key] = setting
    if "path" in settings and "connector" not in settings:
        settings["connector"] = files = settings["path"].copy()
        files.args["value"].set("this", "files")
    return _Settings(source, settings)


@dataclass(frozen=True)
class _Columns:
    """The columns, declared or those `of_files`, and what else stands between them."""

    schema: Schema
    invisible: frozenset[str]
    time: TimeColumn | None
    key: tuple[str, ...]
    key_node: exp.Expr | None
    of_files: bool
    not_null: tuple[str, ...]


def bind_input(
    node: syntax.CreateInput, source: QueryText, columns_of: ColumnsOf | None = None
) -> StreamDefinition | TableDefinition:
    settings = _settings(node, source)
    columns = _columns(node, settings, columns_of)
    late = cast("Late | None", settings.one_of("late", "drop", "dead_letter", "fail"))
    by_clock = _ByClock(
        settings.take("idle", _read_duration, "a duration such as idle = '30 SECONDS'"),
        settings.take("heartbeat", _read_duration, "a duration such as heartbeat = '1 SECOND'"),
        settings.take("ahead", _read_duration, "a duration such as ahead = '1 DAY'"),
    )
    if node.args["kind"] == "STREAM":
        return _stream(node, columns, settings, late or "drop", by_clock)
    return _table(node, columns, settings, late, by_clock)


@dataclass(frozen=True)
class _ByClock:
    """What an input has to do with the clock on the wall."""

    idle: int | None
    heartbeat: int | None
    ahead: int | None


def _read_duration(text: str) -> int | None:
    micros = parse_duration(text)
    return micros if micros and micros < 1 << 62 else None


def _stream(
    node: syntax.CreateInput, columns: _Columns, settings: _Settings, late: Late, by_clock: _ByClock
) -> StreamDefinition:
    source, name = settings.source, node.this.name
    if columns.key_node is not None:
        remedy = "leave it out, or write CREATE TABLE for rows that replace each other"
        raise source.error("a stream has no primary key", columns.key_node, remedy)
    if "changes" in settings.left:
        remedy = "leave it out, or write CREATE TABLE for rows that come and go"
        raise source.option_error("a stream has no change column", settings.span_at("changes"), remedy)
    arrival = settings.one_of("time", "arrival") is not None
    schema, time, invisible = columns.schema, columns.time, columns.invisible
    if arrival:
        if ARRIVAL_TIME in [column.name.lower() for column in schema]:
            remedy = "call the column something else"
            raise source.error(f"'{ARRIVAL_TIME}' is the name of the time of arrival", node.this, remedy)
        for said, what in ((by_clock.heartbeat, "heartbeat"), (by_clock.ahead, "ahead")):
            if said is not None:
                remedy = f"leave {what} out: its time is that of the clock"
                raise source.error(f"a stream that is stamped on arrival has no {what}", node.this, remedy)
        schema = Schema((*schema.columns, Column(ARRIVAL_TIME, TIMESTAMP)))
        time, invisible = TimeColumn(ARRIVAL_TIME, 0), invisible | {ARRIVAL_TIME}
    if time is None:
        remedy = (
            "write WATERMARK FOR ts AS ts - INTERVAL '2' SECOND among the columns, or WITH (time = 'ts'),"
            " or time = 'arrival'"
        )
        raise source.error(f"the stream '{name}' has no WATERMARK", node.this, remedy)
    rate = _rate(settings)
    return StreamDefinition(
        name, schema, time, late, by_clock.idle, arrival, invisible, settings.properties, rate, by_clock.heartbeat,
        by_clock.ahead, columns.of_files, columns.not_null,
    )  # fmt: skip


def _rate(settings: _Settings) -> float | None:
    """Rows a second; to a generator it says how fast they are to be made, and that checks it."""
    connector = settings.left.get("connector")
    if connector is not None and connector.args["value"].name.lower() == "generator":
        stated = settings.left.get("rate")
        return 1.0 if stated is None else _read_rate(stated.args["value"].name)
    rate: float | None = settings.take("rate", _read_rate, "rows a second, up to a million: rate = 20")
    return rate


def _read_rate(text: str) -> float | None:
    try:
        rate = float(text)
    except ValueError:
        return None
    return rate if 0.000_001 <= rate <= 1_000_000 else None


def _table(
    node: syntax.CreateInput, columns: _Columns, settings: _Settings, late: Late | None, by_clock: _ByClock
) -> TableDefinition:
    source, name = settings.source, node.this.name
    if "time" in settings.left:
        remedy = "declare a TIMESTAMP column and a WATERMARK"
        raise source.option_error("a table is not stamped on arrival", settings.span_at("time"), remedy)
    change_node = settings.span_at("changes") if "changes" in settings.left else None
    changes = settings.take("changes", lambda text: text or None, "the name of the column with + and -")
    if columns.time is None:
        for said, what in ((change_node, "changes"), (late, "late"), *((v, k) for k, v in vars(by_clock).items())):
            if said is not None:
                remedy = f"declare WATERMARK FOR a time column, or leave {what} out"
                raise source.error(f"the table '{name}' has no WATERMARK, so it never changes", node.this, remedy)
        return TableDefinition(
            name, columns.schema, primary_key=columns.key, invisible=columns.invisible, properties=settings.properties,
            of_files=columns.of_files, not_null=columns.not_null,
        )  # fmt: skip
    schema, change_column = columns.schema, None
    if change_node is None and _changes_by_format(settings):
        change_column = Column(unique_names([*schema.names, "change"])[-1], VARCHAR)
        schema = Schema((*schema, change_column))
    if change_node is not None:
        change_column = _named(columns.schema, changes, change_node, source)
        if change_column.type != VARCHAR:
            remedy = f"declare {change_column.name} VARCHAR; it holds '+' and '-'"
            raise source.error(f"'{change_column.name}' cannot be the change column", change_node, remedy)
        if change_column.name in (columns.time.column, *columns.key):
            raise source.error("the change column is a column of its own", change_node, "name another one")
    if change_column is None and not columns.key:
        remedy = "write WITH (changes = 'op') with the column that holds + and -, or PRIMARY KEY (column)"
        raise source.error(f"nothing says how the rows of '{name}' change", node.this, remedy)
    change_name = change_column.name if change_column is not None else None
    return TableDefinition(
        name, schema, columns.time, change_name, columns.key, late or "drop", by_clock.idle, columns.invisible,
        settings.properties, by_clock.heartbeat, by_clock.ahead, columns.of_files, columns.not_null,
    )  # fmt: skip


def _changes_by_format(settings: _Settings) -> bool:
    """Whether the format itself, or the log of a database, says which rows come and go: nobody has to declare a column
    for it."""
    if "slot.name" in settings.left:
        return True
    given = settings.left.get("format") or settings.left.get("value.format")
    return given is not None and given.args["value"].name.lower() in _CHANGE_FORMATS


def counted_twice(definition: object) -> tuple[str, ...]:
    """A note about changes that may be written again, of a table that has nothing to know them by."""
    if not isinstance(definition, TableDefinition) or definition.primary_key:
        return ()
    properties = definition.properties
    if properties.get("format", properties.get("value.format", "")).lower() not in _CHANGE_FORMATS:
        return ()
    return (
        f"changes of '{definition.name}' that are written once more after a failure count twice, since nothing names"
        " a row; declare its PRIMARY KEY",
    )


def bind_sink(node: syntax.CreateSink, source: QueryText) -> SinkDefinition:
    settings = _settings(node, source)
    emit = cast("Emit | None", settings.one_of("emit", *EMITS))
    return SinkDefinition(node.this.name, emit or "changes", settings.properties)


# --- columns ---------------------------------------------------------------------------------------------------------


def _columns(node: syntax.CreateInput, settings: _Settings, columns_of: ColumnsOf | None) -> _Columns:
    source = settings.source
    columns: list[Column] = []
    names: set[str] = set()
    invisible: set[str] = set()
    keys: list[exp.Expr] = []
    watermarks: list[syntax.Watermark] = []
    key_names: list[exp.Identifier] = []
    not_null: list[str] = []
    for part in node.args["parts"]:
        if isinstance(part, syntax.Watermark):
            watermarks.append(part)
        elif isinstance(part, syntax.KeyDeclaration):
            keys.append(part)
            key_names += part.expressions
        else:
            name = part.this.name
            if name.lower() in names:
                raise source.error(f"there are two columns '{name}'", part.this, "call one of them something else")
            names.add(name.lower())
            columns.append(Column(name, bind_type(part.args["kind"], source)))
            if part.args.get("invisible"):
                invisible.add(name)
            if part.args.get("not_null"):
                not_null.append(name)
            if part.args.get("metadata"):
                settings.metadata[f"metadata.{name.lower()}"] = part.args["metadata"]
            if part.args.get("primary"):
                keys.append(part)
                key_names.append(part.this)
    if len(keys) > 1:
        raise source.error("there are two primary keys", keys[1], "write PRIMARY KEY (a, b) once")
    if len(watermarks) > 1:
        raise source.error("there are two watermarks", watermarks[1], "a stream or table has one time column")
    of_files = not columns
    schema = _of_files(node, settings, columns_of) if of_files else Schema(tuple(columns))
    key = tuple(dict.fromkeys(_named(schema, name.name, name, source).name for name in key_names))
    said = settings.left.get("time")
    if said is not None and watermarks:
        remedy = "leave WATERMARK out, or leave time out"
        raise source.error("a stream is either stamped on arrival or has a WATERMARK", said, remedy)
    if watermarks:
        schema, time = _watermark(schema, watermarks[0], settings, of_files)
    elif said is not None and said.args["value"].name.lower() != "arrival":
        schema, time = _time(schema, settings, of_files)
    else:
        time = None
    return _Columns(schema, frozenset(invisible), time, key, keys[0] if keys else None, of_files, tuple(not_null))


def _of_files(node: syntax.CreateInput, settings: _Settings, columns_of: ColumnsOf | None) -> Schema:
    """The columns of the files, where the text declares none."""
    source, connector = settings.source, settings.left.get("connector")
    if connector is None or connector.args["value"].name.lower() != "files" or columns_of is None:
        remedy = "declare them: name TYPE, ..; columns are taken from files alone: WITH (path = 'rows.csv')"
        raise source.error(f"'{node.this.name}' has no columns", node.this, remedy)
    properties = {name: text for name, text in settings.properties.items() if name not in _OWN}
    with source.at(node.this):
        return columns_of(node.this.name, properties)


def _time(schema: Schema, settings: _Settings, of_files: bool) -> tuple[Schema, TimeColumn]:
    """WITH (time = 'ts', bound = '2 SECONDS')."""
    node = settings.span_at("time")
    bound = settings.take("bound", _read_bound, "a duration such as bound = '2 SECONDS'")
    schema, column = _instants(schema, _named(schema, node.name, node, settings.source), node, settings, of_files)
    del settings.left["time"]
    return schema, TimeColumn(column.name, bound or 0)


def _read_bound(text: str) -> int | None:
    micros = parse_duration(text)
    return micros if micros is not None and micros < 1 << 62 else None


def _instants(
    schema: Schema, column: Column, node: exp.Expr, settings: _Settings, of_files: bool
) -> tuple[Schema, Column]:
    """The columns with the time among them as one: of what files have, also days, and numbers that count a unit."""
    counted = "time_unit" in settings.left and pa.types.is_integer(column.type)
    if of_files and (column.type == DATE or counted):
        instants = Column(column.name, TIMESTAMP)
        schema = Schema(tuple(instants if each is column else each for each in schema))
        column = instants
    if column.type not in (TIMESTAMP, TIMESTAMPTZ):
        what = f"the time column '{column.name}' is a {sql_name(column.type)}"
        unit = ", or say what it counts since 1970: time_unit = 's'" if pa.types.is_integer(column.type) else ""
        raise settings.source.error(what, node, f"declare {column.name} TIMESTAMP{unit if of_files else ''}")
    return schema, column


def _watermark(
    schema: Schema, node: syntax.Watermark, settings: _Settings, of_files: bool
) -> tuple[Schema, TimeColumn]:
    source = settings.source
    column = _named(schema, node.this.name, node.this, source)
    if node.args["source"].name.lower() != column.name.lower():
        remedy = f"write WATERMARK FOR {column.name} AS {column.name} - INTERVAL '2' SECOND"
        raise source.error("a watermark is taken from its own column", node.args["source"], remedy)
    schema, column = _instants(schema, column, node.this, settings, of_files)
    bound = node.args.get("bound")
    micros = bind_duration(bound, source) if bound is not None else 0
    if bound is not None and micros >= 1 << 62:
        raise source.error("the watermark stays too far behind", bound, "write a shorter interval")
    return schema, TimeColumn(column.name, micros)


def _named(schema: Schema, name: str, node: exp.Expr, source: QueryText) -> Column:
    for column in schema:
        if column.name.lower() == name.lower():
            return column
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in schema.names], n=3, cutoff=0.5)
    choices = [n for n in schema.names if n.lower() in close] or schema.names[:8]
    raise source.error(f"there is no column '{name}'", node, f"did you mean {' or '.join(choices)}?")
