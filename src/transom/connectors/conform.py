"""Columns as a file has them, made into rows as the stream declares them; a row that does not fit is set aside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from transom.connectors.fit import CannotFit, fit, outside_time, shown, written
from transom.connectors.source import Rejected
from transom.core.delta import Int64s
from transom.core.errors import SourceError
from transom.core.schema import TIMESTAMP, TIMESTAMPTZ, Schema, sql_name

_MOMENTS: Final = (TIMESTAMP, TIMESTAMPTZ)
_UNIT_HINT: Final = " (if it counts from 1970, say what: time_unit = 's', 'ms' or 'us')"


@dataclass(frozen=True)
class DeclaredRows:
    """What the rows of a source are to look like. `time_column` is the place of the column that holds the instant."""

    columns: Schema
    time_column: int | None = None
    time_unit: int | None = None


@dataclass(frozen=True)
class ParsedRows:
    """Some rows of a split of a file, one column for each declared one; `origin` numbers them within the split."""

    origin: Int64s
    columns: Sequence[pa.Array]


def fold(name: str) -> str:
    """Names of columns are compared without regard to the case of the letters A to Z."""
    return "".join(character.lower() if character.isascii() else character for character in name)


def column_index(columns: Schema, name: str) -> int:
    return [fold(column.name) for column in columns].index(fold(name))


def find_columns(declared: Schema, present: Sequence[str], file: str) -> list[int]:
    """Where each declared column stands among those `present` in a file; raises SourceError for a missing one."""
    positions = []
    for column in declared:
        exact = [at for at, name in enumerate(present) if name == column.name]
        indexes = exact or [at for at, name in enumerate(present) if fold(name) == fold(column.name)]
        if not indexes:
            raise SourceError(
                f"file '{file}' has no column '{column.name}'",
                remedy=f"it has {', '.join(present)}; declare one of these" if present else "it has no columns at all",
            )
        if len(indexes) > 1:
            raise SourceError(
                f"file '{file}' has column '{column.name}' {len(indexes)} times",
                remedy="give the columns of the file different names",
            )
        positions.append(indexes[0])
    return positions


def conform(
    parsed_parts: Sequence[ParsedRows], declared: DeclaredRows, file: str
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """The rows that fit, in order of origin, and for each other row what is wrong with it, by its origin."""
    fitted = [_conform_part(parsed, declared, file) for parsed in parsed_parts]
    reasons = {row: reason for _, wrong in fitted for row, reason in wrong.items()}
    schema = declared.columns.arrow()
    if not parsed_parts:
        return pa.RecordBatch.from_pylist([], schema), {}
    if len(parsed_parts) == 1:
        arrays, origin = fitted[0][0], parsed_parts[0].origin
    else:
        arrays = [pa.concat_arrays(parts) for parts in zip(*(columns for columns, _ in fitted), strict=True)]
        origin = np.concatenate([parsed.origin for parsed in parsed_parts])
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    order = np.argsort(origin, kind="stable") if len(parsed_parts) > 1 else np.arange(len(origin))
    if reasons:
        order = order[~np.isin(origin[order], np.fromiter(reasons, np.int64, len(reasons)))]
    if len(parsed_parts) > 1 or reasons:
        rows = rows.take(pa.array(order))
    return rows, reasons


def reject_rows(
    parsed: ParsedRows, wrong: dict[int, str], declared: DeclaredRows, source: str, start: int
) -> list[Rejected]:
    """Rows that did not fit, `start` rows into the source, each with its declared columns as they stand there."""
    names = declared.columns.names
    return [
        Rejected(
            f"{source}, row {start + row + 1}",
            wrong[row],
            json.dumps(
                dict(zip(names, [written(values, row) for values in parsed.columns], strict=True)), ensure_ascii=False
            ),
        )
        for row in sorted(wrong)
    ]


def _conform_part(parsed: ParsedRows, declared: DeclaredRows, file: str) -> tuple[list[pa.Array], dict[int, str]]:
    arrays: list[pa.Array] = []
    wrong: dict[int, list[str]] = {}
    for at, (column, values) in enumerate(zip(declared.columns, parsed.columns, strict=True)):
        try:
            fitted = fit(values, column.type, declared.time_unit)
        except CannotFit:
            remedy = f"declare '{column.name}' with another type"
            if column.type in _MOMENTS and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
                remedy = "say what the numbers count since 1970: time_unit = 's', 'ms' or 'us'"
            raise SourceError(
                f"column '{column.name}' of file '{file}' is {values.type},"
                f" which cannot be read as {sql_name(column.type)}",
                remedy=remedy,
            ) from None
        for row in fitted.bad:
            wrong.setdefault(row, []).append(
                f"column '{column.name}' is {sql_name(column.type)} and cannot hold {shown(values, row)}"
                + (_UNIT_HINT if column.type in _MOMENTS and _digits(values, row) else "")
            )
        if at == declared.time_column:
            for row in outside_time(fitted.values):
                if row not in fitted.bad:
                    wrong.setdefault(row, []).append(f"the time column '{column.name}' {_why(fitted.values[row])}")
        arrays.append(fitted.values)
    return arrays, {int(parsed.origin[row]): "; ".join(reasons) for row, reasons in sorted(wrong.items())}


def _digits(values: pa.Array, row: int) -> bool:
    return (written(values, row) or "").strip().isdigit()


def _why(instant: pa.Scalar) -> str:
    return "is the end of time, at which nothing can happen" if instant.is_valid else "is NULL"
