"""One harness for all benchmarks: cells x contestants -> rows, tables, JSON, a chart.

A benchmark declares what is its own (`Benchmark`): options, experiments, and what its figures come to. The harness does
what is alike: the loop over the cells, progress, the machine, `--json`, tables for people, `--plot`, `--read`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from benchmarks.chart import Bars, Panel, write_chart
from benchmarks.meters import machine
from benchmarks.registry import BENCHMARKS
from transom.cli.query_file import UsageError
from transom.core.errors import SourceError
from transom.core.text import visible

Figures = Mapping[str, Any]
"""By name: numbers and texts, as they are written down in JSON."""

Options = argparse.Namespace
Subject = TypeVar("Subject")
Input = TypeVar("Input")
Result = TypeVar("Result")


# --- what a benchmark declares ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A cell and what every contestant did in it; None: it is not measured there, and the cell may say why.

    The `cell` is what it is known by; `about` is what was found of it as a whole.
    """

    cell: Figures
    contestants: Mapping[str, Figures | None]
    about: Figures = field(default_factory=dict)

    def __getitem__(self, contestant: str) -> Figures:
        figures = self.contestants[contestant]
        assert figures is not None, f"{contestant} was not measured"
        return figures

    def line(self) -> str:
        """In short, while others are still measured; nothing if there is no rate."""
        rates = {name: figures.get("rows_per_s") for name, figures in self.contestants.items() if figures is not None}
        shown = ", ".join(f"{name} {short(rate)} rows/s" for name, rate in rates.items() if rate is not None)
        return f"  {next(iter(self.cell.values()))}: {shown}" if shown else ""

    def as_json(self) -> dict[str, Any]:
        return {**self.cell, **self.about, "contestants": dict(self.contestants)}

    @staticmethod
    def read(written: Figures) -> Outcome:
        cell = dict(written)
        return Outcome(cell, cell.pop("contestants", {}))


@dataclass(frozen=True)
class Experiment:
    """Cells that are measured alike, each for some contestants or all. What a cell is called is its text."""

    cells: Sequence[Any]
    measure: Callable[[Any], Iterable[Outcome]]


@dataclass(frozen=True)
class Table:
    """For people. Without columns it is a paragraph."""

    title: str
    heads: Sequence[str] = ()
    body: Sequence[Sequence[str]] = ()

    def __str__(self) -> str:
        lines = [self.heads, ["---"] * len(self.heads), *self.body] if self.heads else []
        return "\n\n".join(filter(None, [self.title, "\n".join(f"| {' | '.join(line)} |" for line in lines)]))


@dataclass(frozen=True)
class Option:
    """An option of one benchmark, as `argparse` takes it."""

    name: str
    help: str
    how: Figures = field(default_factory=dict)


Outcomes = Sequence[Outcome]
Experiments = Generator[Experiment, None, None]


@dataclass(frozen=True)
class Benchmark:
    """What is its own in a benchmark. `settings` are written down beside the figures, `machine` what it ran on.

    `fails` says whether what was found is a fault of what was measured, and not only slow.
    """

    title: str
    experiments: Callable[[Options], Experiments]
    summary: Callable[[Outcomes], Figures]
    tables: Callable[[Outcomes], Sequence[Table]]
    panels: Callable[[Outcomes], Sequence[Panel | Bars]]
    settings: Callable[[Options], Figures]
    options: Sequence[Option] = ()
    machine: Callable[[], Figures] = machine
    fails: Callable[[Outcomes], bool] = lambda outcomes: False


def count(text: str) -> int:
    """The type of an option that is a number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number above 0 is expected, not '{text}'")
    return int(text)


# --- what measuring has in common ------------------------------------------------------------------------------------


def take_turns(
    contestants: Mapping[str, Subject], inputs: Iterable[Input], run: Callable[[Subject, Input], Result]
) -> dict[str, list[Result]]:
    """What each makes of the inputs. All take one before any takes the next, so that whatever else the machine does
    hits all of them; who is first changes.

    >>> take_turns({"a": 1, "b": 2}, range(2), lambda contestant, given: contestant + given)
    {'a': [1, 2], 'b': [2, 3]}
    """
    results: dict[str, list[Result]] = {name: [] for name in contestants}
    names = list(contestants)
    for number, given in enumerate(inputs):
        first = number % max(1, len(names))
        for name in names[first:] + names[:first]:
            results[name].append(run(contestants[name], given))
    return results


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """
    >>> medians([{"s": 3.0}, {"s": 1.0}, {"s": 2.0}])
    {'s': 2.0}
    """
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def agreed(answers: Mapping[str, Result]) -> Result:
    """The answer, which is the same by all contestants, or none of their times means anything."""
    first = next(iter(answers.values()))
    assert first, "there is no answer"
    assert all(answer == first for answer in answers.values()), f"the answers differ: {answers}"
    return first


def digits(value: float) -> float:
    """Four digits that count, for programs."""
    return float(f"{value:.4g}")


def short(value: float) -> str:
    """Three digits that count, for people.

    >>> short(123_456), short(0.012345), short(-98.76)
    ('123,000', '0.0123', '-98.8')
    """
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def of(outcomes: Outcomes, *experiments: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.cell["experiment"] in experiments]


def by_contestant(
    title: str,
    outcomes: Outcomes,
    show: Callable[[Figures], str],
    head: Callable[[Figures], str] = lambda cell: f"{cell['x']:,g}",
) -> Table:
    """A line for every contestant, and a column for every cell."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.contestants)
    body = []
    for name in names:
        row = [outcome.contestants.get(name) for outcome in outcomes]
        body.append([name, *("-" if figures is None else show(figures) for figures in row)])
    return Table(title, ["contestant", *(head(outcome.cell) for outcome in outcomes)], body)


def lines_of(
    outcomes: Outcomes, figure: Callable[[Figures], float | None], names: Sequence[str] = ()
) -> dict[str, list[tuple[float, float]]]:
    """The points of a panel: a line for every contestant, over what its experiment changes."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for outcome in outcomes:
        for name in names or outcome.contestants:
            figures = outcome.contestants.get(name)
            value = None if figures is None else figure(figures)
            if value is not None:
                lines.setdefault(name, []).append((outcome.cell["x"], value))
    return lines


class Progress:
    """What is measured now, on standard error: on a terminal in one line, elsewhere a line for each."""

    _CLEAR: Final = "\r\x1b[K"

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = time.perf_counter()
        self._live = sys.stderr.isatty()

    def say(self, what: str) -> None:
        text = f"{self._name}: {what}"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print(f"{self._CLEAR}{text[:width]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def done(self) -> None:
        self.say(f"took {time.perf_counter() - self._began:.0f} s")
        if self._live:
            print(file=sys.stderr)


# --- the run ---------------------------------------------------------------------------------------------------------


def measured(benchmark: Benchmark, options: Options, progress: Progress) -> list[Outcome]:
    """What was found in every cell; contestants that were measured apart in the same cell stand together."""
    by_cell: dict[str, Outcome] = {}
    with closing(benchmark.experiments(options)) as experiments:
        for experiment in experiments:
            for cell in experiment.cells:
                if options.cells and not any(fnmatchcase(str(cell), pattern) for pattern in options.cells):
                    continue
                progress.say(f"{cell} ..")
                for outcome in experiment.measure(cell):
                    if line := outcome.line():
                        progress.say(line)
                    written = json.dumps(outcome.cell, default=str)
                    before = by_cell.get(written)
                    if before is not None:
                        outcome = Outcome(
                            outcome.cell,
                            {**before.contestants, **outcome.contestants},
                            {**before.about, **outcome.about},
                        )
                    by_cell[written] = outcome
    progress.done()
    return list(by_cell.values())


def report(benchmark: Benchmark, options: Options, progress: Progress) -> dict[str, Any]:
    """All that is written down, and for people shown: of a run, or of earlier ones (`--read`)."""
    if options.read:
        files = [_read(path) for path in options.read]
        outcomes = [Outcome.read(cell) for document in files for cell in document["cells"]]
        about: dict[str, Any] = {"machines": [document["machine"] for document in files]}
    else:
        outcomes = measured(benchmark, options, progress)
        about = {"machine": benchmark.machine(), "settings": benchmark.settings(options)}
    # As whoever reads the file will have it: tuples are lists there.
    document = json.dumps({**about, "cells": [outcome.as_json() for outcome in outcomes]})
    read: dict[str, Any] = json.loads(document)
    return {**read, "summary": benchmark.summary([Outcome.read(cell) for cell in read["cells"]])}


def text_of(benchmark: Benchmark, document: Figures) -> str:
    outcomes = [Outcome.read(cell) for cell in document["cells"]]
    parts = [_machine_line(machine) for machine in document.get("machines", [document.get("machine", {})]) if machine]
    summary = [[name, _plain(value)] for name, value in document["summary"].items() if _is_plain(value)]
    return "\n\n".join(
        [*parts, *map(str, benchmark.tables(outcomes)), str(Table("Summary:", ["figure", "value"], summary))]
    )


def run(benchmark: Benchmark, name: str, options: Options) -> int:
    document = report(benchmark, options, Progress(name))
    outcomes = [Outcome.read(cell) for cell in document["cells"]]
    if options.plot:
        write_chart(options.plot, benchmark.title, benchmark.panels(outcomes))
    print(json.dumps(document, indent=2) if options.json else text_of(benchmark, document))
    return 1 if benchmark.fails(outcomes) else 0


def _machine_line(machine: Figures) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    threads = f"; a hand-over between threads takes {machine['handover_us']:g} µs" if "handover_us" in machine else ""
    return f"{machine['cores']} cores, {machine['processor']}, {machine['memory_gib']} GiB; {versions}{threads}."


def _is_plain(value: Any) -> bool:
    """Whether it fits into a line; what does not is in a table of its own."""
    parts = list(value.values()) if isinstance(value, Mapping) else [value]
    return bool(parts) and not any(isinstance(part, Mapping | list | tuple) for part in parts)


def _plain(value: Any) -> str:
    """
    >>> _plain({"a": 1.5, "b": 2_000, "c": None})
    'a 1.5, b 2,000, c -'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _read(path: str) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"the results in '{path}' cannot be read: {error}", remedy="name a file of --json") from error
    if not isinstance(document, dict) or not {"machine", "cells"} <= document.keys():
        raise SourceError(f"there are no results in '{path}'", remedy="name a file of transom bench NAME --json")
    return document


# --- the command line ------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def parser(name: str | None, options: Sequence[Option] = ()) -> argparse.ArgumentParser:
    made = _Parser(prog="transom bench", description=BENCHMARKS[name].purpose if name else "Lists the benchmarks.")
    made.add_argument("name", metavar="NAME", nargs="?", help="the benchmark to run; without it they are listed")
    made.add_argument("--json", action="store_true", help="as JSON, ending in a summary")
    if name:
        made.add_argument("--quick", action="store_true", help="a small run of under a minute")
        made.add_argument("--plot", metavar="FILE", help="write a chart to this file")
        made.add_argument("--read", metavar="FILE", nargs="+", help="show what --json wrote to these files")
        made.add_argument(
            "--cells", metavar="PATTERN", nargs="+", help="only cells that progress calls so; * is anything"
        )
        for option in options:
            made.add_argument(option.name, help=option.help, **option.how)
    return made


def main(arguments: Sequence[str]) -> int:
    name = next((argument for argument in arguments if argument in BENCHMARKS), None)
    if name is None:
        options = parser(None).parse_args(arguments)
        if options.name is not None:
            close = difflib.get_close_matches(options.name, BENCHMARKS, n=1) or sorted(BENCHMARKS)
            raise UsageError(f"there is no benchmark '{options.name}'", remedy=f"there is {', '.join(close)}")
        purposes = {name: entry.purpose for name, entry in BENCHMARKS.items()}
        width = max(map(len, purposes))
        lines = "\n".join(f"{name:{width}}  {purpose}" for name, purpose in purposes.items())
        print(json.dumps({"benchmarks": purposes}, indent=2) if options.json else lines)
        return 0
    benchmark: Benchmark = import_module(BENCHMARKS[name].module).BENCHMARK
    return run(benchmark, name, parser(name, benchmark.options).parse_args(arguments))
