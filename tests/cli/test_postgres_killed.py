"""A run whose answers are in PostgreSQL, killed again and again, and its server too: a client sees what an unbroken run
shows."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import command, environment, transom
from tests.postgres_server import Database, PostgresServer
from tests.runtimes.spark.processes import descendants, kill, wait_until

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
@pytest.mark.parametrize(("runtime", "kills", "rows", "batch"), [("local", 20, 40_000, 20), ("spark", 20, 6_000, 50)])
def test_what_a_client_sees_is_what_an_unbroken_run_shows(
    postgres_server: PostgresServer,
    postgres: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str,
    kills: int,
    rows: int,
    batch: int,
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)
    monkeypatch.setenv("PGURL", postgres.url)
    size = ("--set", f"batch_rows={batch}", "--runtime", runtime)
    prefix = f"{postgres.rows('SELECT current_schema()')[0][0]}_{runtime}"
    whole, broken = (program(tmp_path, postgres, f"{prefix}_{name}", rows) for name in ("whole", "broken"))
    done = transom("run", whole, *size)
    assert done.returncode == 0, done.stderr
    expected = seen(postgres, whole.stem)
    assert all(expected)
    postgres.close()  # it does not outlive the server
    arguments = ("run", broken, *size, "--checkpoint", tmp_path / "kept", "--every", "1")
    epochs = f"SELECT COALESCE(SUM(epoch), 0)::int FROM {broken.stem}.transom_commits"
    for number in range(kills):
        running = subprocess.Popen(
            command(*arguments), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        client = Database(postgres.url)
        there = client.rows(f"SELECT to_regclass('{broken.stem}.transom_commits') IS NOT NULL") == [(True,)]
        before = client.rows(epochs)[0][0] if there else -1

        def goes_on(client: Database = client, before: int = before) -> bool:
            made = client.rows(f"SELECT to_regclass('{broken.stem}.transom_commits') IS NOT NULL")
            return made == [(True,)] and client.rows(epochs)[0][0] > before

        wait_until(goes_on, lambda running=running: running.poll() is None)  # type: ignore[misc]
        client.close()
        time.sleep(chance.uniform(0, 0.3))
        if number % 3 == 2:
            postgres_server.stop(chance.choice([signal.SIGINT, signal.SIGQUIT]))
            if chance.random() < 0.5:
                kill([running.pid])
            postgres_server.start()
            time.sleep(chance.uniform(0, 0.3))
        children = descendants(running.pid)
        if runtime == "spark" and number % 3 == 1:
            kill(chance.sample(sorted(children - {running.pid}), 1))  # a worker, or the whole of Spark
            time.sleep(chance.uniform(0, 1))
        running.send_signal(signal.SIGKILL)
        assert running.wait() in (-signal.SIGKILL, 1), "it ended before it was killed"
        kill(children)
    done = transom(*arguments)
    assert done.returncode == 0, done.stderr
    client = Database(postgres.url)
    assert seen(client, broken.stem) == expected
    client.close()
