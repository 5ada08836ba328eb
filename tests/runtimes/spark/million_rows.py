"""Two queries over more than a million rows, for executors that are processes of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.runtimes.spark.driven import standing
from transom.connectors.open import open_files, open_source
from transom.program.run import QuerySpec
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.run import LocalRun

ROWS = 550_000
"""Of each of two streams."""

SECONDS = 500
ITEMS = 20_000


def write_inputs(folder: Path, file_count: int = 4) -> None:
    """Bids and asks in the order of time, but for some disorder that the bound allows."""
    random = np.random.default_rng(4)
    for name in ("bids", "asks"):
        (folder / name).mkdir(parents=True)
        ordered = np.sort(random.integers(0, SECONDS * 1_000_000, ROWS))
        times = 1_700_000_000_000_000 + ordered + random.integers(0, 2_000_000, ROWS)
        columns = {
            "ts": pa.array(times, pa.timestamp("us")),
            "item": pa.array(random.integers(0, ITEMS, ROWS), pa.int32()),
            "price": pa.array(random.integers(1, 100, ROWS), pa.int32()),
            "who": pa.array(np.array(["ann", "bob", "cid", "dan", "eve"])[random.integers(0, 5, ROWS)]),
        }
        table = pa.table(columns)
        for number in range(file_count):
            share = ROWS // file_count
            pq.write_table(table.slice(number * share, share), folder / name / f"{number}.parquet")


def program(folder: object, out: object, batch_rows: int = 200_000) -> str:
    text = f"SET batch_rows = {batch_rows};"
    for name in ("bids", "asks"):
        text += f"""
            CREATE STREAM {name} (ts TIMESTAMP, item INTEGER, price INTEGER, who VARCHAR,
                                  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
                WITH (connector = 'files', path = '{folder}/{name}', format = 'parquet');
        """
    return (
        text
        + f"""
        CREATE SINK matches WITH (connector = 'files', path = '{out}/out/matches/', format = 'parquet',
                                  emit = 'lifetimes');
        INSERT INTO matches
            SELECT bids.item, bids.price, asks.price AS asked, asks.who
            FROM bids [RANGE 5 SECONDS], asks [RANGE 5 SECONDS]
            WHERE bids.item = asks.item AND bids.price >= asks.price;
        CREATE SINK totals WITH (connector = 'files', path = '{out}/out/totals/', format = 'parquet');
        INSERT INTO totals
            SELECT asks.who, COUNT(*) AS n, SUM(bids.price) AS total, MIN(asks.price) AS low
            FROM bids [RANGE 1 SECOND SLIDE 1 SECOND], asks [RANGE 2 SECONDS SLIDE 1 SECOND]
            WHERE bids.item = asks.item GROUP BY asks.who;
    """
    )


def rows_of(folder: Path) -> pa.Table:
    """All rows of a folder, sorted by all of their columns."""
    table = pq.read_table(folder)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def run_locally(text: str) -> None:
    for planned in standing(text):
        assert planned.sink is not None
        sink = open_files(planned.sink.properties)
        LocalRun(
            [LocalJob([QuerySpec(planned, planned.sink.name, planned.sink.emit, sink)], open_source)], every=1
        ).run()


def check_equal(answer: Path, expected: Path) -> None:
    """The answers below two folders have the same rows, many of them, and both partitions have written."""
    for name, least in (("matches", 100_000), ("totals", 1_000)):
        rows = rows_of(answer / "out" / name)
        assert rows.num_rows > least and rows.equals(rows_of(expected / "out" / name)), name
        parts = {path.stem.rpartition("-")[2] for path in (answer / "out" / name).glob("*.parquet")}
        assert parts == {"0000", "0001"}, "both partitions have written"
