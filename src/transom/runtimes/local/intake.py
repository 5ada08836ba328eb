"""The inputs of a query in this process, or of queries that share a join: read once, as far as there is anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from transom.connectors.connector import Source
from transom.connectors.source import START, Growing, Position, SourceBatch
from transom.core.time import FOREVER
from transom.kernels.operator import Operator
from transom.pipeline.admission import RejectedRows
from transom.pipeline.dead_letters import count_reasons, dead_letter_rows, unreadable
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue
from transom.planner.columns_read import columns_wanted
from transom.program.alignment import holding_back
from transom.program.clock import Clock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.program.run import Ending
from transom.program.unread import reject_grown

POLL: Final = 200_000
"""Microseconds after which an input that had nothing is looked at again."""

Reject = Callable[[pa.RecordBatch], None]
"""Takes rows for the dead-letter table."""


@dataclass
class InputReading:
    """How far an input has been read, and why rows of it were rejected. `complete`: there is nothing more to come.

    `over`: the source itself said so.
    """

    position: Position = field(default_factory=lambda: START)
    reads: int = 0
    complete: bool = False
    over: bool = False
    reasons: dict[str, int] = field(default_factory=dict)


class Intake:
    """Inputs by name, those without a time first: they are complete before anything else is read.

    How the run is to end says what becomes of an input at its present end. What is rejected is handed to `reject`.
    """

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        open_source: Callable[[Definition], Source],
        reject: Reject,
        *,
        rows: int,
        ending: Ending,
        clock: Clock,
    ) -> None:
        self.readings = {name: InputReading() for name in definitions}
        self.definitions = definitions
        self._sources = {name: open_source(definition) for name, definition in definitions.items()}
        self._reject = reject
        self._rows = rows
        self._ending = ending
        self._clock = clock
        self._poll_again: dict[str, int] = {}
        self._looked_at = clock.now()

    def narrow(self, root: Operator, catalogue: Catalogue) -> None:
        """A query with this plan is the only reader."""
        for name, definition in self.definitions.items():
            wanted = columns_wanted(root, definition, catalogue)
            if wanted is not None:
                self._sources[name].narrow(wanted)

    @property
    def complete(self) -> bool:
        """Whether all of it has been read, and nothing will come."""
        return bool(self.readings) and all(reading.complete for reading in self.readings.values())

    @property
    def exhausted(self) -> bool:
        """Whether this run has read all that it is going to read."""
        return all(reading.complete or self._poll_again.get(name) == FOREVER for name, reading in self.readings.items())

    @property
    def tables_read(self) -> bool:
        """Whether the tables that never change are there."""
        return all(self.readings[name].complete for name in self.definitions if self._is_static(name))

    def next_input(self, pipeline: Pipeline) -> str | None:
        """A static table that is not complete; else the input that is furthest behind, of those that may have rows."""
        for name, reading in self.readings.items():
            if self._is_static(name) and not reading.complete:
                return name
        now = self._clock.now()
        open_ones = {
            name: pipeline.watermark(name)
            for name, reading in self.readings.items()
            if not reading.complete and self._poll_again.get(name, now) <= now
        }
        return min(holding_back(open_ones), key=lambda name: self.readings[name].reads, default=None)

    def settle(self) -> None:
        """A checkpoint has counted what was read."""
        for name, reading in self.readings.items():
            self._sources[name].settle(reading.position)

    def wake(self) -> None:
        """Look again in the next step at the inputs that had nothing, unless this run is not to look at them again."""
        self._poll_again = {name: at for name, at in self._poll_again.items() if at == FOREVER}

    def read(self, name: str) -> SourceBatch:
        """The next batch of an input, which `take` is to have; a source may keep whoever reads it waiting."""
        self._looked_at = self._clock.now()
        return self._sources[name].read(self.readings[name].position, self._rows, growing=self._growing(name))

    def take(self, name: str, batch: SourceBatch, pipeline: Pipeline, stopwatch: Stopwatch | None) -> bool:
        """Whether there was something, or the input was seen to have ended."""
        reading, now = self.readings[name], self._clock.now()
        reading.position = batch.position
        reading.reads += 1
        if len(batch.rejected):
            pipeline.reject(name, len(batch.rejected))
            count_reasons(reading.reasons, batch.rejected.column("reason").to_pylist())
            self._reject(unreadable(self.definitions[name].name, batch.rejected))
        if stopwatch is not None and not self._is_static(name):
            stopwatch.arrive(len(batch.rows))
        side_by_side = batch.live is not None and not self._is_static(name) and not pipeline.gates.stamped(name)
        if side_by_side:
            pipeline.gates.enter(name, list(batch.live or ()))
        for partition, rows in batch.by_partition():
            if len(rows):
                self.note(name, pipeline.push(name, rows, now, partition if side_by_side else None))
        came = bool(len(batch.rows) or len(batch.rejected))
        may_grow = self._may_grow(name) and not batch.over
        if not self._is_static(name):
            pipeline.gates.hear(name, now, came, self._looked_at if batch.ended and may_grow else None)
            spoke = {partition for partition, count in batch.parts if count}
            for partition, at_end in (batch.live or {}).items():
                polled_at = self._looked_at if at_end and may_grow else None
                pipeline.gates.hear_partition(name, partition, now, partition in spoke, polled_at)
        if not batch.ended:
            return True
        if may_grow:
            self._poll_again[name] = FOREVER
            if self._ending == "stopped":
                self._poll_again[name] = now + POLL
                pipeline.gates.follow(self._looked_at, [name])
            return came
        reading.complete, reading.over = True, batch.over
        pipeline.end(name)
        return True

    def leave_idle_behind(self, pipeline: Pipeline) -> bool:
        """The streams that have been read to their present end and are silent for their idle time.

        Whether time goes on by that. Those that this run does not look at again have nothing more for it.
        """
        for name, again in self._poll_again.items():
            if again == FOREVER:
                now = self._clock.now()
                pipeline.gates.hear(name, now, came=False, polled_at=now)
        return pipeline.gates.leave_idle_behind()

    def note(self, name: str, rejected_rows: RejectedRows | None) -> None:
        """Rows that the pipeline did not take."""
        if rejected_rows is not None:
            count_reasons(self.readings[name].reasons, rejected_rows.reasons)
            self._reject(dead_letter_rows(self.definitions[name], rejected_rows))

    def resume(self, readings: dict[str, InputReading]) -> None:
        """Go on from where a checkpoint was; what is complete must have stayed as it is."""
        self.readings = readings
        for name, reading in readings.items():
            if reading.complete and not reading.over:
                reject_grown(self.definitions[name], self._sources[name], reading.position)

    def _may_grow(self, name: str) -> bool:
        return self._ending != "end" and not self._is_static(name)

    def _growing(self, name: str) -> Growing:
        return "later" if self._ending == "now" and self._may_grow(name) else self._may_grow(name)

    def _is_static(self, name: str) -> bool:
        return self.definitions[name].time is None
