"""The input gates of a query and its clock: how far time has come by the rows that its inputs have brought.

Progress is the least watermark of the inputs. The origin is the first admitted instant, once progress is past it.
Streams that are stamped on arrival share one strictly increasing clock. While nothing comes it is the clock on the wall
that takes time on: that clock itself, heartbeats, and streams that fall idle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError
from transom.core.schema import TIMESTAMP
from transom.core.time import BEGINNING, FOREVER, floor_to_tick, next_tick
from transom.kernels.columns import empty_batch, fixed_array
from transom.pipeline.admission import InputGate, InputState, RejectedRows, reject_used
from transom.pipeline.leap import Leap
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.state.checks import alike, need


@dataclass
class InputGatesState:
    """`frontier` is the instant all output is complete to; `clock` the last stamp of an arrival.

    `spoke` is when a source last brought something, by the clock on the wall, and `quiet` when it was last looked for
    more and there was none; a source of which there is more is not in it. Where rows are read by others, `seen` is
    what was counted there of it: rows, late ones, rejected ones, whether it has ended, and those late after a leap.
    """

    inputs: dict[str, InputState]
    origin: int | None = None
    frontier: int | None = None
    clock: int = BEGINNING
    spoke: dict[str, int] = field(default_factory=dict)
    quiet: dict[str, int] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)

    def check(self) -> None:
        need(
            all(
                isinstance(instant, int | None)
                for instant in (self.origin, self.frontier, *self.spoke.values(), *self.quiet.values())
            )
        )


def came_after_the_end(what: str) -> CheckpointError:
    """An input has brought rows though it had been said to have ended."""
    return CheckpointError(
        f"{what} has ended, and there are rows of it now that were not read",
        remedy="run without --end (end=True) what is to be resumed; to read all of it, start with an empty "
        "checkpoint folder",
    )


class InputGates:
    """The gates of all inputs, what waits behind them, and the time: watermarks, progress, the clock, silence.

    `source_of` says which inputs are of one source, where an input is not one by itself.
    """

    def __init__(
        self,
        inputs: Mapping[str, InputGate],
        tick: int,
        origin: int | None,
        source_of: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.inputs = dict(inputs)
        self.source_of = {name: source_of.get(name, name) for name in inputs}
        self.tick = tick
        self.origin = origin
        self.state = self.start()
        self._stamped = {name for name, each in self.inputs.items() if _is_stamped(each)}
        self._timed = [name for name in self.inputs if name not in self._stamped]
        self._time_columns = {name: _time_column(self.inputs[name]) for name in self._stamped}
        self._no_rows = {name: empty_batch(each.definition.columns.held()) for name, each in self.inputs.items()}

    def start(self) -> InputGatesState:
        """What is remembered before anything has come."""
        return InputGatesState({name: InputState() for name in self.inputs}, origin=self.origin, frontier=self.origin)

    def check(self, state: InputGatesState) -> None:
        """Raise Unsound where a state that was read back cannot be one of these input gates."""
        alike(self.start(), state)
        for name, each in state.inputs.items():
            need(all(rows.values.schema.equals(self._no_rows[name].schema) for rows in each.waiting))

    def stamped(self, name: str) -> bool:
        """Whether the rows of an input get the time of their arrival."""
        return name in self._stamped

    def watermark(self, name: str) -> int:
        """Instants below it are complete."""
        state = self.state.inputs[name]
        if not state.ended and self.stamped(name):
            return self._arrival_watermark
        return self.inputs[name].watermark(state)

    def _watermark_at(self, name: str, now: int) -> int:
        """Where the watermark will be at `now`, if nothing comes and the run follows its inputs."""
        state = self.state.inputs[name]
        if not state.ended and self.stamped(name):
            return max(self._arrival_watermark, floor_to_tick(now, self.tick))
        return self.inputs[name].watermark_at(state, now)

    @property
    def _arrival_watermark(self) -> int:
        return self.state.clock + self.tick if self.state.clock > BEGINNING else BEGINNING

    @property
    def progress(self) -> int:
        """How far all inputs have come: the next step takes the answer up to here. Static tables hold nothing back."""
        least = min((self.watermark(name) for name in self._timed), default=FOREVER)
        # Those that are stamped on arrival stand where their clock does, however many they are.
        is_open = any(not self.state.inputs[name].ended for name in self._stamped)
        return min(least, self._arrival_watermark) if is_open else least

    @property
    def held_back_by(self) -> str | None:
        """The input whose watermark is the progress."""
        return min(self.inputs, key=self.watermark, default=None)

    def leap(self, name: str) -> Leap | None:
        """A row of an input that leapt in time, if others were late because of it."""
        leap = self.state.inputs[name].leap if name in self.inputs else None
        return None if leap is None or not leap.late else replace(leap)

    def hear(self, source: str, now: int, came: bool, polled_at: int | None) -> None:
        """Somebody has looked whether a source has more; if something `came`, its silence begins anew.

        `polled_at` is what the clock said before the look, if there was nothing more behind what came; None: there was.
        """
        if came or source not in self.state.spoke:
            self.state.spoke[source] = now
        if polled_at is None:
            self.state.quiet.pop(source, None)
        else:
            self.state.quiet[source] = polled_at
            for partition in {partition for state in self._of(source) for partition in state.partitions}:
                self.hear_partition(source, partition, now, False, polled_at)

    def enter(self, source: str, partitions: Collection[str]) -> None:
        """A source has these partitions, written side by side."""
        for name, gate in self.inputs.items():
            if self.source_of[name] == source and name not in self._stamped:
                gate.enter(self.state.inputs[name], partitions)

    def hear_partition(self, source: str, partition: str, now: int, came: bool, polled_at: int | None) -> None:
        """One of the partitions of a source that are written side by side has spoken, or had nothing to read."""
        for state in self._of(source):
            mark = state.partitions.get(partition)
            if mark is not None:
                mark.spoke = now if came or mark.spoke is None else mark.spoke
                mark.quiet = polled_at

    def _of(self, source: str) -> list[InputState]:
        return [state for name, state in self.state.inputs.items() if self.source_of[name] == source]

    def follow(self, now: int, at_end: Collection[str]) -> None:
        """The clock said `now` just before these sources were found to have nothing more, in any of their partitions.

        Only a run that follows its inputs says so. What is stamped on arrival stands at that clock from then on, and
        heartbeats of those sources speak. Before, not after: what has come since the look is not behind the clock.
        """
        if self._stamped:
            self.state.clock = max(self.state.clock, floor_to_tick(now, self.tick) - self.tick)
        for name, entry in self.inputs.items():
            if self.source_of[name] in at_end:
                entry.beat(self.state.inputs[name], now)

    def leave_idle_behind(self) -> bool:
        """Streams that have been silent for their idle time do not hold back the others; whether any did before.

        Silent until somebody last looked, and then there was nothing: nobody is silent who has not been listened to.
        """
        behind = [self.inputs[name].leave_partitions_behind(state) for name, state in self.state.inputs.items()]
        fell = {n: at for n, at in self._falls_idle().items() if at <= self.state.quiet[self.source_of[n]]}
        if not fell:
            return any(behind)
        marks = {name: self.watermark(name) for name in self.inputs}
        reached = self._reached(marks, fell)
        raised = [name for name in fell if marks[name] < reached]
        for name in raised:
            self.state.inputs[name].raised = reached
        return bool(raised) or any(behind)

    def _falls_idle(self) -> dict[str, int]:
        """When the inputs that declare it, and of which there is no more now, are idle if nothing comes of them."""
        idle_from = {}
        for name in self._timed:
            longest, source = self.inputs[name].definition.idle, self.source_of[name]
            if longest is not None and source in self.state.quiet and not self.state.inputs[name].ended:
                idle_from[name] = self.state.spoke[source] + longest
        return idle_from

    def _reached(self, marks: Mapping[str, int], fell: Mapping[str, int]) -> int:
        """How far the inputs have come that do not wait for those that fell idle, each at its time.

        If all did, the last one had come so far before it did: so it does not matter how often somebody looks. Inputs
        that have ended have come past their last row.
        """
        ended = [name for name in marks if self.state.inputs[name].ended]
        is_open = [name for name in marks if name not in fell and name not in ended]
        if is_open or not fell:
            return min((marks[name] for name in is_open), default=BEGINNING)
        last = max(fell, key=lambda name: (fell[name], marks[name]))
        lasts = [t for name in ended if (t := self.state.inputs[name].greatest) is not None and t < FOREVER]
        return max([marks[last], *(next_tick(t, self.tick) for t in lasts)])

    def next_timer(self, of_stage: int) -> int:
        """The least instant that progress has to pass for something to come of it.

        A row that waits is taken then, or operators behind the gates have something to do (`Stage.next_timer`).
        """
        state = self.state
        if state.origin is None:  # time begins with the first row
            return min((s.first for s in state.inputs.values() if s.first is not None), default=FOREVER)
        waiting = min((int(part.t[0]) for s in state.inputs.values() for part in s.waiting), default=FOREVER)
        return min(waiting, max(of_stage, state.origin if state.frontier is None else state.frontier))

    def wake(self, next_timer: int) -> int | None:
        """When, by the clock on the wall, progress passes an instant if nothing comes and the run follows its inputs.

        0: it has passed it; None: it never will.
        """
        if self.progress > next_timer:
            return 0
        if next_timer >= FOREVER - 1:
            return None
        falls = self._falls_idle()
        passes = [next_tick(next_timer, self.tick)] if self._stamped else []
        passes += [at for entry in self.inputs.values() if (at := entry.passes_at(next_timer)) is not None]
        for name, entry in self.inputs.items():
            passes += entry.idle_partitions(self.state.inputs[name], FOREVER).values()
        for now in sorted({*passes, *falls.values()}):
            marks = {name: self._watermark_at(name, now) for name in self.inputs}
            fell = {name: at for name, at in falls.items() if at <= now}
            reached = self._reached(marks, fell)
            if all(mark > next_timer or (name in fell and reached > next_timer) for name, mark in marks.items()):
                return now
        return None

    def next_step(self) -> tuple[int, int, int] | None:
        """From where to where time can go, and the origin; None where it cannot go on."""
        state, frontier = self.state, self.progress
        if state.origin is None:
            state.origin = self._find_origin(frontier)
        if state.origin is None or frontier <= (state.origin if state.frontier is None else state.frontier):
            return None
        return (state.origin if state.frontier is None else state.frontier), frontier, state.origin

    def reject_unbegun(self) -> dict[str, RejectedRows]:
        """At the end of all input, if time has not begun: the changes that wait for it."""
        if self.state.origin is not None or self.progress < FOREVER:
            return {}
        rejected = {name: self.inputs[name].reject_waiting(state) for name, state in self.state.inputs.items()}
        return {name: rejected_rows for name, rejected_rows in rejected.items() if rejected_rows is not None}

    def stamp(self, count: int, now: int) -> int:
        """The time of the first of `count` rows that have arrived; the others follow at every tick."""
        first = max(self.state.clock + self.tick, now // self.tick * self.tick)
        if count:
            self.state.clock = first + self.tick * (count - 1)
        return first

    def with_times(self, name: str, batch: pa.RecordBatch, t: Int64s) -> pa.RecordBatch:
        return batch.set_column(*self._time_columns[name], fixed_array(TIMESTAMP, t, None))

    def release(self, name: str, frontier: int) -> StreamDelta:
        """The rows of an input that progress has passed."""
        entry, state = self.inputs[name], self.state.inputs[name]
        if not state.waiting:
            return StreamDelta(self._no_rows[name], no_int64s(), frontier)
        values, t = entry.release(state, frontier)
        if isinstance(entry.definition, StreamDefinition):
            state.use(t)
        return StreamDelta(self._no_rows[name] if values is None else values, t, frontier)

    def release_parts(self, name: str, frontier: int) -> list[StreamDelta]:
        """The rows of an input before `frontier` in parts, one after the other in time; none where there are none."""
        entry, state = self.inputs[name], self.state.inputs[name]
        if isinstance(entry.definition, TableDefinition):  # which tells its changes apart by their positions
            whole = self.release(name, frontier)
            return [whole] if len(whole) else []
        parts = entry.release_parts(state, frontier) if state.waiting else []
        if parts:
            state.use(parts[-1].t)
        return [StreamDelta(part.values, part.t, frontier) for part in parts]

    def settle_changes(self, name: str, changes: StreamDelta, unmatched: Int64s) -> RejectedRows | None:
        """What a table made of its released changes: they are used, but for those at the positions that met no row."""
        state = self.state.inputs[name]
        state.use(np.delete(changes.t, unmatched))
        if not len(unmatched):
            return None
        return reject_used(state.ledger, changes.values.take(pa.array(unmatched)))

    @property
    def waited_for(self) -> list[str]:
        """The inputs that have rows waiting."""
        return [name for name, state in self.state.inputs.items() if state.waiting]

    @property
    def last_used(self) -> int:
        return max((state.last_used for state in self.state.inputs.values()), default=BEGINNING)

    @property
    def last_row(self) -> int:
        """The greatest instant of a row that has come."""
        seen = [state.greatest for state in self.state.inputs.values() if state.greatest is not None]
        return max(seen, default=BEGINNING)

    def _find_origin(self, frontier: int) -> int | None:
        if not self.inputs:
            return 0
        first = min((s.first for s in self.state.inputs.values() if s.first is not None), default=None)
        return first if first is not None and first < frontier else None


def _is_stamped(entry: InputGate) -> bool:
    return isinstance(entry.definition, StreamDefinition) and entry.definition.arrival_time


def _time_column(entry: InputGate) -> tuple[int, str]:
    """Where the column of its time is, and what it is called."""
    time, columns = entry.definition.time, entry.definition.columns
    assert time is not None
    at = [column.name.lower() for column in columns].index(time.column.lower())
    return at, columns[at].name
