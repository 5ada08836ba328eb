"""The doors of a query and its clock: how far time has come by what its inputs have brought.

Progress is the least watermark of the inputs. The origin is the first admitted instant, once progress is past it.
Streams that are stamped on arrival share one strictly increasing clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError
from transom.core.schema import TIMESTAMP
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch, fixed_array
from transom.pipeline.admission import Input, InputState, Refused, refuse_used
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.state.checks import alike, need


@dataclass
class DoorsState:
    """`upto` is the instant all output is complete to; `clock` the last stamp of an arrival.

    `spoke` is when a source last brought something, by the clock on the wall. Where rows are read by others, `seen` is
    what was counted there of it: rows, late ones, rejected ones, and whether it has ended.
    """

    inputs: dict[str, InputState]
    origin: int | None = None
    upto: int | None = None
    clock: int = BEGINNING
    spoke: dict[str, int] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)

    def check(self) -> None:
        need(all(isinstance(instant, int | None) for instant in (self.origin, self.upto, *self.spoke.values())))


def came_after_the_end(what: str) -> CheckpointError:
    """An input has brought rows though it had been said to have ended."""
    return CheckpointError(
        f"{what} has ended, and there are rows of it now that were not read",
        remedy="run without --end (end=True) what is to be gone on with; to read all of it, start with an empty "
        "checkpoint folder",
    )


class Doors:
    """`source_of` tells which inputs are of one source, where an input is not one by itself."""

    def __init__(
        self,
        inputs: Mapping[str, Input],
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
        self._no_rows = {name: empty_batch(each.definition.columns.arrow()) for name, each in self.inputs.items()}

    def start(self) -> DoorsState:
        """What is remembered before anything has come."""
        return DoorsState({name: InputState() for name in self.inputs}, origin=self.origin, upto=self.origin)

    def check(self, state: DoorsState) -> None:
        """Raise Unsound where a state that was read back cannot be one of these doors."""
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
            return self._arrived_upto
        return self.inputs[name].watermark(state)

    @property
    def _arrived_upto(self) -> int:
        return self.state.clock + self.tick if self.state.clock > BEGINNING else BEGINNING

    @property
    def progress(self) -> int:
        """Instants below it are final. A query over static tables alone has nothing to wait for."""
        least = min((self.watermark(name) for name in self._timed), default=FOREVER)
        # Those that are stamped on arrival stand where their clock does, however many they are.
        goes_on = any(not self.state.inputs[name].ended for name in self._stamped)
        return min(least, self._arrived_upto) if goes_on else least

    @property
    def held_back_by(self) -> str | None:
        """The input whose watermark is the progress."""
        return min(self.inputs, key=self.watermark, default=None)

    def hear(self, source: str, now: int, came: bool) -> None:
        """Somebody has looked whether a source has more; if something `came`, its silence begins anew."""
        if came or source not in self.state.spoke:
            self.state.spoke[source] = now

    def leave_idle_behind(self, now: int, silent: Collection[str] | None = None) -> bool:
        """Streams that have been silent for their idle time do not hold back the others; whether any did before.

        Only `silent` sources, if they are named: nobody is silent who has not been listened to.
        """
        idle: list[str] = []
        for name, entry in self.inputs.items():
            longest, source = entry.definition.idle, self.source_of[name]
            if longest is None or (silent is not None and source not in silent):
                continue
            if now - self.state.spoke.get(source, now) >= longest:
                idle.append(name)
        moved = [self.fall_idle(name, idle) for name in idle]
        return any(moved)

    def fall_idle(self, name: str, idle: Collection[str] = ()) -> bool:
        """A silent stream stops holding the others back: it is raised to the progress that they have reached.

        Those that are `idle` as well are not waited for, unless all are.
        """
        source = self.source_of[name]
        others = [other for other in self.inputs if self.source_of[other] != source]
        lively = [other for other in others if other not in idle and not self.state.inputs[other].ended]
        reached = min(map(self.watermark, lively or others), default=BEGINNING)
        if FOREVER > reached > self.watermark(name):
            self.state.inputs[name].raised = reached
            return True
        return False

    def next_step(self) -> tuple[int, int, int] | None:
        """From where to where time can go, and the origin; None where it cannot go on."""
        state, upto = self.state, self.progress
        if state.origin is None:
            state.origin = self._find_origin(upto)
        if state.origin is None or upto <= (state.origin if state.upto is None else state.upto):
            return None
        return (state.origin if state.upto is None else state.upto), upto, state.origin

    def refuse_unbegun(self) -> dict[str, Refused]:
        """At the end of all input, if time has not begun: the changes that wait for it."""
        if self.state.origin is not None or self.progress < FOREVER:
            return {}
        found = {name: self.inputs[name].refuse_waiting(state) for name, state in self.state.inputs.items()}
        return {name: refused for name, refused in found.items() if refused is not None}

    def stamp(self, count: int, now: int) -> int:
        """The time of the first of `count` rows that have arrived; the others follow at every tick."""
        first = max(self.state.clock + self.tick, now // self.tick * self.tick)
        if count:
            self.state.clock = first + self.tick * (count - 1)
        return first

    def with_times(self, name: str, batch: pa.RecordBatch, t: Int64s) -> pa.RecordBatch:
        return batch.set_column(*self._time_columns[name], fixed_array(TIMESTAMP, t, None))

    def release(self, name: str, upto: int) -> StreamDelta:
        """The rows of an input that progress has passed."""
        entry, state = self.inputs[name], self.state.inputs[name]
        if not state.waiting:
            return StreamDelta(self._no_rows[name], no_int64s(), upto)
        values, t = entry.release(state, upto)
        if isinstance(entry.definition, StreamDefinition):
            state.use(t)
        return StreamDelta(self._no_rows[name] if values is None else values, t, upto)

    def release_parts(self, name: str, upto: int) -> list[StreamDelta]:
        """The same rows in parts, one after the other in time; none where there are none."""
        entry, state = self.inputs[name], self.state.inputs[name]
        if isinstance(entry.definition, TableDefinition):  # which tells its changes apart by their positions
            whole = self.release(name, upto)
            return [whole] if len(whole) else []
        parts = entry.release_parts(state, upto) if state.waiting else []
        if parts:
            state.use(parts[-1].t)
        return [StreamDelta(part.values, part.t, upto) for part in parts]

    def settle_changes(self, name: str, changes: StreamDelta, unmatched: Int64s) -> Refused | None:
        """What a table made of its released changes: they are used, but for those at the positions that met no row."""
        state = self.state.inputs[name]
        state.use(np.delete(changes.t, unmatched))
        if not len(unmatched):
            return None
        return refuse_used(state.ledger, changes.values.take(pa.array(unmatched)))

    @property
    def waited_for(self) -> list[str]:
        """The inputs that have rows waiting."""
        return [name for name, state in self.state.inputs.items() if state.waiting]

    @property
    def last_used(self) -> int:
        return max((state.last_used for state in self.state.inputs.values()), default=BEGINNING)

    def _find_origin(self, upto: int) -> int | None:
        if not self.inputs:
            return 0
        first = min((s.first for s in self.state.inputs.values() if s.first is not None), default=None)
        return first if first is not None and first < upto else None


def _is_stamped(entry: Input) -> bool:
    return isinstance(entry.definition, StreamDefinition) and entry.definition.arrival_time


def _time_column(entry: Input) -> tuple[int, str]:
    """Where the column of its time is, and what it is called."""
    time, columns = entry.definition.time, entry.definition.columns
    assert time is not None
    at = [column.name.lower() for column in columns].index(time.column.lower())
    return at, columns[at].name
