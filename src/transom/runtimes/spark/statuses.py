"""How the partitions of a query are doing, put together: what each of them reported last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from transom.core.errors import CheckpointError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.operator import Operator, scanned
from transom.pipeline.consumer import Consumer
from transom.pipeline.frames import Frame
from transom.pipeline.layout import Layout
from transom.pipeline.leap import Leap
from transom.program.alignment import InputPace
from transom.program.batch_size import BatchSize
from transom.program.checkpoint_folder import put, read
from transom.program.overload import OverloadStatus
from transom.program.slides import slides_in
from transom.program.status import InputStatus, OperatorStatus, PartitionStatus, Status
from transom.program.tactic_changes import changes_in
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.overload import overload_status, speed_after, with_earlier

MOST_HISTORY: Final = 1000


@dataclass(frozen=True)
class BatchCost:
    """Rows that a batch read, and bytes of state that it wrote."""

    rows: int
    written: int


class Statuses:
    """Ledgers add up over the partitions; what tasks counted is reported by one of them."""

    def __init__(self, layout: Layout, name: str, size: BatchSize | None = None) -> None:
        self._layout = layout
        self._name = name
        self._size = size
        """Of batches; None where that is not ours to say."""
        self._partitions: dict[tuple[int, int], dict[str, Any]] = {}
        self.batches = 0
        self._rows = 0
        self.written = 0
        """Bytes of state that the last batch wrote."""
        self.history: list[BatchCost] = []
        self.rebuilt = 0
        """How often memory had to be made again from its log."""
        self._paces: dict[str, InputPace] = {}
        self.stopping = False
        self._begun: int | None = None
        self._speed: float | None = None
        """What a second has of work that is put in order."""

    def take(self, parts: Iterable[Frame], seconds: float = 0.0, number: int = 0) -> None:
        """What the partitions reported in the batch of this number, which took so long."""
        self.batches += 1
        before = {name: self.rows_in(name) for name in self._layout.sources}
        self.written = 0
        for part in parts:
            if part.kind == "kept":
                self.written += part.about["kept"]["written"]
                self.rebuilt += part.about["kept"]["rebuilt"]
            else:
                reported = json.loads(part.about["status"])
                partition_id = reported["fragment"], reported["partition"]
                if reported.get("scheduled") is not None:
                    before_that = self._partitions.get(partition_id, {}).get("scheduled")
                    reported["scheduled"] = with_earlier(reported["scheduled"], before_that)
                    self._speed = speed_after(self._speed, reported["scheduled"])
                self._partitions[partition_id] = reported
        if self._begun is None and all(reported["frontier"] is not None for reported in self._partitions.values()):
            self._begun = number
        inputs = {name: self._input(name) for name in self._layout.sources}
        for name, status in inputs.items():
            if status.watermark is not None:
                pace = self._paces.get(name, InputPace())
                self._paces[name] = pace.after(status.watermark, status.rows_in, status.waiting, self._start(name))
        if self._size is not None:
            streams = [status.rows_in - before[name] for name, status in inputs.items() if status.watermark is not None]
            # Of a query that resumes from another one nobody knows here how much was read before.
            self._size = self._size.after(min(max(streams, default=0), self._size.rows), seconds)
        rows = sum(status.rows_in for status in inputs.values())
        self.history.append(BatchCost(rows - self._rows, self.written))
        self._rows = rows
        del self.history[:-MOST_HISTORY]

    def keep(self, path: str) -> None:
        """Write down what is known, for a run that resumes from here and finds nothing more to do."""
        put(path, json.dumps(list(self._partitions.values())).encode(), durable=False)

    def recover(self, path: str) -> None:
        """What `keep` wrote. Nothing depends on it but what people are shown, so a file that is gone is no loss."""
        data = read(path)
        try:
            if data is not None:
                self._partitions = {
                    (reported["fragment"], reported["partition"]): reported for reported in json.loads(data)
                }
                self.status()  # which looks at all of it
        except Exception as error:  # what it may say instead is anybody's guess
            self._partitions = {}
            raise CheckpointError(
                f"'{path}' is damaged, which says how far the query had come: {error or type(error).__name__}",
                remedy="restore it from a copy, or delete this file alone: only the counts of earlier runs are lost",
            ) from None

    @property
    def feedback(self) -> Feedback:
        """What the source is to know for the next batch."""
        wakes = [wake for reported in self._partitions.values() if (wake := reported.get("wake")) is not None]
        rows = None if self._size is None else self._size.rows
        waits = any(scheduled["waits"] for scheduled in self._scheduled)
        wake = min(wakes, default=None)
        return Feedback(dict(self._paces), wake, self.stopping, rows, self._begun, waits, self._speed)

    def resume(self, earlier: Feedback) -> None:
        """Go on from what an earlier run left for the source."""
        self._paces = {name: pace for name, pace in earlier.paces.items() if name in self._layout.sources}
        self._begun, self._speed = earlier.begun, earlier.speed
        if self._size is not None and earlier.rows is not None:
            self._size = replace(self._size, rows=min(earlier.rows, self._size.most), settled=True)

    def _start(self, name: str) -> int | None:
        """Where the watermark of an input was when its first row came."""
        time = self._layout.sources[name].time
        firsts = [reported.get("firsts", {}).get(name) for reported in self._partitions.values()]
        seen = [first for first in firsts if first is not None]
        return min(seen) - time.bound if seen and time is not None else None

    @property
    def reported(self) -> bool:
        """Whether anything is known of any partition."""
        return bool(self._partitions)

    @property
    def frontier(self) -> int | None:
        """How far the answer is out, which all partitions agree on; None where it has not begun."""
        frontier: int | None = next((reported["frontier"] for reported in self._partitions.values()), None)
        return frontier

    def rows_in(self, name: str) -> int:
        """How many rows of an input tasks have read."""
        return sum(reported["seen"].get(name, (0,))[0] for reported in list(self._partitions.values()))

    def status(self) -> Status:
        inputs = tuple(self._input(name) for name in self._layout.sources)
        progress = min((reported["progress"] for reported in self._partitions.values()), default=BEGINNING)
        waits = [each for each in inputs if each.watermark is not None]
        ended = all(each.ended for each in inputs)
        return Status(
            name=self._name,
            inputs=inputs,
            operators=tuple(self._operator(i) for i in range(len(self._layout.operators))),
            progress=progress,
            held_back_by=None if ended or not waits else min(waits, key=lambda each: each.watermark or BEGINNING).name,
            rows_out=sum(reported["rows_out"] for reported in self._partitions.values()),
            steps=self.batches,
            finished=ended and progress == FOREVER,
            partitions=tuple(_partition_status(self._partitions[key]) for key in sorted(self._partitions)),
        )

    def of_consumer(self, consumer: Consumer) -> tuple[list[OperatorStatus], int]:
        """How the operators are doing that one of several queries has for itself, and how many rows left it."""
        reported = [
            of_query
            for each in self._partitions.values()
            if (of_query := each.get("queries", {}).get(consumer.spec.name))
        ]
        operators = [
            _operator_status(i, operator, [each["operators"].get(str(i), ()) for each in reported])
            for i, operator in enumerate(consumer.operators)
        ]
        return operators, sum(each["rows_out"] for each in reported)

    @property
    def _scheduled(self) -> list[dict[str, Any]]:
        """What partitions reported of work that is put in order."""
        return [
            scheduled for each in list(self._partitions.values()) if (scheduled := each.get("scheduled")) is not None
        ]

    def overload_of(self, key: str) -> tuple[int | None, OverloadStatus] | None:
        """How far a query is whose work is put in order, and how it is doing; None where it is not."""
        schedule = self._layout.schedule
        scheduled = next((each for each in self._scheduled if key in each["queries"]), None)
        if schedule is None or scheduled is None:
            return None
        return scheduled["queries"][key]["frontier"], overload_status(scheduled, key, schedule)

    def _input(self, name: str) -> InputStatus:
        definition = self._layout.sources[name]
        rows_in, late, rejected, ended = 0, 0, 0, False
        used = 0
        reasons: dict[str, int] = {}
        leap: Leap | None = None
        after_leap = 0
        watermark = BEGINNING
        for reported in self._partitions.values():
            seen = reported["seen"].get(name)
            if seen is not None:
                rows_in, late, rejected, ended = rows_in + seen[0], late + seen[1], rejected + seen[2], bool(seen[3])
                after_leap += seen[4]
            if name in reported["leaps"]:
                leap = Leap(*reported["leaps"][name])
                after_leap += leap.late
            counts = reported["inputs"].get(name, [0, 0, 0])
            used, late, rejected = used + counts[0], late + counts[1], rejected + counts[2]
            for reason, count in reported["reasons"].get(name, {}).items():
                reasons[reason] = reasons.get(reason, 0) + count
            watermark = max(watermark, reported["watermarks"].get(name, BEGINNING))
        static = definition.time is None
        if static:
            used = rows_in - rejected
        return InputStatus(
            name=definition.name,
            rows_in=rows_in,
            used=used,
            late=late,
            rejected=rejected,
            waiting=rows_in - used - late - rejected,
            watermark=None if static else watermark,
            ended=ended,
            reasons=reasons,
            leap=replace(leap, late=after_leap) if leap is not None and after_leap else None,
        )

    def _operator(self, i: int) -> OperatorStatus:
        operator = self._layout.operators[i]
        partitions = self._partitions.values()
        status = _operator_status(i, operator, [reported["operators"].get(str(i), ()) for reported in partitions])
        if not operator.inputs:  # where a scan belongs to no fragment
            status = replace(status, rows_out=max(status.rows_out, self._input(scanned(operator)).used))
        changes = [lines for reported in partitions for lines in reported.get("changes", {}).get(str(i), ())]
        slides = slides_in([reported.get("slides", {}).get(str(i)) for reported in partitions])
        return replace(status, slides=slides, changes=changes_in(changes))


def _partition_status(reported: dict[str, Any]) -> PartitionStatus:
    """The status of a partition, which all queries that share it have."""
    shared = [each["operators"] for each in reported["queries"].values()]
    done = [counts for operators in (reported["operators"], *shared) for counts in operators.values()]
    return PartitionStatus(
        stage=reported["fragment"],
        partition=reported["partition"],
        rows_in=max((int(counts[0]) for counts in done), default=0),
        state_rows=sum(int(counts[5]) for counts in done),
        state_bytes=sum(int(counts[4]) for counts in done),
        seconds=sum(counts[3] for counts in done),
    )


def _operator_status(i: int, operator: Operator, reported: Iterable[Sequence[float]]) -> OperatorStatus:
    """What all partitions reported of an operator, added up."""
    totals = [0, 0, 0, 0.0, 0, 0]
    for done in reported:
        for index, value in enumerate(done):
            totals[index] += value
    rows_in, rows_out, ends, seconds, kept, rows_kept = totals
    return OperatorStatus(
        number=i + 1,
        operator=operator.kind,
        tactic=operator.tactic.name,
        rows_in=int(rows_in),
        rows_out=int(rows_out),
        ends=int(ends),
        state_bytes=int(kept),
        seconds=seconds,
        state_rows=int(rows_kept),
    )
