"""The two-stream window join on Spark: Transom beside Spark's own stream-stream join, in one run.

All read the same Parquet files (an instant, a key, a number, a text), one of each stream a micro-batch, and write
Parquet files. A rate is the median over the steady batches, rows of both streams counted; the first batch is reported
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

import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.chart import Bars
from benchmarks.harness import Benchmark, Experiment, Experiments, Figures, Options, Outcome, Outcomes, Table
from benchmarks.processes import serving
from benchmarks.spark_join.contestants import RIVAL, TRANSOM_DATAFRAME, TRANSOM_FILES
from benchmarks.spark_join.data import Cell, Digest, Measured, exact_answer, write_cell, written_answer
from benchmarks.spark_join.rival import ROCKSDB, SETTINGS
from transom.core.errors import SparkError
from transom.state.scratch import Scratch

PARTITIONS: Final = "spark.sql.shuffle.partitions"
DEFAULT, ON_ROCKSDB = "spark_default", "spark_rocksdb"
NAMES: Final = (DEFAULT, ON_ROCKSDB, TRANSOM_FILES, TRANSOM_DATAFRAME)
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

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.cells)}"


def contestants(partitions: Sequence[int]) -> tuple[Contestant, ...]:
    """Spark's own join once for each number of shuffle partitions."""
    shuffles = [{PARTITIONS: str(number)} for number in partitions]
    return (
        Contestant(DEFAULT, RIVAL, ("short", "long", "small"), tuple(SETTINGS | shuffle for shuffle in shuffles)),
        Contestant(
            ON_ROCKSDB,
            RIVAL,
            ("short",),
            tuple(SETTINGS | ROCKSDB | shuffle for shuffle in shuffles),
            batches=SLOW_BATCHES,
        ),
        Contestant(TRANSOM_FILES, TRANSOM_FILES, ("short", "long", "small", "growth_1", "growth_10")),
        Contestant(TRANSOM_DATAFRAME, TRANSOM_DATAFRAME, ("short",)),
    )


@dataclass(frozen=True)
class Run:
    """One run of one contestant over one cell; `cell` has the batches that it was given."""

    cell: Cell
    measured: Measured
    output: Digest
    expected: Digest

    @property
    def right(self) -> bool:
        return self.output == self.expected

    @property
    def rows_per_s(self) -> float:
        """The median over the steady batches, rows of both streams counted."""
        steady = slice(self.cell.unsteady, None)
        pairs = zip(self.measured.batch_rows[steady], self.measured.batch_s[steady], strict=True)
        return statistics.median(rows / seconds for rows, seconds in pairs)

    @property
    def batch_s(self) -> float:
        return statistics.median(self.measured.batch_s[self.cell.unsteady :])

    def as_json(self) -> dict[str, Any]:
        written = self.measured.state_bytes[self.cell.unsteady :]
        return {
            "rows_per_s": round(self.rows_per_s),
            "batch_s": self.batch_s,
            "first_batch_s": self.measured.batch_s[0],
            "start_s": round(self.measured.start_s, 2),
            "batches_s": list(self.measured.batch_s),
            "steady_batches": self.cell.batches - self.cell.unsteady,
            "output_rows": self.output.rows,
            "expected_rows": self.expected.rows,
            "right": self.right,
            "state_bytes_written": statistics.median(written) if written else None,
            "settings": dict(self.measured.settings),
        }

    def tried(self) -> dict[str, Any]:
        setting = self.measured.settings.get(PARTITIONS)
        return {PARTITIONS: setting, "rows_per_s": round(self.rows_per_s), "batch_s": self.batch_s, "right": self.right}


def outcomes_of(contestant: str, runs: Sequence[Run]) -> Iterator[Outcome]:
    """Of each cell the run with the highest rate, beside all that was tried."""
    for name in dict.fromkeys(run.cell.name for run in runs):
        tried = [run for run in runs if run.cell.name == name]
        best = max(tried, key=lambda run: run.rows_per_s)
        cell = best.cell
        described = {
            "cell": name,
            "rows_per_batch": 2 * cell.batch_rows,
            "window_rows": cell.window_rows,
            "keys": cell.keys,
        }
        figures = {**best.as_json(), "right": all(run.right for run in tried), "tried": [run.tried() for run in tried]}
        yield Outcome(described, {contestant: figures})


class Contest:
    """The files of the cells, and the runs over them, all below one folder."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        self.cells = {cell.name: cell for cell in cells}
        self._folder = folder
        self._answers: dict[Cell, Digest] = {}
        for cell in cells:
            write_cell(cell, self._source(cell))

    def measure(self, contestant: Contestant, together: bool) -> Iterator[Outcome]:
        """`together`: all cells in one process, which is quicker; otherwise each in a fresh one."""
        cells = [self.cells[name] for name in contestant.cells]
        if contestant.batches is not None:
            cells = [replace(cell, batches=min(cell.batches, contestant.batches)) for cell in cells]
        runs: list[Run] = []
        for settings in contestant.variants:
            for group in [cells] if together else [[cell] for cell in cells]:
                runs += self._run(contestant, settings, group)
        return outcomes_of(contestant.name, runs)

    def _run(self, contestant: Contestant, settings: Mapping[str, str], cells: Sequence[Cell]) -> Iterator[Run]:
        folder = self._folder / "run"
        with serving("benchmarks.spark_join.contestants:opened", contestant.kind, dict(settings)) as process:
            for cell in cells:
                answer = process.call(asdict(cell), self._source(cell), folder / cell.name)
                if answer.failure:
                    raise SparkError(f"{contestant.name} failed in cell {cell.name}: {answer.failure}")
                measured = Measured(**answer.result)
                if list(measured.batch_rows) != [2 * cell.batch_rows] * cell.batches:
                    raise SparkError(
                        f"{contestant.name} did not take one file of each stream a batch in cell {cell.name}: "
                        f"its batches had {measured.batch_rows} rows"
                    )
                yield Run(cell, measured, written_answer(folder / cell.name / "out"), self._answer(cell))
        shutil.rmtree(folder)

    def _source(self, cell: Cell) -> Path:
        return self._folder / "cells" / cell.name

    def _answer(self, cell: Cell) -> Digest:
        if cell not in self._answers:
            self._answers[cell] = exact_answer(cell, self._source(cell), cell.batches)
        return self._answers[cell]


def experiments(options: Options) -> Experiments:
    quick: bool = options.quick
    with Scratch("bench") as scratch:
        contest = Contest(QUICK_CELLS if quick else CELLS, Path(scratch.path))
        everybody = contestants((2,) if quick else (2, 4))
        yield Experiment(everybody, lambda contestant: contest.measure(contestant, together=quick))


def settings(options: Options) -> dict[str, Any]:
    return {"cells": [asdict(cell) for cell in (QUICK_CELLS if options.quick else CELLS)]}


# --- what it comes to ------------------------------------------------------------------------------------------------


def _figures(outcomes: Outcomes, cell: str, contestant: str) -> Figures | None:
    return next((outcome.contestants.get(contestant) for outcome in outcomes if outcome.cell["cell"] == cell), None)


def summary(outcomes: Outcomes) -> dict[str, float | None]:
    """The rates of the short cell and the ratios that count; None where a contestant did not run."""

    def figure(cell: str, contestant: str, name: str = "rows_per_s") -> float | None:
        figures = _figures(outcomes, cell, contestant)
        return None if figures is None else figures[name]

    def ratio(cell: str, contestant: str = TRANSOM_FILES, rival: str = DEFAULT) -> float | None:
        return _ratio(figure(cell, contestant), figure(cell, rival))

    def growth(name: str) -> float | None:
        return _ratio(figure("growth_10", TRANSOM_FILES, name), figure("growth_1", TRANSOM_FILES, name))

    first = figure("short", TRANSOM_FILES, "first_batch_s")
    return {
        **{name: figure("short", name) for name in NAMES},
        "ratio_default": ratio("short"),
        "ratio_rocksdb": ratio("short", rival=ON_ROCKSDB),
        "ratio_default_long": ratio("long"),
        "ratio_default_small": ratio("small"),
        "ratio_dataframe_default": ratio("short", TRANSOM_DATAFRAME),
        "first_batch_s": None if first is None else round(first, 2),
        "growth_time": growth("batch_s"),
        "growth_bytes": growth("state_bytes_written"),
    }


def _ratio(over: float | None, under: float | None) -> float | None:
    return round(over / under, 2) if over is not None and under else None


def tables(outcomes: Outcomes) -> list[Table]:
    body = []
    for outcome in outcomes:
        default = _figures(outcomes, outcome.cell["cell"], DEFAULT)
        for name in outcome.contestants:
            figures = outcome[name]
            ratio = None if default is None else _ratio(figures["rows_per_s"], default["rows_per_s"])
            times = [f"{figures['batch_s']:.3f}", f"{figures['first_batch_s']:.2f}", str(figures["steady_batches"])]
            right = "yes" if figures["right"] else "NO"
            shown = "-" if ratio is None else f"{ratio:,}"
            rates = [outcome.cell["cell"], name, f"{figures['rows_per_s']:,}"]
            body.append([*rates, *times, f"{figures['output_rows']:,}", right, shown])
    heads = ["cell", "contestant", "rows/s", "s a batch", "first s", "steady", "rows out", "right", "ratio"]
    title = "The ratio is the rate over that of Spark's own join with its default store:"
    return [Table(title, heads, body), *_settings(outcomes)]


def _settings(outcomes: Outcomes) -> Iterator[Table]:
    """Those of all runs of a contestant once, and in which cell it took which others."""
    for name in dict.fromkeys(name for outcome in outcomes for name in outcome.contestants):
        runs = {
            outcome.cell["cell"]: set(outcome[name]["settings"].items())
            for outcome in outcomes
            if name in outcome.contestants
        }
        shared = set.intersection(*runs.values())
        body = [[setting, value, ""] for setting, value in sorted(shared)]
        for cell, used in runs.items():
            body += [[setting, value, cell] for setting, value in sorted(used - shared)]
        yield Table(f"Settings of {name}:", ["setting", "value", "cell"], body)


def panels(outcomes: Outcomes) -> list[Bars]:
    """The cells that have rivals."""
    cells = [outcome for outcome in outcomes if outcome.cell["cell"] in ("short", "long", "small")]
    rates: dict[str, list[float | None]] = {}
    for name in NAMES:
        of_cells = [outcome.contestants.get(name) for outcome in cells]
        if any(of_cells):
            rates[name] = [None if figures is None else figures["rows_per_s"] / 1e6 for figures in of_cells]
    return [Bars("", "cell", "million rows a second", [outcome.cell["cell"] for outcome in cells], rates)]


def fails(outcomes: Outcomes) -> bool:
    """A wrong answer."""
    return any(not outcome[name]["right"] for outcome in outcomes for name in outcome.contestants)


BENCHMARK: Final = Benchmark(
    "Two-stream window join on Spark", experiments, summary, tables, panels, settings, fails=fails
)
