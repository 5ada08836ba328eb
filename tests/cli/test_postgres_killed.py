"""A run whose answers are in PostgreSQL, killed again and again, and its server too: a client sees what an unbroken run
shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import transom
from tests.killing import run_through_kills
from tests.postgres_server import Database, PostgresServer

TEXT = """
CREATE STREAM s (ts TIMESTAMP, item INTEGER, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'generator', rows = {rows}, rate = 10, seed = 5, disorder = '2 seconds',
          column.item = 'uniform 1 50 null 0.1', column.v = 'uniform 1 9');
CREATE SINK totals WITH (connector = 'postgres', url = '$PGURL', schema = '{schema}', table = 'totals', emit = 'net');
INSERT INTO totals SELECT item, COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 40] GROUP BY item;
CREATE SINK history WITH (connector = 'postgres', url = '$PGURL', schema = '{schema}', table = 'history',
                          emit = 'lifetimes');
INSERT INTO history SELECT item, v FROM s [RANGE 5 SECONDS] WHERE v > 5;
"""
TABLES = ("totals", "history")


def program(folder: Path, database: Database, schema: str, rows: int) -> Path:
    database.execute(f"CREATE SCHEMA {schema}")
    path = folder / f"{schema}.cql"
    path.write_text(TEXT.format(schema=schema, rows=rows))
    return path


def seen(database: Database, schema: str) -> list[list[tuple[Any, ...]]]:
    return [sorted(database.rows(f"SELECT * FROM {schema}.{table}"), key=repr) for table in TABLES]


@pytest.mark.nightly
@pytest.mark.parametrize(("runtime", "rows", "batch"), [("local", 10_000, 20), ("spark", 6_000, 50)])
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
    expected = seen(postgres, whole.stem)
    assert all(expected)
    postgres.close()  # it does not outlive the server
    arguments = (broken, "--set", f"batch_rows={batch}")
    run_through_kills(arguments, tmp_path / "kept", runtime, (postgres_server,))
    client = Database(postgres.url)
    assert seen(client, broken.stem) == expected
    client.close()
