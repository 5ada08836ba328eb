"""Rows that the program makes as they are wanted: a Python iterable, which may be endless, or an Arrow reader.

Nothing is read before a query wants it, and nothing is kept. An iterator, a generator or a reader can be gone through
once, so one query can read it. Of an iterable that can be gone through again, or of a function that makes one, every
query has its own. The position is how many rows have been taken; a query that is restored goes past them again.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from transom.connectors.arrow_input import is_batches, table_of, values_of
from transom.connectors.connector import Limits, Plan, Source, Split, SplitRows
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.core.errors import SourceError, TransomError
from transom.core.schema import Schema

_SLOW: Final = 0.005
"""Seconds after which an element counts as long awaited: it is handed on at once, not kept until there are more."""

_MANY: Final = 1 << 16
"""So many rows are taken at once where nobody says how many."""


class Supply:
    """Where the elements come from, and the columns that the first of them shows, unless they are given."""

    def __init__(self, name: str, data: Any, columns: pa.Schema | None = None) -> None:
        self.name = name
        self._data = data
        self._taken = False
        self._seen: list[Any] = []
        self._rest: Iterator[Any] | None = None
        self.columns: pa.Schema = columns if columns is not None else self._sample_schema()

    def open(self) -> Iterator[Any]:
        """The elements from the first one on."""
        if not callable(self._data) and not isinstance(self._data, Iterator | pa.RecordBatchReader):
            return iter(self._data)
        if callable(self._data) and self._taken:
            return iter(self._data())
        if self._taken:
            raise SourceError(
                f"the rows of '{self.name}' have been read already, and can be gone through once only",
                remedy="hand over a list, or a function that makes the iterable anew for every query",
            )
        self._taken = True
        rest = self._rest if self._rest is not None else iter(self._data() if callable(self._data) else self._data)
        return itertools.chain(self._seen, rest)

    def _sample_schema(self) -> pa.Schema:
        if isinstance(self._data, pa.RecordBatchReader):
            return self._data.schema
        with _source_errors(self.name):
            self._rest = iter(self._data() if callable(self._data) else self._data)
            self._seen = list(itertools.islice(self._rest, 1))
        if not self._seen:
            raise SourceError(f"'{self.name}' has no rows that show its columns", remedy="say columns = pa.schema(..)")
        (first,) = self._seen
        if is_batches(first):
            return first.schema
        row = _mapping(first, self.name)
        try:
            schema = table_of([row]).schema
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise SourceError(
                f"the first row of '{self.name}' does not tell its columns: {error}",
                remedy="say columns = pa.schema(..) with the types",
            ) from None
        unknown = [field.name for field in schema if pa.types.is_null(field.type)]
        if unknown:
            raise SourceError(
                f"the first row of '{self.name}' has no value in '{unknown[0]}', so its type is not known",
                remedy="say columns = pa.schema(..) with the types",
            )
        return schema


class IterableSource(Source):
    """The rows of a supply, for one query. What has been planned is in hand until it is read."""

    closes = True

    def __init__(
        self,
        supply: Supply,
        columns: Schema,
        *,
        time_column: str | None,
        stamped: str | None,
        time_unit: int | None = None,
    ) -> None:
        self._supply = supply
        self._fitter = RowFitter(
            columns, time_column=time_column, stamped=stamped, name=supply.name, time_unit=time_unit
        )
        self._elements: Iterator[Any] | None = None
        self._at = 0
        self._left: pa.RecordBatch | None = None
        self._pending: Any = None
        self._planned: tuple[int, list[pa.Array]] | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """Takes the rows, which is the only way to know how many there are."""
        most = _MANY if limits.rows is None else limits.rows
        self._go_to(int(position.get("rows", 0)), most)
        start = self._at
        columns = self._take(most)
        if columns is None:
            return Plan({"rows": start}, (), True, True)
        self._planned = start, columns
        return Plan({"rows": self._at}, (Split(self._supply.name, start, self._at - start),), False)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        planned, self._planned = self._planned, None
        assert planned is not None and planned[0] == split.at
        yield self._fitter.fit(planned[1], split.at)

    def _go_to(self, row: int, at_once: int) -> None:
        if self._elements is None or row < self._at:
            with _source_errors(self._supply.name):
                self._elements = self._supply.open()
            self._at, self._left, self._pending = 0, None, None
        while self._at < row:
            if self._take(min(at_once, row - self._at)) is None:
                raise SourceError(
                    f"'{self._supply.name}' has {self._at} rows, and {row} had been read of it before",
                    remedy="hand over the same rows again, or start the query anew",
                )

    def _take(self, most: int) -> list[pa.Array] | None:
        """Some of the next rows, by the given columns; None at the end."""
        if self._left is None:
            rows: list[Mapping[str, Any]] = []
            while len(rows) < most:
                began = time.monotonic()
                element, self._pending = (self._next() if self._pending is None else self._pending), None
                if is_batches(element):
                    if rows:
                        self._pending = element
                        break
                    table = pa.Table.from_batches([element]) if isinstance(element, pa.RecordBatch) else element
                    self._left = table.combine_chunks().to_batches()[0] if len(table) else None
                    if self._left is not None:
                        break
                    continue
                if element is None:
                    break
                rows.append(_mapping(element, self._supply.name))
                if time.monotonic() - began > _SLOW:
                    break
            if rows:
                self._at += len(rows)
                return [values_of([row.get(column.name) for row in rows], column) for column in self._fitter.given]
        if self._left is None:
            return None
        now, rest = self._left.slice(0, most), self._left.slice(most)
        self._left = rest if len(rest) else None
        self._at += len(now)
        return self._fitter.columns_of(now)

    def _next(self) -> Any:
        """The next element; None when there is none."""
        assert self._elements is not None
        with _source_errors(self._supply.name):
            for element in self._elements:
                if element is None:
                    raise _no_row(self._supply.name)
                return element
        return None


class _source_errors:
    """What goes wrong in the program's own iterable is reported as an error of this input."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, TransomError):
            raise SourceError(
                f"the rows of '{self._name}' cannot be had: {error or 'the program that makes them failed'}",
                remedy="see what the iterable does; the error beneath this one says where",
            ) from error


def _mapping(element: Any, name: str) -> Mapping[str, Any]:
    if isinstance(element, Mapping) and all(isinstance(key, str) for key in element):
        return element
    raise _no_row(name)


def _no_row(name: str) -> SourceError:
    return SourceError(
        f"an element of '{name}' is no row", remedy="yield dictionaries with the columns as keys, or Arrow batches"
    )


def is_lazy(data: Any) -> bool:
    """Whether the rows are to be read as they are wanted; what lies in memory already is taken at once."""
    if isinstance(data, Iterator | pa.RecordBatchReader) or callable(data):
        return True
    held = isinstance(data, list | tuple | Mapping | str | bytes) or hasattr(data, "__arrow_c_stream__")
    return isinstance(data, Iterable) and not held and not is_batches(data)
