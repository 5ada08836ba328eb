"""Arrays and structs from every kind of input to every kind of output, and back."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom import Session

COLUMNS = "ts TIMESTAMP, a DOUBLE[], b STRUCT(p DECIMAL(6, 2), q VARCHAR[], w TIMESTAMP)"
NOON = datetime(2024, 5, 1, 12)
A = [[1.5, None], [], None, [-0.25]]
B = [
    {"p": Decimal("1.50"), "q": ['a, "b"', None, "'"], "w": NOON},
    {"p": None, "q": None, "w": None},
    None,
    {"p": Decimal("-7.00"), "q": [], "w": NOON},
]
ROWS = [{"ts": NOON.replace(second=i), "a": a, "b": b} for i, (a, b) in enumerate(zip(A, B, strict=True))]
FORMATS = ("csv", "jsonl", "parquet")


def declared(name: str, path: Path) -> str:
    return f"CREATE STREAM {name} ({COLUMNS}, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{path}');"


def written(folder: Path, kind: str) -> Path:
    """The rows as our own sink writes them."""
    session = Session()
    session.stream("given", ROWS, time="ts")
    path = folder / f"out.{kind}"
    sink = f"CREATE SINK o WITH (connector = 'files', path = '{path}')"
    session.execute(f"{sink}; INSERT INTO o ISTREAM(SELECT ts, a, b FROM given)")
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_what_a_sink_wrote_a_source_reads(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    session = Session()
    session.execute(declared("s", path))
    rows = session.run("ISTREAM(SELECT ts, a, b FROM s)").to_pylist()
    assert [{name: row[name] for name in ("ts", "a", "b")} for row in rows] == ROWS


def lines(tmp_path: Path, *rows: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows that a file of JSON lines gives, and why others are rejected."""
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{row}\n" for row in rows))
    session = Session()
    session.execute(declared("s", path))
    rows_read = session.run("ISTREAM(SELECT a, b.p AS p, b.q AS q FROM s)").to_pylist()
    return [{name: row[name] for name in "apq"} for row in rows_read], session.dead_letters["reason"].to_pylist()


def test_a_line_with_a_part_that_does_not_fit_is_rejected(tmp_path: Path) -> None:
    rows, reasons = lines(
        tmp_path,
        '{"ts": "2024-05-01", "a": [1, 2.5], "b": {"p": 1.5, "q": ["x"], "more": [1]}}',
        '{"ts": "2024-05-01", "a": [1, "x"], "b": null}',
        '{"ts": "2024-05-01", "a": {"p": 1}, "b": null}',
        '{"ts": "2024-05-01", "a": 7, "b": {"p": 12345678.9}}',
        '{"ts": "2024-05-01", "b": {"p": 1, "p": 2}}',
        '{"ts": "2024-05-01", "a": [null], "b": {"q": [1, true]}}',
    )
    assert rows == [
        {"a": [1.0, 2.5], "p": Decimal("1.50"), "q": ["x"]},
        {"a": [None], "p": None, "q": ["1", "true"]},
    ]
    assert len(reasons) == 4 and all("cannot hold" in reason for reason in reasons), reasons


def test_parquet_of_other_kinds_of_lists(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([NOON, NOON.replace(second=1)], pa.timestamp("ns")),
            "a": pa.array([[1, 2], None], pa.large_list(pa.int8())),
            "b": pa.array([{"w": NOON, "q": ["x"], "p": 3, "other": 1}, None]),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    session = Session()
    session.execute(declared("s", tmp_path / "in.parquet"))
    rows: list[dict[str, Any]] = session.run("ISTREAM(SELECT a, b FROM s)").to_pylist()
    first, second = rows
    assert (first["a"], first["b"]) == ([1.0, 2.0], {"p": Decimal("3.00"), "q": ["x"], "w": NOON})
    assert (second["a"], second["b"]) == (None, None)


def test_rows_of_python_and_frames() -> None:
    session = Session()
    session.stream("s", ROWS, time="ts")
    query = session.sql("SELECT b.q AS q, a FROM s [RANGE 10 SECONDS] ORDER BY a DESC", emit="latest")
    assert query.schema.field("a").type == pa.list_(pa.float64())
    assert [row["a"] for row in query.to_pylist()] == [A[0], A[3], A[1], A[2]]
    assert [None if a is None else list(a) for a in query.to_pandas()["a"]][2:] == [[], None]


def test_late_rows_are_told_as_they_came() -> None:
    session = Session()
    session.stream("s", [ROWS[3], ROWS[0]], time="ts", late="dead_letter")
    session.run("ISTREAM(SELECT a FROM s)")
    (row,) = session.dead_letters["row"].to_pylist()
    assert json.loads(row)["b"] == {"p": "1.50", "q": ['a, "b"', None, "'"], "w": "2024-05-01 12:00:00"}


def test_state_of_nested_values_is_saved_and_read_back(tmp_path: Path) -> None:
    query = "SELECT x.a, y.b FROM s [ROWS 3] AS x JOIN s [ROWS 3] AS y ON x.a = y.a"
    path = tmp_path / "in.jsonl"
    line = json.dumps({"ts": "2024-05-01 12:00:00", "a": [1, None], "b": {"q": ["x"]}})
    path.write_text(line + "\n")
    rows: list[dict[str, Any]] = []
    for _ in range(2):
        session = Session()
        session.execute(declared("s", path))
        running = session.start(query, emit="changes", checkpoint=str(tmp_path / "checkpoint"), name="q")
        running.await_termination(timeout=60)
        rows += running.result.to_pylist()
        path.write_text(path.read_text() + line.replace("12:00:00", "12:00:01") + "\n")
    assert [(row["change"], row["a"], row["b"]["q"]) for row in rows] == [("+", [1.0, None], ["x"])] * len(rows)
    assert rows
