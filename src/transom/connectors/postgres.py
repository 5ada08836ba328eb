"""A PostgreSQL database as both ends of a query use it: where it is, transactions that outlive a restart of the server,
names and types. Rows move by ADBC, in bulk and as Arrow; `pip install transom[postgres]` brings it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pyarrow as pa

from transom.core.errors import OptionError, TransomError
from transom.core.schema import is_array, is_nested, is_struct

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

T = TypeVar("T")

_PATIENCE: Final = 30.0
"""So many seconds a server that went away is waited for."""

_LONGEST_NAME: Final = 63
"""Bytes; PostgreSQL cuts the rest off without an error."""

_PASSING: Final = ("08", "57P0", "40001", "40P01", "53300", "55006")
"""SQLSTATEs of what passes: no connection, a restart, a transaction that lost against another, too many clients, a slot
that somebody else is just reading."""

_SHUT_OUT: Final = {
    r"password authentication failed|no password supplied|role \S+ does not exist": "check user and password of url",
    r"database \S+ does not exist": "check the name of the database in the url, or create it",
    r"no pg_hba.conf entry": "have pg_hba.conf of the server let the user of the url in from here",
}
"""What a connection is rejected with for good, and what to do. The driver has no SQLSTATE then, so a server that speaks
another language is taken for one that is away."""

_TYPES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.duration("us"): "interval",
}


def quoted(name: str) -> str:
    """An identifier as it is, whatever is in it.

    >>> print(quoted('a "b"'))
    "a ""b""\"
    """
    if len(name.encode()) > _LONGEST_NAME or "\0" in name or not name:
        raise OptionError(
            f"PostgreSQL has no names like '{name}'",
            remedy=f"choose one of at most {_LONGEST_NAME} bytes; a column gets it by AS",
        )
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """
    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def type_name(type_: pa.DataType) -> str:
    """The type of a column that holds such values. Arrays of plain values are arrays, all else that is nested is JSON:
    arrays of arrays would have to be rectangles.

    >>> type_name(pa.decimal128(10, 2)), type_name(pa.list_(pa.int32()))
    ('numeric(10, 2)', 'integer[]')
    """
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})"
    if is_array(type_) and not is_nested(type_.value_type):
        return f"{type_name(type_.value_type)}[]"
    return "jsonb" if is_array(type_) or is_struct(type_) else _TYPES[type_]


@dataclass(frozen=True)
class Table:
    """`schema` None: the first one of the search path."""

    schema: str | None
    name: str

    @classmethod
    def of(cls, text: str, schema: str | None = None) -> Table:
        """
        >>> Table.of("sales.orders"), Table.of('"a.b"', "sales")
        (Table(schema='sales', name='orders'), Table(schema='sales', name='a.b'))
        """
        parts = re.fullmatch(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)', text)
        if parts is None or (parts[1] and schema):
            raise OptionError(
                f"table = '{text}' names no table",
                remedy="write table = 'orders' or 'schema.orders', with double quotes around a name that has a dot",
            )
        names = [None if part is None else _unquoted(part) for part in parts.groups()]
        return cls(schema or names[0], names[1] or "")

    @property
    def sql(self) -> str:
        return quoted(self.name) if self.schema is None else f"{quoted(self.schema)}.{quoted(self.name)}"

    def beside(self, name: str) -> Table:
        return Table(self.schema, name)


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


class Database:
    """A connection that is made when it is needed, and again when it broke."""

    def __init__(self, url: str, error: type[TransomError], what: str) -> None:
        """An `error` says that `what` went wrong."""
        self._url = url
        self._error = error
        self._what = what
        self._connection: Connection | None = None

    def transaction(self, work: Callable[[Cursor], T], patience: float = _PATIENCE) -> T:
        """What `work` does, committed. It is done again if the server went away meanwhile, even in the commit: so it
        must find out what it has done."""
        until, pause = time.monotonic() + patience, 0.05
        while True:
            try:
                return self._try(work)
            except _driver().Error as error:
                self.close()
                if not _passes(error) or time.monotonic() + pause > until:
                    self._raise(error)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _try(self, work: Callable[[Cursor], T]) -> T:
        if self._connection is None:
            self._connection = _driver().connect(self._url)
        try:
            with self._connection.cursor() as cursor:
                done = work(cursor)
            self._connection.commit()
            return done
        except BaseException:
            with suppress(_driver().Error):
                self._connection.rollback()
            raise

    def close(self) -> None:
        if self._connection is not None:
            with suppress(_driver().Error):
                self._connection.close()
            self._connection = None

    def _raise(self, error: Exception) -> NoReturn:
        state = getattr(error, "sqlstate", None)
        remedy = _shut_out(error) or _REMEDIES.get(
            state, "check that the server runs, and what the user of the url may do"
        )
        raise self._error(f"{self._what}: {self._message(error)}", remedy=remedy) from None

    def _message(self, error: Exception) -> str:
        """What the server said, without what we had asked it, and without the password."""
        text = str(error).split("\nQuery was:")[0]
        text = re.sub(r"^.*?(ERROR|FATAL):\s+", "", text, count=1, flags=re.DOTALL)
        text = re.sub(r"^\w+: (\[libpq\] )?", "", text)
        text = re.sub(r"\. SQLSTATE: \w+$", "", text.strip())
        secrets = re.findall(r"://[^:/@]*:([^@]+)@|password=([^\s&]+)", self._url)
        for secret in [self._url, *filter(None, (part for each in secrets for part in each))]:
            text = text.replace(secret, "***")
        return " ".join(text.split())


_REMEDIES: Final[dict[str | None, str]] = {
    "3F000": "create the schema, or name one that is there",
    "42501": "let the user of the url create tables and write there, or create the table for him",
    "22021": "PostgreSQL's text cannot hold the character 0: replace it in the query",
    "22P05": "PostgreSQL's JSON cannot hold the character 0: replace it in the query",
    "55000": "set wal_level = logical in the server and restart it; a slot that the server gave up is dropped",
    "55006": "give every query a slot of its own",
    "42704": "start the query anew with an empty checkpoint folder: what it names is not there",
    "23505": "the key does not name a row of the answer: name more columns, or SELECT DISTINCT them",
    "42804": "change the type of the column, or CAST in the query; a table that is not there is created",
    "23502": "allow NULL in that column of the table, or leave such rows out in the query",
}


def query(cursor: Cursor, text: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement that has some."""
    cursor.execute(text, parameters=values or None)
    return cursor.fetchall()


def run(cursor: Cursor, text: str, *values: Any) -> None:
    """A statement without rows."""
    cursor.execute(text, parameters=values or None)


def columns_of(cursor: Cursor, table: Table) -> list[str]:
    """The names of the columns of a table; none if it is not there."""
    rows = query(
        cursor,
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum",
        table.sql,
    )
    return [name for (name,) in rows]


def check_installed() -> None:
    """Raises OptionError where the driver is not there."""
    _driver()


def required(properties: dict[str, str], names: Sequence[str]) -> list[str]:
    """The values of properties that must be there."""
    examples = {"url": "url = '$PGURL', or 'postgresql://user@host/database'", "table": "table = 'answers'"}
    for name in names:
        if not properties.get(name):
            raise OptionError(f"connector 'postgres' needs a {name}", remedy=f"write {examples[name]}")
    return [properties[name] for name in names]


def _passes(error: Exception) -> bool:
    state: str | None = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, _driver().OperationalError) and _shut_out(error) is None
    return state.startswith(_PASSING)


def _shut_out(error: Exception) -> str | None:
    text = str(error)
    return next((remedy for said, remedy in _SHUT_OUT.items() if re.search(said, text)), None)


def _driver() -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise OptionError(
            "connector 'postgres' needs the driver of PostgreSQL", remedy="pip install 'transom[postgres]'"
        ) from None
    return dbapi
