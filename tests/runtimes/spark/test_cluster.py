"""Two executors, each a process of its own: equal to the local runtime on more than a million rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.runtimes.spark.driven import Driven, leftovers, standing
from tests.runtimes.spark.processes import PATIENCE, descendants, kill, wait_for_end
from transom.connectors.files_sink import OpenFiles
from transom.connectors.open import open_source
from transom.runtimes.local.query import LocalQuery
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


def program(folder: Path, out: Path) -> str:
    text = "SET batch_rows = 200000;"
    for name in ("bids", "asks"):
        text += f"""
            CREATE STREAM {name} (ts TIMESTAMP, item INTEGER, price INTEGER, who VARCHAR,
                                  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
                WITH (connector = 'files', path = '{folder / name}', format = 'parquet');
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
        CREATE SINK sellers WITH (connector = 'files', path = '{out}/out/sellers/', format = 'parquet');
        INSERT INTO sellers
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
    for one in standing(text):
        assert one.sink is not None
        sink = OpenFiles(one.sink.properties)
        LocalRun([LocalQuery(one, open_source, sink, emit=one.sink.emit, name=one.sink.name)], every=1).run()


def test_two_executors_equal_the_local_runtime(tmp_path: Path) -> None:
    write_inputs(tmp_path / "in")
    driven = Driven(str(tmp_path / "spark"), program(tmp_path / "in", tmp_path / "spark"), "local-cluster[2,1,1024]")
    driver = driven.start()
    every = set[int]()
    try:
        run_locally(program(tmp_path / "in", tmp_path / "local"))
        every = descendants(driver.pid)
        assert driver.wait(PATIENCE) == 0, driven.said()
        wait_for_end(every)
    finally:
        kill({driver.pid} | every | descendants(driver.pid))
        driver.wait()
    for name, least in (("matches", 100_000), ("sellers", 1_000)):
        found = rows_of(tmp_path / "spark" / "out" / name)
        assert found.num_rows > least and found.equals(rows_of(tmp_path / "local" / "out" / name)), name
        parts = {path.stem.rpartition("-")[2] for path in (tmp_path / "spark" / "out" / name).glob("*.parquet")}
        assert parts == {"0000", "0001"}, "both buckets have written"
    assert leftovers(tmp_path / "spark") == []
