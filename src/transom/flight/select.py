"""A query over answers as they are now, or as they were: `SELECT .. FROM hot AS OF TIMESTAMP '2024-05-01 10:00:00'`.

The text comes from anybody. It is run by a DuckDB of its own, in memory, that has the answers as views and nothing
else: no files, no network, no extensions, no settings to change; it reads, and is interrupted when it takes too long.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import duckdb
import pyarrow as pa

from transom.core.errors import QueryError, TransomError
from transom.core.schema import TIMESTAMP
from transom.core.text import visible
from transom.flight.answer_history import AnswerHistory, Snapshot
from transom.flight.fold import COUNT, counted_sql, database, quoted

SECONDS: Final = 60.0
"""The most that a query may take."""

MOST_LETTERS: Final = 20_000
MOST_NESTED: Final = 40
"""Brackets within brackets: to read very many takes DuckDB minutes, in which nothing interrupts it."""

_ROWS_OF_A_BATCH: Final = 65_536

_AS_OF: Final = re.compile(
    r"""
      (?P<name> "(?:[^"]|"")*" | [^\W\d]\w* ) \s+ (?: FOR \s+ SYSTEM_TIME \s+ )? AS \s+ OF \s+
      (?: TIMESTAMP \s* )? ' (?P<at> [^']* ) '
    | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(\w*)\$.*?\$\3\$
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""`AS OF` behind a name; and whatever it could stand in without being meant: strings, names and comments."""


def without_as_of(text: str) -> tuple[str, dict[int, str]]:
    """The text with a schema for each instant that it names, and the instants by the number of their schema.

    >>> without_as_of("SELECT ' x AS OF ''1''' FROM hot AS OF TIMESTAMP '2024-05-01' h -- y AS OF '2'")
    ('SELECT \\' x AS OF \\'\\'1\\'\\'\\' FROM "as of 1".hot h -- y AS OF \\'2\\'', {1: '2024-05-01'})
    """
    instants: dict[int, str] = {}

    def put(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        number = next((n for n, at in instants.items() if at == match["at"]), len(instants) + 1)
        instants[number] = match["at"]
        return f'"as of {number}".{match["name"]}'

    return _AS_OF.sub(put, text), instants


def _check_text(text: str) -> None:
    """
    >>> _check_text("SELECT (1), '" + "(" * 99 + "'")
    """
    if len(text) > MOST_LETTERS:
        raise QueryError("the query is too long", remedy=f"write at most {MOST_LETTERS:,} letters")
    depth = 0
    for letter in _AS_OF.sub("", text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth > MOST_NESTED:
            raise QueryError(
                "the query is nested too deeply", remedy=f"write at most {MOST_NESTED} brackets in another"
            )


class Selected:
    """The rows of a query, which are made as they are taken."""

    def __init__(self, text: str, answers: Mapping[str, AnswerHistory], seconds: float = SECONDS) -> None:
        _check_text(text)
        sql, instants = without_as_of(text)
        self._connection = database()
        self._timer = threading.Timer(seconds, self._connection.interrupt)
        self._timer.daemon = True
        try:
            for name, answer in answers.items():
                if answer.offered:
                    self._offer("main", name, answer, None)
            for number, at in instants.items():
                self._connection.execute(f'CREATE SCHEMA "as of {number}"')
                for name, answer in answers.items():
                    if answer.offered:
                        self._offer(f"as of {number}", name, answer, _instant(at))
            self._connection.execute("SET lock_configuration = true")
            self._timer.start()
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise QueryError("that is not one query", remedy="write SELECT .. FROM the name of a query")
            self._reader: Any = self._connection.sql(statements[0].query).to_arrow_reader(_ROWS_OF_A_BATCH)
        except BaseException as error:
            self.close()
            if isinstance(error, duckdb.Error):
                raise _ours(error, answers) from None
            raise

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._reader
        except (duckdb.Error, pa.ArrowException) as error:
            raise _ours(error, {}) from None
        finally:
            self.close()

    def close(self) -> None:
        self._timer.cancel()
        self._connection.close()

    def _offer(self, schema: str, name: str, answer: AnswerHistory, instant: int | None) -> None:
        """A view, or one that says why there is none to whoever reads it."""
        view = f"{quoted(schema)}.{quoted(name)}"
        try:
            snapshot = answer.at(instant)
        except QueryError as error:
            why = f"{error.what}; {error.remedy}".replace("'", "''")
            columns = ", ".join(f"error('{why}') AS {quoted(column)}" for column in answer.columns.names)
            self._connection.execute(f"CREATE VIEW {view} AS SELECT {columns}")
            return
        self._connection.execute(f"CREATE VIEW {view} AS {self._rows_sql(f'{schema} {name}', snapshot)}")

    def _rows_sql(self, name: str, snapshot: Snapshot) -> str:
        self._connection.register(f"{name} base", snapshot.base)
        rows = f"SELECT * FROM {quoted(f'{name} base')}"
        if snapshot.changes is None:
            return rows
        self._connection.register(f"{name} changes", snapshot.changes)
        columns = pa.schema([field for field in snapshot.base.schema if field.name != COUNT])
        both = f"{rows} UNION ALL SELECT * FROM {quoted(f'{name} changes')}"
        names = ", ".join(map(quoted, columns.names))
        return (
            f"SELECT {names} FROM (SELECT {names}, UNNEST(RANGE({quoted(COUNT)})) FROM ({counted_sql(both, columns)}))"
        )


def _instant(text: str) -> int:
    try:
        return int(pa.scalar(text).cast(TIMESTAMP).value)
    except (pa.ArrowException, TypeError):
        raise QueryError(f"'{visible(text)}' is no instant", remedy="write it as 2024-05-01 10:00:00") from None


def _ours(error: BaseException, answers: Mapping[str, Any]) -> TransomError:
    what = visible(str(error).splitlines()[0] if str(error) else type(error).__name__)
    if "INTERRUPT" in what:
        return QueryError("the query took too long", remedy=f"ask for less: {SECONDS:.0f} seconds are the most")
    names = ", ".join(sorted(answers)) or "none"
    return QueryError(what, remedy=f"answers are: {visible(names)}")
