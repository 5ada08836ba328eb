"""The budget as a contract: a run in a process of its own, which watches its own memory.

The streams make their own rows, are read in batches as for any user, and bring more than ten times what the budget
holds; windows alone do not fit. A thread looks at the memory of the process every two milliseconds.
"""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from benchmarks.harness import digits
from benchmarks.meters import anonymous_bytes
from benchmarks.overlap.contestants import Contestant, estimated
from benchmarks.overlap.data import MB, Cell

LEAST_INPUT: Final = 10
"""What comes in is at least so many budgets."""

BATCH_ROWS: Final = 4_096
"""Rows on their way in are no part of the join, and beside its budget: they are read in small batches."""

_EVERY: Final = 0.002
_WARMING: Final = 2_000
"""Rows of a basic window in a first run, by which everything is loaded and compiled."""


class Watch:
    """`peak` is the most anonymous memory that the process had in the block."""

    def __init__(self) -> None:
        self.peak = anonymous_bytes()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()

    def _look(self) -> None:
        while not self._over.wait(_EVERY):
            self.peak = max(self.peak, anonymous_bytes())


def slides_for(cell: Cell) -> int:
    """So many basic windows bring `LEAST_INPUT` budgets."""
    return int(-(-LEAST_INPUT * cell.budget_mb * MB // (2 * cell.rows * cell.row_bytes)))


def watched(fields: dict[str, Any], tactic: str, slides: int) -> dict[str, Any]:
    """Of a cell, by its fields: the most anonymous memory above that of the idle process, and what slides took."""
    cell = Cell(**fields)
    small = replace(cell, rows=min(_WARMING, cell.rows), budget_mb=4, disk_mb_s=10_000)
    _contestant(small, tactic, 8).query.run()
    gc.collect()
    idle = anonymous_bytes()
    contestant = _contestant(cell, tactic, slides)
    started = time.perf_counter()
    with Watch() as watch:
        contestant.query.run()
    seconds = time.perf_counter() - started
    found = contestant.slides()
    report = found.report
    budget = cell.budget_mb * MB
    return {
        "input_mb": digits(2 * slides * cell.rows * cell.row_bytes / MB),
        "peak_mb": digits((watch.peak - idle) / MB),
        "peak_over_budget_mb": digits((watch.peak - idle - budget) / MB),
        "idle_mb": digits(idle / MB),
        "kept_mb_at_most": digits(report.peak_bytes / MB),
        "written_mb": digits(report.bytes_written / MB),
        "read_mb": digits(report.bytes_read / MB),
        "slides": report.complete,
        "ways": dict(report.tactics),
        "results": contestant.results,
        "ms": digits(1e3 * seconds / max(report.complete, 1)),
        "estimates": estimated(found.estimates),
    }


def _contestant(cell: Cell, tactic: str, slides: int) -> Contestant:
    return Contestant(cell, tactic, f"{cell.generated(slides)} SET batch_rows = {BATCH_ROWS};")
