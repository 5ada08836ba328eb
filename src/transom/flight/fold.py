"""Rows that are counted, added up by DuckDB: equal rows are one, as often as they are there."""

from __future__ import annotations

from typing import Any, Final

import duckdb
import pyarrow as pa

COUNT: Final = "#"
"""How often a row is there; no column of a query is called so, for a name is made of letters."""

_SAFE: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "memory_limit": "1GB",
    "threads": "1",
}


def database() -> duckdb.DuckDBPyConnection:
    """An empty one, in memory, that reaches neither files nor the network nor our variables."""
    connection = duckdb.connect(":memory:", config=_SAFE)
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET timezone = 'UTC'")
    return connection


def quoted(name: str) -> str:
    """
    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def counted_sql(tables: str, columns: pa.Schema) -> str:
    """Equal rows of tables with a count as one, where any are left."""
    names = ", ".join(map(quoted, columns.names))
    count = quoted(COUNT)
    return (
        f"SELECT {names}, CAST(SUM({count}) AS BIGINT) AS {count} FROM ({tables}) "
        f"GROUP BY {names} HAVING SUM({count}) > 0"
    )


def folded(base: pa.Table, changes: pa.Table, columns: pa.Schema) -> pa.Table:
    """
    >>> columns = pa.schema([("a", pa.string())])
    >>> base = pa.table({"a": ["x", None], COUNT: [2, 1]})
    >>> changes = pa.table({"a": [None, "x", "y"], COUNT: [-1, -1, 1]})
    >>> sorted(folded(base, changes, columns).to_pylist(), key=str)
    [{'a': 'x', '#': 1}, {'a': 'y', '#': 1}]
    """
    with database() as connection:
        connection.register("base", base)
        connection.register("changes", changes)
        both = "SELECT * FROM base UNION ALL SELECT * FROM changes"
        counted: Any = connection.sql(counted_sql(both, columns)).to_arrow_table()
    return counted.cast(base.schema)
