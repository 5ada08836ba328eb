"""Many queries on one join, together and apart: rows a second and state, in one process, with the same batches.

Two streams bring a row a millisecond each. The windows of the queries are spread evenly up to the largest, which holds
100,000 rows of either stream; keys are drawn from as many values as give the wanted matches, on the mean of queries.

**shared** is the pipeline of a group, **separate** is a pipeline for each query, fed with the very same batches. What
comes out is counted and dropped, and both must give equally many rows to every query. Once the windows are full the two
take turns, a few batches at a time, and the median of their rates is told. No more than 100 separate queries are in
memory at once: where there are more, a hundred after the other goes through the same rows.

Time is that of the processor: the work is done by one thread that waits for nobody.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from transom.cql.statements import parse_statements
from transom.pipeline.consumer import Member
from transom.pipeline.driver import Pipeline
from transom.pipeline.group import GroupPipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.planner.sharing_shape import Sharable, sharable

STREAMS: Final = ("a", "b")
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

Pair = tuple[pa.RecordBatch, pa.RecordBatch]


@dataclass(frozen=True)
class Cell:
    """So many queries, `matches` a row and query on the mean; the largest window is in rows of one stream."""

    queries: int
    matches: float
    emit: str = "lifetimes"
    largest: int = LARGEST

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
        return min(MOST_ROWS, max(1, int(MOST_ANSWERS / (2 * self.queries * self.matches))))

    @property
    def texts(self) -> list[str]:
        join = "SELECT a.k, a.v, b.v FROM a [RANGE {0} MILLISECONDS], b [RANGE {0} MILLISECONDS] WHERE a.k = b.k"
        return [join.format(window) for window in self.windows]


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

    @staticmethod
    def of(states: Any) -> Kept:
        return Kept(state_bytes(states), state_rows(states))

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.bytes + other.bytes, self.rows + other.rows)


@dataclass(frozen=True)
class Measured:
    """Rows of both streams a second, and what is kept."""

    rows_per_s: float
    state: Kept


@dataclass(frozen=True)
class Outcome:
    """`alone` is what the query with the largest window keeps by itself; `rows` of both streams came in these turns."""

    cell: Cell
    shared: Measured
    separate: Measured
    alone: Kept
    runs: int
    rows: int
    matches: float

    @property
    def throughput_ratio(self) -> float:
        return self.shared.rows_per_s / self.separate.rows_per_s

    @property
    def state_ratio(self) -> float:
        return self.shared.state.bytes / self.alone.bytes


class Contestant(Protocol):
    """`counts` are the rows that each query has told."""

    counts: list[int]

    def step(self, pair: Pair) -> None: ...

    def states(self) -> list[Any]: ...


class Shared:
    """All queries in one group."""

    def __init__(self, cell: Cell) -> None:
        catalogue, statements = _parsed(cell)
        members = []
        for number, statement in enumerate(statements):
            asked = sharable(statement.query, catalogue)
            assert isinstance(asked, Sharable), asked
            members.append(Member(f"query-{number}", asked, cell.emit))
        self._group = GroupPipeline(members, catalogue)
        self.counts = [0] * cell.queries

    def step(self, pair: Pair) -> None:
        for name, batch in zip(STREAMS, pair, strict=True):
            self._group.trunk.push(name, batch)
        self._group.advance(self._count)

    def _count(self, number: int, rows: pa.RecordBatch) -> None:
        self.counts[number] += len(rows)

    def states(self) -> list[Any]:
        branches = [branch.state for branch in self._group.branches]
        return [self._group.trunk.state.part.operators, *([state.part.operators, state.emit] for state in branches)]


class Separate:
    """Some queries, each by itself."""

    def __init__(self, cell: Cell, numbers: Sequence[int]) -> None:
        catalogue, statements = _parsed(cell)
        queries = [statements[number].query for number in numbers]
        self._pipelines = [Pipeline(plan(query, catalogue), catalogue, cell.emit) for query in queries]
        self.counts = [0] * len(numbers)

    def step(self, pair: Pair) -> None:
        for number, pipeline in enumerate(self._pipelines):
            for name, batch in zip(STREAMS, pair, strict=True):
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
    for pair in filling:
        _timed(shared, [pair])
        spent = len(crowds) * _timed(separate, [pair])
    filled = sum(shared.counts)
    at_most = max(1, int(effort.most_seconds / effort.runs / spent))  # batches in a turn
    turns: list[list[Pair]] = []
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
    rows = [sum(len(batch) for pair in turn for batch in pair) for turn in turns]
    told = sum(shared.counts) - filled
    return Outcome(
        cell,
        Measured(_rate(rows, took), Kept.of(shared.states())),
        Measured(_rate(rows, took_apart), kept_apart),
        alone,
        runs=len(turns),
        rows=sum(rows),
        matches=told / sum(rows) / cell.queries,
    )


def crowds_of(queries: int) -> list[range]:
    """The numbers of those that are in memory together; the first crowd ends with the largest window.

    >>> [list(crowd) for crowd in crowds_of(4)]
    [[0, 1, 2, 3]]
    """
    count = -(-queries // TOGETHER)
    return [range((queries - 1 - crowd) % count, queries, count) for crowd in range(count)]


def batches(cell: Cell) -> Iterator[Pair]:
    """Of both streams, without end; the same rows whenever it is asked."""
    random = np.random.default_rng(11)
    first = 0
    while True:
        t = np.arange(first, first + cell.batch, dtype=np.int64) * 1_000
        first += cell.batch
        yield _batch(t, cell.keys, random), _batch(t, cell.keys, random)


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


def _timed(contestant: Contestant, turn: Sequence[Pair]) -> float:
    started = time.process_time()
    for pair in turn:
        contestant.step(pair)
    return time.process_time() - started


def _rate(rows: Sequence[int], seconds: Sequence[float]) -> float:
    return statistics.median(count / took for count, took in zip(rows, seconds, strict=True))


def _check(shared: Sequence[int], separate: Sequence[int]) -> None:
    assert any(shared), "there is no answer"
    assert list(shared) == list(separate), f"the answers differ: {shared}, {separate}"
