"""Answers on standard output: rows as they come, or the latest relation as a table that is renewed in its place.

Without a terminal they are plain lines, and of `latest` the last snapshot is printed at the end; when the input is
followed, which has no end, each one.
"""

from __future__ import annotations

import time
from typing import Any, Final

import pyarrow as pa

from transom.connectors.answer_view import AnswerView
from transom.connectors.connector import Sink
from transom.connectors.properties import reject_unknown
from transom.connectors.row_text import csv_header, csv_text, json_text, value_text
from transom.connectors.screen import Screen
from transom.core.errors import OptionError
from transom.core.text import visible

STYLES: Final = ("table", "csv", "jsonl")

_WIDEST: Final = 40
_SECONDS_BETWEEN_SNAPSHOTS: Final = 1.0


def read_terminal_properties(properties: dict[str, str]) -> str | None:
    """The format that a terminal sink asks for, None when it leaves it to the terminal."""
    reject_unknown(properties, ["connector", "format"], "connector 'terminal'")
    style = properties.get("format")
    if style is not None and style.lower() not in STYLES:
        raise OptionError(f"a terminal has no format '{style}'", remedy="write format = 'table', 'csv' or 'jsonl'")
    return None if style is None else style.lower()


class TerminalSink(Sink):
    """Prints on a screen under its name. `style` None: a table on a terminal, otherwise CSV. `view`
    says which rows are shown, and in which order."""

    snapshots = True

    def __init__(
        self,
        screen: Screen,
        name: str,
        schema: pa.Schema,
        style: str | None,
        follow: bool,
        view: AnswerView | None = None,
    ) -> None:
        self._view = view or AnswerView()
        self._screen = screen
        self._name = name
        self._schema = schema
        self._style = style or ("table" if screen.shows_rows else "csv")
        self._follow = follow
        self._headings = [visible(name) for name in schema.names]
        self._widths = [len(heading) for heading in self._headings]
        self._snapshot: pa.RecordBatch | None = None
        self._is_printed = False
        self._printed_at = 0.0

    def write(self, batch: pa.RecordBatch) -> None:
        batch = self._view.first(batch)
        if len(batch):
            self._print(batch)

    @property
    def full(self) -> bool:
        return self._view.full

    def replace(self, batch: pa.RecordBatch) -> None:
        batch = self._view.snapshot(batch)
        if self._snapshot is not None and self._snapshot.equals(batch):
            return
        self._snapshot, self._is_printed = batch, False
        if self._style == "table" and self._screen.shows_rows and not self._screen.keyboard:
            self._screen.stand(self._name, _drawn(self._name, batch, self._screen.room_for_rows))
        elif self._follow and (not self._screen.keyboard or self._timer_passed()):
            self._print(batch)
            self._screen.write("\n")

    def commit(self, epoch: int, token: Any) -> None:
        """What was printed has been seen already."""

    def abort(self, epoch: int) -> None:
        self._screen.remove(self._name)

    def close(self) -> None:
        """Print the heading if nothing was printed, so that one sees that there was no row."""
        self._screen.remove(self._name)
        if self._snapshot is None and not self._printed_at:
            self._print(pa.RecordBatch.from_pylist([], self._schema))
        elif self._snapshot is not None and not self._is_printed:
            self._print(self._snapshot)

    def _timer_passed(self) -> bool:
        """Between lines that somebody types, not every snapshot is wanted."""
        return time.monotonic() - self._printed_at >= _SECONDS_BETWEEN_SNAPSHOTS

    def _print(self, batch: pa.RecordBatch) -> None:
        self._is_printed, self._printed_at = True, time.monotonic()
        names = self._schema.names
        if self._style == "table":
            cells = _cells(batch)
            for i, values in enumerate(cells):
                self._widths[i] = max([self._widths[i], *(min(len(value), _WIDEST) for value in values)])
            heading = self._aligned([tuple(self._headings), tuple("-" * width for width in self._widths)])
            self._screen.say(self._name, heading, self._aligned(list(zip(*cells, strict=True))))
        elif self._style == "jsonl":
            self._screen.say(self._name, "", json_text(batch, names).decode())
        else:
            self._screen.say(self._name, csv_header(names, ",").decode(), csv_text(batch, ",", "").decode())

    def _aligned(self, rows: list[tuple[str, ...]]) -> str:
        numbers = [_is_number(type_) for type_ in self._schema.types]
        lines = []
        for row in rows:
            cells = [
                value.rjust(width) if number else value.ljust(width)
                for value, width, number in zip(row, self._widths, numbers, strict=True)
            ]
            lines.append("  ".join(cells).rstrip() + "\n")
        return "".join(lines)


def _drawn(name: str, batch: pa.RecordBatch, most: int) -> Any:
    """A snapshot as a table, with as many rows as there is room for."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(name)), title_justify="left", title_style="bold")
    for field in batch.schema:
        table.add_column(Text(visible(field.name)), justify="right" if _is_number(field.type) else "left")
    for row in zip(*_cells(batch.slice(0, most)), strict=True):
        table.add_row(*(Text(value) for value in row))
    if len(batch) > most:
        table.caption, table.caption_justify = f"and {len(batch) - most:,} rows more", "left"
    return table


def _cells(batch: pa.RecordBatch) -> list[list[str]]:
    columns = [value_text(values).fill_null("NULL").to_pylist() for values in batch.columns]
    return [[visible(value) for value in values] for values in columns]


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
