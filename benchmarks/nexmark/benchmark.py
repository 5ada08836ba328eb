"""NEXMark, the auction house that streaming systems are measured by: Transom in one process and on Spark, and others.

All read the same Parquet files of a backlog to their end and write Parquet files; each contestant has a process of its
own, with a session that is warm: it answers every query over few events first. A rate is rows of the streams that the
query reads, by wall time and by CPU time of the process and all that it has started, the median of the runs. Every
answer is held against DuckDB's: row by row over the few events, by number and checksum over the many.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.chart import Bars
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    by_contestant,
    count,
)
from benchmarks.nexmark import contestants as kinds
from benchmarks.nexmark.answers import Arbiter
from benchmarks.nexmark.data import SIDE, STREAMS, Size, write_events
from benchmarks.nexmark.queries import QUERIES, UNWRITTEN, Query
from benchmarks.nexmark.spark_own import UNSUPPORTED
from benchmarks.processes import Answer
from benchmarks.processes import Contestant as Process
from transom.core.emit_modes import EMITS
from transom.core.errors import OptionError
from transom.plan.options import read_option
from transom.state.scratch import Scratch

EVENTS, FEW_EVENTS, RUNS = 5_000_000, 200_000, 3
QUICK_EVENTS, QUICK_FEW_EVENTS = 200_000, 120_000
"""Windows of ten seconds have 100,000 events: at least one is closed in the few."""
FLINK_FILES: Final = 2
ROWS_A_GROUP: Final = 10_000

LOCAL, LOCAL_2, ON_SPARK, OWN, FLINK = "transom_local", "transom_local_2", "transom_spark", "spark_own", "flink"
STATEFUL: Final = ("q3", "q5", "q8", "q11", "q12", "q17", "q20")
BESIDE_FLINK: Final = ("q0", "q2", *STATEFUL)
BY_CPU: Final = ("q5", "q12", "q17", "q20")


@dataclass(frozen=True)
class Contestant:
    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def unsupported(self, query: str) -> str:
        """Why it cannot run a query, if it cannot."""
        return UNSUPPORTED.get(query, "") if self.kind == kinds.OWN else ""


def contestants(emit: str, settings: Mapping[str, str], flink: str | None) -> list[Contestant]:
    """`emit` and `settings` are those of Transom, but for those of Spark, which are for both that run on it."""
    of_spark = {name: value for name, value in settings.items() if name.startswith("spark.")}
    ours = {"emit": emit} | {name: value for name, value in settings.items() if name not in of_spark}
    some = [
        Contestant(LOCAL, kinds.LOCAL, ours | {"partitions": "1"}),
        Contestant(LOCAL_2, kinds.LOCAL, ours | {"partitions": "2"}),
        Contestant(ON_SPARK, kinds.SPARK, ours | of_spark),
        Contestant(OWN, kinds.OWN, of_spark),
    ]
    return [*some, Contestant(FLINK, kinds.FLINK)] if flink else some


# --- the runs --------------------------------------------------------------------------------------------------------


class Contest:
    """The few events and the many, and the runs over them, all below one folder."""

    def __init__(self, few: Size, many: Size, runs: int, folder: Path, flink: str | None = None) -> None:
        self._folder, self._runs, self._flink = folder, runs, flink
        self._few, self._many = folder / "few", folder / "many"
        for size, source in ((few, self._few), (many, self._many)):
            write_events(size, source)
            if flink:
                write_for_flink(source, _of_flink(source))

    def measure(self, contestant: Contestant, queries: Sequence[Query]) -> Iterator[Outcome]:
        with (
            Arbiter(self._few) as few,
            Arbiter(self._many) as many,
            kinds.started(contestant.kind, contestant.settings, self._flink or "") as process,
        ):
            for query in queries:
                rows = many.rows(query)
                cell = {"query": query.name, "meaning": query.meaning, "instead": query.instead, "input_rows": rows}
                if unsupported := contestant.unsupported(query.name):
                    figures: Figures = {"unsupported": unsupported}
                else:
                    figures = self._measure(contestant, query, process, few, many)
                yield Outcome(cell, {contestant.name: figures})

    def _measure(self, contestant: Contestant, query: Query, process: Process, few: Arbiter, many: Arbiter) -> Figures:
        emit = contestant.settings.get("emit", "")
        out = self._folder / contestant.name / query.name
        runs: list[Answer] = []
        written = 0
        for number in range(self._runs + 1):
            warming = number == 0
            arbiter, source = (few, self._few) if warming else (many, self._many)
            if contestant.kind == kinds.FLINK:
                source = _of_flink(source)
            run = process.call(query.name, source, out)
            wrong = run.failure
            if not wrong and warming:
                differences = arbiter.differences(query, contestant.kind, emit, out)
                wrong = f"{differences:,} rows differ from DuckDB's" if differences else ""
            elif not wrong:
                digest, expected = arbiter.digest_of(query, contestant.kind, emit, out), arbiter.digest(query)
                written = digest.rows
                wrong = "" if digest == expected else f"{digest} and not {expected}, as DuckDB has it"
                runs.append(run)
            shutil.rmtree(out, ignore_errors=True)
            if wrong:
                return {"output_rows": written, "right": False, "wrong": wrong}
        rows = many.rows(query)
        return {
            "wall_s": [round(run.wall_s, 3) for run in runs],
            "cpu_s": [round(run.cpu_s, 2) for run in runs],
            "rows_per_s": round(rows / median(run.wall_s for run in runs)),
            "rows_per_cpu_s": round(rows / median(run.cpu_s for run in runs)),
            "output_rows": written,
            "right": True,
        }


def _of_flink(source: Path) -> Path:
    return source.with_name(f"{source.name}-flink")


def write_for_flink(source: Path, target: Path) -> None:
    """The same rows in as many files as Flink has readers, each in the order of time, as partitions of a topic are.

    Of a folder with more files it takes any first, and would find the others late. Times are written as it reads them.
    """
    for name in STREAMS:
        (target / name).mkdir(parents=True)
        paths = sorted((source / name).glob("*.parquet"))
        schema = pq.read_schema(paths[0])
        writers = [
            pq.ParquetWriter(target / name / f"part-{i}.parquet", schema, use_deprecated_int96_timestamps=True)
            for i in range(FLINK_FILES)
        ]
        turn = 0
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches(ROWS_A_GROUP):
                writers[turn % FLINK_FILES].write_table(pa.Table.from_batches([batch]))
                turn += 1
        for writer in writers:
            writer.close()
    shutil.copytree(source / SIDE, target / SIDE)


# --- what is requested -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What the options come to."""

    events: int
    few_events: int
    runs: int
    contestants: Sequence[Contestant]
    queries: Sequence[Query]

    @staticmethod
    def of(options: Options) -> Request:
        quick: bool = options.quick
        events = options.events or (QUICK_EVENTS if quick else EVENTS)
        by_name = {
            contestant.name: contestant
            for contestant in contestants(options.updates, _settings(options.set), options.flink)
        }
        wanted = options.query or (BESIDE_FLINK if quick else None)
        return Request(
            events,
            min(events, QUICK_FEW_EVENTS if quick else FEW_EVENTS),
            options.runs or (1 if quick else RUNS),
            [by_name[name] for name in _chosen(options.contestant, list(by_name), "contestant")],
            [QUERIES[name] for name in _chosen(wanted, list(QUERIES), "query")],
        )


def _chosen(names: Sequence[str] | None, choices: Sequence[str], what: str) -> list[str]:
    for name in names or ():
        if name not in choices:
            raise OptionError(f"there is no {what} '{name}'", remedy=f"there are {', '.join(choices)}")
    return [name for name in choices if not names or name in names]


def _settings(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for setting in given:
        name, _, value = setting.partition("=")
        if not name.startswith("spark."):
            read_option(name, value)  # before anything runs
        settings[name] = value
    return settings


def experiments(options: Options) -> Experiments:
    request = Request.of(options)
    with Scratch("bench") as scratch:
        few, many = Size(request.few_events), Size(request.events)
        contest = Contest(few, many, request.runs, Path(scratch.path), options.flink)
        yield Experiment(request.contestants, lambda contestant: contest.measure(contestant, request.queries))


def settings(options: Options) -> dict[str, Any]:
    request = Request.of(options)
    return {
        "events": request.events,
        "runs": request.runs,
        "contestants": {
            contestant.name: {"kind": contestant.kind, **contestant.settings} for contestant in request.contestants
        },
        "unwritten": dict(UNWRITTEN),
    }


# --- what it comes to ------------------------------------------------------------------------------------------------

Rates = Mapping[tuple[str, str], Figures]


def measured(outcomes: Outcomes) -> dict[tuple[str, str], Figures]:
    """By query and contestant, those that have run and are right."""
    return {
        (outcome.cell["query"], name): figures
        for outcome in outcomes
        for name, figures in outcome.contestants.items()
        if figures is not None and figures.get("right")
    }


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Ratios of medians, above 1 where Transom is ahead, but for `local_over_spark_cpu_max`: what Spark costs."""
    rates = measured(outcomes)
    queries = [name for name in QUERIES if any(name == query for query, _ in rates)]
    over_own = {name: ratio for name in queries if (ratio := _ratio(rates, name, (ON_SPARK,), OWN))}
    costs = [
        rates[name, LOCAL]["rows_per_cpu_s"] / rates[name, ON_SPARK]["rows_per_cpu_s"]
        for name in BY_CPU
        if (name, LOCAL) in rates and (name, ON_SPARK) in rates
    ]
    return {
        "rows_per_s": _rates(rates, queries, "rows_per_s"),
        "rows_per_cpu_s": _rates(rates, queries, "rows_per_cpu_s"),
        "spark_over_own": {name: round(ratio, 3) for name, ratio in over_own.items()},
        "spark_over_own_min": _least(over_own.get(name) for name in STATEFUL),
        "local_over_spark_cpu_max": round(max(costs), 3) if costs else None,
        "spark_over_flink_min": _least(_ratio(rates, name, (ON_SPARK,), FLINK) for name in BESIDE_FLINK),
        "local_over_flink_min": _least(_ratio(rates, name, (LOCAL, LOCAL_2), FLINK) for name in BESIDE_FLINK),
        "right": not fails(outcomes),
    }


def _ratio(rates: Rates, query: str, ours: Sequence[str], theirs: str) -> float | None:
    """By wall rate; the best of ours."""
    of_ours = [rates[query, name]["rows_per_s"] for name in ours if (query, name) in rates]
    return float(max(of_ours) / rates[query, theirs]["rows_per_s"]) if of_ours and (query, theirs) in rates else None


def _least(ratios: Iterable[float | None]) -> float | None:
    there = [ratio for ratio in ratios if ratio is not None]
    return round(min(there), 3) if there else None


def _rates(rates: Rates, queries: Sequence[str], figure: str) -> dict[str, dict[str, int]]:
    return {
        name: {who: figures[figure] for (query, who), figures in rates.items() if query == name} for name in queries
    }


def tables(outcomes: Outcomes) -> list[Table]:
    title = "Thousand rows a second, and in brackets a CPU second:"
    return [by_contestant(title, outcomes, _shown, lambda cell: str(cell["query"]))]


def _shown(figures: Figures) -> str:
    if "unsupported" in figures:
        return "-"
    if not figures["right"]:
        return "WRONG"
    return f"{figures['rows_per_s'] / 1000:,.0f} ({figures['rows_per_cpu_s'] / 1000:,.0f})"


_IN_CHARTS: Final = {
    "transom_local": "Transom, one process",
    "transom_spark": "Transom on Spark",
    "spark_own": "Spark's own streaming",
    "flink": "Flink",
}


def panels(outcomes: Outcomes) -> list[Bars]:
    measured_rates = measured(outcomes)
    queries, names = (list(dict.fromkeys(key[at] for key in measured_rates)) for at in (0, 1))
    rates = {
        _IN_CHARTS.get(name, name): [
            measured_rates[query, name]["rows_per_s"] / 1e6 if (query, name) in measured_rates else None
            for query in queries
        ]
        for name in names
    }
    return [Bars("", "NEXMark query", "million rows a second", queries, rates)]


def fails(outcomes: Outcomes) -> bool:
    """A wrong answer."""
    return any(
        figures is not None and figures.get("right") is False
        for outcome in outcomes
        for figures in outcome.contestants.values()
    )


BENCHMARK: Final = Benchmark(
    "NEXMark",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[
        Option("--events", "so many events (default 5,000,000)", {"metavar": "N", "type": count}),
        Option("--runs", "so many runs of each query (default 3)", {"metavar": "N", "type": count}),
        Option("--query", "these queries alone, such as q5", {"metavar": "NAME", "nargs": "+"}),
        Option("--contestant", "these alone, such as transom_spark", {"metavar": "NAME", "nargs": "+"}),
        Option("--flink", "beside Flink, with this interpreter that has it", {"metavar": "PYTHON"}),
        Option(
            "--updates",
            "how Transom writes answers that change (default %(default)s)",
            {"choices": [emit for emit in EMITS if emit != "lifetimes"], "default": "net"},
        ),
        Option(
            "--set",
            "an option of Transom, as SET in the queries, or a setting of Spark (spark. ..)",
            {"metavar": "OPTION=VALUE", "action": "append", "default": []},
        ),
    ],
    fails=fails,
)
