"""What SHOW and DESCRIBE answer, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from transom.core.schema import VARCHAR, Schema, sql_name
from transom.core.time import format_duration
from transom.plan.catalogue import (
    Catalogue,
    ShowStatement,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
    ViewDefinition,
)
from transom.plan.functions import FUNCTIONS
from transom.plan.no_from import ONE_ROW
from transom.plan.options import OPTIONS

Rows = Sequence[tuple[str, ...]]


def shown(statement: ShowStatement, catalogue: Catalogue) -> pa.Table:
    """The answer of a statement, all of it texts.

    >>> from transom.core.errors import Span
    >>> shown(ShowStatement("", Span(1, 1, 1), "FUNCTIONS"), Catalogue()).column_names
    ['function', 'written', 'gives']
    """
    if statement.name is not None:
        return _described(statement.name, catalogue)
    relations = [relation for relation in catalogue.relations.values() if relation.name.lower() != ONE_ROW]
    match statement.what:
        case "STREAMS":
            streams = [relation for relation in relations if isinstance(relation, StreamDefinition)]
            return _table(("stream", "columns", "time"), [(s.name, _columns(s), _time(s)) for s in streams])
        case "TABLES":
            tables = [relation for relation in relations if isinstance(relation, TableDefinition)]
            return _table(("table", "columns", "changes"), [(t.name, _columns(t), _changes(t)) for t in tables])
        case "VIEWS":
            views = [relation for relation in relations if isinstance(relation, ViewDefinition)]
            return _table(("view", "columns"), [(view.name, _written(view.query.schema)) for view in views])
        case "SINKS":
            return _table(("sink", "emit"), [(sink.name, sink.emit) for sink in catalogue.sinks.values()])
        case "OPTIONS":
            options = [(name, str(catalogue.options.get(name, o.default)), o.purpose) for name, o in OPTIONS.items()]
            return _table(("option", "value", "purpose"), options)
        case _:
            named = [(name, f.usage, f.gives) for f in FUNCTIONS for name in (f.name, *f.aliases) if name[0].isalpha()]
            own = [(f.name, f.usage, f"{sql_name(f.returns)}, in Python") for f in catalogue.functions.values()]
            return _table(("function", "written", "gives"), sorted(named + own))


def _described(name: str, catalogue: Catalogue) -> pa.Table:
    definition = catalogue.relations.get(name) or catalogue.sinks[name]
    if isinstance(definition, SinkDefinition):
        rows = [("emit", definition.emit), *definition.properties.items()]
        return _table(("property", "value"), rows)
    schema = definition.query.schema if isinstance(definition, ViewDefinition) else definition.columns
    noted = [[] if isinstance(definition, ViewDefinition) else _notes(column.name, definition) for column in schema]
    columns = zip(schema, noted, strict=True)
    return _table(("column", "type", "note"), [(c.name, sql_name(c.type), ", ".join(notes)) for c, notes in columns])


def _notes(column: str, definition: StreamDefinition | TableDefinition) -> list[str]:
    notes = ["invisible"] if column in definition.invisible else []
    if definition.time is not None and definition.time.column == column:
        notes.append(f"time, watermark {_time(definition)}")
    notes += ["not null"] if column in definition.not_null else []
    if isinstance(definition, TableDefinition):
        notes += ["primary key"] if column in definition.primary_key else []
        notes += ["changes"] if column == definition.change_column else []
    return notes


def _time(definition: StreamDefinition | TableDefinition) -> str:
    assert definition.time is not None
    bound = f" - {format_duration(definition.time.bound)}" if definition.time.bound else ""
    return f"{definition.time.column}{bound}"


def _changes(table: TableDefinition) -> str:
    return "never" if table.time is None else f"by {table.change_column or ', '.join(table.primary_key)}"


def _columns(definition: StreamDefinition | TableDefinition) -> str:
    return _written(definition.columns, definition.invisible)


def _written(columns: Schema, invisible: frozenset[str] = frozenset()) -> str:
    return ", ".join(f"{column.name} {sql_name(column.type)}" for column in columns if column.name not in invisible)


def _table(names: Sequence[str], rows: Rows) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], VARCHAR) for i in range(len(names))]
    return pa.table(columns, names=list(names))
