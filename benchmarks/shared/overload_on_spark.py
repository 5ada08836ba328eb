"""Part c on Spark: the same rush of rows, through a session whose queries run in batches.

Two generators bring rows by the clock, from the moment on at which the first batch is done. What was lost and how the
queries were doing is what their status says, as users see it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import Outcome
from benchmarks.shared.overload import PART, SCHEMA, STREAMS, Answers, Course, Rush, World, capacity, compared
from benchmarks.spark_session import session_with
from transom import Session
from transom.pipeline.scheduled_state import Shed
from transom.program.overload import OverloadStatus
from transom.program.run import Run
from transom.program.status import Status
from transom.session import workspace_of

_TICK: Final = 0.1
_PIECES: Final = 50
_PROBED: Final = (2.0, 6.0)
"""Seconds of rows. The difference leaves out what every run costs."""


def capacity_on_spark(rush: Rush) -> float:
    """Rows of each stream a second that can just be kept up with, where they are at hand; by runs that end."""
    rate = capacity(rush)
    took = []
    for seconds in (_PROBED[0], *_PROBED):  # the first one starts everything
        world = World(rush, "fifo", "block", [(seconds, rate)])
        session = _session()
        for name in STREAMS:
            session.stream(name, world.rows(name, seconds), time="ts")
        run = workspace_of(session).assemble(workspace_of(session).prepare(world.text))
        started = time.perf_counter()
        run.run()
        took.append(time.perf_counter() - started)
        session.close()
    return float(rate / np.sqrt(max(took[2] - took[1], 0.1) / (_PROBED[1] - _PROBED[0])))


def measure_on_spark(policy: str, rush: Rush, rate: float) -> Outcome:
    """Rows by the clock, with `rate` of each stream a second as the capacity."""
    plan = [(rush.before, 0.4 * rate), (rush.rush, rush.over * rate), (rush.after, 0.4 * rate)]
    total = sum(seconds for seconds, _ in plan)
    world, go = World(rush, policy, "shed", plan), threading.Event()
    came: dict[str, list[pa.RecordBatch]] = {name: [] for name in STREAMS}
    began = [0.0]

    def rows(name: str) -> Iterator[pa.RecordBatch]:
        """One row, and when that has been worked on the others by the clock."""
        now = 1.5 / plan[0][1]
        while True:
            batch = world.rows(name, now)
            came[name].append(batch)
            if len(batch):
                yield batch
            if now >= total:
                return
            if not go.wait(60.0):
                return  # the run has failed
            time.sleep(_TICK)
            now = min(time.perf_counter() - began[0], total)

    session = _session()
    for name in STREAMS:
        session.stream(name, rows(name), time="ts", columns=SCHEMA)
    course, seen = Course(), _Seen()

    def watch(run: Run) -> None:
        statuses = run.status()
        if not go.is_set() and statuses[0].steps:
            began[0] = time.perf_counter()
            go.set()
        if go.is_set():
            seen.look(statuses, course, time.perf_counter() - began[0])

    run = workspace_of(session).assemble(workspace_of(session).prepare(world.text))
    run.run(watch)
    statuses = run.status()
    seen.look(statuses, course, total)
    reported = [_overload(status) for status in statuses]
    whole = {name: pa.Table.from_batches(came[name], SCHEMA).combine_chunks().to_batches()[0] for name in STREAMS}
    for piece in range(_PIECES):
        for name in STREAMS:
            first, last = (len(whole[name]) * at // _PIECES for at in (piece, piece + 1))
            world.given.append((name, whole[name].slice(first, last - first)))
    answers = Answers(0, 0, 0, 0, 0, 0)
    for query, one, expected in zip(run.queries, reported, world.at_once(), strict=True):
        answers += compared(_shed(one), query.table().to_batches(), expected)
    session.close()
    faults = seen.broken + answers.wrong + answers.unexplained + answers.missing_after
    within = rush.over * rate * max(rush.windows) / 1_000
    bound = int(2 * (within + rush.buffer + 5 * rush.over * rate))  # of what comes while a batch is under way
    figures: dict[str, Any] = {
        **{name: sum(getattr(each, name) for each in reported) for name in ("due", "processed", "shed")},
        "broken_ledgers": seen.broken,
        "batches": statuses[0].steps,
        "most_kept": seen.most_kept,
        "bound": bound,
        "answers": asdict(answers),
        "course": asdict(course),
        "holds": not faults and seen.most_kept <= bound and answers.pairs_after > 0,
    }
    cell = {**PART, "runtime": "spark", "rush": asdict(rush), "capacity": round(rate)}
    return Outcome(cell, {policy: figures})


class _Seen:
    """What was seen on the way, once for each batch."""

    def __init__(self) -> None:
        self.broken, self.most_kept, self._steps = 0, 0, -1

    def look(self, statuses: list[Status], course: Course, now: float) -> None:
        if statuses[0].steps == self._steps or any(status.overload is None for status in statuses):
            return
        self._steps = statuses[0].steps
        found = [_overload(status) for status in statuses]
        self.broken += sum(each.due != each.processed + each.shed + each.pending for each in found)
        kept = max(one.state_rows for one in statuses[0].operators if one.operator == "SharedJoin")
        self.most_kept = max(self.most_kept, kept)
        course.seconds.append(round(now, 2))
        course.waiting.append(max(each.pending for each in found))
        course.kept.append(kept)
        course.shed.append(sum(each.shed for each in found))


def _overload(status: Status) -> OverloadStatus:
    assert status.overload is not None
    return status.overload


def _shed(one: OverloadStatus) -> Shed:
    first, last = (one.shed_rows.column(name).cast(pa.int64()).to_numpy() for name in ("first", "last"))
    return Shed(first, last, np.asarray(one.shed_rows.column("rows").to_numpy(), dtype=np.int64))


def _session() -> Session:
    spark, _ = session_with({})
    return Session(spark=spark)
