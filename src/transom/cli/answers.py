"""Answers on standard output: rows as they come, as an aligned table, as CSV or as JSON lines."""

from __future__ import annotations

import sys
from typing import TextIO

import pyarrow as pa

from transom.connectors.row_text import csv_header, csv_text, json_text, value_text

_WIDEST = 40


class Page:
    """Standard output, shared by several queries: who speaks after another says so first."""

    def __init__(self, style: str | None, several: bool, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.style = style or ("table" if self.out.isatty() else "csv")
        self._several = several
        self._last: str | None = None

    def begin(self, speaker: str) -> bool:
        """Whether the heading of this speaker's columns is due."""
        if self._last == speaker:
            return False
        if self._several:
            self.out.write(("" if self._last is None else "\n") + f"-- {speaker}\n")
        self._last = speaker
        return True

    def write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


class Printed:
    """A sink that prints. Of a `latest` answer the last snapshot is printed at the end; when following, each one."""

    def __init__(self, page: Page, name: str, schema: pa.Schema, follow: bool) -> None:
        self._page = page
        self._name = name
        self._schema = schema
        self._follow = follow
        self._widths = [len(name) for name in schema.names]
        self._snapshot: pa.RecordBatch | None = None
        self._spoken = False

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        self._print(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        self._snapshot = batch
        if self._follow:
            self._print(batch)
            self._page.write("\n")

    def prepare(self) -> int:
        return 0

    def commit(self) -> int:
        return 0

    def abandon(self) -> None: ...

    def close(self) -> None:
        if self._snapshot is not None and not self._follow:
            self._print(self._snapshot)
        elif not self._spoken:
            self._print(pa.RecordBatch.from_pylist([], self._schema))

    def _print(self, batch: pa.RecordBatch) -> None:
        self._spoken = True
        heading = self._page.begin(self._name)
        if self._page.style == "table":
            self._page.write(self._aligned(batch, heading))
        elif self._page.style == "jsonl":
            self._page.write(json_text(batch, self._schema.names).decode())
        else:
            header = csv_header(self._schema.names, ",") if heading else b""
            self._page.write((header + csv_text(batch, ",", "")).decode())

    def _aligned(self, batch: pa.RecordBatch, heading: bool) -> str:
        columns = [value_text(values).fill_null("NULL").to_pylist() for values in batch.columns]
        for i, values in enumerate(columns):
            self._widths[i] = max([self._widths[i], *(min(len(value), _WIDEST) for value in values)])
        numbers = [_is_number(type_) for type_ in self._schema.types]
        rows = list(zip(*columns, strict=True))
        if heading:
            rows = [tuple(self._schema.names), tuple("-" * width for width in self._widths), *rows]
        lines = []
        for row in rows:
            cells = [
                value.rjust(width) if number else value.ljust(width)
                for value, width, number in zip(row, self._widths, numbers, strict=True)
            ]
            lines.append("  ".join(cells).rstrip() + "\n")
        return "".join(lines)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
