"""Two streams and a table as files in every format, a query over them, and short ways to run it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

FORMATS = ["parquet", "csv", "jsonl"]
START = datetime(2024, 5, 1)

Rows = list[dict[str, Any]]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def heat(count: int = 40) -> Rows:
    """A reading a second of five rooms in turn, two of every ten in disorder."""
    seconds = [i - 1.5 if i % 10 in (3, 7) else i for i in range(count)]
    return [{"ts": at(s), "room": i % 5, "celsius": 20.0 + i % 7} for i, s in enumerate(seconds)]


def smoke(count: int = 25) -> Rows:
    return [{"ts": at(2 * i), "room": i * 2 % 5, "density": i % 4} for i in range(count)]


def write_rows(path: Path, rows: Rows) -> None:
    """A file in the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=7)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


def read_rows(path: Path) -> list[tuple[str, ...]]:
    """The rows of a file or of the parts of a folder, in order, all values as text."""
    files = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
    rows: list[tuple[str, ...]] = []
    for file in files:
        if file.suffix == ".parquet":
            records: Iterable[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
        elif file.suffix == ".csv":
            options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
            records = pyarrow.csv.read_csv(file, convert_options=options).to_pylist() if file.stat().st_size else []
        else:
            records = [json.loads(line) for line in file.read_text().splitlines()]
        rows += [tuple(str(value) for value in row.values()) for row in records]
    return rows


def declarations(folder: Path, file_format: str, batch_rows: int = 3) -> str:
    return f"""
        SET batch_rows = {batch_rows};
        CREATE STREAM heat (ts TIMESTAMP, room INTEGER, celsius DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
            WITH (connector = 'files', path = '{folder}/heat', format = '{file_format}', late = 'dead_letter');
        CREATE STREAM smoke (ts TIMESTAMP, room INTEGER, density INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{folder}/smoke.{file_format}');
        CREATE TABLE rooms (room INTEGER, name VARCHAR)
            WITH (connector = 'files', path = '{folder}/rooms.{file_format}');
    """


QUERY = """
    SELECT r.name, COUNT(*) AS n, MAX(h.celsius) AS celsius
    FROM heat [RANGE 5 SECONDS] AS h, smoke [ROWS 4] AS s, rooms AS r
    WHERE h.room = s.room AND h.room = r.room GROUP BY r.name
"""


def write_inputs(folder: Path, file_format: str) -> None:
    rows = heat()
    write_rows(folder / "heat" / f"1.{file_format}", rows[:17])
    write_rows(folder / "heat" / f"2.{file_format}", rows[17:])
    write_rows(folder / f"smoke.{file_format}", smoke())
    write_rows(folder / f"rooms.{file_format}", [{"room": i, "name": f"room {i}"} for i in range(5)])


def sink(folder: Path, name: str, emit: str = "changes") -> str:
    file_format = "" if "." in name else ", format = 'csv'"
    return f"CREATE SINK out WITH (connector = 'files', path = '{folder}/{name}', emit = '{emit}'{file_format});"


def start(text: str, **options: Any) -> LocalRun:
    session = Session()
    run = workspace_of(session).assemble(workspace_of(session).prepare(text), **options)
    assert isinstance(run, LocalRun)
    return run


def only_query(text: str, **options: Any) -> LocalQuery:
    (query,) = start(text, **options).queries
    assert isinstance(query, LocalQuery)
    return query
