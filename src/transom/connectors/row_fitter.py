"""Rows that come as named Arrow columns, made into rows as the stream or table declares them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from transom.connectors.conform import DeclaredRows, ParsedRows, column_index, conform, find_columns, reject_rows
from transom.connectors.connector import SplitRows
from transom.core.schema import Schema


class RowFitter:
    """`time_column` holds the instant of a row: it must be there and within the time domain. `stamped` is a column that
    does not come with the rows: it is NULL until whoever takes the rows fills it in. `name` is what the rows are called
    in messages. `given` are the columns that come. Whole numbers are instants if a `time_unit` says what they count.

    >>> from transom.core.schema import INTEGER
    >>> fitter = RowFitter(Schema.of(("a", INTEGER)), time_column=None, name="here")
    >>> found = fitter.fit(fitter.columns_of(pa.record_batch({"A": ["1", "x"]})), 0)
    >>> found.rows.to_pylist(), [(row.position, row.reason) for row in found.rejected]
    ([{'a': 1}], [('here, row 2', "column 'a' is INTEGER and cannot hold 'x'")])
    """

    def __init__(
        self,
        columns: Schema,
        *,
        time_column: str | None,
        stamped: str | None = None,
        name: str,
        time_unit: int | None = None,
    ) -> None:
        self._stamped = None if stamped is None else column_index(columns, stamped)
        self._declared = DeclaredRows(
            columns, None if time_column is None else column_index(columns, time_column), time_unit
        )
        self._name = name
        self.given = Schema(tuple(column for at, column in enumerate(columns) if at != self._stamped))

    @property
    def schema(self) -> pa.Schema:
        """The declared columns."""
        return self._declared.columns.arrow()

    def columns_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The given columns, found by name."""
        return [batch.column(index) for index in find_columns(self.given, batch.schema.names, self._name)]

    def fit(self, given: Sequence[pa.Array], start: int) -> SplitRows:
        """The rows that fit, and the others; `start` rows of the source come before them."""
        count, columns = len(given[0]) if given else 0, list(given)
        if self._stamped is not None:
            columns.insert(self._stamped, pa.nulls(count, self._declared.columns[self._stamped].type))
        parsed = ParsedRows(np.arange(count), columns)
        rows, wrong = conform([parsed], self._declared, self._name)
        return SplitRows(rows, reject_rows(parsed, wrong, self._declared, self._name, start))
