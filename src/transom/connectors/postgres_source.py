"""A table of PostgreSQL that is read once, when a run begins: a table that never changes for the query.

It is read in one snapshot of the database, in an order that its values decide, and kept as long as it is read: so a
split gives the same rows again. A position says how many rows have been read of how many, and a mark by which the same
rows are known again: a run that resumes in the middle of a table that has changed is told so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from transom.connectors.connector import Declaration, Limits, Plan, Source, Split, SplitRows
from transom.connectors.postgres import Database, Table, check_installed, columns_of, quoted, required
from transom.connectors.properties import reject_unknown
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.core.errors import SourceError

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_PATIENCE: Final = 0.0
"""Nothing has begun that would be lost if the server is not there."""


class PostgresSource(Source):
    def __init__(self, declared: Declaration) -> None:
        properties = declared.properties
        reject_unknown(properties, ["connector", "url", "table", "schema"], "a table of connector 'postgres'")
        self._url, table = required(properties, ["url", "table"])
        self._table = Table.of(table, properties.get("schema"))
        check_installed()
        self._fitter = RowFitter(declared.columns, time_column=None, name=declared.name)
        self._read: tuple[list[pa.Array], str] | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        at = int(position.get("rows", 0))
        if position and at == position["of"]:
            return Plan(position, (), True)
        columns, mark = self._rows()
        if position.get("mark", mark) != mark:
            raise SourceError(
                f"the table {self._table.sql} has changed since a part of it was read",
                remedy="start with an empty checkpoint folder",
            )
        count = len(columns[0])
        stop = count if limits.rows is None else min(at + limits.rows, count)
        splits = (Split(self._table.name, at, stop - at, True),) if stop > at else ()
        return Plan({"rows": stop, "of": count, "mark": mark}, splits, stop == count)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        columns, _ = self._rows()
        yield self._fitter.fit([values.slice(split.at, split.rows) for values in columns], split.at)

    def _rows(self) -> tuple[list[pa.Array], str]:
        if self._read is None:
            database = Database(self._url, SourceError, f"the table {self._table.sql} cannot be read")
            try:
                table = database.transaction(self._fetch, _PATIENCE)
            finally:
                database.close()
            mark = hashlib.sha256()
            for batch in table.to_batches():
                mark.update(batch.serialize())
            batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            self._read = self._fitter.columns_of(batches[0]), mark.hexdigest()[:16]
        return self._read

    def _fetch(self, cursor: Cursor) -> pa.Table:
        there = columns_of(cursor, self._table)
        if not there:
            raise SourceError(f"there is no table {self._table.sql}", remedy="create it, or name another one")
        selected = []
        for column in self._fitter.given:
            # As it is written, or the one that differs in its case.
            named = [name for name in there if name.lower() == column.name.lower()]
            if not named:
                raise SourceError(
                    f"the table {self._table.sql} has no column '{column.name}'", remedy=f"it has {', '.join(there)}"
                )
            name = quoted(column.name if column.name in named else named[0])
            # Numbers of any size come as text, and are made what is declared as those of files are.
            read = f"{name}::text" if pa.types.is_decimal(column.type) else name
            selected.append(f"{read} AS {quoted(column.name)}")
        order = ", ".join(str(at + 1) for at in range(len(selected)))
        cursor.execute(f"SELECT {', '.join(selected)} FROM {self._table.sql} ORDER BY {order}")
        return _plain(cursor.fetch_arrow_table())


def _plain(table: pa.Table) -> pa.Table:
    """Without the extension types that PostgreSQL's own types come as, and without time zones: instants are UTC."""
    columns = []
    for column in table.columns:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.cast(column.type.storage_type)
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names)
