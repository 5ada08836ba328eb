"""One running query.

Rows are pushed in, time is advanced, output comes out; its whole memory can be saved and restored.

All inputs of a query advance together: progress is the least watermark of its streams and changing tables, and a step
takes every operator, children first, from the last progress to the new one. So an operator's `upto` is never behind
that of its consumer, and an end is known to everybody in the step that passes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta, no_int64s
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.pipeline import registry
from transom.pipeline.admission import Input, Ledger, Refused
from transom.pipeline.doors import Doors, DoorsState
from transom.pipeline.memory import PipelineState
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Counters, Part
from transom.pipeline.spilling import store_of
from transom.pipeline.stage import Stage
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.options import time_settings
from transom.planner.fingerprint import fingerprint, of_another_plan
from transom.planner.operator import Operator, scanned
from transom.state import codec
from transom.state.checks import alike, need
from transom.state.holders import HolderPool


@dataclass(frozen=True)
class Output:
    """What a step brought: rows in the columns of `emit.py`, all of instants before `upto`."""

    rows: pa.RecordBatch
    upto: int


class _Brought(dict[str, StreamDelta]):
    """What the inputs bring in a step; those that bring nothing are asked only if somebody wants to know."""

    def __init__(self, bring: Callable[[str, int], StreamDelta], upto: int) -> None:
        super().__init__()
        self._bring = bring
        self._upto = upto

    def __missing__(self, name: str) -> StreamDelta:
        self[name] = found = self._bring(name, self._upto)
        return found


class Pipeline:
    """A query made of the operators of a physical plan."""

    def __init__(self, root: Operator, catalogue: Catalogue, emit: str = "changes", *, home: str | None = None) -> None:
        self.root = root
        self.taker: Callable[[pa.RecordBatch], None] | None = None
        self.clock: Callable[[], int] | None = None
        self.tick, self.fixed_origin = time_settings(catalogue)
        output = OutputWriter.of(root, emit)
        self.emit_name = output.name
        self.emit = output.emit
        self.output_schema = output.schema
        scans = [o for o in root.walk() if isinstance(o.node, StreamScan | TableScan)]
        ports = {(id(o), 0): scanned(o) for o in scans}
        self.part = Part(list(root.walk()), ports, catalogue, self.tick, whole=True, store=store_of(catalogue, home))
        self.operators = self.part.operators
        self._stage = Stage(self.part, output, root)
        self.statics: dict[str, TableDefinition] = {}
        inputs: dict[str, Input] = {}
        for name in map(scanned, scans):
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            if definition.time is not None:
                inputs[name] = Input(definition, self.tick, self.fixed_origin)
            else:
                assert isinstance(definition, TableDefinition)
                self.statics[name] = definition
        self.doors = Doors(inputs, self.tick, self.fixed_origin)
        self.inputs = self.doors.inputs
        self._changing = [name for name, each in inputs.items() if isinstance(each.definition, TableDefinition)]
        self._no_step = Step(0, 0, 0, HolderPool())
        self._state = self._start(self.doors.state)

    def _start(self, doors: DoorsState) -> PipelineState:
        return PipelineState(
            self.part.start(),
            doors,
            self.emit.start(),
            static={name: [] for name in self.statics},
            static_ledgers={name: Ledger() for name in self.statics},
        )

    @property
    def state(self) -> PipelineState:
        return self._state

    # --- input -------------------------------------------------------------------------------------------------------

    def push(self, name: str, batch: pa.RecordBatch, now: int | None = None) -> Refused | None:
        """Take rows of an input in source order. Static tables are complete before the first `advance`.

        `now` is the wall clock, for streams whose time is that of arrival, and for rows that are too far ahead of it.
        """
        name = name.lower()
        if name in self.statics:
            self.state.static[name].append(batch)
            ledger = self.state.static_ledgers[name]
            ledger.rows_in += len(batch)
            ledger.used += len(batch)
            return None
        door = self.inputs[name]
        if now is None and (self.doors.stamped(name) or door.definition.ahead is not None):
            now = time.time_ns() // 1000
        if self.doors.stamped(name):
            assert now is not None
            first = self.doors.stamp(len(batch), now)
            t = np.arange(first, first + self.tick * len(batch), self.tick, dtype=np.int64)
            return door.admit_stamped(self.state.doors.inputs[name], self.doors.with_times(name, batch, t), t)
        state = self.state.doors.inputs[name]
        return door.admit(state, door.look(batch, state.greatest, now=now))

    def reject(self, name: str, count: int) -> None:
        """Count rows that the source could not read."""
        name = name.lower()
        ledger = self.ledger(name)
        ledger.rows_in += count
        ledger.rejected += count

    def end(self, name: str) -> None:
        """An input has ended: it stands at forever."""
        if name.lower() in self.inputs:
            self.state.doors.inputs[name.lower()].ended = True

    # --- time --------------------------------------------------------------------------------------------------------

    def watermark(self, name: str) -> int:
        return self.doors.watermark(name.lower())

    @property
    def progress(self) -> int:
        """Instants below it are final. A query over static tables alone has nothing to wait for."""
        return self.doors.progress

    @property
    def held_back_by(self) -> str | None:
        """The input whose watermark is the progress."""
        return self.doors.held_back_by

    @property
    def finished(self) -> bool:
        return self.state.doors.upto == FOREVER

    @property
    def is_due(self) -> bool:
        """Whether progress has passed something, though nothing came: else a step would give nothing."""
        return self.doors.due(self._stage.due(self.state)) < self.progress

    def advance(self) -> tuple[Output | None, dict[str, Refused]]:
        """Go to the present progress. Gives what came out, and the changes that tables refused."""
        found = self.doors.next_step()
        if found is None:
            return None, self.doors.refuse_unbegun()
        before, upto, origin = found
        state = self.state
        step = self._step(before, upto, origin)
        brought = _Brought(self._bring, upto)
        awaited = [*self.doors.waited_for, *(name for name, rows in state.static.items() if rows)]
        brought.update({name: self._bring(name, upto) for name in awaited})
        last_used = self.doors.last_used if upto == FOREVER else BEGINNING  # nobody asks before the end
        given = self._stage.advance(state, brought, step, last_used)
        settled = {
            name: self.doors.settle_changes(name, brought[name], given.unmatched.get(name, no_int64s()))
            for name in self._changing
        }
        state.doors.upto = upto
        self.part.answered()
        assert given.rows is not None
        return Output(given.rows, upto), {name: refused for name, refused in settled.items() if refused is not None}

    def idle(self) -> Output | None:
        """Go on with results that were put off, while nothing comes in; None if there are none."""
        doors = self.state.doors
        if doors.upto is None or doors.origin is None or self.finished:
            return None
        step = self._step(doors.upto, doors.upto, doors.origin)
        given = self.part.idle(self.state.part, step)
        if given is None:
            return None
        rows = self.emit.write(self.state.emit, given, step)  # type: ignore[arg-type]
        self.state.rows_out += len(rows)
        return Output(rows, doors.upto)

    def _step(self, before: int, upto: int, origin: int) -> Step:
        if self.part.spilling is None:
            return Step(before, upto, origin, self.state.part.holders)
        tell = None if self.taker is None else self._tell
        stamped = any(self.doors.stamped(name) for name in self.inputs)
        return Step(before, upto, origin, self.state.part.holders, tell=tell, clock=self.clock if stamped else None)

    def _tell(self, rows: StreamDelta) -> None:
        """Rows of the answer that do not wait for the end of a step."""
        assert self.taker is not None
        self.part.count_told(self.state.part, len(rows))
        self.state.rows_out += len(rows)
        self.taker(self.emit.write(self.state.emit, rows, self._no_step))  # type: ignore[arg-type]

    # --- saving ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for what a step has left to other threads; before that nobody may look at the state of an operator."""
        self.part.settle()

    def close(self) -> None:
        """No thread is left behind."""
        self.part.close()

    def snapshot(self) -> bytes:
        """The whole memory of the query between two steps."""
        self.settle()
        if self.part.spilling is not None:
            self.part.spilling.save(self.state.part.operators)
        return codec.encode({"plan": self.fingerprint, "state": self.state})

    def saved(self) -> None:
        """What `snapshot` gave is in its place: what only the one before refers to is not needed any more."""
        if self.part.spilling is not None:
            self.part.spilling.store.release()

    def begin(self) -> None:
        """There is no checkpoint: no file that one would refer to is needed."""
        if self.part.spilling is not None:
            self.part.spilling.adopt(self.state.part.operators)

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query."""
        saved = codec.decode(data, registry.STATE_CLASSES)
        if not isinstance(saved, dict) or saved.get("plan") != self.fingerprint:
            raise of_another_plan()
        self.close()
        with codec.restoring():
            self._check(saved["state"])
        self._state = saved["state"]
        self.doors.state = self._state.doors
        self.part.attach(self._state.part)
        if self.part.spilling is not None:
            self.part.spilling.adopt(self._state.part.operators)

    def _check(self, saved: PipelineState) -> None:
        """Raise Unsound where a state cannot be one of this query."""
        alike(self._start(self.doors.start()), saved)
        self.part.check(saved.part)
        self.doors.check(saved.doors)
        for name, batches in saved.static.items():
            need(all(batch.schema.equals(self.statics[name].columns.arrow()) for batch in batches))

    @property
    def fingerprint(self) -> str:
        """Names the plan: operators, tactics and expressions; a checkpoint of another plan is refused."""
        return fingerprint(self.operators, self.emit_name, self.tick, self.fixed_origin)

    def ledger(self, name: str) -> Ledger:
        name = name.lower()
        return self.state.doors.inputs[name].ledger if name in self.inputs else self.state.static_ledgers[name]

    @property
    def names(self) -> Iterable[str]:
        return (*self.inputs, *self.statics)

    def operator_states(self) -> Iterator[tuple[Operator, Counters, list[Any]]]:
        """The operators in the order of EXPLAIN, what each has done, and what its kernels remember."""
        return self.part.states(self.state.part, self.root.walk())

    # --- inside ------------------------------------------------------------------------------------------------------

    def _bring(self, name: str, upto: int) -> StreamDelta:
        return self._static(name, upto) if name in self.statics else self.doors.release(name, upto)

    def _static(self, name: str, upto: int) -> StreamDelta:
        parts, self.state.static[name] = self.state.static[name], []
        rows = pa.concat_batches(parts) if parts else empty_batch(self.statics[name].columns.arrow())
        return StreamDelta(rows, no_int64s(), upto)
