"""An aggregate over a join whose streams change twice: in rate, and in how many rows of the other a row meets.

| phase | rate of a stream | keys | a row meets |
| --- | --- | --- | --- |
| 1 | 500 rows a second | as many as rows in a window | 1 |
| 2 | 1,000 rows a second | a hundredth of that | 100 |
| 3 | 250 rows a second | as many as rows in a window | 1 |

All phases bring as many rows. The contestants are all tactics that can run the query and stay, what is chosen at the
start by a sample of the first rows (auto), and the one that changes. The operators of the query are stepped by prepared
batches, and what comes out is dropped, as in `transom bench joinagg`. Every phase begins with windows full of rows of
the one before; that is in its time, and so are the change of the tactic and what it takes to notice that it is due. All
contestants must come to the same answer after every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from benchmarks.adapt.phases import ADAPTIVE, compile_first, measured
from benchmarks.harness import Figures, Options, Outcome
from benchmarks.joinagg.contestants import AUTO, FACTORISED, IC, PC, TC, Bench, Running
from benchmarks.joinagg.data import Brought, Cell, brought
from transom.core.delta import Delta

FIXED: Final = (PC, FACTORISED, IC, TC)
CONTESTANTS: Final = (*FIXED, AUTO, ADAPTIVE)

SECONDS: Final = 20  # of a window
_MICROS: Final = 1_000_000


@dataclass(frozen=True)
class Phase:
    """`rate` rows a second of each stream; a row meets `matches` rows of the other."""

    rate: int
    matches: int

    @property
    def keys(self) -> int:
        return self.rate * SECONDS // self.matches


@dataclass(frozen=True)
class Size:
    """Rows of one stream: of a phase, and of a step, or of a batch of Spark's."""

    phases: tuple[Phase, ...]
    rows: int
    batch: int
    runs: int


FULL: Final = Size((Phase(500, 1), Phase(1_000, 100), Phase(250, 1)), rows=200_000, batch=2_500, runs=3)
QUICK: Final = Size((Phase(500, 1), Phase(1_000, 100), Phase(250, 1)), rows=50_000, batch=2_500, runs=1)


def chosen(options: Options) -> Size:
    size = QUICK if options.quick else FULL
    return replace(size, runs=options.runs or size.runs)


def stream(size: Size) -> Iterator[tuple[int, Brought]]:
    """The phase of every step and what the step brings; the same rows whenever it is asked."""
    random = np.random.default_rng(7)
    begin = 0
    for number, phase in enumerate(size.phases):
        cell = Cell("matches", phase.rate * SECONDS, phase.keys, size.batch)
        apart = _MICROS // phase.rate
        for first in range(0, size.rows, size.batch):
            rows = np.arange(first, first + size.batch)
            times = [begin + rows * apart + index * apart // 2 for index in range(2)]
            yield number, brought(cell, times, begin + (first + size.batch) * apart, random)
        begin += size.rows * apart


def measure(size: Size) -> list[Outcome]:
    """Every phase, by every contestant."""
    first = size.phases[0]
    cell = Cell("matches", first.rate * SECONDS, first.keys, size.batch)
    assert f"[RANGE {1_000 * SECONDS} MILLISECONDS]" in cell.text
    benches = {name: Bench(cell, name) for name in CONTESTANTS}

    def begin(name: str) -> Running:
        return benches[name].start()

    compile_first(begin, CONTESTANTS, lambda: stream(replace(size, rows=size.batch)))
    figures, changes = measured(begin, CONTESTANTS, lambda: stream(size), _latest, size.runs)
    return [
        Outcome(
            {"experiment": "phase", "x": at + 1, **asdict(phase), "rows": 2 * size.rows}, found, {"changes": changes}
        )
        for at, (phase, found) in enumerate(zip(size.phases, figures, strict=True))
    ]


def _latest(out: Delta) -> Any:
    """The last row that is shown."""
    return tuple(column[int(np.argmax(out.ta))].as_py() for column in out.values.columns) if len(out) else None


def head(cell: Figures) -> str:
    return f"{cell['x']}: {cell['rate']:,} rows/s, {cell['matches']:,} matches"
