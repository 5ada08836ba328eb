"""Answers, plans and status as HTML, for notebooks.

Every text is escaped: names and values come from queries and data that nobody vouches for. There are no scripts, no
links and nothing is loaded; the style is within the elements, so that it touches nothing else on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from transom.connectors.row_text import value_text
from transom.core.time import format_instant
from transom.program.lifetimes_svg import lifetimes_svg

if TYPE_CHECKING:
    from transom.program.live_answer import LiveAnswer
    from transom.program.status import Status

MOST_ROWS: Final = 20
_MOST_LETTERS: Final = 200

_FONT: Final = "font-family:ui-monospace,monospace;font-size:12px"
_CELL: Final = "padding:2px 8px;border-bottom:1px solid #8884;white-space:pre"
_FAINT: Final = "opacity:.65"


def table_html(table: pa.Table, most: int = MOST_ROWS) -> str:
    """The first rows of a table, and how many there are.

    >>> "<td" in table_html(pa.table({"a": [1]})), "<b>" in table_html(pa.table({"<b>": ["<b>"]}))
    (True, False)
    """
    columns = [value_text(column.combine_chunks()) for column in table.slice(0, most).columns]
    rows = [[_NULL if value is None else _cell(value) for value in row] for row in zip(*_lists(columns), strict=True)]
    numbers = [_is_number(type_) for type_ in table.schema.types]
    count = f"{table.num_rows:,} row{'s' * (table.num_rows != 1)}"
    shown = f"{count}, the first {most} shown" if table.num_rows > most else count
    return _table(table.column_names, rows, numbers) + _note(shown)


def text_html(text: str) -> str:
    return f'<pre style="{_FONT}">{escape(text)}</pre>'


def status_html(status: Status) -> str:
    """How a query is doing: a sentence, and a line for each input and each operator."""
    state = "finished" if status.finished else f"up to {format_instant(status.progress)}"
    if status.held_back_by is not None:
        state += f", waits for {status.held_back_by}"
    state += "".join(f"; {each.name}: {each.leap}" for each in status.inputs if each.leap is not None)
    if status.latency is not None:
        state += f"; {status.latency}"
    if status.overload is not None:
        state += f"; {status.overload}"
    inputs = [
        [
            _cell(each.name),
            *(f"{n:,}" for n in (each.rows_in, each.used, each.late, each.rejected, each.waiting)),
        ]
        for each in status.inputs
    ]
    operators = [
        [
            f"#{operator.number}",
            _cell(operator.tactic),
            *(f"{n:,}" for n in (operator.rows_in, operator.rows_out, operator.state_bytes)),
        ]
        for operator in status.operators
    ]
    return (
        f'<div style="{_FONT}"><b>{_cell(status.name)}</b>: {status.rows_out:,} rows out, {_cell(state)}</div>'
        + _table(["input", "rows in", "used", "late", "rejected", "waiting"], inputs, [False] + [True] * 5)
        + _table(["operator", "tactic", "rows in", "rows out", "bytes"], operators, [False] * 2 + [True] * 3)
    )


def live_html(status: Status, answer: LiveAnswer, state: str) -> str:
    """A query that goes on: how it is doing, the lifetimes of its rows, and the relation or the newest rows."""
    names, rows = answer.table_columns, answer.table
    if rows is None:
        names, rows = answer.columns, answer.rows
    cells = [[_NULL if value is None else _cell(value) for value in row] for row in rows[:MOST_ROWS]]
    shown = _table(names, cells, [False] * len(names)) if names else ""
    went_by = f"{answer.passed:,} {'snapshots' if answer.form == 'latest' else 'rows'} went by"
    return (
        f'<div style="{_FONT}">{escape(state)}</div>{status_html(status)}{lifetimes_svg(answer.bars)}{shown}'
        + _note(went_by + ("; older ones are not kept" if answer.partial else ""))
    )


def running_html(statuses: Sequence[Status], seconds: float) -> str:
    """Queries that are run to their end, while they do: a line each, and a bar of those that are not over."""
    lines = []
    for status in statuses:
        rows = sum(each.rows_in for each in status.inputs)
        rate = f"{rows / seconds:,.0f} rows/s" if seconds > 0 else ""
        bar = "<progress></progress>" if not status.finished else '<progress value="1" max="1"></progress>'
        at = "finished" if status.finished else f"up to {format_instant(status.progress)}"
        lines.append(
            f"<div>{bar} <b>{_cell(status.name)}</b>: {rows:,} rows in, {status.rows_out:,} out, {rate}, {at}</div>"
        )
    return f'<div style="{_FONT}">{"".join(lines)}</div>'


def plans_html(plans: Sequence[dict[str, Any]]) -> str:
    """Plans as EXPLAIN JSON gives them, each a tree of its operators."""
    return "".join(_plan(plan) for plan in plans)


def _plan(plan: dict[str, Any]) -> str:
    operators = {operator["number"]: operator for operator in plan["operators"]}
    seen: set[int] = set()

    def tree(number: int) -> str:
        operator = operators[number]
        head = f"<b>#{number} {_cell(operator['tactic'])}</b> "
        if number in seen:
            return f'<li>{head}<span style="{_FAINT}">shared, see above</span></li>'
        seen.add(number)
        details = [f"keeps {operator['keeps']}; {operator['costs']}"]
        details += [f"not {each['tactic']}: {each['reason']}" for each in operator["not_taken"]]
        if "measured" in operator:
            measured = operator["measured"]
            details.append(
                f"{measured['rows_in']:,} rows in, {measured['rows_out']:,} out, "
                f"{measured['state_bytes']:,} bytes kept, {measured['seconds'] * 1000:.1f} ms"
            )
        below = "".join(tree(child) for child in operator["inputs"])
        faint = "".join(f'<div style="{_FAINT}">{_cell(line)}</div>' for line in details)
        inner = f'<ul style="margin:0 0 0 4px;padding-left:16px">{below}</ul>' if below else ""
        return f"<li>{head}{_cell(operator['description'])}{faint}{inner}</li>"

    statement = plan.get("statement")
    title = text_html(statement) if statement else ""
    return f'<div style="{_FONT}">{title}<ul style="margin:0;padding-left:16px">{tree(plan["root"])}</ul></div>'


# --- pieces ----------------------------------------------------------------------------------------------------------

_NULL: Final = f'<span style="{_FAINT}">NULL</span>'


def _lists(columns: Iterable[pa.Array]) -> list[list[str | None]]:
    return [column.to_pylist() for column in columns]


def _cell(text: str) -> str:
    return escape(text if len(text) <= _MOST_LETTERS else text[:_MOST_LETTERS] + "..")


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    """`rows` are HTML already, `names` are not."""
    sides = ["right" if number else "left" for number in numbers]
    head = "".join(
        f'<th style="{_CELL};text-align:{side}">{_cell(name)}</th>' for name, side in zip(names, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL};text-align:{side}">{c}</td>' for c, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in rows
    )
    style = f"{_FONT};border-collapse:collapse"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _note(text: str) -> str:
    return f'<div style="{_FONT};{_FAINT}">{escape(text)}</div>'


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
