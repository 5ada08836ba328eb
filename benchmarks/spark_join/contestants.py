"""The contestants of the join on Spark: Transom, by its own file source and by a DataFrame of Spark's, and the rival.

Settings of Spark and Java count once in a process, and must not leak: each has a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.spark_join.data import STREAMS, Cell, Measured, files_of
from transom.runtimes.spark.query import SparkQuery
from transom.session import Session, workspace_of

RIVAL, TRANSOM_FILES, TRANSOM_DATAFRAME = "rival", "transom_files", "transom_dataframe"

COLUMNS: Final = "ts TIMESTAMP, k BIGINT, v BIGINT, s VARCHAR, WATERMARK FOR ts AS ts"

Run = Callable[[Cell, Path, Path], Measured]
"""A cell, the folder with its files, and one that takes the answer (in its folder `out`) and the checkpoint."""


def opened(kind: str, settings: Mapping[str, str]) -> Callable[[dict[str, Any], str, str], dict[str, Any]]:
    """In its process: what does the jobs."""
    run = _rival(settings) if kind == RIVAL else _transom(kind, settings)
    return lambda cell, source, scratch: asdict(run(Cell(**cell), Path(source), Path(scratch)))


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


def _transom(kind: str, settings: Mapping[str, str]) -> Run:
    from benchmarks.spark_session import file_stream, session_with

    def run(cell: Cell, source: Path, scratch: Path) -> Measured:
        """To the end of the files, one of each stream a batch."""
        began = time.perf_counter()
        spark, used = session_with(settings)
        start_s = time.perf_counter() - began
        with Session(spark=spark, batch_rows=cell.batch_rows) as session:
            if kind == TRANSOM_FILES:
                session.execute(streams(source))
            else:
                for name in STREAMS:
                    session.stream(name, file_stream(spark, str(source / name)), time="ts")
            checkpoint = str(scratch / "checkpoint")
            running = workspace_of(session).assemble(
                workspace_of(session).prepare(question(cell, scratch)), checkpoint=checkpoint, end=True
            )
            running.run()
            (query,) = running.queries
            assert isinstance(query, SparkQuery)
            seconds = {batch["batchId"]: batch["durationMs"]["triggerExecution"] / 1000 for batch in query.progress}
            batches = [(seconds[i], cost) for i, cost in enumerate(query.statuses.history) if cost.rows]
        return Measured(
            settings={**used, "spark.sql.shuffle.partitions": str(query.layout.partitions)},
            start_s=start_s,
            batch_s=tuple(each for each, _ in batches),
            batch_rows=tuple(cost.rows for _, cost in batches),
            state_bytes=tuple(cost.written for _, cost in batches),
        )

    return run


def _rival(settings: Mapping[str, str]) -> Run:
    from benchmarks.spark_join.rival import open_session, stream_stream_join

    began = time.perf_counter()
    spark = open_session(settings, "spark-join")
    starts = [time.perf_counter() - began]  # for the first query

    def run(cell: Cell, source: Path, scratch: Path) -> Measured:
        names = [path.name for path in files_of(source, cell.batches)["a"]]
        batches = stream_stream_join(spark, source, names, cell.window_ms, scratch)
        return Measured(
            settings=dict(settings),
            start_s=starts.pop() if starts else 0.0,
            batch_s=tuple(batch.seconds for batch in batches),
            batch_rows=tuple(batch.rows for batch in batches),
        )

    return run
