"""The join on Spark as Transom runs it, with its own file source and with a DataFrame of Spark's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from transom.benchmarks.spark_join_data import STREAMS, Cell, Measured
from transom.runtimes.spark.query import SparkQuery
from transom.session import Session

SourceKind = Literal["files", "dataframe"]

COLUMNS: Final = "ts TIMESTAMP, k BIGINT, v BIGINT, s VARCHAR, WATERMARK FOR ts AS ts"


def streams(folder: Path) -> str:
    """The declarations of both streams, where Transom reads the files itself."""
    return "\n".join(
        f"CREATE STREAM {name} ({COLUMNS}) WITH (connector = 'files', path = '{folder / name}', format = 'parquet');"
        for name in STREAMS
    )


def question(cell: Cell, scratch: Path) -> str:
    """The sink and the query that writes to it: every pair once, and how long it lives."""
    window = f"[RANGE {cell.window_ms} MILLISECONDS]"
    return f"""
        CREATE SINK pairs WITH (
            connector = 'files', path = '{scratch / "out"}', format = 'parquet', emit = 'lifetimes'
        );
        INSERT INTO pairs
        SELECT a.ts AS a_ts, b.ts AS b_ts, a.k AS k, a.v AS a_v, b.v AS b_v, a.s AS a_s, b.s AS b_s
        FROM a {window}, b {window} WHERE a.k = b.k;
    """


def run_transom(
    cell: Cell, source_kind: SourceKind, folder: Path, scratch: Path, settings: Mapping[str, str]
) -> Measured:
    """Runs the question to the end of the files of `folder`, one of each stream a batch; the answer is in `scratch`."""
    from transom.runtimes.spark.bench_transom import file_stream, session_with

    began = time.perf_counter()
    spark, told = session_with(settings, lasting=source_kind == "dataframe")
    start_s = time.perf_counter() - began
    with Session(spark=spark, batch_rows=cell.batch_rows) as session:
        if source_kind == "files":
            session.execute(streams(folder))
        else:
            for name in STREAMS:
                session.stream(name, file_stream(spark, str(folder / name)), time="ts")
        run = session.assemble(
            session.prepare(question(cell, scratch)), checkpoint=str(scratch / "checkpoint"), end=True
        )
        run.run()
        (query,) = run.queries
        assert isinstance(query, SparkQuery)
        seconds = {told["batchId"]: told["durationMs"]["triggerExecution"] / 1000 for told in query.progress}
        batches = [(seconds[i], cost) for i, cost in enumerate(query.statuses.history) if cost.rows]
    return Measured(
        settings={**told, "spark.sql.shuffle.partitions": str(query.layout.buckets)},
        start_s=start_s,
        batch_s=tuple(each for each, _ in batches),
        batch_rows=tuple(cost.rows for _, cost in batches),
        state_bytes=tuple(cost.written for _, cost in batches),
    )
