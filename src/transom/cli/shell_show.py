"""What SHOW shows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from transom.cli.shell_queries import ShellQuery
from transom.cli.shell_text import SHOWN
from transom.cli.summary import instant_text
from transom.core.errors import QueryError, Span
from transom.core.schema import Schema, sql_name
from transom.core.text import visible
from transom.core.time import format_duration
from transom.plan.catalogue import Catalogue, ShowStatement, StreamDefinition, TableDefinition, ViewDefinition
from transom.plan.no_from import ONE_ROW
from transom.plan.options import OPTIONS
from transom.program.shown import shown

Row = tuple[str, ...]

_LONGEST_STATEMENT: Final = 60


def show(what: str, catalogue: Catalogue, queries: Sequence[ShellQuery]) -> str:
    """The lines of SHOW `what`."""
    shown: dict[str, Callable[[], list[Row]]] = {
        "STREAMS": lambda: _streams(catalogue),
        "TABLES": lambda: _tables(catalogue),
        "VIEWS": lambda: _views(catalogue),
        "SINKS": lambda: _sinks(catalogue),
        "QUERIES": lambda: _queries(queries),
        "FUNCTIONS": _functions,
        "OPTIONS": lambda: _options(catalogue),
    }
    word = what.upper()
    if word not in shown:
        close = difflib.get_close_matches(word, SHOWN, n=1)
        raise QueryError(
            f"SHOW cannot show '{what}'" if what else "SHOW does not say what to show",
            remedy=f"write SHOW {close[0]}" if close else f"write SHOW and one of {', '.join(SHOWN)}",
        )
    rows = shown[word]()
    return _aligned(rows) if len(rows) > 1 else f"there are no {word.lower()}"


def _streams(catalogue: Catalogue) -> list[Row]:
    rows: list[Row] = [("stream", "columns", "time", "connector")]
    for stream in catalogue.relations.values():
        if isinstance(stream, StreamDefinition):
            bound = f" - {format_duration(stream.time.bound)}" if stream.time.bound else ""
            time = "arrival" if stream.arrival_time else f"{stream.time.column}{bound}"
            rows.append((stream.name, _columns(stream.columns, stream.invisible), time, _connector(stream.properties)))
    return rows


def _tables(catalogue: Catalogue) -> list[Row]:
    rows: list[Row] = [("table", "columns", "changes", "connector")]
    for table in catalogue.relations.values():
        if isinstance(table, TableDefinition) and table.name != ONE_ROW:
            by = "never" if table.time is None else f"by {table.change_column or ', '.join(table.primary_key)}"
            rows.append((table.name, _columns(table.columns, table.invisible), by, _connector(table.properties)))
    return rows


def _views(catalogue: Catalogue) -> list[Row]:
    views = [view for view in catalogue.relations.values() if isinstance(view, ViewDefinition)]
    return [("view", "columns"), *((view.name, _columns(view.query.schema)) for view in views)]


def _sinks(catalogue: Catalogue) -> list[Row]:
    sinks = catalogue.sinks.values()
    return [("sink", "emit", "connector"), *((sink.name, sink.emit, _connector(sink.properties)) for sink in sinks)]


def _queries(queries: Sequence[ShellQuery]) -> list[Row]:
    rows: list[Row] = [("query", "state", "rows in", "rows out", "up to", "held back by", "statement")]
    for query in queries:
        status = query.status
        text = query.text if len(query.text) <= _LONGEST_STATEMENT else query.text[: _LONGEST_STATEMENT - 2] + ".."
        rows.append(
            (
                str(query.number),
                query.state,
                f"{sum(each.rows_in for each in status.inputs):,}",
                f"{status.rows_out:,}",
                instant_text(status.progress),
                (status.held_back_by or "") if query.running else "",
                text,
            )
        )
    return rows


def _functions() -> list[Row]:
    return _rows(shown(ShowStatement("", Span(1, 1, 1), "FUNCTIONS"), Catalogue()))


def _options(catalogue: Catalogue) -> list[Row]:
    rows: list[Row] = [("option", "value", "what it is")]
    for name, option in OPTIONS.items():
        rows.append((name, _value(name, catalogue.options.get(name, option.default)), option.purpose))
    return rows


def _value(name: str, value: Any) -> str:
    """
    >>> _value("tick", 2_000_000), _value("origin", None), _value("join", "auto")
    ('2 SECOND', 'none', 'auto')
    """
    if value is None:
        return "none"
    return (
        format_duration(value)
        if name in ("tick", "step_budget")
        else instant_text(value)
        if name == "origin"
        else str(value)
    )


def _columns(columns: Schema, invisible: frozenset[str] = frozenset()) -> str:
    return ", ".join(f"{column.name} {sql_name(column.type)}" for column in columns if column.name not in invisible)


def _connector(properties: dict[str, str]) -> str:
    name, path = properties.get("connector", ""), properties.get("path")
    return name if path is None else f"{name} {path}"


def aligned(table: pa.Table) -> str:
    """A table of texts, for a terminal."""
    return _aligned(_rows(table))


def _rows(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(table.column_names), *zip(*columns, strict=True)]


def _aligned(rows: list[Row]) -> str:
    """
    >>> print(_aligned([("a", "b"), ("long", "x")]))
    a     b
    ----  -
    long  x
    """
    rows = [tuple(map(visible, row)) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    whole = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in whole
    )
