"""Instants and JSON in files and from Python: what is taken, what is rejected, and what goes out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom.core.schema import JSON, TIMESTAMPTZ, VARCHAR
from transom.session import Session

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
INSTANTS = ["2024-05-01 14:00:00+02", "2024-05-01T12:00:00Z", "2024-05-01 12:00:00", "2024-05-01 02:30:00.000-0930"]


def answer(path: Path, columns: str, query: str) -> list[dict[str, Any]]:
    session = Session()
    session.execute(f"CREATE TABLE t ({columns}) WITH (connector = 'files', path = '{path}')")
    return session.run(query, emit="latest").to_pylist()


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_texts_with_offsets_are_instants(tmp_path: Path, name: str) -> None:
    lines = [f'{{"z": "{text}"}}' for text in INSTANTS] if name.endswith("jsonl") else ["z", *INSTANTS]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    rows = answer(tmp_path / name, "z TIMESTAMPTZ", "SELECT z, COUNT(*) AS n FROM t GROUP BY z")
    assert rows == [{"z": NOON, "n": 4}]


def test_parquet_columns_with_a_zone_are_instants(tmp_path: Path) -> None:
    local = [NOON.astimezone(timezone(timedelta(hours=2)))]
    pq.write_table(pa.table({"z": pa.array(local, pa.timestamp("ms", "Europe/Berlin"))}), tmp_path / "t.parquet")
    session = Session()
    (described,) = session.execute(f"DESCRIBE '{tmp_path / 't.parquet'}'")
    assert described.table is not None
    assert described.table.to_pylist()[0]["type"] == "TIMESTAMP WITH TIME ZONE"
    result = session.run(f"SELECT z FROM '{tmp_path / 't.parquet'}'", emit="latest").to_arrow()
    assert result.schema.field("z").type == TIMESTAMPTZ
    assert result.column("z").to_pylist() == [NOON]


def test_fields_of_json_lines_are_json(tmp_path: Path) -> None:
    fields = ['{"a": [1, 2.50]}', '"x"', "7", "null", "true", "[NaN]"]
    (tmp_path / "t.jsonl").write_text("".join(f'{{"n": {n}, "j": {text}}}\n' for n, text in enumerate(fields)))
    rows = answer(tmp_path / "t.jsonl", "n INTEGER, j JSON", "SELECT n, j FROM t")
    assert sorted((row["n"], row["j"]) for row in rows) == [
        (0, '{"a":[1,2.5]}'),
        (1, '"x"'),
        (2, "7"),
        (3, None),
        (4, "true"),
    ]


def test_a_row_whose_text_is_no_json_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('n,j\n1,"{""a"": 1}"\n2,x\n3,\n4,"[1,]"\n')
    rows = answer(tmp_path / "t.csv", "n INTEGER, j JSON", "SELECT n, j ->> 'a' AS a FROM t")
    assert sorted((row["n"], row["a"]) for row in rows) == [(1, "1"), (3, None)]


def test_python_brings_json_as_texts_lists_and_dictionaries() -> None:
    session = Session()
    given = pa.table({"j": pa.array(["[1]"], pa.json_()), "s": pa.array([{"a": [1]}]), "z": pa.array([NOON])})
    session.table("t", given)
    result = session.run("SELECT j -> 0 AS first, s.a[1] AS a, z FROM t WHERE z = $at", emit="latest", at=NOON)
    assert result.to_pylist() == [{"first": "1", "a": 1, "z": NOON}]
    described = session.execute("DESCRIBE t")[0].table
    assert described is not None
    assert described.to_pylist()[0]["type"] == "JSON"


def test_json_is_a_text_outside() -> None:
    session = Session()
    session.table("t", [{"v": '{"a": 1}'}])
    result = session.run("SELECT CAST(v AS JSON) AS j, v::JSON -> 'a' AS a FROM t", emit="latest").to_arrow()
    assert result.schema.types == [VARCHAR, VARCHAR]
    assert JSON not in result.schema.types


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_intervals_go_out_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    waits = [timedelta(hours=26), None, timedelta(seconds=-1.5), timedelta()]
    session = Session()
    session.table("waits", [{"n": n, "d": wait} for n, wait in enumerate(waits)])
    session.execute(f"CREATE SINK o WITH (connector = 'files', path = '{name}', emit = 'latest')")
    session.execute("INSERT INTO o SELECT n, d FROM waits")
    assert answer(tmp_path / name, "n INTEGER, d INTERVAL", "SELECT n, d FROM t ORDER BY n") == [
        {"n": n, "d": wait} for n, wait in enumerate(waits)
    ]
