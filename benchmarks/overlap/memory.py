"""The budget as a contract: a run in a process of its own, which watches its own memory.

The streams make their own rows, are read in batches as for any user, and bring more than ten times what the budget
holds; windows alone do not fit. A thread looks at the memory of the process every two milliseconds. The answer goes to
a function; or to files, with a checkpoint, and then a slide is larger than the budget by far.
"""

from __future__ import annotations

import gc
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from benchmarks.harness import digits
from benchmarks.meters import anonymous_bytes
from benchmarks.overlap.contestants import Contestant, estimated
from benchmarks.overlap.data import MB, Cell
from transom.program.slides import SlideStatus
from transom.session import Session

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
    run = _to_files if cell.sink else _to_a_function
    run(
        replace(cell, rows=min(_WARMING if not cell.sink else 500, cell.rows), budget_mb=4, disk_mb_s=10_000), tactic, 8
    )
    gc.collect()
    idle = anonymous_bytes()
    started = time.perf_counter()
    with Watch() as watch:
        found, results, written = run(cell, tactic, slides)
    seconds = time.perf_counter() - started
    report = found.report
    budget = cell.budget_mb * MB
    return {
        "answer_mb": digits(written / MB),
        "input_mb": digits(2 * slides * cell.rows * cell.row_bytes / MB),
        "peak_mb": digits((watch.peak - idle) / MB),
        "peak_over_budget_mb": digits((watch.peak - idle - budget) / MB),
        "idle_mb": digits(idle / MB),
        "kept_mb_at_most": digits(report.peak_bytes / MB),
        "written_mb": digits(report.bytes_written / MB),
        "read_mb": digits(report.bytes_read / MB),
        "slides": report.complete,
        "ways": dict(report.tactics),
        "results": results,
        "ms": digits(1e3 * seconds / max(report.complete, 1)),
        "estimates": estimated(found.estimates),
    }


def _to_a_function(cell: Cell, tactic: str, slides: int) -> tuple[SlideStatus, int, int]:
    contestant = Contestant(cell, tactic, _declared(cell, slides))
    contestant.query.run()
    return contestant.slides(), contestant.results, 0


def _to_files(cell: Cell, tactic: str, slides: int) -> tuple[SlideStatus, int, int]:
    """How the slides were made, how many rows were emitted, and the bytes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        sink = f"CREATE SINK out WITH (connector = 'files', path = '{out}', format = '{cell.sink}');"
        settings = f"SET slide_join = '{tactic}'; {cell.settings}"
        text = f"{_declared(cell, slides)} {settings} {sink} INSERT INTO out {cell.query};"
        status = Session().execute(text, checkpoint=f"{folder}/kept", end=True)[-1].status
        assert status is not None and status.slides is not None
        written = sum(part.stat().st_size for part in out.glob("part-*"))
        return status.slides, status.rows_out - status.slides.report.complete, written


def _declared(cell: Cell, slides: int) -> str:
    return f"{cell.generated(slides)} SET batch_rows = {BATCH_ROWS};"
