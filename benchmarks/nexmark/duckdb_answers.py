"""Whole answers of benchmarks: DuckDB over the same files says what they are, and compares what was written with it.

Here DuckDB is a database like any other, with its optimiser and all cores: one query over all that ever came, not one
for every instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb


@dataclass(frozen=True)
class Digest:
    """Rows, and the sum of their hashes: equal for equal bags, whatever the order."""

    rows: int
    checksum: int


class Answers:
    """Relations by name, as SQL over files. Columns are compared by the type that is given for them."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:")

    def define(self, name: str, sql: str) -> None:
        """A view, so whatever is changed in the files shows."""
        self._row(f"CREATE OR REPLACE VIEW {name} AS {sql}")

    def value(self, sql: str) -> Any:
        row = self._row(sql)
        return None if row is None else row[0]

    def _row(self, sql: str) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = self._database.execute(sql).fetchone()
        except duckdb.InterruptException:  # its answer to a signal, which is no fault
            raise KeyboardInterrupt from None
        return row

    def digest(self, sql: str, columns: Mapping[str, str]) -> Digest:
        values = ", ".join(map(_quoted, columns))
        row = self._row(f"SELECT COUNT(*), COALESCE(SUM(hash({values})::HUGEINT), 0) FROM ({typed(sql, columns)})")
        assert row is not None
        return Digest(int(row[0]), int(row[1]))

    def differences(self, left: str, right: str, columns: Mapping[str, str]) -> int:
        """How many rows are in one of the bags alone."""
        a, b = typed(left, columns), typed(right, columns)
        count = self.value(f"SELECT COUNT(*) FROM ((({a}) EXCEPT ALL ({b})) UNION ALL (({b}) EXCEPT ALL ({a})))")
        return int(count)

    def __enter__(self) -> Answers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()


def files(folder: Path, pattern: str = "*.parquet") -> str:
    """All files of a folder as one relation, each row with the name of its file."""
    path = str(folder / pattern).replace("'", "''")
    return f"SELECT * FROM read_parquet('{path}', filename = true, union_by_name = true)"


def typed(sql: str, columns: Mapping[str, str]) -> str:
    """Times as microseconds: files say in two ways what is the same instant."""
    values = (
        f"{f'epoch_us({name})' if kind == 'TIMESTAMP' else f'CAST({name} AS {kind})'} AS {name}"
        for name, kind in zip(map(_quoted, columns), columns.values(), strict=True)
    )
    return f"SELECT {', '.join(values)} FROM ({sql})"


def _quoted(name: str) -> str:
    return f'"{name}"'
