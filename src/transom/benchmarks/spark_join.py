"""The two-stream window join on Spark: Transom beside Spark's own stream-stream join, in one run.

All read the same Parquet files (an instant, a key, a number, a text), one of each stream a micro-batch, and write
Parquet files. A rate is the median over the steady batches, rows of both streams counted; the first batch is told
apart. Every answer is read back and held against an exact join of the files. Where settings were tried side by side,
the best run of each cell counts.

| cell | window | keys | batches | who |
| --- | --- | --- | --- | --- |
| short | 10 s | 100,000 | 2 x 500,000 rows | all |
| long | two batches | 1,000,000 | 2 x 500,000 rows | spark_default, transom_files |
| small | 10 s | 100,000 | 2 x 50,000 rows | spark_default, transom_files |
| growth_1, growth_10 | one batch, ten batches | as many as rows in the window | 2 x 100,000 rows | transom_files |
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from transom.benchmarks.chart import write_bars
from transom.benchmarks.spark_join_contestant import (
    RIVAL,
    TRANSOM_DATAFRAME,
    TRANSOM_FILES,
    Job,
    in_own_process,
)
from transom.benchmarks.spark_join_data import Cell, Digest, exact_answer, write_cell, written_answer
from transom.benchmarks.spark_join_report import Outcome, bars, best, report, table
from transom.core.errors import SparkError
from transom.runtimes.spark.bench_rivals import ROCKSDB, SETTINGS
from transom.state.scratch import Scratch

CELLS: Final = (
    Cell("short", 500_000, 10_000, 100_000, batches=9),
    Cell("long", 500_000, 1_000_000, 1_000_000, batches=9),
    # Java compiles for some ten small batches: a batch costs half as much afterwards.
    Cell("small", 50_000, 10_000, 100_000, batches=31, settling=10),
    # As many batches go before in both, so that both find the same warm Java.
    Cell("growth_1", 100_000, 100_000, 100_000, batches=18, settling=10),
    Cell("growth_10", 100_000, 1_000_000, 1_000_000, batches=18, settling=10),
)
QUICK_CELLS: Final = (
    Cell("short", 20_000, 400, 4_000, batches=7),
    Cell("long", 20_000, 40_000, 40_000, batches=8),
    Cell("small", 2_000, 400, 4_000, batches=7),
    Cell("growth_1", 4_000, 4_000, 4_000, batches=16, settling=10),
    Cell("growth_10", 4_000, 40_000, 40_000, batches=16, settling=10),
)
SLOW_BATCHES: Final = 4
"""RocksDB takes half a minute for a batch of a million rows, so it gets the first few only."""


@dataclass(frozen=True)
class Contestant:
    """`variants` are settings that are tried side by side; `batches`: of the first so many batches only."""

    name: str
    kind: str
    cells: tuple[str, ...]
    variants: tuple[Mapping[str, str], ...] = ({},)
    batches: int | None = None


def contestants(partitions: Sequence[int]) -> tuple[Contestant, ...]:
    """Spark's own join once for each number of shuffle partitions."""
    shuffles = [{"spark.sql.shuffle.partitions": str(number)} for number in partitions]
    return (
        Contestant(
            "spark_default", RIVAL, ("short", "long", "small"), tuple(SETTINGS | shuffle for shuffle in shuffles)
        ),
        Contestant(
            "spark_rocksdb",
            RIVAL,
            ("short",),
            tuple(SETTINGS | ROCKSDB | shuffle for shuffle in shuffles),
            batches=SLOW_BATCHES,
        ),
        Contestant(TRANSOM_FILES, TRANSOM_FILES, ("short", "long", "small", "growth_1", "growth_10")),
        Contestant(TRANSOM_DATAFRAME, TRANSOM_DATAFRAME, ("short",)),
    )


class Contest:
    """The files of the cells, and the runs over them, all below one folder."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        self.cells = {cell.name: cell for cell in cells}
        self._folder = folder
        self._answers: dict[Cell, Digest] = {}
        self._runs = 0
        for cell in cells:
            _say(f"{cell.name}: {cell.batches} files of {cell.batch_rows:,} rows for each stream ..")
            write_cell(cell, self._source(cell))

    def measure(self, contestant: Contestant, together: bool) -> list[Outcome]:
        """`together`: all cells in one process, which is quicker; otherwise each in a fresh one."""
        cells = [self.cells[name] for name in contestant.cells]
        if contestant.batches is not None:
            cells = [replace(cell, batches=min(cell.batches, contestant.batches)) for cell in cells]
        outcomes = []
        for settings in contestant.variants:
            for group in [cells] if together else [[cell] for cell in cells]:
                outcomes += self._run(contestant, settings, group)
        return outcomes

    def _run(self, contestant: Contestant, settings: Mapping[str, str], cells: Sequence[Cell]) -> list[Outcome]:
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        parts = settings.get("spark.sql.shuffle.partitions")
        tried = f" with {parts} partitions" if parts else ""
        _say(f"{', '.join(cell.name for cell in cells)}: {contestant.name}{tried} ..")
        jobs = [Job(cell, self._source(cell), folder / cell.name) for cell in cells]
        outcomes = []
        for job, measured in zip(jobs, in_own_process(contestant.kind, settings, jobs, folder), strict=True):
            cell = job.cell
            if measured.batch_rows != (2 * cell.batch_rows,) * cell.batches:
                raise SparkError(
                    f"{contestant.name} did not take one file of each stream a batch in cell {cell.name}: "
                    f"its batches had {measured.batch_rows} rows"
                )
            found, expected = written_answer(job.scratch / "out"), self._answer(cell)
            outcome = Outcome(contestant.name, cell, measured, found, expected)
            _say(f"  {cell.name}: {outcome.rows_per_s:,.0f} rows/s{'' if outcome.right else ', WRONG ANSWER'}")
            outcomes.append(outcome)
        shutil.rmtree(folder)
        return outcomes

    def _source(self, cell: Cell) -> Path:
        return self._folder / "cells" / cell.name

    def _answer(self, cell: Cell) -> Digest:
        if cell not in self._answers:
            self._answers[cell] = exact_answer(cell, self._source(cell), cell.batches)
        return self._answers[cell]


def _say(what: str) -> None:
    print(f"spark-join: {what}", file=sys.stderr, flush=True)


def main(arguments: argparse.Namespace) -> int:
    quick: bool = arguments.quick
    outcomes: list[Outcome] = []
    with Scratch("bench") as scratch:
        contest = Contest(QUICK_CELLS if quick else CELLS, Path(scratch.path))
        for contestant in contestants((2,) if quick else (2, 4)):
            outcomes += contest.measure(contestant, together=quick)
    if arguments.plot:
        write_bars(arguments.plot, "Two-stream window join on Spark", "million rows a second", *bars(best(outcomes)))
    if arguments.json:
        print(json.dumps(report(outcomes), indent=2))
    else:
        print(table(outcomes))
    return 0 if all(outcome.right for outcome in outcomes) else 1
