"""A run whose answers are tables of PostgreSQL and of Delta, killed again and again, and the database too: a client
sees what an unbroken run shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.cli.commands import transom
from tests.killing import run_through_kills
from tests.postgres_server import Database, PostgresServer

STREAM = """
CREATE STREAM s (ts TIMESTAMP, item INTEGER, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'generator', rows = {rows}, rate = 10, seed = 5, disorder = '2 seconds',
          column.item = 'uniform 1 50 null 0.1', column.v = 'uniform 1 9');
"""
SINKS = """
CREATE SINK {kind}_totals WITH ({totals}, emit = 'net');
INSERT INTO {kind}_totals SELECT item, COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 40] GROUP BY item;
CREATE SINK {kind}_history WITH ({history}, emit = 'lifetimes');
INSERT INTO {kind}_history SELECT item, v FROM s [RANGE 5 SECONDS] WHERE v > 5;
"""
TABLES = ("totals", "history")
Rows = list[tuple[Any, ...]]


def program(folder: Path, database: Database, schema: str, rows: int) -> Path:
    """The same answers to tables of both kinds."""
    database.execute(f"CREATE SCHEMA {schema}")
    base = f"connector = 'postgres', url = '$PGURL', schema = '{schema}', table = "
    text = STREAM.format(rows=rows) + SINKS.format(kind="pg", **{name: f"{base}'{name}'" for name in TABLES})
    delta = {name: f"connector = 'delta', path = '{folder}/{schema}/{name}'" for name in TABLES}
    delta["history"] += ", commit_interval = '300 MILLISECONDS'"
    path = folder / f"{schema}.cql"
    path.write_text(text + SINKS.format(kind="delta", **delta))
    return path


def seen(folder: Path, database: Database, schema: str) -> dict[str, Rows]:
    rows_of: dict[str, Rows] = {}
    for name in TABLES:
        rows_of[f"pg {name}"] = sorted(database.rows(f"SELECT * FROM {schema}.{name}"), key=repr)
        table = pa.table(DeltaTable(str(folder / schema / name)).to_pyarrow_table())
        rows_of[f"delta {name}"] = sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
    return rows_of


@pytest.mark.nightly
@pytest.mark.parametrize(("runtime", "rows", "batch"), [("local", 8_000, 20), ("spark", 4_000, 40)])
def test_what_a_client_sees_is_what_an_unbroken_run_shows(
    postgres_server: PostgresServer,
    postgres: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str,
    rows: int,
    batch: int,
) -> None:
    monkeypatch.setenv("PGURL", postgres.url)
    prefix = f"{postgres.rows('SELECT current_schema()')[0][0]}_{runtime}"
    whole, broken = (program(tmp_path, postgres, f"{prefix}_{name}", rows) for name in ("whole", "broken"))
    done = transom("run", whole, "--set", "batch_rows=1000")  # the same answer, whatever the batches
    assert done.returncode == 0, done.stderr
    expected = seen(tmp_path, postgres, whole.stem)
    assert all(expected.values())
    postgres.close()  # it does not outlive the server
    arguments = (broken, "--set", f"batch_rows={batch}")
    run_through_kills(arguments, tmp_path / "kept", runtime, (postgres_server,))
    client = Database(postgres.url)
    rows_of = seen(tmp_path, client, broken.stem)
    client.close()
    for name, expected_rows in expected.items():
        assert rows_of[name] == expected_rows, name
