"""Makes 100 seconds of an auction house in `data/`: people, auctions, bids and the table of q13, as for the benchmark.

The columns have the names of the suite for Flink. The generator is in `benchmarks/`, so it takes a checkout of Transom.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from transom.cli.bench_command import CHECKOUT

EVENTS = 10_000
STEP = 10_000  # microseconds between two of them


def name_in_flink(column: str) -> str:
    """
    >>> name_in_flink("date_time"), name_in_flink("id")
    ('dateTime', 'id')
    """
    first, *others = column.split("_")
    return first + "".join(map(str.capitalize, others))


def main(folder: Path = Path("data"), events: int = EVENTS, step: int = STEP) -> None:
    sys.path.insert(0, str(CHECKOUT))
    data = import_module("benchmarks.nexmark.data")
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory() as made:
        data.write_events(data.Size(events, step), Path(made))
        for name in data.COLUMNS:
            rows = pq.read_table(sorted(Path(made, name).glob("*.parquet")))
            names = [name_in_flink(column) for column in rows.column_names]
            pq.write_table(rows.rename_columns(names), folder / f"{name}.parquet")


if __name__ == "__main__":
    main()
