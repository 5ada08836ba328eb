"""The join on Spark as Transom runs it, with its own file source and with a DataFrame of Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from transom.benchmarks.spark_join_data import STREAMS, Cell, Measured

SourceKind = Literal["files", "dataframe"]

COLUMNS: Final = "ts TIMESTAMP, k BIGINT, v BIGINT, s VARCHAR, WATERMARK FOR ts AS ts"


def streams(folder: Path) -> str:
    """The declarations of both streams, where Transom reads the files itself."""
    return "\n".join(
        f"CREATE STREAM {name} ({COLUMNS}) WITH (connector = 'files', path = '{folder / name}', format = 'parquet');"
        for name in STREAMS
    )


def question(cell: Cell, scratch: Path) -> str:
    """The sink and the query that writes to it."""
    window = f"[RANGE {cell.window_ms} MILLISECONDS]"
    return f"""
        CREATE SINK pairs WITH (connector = 'files', path = '{scratch / "out"}', format = 'parquet');
        INSERT INTO pairs ISTREAM(
            SELECT a.ts AS a_ts, b.ts AS b_ts, a.k AS k, a.v AS a_v, b.v AS b_v, a.s AS a_s, b.s AS b_s
            FROM a {window}, b {window} WHERE a.k = b.k
        );
    """


def run_transom(cell: Cell, source_kind: SourceKind, folder: Path, scratch: Path) -> Measured:
    """Runs the question to the end of the files of `folder`, one of each stream a batch; the answer is in `scratch`."""
    raise NotImplementedError
