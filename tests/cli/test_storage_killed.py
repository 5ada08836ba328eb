"""From files on a disk, a bucket and a table of PostgreSQL to files on a disk and a bucket, through twenty kills of
the run, of workers, and of what it is connected with: a reader finds what an unbroken run has written."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.commands import transom
from tests.killing import Relay, run_through_kills
from tests.postgres_server import Database, PostgresServer
from transom.connectors.commit_log import read_log
from transom.connectors.storage import storage_of

NOON = datetime(2024, 5, 1, 12)
ROWS = {"local": 8_000, "spark": 6_000}

TEXT = """
CREATE STREAM bids (ts TIMESTAMP, item INTEGER, price INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = '{disk}/bids', format = 'csv');
CREATE STREAM asks (ts TIMESTAMP, item INTEGER, price INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = '{bucket}/asks', format = 'jsonl');
CREATE TABLE items (item INTEGER, name VARCHAR) WITH (connector = 'postgres', url = '$PGURL', table = 'items');
CREATE SINK pairs WITH (connector = 'files', path = '{out}/pairs/', format = 'jsonl');
INSERT INTO pairs ISTREAM(
    SELECT bids.price, asks.price AS asked, items.name FROM bids [RANGE 5 SECONDS], asks [RANGE 5 SECONDS], items
    WHERE bids.item = asks.item AND bids.item = items.item);
CREATE SINK latest WITH (connector = 'files', path = '{out}/latest.csv', emit = 'latest');
INSERT INTO latest SELECT item, COUNT(*) AS n, SUM(price) AS total FROM bids GROUP BY item;
CREATE SINK totals WITH (connector = 'files', path = '{bucket}/{name}/totals/', format = 'parquet', emit = 'lifetimes');
INSERT INTO totals SELECT item, COUNT(*) AS n, SUM(price) AS total FROM asks [RANGE 5 SECONDS] GROUP BY item;
"""


def write_inputs(disk: Path, bucket: str, rows: int) -> None:
    """Files of some hundred rows, with some disorder and some rows that are late."""
    chance = random.Random(3)
    (disk / "bids").mkdir(parents=True)
    for number in range(8):
        each = range(number * rows // 8, (number + 1) * rows // 8)
        for name in ("bids", "asks"):
            rows_made = []
            for row in each:
                at = NOON + timedelta(seconds=row / 10 + chance.uniform(-2.2, 0))
                rows_made.append({"ts": str(at), "item": chance.randrange(40), "price": chance.randrange(100)})
            if name == "bids":
                lines = [f"{row['ts']},{row['item']},{row['price']}" for row in rows_made]
                (disk / f"bids/{number}.csv").write_text("\n".join(["ts,item,price", *lines, ""]))
            else:
                text = "".join(json.dumps(row) + "\n" for row in rows_made)
                storage_of(bucket).put(f"{bucket}/asks/{number}.jsonl", text.encode())


def seen(out: Path, folder: str) -> dict[str, list[str]]:
    """What there is on the disk, and in the bucket what counts."""
    files = [path for path in (out / "pairs").iterdir() if not path.name.startswith(".")]
    lines_of = {"pairs": sorted(line for path in files for line in path.read_text().splitlines())}
    lines_of["latest"] = sorted((out / "latest.csv").read_text().splitlines())
    storage = storage_of(folder)
    log = read_log(storage, folder)
    lines_of["totals"] = []
    for file in () if log is None else log.files:
        data = storage.read(f"{folder}/{file.name}")
        assert data is not None
        lines_of["totals"] += map(str, pq.read_table(io.BytesIO(data)).to_pylist())
    lines_of["totals"].sort()
    return lines_of


@pytest.fixture
def relay(object_storage: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """Before the bucket, for the runs alone."""
    relay = Relay(int(object_storage.rpartition(":")[2]))
    relay.start()
    yield relay
    relay.kill()


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_a_reader_finds_what_an_unbroken_run_has_written(
    postgres_server: PostgresServer,
    postgres: Database,
    bucket: str,
    relay: Relay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str,
) -> None:
    monkeypatch.setenv("PGURL", postgres.url)
    postgres.execute(
        "CREATE TABLE items (item integer, name text)",
        "INSERT INTO items SELECT g, 'item ' || g FROM generate_series(0, 39) g",
    )
    postgres.close()  # it does not outlive the server
    write_inputs(tmp_path / "disk", bucket, ROWS[runtime])
    programs = {}
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        programs[name] = tmp_path / f"{name}.cql"
        programs[name].write_text(TEXT.format(disk=tmp_path / "disk", bucket=bucket, out=tmp_path / name, name=name))
    done = transom("run", programs["whole"], "--end")
    assert done.returncode == 0, done.stderr
    expected = seen(tmp_path / "whole", f"{bucket}/whole/totals")
    assert all(len(rows) >= 40 for rows in expected.values())
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{relay.port}")
    batch = {"local": 25, "spark": 80}[runtime]
    run_through_kills(
        (programs["broken"], "--set", f"batch_rows={batch}"),
        tmp_path / "kept",
        runtime,
        servers=(postgres_server, relay),
    )
    lines_of = seen(tmp_path / "broken", f"{bucket}/broken/totals")
    for name, rows in expected.items():
        assert lines_of[name] == rows, name
