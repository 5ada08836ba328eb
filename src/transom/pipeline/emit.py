"""How an answer leaves: as lifetimes, as changes, as the latest snapshot, or as the rows of a stream.

| emit | columns |
| --- | --- |
| stream | at, the row |
| changes | change (+ or -), at, the row |
| net | change (+ or -), the row; what a batch has changed, once (`net.py`) |
| lifetimes | the row, ta, te; a row once its end is known; at the end of all input the open ones, with an empty te |
| latest | the row; the whole snapshot each time, at the end of all input that of the last row's instant |

Of changes within an instant what left comes first; what leaves and enters at once is not mentioned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Changelog, Delta, Int64s, StreamDelta, no_int64s
from transom.core.schema import TIMESTAMP, Schema
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import fixed_array
from transom.kernels.kernel import Step
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.negative.beginnings import Beginnings
from transom.kernels.row_store import RowStore
from transom.kernels.taken import taken_rows
from transom.kernels.tally import Steps, Tally
from transom.kernels.to_stream.direct_stream import DirectStreamKernel
from transom.kernels.to_stream.to_stream import ToStreamKernel
from transom.pipeline.answer import held_output
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown


def _times(t: Int64s) -> pa.Array:
    return fixed_array(TIMESTAMP, t, None)


_AT = pa.field("at", TIMESTAMP)


class _Named:
    """Gives columns the names of the answer, which are distinct."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._seen = schema

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if rows.schema.equals(self._seen):  # at once, if it is made of the very same fields
            return rows
        if not rows.schema.equals(self.schema):
            return rows.rename_columns(self.schema.names)
        self._seen = rows.schema
        return rows


@dataclass(frozen=True)
class StreamEmit:
    schema: Schema

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def write(self, state: None, rows: StreamDelta, step: Step) -> pa.RecordBatch:
        return self._named(rows.values.add_column(0, _AT, _times(rows.t)))

    @cached_property
    def _named(self) -> _Named:
        return _Named(held_output("stream", self.schema))


@dataclass(frozen=True)
class ChangesEmit:
    """`direct`: rows are held whole until they end, and no values are counted."""

    schema: Schema
    direct: bool = False

    def start(self) -> Any:
        return self._kernel.start()

    def next_timer(self, state: Any) -> int:
        return self._kernel.next_timer(state)

    def write(self, state: Any, rows: Delta | Changelog, step: Step) -> pa.RecordBatch:
        out = self._kernel.step(state, (rows,), step)  # type: ignore[arg-type]
        return self._named(out.values.add_column(1, _AT, _times(out.t)))

    @cached_property
    def _named(self) -> _Named:
        return _Named(held_output("changes", self.schema))

    @cached_property
    def _kernel(self) -> ToStreamKernel | DirectStreamKernel:
        return (DirectStreamKernel if self.direct else ToStreamKernel)("changes", self.schema.held())


@dataclass
class LifetimesState:
    """Open rows by slot: their values and their beginning."""

    rows: RowStore
    slots: SlotPool = field(default_factory=SlotPool)
    ta: Int64s = field(default_factory=no_int64s)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(self.rows.capacity >= self.slots.high)
        rooms(self.slots.high, self.ta)
        self.lifetimes.check_slots(self.slots.mask())


@dataclass(frozen=True)
class LifetimesEmit:
    schema: Schema

    def start(self) -> LifetimesState:
        return LifetimesState(RowStore.of(self.schema.held().types))

    def next_timer(self, state: LifetimesState) -> int:
        return FOREVER

    def write(self, state: LifetimesState, rows: Delta, step: Step) -> pa.RecordBatch:
        waiting = rows.open_id != NO_OPEN_ID
        if not rows.ends.chunks and not waiting.any():
            return self._with_times(rows.values, rows.ta, _times(rows.te))
        slots, te = state.lifetimes.closed(rows.ends)
        ta = state.ta[slots] if len(slots) else no_int64s()
        kept = np.flatnonzero(te > ta)  # not the ghosts
        earlier = self._batch(state.rows.gather(slots[kept], self.schema.held().types), ta[kept], _times(te[kept]))
        state.rows.free(slots)
        state.slots.give_back(slots)
        if waiting.any():
            self._keep(state, rows, np.flatnonzero(waiting))
        ended = np.flatnonzero(~waiting)
        values = taken_rows(rows.values, ended)
        fresh = self._with_times(values, rows.ta[ended], _times(rows.te[ended]))
        return pa.concat_batches([earlier, fresh])

    def remaining(self, state: LifetimesState) -> pa.RecordBatch:
        """The rows that are still open."""
        unused = state.slots.free[: state.slots.free_count]
        slots = np.setdiff1d(np.arange(state.slots.high), unused)
        none = pa.nulls(len(slots), TIMESTAMP)
        ta = state.ta[slots] if len(slots) else no_int64s()
        return self._batch(state.rows.gather(slots, self.schema.held().types), ta, none)

    def _batch(self, columns: list[pa.Array], ta: Int64s, te: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*columns, _times(ta), te], schema=self._out)

    def _with_times(self, rows: pa.RecordBatch, ta: Int64s, te: pa.Array) -> pa.RecordBatch:
        return self._named(rows.append_column(self._ta, _times(ta)).append_column(self._te, te))

    @cached_property
    def _named(self) -> _Named:
        return _Named(self._out)

    @cached_property
    def _ta(self) -> pa.Field:
        return self._out.field(-2)

    @cached_property
    def _te(self) -> pa.Field:
        return self._out.field(-1)

    @cached_property
    def _out(self) -> pa.Schema:
        return held_output("lifetimes", self.schema)

    def _keep(self, state: LifetimesState, rows: Delta, which: Int64s) -> None:
        slots = state.slots.take(len(which))
        if state.slots.high > len(state.ta):
            state.ta = grown(state.ta, state.slots.high)
            state.rows.reserve(len(state.ta))
        state.rows.write(slots, taken_rows(rows.values, which).columns)
        state.ta[slots] = rows.ta[which]
        state.lifetimes.observe(rows.open_id[which], slots)


@dataclass(frozen=True)
class NegativeLifetimesEmit:
    """Lifetimes from negative tuples: a row once it departs, with the beginning of an equal one.

    Here nobody can tell a row that is open from one that lives forever: at the end of all input both have an empty te.
    As histories the two are equal.
    """

    schema: Schema

    def start(self) -> Beginnings:
        return Beginnings.of(self.schema.held().types)

    def next_timer(self, state: Beginnings) -> int:
        return FOREVER

    def write(self, state: Beginnings, rows: Changelog, step: Step) -> pa.RecordBatch:
        departed = rows.values.slice(0, rows.departed)
        return self._batch(departed.columns, state.match(rows), _times(rows.t[: rows.departed]))

    def remaining(self, state: Beginnings) -> pa.RecordBatch:
        """The rows that never departed."""
        columns, ta = state.remaining(self.schema.held().types)
        return self._batch(columns, ta, pa.nulls(len(ta), TIMESTAMP))

    def _batch(self, columns: list[pa.Array], ta: Int64s, te: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*columns, _times(ta), te], schema=held_output("lifetimes", self.schema))


@dataclass(frozen=True)
class LatestEmit:
    schema: Schema

    def start(self) -> Tally:
        return Tally.of(self.schema.held().types)

    def next_timer(self, state: Tally) -> int:
        """The snapshot is emitted in every step."""
        return BEGINNING

    def write(self, state: Tally, rows: Delta | Changelog, step: Step) -> pa.RecordBatch:
        """The snapshot just before `frontier`; at the end of all input that at the instant of the last row."""
        changes = state.advance((rows,), step.frontier)
        counts = state.counts[0]
        if step.frontier == FOREVER and step.last_row > BEGINNING:
            counts = _as_of(counts, changes, step.last_row)
        alive = np.flatnonzero(counts)
        alive = alive[np.argsort(state.keys.ranks(alive))]
        arrays = state.values.gather(np.repeat(alive, counts[alive]), self.schema.held().types)
        state.forget_gone(changes)
        return pa.RecordBatch.from_arrays(arrays, schema=held_output("latest", self.schema))


def _as_of(counts: Int64s, changes: Steps, instant: int) -> Int64s:
    """The counts after the changes up to an instant, by those after all of them."""
    later = np.flatnonzero(changes.t > instant)[::-1]  # of a value the first one is to have the last word
    as_of = counts.copy()
    as_of[changes.key[later]] = changes.before[0, later]
    return as_of


Emit = StreamEmit | ChangesEmit | LifetimesEmit | NegativeLifetimesEmit | LatestEmit


def emit_of(name: str, schema: Schema, *, negative: bool = False) -> Emit:
    """The form of that name, over rows with lifetimes or over negative tuples."""
    makers: dict[str, type[Any]] = {
        "stream": StreamEmit,
        "changes": ChangesEmit,
        "lifetimes": NegativeLifetimesEmit if negative else LifetimesEmit,
        "latest": LatestEmit,
    }
    made: Emit = makers[name](schema)
    return made
