"""A table of PostgreSQL as a changing table: its rows as they are when a run begins, then every change, from a logical
slot of the database.

A position is a place in the log of the database (LSN). The slot keeps the log from the last checkpoint on: whoever
resumes reads on there, and the same changes again. A transaction is one instant, that of its commit. Transactions that
the rows of the beginning already show are known by the snapshot in which these were read, and skipped.

| property | meaning |
| --- | --- |
| url, table, schema | as of the sink |
| slot.name | the slot, of this query alone; it is created if it is not there |
| publication | what the slot publishes, by default of the same name; created if it is not there |
| metadata.COLUMN | `timestamp`: when a change was committed; `COLUMN TIMESTAMP METADATA FROM 'timestamp'` writes it |

Whoever runs the query reads the slot, in one process: only one can at a time.
"""

from __future__ import annotations

import json
import re
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from transom.connectors.conform import column_index, fold
from transom.connectors.connector import Declaration, Limits, Plan, Source, Split, SplitRows
from transom.connectors.pgoutput import PgOutput, TextRow, Transaction, read_array
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
)
from transom.connectors.properties import reject_unknown
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.core.errors import OptionError, SourceError
from transom.core.schema import BOOLEAN, TIMESTAMP, VARCHAR, is_array, sql_name

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

METADATA: Final = "metadata."
_SLOT: Final = re.compile(r"[a-z0-9_]{1,63}")
_AT_ONCE: Final = 100_000
"""About so many changes are taken from the slot at a time, and whole transactions."""

_SETTLE_EVERY: Final = 1.0
"""Seconds: to move a slot on costs the database about as much as to read the changes does."""

_SESSION: Final = ("SET LOCAL TIME ZONE 'UTC'", "SET LOCAL datestyle = 'ISO'", "SET LOCAL intervalstyle = 'postgres'")


@dataclass(frozen=True)
class _Snapshot:
    """What a snapshot of the database shows, of transactions that end before `until` in the log."""

    least: int
    behind: int
    open: frozenset[int]
    until: int

    def shows(self, transaction: Transaction) -> bool:
        """Numbers of transactions are 64 bits long, and the log has the lower 32 of them.

        >>> snapshot = _Snapshot(2**32 - 2, 2**32 + 5, frozenset({2**32 + 1}), 100)
        >>> [snapshot.shows(Transaction(xid, 50, 0)) for xid in (2**32 - 3, 0, 1, 4, 5)]
        [True, True, False, True, False]
        """
        if transaction.end > self.until:
            return False
        number = (self.behind & ~0xFFFFFFFF) | transaction.xid
        number -= (number > self.behind + (1 << 31)) << 32
        return number < self.least or (number < self.behind and number not in self.open)

    def packed(self) -> list[Any]:
        return [self.least, self.behind, sorted(self.open), self.until]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> _Snapshot:
        least, behind, still_open, until = packed
        return cls(least, behind, frozenset(still_open), until)


class PostgresChanges(Source):
    def __init__(self, declared: Declaration) -> None:
        check_changes(declared)
        properties = declared.properties
        self._url, table = required(properties, ["url", "table"])
        self._table = Table.of(table, properties.get("schema"))
        self._slot = properties["slot.name"]
        self._publication = properties.get("publication", self._slot)
        self._declared = declared
        self._time = column_index(declared.columns, declared.time_column or "")
        self._sign = column_index(declared.columns, declared.change or "")
        self._names = [c.name for at, c in enumerate(declared.columns) if at not in (self._time, self._sign)]
        self._fitter = RowFitter(declared.columns, time_column=declared.time_column, name=self._table.name)
        self._database = Database(self._url, SourceError, f"the changes of the table {self._table.sql} cannot be read")
        weakref.finalize(self, self._database.close)  # a source is let go of without a word
        self._where: tuple[str, str] | None = None
        self._first: tuple[Position, list[TextRow], int] | None = None
        self._fetched: list[Transaction] = []
        self._fetched_from: int | None = None
        self._settled = 0
        self._settled_at = 0.0
        self._planned: dict[str, list[Transaction]] = {}

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    # --- how far -----------------------------------------------------------------------------------------------------

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """Whole transactions, so that what is over the limit is no more than one; and the rows of the beginning at
        once: they are gone when they have been read."""
        if not position:
            begins, first, _ = self._begin()
            return Plan(begins, (Split(self._table.name, "", len(first)),) if first else (), ended=False)
        at, snapshot = _lsn(position["lsn"]), position.get("snapshot")
        taken, reached, ended = self._take(at, limits)
        latest, rows = int(position["time"]), 0
        shown = None if snapshot is None else _Snapshot.unpacked(snapshot)
        kept = []
        for each in taken:
            if shown is None or not shown.shows(each):
                latest = max(latest, each.time)
                kept.append(each)
                rows += len(each.rows)
        after: dict[str, Any] = {"lsn": _lsn_text(reached), "time": latest}
        if shown is not None and _lsn(after["lsn"]) <= shown.until:
            after["snapshot"] = snapshot
        splits: tuple[Split, ...] = ()
        if rows:
            key = json.dumps([position, after["lsn"]])
            self._planned = {key: kept}
            splits = (Split(self._table.name, key, rows),)
        return Plan(after, splits, ended)

    def _take(self, at: int, limits: Limits) -> tuple[list[Transaction], int, bool]:
        """The next transactions behind a place, where they end, and whether there are no more. Others that were fetched
        with them wait for whoever goes on there; whoever asks for another place has them fetched from the slot."""
        reached, ended = at, False
        if not self._fetched or at != self._fetched_from:
            self._fetched, reached, ended = self._fetch(at)
        rows = count = 0
        for each in self._fetched:
            rows += len(each.rows)
            if count and limits.rows is not None and rows > limits.rows:
                break
            count += 1
        taken, self._fetched = self._fetched[:count], self._fetched[count:]
        if self._fetched:
            reached, ended = taken[-1].end, False
        elif taken:
            reached = max(reached, taken[-1].end)
        self._fetched_from = reached
        return taken, reached, ended

    def settle(self, position: Position) -> None:
        """The database need not keep what is before."""
        now = time.monotonic()
        if "lsn" not in position or _lsn(position["lsn"]) <= self._settled or now < self._settled_at + _SETTLE_EVERY:
            return
        lsn = position["lsn"]
        # The slot does not go back, and another run may have moved it on: that is found when it is read.
        self._database.transaction(
            lambda cursor: query(
                cursor,
                f"SELECT pg_replication_slot_advance(slot_name, '{lsn}')::text FROM pg_replication_slots"
                f" WHERE slot_name = {literal(self._slot)} AND confirmed_flush_lsn < '{lsn}'",
            )
        )
        self._settled, self._settled_at = _lsn(lsn), now

    def _begin(self) -> tuple[Position, list[TextRow], int]:
        """Once for a run: the slot first, then the rows, so that no change lies between them."""
        if self._first is None:
            self._database.transaction(lambda cursor: run(cursor, "SELECT 1"), patience=0)  # the url may be wrong
            self._database.transaction(self._publish)
            self._database.transaction(self._make_slot)
            self._first = self._database.transaction(self._snapshot)
        return self._first

    def _publish(self, cursor: Cursor) -> None:
        """The slot reads a publication as it was when the changes were made, so it has to be there before."""
        schema, name = self._find(cursor)
        table = f"{quoted(schema)}.{quoted(name)}"
        ((identity,),) = query(
            cursor, f"SELECT relreplident::text FROM pg_class WHERE oid = {literal(table)}::regclass"
        )
        if identity != "f" and not self._declared.primary_key:
            raise SourceError(
                f"the log of PostgreSQL does not say what rows of {table} were before they change",
                remedy=f"ALTER TABLE {table} REPLICA IDENTITY FULL, or declare its PRIMARY KEY",
            )
        if identity == "n":
            raise SourceError(
                f"the table {table} has no replica identity, so that nothing can be changed in it while it is followed",
                remedy=f"ALTER TABLE {table} REPLICA IDENTITY FULL",
            )
        there = query(cursor, f"SELECT 1 FROM pg_publication WHERE pubname = {literal(self._publication)}")
        if not there:
            run(
                cursor,
                f"CREATE PUBLICATION {quoted(self._publication)} FOR TABLE {table}"
                " WITH (publish_via_partition_root = true)",
            )

    def _make_slot(self, cursor: Cursor) -> None:
        slots = query(cursor, f"SELECT plugin::text FROM pg_replication_slots WHERE slot_name = {literal(self._slot)}")
        if not slots:
            query(
                cursor,
                f"SELECT lsn::text FROM pg_create_logical_replication_slot({literal(self._slot)}, 'pgoutput')",
            )
        elif slots != [("pgoutput",)]:
            raise SourceError(
                f"the slot '{self._slot}' is not one of pgoutput", remedy="name another one, which will be created"
            )

    def _snapshot(self, cursor: Cursor) -> tuple[Position, list[TextRow], int]:
        run(cursor, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for setting in (*_SESSION, "SET LOCAL synchronous_commit = 'local'"):
            run(cursor, setting)
        ((text, now),) = query(
            cursor, "SELECT pg_current_snapshot()::text, (extract(epoch FROM now()) * 1000000)::bigint"
        )
        least, behind, still_open = text.split(":")
        schema, name = self._find(cursor)
        there = columns_of(cursor, Table(schema, name))
        selected = ", ".join(f"{quoted(column)}::text" for column in self._spelled(there))
        cursor.execute(f"SELECT {selected} FROM {quoted(schema)}.{quoted(name)}")
        rows = [list(row) for row in cursor.fetchall()]
        ((until, at),) = query(
            cursor,
            "SELECT pg_current_wal_insert_lsn()::text, confirmed_flush_lsn::text FROM pg_replication_slots"
            f" WHERE slot_name = {literal(self._slot)}",
        )
        # With this commit all of the log before it is on the disk: no crash makes a number come again.
        query(cursor, "SELECT pg_logical_emit_message(true, 'transom', '')::text")
        numbers = frozenset(int(each) for each in still_open.split(",") if each)
        snapshot = _Snapshot(int(least), int(behind), numbers, _lsn(until))
        return {"lsn": at, "time": int(now), "snapshot": snapshot.packed()}, rows, int(now)

    def _spelled(self, there: Sequence[str]) -> list[str]:
        spelled = []
        for wanted in self._names:
            named = [name for name in there if name == wanted] or [name for name in there if fold(name) == fold(wanted)]
            if not named:
                raise SourceError(
                    f"the table {self._table.sql} has no column '{wanted}'", remedy=f"it has {', '.join(there)}"
                )
            spelled.append(named[0])
        return spelled

    def _find(self, cursor: Cursor) -> tuple[str, str]:
        """The schema and name by which the log knows the table."""
        if self._where is None:
            tables = query(
                cursor,
                "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                f" WHERE c.oid = to_regclass({literal(self._table.sql)})",
            )
            if not tables:
                raise SourceError(f"there is no table {self._table.sql}", remedy="create it, or name another one")
            self._where = tables[0][0], tables[0][1]
        return self._where

    def _fetch(self, at: int, to: int = 0) -> tuple[list[Transaction], int, bool]:
        """Transactions that end behind a place, those that end at `to` among them; how far the log was looked through,
        and whether that is all."""
        most = _AT_ONCE
        while True:
            transactions, reached, ended = self._database.transaction(partial(self._peek, at=at, most=most))
            if ended or (transactions and transactions[-1].end >= to):
                return transactions, reached, ended
            most *= 2  # so many lie before the place, which the slot still has

    def _peek(self, cursor: Cursor, at: int, most: int) -> tuple[list[Transaction], int, bool]:
        for setting in _SESSION:
            run(cursor, setting)
        ((until,),) = query(cursor, "SELECT pg_current_wal_flush_lsn()::text")
        if _lsn(until) <= at:
            return [], at, True
        reader = PgOutput(self._find(cursor), self._names, bool(self._declared.primary_key))
        cursor.execute(
            "SELECT xid::text::bigint, data FROM pg_logical_slot_peek_binary_changes("
            f"{literal(self._slot)}, '{until}', {most}, 'proto_version', '1',"
            f" 'publication_names', {literal(quoted(self._publication))})"
        )
        table = cursor.fetch_arrow_table()
        messages = zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)
        transactions = [each for each in reader.transactions(messages) if each.end > at]
        # After it was read: whoever has moved the slot on before has taken changes away.
        confirmed = query(
            cursor,
            f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = {literal(self._slot)}",
        )
        if not confirmed or _lsn(confirmed[0][0]) > at:
            raise SourceError(
                f"the slot '{self._slot}' has been moved on by somebody else: changes of {self._table.sql} are gone"
                " that were not read",
                remedy="give every query a slot of its own, and start this one anew with an empty checkpoint folder",
            )
        ended = len(table) < most
        reached = max([_lsn(until) if ended else at, *(each.end for each in transactions[-1:])])
        return transactions, reached, ended

    # --- rows --------------------------------------------------------------------------------------------------------

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        if not split.at:
            _, rows, now = self._begin()
            yield self._fit(rows, ["+"] * len(rows), [now] * len(rows))
            return
        position, behind = json.loads(split.at)
        transactions = self._planned.get(split.at)
        if transactions is None:
            stop, shown = _lsn(behind), position.get("snapshot")
            fetched, _, _ = self._fetch(_lsn(position["lsn"]), stop)
            snapshot = None if shown is None else _Snapshot.unpacked(shown)
            transactions = [each for each in fetched if each.end <= stop and not (snapshot and snapshot.shows(each))]
        rows, signs, times, latest = [], [], [], position["time"]
        for each in transactions:
            latest = max(latest, each.time)  # commits are in order, their clocks need not be
            rows += each.rows
            signs += each.signs
            times += [latest] * len(each.rows)
        yield self._fit(rows, signs, times)

    def _fit(self, rows: Sequence[TextRow], signs: Sequence[str], times: Sequence[int]) -> SplitRows:
        of_table = iter(zip(*rows, strict=True)) if rows else iter([()] * len(self._names))
        columns: list[pa.Array] = []
        for at, column in enumerate(self._declared.columns):
            if at == self._time:
                columns.append(pa.array(times, pa.int64()).cast(TIMESTAMP))
            elif at == self._sign:
                columns.append(pa.array(signs, VARCHAR))
            else:
                columns.append(_texts(next(of_table), column.type))
        return self._fitter.fit(columns, 0)


def _texts(values: Sequence[str | None], type_: pa.DataType) -> pa.Array:
    """As the text of files is: arrays as JSON, booleans as words."""
    if type_ == BOOLEAN:
        words = {"t": "true", "f": "false"}
        values = [None if value is None else words.get(value, value) for value in values]
    elif is_array(type_):
        values = [
            value if value is None or not value.startswith(("{", "[")) else _json_array(value) for value in values
        ]
    return pa.array(values, VARCHAR)


def _json_array(text: str) -> str:
    """What jsonb has for an array stays as it is."""
    return text if text.startswith("[") and "]={" not in text else json.dumps(read_array(text), ensure_ascii=False)


def _lsn(text: str) -> int:
    """
    >>> _lsn("1/A0"), _lsn_text(_lsn("1/A0"))
    (4294967456, '1/A0')
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def _lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def check_changes(declared: Declaration) -> None:
    """Rejects a wrong declaration, and asks no database."""
    properties = {name: text for name, text in declared.properties.items() if not name.startswith(METADATA)}
    reject_unknown(
        properties,
        ["connector", "url", "table", "schema", "slot.name", "publication"],
        "a changing table of connector 'postgres'",
    )
    if declared.change is None or "slot.name" not in properties:
        raise OptionError(
            f"'{declared.name}' changes with time, and a table of PostgreSQL without a slot is read once, when a run"
            " begins",
            remedy="write CREATE TABLE with 'slot.name' = '..' to follow its changes, or without a WATERMARK",
        )
    if not _SLOT.fullmatch(properties["slot.name"]):
        raise OptionError(
            f"PostgreSQL has no slots called '{properties['slot.name']}'",
            remedy="a slot has small letters, digits and _, at most 63 of them",
        )
    times = {
        name.removeprefix(METADATA): what for name, what in declared.properties.items() if name.startswith(METADATA)
    }
    for name, what in times.items():
        if what.lower() != "timestamp" or fold(name) != fold(declared.time_column or ""):
            raise OptionError(
                f"a change of PostgreSQL has no '{what}' for column '{name}'",
                remedy="declare the time column as ts TIMESTAMP METADATA FROM 'timestamp'",
            )
    time_column = declared.columns[column_index(declared.columns, declared.time_column or "")]
    if not times or time_column.type != TIMESTAMP:
        raise OptionError(
            "the time of a change is when it was committed, which is in no column of the table"
            if not times
            else f"the time column is {sql_name(time_column.type)}",
            remedy=f"declare it as {declared.time_column} TIMESTAMP METADATA FROM 'timestamp'",
        )
    required(properties, ["url", "table"])
    check_installed()
