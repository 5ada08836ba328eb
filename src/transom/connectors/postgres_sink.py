"""An answer in a table of PostgreSQL, exactly once.

`emit = 'net'` keeps the answer as a table, by its key: an epoch is one transaction that deletes, then inserts or
updates, and writes its number. All other answers are appended, so lifetimes become a history. The numbers are in the
table `transom_commits` of the same schema, by the run; its row is locked first, so a repeated epoch finds its number
and does nothing, and a run whose table has been given to another finds no row of its own and writes nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.postgres import (
    Database,
    Table,
    check_installed,
    columns_of,
    literal,
    query,
    quoted,
    required,
    run,
    type_name,
)
from transom.connectors.properties import reject_unknown
from transom.connectors.row_text import value_text
from transom.connectors.staged_sink import StagedSink
from transom.core.errors import OptionError, SinkError
from transom.core.schema import unique_names

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_COMMITS: Final = "transom_commits"
_ROWS: Final = "transom_rows"
_NULLS_IN_KEYS: Final = 150_000
"""From this version on a unique index can take NULL as a value like any other."""

_CLAIM: Final = 0x7472616E736F6D
"""Whoever claims a table holds this lock: two at once could both find no table of commits."""


@dataclass(frozen=True)
class SinkProperties:
    """
    | property | meaning |
    | --- | --- |
    | url | the database, as libpq takes it; `'$PGURL'` takes it from the environment |
    | table | the table, `'orders'` or `'schema.orders'`; it is created if it is not there |
    | schema | its schema; by default the first one of the search path |
    | key | with `emit = 'net'`: columns that name a row, `'a, b'`, where the query does not prove any |
    """

    url: str
    table: Table
    key: tuple[str, ...] | None

    @classmethod
    def of(cls, declared: SinkDeclaration) -> SinkProperties:
        properties = declared.properties
        reject_unknown(properties, ["connector", "url", "table", "schema", "key"], "a sink of connector 'postgres'")
        url, table = required(properties, ["url", "table"])
        names = properties.get("key")
        key = None if names is None else tuple(name.strip() for name in names.split(","))
        sink_properties = cls(url, Table.of(table, properties.get("schema")), key)
        if key is not None and not all(key):
            raise OptionError(f"key = '{names}' names no columns", remedy="write key = 'a' or key = 'a, b'")
        quoted(sink_properties.table.name)
        check_installed()
        return sink_properties


@dataclass(frozen=True)
class _TargetColumn:
    """A column of the answer: as the table has it, and as it is in the table that the rows of an epoch are put into."""

    name: str
    type: pa.DataType
    at: int

    @property
    def staged(self) -> str:
        return f"c{self.at}"

    @property
    def staged_type(self) -> str:
        return "text" if self.as_json else type_name(self.type)

    @property
    def value(self) -> str:
        return f"{self.staged}::jsonb" if self.as_json else self.staged

    @property
    def as_json(self) -> bool:
        return type_name(self.type) == "jsonb"


class PostgresSink(StagedSink):
    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        super().__init__(declared, opening)
        properties = SinkProperties.of(declared)
        if opening.snapshots:
            raise OptionError(
                "a table of PostgreSQL is not written anew for every snapshot",
                remedy="write emit = 'net': only what has changed is written, and the table is the latest snapshot",
            )
        self._table = properties.table
        self._commits = properties.table.beside(_COMMITS)
        self._database = _database(properties)
        self._lasting = declared.run is not None
        self._maintained = opening.form == "net"
        self._columns = _columns(opening)
        self._proved = opening.key is not None
        """Whether there is one change a key and epoch."""
        self._key = self._key_of(properties, opening) if self._maintained else ()
        resume = opening.resume
        begins = resume is None or resume.done == 0
        try:
            self._database.transaction(lambda cursor: self._claim(cursor, begins))
        except BaseException:
            self._database.close()
            raise

    # --- an epoch ----------------------------------------------------------------------------------------------------

    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        self._database.transaction(lambda cursor: self._write(cursor, epoch, rows))

    def _write(self, cursor: Cursor, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        committed = query(cursor, f"SELECT epoch FROM {self._commits.sql} WHERE {self._of_this_run} FOR UPDATE")
        if not committed:
            self._reject_lost()
        if committed[0][0] >= epoch:
            return
        self._stage(cursor, rows)
        for statement in self._statements(rows):
            run(cursor, statement)
        run(cursor, f"UPDATE {self._commits.sql} SET epoch = {epoch:d}, at = now() WHERE {self._of_this_run}")

    def _stage(self, cursor: Cursor, rows: Sequence[pa.RecordBatch]) -> None:
        """The rows in a table of this transaction alone."""
        declared = ", ".join(f"{column.staged} {column.staged_type}" for column in self._staged)
        run(cursor, f"CREATE TEMPORARY TABLE {_ROWS} ({declared}) ON COMMIT DROP")
        values = [[self._staged_values(column, batch) for column in self._staged] for batch in rows]
        names = [column.staged for column in self._staged]
        if values:
            table = pa.Table.from_batches([pa.RecordBatch.from_arrays(each, names=names) for each in values])
            cursor.adbc_ingest(_ROWS, table, mode="append", temporary=True)

    def _staged_values(self, column: _TargetColumn, batch: pa.RecordBatch) -> pa.Array:
        values = batch.column(column.at)
        return value_text(values) if column.as_json else values

    @property
    def _staged(self) -> list[_TargetColumn]:
        """The columns of the table, behind the one that says what becomes of a row."""
        change = [_TargetColumn("change", pa.string(), 0)] if self._maintained else []
        return [*change, *self._columns]

    def _statements(self, rows: Sequence[pa.RecordBatch]) -> Iterator[str]:
        """Deletes before inserts: another row may have the key from now on."""
        if not self._maintained:
            yield self._insert("")
            return
        if not self._key:
            yield f"DELETE FROM {self._table.sql}"
            yield self._insert(" WHERE c0 = '+'")
            return
        keys = [column for column in self._columns if column.name in self._key]
        # What may be NULL is compared so that no index helps: only rows that need it are.
        same = " AND ".join(f"t.{quoted(column.name)} = s.{column.staged}" for column in keys)
        delete = f"DELETE FROM {self._table.sql} t USING {_ROWS} s WHERE s.c0 = '-' AND "
        yield delete + same
        if any(batch.column(column.at).null_count for column in keys for batch in rows):
            same = " AND ".join(f"t.{quoted(column.name)} IS NOT DISTINCT FROM s.{column.staged}" for column in keys)
            yield f"{delete}num_nulls({', '.join(f's.{column.staged}' for column in keys)}) > 0 AND {same}"
        yield self._insert(" WHERE c0 = '+'" + (self._on_conflict() if self._proved else ""))

    def _insert(self, rest: str) -> str:
        names = ", ".join(quoted(column.name) for column in self._columns)
        values = ", ".join(column.value for column in self._columns)
        return f"INSERT INTO {self._table.sql} ({names}) SELECT {values} FROM {_ROWS}{rest}"

    def _on_conflict(self) -> str:
        others = [quoted(column.name) for column in self._columns if column.name not in self._key]
        action = "UPDATE SET " + ", ".join(f"{name} = EXCLUDED.{name}" for name in others) if others else "NOTHING"
        return f" ON CONFLICT ({', '.join(map(quoted, self._key))}) DO {action}"

    def close(self) -> None:
        if not self._lasting and not self._maintained:  # nobody will ask for the numbers of this run
            self._database.transaction(
                lambda cursor: run(cursor, f"DELETE FROM {self._commits.sql} WHERE {self._of_this_run}")
            )
        self._database.close()

    def abort(self, epoch: int) -> None:
        super().abort(epoch)
        self._database.close()

    # --- the table ---------------------------------------------------------------------------------------------------

    def _key_of(self, properties: SinkProperties, opening: Opening) -> tuple[str, ...]:
        """The key that is declared must be the one that changes come by."""
        by_name = {column.name.lower(): column.name for column in self._columns}
        declared = None if properties.key is None else [by_name.get(name.lower()) for name in properties.key]
        if declared is not None and None in declared:
            raise OptionError(
                f"key = '{', '.join(properties.key or ())}' names a column that the answer does not have",
                remedy=f"its columns are {', '.join(by_name.values())}",
            )
        if opening.key is None:
            if declared is None:
                raise OptionError(
                    "nothing says which columns of the answer name a row",
                    remedy="write key = '..' if there are some, or SELECT DISTINCT or GROUP BY in the query;"
                    " emit = 'changes' and 'lifetimes' need none",
                )
            return tuple(name for name in declared if name is not None)
        if declared is not None and set(declared) != set(opening.key):
            key = f"key = '{', '.join(opening.key)}'" if opening.key else "no key: it has one row"
            raise OptionError(
                f"the rows of the answer are not named by '{', '.join(properties.key or ())}'", remedy=f"write {key}"
            )
        return opening.key

    def _claim(self, cursor: Cursor, begins: bool) -> None:
        """The table is there, and this run writes to it. What an earlier run maintained is replaced when one begins."""
        run(cursor, f"SELECT pg_advisory_xact_lock({_CLAIM})")
        run(
            cursor,
            f'CREATE TABLE IF NOT EXISTS {self._commits.sql} ("table" text, run text, epoch bigint NOT NULL,'
            ' maintained boolean NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ("table", run))',
        )
        writers = query(cursor, f"SELECT run, maintained FROM {self._commits.sql} WHERE {self._of_table}")
        there = columns_of(cursor, self._table)
        if self.run in [writer for writer, _ in writers]:
            return
        if not begins and (self._maintained and writers):
            self._reject_lost()
        if any(maintained != self._maintained for _, maintained in writers):
            raise SinkError(
                f"{self._name} holds an answer that is {'appended to' if self._maintained else 'maintained'}",
                remedy="name another table, or drop this one and delete its rows in transom_commits",
            )
        if self._maintained and there:
            if not writers and query(cursor, f"SELECT 1 FROM {self._table.sql} LIMIT 1"):
                raise SinkError(
                    f"{self._name} has rows, and they are not of a query",
                    remedy="name another table, or empty this one",
                )
            run(cursor, f"DELETE FROM {self._table.sql}")
            run(cursor, f"DELETE FROM {self._commits.sql} WHERE {self._of_table}")
        version = int(query(cursor, "SELECT current_setting('server_version_num')")[0][0])
        if not there:
            self._create(cursor, version)
        self._check(cursor, there, version)
        run(
            cursor,
            f'INSERT INTO {self._commits.sql} ("table", run, epoch, maintained) VALUES ($1, $2, -1, $3)',
            *(self._table.name, self.run, self._maintained),
        )

    def _create(self, cursor: Cursor, version: int) -> None:
        columns = [f"{quoted(column.name)} {type_name(column.type)}" for column in self._columns]
        if self._key:
            unique = "UNIQUE NULLS NOT DISTINCT" if version >= _NULLS_IN_KEYS else "PRIMARY KEY"
            columns.append(f"{unique} ({', '.join(map(quoted, self._key))})")
        run(cursor, f"CREATE TABLE {self._table.sql} ({', '.join(columns)})")

    def _check(self, cursor: Cursor, there: Sequence[str], version: int) -> None:
        """Rejects a table that somebody else has created and that cannot take the answer."""
        missing = [column.name for column in self._columns if there and column.name not in there]
        if missing:
            raise SinkError(
                f"{self._name} has no column '{missing[0]}'",
                remedy="add it, or name a table that is not there: it is created",
            )
        if self._key and there and not self._has_unique(cursor, version):
            names = ", ".join(map(quoted, self._key))
            nulls = " NULLS NOT DISTINCT" if version >= _NULLS_IN_KEYS else ""
            raise SinkError(
                f"{self._name} does not keep its rows apart by {names}",
                remedy=f"ALTER TABLE {self._table.sql} ADD UNIQUE{nulls} ({names})",
            )
        self._stage(cursor, ())
        plan = cursor.adbc_statement
        plan.set_options(**{"adbc.postgresql.use_copy": "false"})
        query(cursor, f"EXPLAIN {self._insert('')}")  # the types fit
        plan.set_options(**{"adbc.postgresql.use_copy": "true"})

    def _has_unique(self, cursor: Cursor, version: int) -> bool:
        """A unique index that takes two rows with the same key for one, NULL or not."""
        nulls = "bool_or(i.indnullsnotdistinct)" if version >= _NULLS_IN_KEYS else "false"
        indexes = query(
            cursor,
            f"SELECT array_agg(a.attname::text), bool_and(a.attnotnull) OR {nulls} FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])"
            " WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indimmediate AND i.indisvalid"
            " AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
            self._table.sql,
        )
        return any(set(names) == set(self._key) and safe for names, safe in indexes)

    def _reject_lost(self) -> None:
        raise SinkError(
            f"{self._name} is not of this run any more: another one has begun to write to it",
            remedy="stop the other one; then start this one with an empty checkpoint folder, or name another table",
        )

    @property
    def _name(self) -> str:
        return f"the table {self._table.sql}"

    @property
    def _of_table(self) -> str:
        return f'"table" = {literal(self._table.name)}'

    @property
    def _of_this_run(self) -> str:
        return f"{self._of_table} AND run = {literal(self.run)}"


def _columns(opening: Opening) -> list[_TargetColumn]:
    """Those of the table, which calls a lifetime as tables do that have a history."""
    names = list(opening.schema.names)
    if opening.form == "lifetimes":
        names = unique_names([*names[:-2], "valid_from", "valid_to"])
    columns = [
        _TargetColumn(name, type_, at) for at, (name, type_) in enumerate(zip(names, opening.schema.types, strict=True))
    ]
    return columns[1:] if opening.form == "net" else columns


def _database(properties: SinkProperties) -> Database:
    return Database(properties.url, SinkError, f"the table {properties.table.sql} cannot be written to")


def check_start(declared: SinkDeclaration) -> None:
    """Rejects a server that does not answer."""
    database = _database(SinkProperties.of(declared))
    database.transaction(lambda cursor: run(cursor, "SELECT 1"), patience=0)
    database.close()
