"""A join of three streams whose rates and matches change twice, so that trees and mjoin are best by turns.

Devices report: `a` and `b` are alarms of two kinds, `c` are readings. Asked for are the readings of devices that have
raised both alarms within the window.

| phase | what happens | alarms of a kind | readings |
| --- | --- | --- | --- |
| 1 | devices with one fault each raise one alarm again and again, and report often | 100 a second | 5,000 |
| 2 | devices with both faults raise both alarms in a storm, and have stopped reporting; others report | 1,000 | 1,000 |
| 3 | as phase 1, at half the rate | 50 | 2,500 |

In phase 1 a tree that joins the alarms first makes hardly any tuple, and a reading finds nothing there; without it a
reading finds 40 alarms of one kind, each of which has to look for the other. In phase 2 that tree makes a tuple for
every two alarms of a device, and no reading comes for them. A tenth of all rows are of devices that have about one
alarm of either kind in a window: they give the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.adapt.phases import ADAPTIVE, compile_first, measured
from benchmarks.harness import Figures, Options, Outcome
from benchmarks.joinagg.contestants import AUTO, Ready, Running
from benchmarks.joinagg.data import Brought
from transom.core.delta import Delta, Int64s, StreamDelta
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement

SECONDS: Final = 10  # of a window
_MICROS: Final = 1_000_000
_HEALTHY: Final = 1 << 40  # devices without alarms, above all others
_SHARED: Final = 1 << 30  # devices with now and then an alarm of either kind

OTHER_TREE: Final = "tree, a with c first"
FIXED: Final = ("tree", OTHER_TREE, "mjoin", "parallel_mjoin")
"""parallel_tree is left out: it keeps a gigabyte of tuples in a small size already, and takes 40 microseconds a row."""
CONTESTANTS: Final = (*FIXED, AUTO, ADAPTIVE)


@dataclass(frozen=True)
class Phase:
    """Alarms of either kind and readings a second. `storm`: the same devices raise both alarms, and do not report."""

    alarms: int
    readings: int
    storm: bool

    @property
    def rate(self) -> int:
        return 2 * self.alarms + self.readings


@dataclass(frozen=True)
class Size:
    """Rows of all streams in a phase; a step brings those of `step` seconds."""

    phases: tuple[Phase, ...]
    rows: int
    step: float
    runs: int


FULL: Final = Size((Phase(100, 5_000, False), Phase(1_000, 1_000, True), Phase(50, 2_500, False)), 1_000_000, 0.5, 3)
QUICK: Final = replace(FULL, rows=150_000, runs=1)


def chosen(options: Options) -> Size:
    size = QUICK if options.quick else FULL
    return replace(size, runs=options.runs or size.runs)


def stream(size: Size) -> Iterator[tuple[int, Brought]]:
    """The phase of every step and what the step brings; the same rows whenever it is asked."""
    random = np.random.default_rng(11)
    begin = 0
    length = int(size.step * _MICROS)
    for number, phase in enumerate(size.phases):
        for _ in range(round(size.rows / phase.rate / size.step)):
            batches = {}
            for index, name in enumerate("abc"):
                rate = phase.readings if name == "c" else phase.alarms
                count = round(rate * size.step)
                t = begin + np.arange(count) * length // count + index
                batches[name] = _rows(t, _devices(phase, name, count, random), random, begin + length)
            begin += length
            yield number, Brought(batches, sum(map(len, batches.values())), begin)


def _devices(phase: Phase, name: str, count: int, random: np.random.Generator) -> Int64s:
    """The devices of so many rows."""
    alarms = phase.alarms * SECONDS  # in a window
    if phase.storm:
        own = random.integers(0, alarms // 20, count) + (_HEALTHY if name == "c" else 0)
    else:
        faulty = alarms // 40  # of either kind; each raises 40 alarms in a window
        first = {"a": 1, "b": 1 + faulty, "c": 1}[name] - (1 << 20)
        own = random.integers(first, first + faulty * (1 + (name == "c")), count)
    shared = random.random(count) < 0.1
    return np.where(shared, _SHARED + random.integers(0, alarms // 10, count), own)


def _rows(t: Int64s, devices: Int64s, random: np.random.Generator, frontier: int) -> StreamDelta:
    times = pa.Array.from_buffers(pa.timestamp("us"), len(t), [None, pa.py_buffer(t)])
    columns = [times, pa.array(devices), pa.array(random.integers(0, 1_000, len(t)))]
    return StreamDelta(pa.RecordBatch.from_arrays(columns, names=["ts", "k", "v"]), t, frontier)


class Bench(Ready):
    """The query ready to be run by one contestant, as often as wanted."""

    def __init__(self, contestant: str) -> None:
        catalogue = Catalogue()
        declared = "".join(
            f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts);" for name in "abc"
        )
        first = "a, c, b" if contestant == OTHER_TREE else "a, b, c"
        tables = ", ".join(f"{name} [RANGE {SECONDS} SECONDS]" for name in first.split(", "))
        tactic = contestant.split(",")[0]
        adapt = "on" if contestant == ADAPTIVE else "off"
        query = f"SELECT a.v AS a, b.v AS b, c.v AS c FROM {tables} WHERE a.k = b.k AND a.k = c.k"
        text = f"{declared} SET adapt = '{adapt}'; SET multiway = '{tactic}'; {query}"
        statement = parse_statements(text, catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        super().__init__(statement.query, catalogue)

    @cached_property
    def name(self) -> str:
        return str(self.part.operators[self.root].tactic.name)


def measure(size: Size) -> list[Outcome]:
    """Every phase, by every contestant."""
    benches = {name: Bench(name) for name in CONTESTANTS}

    def begin(name: str) -> Running:
        return benches[name].start()

    compile_first(begin, CONTESTANTS, lambda: stream(replace(size, rows=2 * max(p.rate for p in size.phases))))
    figures, changes = measured(begin, CONTESTANTS, lambda: stream(size), _sums, size.runs)
    return [
        Outcome({"experiment": "join", "x": at + 1, **asdict(phase), "rows": size.rows}, found, {"changes": changes})
        for at, (phase, found) in enumerate(zip(size.phases, figures, strict=True))
    ]


def _sums(out: Delta) -> Any:
    """How many results there are, and sums of their columns and of the time that they live."""
    columns = [int(column.to_numpy().sum()) for column in out.values.columns] if len(out) else [0, 0, 0]
    return len(out), *columns, int((out.te - out.ta).sum())


def head(cell: Figures) -> str:
    return f"{cell['x']}: {cell['alarms']:,} alarms/s of a kind, {cell['readings']:,} readings/s"
