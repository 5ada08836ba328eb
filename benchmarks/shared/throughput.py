"""Part b: many queries on one join, together and apart: rows a second and state, in one process, with the same batches.

Two streams bring a row a millisecond each. The windows of the queries are spread evenly up to the largest, which holds
100,000 rows of either stream; keys are drawn from as many values as give the wanted matches, on the mean of queries.

**shared** is the pipeline of a group, **separate** is a pipeline for each query, fed with the very same batches. What
comes out is counted and dropped, and both must give equally many rows to every query. Once the windows are full the two
take turns, a few batches at a time, and the median of their rates is reported. No more than 100 separate queries are in
memory at once: where there are more, a hundred after the other goes through the same rows.

Time is that of the processor: the work is done by one thread that waits for nobody.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Options,
    Outcome,
    Outcomes,
    Table,
    agreed,
    short,
)
from transom.cql.statements import parse_statements
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.driver import Pipeline
from transom.pipeline.group import GroupPipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.planner.sharing import Request
from transom.planner.sharing_shape import Sharable, sharable
from transom.planner.sharing_windows import SharableWindows, sharable_windows, widened

Kind = TypeVar("Kind")

PART: Final = {"part": "b"}
SHARED, SEPARATE, ALONE = "shared", "separate", "alone"
"""`alone` is what the query with the largest window keeps by itself."""
STREAMS: Final = ("a", "b", "c")
DECLARATIONS: Final = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts);\n" for name in STREAMS
)
SCHEMA: Final = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
LARGEST: Final = 100_000
MOST_ROWS: Final = 65_536
MOST_ANSWERS: Final = 8_000_000
"""Rows of one stream in a batch, and of all answers in a step: where there would be more, batches are smaller."""
TOGETHER: Final = 100
"""Separate queries that are in memory at once."""

Batches = tuple[pa.RecordBatch, ...]
"""One of each stream."""

Shape = Literal["pairs", "three", "slides"]
SLIDE: Final = 1_000
"""In milliseconds."""
SHAPES: Final[dict[str, str]] = {
    "pairs": "",
    "three": ", three streams",
    "slides": f", windows that slide by {SLIDE:,}",
}


@dataclass(frozen=True)
class Cell:
    """So many queries, `matches` a row and query on the mean; the largest window is in rows of one stream.

    Of three streams a row has so many in each of the two others. Windows that slide do so by `SLIDE`.
    """

    queries: int
    matches: float
    emit: str = "lifetimes"
    largest: int = LARGEST
    shape: Shape = "pairs"

    def __str__(self) -> str:
        return f"{self.queries} queries, {self.matches:g} matches a row and query, as {self.emit}{SHAPES[self.shape]}"

    @property
    def streams(self) -> tuple[str, ...]:
        return STREAMS[: 3 if self.shape == "three" else 2]

    def as_json(self) -> dict[str, Any]:
        return {
            **PART,
            "queries": self.queries,
            "matches": self.matches,
            "emit": self.emit,
            "shape": self.shape,
            "largest_window_rows": self.largest,
            "keys": self.keys,
            "batch_rows": self.batch,
        }

    @property
    def windows(self) -> tuple[int, ...]:
        """
        >>> Cell(4, 1.0).windows
        (25000, 50000, 75000, 100000)
        """
        return tuple(self.largest * number // self.queries for number in range(1, self.queries + 1))

    @property
    def keys(self) -> int:
        """A row meets the rows of the other stream that are younger than the window, if they have its key."""
        return max(1, round(statistics.mean(self.windows) / self.matches))

    @property
    def batch(self) -> int:
        """
        >>> Cell(100, 0.04).batch, Cell(100, 10.0).batch
        (65536, 4000)
        """
        answers = self.matches ** (len(self.streams) - 1)  # of a row
        return min(MOST_ROWS, max(1, int(MOST_ANSWERS / (len(self.streams) * self.queries * answers))))

    @property
    def texts(self) -> list[str]:
        slide = f" SLIDE {SLIDE} MILLISECONDS" if self.shape == "slides" else ""
        first, *others = self.streams
        columns = ", ".join([f"{first}.k", *(f"{name}.v AS {name}" for name in self.streams)])
        tables = ", ".join(f"{name} [RANGE {{0}} MILLISECONDS{slide}]" for name in self.streams)
        equal = " AND ".join(f"{first}.k = {name}.k" for name in others)
        return [f"SELECT {columns} FROM {tables} WHERE {equal}".format(window) for window in self.windows]


@dataclass(frozen=True)
class Effort:
    """Turns of each contestant, unless those of the separate queries take more than so many seconds together.

    In a turn the shared group runs for so long at least, unless that takes the separate queries too long as well.
    """

    runs: int
    seconds: float
    most_seconds: float


@dataclass(frozen=True)
class Kept:
    """What operators keep, and the forms of answers, in bytes and in rows."""

    bytes: int
    rows: int

    def as_json(self) -> dict[str, int]:
        return {"state_bytes": self.bytes, "state_rows": self.rows}

    @staticmethod
    def of(states: Any) -> Kept:
        return Kept(state_bytes(states), state_rows(states))

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.bytes + other.bytes, self.rows + other.rows)


class Contestant(Protocol):
    """`counts` are the rows that each query has reported."""

    counts: list[int]

    def step(self, rows: Batches) -> None: ...

    def states(self) -> list[Any]: ...


class Shared:
    """All queries in one group."""

    def __init__(self, cell: Cell) -> None:
        catalogue, statements = _parsed(cell)
        specs = [
            ConsumerSpec(f"query-{number}", request, cell.emit)
            for number, request in enumerate(_requests(cell, catalogue, [one.query for one in statements]))
        ]
        self._group = GroupPipeline(specs, catalogue)
        self.counts = [0] * cell.queries

    def step(self, rows: Batches) -> None:
        for name, batch in zip(STREAMS, rows, strict=False):
            self._group.subplan.push(name, batch)
        self._group.advance(self._count)

    def _count(self, number: int, rows: pa.RecordBatch) -> None:
        self.counts[number] += len(rows)

    def states(self) -> list[Any]:
        runners = [runner.state for runner in self._group.runners]
        return [self._group.subplan.state.part.operators, *([state.part.operators, state.emit] for state in runners)]


def _requests(cell: Cell, catalogue: Catalogue, queries: Sequence[Node]) -> Sequence[Request]:
    if cell.shape == "pairs":
        return _of(Sharable, [sharable(query, catalogue) for query in queries])
    found = _of(SharableWindows, [sharable_windows(query, catalogue) for query in queries])
    return widened(found)


def _of(kind: type[Kind], found: Sequence[object]) -> list[Kind]:
    assert all(isinstance(one, kind) for one in found), found
    return [one for one in found if isinstance(one, kind)]


class Separate:
    """Some queries, each by itself."""

    def __init__(self, cell: Cell, numbers: Sequence[int]) -> None:
        catalogue, statements = _parsed(cell)
        queries = [statements[number].query for number in numbers]
        self._pipelines = [Pipeline(plan(query, catalogue), catalogue, cell.emit) for query in queries]
        self.counts = [0] * len(numbers)

    def step(self, rows: Batches) -> None:
        for number, pipeline in enumerate(self._pipelines):
            for name, batch in zip(STREAMS, rows, strict=False):
                pipeline.push(name, batch)
            output, _ = pipeline.advance()
            if output is not None:
                self.counts[number] += len(output.rows)

    def states(self) -> list[Any]:
        return [[pipeline.state.part.operators, pipeline.state.emit] for pipeline in self._pipelines]


def measure(cell: Cell, effort: Effort) -> Outcome:
    """Fill the windows, then let both take turns."""
    first, *others = crowds = crowds_of(cell.queries)
    shared, separate = Shared(cell), Separate(cell, first)
    brought = batches(cell)
    filling = list(islice(brought, -(-cell.largest // cell.batch)))
    for each in filling:
        _timed(shared, [each])
        spent = len(crowds) * _timed(separate, [each])
    filled = sum(shared.counts)
    at_most = max(1, int(effort.most_seconds / effort.runs / spent))  # batches in a turn
    turns: list[list[Batches]] = []
    took: list[float] = []
    took_apart: list[float] = []
    while len(turns) < effort.runs and len(crowds) * sum(took_apart) < effort.most_seconds:
        turn = [next(brought)]
        seconds = _timed(shared, turn)
        while len(turn) < at_most and seconds < effort.seconds:
            turn.append(next(brought))
            seconds += _timed(shared, turn[-1:])
        turns.append(turn)
        took.append(seconds)
        took_apart.append(_timed(separate, turn))
    alone = Kept.of(separate.states()[-1])
    _check(shared.counts[first.start :: first.step], separate.counts)
    kept_apart = Kept.of(separate.states())
    for crowd in others:
        del separate
        separate = Separate(cell, crowd)
        _timed(separate, filling)
        for number, turn in enumerate(turns):
            took_apart[number] += _timed(separate, turn)
        _check(shared.counts[crowd.start :: crowd.step], separate.counts)
        kept_apart += Kept.of(separate.states())
    rows = [sum(len(batch) for each in turn for batch in each) for turn in turns]
    emitted = sum(shared.counts) - filled
    kept = Kept.of(shared.states())
    rates = {name: _rate(rows, seconds) for name, seconds in ((SHARED, took), (SEPARATE, took_apart))}
    return Outcome(
        cell.as_json(),
        {
            SHARED: {"rows_per_s": round(rates[SHARED]), **kept.as_json()},
            SEPARATE: {"rows_per_s": round(rates[SEPARATE]), **kept_apart.as_json()},
            ALONE: alone.as_json(),
        },
        {
            "matches_measured": round(emitted / sum(rows) / cell.queries, 5),
            "runs": len(turns),
            "rows": sum(rows),
            "throughput_ratio": round(rates[SHARED] / rates[SEPARATE], 2),
            "state_ratio": round(kept.bytes / alone.bytes, 3),
        },
    )


def crowds_of(queries: int) -> list[range]:
    """The numbers of those that are in memory together; the first crowd ends with the largest window.

    >>> [list(crowd) for crowd in crowds_of(4)]
    [[0, 1, 2, 3]]
    """
    count = -(-queries // TOGETHER)
    return [range((queries - 1 - crowd) % count, queries, count) for crowd in range(count)]


def batches(cell: Cell) -> Iterator[Batches]:
    """Of all streams, without end; the same rows whenever it is asked."""
    random = np.random.default_rng(11)
    first = 0
    while True:
        t = np.arange(first, first + cell.batch, dtype=np.int64) * 1_000
        first += cell.batch
        yield tuple(_batch(t, cell.keys, random) for _ in cell.streams)


def _batch(t: Any, keys: int, random: np.random.Generator) -> pa.RecordBatch:
    columns = [
        pa.array(t).cast(pa.timestamp("us")),
        *(pa.array(random.integers(0, high, len(t))) for high in (keys, 1_000)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _parsed(cell: Cell) -> tuple[Catalogue, Sequence[QueryStatement]]:
    catalogue = Catalogue()
    statements = parse_statements(f"{DECLARATIONS} {'; '.join(cell.texts)}", catalogue)
    return catalogue, [one for one in statements if isinstance(one, QueryStatement)]


def _timed(contestant: Contestant, turn: Sequence[Batches]) -> float:
    started = time.process_time()
    for rows in turn:
        contestant.step(rows)
    return time.process_time() - started


def _rate(rows: Sequence[int], seconds: Sequence[float]) -> float:
    return statistics.median(count / took for count, took in zip(rows, seconds, strict=True))


def _check(shared: Sequence[int], separate: Sequence[int]) -> None:
    assert any(shared), "there is no answer"
    agreed({SHARED: list(shared), SEPARATE: list(separate)})


# --- the part of the benchmark ---------------------------------------------------------------------------------------

COUNTS: Final = (1, 10, 100, 500)
MATCHES: Final = (0.04, 1.0, 10.0)
CELLS: Final = (
    *(Cell(queries, matches) for matches in MATCHES for queries in COUNTS),
    *(Cell(queries, MATCHES[0], "changes") for queries in COUNTS[:3]),
    *(Cell(queries, 1.0, shape="three") for queries in COUNTS[1:3]),
    *(Cell(queries, 1.0, shape="slides") for queries in COUNTS[1:3]),
)
QUICK_CELLS: Final = (
    *(Cell(queries, matches, largest=20_000) for matches in MATCHES[:2] for queries in COUNTS[:3]),
    *(Cell(10, 1.0, largest=5_000, shape=shape) for shape in ("three", "slides")),
)
EFFORT: Final = Effort(runs=5, seconds=0.5, most_seconds=20.0)
QUICK_EFFORT: Final = Effort(runs=2, seconds=0.2, most_seconds=4.0)
SUMMED_UP: Final = 100
"""The summary is about so many queries, with the fewest matches."""


def experiments(options: Options) -> Experiments:
    """A quick run has smaller windows, fewer queries and fewer matches."""
    cells, effort = (QUICK_CELLS, QUICK_EFFORT) if options.quick else (CELLS, EFFORT)
    yield Experiment(cells, lambda cell: [measure(cell, effort)])


def settings(options: Options) -> dict[str, Any]:
    return {"effort": asdict(QUICK_EFFORT if options.quick else EFFORT)}


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Null where the cell was not run."""
    names = ("queries", "matches", "emit", "shape")
    cells = {tuple(one.cell[name] for name in names): one.cell for one in outcomes}
    lifetimes, changes = (cells.get((SUMMED_UP, MATCHES[0], emit, "pairs")) for emit in ("lifetimes", "changes"))
    others = {shape: cells.get((SUMMED_UP, 1.0, "lifetimes", shape)) for shape in ("three", "slides")}
    return {
        "state_ratio_100": None if lifetimes is None else lifetimes["state_ratio"],
        "throughput_ratio_100": None if lifetimes is None else round(lifetimes["throughput_ratio"], 1),
        "throughput_ratio_100_changes": None if changes is None else round(changes["throughput_ratio"], 1),
        **{
            f"throughput_ratio_100_{shape}": None if cell is None else round(cell["throughput_ratio"], 1)
            for shape, cell in others.items()
        },
    }


def tables(outcomes: Outcomes) -> list[Table]:
    body = []
    for one in outcomes:
        cell, shared, separate = one.cell, one[SHARED], one[SEPARATE]
        answers = shared["rows_per_s"] * cell["matches_measured"] * cell["queries"]
        kept = [
            f"{short(each['state_bytes'] / 1e6)} ({each['state_rows']:,})" for each in (shared, separate, one[ALONE])
        ]
        rates = [short(shared["rows_per_s"]), short(separate["rows_per_s"]), f"{cell['throughput_ratio']:.3g}"]
        about = [f"{cell['matches']:g}{_form(cell)}", f"{cell['queries']}", f"{cell['batch_rows']:,}"]
        body.append([*about, *rates, short(answers), *kept, f"{cell['runs']}, {cell['rows']:,}"])
    heads = [
        "matches a row and query", "queries", "rows in a batch", "shared, rows/s", "separate, rows/s", "ratio",
        "shared, answers/s", "shared, MB (rows)", "separate, MB (rows)", "largest alone, MB (rows)", "turns, rows",
    ]  # fmt: skip
    return [Table("Queries on one join, shared and separate; rows are those of both streams:", heads, body)]


def _form(cell: Figures) -> str:
    return ("" if cell["emit"] == "lifetimes" else f", as {cell['emit']}") + SHAPES[cell["shape"]]


def panels(outcomes: Outcomes) -> list[Panel]:
    """Rates by the number of queries, a panel for each number of matches; then how they compare, and the state."""
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(f"{one.cell['matches']:g} matches a row and query{_form(one.cell)}", []).append(one)

    def both(title: str, unit: str, some: Outcomes, figure: Callable[[Figures], float]) -> Panel:
        lines = {name: [(one.cell["queries"], figure(one[name])) for one in some] for name in (SHARED, SEPARATE)}
        return Panel(title, "queries", unit, lines, log_x=True, log_y=True)

    ratios = {
        name: [(one.cell["queries"], one.cell["throughput_ratio"]) for one in some] for name, some in groups.items()
    }
    first = next(iter(groups.values()))
    return [
        *(both(name, "rows a second", some, lambda one: one["rows_per_s"]) for name, some in groups.items()),
        Panel("rate, shared over separate", "queries", "times as fast", ratios, log_x=True, log_y=True),
        both("state, fewest matches", "MB", first, lambda one: one["state_bytes"] / 1e6),
    ]


THROUGHPUT_PART: Final = Benchmark(
    "Queries on one join, shared and separate", experiments, summary, tables, panels, settings
)
