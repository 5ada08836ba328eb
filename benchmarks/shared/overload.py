"""Part c: rows of a shared join come faster than it can be made, twice as fast as it could keep up with, for a while.

Two streams without an equality between them; every row meets all rows of the other stream in the widest window. First
the capacity is measured: the rate at which a second of rows takes a second. Then rows come by the clock: slowly, at
twice that rate, slowly again. What cannot be done in time is shed. In the end the answers are compared with those of
the same rows taken at once: nothing is there that should not be, what is missing began with a row that was noted as
shed, and after the last of those nothing is missing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import Benchmark, Experiment, Experiments, Figures, Options, Outcome, Outcomes, Table
from benchmarks.meters import resident_bytes
from transom.core.time import FOREVER
from transom.cql.statements import parse_statements
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.group import GroupPipeline
from transom.pipeline.scheduled import ScheduledGroup
from transom.pipeline.scheduled_state import Shed
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing_shape import Sharable, sharable

PART: Final = {"part": "c"}
STREAMS: Final = ("a", "b")
SECOND: Final = 1_000_000
WINDOWS: Final = (100, 200, 300, 500, 800, 1_200, 1_600, 2_000)
"""In milliseconds."""
KEYS: Final = 1 << 20
PAIRS: Final = 2.0
"""Pairs of a row in the widest window, on the mean."""

SCHEMA: Final = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("n", pa.int64())])
_DECLARED: Final = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, n BIGINT, WATERMARK FOR ts AS ts);\n" for name in STREAMS
)
Pair = tuple[int, int, int]
"""When it began, and the numbers of its rows."""

_PROBED_RATE: Final = 4_000.0
_PAUSE: Final = 0.002


@dataclass(frozen=True)
class Rush:
    """Seconds of each phase; `over` is how many times the capacity comes in the second one."""

    before: float = 2.0
    rush: float = 10.0
    after: float = 6.0
    over: float = 2.0
    buffer: int = 5_000
    windows: tuple[int, ...] = WINDOWS


@dataclass
class Course:
    """What was seen on the way, an entry each tenth of a second or so."""

    seconds: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    shed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Answers:
    """Joined pairs of all queries: how many there should be, are missing, are there and should not be.

    `unexplained` are missing of an instant at which nothing was noted as shed; `after` is after the last of those.
    """

    pairs: int
    missing: int
    wrong: int
    unexplained: int
    missing_after: int
    pairs_after: int

    def __add__(self, other: Answers) -> Answers:
        return Answers(*(mine + yours for mine, yours in zip(astuple(self), astuple(other), strict=True)))


def capacity(rush: Rush) -> float:
    """Rows of each stream a second that can just be kept up with: the work grows with the square of the rate."""
    rate = _PROBED_RATE
    for _ in range(2):  # the second time near the answer
        widest = max(rush.windows) / 1_000
        world = World(rush, "fifo", "block", [(widest + 1.0, rate)])
        group = world.scheduled(_now)
        world.push(group, widest)
        _rest(group)
        started = time.perf_counter()
        world.push(group, widest + 1.0)
        _rest(group)
        rate /= (time.perf_counter() - started) ** 0.5
        group.close()
    return rate


def measure(policy: str, rush: Rush, rate: float) -> Outcome:
    """Rows by the clock, with `rate` of each stream a second as the capacity."""
    plan = [(rush.before, 0.4 * rate), (rush.rush, rush.over * rate), (rush.after, 0.4 * rate)]
    world = World(rush, policy, "shed", plan)
    group = world.scheduled(_now)
    names = world.names
    answers: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    course, broken, most_kept, most_waiting = Course(), 0, 0, 0
    memory = most_memory = resident_bytes()
    started, pushed, polled_at = time.perf_counter(), 0.0, 0.0
    total = sum(seconds for seconds, _ in plan)
    while pushed < total or not group.at_rest:
        now = min(time.perf_counter() - started, total)
        if now > pushed:
            world.push(group, now, end=now >= total)
            pushed = now
        if not group.advance(lambda index, rows: answers[names[index]].append(rows)):
            time.sleep(_PAUSE)
            continue
        kept = sum(map(len, group.work.state.sides))
        most_kept, most_waiting = max(most_kept, kept), max(most_waiting, group.work.waiting)
        ledgers = [group.work.ledger_of(name) for name in names]
        broken += sum(each.due != each.processed + each.shed + each.pending for each in ledgers)
        if now - polled_at >= 0.1:
            polled_at = now
            most_memory = max(most_memory, resident_bytes())
            course.seconds.append(round(now, 2))
            course.waiting.append(group.work.waiting)
            course.kept.append(kept)
            course.shed.append(sum(each.shed for each in ledgers))
    ledgers = [group.work.ledger_of(name) for name in names]
    compared = [
        compared(group.work.state.accounts[name].shed, answers[name], whole)
        for name, whole in zip(names, world.at_once(), strict=True)
    ]
    group.close()
    within = rush.over * rate * max(rush.windows) / 1_000
    burst = rush.over * rate  # rows that come while a step or a comparison keeps the group busy, a second of them
    bound = int(2 * (within + rush.buffer + burst))
    found = sum(compared, Answers(0, 0, 0, 0, 0, 0))
    faults = broken + found.wrong + found.unexplained + found.missing_after
    figures = {
        **{name: sum(getattr(each, name) for each in ledgers) for name in ("due", "processed", "shed")},
        "broken_ledgers": broken,
        "most_kept": most_kept,
        "bound": bound,
        "memory_before": memory,
        "memory_most": most_memory,
        "answers": asdict(found),
        "course": asdict(course),
        "holds": not faults and most_kept <= bound and found.pairs_after > 0,
    }
    return Outcome({**PART, "rush": asdict(rush), "capacity": round(rate)}, {policy: figures})


# --- the part of the benchmark ---------------------------------------------------------------------------------------

RUSHED: Final = ("fifo", "mqt", "mandf", "admandf", "slack")
QUICK_RUSH: Final = Rush(0.3, 1.0, 1.0, buffer=500, windows=(50, 100, 200))


def experiments(options: Options) -> Experiments:
    """A quick run has a short rush, and one policy."""
    rush, policies = (QUICK_RUSH, ("admandf",)) if options.quick else (Rush(), RUSHED)
    rush = replace(rush, over=getattr(options, "over", rush.over))
    if getattr(options, "runtime", "local") == "spark":
        from benchmarks.shared.overload_on_spark import capacity_on_spark, measure_on_spark

        on_spark = capacity_on_spark(rush)
        yield Experiment(policies, lambda policy: [measure_on_spark(policy, rush, on_spark)])
        return
    rate = capacity(rush)
    yield Experiment(policies, lambda policy: [measure(policy, rush, rate)])


def settings(options: Options) -> dict[str, Any]:
    return {"rush": asdict(QUICK_RUSH if options.quick else Rush())}


def summary(outcomes: Outcomes) -> dict[str, Any]:
    found = {name: one[name] for one in outcomes for name in one.contestants}
    return {
        "overload_holds": all(figures["holds"] for figures in found.values()),
        "overload_processed": {name: round(one["processed"] / one["due"], 4) for name, one in found.items()},
    }


def tables(outcomes: Outcomes) -> list[Table]:
    body = [_line(one.cell, name, one[name]) for one in outcomes for name in one.contestants]
    heads = [
        "policy", "capacity, rows/s", "due", "processed", "shed", "pairs", "missing", "wrong", "without a reason",
        "missing after", "most rows kept (bound)", "memory before, most, MB", "holds",
    ]  # fmt: skip
    where = " on Spark" if outcomes[0].cell.get("runtime") == "spark" else ""
    over = outcomes[0].cell["rush"]["over"]
    title = (
        f"Rows that come at {over:g} times the capacity{where}, of each stream; (row, query) pairs and joined pairs:"
    )
    return [Table(title, heads, body)]


def _line(cell: Figures, policy: str, one: Figures) -> list[str]:
    found = one["answers"]
    counts = (cell["capacity"], one["due"], one["processed"], one["shed"])
    return [
        policy,
        *(f"{count:,}" for count in (*counts, *(found[name] for name in ("pairs", "missing", "wrong", "unexplained")))),
        f"{found['missing_after']:,} of {found['pairs_after']:,}",
        f"{one['most_kept']:,} ({one['bound']:,})",
        ", ".join(f"{one[size] / 1e6:.0f}" for size in ("memory_before", "memory_most") if size in one) or "-",
        "yes" if one["holds"] else "NO",
    ]


def panels(outcomes: Outcomes) -> list[Panel]:
    """The course of the first: rows that wait and are kept, and what was shed."""
    outcome = outcomes[0]
    rush, courses = outcome.cell["rush"], {name: outcome[name]["course"] for name in outcome.contestants}
    policy, first = next(iter(courses.items()))
    shaded = [(rush["before"], rush["before"] + rush["rush"])]
    lines = {name: list(zip(first["seconds"], first[name], strict=True)) for name in ("kept", "waiting")}
    shed = {name: list(zip(course["seconds"], course["shed"], strict=True)) for name, course in courses.items()}
    return [
        Panel(f"rows, {policy}", "seconds", "rows", lines, shaded=shaded),
        Panel("shed so far", "seconds", "rows times queries", shed, shaded=shaded),
    ]


OVERLOAD_PART: Final = Benchmark("More rows than can be joined", experiments, summary, tables, panels, settings)


# --- the rows and the queries ----------------------------------------------------------------------------------------


def _now() -> int:
    return time.monotonic_ns() // 1_000


def _rest(group: ScheduledGroup) -> None:
    group.advance()
    while not group.at_rest:
        group.advance()


def compared(shed: Shed, found: Sequence[pa.RecordBatch], whole: Counter[Pair]) -> Answers:
    """What came of a query that lost these rows, with what would have come of all of them."""
    there = _rows(found)
    missing = whole - there
    times = np.fromiter((pair[0] for pair in missing.elements()), dtype=np.int64)
    span = np.searchsorted(shed.first, times, side="right") - 1
    explained = (span >= 0) & (times <= shed.last[np.maximum(span, 0)]) if len(shed.first) else times < 0
    end = int(shed.last.max(initial=-FOREVER))
    after = sum(count for pair, count in whole.items() if pair[0] > end)
    wrong = (there - whole).total()
    return Answers(whole.total(), len(times), wrong, int((~explained).sum()), int((times > end).sum()), after)


def _rows(batches: Sequence[pa.RecordBatch]) -> Counter[Pair]:
    """Each pair by its time and the numbers of its rows."""
    found: Counter[Pair] = Counter()
    for batch in batches:
        t, i, j = (column.cast(pa.int64()).to_pylist() for column in batch.columns)
        found.update(zip(t, i, j, strict=True))
    return found


class World:
    """The queries, and the rows of a plan: seconds of each phase, and rows of each stream a second."""

    def __init__(self, rush: Rush, policy: str, overload: str, plan: Sequence[tuple[float, float]]) -> None:
        self._seconds = np.cumsum([0.0, *(seconds for seconds, _ in plan)])
        self._rows = np.cumsum([0.0, *(seconds * rate for seconds, rate in plan)])
        most = max(rate for _, rate in plan) * max(rush.windows) / 1_000
        width = int(KEYS * PAIRS / max(1.0, most))
        self._catalogue = Catalogue()
        asks = f"SET schedule = '{policy}'; SET overload = '{overload}'; SET buffer = {rush.buffer};"
        text = "".join(
            f"ISTREAM(SELECT a.n AS i, b.n AS j FROM a [RANGE {window} MILLISECONDS], b [RANGE {window} MILLISECONDS]"
            f" WHERE a.k < b.k AND b.k - a.k <= {width});"
            for window in rush.windows
        )
        self.text = asks + text
        parse_statements(_DECLARED + asks, self._catalogue)
        self._specs = []
        for number, statement in enumerate(parse_statements(text, self._catalogue)):
            assert isinstance(statement, QueryStatement)
            requested = sharable(statement.query, self._catalogue)
            assert isinstance(requested, Sharable), requested
            self._specs.append(ConsumerSpec(f"query-{number + 1}", requested, "changes"))
        self._random = [np.random.default_rng(seed) for seed in (7, 8)]
        self._come = [0, 0]
        self.given: list[tuple[str, pa.RecordBatch]] = []

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self._specs]

    def scheduled(self, now: Callable[[], int]) -> ScheduledGroup:
        schedule = schedule_of(self._specs[0].of_join, self._catalogue)
        assert isinstance(schedule, Schedule), schedule
        return ScheduledGroup(self._specs, self._catalogue, schedule, now)

    def push(self, group: GroupPipeline, seconds: float, *, end: bool = False) -> None:
        """The rows of both streams up to there that have not come yet."""
        for name in STREAMS:
            batch = self.rows(name, seconds)
            self.given.append((name, batch))
            group.subplan.push(name, batch)
            if end:
                group.subplan.end(name)

    def rows(self, name: str, seconds: float) -> pa.RecordBatch:
        """Those of a stream up to there that have not come yet."""
        number = STREAMS.index(name)
        count = int(np.interp(seconds, self._seconds, self._rows))
        n = np.arange(self._come[number], max(count, self._come[number]))
        self._come[number] += len(n)
        t = np.interp(n + 0.5 * number, self._rows, self._seconds) * SECOND
        keys = self._random[number].integers(0, KEYS, len(n))
        columns = [pa.array(t.astype(np.int64)).cast(SCHEMA.field(0).type), pa.array(keys), pa.array(n)]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def at_once(self) -> Iterator[Counter[Pair]]:
        """What the same rows give to each query when nothing is put off."""
        group = GroupPipeline(self._specs, self._catalogue)
        answers: list[list[pa.RecordBatch]] = [[] for _ in self._specs]
        for number, (name, batch) in enumerate(self.given):
            group.subplan.push(name, batch)
            if number + len(STREAMS) >= len(self.given):
                group.subplan.end(name)
            if name == STREAMS[-1]:
                group.advance(lambda index, rows: answers[index].append(rows))
        group.close()
        yield from map(_rows, answers)
