"""The burst on Spark: rows with times of their own, through a session whose queries run in batches.

Rows come by the clock, from the moment on at which the first batch is done. A step works on slides for as long as
`SET put_off` says; what is left is state, and batches that bring nothing complete it. What a slide must have is counted
from the rows. Memory is that of the Python processes below the driver: the most that one of them had above what it had
when the burst began.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import Outcome, digits
from benchmarks.meters import anonymous_bytes_of_pythons
from benchmarks.overlap.burst import Burst, Diary, figures_of
from benchmarks.overlap.contestants import HYBRID
from benchmarks.overlap.data import BASIC_WINDOWS, MB, STREAMS
from benchmarks.spark_session import session_with
from transom.core.delta import Int64s
from transom.program.query_specs import handing
from transom.program.run import Run
from transom.program.slides import SlideStatus
from transom.session import Session, workspace_of

MOST_ABOVE: Final = 32
"""MB that a process may have beside the budget."""

_SCHEMA: Final = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("x", pa.int64())])
_BATCH_ROWS: Final = 16_384
"""Rows on their way in are no part of the join."""
_EVERY: Final = 0.01
_PATIENCE: Final = 600.0
"""Seconds: with other work beside it a batch takes seconds, and does no more of what was put off than otherwise."""
_WARMING: Final = 8
"""Slides of the past that come first."""


def measure(burst: Burst) -> Outcome:
    """The run, slide by slide."""
    world = _World(burst)
    spark, _ = session_with({})
    session = Session(spark=spark)
    for name in STREAMS:
        session.stream(name, world.batches(name), time="ts", columns=_SCHEMA)
    diary = Diary()
    workspace = workspace_of(session)
    run = workspace.assemble(workspace.prepare(_text(burst)), follow=True, answer=handing(diary.follow))
    with _Memory() as memory:
        run.run(lambda run: world.watch(run, diary, memory))
    (found,) = (one.slides for status in run.status() for one in status.operators if one.slides is not None)
    session.close()
    return _outcome(burst, world, diary, found, memory)


def _text(burst: Burst) -> str:
    window = f"[RANGE {BASIC_WINDOWS * burst.slide_ms} MILLISECONDS SLIDE {burst.slide_ms} MILLISECONDS]"
    return (
        f"SET slide_join = 'hybrid'; SET memory = '{burst.budget_mb:g} MB'; SET disk_speed = '{burst.disk_mb_s:g} MB';"
        f" SET batch_rows = {_BATCH_ROWS}; SET put_off = '{burst.put_off_ms} MILLISECONDS';"
        f" RSTREAM(SELECT a.k, a.x, b.x AS y FROM a {window}, b {window} WHERE a.k = b.k);"
    )


class _World:
    """The rows, when they come, and when all of it is over."""

    def __init__(self, burst: Burst) -> None:
        self._burst, self._go, self._over = burst, threading.Event(), threading.Event()
        self.began = 0
        self.warmed = _now() // (burst.slide_ms * 1_000) * burst.slide_ms * 1_000
        self.came: dict[str, list[pa.RecordBatch]] = {name: [] for name in STREAMS}

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """A few slides of the past, and when these are complete, so that all is loaded, the others by the clock."""
        burst, length = self._burst, self._burst.slide_ms * 1_000
        past = self.warmed - _WARMING * length
        yield self._batch(name, np.linspace(past + 1, self.warmed + 1, _WARMING * burst.calm).astype(np.int64))
        if not self._go.wait(_PATIENCE):
            return  # the run has failed
        for slide in range(burst.slides):
            for number in range(burst.batches):
                rows = burst.rows(slide) // burst.batches
                begin = self.began + slide * length
                first, after = (begin + at * length // burst.batches for at in (number, number + 1))
                time.sleep(max(after - _now(), 0) / 1e6)
                yield self._batch(name, np.linspace(first + 1, after, rows).astype(np.int64))
        self._over.wait(2 * _PATIENCE)  # with its inputs all time would end, and nothing be left for later

    def _batch(self, name: str, t: Int64s) -> pa.RecordBatch:
        random = np.random.default_rng([STREAMS.index(name), int(t[0])])
        columns = [random.integers(0, high, len(t)) for high in (self._burst.keys, 1 << 40)]
        arrays = [pa.array(t).cast(_SCHEMA.field(0).type), *map(pa.array, columns)]
        self.came[name].append(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
        return self.came[name][-1]

    def watch(self, run: Run, diary: Diary, memory: _Memory) -> None:
        """Let rows come when slides of the past are complete, and end the run when every slide of them is complete."""
        length = self._burst.slide_ms * 1_000
        if not self._go.is_set():
            if self.warmed in diary.complete:
                self.began = (_now() // length + 2) * length
                memory.begins_at = self.began + self._burst.slides_before * length
                self._go.set()
            return
        last = self.began + (self._burst.slides - 1) * length  # the one after it is not known to be over
        done = last in diary.complete and not set(diary.incomplete) - set(diary.complete)
        if done or _now() > last + _PATIENCE * 1_000_000:  # what is missing is reported
            self._over.set()
            run.stop()

    def results(self, at: int) -> int:
        """Of the slide at this instant."""
        counts = []
        for batches in self.came.values():
            rows = pa.Table.from_batches(batches)
            t = rows.column("ts").cast(pa.int64()).to_numpy()
            alive = (t <= at) & (t > at - BASIC_WINDOWS * self._burst.slide_ms * 1_000)
            counts.append(np.bincount(rows.column("k").to_numpy()[alive], minlength=self._burst.keys))
        return int(counts[0] @ counts[1])


class _Memory:
    """Looks at the processes while a block runs."""

    def __init__(self) -> None:
        self.begins_at = 0
        self._before: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Memory:
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watcher.join()

    def _look(self) -> None:
        while not self._over.wait(_EVERY):
            found = anonymous_bytes_of_pythons()
            if not self.begins_at or _now() < self.begins_at:
                self._before |= found
            self._most |= {process: max(size, self._most.get(process, 0)) for process, size in found.items()}

    @property
    def most(self) -> int:
        """Of one process, more than before."""
        return max((size - self._before.get(process, 0) for process, size in self._most.items()), default=0)


def _outcome(burst: Burst, world: _World, diary: Diary, found: SlideStatus, memory: _Memory) -> Outcome:
    length = burst.slide_ms * 1_000
    figures = figures_of(burst, diary, found, world.began)
    slides = [world.began + number * length for number in range(1, burst.slides)]
    wrong = [at for at in slides if diary.results_of.get(at, -1) != world.results(at)]
    above = (memory.most - burst.budget_mb * MB) / MB
    figures |= {
        "wrong": [(at - world.began) // length for at in wrong],
        "kept_mb_at_most": digits(found.report.peak_bytes / MB),
        "peak_over_budget_mb": digits(above),
    }
    later = figures["put_off"] == figures["completed_later"] > 0
    figures["holds"] = later and not wrong and not figures["unfinished"] and above <= MOST_ABOVE
    return Outcome({**asdict(burst), "experiment": "burst", "runtime": "spark"}, {HYBRID: figures})


def _now() -> int:
    return time.time_ns() // 1_000
