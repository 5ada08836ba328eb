"""One running query.

Rows are pushed in, time is advanced, output comes out; its whole memory can be saved and restored.

All inputs of a query advance together: progress is the least watermark of its streams and changing tables, and a step
takes every operator, children first, from the last frontier to the progress. So the frontier of an operator is never
behind that of its consumer, and an end is known to everybody in the step that passes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta, no_int64s
from transom.core.schema import is_held_otherwise
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.nested import held_rows
from transom.kernels.operator import Operator, scanned
from transom.kernels.slide_join.budget import RunBudget
from transom.pipeline import registry
from transom.pipeline.admission import InputGate, Ledger, RejectedRows, reject_lacking
from transom.pipeline.answer import output_key
from transom.pipeline.input_gates import InputGates, InputGatesState
from transom.pipeline.layout import Layout
from transom.pipeline.memory import PipelineState, StageMemory
from transom.pipeline.merge import in_order, merged
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Counters, Part
from transom.pipeline.partitions import Partitions
from transom.pipeline.spilling import store_of
from transom.pipeline.stage import Advanced, Stage
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.options import time_settings
from transom.planner.final import seen_at_the_end
from transom.planner.fingerprint import fingerprint, of_another_plan
from transom.planner.fragments import kept_together
from transom.state import codec
from transom.state.checks import alike, need
from transom.state.open_ids import OpenIdPool


@dataclass(frozen=True)
class StepOutput:
    """What a step brought: rows in the columns of `emit.py`, all of instants before `frontier`, in one batch or
    several."""

    batches: tuple[pa.RecordBatch, ...]
    frontier: int

    @property
    def rows(self) -> pa.RecordBatch:
        return self.batches[0] if len(self.batches) == 1 else pa.concat_batches(self.batches)


class _Brought(dict[str, StreamDelta]):
    """What the inputs bring in a step; those that bring nothing are asked only if somebody wants to know."""

    def __init__(self, bring: Callable[[str, int], StreamDelta], frontier: int) -> None:
        super().__init__()
        self._bring = bring
        self._frontier = frontier

    def __missing__(self, name: str) -> StreamDelta:
        self[name] = delta = self._bring(name, self._frontier)
        return delta


class Pipeline:
    """A query made of the operators of a physical plan, in so many partitions.

    In one partition all of the plan is one stage. In several there are stages for its fragments (`partitions.py`).
    `budget` is that of the run, for queries that keep to one together. `read_by_others`: not only the answer sees what
    the operators give.
    """

    def __init__(
        self,
        root: Operator,
        catalogue: Catalogue,
        emit: str = "changes",
        *,
        home: str | None = None,
        partitions: int = 1,
        budget: RunBudget | None = None,
        read_by_others: bool = False,
    ) -> None:
        budget = budget or RunBudget()
        self.root = root
        self.taker: Callable[[pa.RecordBatch], None] | None = None
        self.clock: Callable[[], int] | None = None
        self.tick, self.fixed_origin = time_settings(catalogue)
        output = OutputWriter.of(root, emit)
        self.emit_name = output.name
        self.emit = output.emit
        self.output_schema = output.schema
        self.output_key = output_key(root, emit)
        self.operators = list(root.walk())
        scans = [o for o in self.operators if isinstance(o.node, StreamScan | TableScan)]
        self._spread: Partitions | None = None
        if partitions > 1 and kept_together(root) is None:
            self._spread = Partitions(Layout(root, catalogue, emit, partitions), catalogue, budget)
            self._stages = [each.stage for each in self._spread.all]
        else:
            channels = {(id(o), 0): scanned(o) for o in scans}
            store, finals = store_of(catalogue, home), {} if read_by_others else seen_at_the_end(root, emit)
            pool = budget.pool(0, 1)
            whole = Part(
                self.operators, channels, catalogue, self.tick, whole=True, store=store, finals=finals, pool=pool
            )
            self.operators = whole.operators
            self._stages = [Stage(whole, output, root)]
        self._parts = [stage.part for stage in self._stages]
        self.statics: dict[str, TableDefinition] = {}
        inputs: dict[str, InputGate] = {}
        for name in map(scanned, scans):
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            if definition.time is not None:
                inputs[name] = InputGate(definition, self.tick, self.fixed_origin)
            else:
                assert isinstance(definition, TableDefinition)
                self.statics[name] = definition
        self.gates = InputGates(inputs, self.tick, self.fixed_origin)
        self.inputs = self.gates.inputs
        schemas = {name: gate.definition.columns for name, gate in inputs.items()}
        schemas |= {name: definition.columns for name, definition in self.statics.items()}
        self._held_otherwise = {name for name, of in schemas.items() if any(map(is_held_otherwise, of.arrow().types))}
        """Inputs whose rows come in as other types than the engine holds: to ask that of each batch takes its time."""
        self._changing = [name for name, each in inputs.items() if isinstance(each.definition, TableDefinition)]
        self._no_step = Step(0, 0, 0, OpenIdPool())
        self._state = self._start(self.gates.state)
        self._attach()

    def _attach(self) -> None:
        for part, memory in self._hosted:
            part.attach(memory.part)

    def _start(self, gates: InputGatesState) -> PipelineState:
        return PipelineState(
            [StageMemory(self.part.start(), self.emit.start())] if self._spread is None else self._spread.start(),
            gates,
            static={name: [] for name in self.statics},
            static_ledgers={name: Ledger() for name in self.statics},
        )

    @property
    def part(self) -> Part:
        """All operators, where there is one partition."""
        (part,) = self._parts
        return part

    @property
    def state(self) -> PipelineState:
        return self._state

    # --- input -------------------------------------------------------------------------------------------------------

    def push(
        self, name: str, batch: pa.RecordBatch, now: int | None = None, partition: str | None = None
    ) -> RejectedRows | None:
        """Take rows of an input in source order. Static tables are complete before the first `advance`.

        `now` is the wall clock, for streams whose time is that of arrival, and for rows that are too far ahead of it.
        The rows are of one `partition` where several are written side by side.
        """
        name = name.lower()
        if name in self._held_otherwise:
            batch = held_rows(batch)
        if name in self.statics:
            rows, rejected = reject_lacking(self.statics[name], batch)
            self.state.static[name].append(rows)
            ledger = self.state.static_ledgers[name]
            ledger.rows_in += len(batch)
            ledger.used += len(rows)
            ledger.rejected += len(batch) - len(rows)
            return rejected
        gate = self.inputs[name]
        if now is None and (self.gates.stamped(name) or gate.definition.ahead is not None):
            now = time.time_ns() // 1000
        if self.gates.stamped(name):
            assert now is not None
            first = self.gates.stamp(len(batch), now)
            t = np.arange(first, first + self.tick * len(batch), self.tick, dtype=np.int64)
            return gate.admit_stamped(self.state.gates.inputs[name], self.gates.with_times(name, batch, t), t)
        state = self.state.gates.inputs[name]
        classified = gate.classify(batch, state.mark(partition).greatest, now=now)
        return gate.admit(state, classified, partition)

    def reject(self, name: str, count: int) -> None:
        """Count rows that the source could not read."""
        name = name.lower()
        ledger = self.ledger(name)
        ledger.rows_in += count
        ledger.rejected += count

    def end(self, name: str) -> None:
        """An input has ended: it stands at forever."""
        if name.lower() in self.inputs:
            self.state.gates.inputs[name.lower()].ended = True

    # --- time --------------------------------------------------------------------------------------------------------

    def watermark(self, name: str) -> int:
        return self.gates.watermark(name.lower())

    @property
    def progress(self) -> int:
        """How far all inputs have come: the next step takes the answer up to here. Static tables hold nothing back."""
        return self.gates.progress

    @property
    def held_back_by(self) -> str | None:
        """The input whose watermark is the progress."""
        return self.gates.held_back_by

    @property
    def finished(self) -> bool:
        return self.state.gates.frontier == FOREVER

    @property
    def timer_passed(self) -> bool:
        """Whether progress has passed something, though nothing came: else a step would give nothing."""
        stages = zip(self._stages, self.state.stages, strict=True)
        return self.gates.next_timer(min(stage.next_timer(memory) for stage, memory in stages)) < self.progress

    def advance(self) -> tuple[StepOutput | None, dict[str, RejectedRows]]:
        """Go to the present progress. Gives what came out, and the changes that tables rejected."""
        next_step = self.gates.next_step()
        if next_step is None:
            return None, self.gates.reject_unbegun()
        before, frontier, origin = next_step
        if self._spread is None:
            rows, rejected_rows = self._step_whole(self._roomy_step(before, frontier, origin))
        else:
            rows, rejected_rows = self._step_partitions(
                Step(before, frontier, origin, self._no_step.open_ids, last_row=self.gates.last_row)
            )
        self.state.gates.frontier = frontier
        for part in self._parts:
            part.answered()
        return StepOutput(rows, frontier), rejected_rows

    @property
    def holds_rows(self) -> bool:
        """Whether rows of the answer wait for the end of the batch."""
        return any(stage.holds(memory) for stage, memory in zip(self._stages, self.state.stages, strict=True))

    def flush(self) -> pa.RecordBatch | None:
        """The batch is over: the rows of the answer that have waited for that, if there are any."""
        stages = zip(self._stages, self.state.stages, strict=True)
        rows_of_stages = [rows for stage, memory in stages if (rows := stage.flush(memory)) is not None]
        return merged(rows_of_stages, self.emit_name, self.output_schema) if rows_of_stages else None

    def _step_whole(self, step: Step) -> tuple[tuple[pa.RecordBatch, ...], dict[str, RejectedRows]]:
        given, rejected_rows = self.step_stage(self._stages[0], step)
        assert given.rows is not None
        return (given.rows,), rejected_rows

    def step_stage(self, stage: Stage, step: Step) -> tuple[Advanced, dict[str, RejectedRows]]:
        """What the operators of the plan give in a step, all in one place, and the changes that tables rejected."""
        state, frontier = self.state, step.frontier
        brought = _Brought(self._bring, frontier)
        awaited = [*self.gates.waited_for, *(name for name, rows in state.static.items() if rows)]
        brought.update({name: self._bring(name, frontier) for name in awaited})
        last_used = self.gates.last_used if frontier == FOREVER else BEGINNING  # nobody asks before the end
        given = stage.advance(state.stages[0], brought, step, last_used)
        unmatched = {name: given.unmatched.get(name, no_int64s()) for name in self._changing}
        return given, _rejected_rows(
            (name, self.gates.settle_changes(name, brought[name], unmatched[name])) for name in unmatched
        )

    def _step_partitions(self, step: Step) -> tuple[tuple[pa.RecordBatch, ...], dict[str, RejectedRows]]:
        assert self._spread is not None
        released = {name: self.gates.release_parts(name, step.frontier) for name in self.gates.waited_for}
        for name in [name for name, rows in self.state.static.items() if rows]:
            rows = self._static(name, step.frontier)
            released[name] = [replace(rows, t=np.zeros(rows.values.num_rows, dtype=np.int64))]
        stepped = self._spread.advance(self.state.stages, released, step, self.gates.last_used)
        for operator, came, went in stepped.passed:
            counters = self.state.outside.setdefault(str(self._numbers[id(operator)]), Counters())
            counters.rows_in += came
            counters.rows_out += went
        rejected_rows = _rejected_rows(
            (name, self.gates.settle_changes(name, changes, stepped.unmatched.get(name, no_int64s())))
            for name in self._changing
            for changes in released.get(name, ())
        )
        return tuple(in_order(stepped.answers, self.emit_name, self.output_schema)), rejected_rows

    def idle(self) -> StepOutput | None:
        """Go on with results that were put off, while nothing comes in; None if there are none."""
        gates = self.state.gates
        if gates.frontier is None or gates.origin is None or self.finished:
            return None
        if self._spread is not None:  # which puts nothing off
            return None
        step = self._roomy_step(gates.frontier, gates.frontier, gates.origin)
        given = self.part.slides.idle(self.state.part, step)
        if given is None:
            return None
        rows = self.emit.write(self.state.emit, given, step)  # type: ignore[arg-type]
        self.state.whole.rows_out += len(rows)
        return StepOutput((rows,), gates.frontier)

    def _roomy_step(self, before: int, frontier: int, origin: int) -> Step:
        """For the stage of a whole plan: with its open row ids, and with what those want that keep to a memory
        budget."""
        open_ids = self.state.stages[0].part.open_ids
        if self._parts[0].spilling is None:
            return Step(before, frontier, origin, open_ids, last_row=self.gates.last_row)
        emit_rows = None if self.taker is None else self._emit_rows
        stamped = any(self.gates.stamped(name) for name in self.inputs)
        clock = self.clock if stamped or self.part.slides.puts_off else None
        return Step(before, frontier, origin, open_ids, emit_rows=emit_rows, clock=clock, last_row=self.gates.last_row)

    def _emit_rows(self, rows: StreamDelta) -> None:
        """Rows of the answer that do not wait for the end of a step."""
        assert self.taker is not None
        self.part.slides.count_emitted(self.state.part, len(rows))
        self.state.whole.rows_out += len(rows)
        self.taker(self.emit.write(self.state.emit, rows, self._no_step))  # type: ignore[arg-type]

    # --- saving ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Wait for what a step has left to other threads; before that nobody may look at the state of an operator."""
        for part in self._parts:
            part.drain()

    def close(self) -> None:
        """No thread is left behind."""
        for part in self._parts:
            part.close()
        if self._spread is not None:
            self._spread.close()

    def snapshot(self) -> bytes:
        """The whole memory of the query between two steps."""
        self.drain()
        for part, memory in self._hosted:
            if part.spilling is not None:
                part.spilling.save(memory.part.operators)
        return codec.encode({"plan": self.fingerprint, "state": self.state})

    def saved(self) -> None:
        """What `snapshot` gave is in its place: what only the one before refers to is not needed any more."""
        for part in self._parts:
            if part.spilling is not None:
                part.spilling.store.release()

    def begin(self) -> None:
        """Files that nothing refers to are not needed: all of them where there was no checkpoint."""
        for part, memory in self._hosted:
            if part.spilling is not None:
                part.spilling.adopt(memory.part.operators)

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query."""
        saved = codec.decode(data, registry.STATE_CLASSES)
        if not isinstance(saved, dict) or saved.get("plan") != self.fingerprint:
            raise of_another_plan()
        self.close()
        with codec.restoring():
            self._check(saved["state"])
        self._state = saved["state"]
        self.gates.state = self._state.gates
        self._attach()
        self.begin()

    def _check(self, saved: PipelineState) -> None:
        """Raise Unsound where a state cannot be one of this query."""
        alike(self._start(self.gates.start()), saved)
        for part, memory in zip(self._parts, saved.stages, strict=True):
            part.check_kernels(memory.part, memory.feeds.values())
        need(all(isinstance(counters, Counters) for counters in saved.outside.values()))
        self.gates.check(saved.gates)
        self.check_tables(saved.static)

    def check_tables(self, saved: Mapping[str, Sequence[pa.RecordBatch]]) -> None:
        """Raise Unsound where rows of static tables cannot be those of this query."""
        need(saved.keys() == self.statics.keys())
        for name, batches in saved.items():
            need(all(batch.schema.equals(self.statics[name].columns.held()) for batch in batches))

    @cached_property
    def fingerprint(self) -> str:
        """Names the plan: operators, tactics and expressions; a checkpoint of another plan is rejected."""
        if self._spread is not None:
            return self._spread.layout.fingerprint
        return fingerprint(self.operators, self.emit_name, self.tick, self.fixed_origin)

    def ledger(self, name: str) -> Ledger:
        name = name.lower()
        return self.state.gates.inputs[name].ledger if name in self.inputs else self.state.static_ledgers[name]

    @property
    def names(self) -> Iterable[str]:
        return (*self.inputs, *self.statics)

    # --- what the operators did --------------------------------------------------------------------------------------

    def operator_states(self) -> Iterator[tuple[Operator, Counters, list[Any]]]:
        """The operators in the order of EXPLAIN, what each did and what its kernels remember, in all partitions."""
        for operator in self.root.walk():
            hosting = [(part, memory) for part, memory in self._hosted if id(operator) in part.number]
            states = [each for part, memory in hosting for each in part.states(memory.part, [operator])]
            outside = self.state.outside.get(str(self._numbers[id(operator)]))
            counted = [counters for _, counters, _ in states] + ([] if outside is None else [outside])
            yield operator, Counters.united(counted), [memory for *_, memories in states for memory in memories]

    @property
    def slides(self) -> dict[str, int]:
        """As `PartSlides.last_of_windows`, by the numbers of operators, where all of the plan is in one place."""
        return {
            str(self._numbers[key]): last for key, last in self.part.slides.last_of_windows(self.state.part).items()
        }

    @property
    def _hosted(self) -> Iterable[tuple[Part, StageMemory]]:
        return zip(self._parts, self.state.stages, strict=True)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(operator): i for i, operator in enumerate(self.root.walk())}

    # --- inside ------------------------------------------------------------------------------------------------------

    def _bring(self, name: str, frontier: int) -> StreamDelta:
        return self._static(name, frontier) if name in self.statics else self.gates.release(name, frontier)

    def _static(self, name: str, frontier: int) -> StreamDelta:
        parts, self.state.static[name] = self.state.static[name], []
        rows = pa.concat_batches(parts) if parts else empty_batch(self.statics[name].columns.held())
        return StreamDelta(rows, no_int64s(), frontier)


def _rejected_rows(rejected_by_input: Iterable[tuple[str, RejectedRows | None]]) -> dict[str, RejectedRows]:
    return {name: some for name, some in rejected_by_input if some is not None}
