"""What comes of statements: rows for Arrow, pandas, Polars and notebooks; plans as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.core.errors import QueryError, TransomError
from transom.core.schema import BIGINT, HUGEINT, unique_names
from transom.core.values import Row
from transom.program.explained import Explained
from transom.program.notebook import status_html, table_html, text_html
from transom.program.status import Status

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True)
class Result:
    """What came of a statement: rows of a query, the text of EXPLAIN, how a query went; nothing for a declaration.

    >>> result = Result("SELECT ..", pa.table({"a": [1, 2]}))
    >>> result.to_arrow().num_rows, len(result)
    (2, 2)
    >>> Result("CREATE ..").to_arrow()
    Traceback (most recent call last):
        ...
    transom.core.errors.QueryError: this statement has no rows
      ask for the rows of a query whose answer stays in memory
    """

    statement: str
    table: pa.Table | None = None
    text: str | None = None
    status: Status | None = None

    @staticmethod
    def so_far(statement: str, sink: Sink, status: Status) -> Result:
        """The answer until now of a query that goes on, if it stays in memory."""
        return Result(statement, sink.collected(), status=status)

    def __len__(self) -> int:
        """How many rows there are."""
        return 0 if self.table is None else int(self.table.num_rows)

    def __bool__(self) -> bool:
        return True

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.table is None:
            raise QueryError(
                "this statement has no rows", remedy="ask for the rows of a query whose answer stays in memory"
            )
        return self.table

    def to_pylist(self) -> list[Row]:
        """The rows as dictionaries."""
        rows: list[Row] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas data frame; pandas must be installed. Sums of whole numbers are int64 if they fit."""
        _library("pandas")
        return _for_frames(self.to_arrow()).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a Polars data frame; Polars must be installed. Sums of whole numbers are Int64 if they fit."""
        frame: polars.DataFrame = _library("polars").from_arrow(_for_frames(self.to_arrow()))
        return frame

    def _repr_html_(self) -> str:
        if self.table is not None:
            return table_html(self.table)
        if isinstance(self.text, Explained):
            return self.text._repr_html_()
        if self.text is not None:
            return text_html(self.text)
        return text_html(self.statement) if self.status is None else status_html(self.status)


class Results(list[Result]):
    """The results of a text, one a statement, which a notebook shows one below the other."""

    def _repr_html_(self) -> str:
        return "".join(result._repr_html_() for result in self)


def _for_frames(table: pa.Table) -> pa.Table:
    """Frames want every name once, and `SELECT *` of a join may have one twice.

    SUM of whole numbers is as wide as it may have to be, and where it fits a frame is to have numbers that it can count
    with.

    >>> _for_frames(pa.table({"n": pa.array([3, None], HUGEINT), "m": pa.array([2**70, 1], HUGEINT)})).schema.types
    [DataType(int64), Decimal128Type(decimal128(38, 0))]
    """
    columns = [_narrow(column) if column.type == HUGEINT else column for column in table.columns]
    return pa.table(columns, names=unique_names(table.column_names))


def _narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(BIGINT)
    except pa.ArrowInvalid:
        return column


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise TransomError(
            f"{name} is not installed here", remedy=f"pip install {name}, or take the rows with to_arrow()"
        ) from None
