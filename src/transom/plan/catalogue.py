"""The names a session knows: streams, tables, views, sinks, options; and the statements that a text consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as OneOf

from transom.core.emit_modes import Emit
from transom.core.errors import Span
from transom.core.location import Within
from transom.core.schema import Schema
from transom.plan.algebra import Node, Relation, SortKey
from transom.plan.python_function import PythonFunction


@dataclass(frozen=True)
class TimeColumn:
    """WATERMARK FOR `column` AS column - `bound`."""

    column: str
    bound: int


@dataclass(frozen=True)
class StreamDefinition:
    """CREATE STREAM. `columns` are all declared ones; those in `invisible` are left out of `*`.

    `properties` are the WITH options that the connector reads (connector, path, format, ..), keys in lower case. On
    `rate`, rows a second, nothing depends but the choice of a plan. With a `heartbeat` the clock moves its watermark
    while there is nothing to read; rows that are further `ahead` of the clock are rejected. Columns that nobody
    declared are those `of_files`. A row without a value in a column that is `not_null` is rejected.
    """

    name: str
    columns: Schema
    time: TimeColumn
    late: OneOf["drop", "dead_letter", "fail"] = "drop"
    idle: int | None = None
    arrival_time: bool = False
    invisible: frozenset[str] = frozenset()
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    rate: float | None = None
    heartbeat: int | None = None
    ahead: int | None = None
    of_files: bool = False
    not_null: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableDefinition:
    """CREATE TABLE. Static without `time`; otherwise changing, by `change_column` (+ / -) or upsert on `primary_key`.

    The change column is not among the columns of the relation, though it is among `columns` here.
    """

    name: str
    columns: Schema
    time: TimeColumn | None = None
    change_column: str | None = None
    primary_key: tuple[str, ...] = ()
    late: OneOf["drop", "dead_letter", "fail"] = "drop"
    idle: int | None = None
    invisible: frozenset[str] = frozenset()
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    heartbeat: int | None = None
    ahead: int | None = None
    of_files: bool = False
    not_null: tuple[str, ...] = ()

    @property
    def relation_columns(self) -> Schema:
        return Schema(tuple(c for c in self.columns if c.name != self.change_column))


@dataclass(frozen=True)
class ViewDefinition:
    """CREATE VIEW. The query is bound when the view is made; a view over a stream operator is a stream."""

    name: str
    query: Node


@dataclass(frozen=True)
class SinkDefinition:
    name: str
    emit: Emit = "changes"
    properties: dict[str, str] = field(default_factory=dict, hash=False)


ColumnsOf = Callable[[str, dict[str, str]], Schema]
"""Looks at the files of a stream or table, by its name and its properties, for columns that nobody declares."""


@dataclass
class Catalogue:
    """Names are case-insensitive; the dictionaries are keyed by the name in lower case.

    No path leads outside of `within`; no statement changes it. Without `columns_of` all columns must be declared.
    """

    relations: dict[str, StreamDefinition | TableDefinition | ViewDefinition] = field(default_factory=dict)
    sinks: dict[str, SinkDefinition] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    within: Within | None = None
    columns_of: ColumnsOf | None = None
    functions: dict[str, PythonFunction] = field(default_factory=dict)


# --- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """`notes` say what was read and changes nothing, in a line each for whoever is about to run it."""

    text: str
    span: Span
    notes: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class CreateStatement(Statement):
    """The definition is in the catalogue already when the statement is returned."""

    definition: StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition


@dataclass(frozen=True)
class KeptStatement(Statement):
    """CREATE IF NOT EXISTS of something that is there: nothing changes."""

    definition: StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition


@dataclass(frozen=True)
class DropStatement(Statement):
    """What the catalogue has lost; None where it had nothing of the name."""

    definition: StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition | None


@dataclass(frozen=True)
class ShowStatement(Statement):
    """SHOW FUNCTIONS and the like; with a name, the columns of what it names."""

    what: str
    name: str | None = None


@dataclass(frozen=True)
class InsertStatement(Statement):
    """INSERT INTO sink query: a standing query."""

    sink: str
    query: Node


@dataclass(frozen=True)
class QueryStatement(Statement):
    """A bare query: a standing query whose result goes to the caller, who sees snapshots in that `order`.

    With a `limit` he looks at so many rows, and then the run ends.
    """

    query: Node
    order: tuple[SortKey, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class ExplainStatement(Statement):
    query: Node
    analyze: bool = False
    json: bool = False


@dataclass(frozen=True)
class SetStatement(Statement):
    """SET option = value; the option is in the catalogue already when the statement is returned."""

    option: str
    value: Any


__all__ = [
    "Catalogue",
    "CreateStatement",
    "DropStatement",
    "ExplainStatement",
    "InsertStatement",
    "KeptStatement",
    "QueryStatement",
    "Relation",
    "SetStatement",
    "ShowStatement",
    "SinkDefinition",
    "Statement",
    "StreamDefinition",
    "TableDefinition",
    "TimeColumn",
    "ViewDefinition",
]
