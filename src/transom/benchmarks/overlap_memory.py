"""The budget as a contract: a run in a process of its own, which watches its own memory.

The streams make their own rows, are read in batches as for any user, and bring more than ten times what the budget
holds; windows alone do not fit. A thread looks at the memory of the process every two milliseconds.

`python -m transom.benchmarks.overlap_memory CELL TACTIC SLIDES` prints what it measured as JSON, of a cell in JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, Final

from transom.benchmarks.overlap_data import MB, Cell
from transom.benchmarks.overlap_run import Contestant, described, digits, estimated
from transom.benchmarks.own_process import own_process
from transom.benchmarks.process_meter import anonymous_bytes
from transom.core.errors import SourceError

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


def in_own_process(cell: Cell, tactic: str, slides: int) -> dict[str, Any]:
    """What `watched` measures there."""
    asked = [json.dumps(asdict(cell)), tactic, str(slides)]
    with own_process("transom.benchmarks.overlap_memory", *asked) as process:
        output, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().splitlines()[-5:]
        raise SourceError(f"the run by {tactic} ended with status {process.returncode}", remedy="\n  ".join(last))
    told: dict[str, Any] = json.loads(output)
    return told


def watched(cell: Cell, tactic: str, slides: int) -> dict[str, Any]:
    """In this process: the most anonymous memory above what it has when idle, and what the slides took."""
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
        **described(cell),
        "tactic": tactic,
        "batch_rows": BATCH_ROWS,
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


def main(arguments: Sequence[str]) -> int:
    print(json.dumps(watched(Cell(**json.loads(arguments[0])), arguments[1], int(arguments[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
