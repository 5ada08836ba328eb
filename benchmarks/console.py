"""What a watched console costs the queries that it shows.

Twenty queries in one thread take small batches as fast as they can. In every round they run for a while without a
console, with one that nobody looks at, and with one that ten pages of a real browser watch, each another query; who
comes first changes. The process of the queries has a core of its own and its browser the others, so that pages take
nothing but what they ask for. The rate is that of the clock, and by CPU time of the process, which other programs on
the machine disturb less; both are compared within their round.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa

from benchmarks.browser import browser, why_not
from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    count,
    digits,
    lines_of,
    medians,
    take_turns,
)
from benchmarks.processes import Contestant, serving
from transom import Session
from transom.console.open import Console
from transom.core.errors import SourceError

QUERIES: Final = 20
PAGES: Final = 10
ROWS: Final = 20
"""Of a batch, and groups of each answer."""

VIEWS: Final = ("answer", "plan", "answer", "inputs", "answer", "history", "answer", "answer", "answer", "answer")
"""What the pages show in turn: the answer costs most."""

STATES: Final = ("closed", "nobody", "watched")
WORDS: Final = {"closed": "closed", "nobody": "nobody looks", "watched": "watched"}
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MOST_MS: Final = 300_000
_SECONDS_TO_SETTLE: Final = 3.0
_SECONDS_TO_REST: Final = 12.0
"""Pages that have just come are answered at once, and the console rests for it later: by then it has."""


COUNTING: Final = """
window.seen = 0;
const own = EventSource;
window.EventSource = class extends own {
  constructor(...all) { super(...all); this.addEventListener("message", () => { window.seen += 1; }); }
};
"""


# --- the process of the queries --------------------------------------------------------------------------------------


def queries(number: int, cores: Sequence[int]) -> Callable[..., Any]:
    """Runs them from now on, and does what it is told by the name of the job."""
    os.sched_setaffinity(0, cores)
    session = Session(batch_rows=ROWS)
    session.stream("s", endless(), time="ts")
    for each in range(number):
        text = f"SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] WHERE k <> {each} GROUP BY k"
        session.add(text, name=f"q{each}", on_rows=lambda rows: None)
    console: list[Console] = []

    def job(what: str, seconds: float = 0.0) -> Any:
        if what == "open":
            console.append(session.console("127.0.0.1:0"))
            return console[-1].url
        if what == "close":
            console.pop().close()
            return None
        return measured(session, seconds, [thread.native_id or 0 for each in console for thread in each.threads])

    return job


def endless() -> Callable[[], Iterator[pa.RecordBatch]]:
    keys = pa.array(range(ROWS), pa.int32())

    def batches() -> Iterator[pa.RecordBatch]:
        for first in itertools.count(1_700_000_000_000_000, 1000 * ROWS):
            times = pa.array(range(first, first + 1000 * ROWS, 1000), pa.timestamp("us"))
            yield pa.record_batch({"ts": times, "k": keys})

    return batches


def measured(session: Session, seconds: float, threads: Sequence[int]) -> dict[str, float]:
    """Batches a second of a query, by the clock and by the CPU time of this process, and the console's part of that."""

    def now() -> tuple[float, float, float, float]:
        steps = sum(query.status.steps for query in session.queries)
        return time.perf_counter(), steps, time.process_time(), cpu_seconds(threads)

    before = now()
    time.sleep(seconds)
    wall, steps, cpu, shown = (after - then for after, then in zip(now(), before, strict=True))
    each = steps / len(session.queries)
    return {"rate": each / wall, "rate_of_cpu": each / cpu, "console_share": shown / cpu, "core_share": cpu / wall}


def cpu_seconds(threads: Sequence[int]) -> float:
    """Of threads of this process."""
    ticks = 0
    for thread in threads:
        with open(f"/proc/self/task/{thread}/stat", encoding="ascii") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return ticks / _TICKS


# --- the process of the browser --------------------------------------------------------------------------------------


def pages(number: int, cores: Sequence[int]) -> Callable[..., Any]:
    """A browser with so many pages, each in a profile of its own; a browser has few connections for a profile."""
    os.sched_setaffinity(0, cores)
    opened = ExitStack()
    contexts = opened.enter_context(browser())
    tabs = [contexts.new_context(viewport={"width": 1280, "height": 860}).new_page() for _ in range(number)]
    for tab in tabs:
        tab.add_init_script(COUNTING)

    def job(what: str, url: str = "") -> Any:
        if what == "watch":
            for at, tab in enumerate(tabs):
                tab.goto(f"{url}#/query/q{at}/{VIEWS[at % len(VIEWS)]}", timeout=_MOST_MS)
            return None
        if what == "leave":
            for tab in tabs:
                tab.goto("about:blank")
            return None
        if what == "end":
            opened.close()
            return None
        return sum(int(tab.evaluate("window.seen")) for tab in tabs)

    return job


# --- the benchmark ---------------------------------------------------------------------------------------------------


class Trial:
    """The two processes, and one state after the other."""

    def __init__(self, queries: Contestant, pages: Contestant, number: int, seconds: float) -> None:
        self._queries, self._pages, self._number, self._seconds = queries, pages, number, seconds

    def measure(self, state: str, turn: int) -> dict[str, float]:
        if state == "closed":
            return self._measured()
        url = _done(self._queries.call("open"))
        if state == "watched":
            _done(self._pages.call("watch", url))
        found = self._measured(watched=state == "watched")
        if state == "watched":
            _done(self._pages.call("leave"))
        _done(self._queries.call("close"))
        return found

    def _measured(self, watched: bool = False) -> dict[str, float]:
        time.sleep(_SECONDS_TO_REST if watched else _SECONDS_TO_SETTLE)
        before = _done(self._pages.call("seen")) if watched else 0
        found: dict[str, float] = _done(self._queries.call("measure", self._seconds))
        messages = (_done(self._pages.call("seen")) if watched else 0) - before
        return {**found, "messages": messages / self._seconds / max(self._number, 1)}


def _done(answer: Any) -> Any:
    if answer.failure:
        raise SourceError(answer.failure)
    return answer.result


def experiments(options: Options) -> Experiments:
    if missing := why_not():
        raise SourceError(f"no browser can be opened: {missing}", remedy="install chromium and playwright")
    number, pages_open, seconds, rounds = _size(options)
    cores = sorted(os.sched_getaffinity(0))
    own, others = cores[:1], cores[1:] or cores
    with (
        serving("benchmarks.console:queries", number, own) as engine,
        serving("benchmarks.console:pages", pages_open, others) as tabs,
    ):
        trial = Trial(engine, tabs, pages_open, seconds)
        trial.measure("watched", 0)  # what is made and loaded once
        time.sleep(_SECONDS_TO_SETTLE)

        def whole(cell: str) -> list[Outcome]:
            found = take_turns({state: state for state in STATES}, range(rounds), trial.measure)
            pairs = list(zip(found["closed"], found["watched"], strict=True))
            about = {figure: [digits(_lost(*pair, figure)) for pair in pairs] for figure in ("rate", "rate_of_cpu")}
            figures = {state: _short(medians(runs)) for state, runs in found.items()}
            return [Outcome({"queries": number, "pages": pages_open, "x": pages_open}, figures, {"lost": about})]

        yield Experiment([f"{number} queries, {pages_open} pages"], whole)
        _done(tabs.call("end"))


def _lost(without: Mapping[str, float], watched: Mapping[str, float], what: str) -> float:
    return 1 - watched[what] / without[what]


def _short(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: digits(value) for name, value in figures.items()}


def _size(options: Options) -> tuple[int, int, float, int]:
    """Queries, pages, seconds that a state is measured, and rounds."""
    seconds = options.seconds or (0.5 if options.quick else 8.0)
    rounds = options.rounds or (1 if options.quick else 7)
    return (2, 2, seconds, rounds) if options.quick else (QUERIES, PAGES, seconds, rounds)


def settings(options: Options) -> dict[str, float]:
    number, pages_open, seconds, rounds = _size(options)
    return {"queries": number, "pages": pages_open, "seconds": seconds, "rounds": rounds, "batch_rows": ROWS}


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """What pages that watch take of the rate of the queries: the median of the rounds, and how far these lie apart."""
    (outcome,) = outcomes
    lost = outcome.cell["lost"]
    return {
        "cost_share": digits(statistics.median(lost["rate"])),
        "cost_share_least": min(lost["rate"]),
        "cost_share_most": max(lost["rate"]),
        "cost_share_error": _standard_error(lost["rate"]),
        "cpu_cost_share": digits(statistics.median(lost["rate_of_cpu"])),
        "console_share": outcome["watched"]["console_share"],
        "console_share_nobody": outcome["nobody"]["console_share"],
        "messages": outcome["watched"]["messages"],
    }


def _standard_error(values: Sequence[float]) -> float | None:
    """Of their mean."""
    return digits(statistics.stdev(values) / len(values) ** 0.5) if len(values) > 1 else None


def tables(outcomes: Outcomes) -> list[Table]:
    (outcome,) = outcomes
    body = [
        [
            WORDS[state],
            f"{outcome[state]['rate']:.1f}",
            f"{outcome[state]['rate_of_cpu']:.1f}",
            f"{outcome[state]['core_share']:.0%}",
            f"{outcome[state]['console_share']:.2%}",
            f"{outcome[state]['messages']:.1f}",
        ]
        for state in STATES
    ]
    heads = ["console", "batches/s", "by CPU second", "of a core", "the console's part", "messages/s a page"]
    lost = outcome.cell["lost"]
    spread = [
        [f"lost {word}", f"{statistics.median(lost[name]):.2%}", f"{min(lost[name]):.2%} to {max(lost[name]):.2%}"]
        for name, word in (("rate", "by the clock"), ("rate_of_cpu", "by CPU"))
    ]
    return [
        Table(f"Each of {outcome.cell['queries']} queries, {outcome.cell['pages']} pages; medians:", heads, body),
        Table("Rate lost while pages watch, against none:", ["", "median", "rounds"], spread),
    ]


def panels(outcomes: Outcomes) -> list[Panel]:
    rates = lines_of(outcomes, lambda figures: figures["rate"])
    return [Panel("rate", "pages", "batches/s of a query", rates)]


OPTIONS: Final = (
    Option("--seconds", "how long a state is measured (8)", {"type": float, "metavar": "S"}),
    Option("--rounds", "how often all states are measured (7)", {"type": count, "metavar": "N"}),
)

BENCHMARK: Final = Benchmark("A watched console", experiments, summary, tables, panels, settings, OPTIONS)
