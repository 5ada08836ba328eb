"""Cells of the experiment: slides of a join by each tactic, one basic window after the other.

A query is planned and run as a user has it, with `SET slide_join`, `SET memory` and `SET disk_speed` in its text. A
slide is what follows from the rows of a basic window: they are handed to the query, and all rows of the slide that is
due then are handed to a function, which counts them. Time is that on the wall, because a disk is waited for. Every
tactic takes a basic window before any takes the next one, so that whatever else the machine does hits all of them; who
is first changes.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Outcome, agreed, digits, take_turns
from benchmarks.overlap.data import MB, Cell, Slide, basic_windows
from transom.program.query_specs import handing
from transom.program.slides import SlideStatus
from transom.runtimes.local.query import LocalQuery
from transom.session import Session, workspace_of

INCREMENTAL, FULL, HYBRID = TACTICS = ("incremental", "full", "hybrid")
LEARNING: Final = 10
"""Slides before those that are measured; in the first three of them the windows fill."""


@dataclass(frozen=True)
class Effort:
    """Slides that are measured: at least `slides`, and up to `most` while they took less than so many seconds."""

    slides: int
    most: int
    seconds: float


@dataclass(frozen=True)
class Taken:
    """A slide as it was made: how long that took, how many results it had, and which way of Algorithm 2 it went."""

    seconds: float
    results: int
    way: str


class Contestant:
    """The query by one tactic, ready to take basic windows."""

    def __init__(self, cell: Cell, tactic: str, declarations: str = "") -> None:
        self.tactic, self.results = tactic, 0
        self._sums, self._checked = [0, 0], True
        session = Session()
        text = f"{declarations or cell.declarations()} SET slide_join = '{tactic}'; {cell.settings} {cell.query};"
        planned = workspace_of(session).prepare(text)[-1]
        query = workspace_of(session).assemble([planned], answer=handing(self._follow)).queries[0]
        assert isinstance(query, LocalQuery)
        self.query = query

    def take(self, rows: Slide, checked: bool) -> Taken:
        """The slide that follows; if it is to be checked, what is in its rows is added up."""
        self._checked = checked
        pipeline, before = self.query.pipeline, self.results
        started = time.perf_counter()
        for name, batch in rows:
            pipeline.push(name, batch)
        output, _ = pipeline.advance()
        if output is not None:
            self.query.sink.write(output.rows)
        seconds = time.perf_counter() - started
        ways = self.slides().report.recent_tactics
        return Taken(seconds, self.results - before, ways[-1] if ways else "")

    def answer(self) -> tuple[int, ...]:
        """What contestants must agree on."""
        return self.results, *self._sums

    def slides(self) -> SlideStatus:
        (found,) = (one.slides for one in self.query.status().operators if one.slides is not None)
        return found

    def _follow(self, rows: pa.Table) -> None:
        """Markers have a status, results have none."""
        self.results += rows.column("status").null_count
        if self._checked:
            for i, name in enumerate(("x", "y")):
                self._sums[i] += pc.sum(rows.column(name)).as_py() or 0


def measure(cell: Cell, effort: Effort) -> Outcome:
    contestants = {tactic: Contestant(cell, tactic) for tactic in TACTICS}
    try:
        return _measured(cell, effort, contestants)
    finally:
        for each in contestants.values():
            each.query.close()


def _measured(cell: Cell, effort: Effort, contestants: Mapping[str, Contestant]) -> Outcome:
    feed = basic_windows(cell)
    first = next(feed)
    for each in contestants.values():  # nothing is due yet
        each.take(first, checked=True)
    learning = take_turns(contestants, islice(feed, LEARNING), lambda each, rows: each.take(rows, checked=True))
    agreed({tactic: each.answer() for tactic, each in contestants.items()})
    disk = {tactic: _disk(each) for tactic, each in contestants.items()}
    gc.collect()
    spent: list[float] = []

    def inputs() -> Iterator[Slide]:
        slides = 0
        while slides < effort.slides or (slides < effort.most and sum(spent) < effort.seconds):
            yield next(feed)
            slides += 1

    def run(contestant: Contestant, rows: Slide) -> Taken:
        taken = contestant.take(rows, checked=False)
        spent.append(taken.seconds)
        return taken

    measured = take_turns(contestants, inputs(), run)
    agreed({tactic: each.answer() for tactic, each in contestants.items()})
    count = len(measured[FULL])
    found = {}
    for tactic, each in contestants.items():
        bytes_a_slide = [(b - a) / count for a, b in zip(disk[tactic], _disk(each), strict=True)]
        found[tactic] = _figures(each, learning[tactic], measured[tactic], bytes_a_slide)
    results = statistics.mean(one.results for one in measured[FULL])
    return Outcome(cell.as_json(), found, {"results_a_slide": round(results), "slides": count})


def _disk(contestant: Contestant) -> tuple[int, int]:
    report = contestant.slides().report
    return report.bytes_written, report.bytes_read


def _figures(
    contestant: Contestant, learning: Sequence[Taken], measured: Sequence[Taken], disk: Sequence[float]
) -> dict[str, Any]:
    found = contestant.slides()
    seconds = [one.seconds for one in measured]
    return {
        "ms": digits(1e3 * statistics.median(seconds)),
        "mean_ms": digits(1e3 * statistics.mean(seconds)),
        "ways": dict(Counter(one.way for one in measured)),
        "learning_ms": [digits(1e3 * one.seconds) for one in learning],
        "learning_ways": dict(Counter(one.way for one in learning)),
        "written_mb_a_slide": digits(disk[0] / MB),
        "read_mb_a_slide": digits(disk[1] / MB),
        "kept_mb_at_most": digits(found.report.peak_bytes / MB),
        "estimates": estimated(found.estimates),
    }


def estimated(known: Mapping[str, float | None]) -> dict[str, float | None]:
    """What a tactic has learned; costs are known where Algorithm 2 had to compare them."""
    names = {
        "reuse_cost_ms": ("reuse_cost", 1e3),
        "join_cost_ms": ("join_cost", 1e3),
        "selectivity": ("selectivity", 1),
        "bytes_a_result": ("row_bytes", 1),
        "join_ns_a_row": ("joining", 1e9),
        "merge_ns_a_row": ("merging", 1e9),
        "write_ns_a_byte": ("writing", 1e9),
        "read_ns_a_byte": ("reading", 1e9),
    }
    values = {name: (known.get(key), factor) for name, (key, factor) in names.items()}
    return {name: None if value is None else digits(factor * value) for name, (value, factor) in values.items()}
