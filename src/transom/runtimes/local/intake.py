"""The inputs of queries that share a join, read once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from transom.connectors.source import Source, SourceBatch
from transom.pipeline.admission import Refused
from transom.pipeline.driver import Pipeline
from transom.pipeline.side import count_reasons, refused_rows, unreadable
from transom.program.clock import Clock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.runtimes.local.query import POLL, Reading

Refuse = Callable[[pa.RecordBatch], None]
"""Takes rows for the side table."""


class Intake:
    """Streams by name; with `follow` they may grow. What is refused is handed to `refuse`."""

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        open_source: Callable[[Definition], Source],
        refuse: Refuse,
        *,
        rows: int,
        follow: bool,
        clock: Clock,
    ) -> None:
        self.readings = {name: Reading() for name in definitions}
        self.definitions = definitions
        self._sources = {name: open_source(definition) for name, definition in definitions.items()}
        self._refuse = refuse
        self._rows = rows
        self._follow = follow
        self._clock = clock
        self._spoke = dict.fromkeys(definitions, clock.now())
        self._look_again: dict[str, int] = {}

    @property
    def complete(self) -> bool:
        """Whether all of it has been read."""
        return all(reading.complete for reading in self.readings.values())

    def next_input(self, trunk: Pipeline) -> str | None:
        """The input that is furthest behind, of those that may have rows."""
        now = self._clock.now()
        open_ones = [
            name
            for name, reading in self.readings.items()
            if not reading.complete and self._look_again.get(name, now) <= now
        ]
        return min(open_ones, key=lambda name: (trunk.watermark(name), self.readings[name].reads), default=None)

    def read(self, name: str) -> SourceBatch:
        """The next batch of an input, which `take` is to have; a source may keep whoever reads it waiting."""
        return self._sources[name].read(self.readings[name].position, self._rows, growing=self._follow)

    def take(self, name: str, batch: SourceBatch, trunk: Pipeline, stopwatch: Stopwatch | None) -> bool:
        """Whether there was something, or the input was seen to have ended."""
        reading = self.readings[name]
        reading.position = batch.position
        reading.reads += 1
        if len(batch.rejected):
            trunk.reject(name, len(batch.rejected))
            count_reasons(reading.reasons, batch.rejected.column("reason").to_pylist())
            self._refuse(unreadable(self.definitions[name].name, batch.rejected))
        if stopwatch is not None:
            stopwatch.arrive(len(batch.rows))
        if len(batch.rows):
            self._note(name, trunk.push(name, batch.rows, self._clock.now()))
        came = bool(len(batch.rows) or len(batch.rejected))
        if came:
            self._spoke[name] = self._clock.now()
        if batch.ended and self._follow and not batch.over:
            self._look_again[name] = self._clock.now() + POLL
            return came
        if batch.ended:
            reading.complete = True
            trunk.end(name)
        return True

    def leave_idle_behind(self, trunk: Pipeline) -> None:
        """Streams that have been silent for their idle time do not hold back the others."""
        now = self._clock.now()
        for name, definition in self.definitions.items():
            idle = definition.idle
            if idle is not None and self._look_again.get(name, now) > now and now - self._spoke[name] >= idle:
                trunk.fall_idle(name)

    def _note(self, name: str, refused: Refused | None) -> None:
        if refused is not None:
            count_reasons(self.readings[name].reasons, refused.reasons)
            definition = self.definitions[name]
            self._refuse(refused_rows(definition.name, refused, keep_late=definition.late == "side"))
