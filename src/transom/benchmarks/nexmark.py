"""NEXMark, the auction house that streaming systems are measured by: Transom in one process and on Spark, and others.

All read the same Parquet files of a backlog to their end and write Parquet files; each contestant has a process of its
own, with a session that is warm: it answers every query over few events first. A rate is rows of the streams that the
query reads, by wall time and by CPU time of the process and all that it has started, the median of the runs. Every
answer is held against DuckDB's: row by row over the few events, by number and checksum over the many.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from transom.benchmarks import nexmark_contestant as kinds
from transom.benchmarks.chart import write_bars
from transom.benchmarks.nexmark_answers import Arbiter
from transom.benchmarks.nexmark_contestant import Measured, Running, running
from transom.benchmarks.nexmark_data import SIDE, STREAMS, Size, write_events
from transom.benchmarks.nexmark_queries import QUERIES, Query
from transom.benchmarks.nexmark_report import (
    BESIDE_FLINK,
    FLINK,
    LOCAL,
    LOCAL_2,
    ON_SPARK,
    OWN,
    Outcome,
    bars,
    report,
    table,
)
from transom.core.errors import OptionError
from transom.plan.options import read_option
from transom.state.scratch import Scratch

EVENTS, FEW_EVENTS, RUNS = 5_000_000, 200_000, 3
QUICK_EVENTS, QUICK_FEW_EVENTS = 200_000, 120_000
"""Windows of ten seconds have 100,000 events: at least one is closed in the few."""
FLINK_FILES: Final = 2
ROWS_A_GROUP: Final = 10_000


@dataclass(frozen=True)
class Contestant:
    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def refuses(self, query: str) -> str:
        """Why it cannot run a query, if it cannot."""
        if self.kind != kinds.OWN:
            return ""
        from transom.runtimes.spark.bench_nexmark import REFUSED

        return REFUSED.get(query, "")


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


class Contest:
    """The few events and the many, and the runs over them, all below one folder."""

    def __init__(self, few: Size, many: Size, runs: int, folder: Path, flink: str | None = None) -> None:
        self._folder, self._runs, self._flink = folder, runs, flink
        self._few, self._many = folder / "few", folder / "many"
        for size, source in ((few, self._few), (many, self._many)):
            _say(f"{size.events:,} events ..")
            write_events(size, source)
            if flink:
                write_for_flink(source, _of_flink(source))

    def measure(self, contestant: Contestant, queries: Sequence[Query]) -> list[Outcome]:
        outcomes = []
        place = self._folder / contestant.name
        with (
            Arbiter(self._few) as few,
            Arbiter(self._many) as many,
            running(contestant.kind, contestant.settings, place, self._flink or "") as process,
        ):
            for query in queries:
                outcome = self._measure(contestant, query, process, few, many)
                told = outcome.refused or outcome.wrong or f"{outcome.rows_per_s:,.0f} rows/s"
                _say(f"{contestant.name}, {query.name}: {told}")
                outcomes.append(outcome)
        shutil.rmtree(place)
        return outcomes

    def _measure(self, contestant: Contestant, query: Query, process: Running, few: Arbiter, many: Arbiter) -> Outcome:
        rows = many.rows(query)
        if refused := contestant.refuses(query.name):
            return Outcome(query.name, contestant.name, rows, (), refused=refused)
        emit = contestant.settings.get("emit", "")
        out = self._folder / contestant.name / query.name
        runs: list[Measured] = []
        written = 0
        for number in range(self._runs + 1):
            warming = number == 0
            arbiter, source = (few, self._few) if warming else (many, self._many)
            if contestant.kind == kinds.FLINK:
                source = _of_flink(source)
            run = process.run(query.name, source, out)
            wrong = run.failure
            if not wrong and warming:
                differences = arbiter.differences(query, contestant.kind, emit, out)
                wrong = f"{differences:,} rows differ from DuckDB's" if differences else ""
            elif not wrong:
                found, expected = arbiter.digest_of(query, contestant.kind, emit, out), arbiter.digest(query)
                written = found.rows
                wrong = "" if found == expected else f"{found} and not {expected}, as DuckDB has it"
                runs.append(run)
            shutil.rmtree(out, ignore_errors=True)
            if wrong:
                return Outcome(query.name, contestant.name, rows, (), written, wrong=wrong)
        return Outcome(query.name, contestant.name, rows, tuple(runs), written)


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


def _say(what: str) -> None:
    print(f"nexmark: {what}", file=sys.stderr, flush=True)


def _chosen(names: Sequence[str] | None, known: Sequence[str], what: str) -> list[str]:
    for name in names or ():
        if name not in known:
            raise OptionError(f"there is no {what} '{name}'", remedy=f"there are {', '.join(known)}")
    return [name for name in known if not names or name in names]


def _settings(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for one in given:
        name, _, value = one.partition("=")
        if not name.startswith("spark."):
            read_option(name, value)  # before anything runs
        settings[name] = value
    return settings


def main(arguments: argparse.Namespace) -> int:
    quick: bool = arguments.quick
    many = Size(arguments.events or (QUICK_EVENTS if quick else EVENTS))
    few = Size(min(many.events, QUICK_FEW_EVENTS if quick else FEW_EVENTS))
    runs: int = arguments.runs or (1 if quick else RUNS)
    settings = _settings(arguments.set)
    all_of_them = {one.name: one for one in contestants(arguments.updates, settings, arguments.flink)}
    names = _chosen(arguments.contestant, list(all_of_them), "contestant")
    wanted = arguments.query or (BESIDE_FLINK if quick else None)
    queries = [QUERIES[name] for name in _chosen(wanted, list(QUERIES), "query")]
    outcomes: list[Outcome] = []
    with Scratch("bench") as scratch:
        contest = Contest(few, many, runs, Path(scratch.path), arguments.flink)
        for name in names:
            outcomes += contest.measure(all_of_them[name], queries)
    if arguments.plot:
        write_bars(arguments.plot, "NEXMark", "million rows a second", *bars(outcomes))
    if arguments.json:
        how = {
            "events": many.events,
            "runs": runs,
            "contestants": {name: {"kind": all_of_them[name].kind, **all_of_them[name].settings} for name in names},
        }
        print(json.dumps(report(outcomes, how), indent=2))
    else:
        print(table(outcomes))
    return 0 if all(not outcome.wrong for outcome in outcomes) else 1
