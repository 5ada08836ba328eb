"""One running query.

Rows are pushed in, time is advanced, output comes out; its whole memory can be saved and restored.

All inputs of a query advance together: progress is the least watermark of its streams and changing tables, and a step
takes every operator, children first, from the last progress to the new one. So an operator's `upto` is never behind
that of its consumer, and an end is known to everybody in the step that passes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError
from transom.core.schema import TIMESTAMP
from transom.core.time import BEGINNING, FOREVER, floor_to_tick
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Kernel, Step
from transom.kernels.table import ChangesTable
from transom.kernels.to_stream import ToStreamKernel
from transom.pipeline import registry
from transom.pipeline.admission import NO_SUCH_ROW, REASONS, Input, InputState, Ledger, Refused
from transom.pipeline.build import operator_kernel, slide_windows_below, table_kernel
from transom.pipeline.emit import LifetimesEmit, emit_of, output_schema
from transom.pipeline.memory import Counters, PipelineState
from transom.plan.algebra import Stream, StreamScan, TableScan
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.options import OPTIONS
from transom.planner.operator import Operator
from transom.state import codec


@dataclass(frozen=True)
class Output:
    """What a step brought: rows in the columns of `emit.py`, all of instants before `upto`."""

    rows: pa.RecordBatch
    upto: int


class Pipeline:
    """A query made of the operators of a physical plan."""

    def __init__(self, root: Operator, catalogue: Catalogue, emit: str = "changes") -> None:
        self.root = root
        self.tick: int = catalogue.options.get("tick", OPTIONS["tick"].default)
        origin: int | None = catalogue.options.get("origin")
        self.fixed_origin = None if origin is None else floor_to_tick(origin, self.tick)
        # Scans first: what a table refuses is known before anything above asks for the last admitted row.
        self.operators = sorted(root.walk(), key=lambda operator: bool(operator.inputs))
        self.number = {id(operator): i for i, operator in enumerate(self.operators)}
        self.emit_name = "stream" if isinstance(root.node, Stream) else emit
        self.emit = emit_of(self.emit_name, root.schema)
        self.output_schema = output_schema(self.emit_name, root.schema)
        self.kernels: list[tuple[Kernel, ...]] = []
        self.tables: dict[int, Any] = {}
        self.inputs: dict[str, Input] = {}
        self.statics: dict[str, TableDefinition] = {}
        for i, operator in enumerate(self.operators):
            self.kernels.append(self._kernels(i, operator, catalogue))
        self.state = PipelineState(
            operators=[[kernel.start() for kernel in kernels] for kernels in self.kernels],
            emit=self.emit.start(),
            inputs={name: InputState() for name in self.inputs},
            counters=[Counters() for _ in self.operators],
            static={name: [] for name in self.statics},
            static_ledgers={name: Ledger() for name in self.statics},
            origin=self.fixed_origin,
            upto=self.fixed_origin,
        )

    # --- input -------------------------------------------------------------------------------------------------------

    def push(self, name: str, batch: pa.RecordBatch, now: int | None = None) -> Refused | None:
        """Take rows of an input in source order. Static tables are complete before the first `advance`.

        `now` is the wall clock, for streams whose time is that of arrival.
        """
        name = name.lower()
        if name in self.statics:
            self.state.static[name].append(batch)
            ledger = self.state.static_ledgers[name]
            ledger.rows_in += len(batch)
            ledger.used += len(batch)
            return None
        definition = self.inputs[name].definition
        if isinstance(definition, StreamDefinition) and definition.arrival_time:
            batch = self._stamp(definition, batch, now if now is not None else time.time_ns() // 1000)
        return self.inputs[name].admit(self.state.inputs[name], batch)

    def reject(self, name: str, count: int) -> None:
        """Count rows that the source could not read."""
        name = name.lower()
        ledger = self.ledger(name)
        ledger.rows_in += count
        ledger.rejected += count

    def end(self, name: str) -> None:
        """An input has ended: it stands at forever."""
        if name.lower() in self.inputs:
            self.state.inputs[name.lower()].ended = True

    def fall_idle(self, name: str) -> bool:
        """A silent stream stops holding the others back: it is raised to the progress that they have reached."""
        others = [self.watermark(other) for other in self.inputs if other != name.lower()]
        state = self.state.inputs[name.lower()]
        reached = min(others, default=BEGINNING)
        if FOREVER > reached > self.watermark(name):
            state.raised = reached
            return True
        return False

    # --- time --------------------------------------------------------------------------------------------------------

    def watermark(self, name: str) -> int:
        state, entry = self.state.inputs[name.lower()], self.inputs[name.lower()]
        if not state.ended and isinstance(entry.definition, StreamDefinition) and entry.definition.arrival_time:
            return self.state.clock + self.tick if self.state.clock > BEGINNING else BEGINNING
        return entry.watermark(state)

    @property
    def progress(self) -> int:
        """Instants below it are final. A query over static tables alone has nothing to wait for."""
        return min((self.watermark(name) for name in self.inputs), default=FOREVER)

    @property
    def held_back_by(self) -> str | None:
        """The input whose watermark is the progress."""
        return min(self.inputs, key=self.watermark, default=None)

    @property
    def finished(self) -> bool:
        return self.state.upto == FOREVER

    def advance(self) -> tuple[Output | None, dict[str, Refused]]:
        """Go to the present progress. Gives what came out, and the changes that tables refused."""
        state = self.state
        upto = self.progress
        if state.origin is None:
            state.origin = self._find_origin(upto)
        if state.origin is None or upto <= (state.origin if state.upto is None else state.upto):
            return None, {}
        before = state.origin if state.upto is None else state.upto
        step = Step(before, upto, state.origin, state.holders)
        deltas: list[Delta | StreamDelta] = []
        refused: dict[str, Refused] = {}
        released = {name: self._release(name, upto) for name in self.inputs}
        for i, operator in enumerate(self.operators):
            started = time.perf_counter()
            inputs = tuple(deltas[self.number[id(child)]] for child in operator.inputs)
            delta = self._run(i, operator, inputs, step, released, refused)
            deltas.append(delta)
            counters = state.counters[i]
            counters.seconds += time.perf_counter() - started
            counters.rows_in += sum(len(part) for part in inputs)
            counters.rows_out += len(delta)
            if isinstance(delta, Delta):
                counters.ends_out += sum(len(chunk[0]) for chunk in delta.ends.chunks)
        rows = self.emit.write(state.emit, deltas[-1], step)  # type: ignore[arg-type]
        state.holders.finish_step()
        state.upto = upto
        if upto == FOREVER and isinstance(self.emit, LifetimesEmit):
            rows = pa.concat_batches([rows, self.emit.remaining(state.emit)])
        state.rows_out += len(rows)
        return Output(rows, upto), refused

    # --- saving ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The whole memory of the query between two steps."""
        return codec.encode({"plan": self.fingerprint, "state": self.state})

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query."""
        saved = codec.decode(data, registry.STATE_CLASSES)
        if not isinstance(saved, dict) or saved.get("plan") != self.fingerprint:
            raise CheckpointError(
                "the checkpoint was written by another query",
                remedy="run the query that wrote it, or start with an empty checkpoint folder",
            )
        self.state = saved["state"]

    @property
    def fingerprint(self) -> str:
        """Names the plan: operators, tactics and expressions; a checkpoint of another plan is refused."""
        return registry.fingerprint(self.operators, self.emit_name, self.tick, self.fixed_origin)

    def ledger(self, name: str) -> Ledger:
        name = name.lower()
        return self.state.inputs[name].ledger if name in self.inputs else self.state.static_ledgers[name]

    @property
    def names(self) -> Iterable[str]:
        return (*self.inputs, *self.statics)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _kernels(self, i: int, operator: Operator, catalogue: Catalogue) -> tuple[Kernel, ...]:
        node = operator.node
        if not isinstance(node, StreamScan | TableScan):
            return operator_kernel(operator, self.tick)
        definition = catalogue.relations[node.name.lower()]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        if definition.time is None:
            assert isinstance(definition, TableDefinition)
            self.statics[node.name.lower()] = definition
        else:
            self.inputs[node.name.lower()] = Input(definition, self.tick, self.fixed_origin)
        if isinstance(definition, StreamDefinition):
            return ()
        self.tables[i] = table_kernel(definition)
        return (self.tables[i],)

    def _run(
        self,
        i: int,
        operator: Operator,
        inputs: tuple[Delta | StreamDelta, ...],
        step: Step,
        released: dict[str, StreamDelta],
        refused: dict[str, Refused],
    ) -> Delta | StreamDelta:
        node = operator.node
        if isinstance(node, StreamScan):
            return released[node.name.lower()]
        if isinstance(node, TableScan):
            return self._run_table(i, node.name.lower(), step, released, refused)
        windows = slide_windows_below(operator) if isinstance(self.kernels[i][-1], ToStreamKernel) else ()
        if windows:
            last = [self.state.operators[self.number[id(window)]][0].last for window in windows]
            last += [state.last_used for state in self.state.inputs.values()]
            step = replace(step, horizon=max(last))
        delta: Any = None
        for kernel, state in zip(self.kernels[i], self.state.operators[i], strict=True):
            delta = kernel.step(state, inputs, step)
            inputs = (delta,)
        result: Delta | StreamDelta = delta
        return result

    def _run_table(
        self, i: int, name: str, step: Step, released: dict[str, StreamDelta], refused: dict[str, Refused]
    ) -> Delta:
        table = self.tables[i]
        memory = self.state.operators[i][0]
        if name in self.statics:
            parts = self.state.static[name]
            self.state.static[name] = []
            rows = pa.concat_batches(parts) if parts else empty_batch(self.statics[name].columns.arrow())
            given: Delta = table.step(memory, (StreamDelta(rows, no_int64s(), step.upto),), step)
            return given
        assert isinstance(table, ChangesTable)
        changes = released[name]
        definition = self.inputs[name].definition
        assert isinstance(definition, TableDefinition)
        names = [column.name for column in definition.columns]
        order = [names.index(column.name) for column in definition.relation_columns]
        if definition.change_column is not None:
            order.append(names.index(definition.change_column))
        arranged = replace(changes, values=changes.values.select(order))
        delta, unmatched = table.apply(memory, arranged, step)
        self._note_used(name, np.delete(changes.t, unmatched))
        if len(unmatched):
            ledger = self.state.inputs[name].ledger
            ledger.used -= len(unmatched)
            ledger.rejected += len(unmatched)
            rows = changes.values.take(pa.array(unmatched))
            refused[name] = Refused(rows, [REASONS[NO_SUCH_ROW]] * len(unmatched))
        return delta

    def _release(self, name: str, upto: int) -> StreamDelta:
        entry = self.inputs[name]
        values, t = entry.release(self.state.inputs[name], upto)
        if isinstance(entry.definition, StreamDefinition):
            self._note_used(name, t)
        if values is None:
            values = empty_batch(entry.definition.columns.arrow())
        return StreamDelta(values, t, upto)

    def _note_used(self, name: str, t: Int64s) -> None:
        if len(t):
            self.state.inputs[name].last_used = int(t[-1])

    def _find_origin(self, upto: int) -> int | None:
        """The first admitted instant, once progress is past it."""
        if not self.inputs:
            return 0
        firsts = [self.inputs[name].first_waiting(state) for name, state in self.state.inputs.items()]
        first = min((t for t in firsts if t is not None), default=None)
        return first if first is not None and first < upto else None

    def _stamp(self, definition: StreamDefinition, batch: pa.RecordBatch, now: int) -> pa.RecordBatch:
        """Rows with the time of their arrival, from the one strictly increasing clock of the query."""
        first = max(self.state.clock + self.tick, now // self.tick * self.tick)
        t = first + self.tick * np.arange(len(batch), dtype=np.int64)
        if len(t):
            self.state.clock = int(t[-1])
        names = [column.name.lower() for column in definition.columns]
        at = names.index(definition.time.column.lower())
        stamped = pa.array(t, pa.int64()).cast(TIMESTAMP)
        return batch.set_column(at, definition.columns[at].name, stamped)
