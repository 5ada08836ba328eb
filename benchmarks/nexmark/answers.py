"""What the answers of NEXMark should be, by DuckDB over the same files, and whether a contestant has written that."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final

from benchmarks.nexmark.contestants import FLINK, OWN, declarations, question
from benchmarks.nexmark.data import COLUMNS, SIDE
from benchmarks.nexmark.duckdb_answers import Answers, Digest, files
from benchmarks.nexmark.queries import Query
from transom.pipeline.answer import output_key
from transom.session import Session, workspace_of

COPIES: Final = "copies"
"""How often a row of a table is in it: whoever takes away more than there was has less than none."""


class Arbiter:
    """The answers over the events of one folder."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._answers = Answers()
        self._digests: dict[str, Digest] = {}
        for name in COLUMNS:
            rows = files(source / name)
            if name != SIDE:
                rows = f"SELECT * REPLACE (make_timestamp(epoch_us(date_time)) AS date_time) FROM ({rows})"
            self._answers.define(name, rows)

    def rows(self, query: Query) -> int:
        """Of its input."""
        return sum(self._answers.value(f"SELECT COUNT(*) FROM {name}") for name in query.streams)

    def digest(self, query: Query) -> Digest:
        if query.name not in self._digests:
            self._digests[query.name] = self._answers.digest(self._expected(query), _columns(query))
        return self._digests[query.name]

    def digest_of(self, query: Query, kind: str, emit: str, out: Path) -> Digest:
        return self._answers.digest(self._output(query, kind, emit, out), _columns(query))

    def differences(self, query: Query, kind: str, emit: str, out: Path) -> int:
        """Rows of the one or the other alone."""
        rows = self._output(query, kind, emit, out)
        return self._answers.differences(self._expected(query), rows, _columns(query))

    def _expected(self, query: Query) -> str:
        rows = f"SELECT *, 1 AS {COPIES} FROM ({query.sql})" if query.keys else query.sql
        return self._complete(query, rows)

    def _output(self, query: Query, kind: str, emit: str, out: Path) -> str:
        folder = out / "out"
        pattern = "part-*" if kind == FLINK else "*.parquet"
        if not any(folder.glob(pattern)):
            nothing = ", ".join(f'NULL AS "{name}"' for name in _columns(query))
            return f"SELECT {nothing} WHERE FALSE"
        if not query.keys:
            return self._complete(query, files(folder, pattern))
        names, keys = ", ".join(query.columns), ", ".join(query.keys)
        if kind == FLINK:
            return _net(_debezium(folder, query), names)
        if kind == OWN:
            last = f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY batch DESC) = 1"
            return f"SELECT *, 1 AS {COPIES} FROM ({files(folder)}) {last}"
        if emit == "net" and (key := self._answer_key(query)):
            last = f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {', '.join(key)} ORDER BY filename DESC) = 1"
            return f"SELECT *, 1 AS {COPIES} FROM (SELECT * FROM ({files(folder)}) {last}) WHERE change = '+'"
        if emit == "latest":
            return f"SELECT *, 1 AS {COPIES} FROM ({files(folder)})"
        return _net(f"SELECT *, CASE change WHEN '+' THEN 1 ELSE -1 END AS {COPIES} FROM ({files(folder)})", names)

    def _answer_key(self, query: Query) -> tuple[str, ...] | None:
        """The columns by which Transom reports the net changes of an answer, if it knows any."""
        with Session() as session:
            text = declarations(self._source, query.reads) + question(query, self._source, "net")
            root = workspace_of(session).prepare(text)[-1].root
            assert root is not None
            return output_key(root, "net")

    def _complete(self, query: Query, rows: str) -> str:
        """Without the windows that the input leaves open, by the millisecond: others know no shorter time."""
        if not query.windowed:
            return rows
        ends = ", ".join(f"(SELECT MAX(date_time) FROM {name})" for name in query.streams)
        return f'SELECT * FROM ({rows}) WHERE epoch_us("at") <= epoch_us(LEAST({ends})) // 1000 * 1000'

    def __enter__(self) -> Arbiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.__exit__(kind, error, trace)


def _columns(query: Query) -> dict[str, str]:
    return query.columns | ({COPIES: "BIGINT"} if query.keys else {})


def _net(changes: str, names: str) -> str:
    return f"SELECT {names}, SUM({COPIES}) AS {COPIES} FROM ({changes}) GROUP BY {names} HAVING SUM({COPIES}) <> 0"


def _debezium(folder: Path, query: Query) -> str:
    """Flink writes changes as Debezium does: `before` is gone, `after` has come."""
    kinds = ", ".join(f'"{name}" {"VARCHAR" if kind == "TIMESTAMP" else kind}' for name, kind in query.columns.items())
    path = str(folder / "part-*").replace("'", "''")
    lines = (
        f"read_json('{path}', format = 'newline_delimited', "
        f"columns = {{'before': 'STRUCT({kinds})', 'after': 'STRUCT({kinds})', 'op': 'VARCHAR'}})"
    )

    def side(which: str, copies: int) -> str:
        values = ", ".join(f'CAST({which}."{name}" AS {kind}) AS "{name}"' for name, kind in query.columns.items())
        return f"SELECT {values}, {copies} AS {COPIES} FROM {lines} WHERE {which} IS NOT NULL"

    return f"{side('before', -1)} UNION ALL {side('after', 1)}"
