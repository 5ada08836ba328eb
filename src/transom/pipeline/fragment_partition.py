"""One partition of one fragment: the same operators behind the same input gates as in a pipeline, fed with frames.

Every partition hears what all tasks saw of all inputs, so every partition knows by itself how far time has come, and
comes to the same result; a step takes all partitions of all fragments from the last progress to the new one. What it
gives goes to the partitions of the next fragments, and from the last fragment to the sink.

Where the pairs of a shared join are made, the queries that share it run beside it, each as far as it can without rows
of other partitions, and with a memory of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.decisions import Decisions
from transom.kernels.kernel import Step
from transom.pipeline.consumer import PAIRS, outputs_of
from transom.pipeline.consumer_runner import ConsumerRunner, picked
from transom.pipeline.frames import Frame, Message
from transom.pipeline.layout import SHARED, Layout
from transom.pipeline.memory import StageMemory
from transom.pipeline.merge import in_order, merged
from transom.pipeline.outgoing import Outgoing, status_message
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.partition_inputs import PartitionInputs
from transom.pipeline.partition_state import PartitionState
from transom.pipeline.partition_status import partition_status
from transom.pipeline.partitions import Partition, Partitions
from transom.pipeline.routes import Routes
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.pipeline.scheduled_join import sides_of
from transom.pipeline.scheduled_partition import ScheduledPartition
from transom.pipeline.seen import heard
from transom.pipeline.spilling import store_of
from transom.pipeline.stage import Advanced, Stage
from transom.planner.fragments import ANSWER
from transom.state import codec
from transom.state.checks import alike, need

_BELOW: Final = "shared "
"""Before the number of an operator that is not one of the query's own but of the sub-plan that it shares."""

SLICE_ROWS: Final = 1 << 15
"""So many rows of an input are taken in one step, if there is no reason to take more."""


class FragmentPartition:
    """Logic of a partition; `state` is replaced as a whole by whoever keeps it. `home` is its room on disk."""

    def __init__(self, layout: Layout, fragment: int, partition: int, home: str | None = None) -> None:
        self.layout = layout
        self.fragment = layout.fragments[fragment - 1]
        self.partition = partition
        self.stage_number = layout.stage_number[fragment]
        into = layout.channels_into(fragment)
        channels = {(id(channel.exchange.into), channel.exchange.index): channel.name for channel in into}
        store, partitions = store_of(layout.catalogue, home, referred=False), layout.partitions_of(fragment)
        self.spread = None if layout.spread is None else Partitions(layout.spread, layout.catalogue)
        operators = self.fragment.operators if self.spread is None else ()
        if layout.schedule is not None:  # the join is made apart
            operators = tuple(operator for operator in operators if operator is not layout.root)
        finals = layout.finals
        self.part = Part(
            operators, channels, layout.catalogue, layout.tick, store=store, partitions=partitions, finals=finals
        )
        self.consumer = consumer = layout.consumer_of(fragment)
        self.query = SHARED if consumer is None else consumer.spec.name
        """Whose it is."""
        operators_of_query = layout.operators if consumer is None else consumer.operators
        self.numbers = {id(operator): i for i, operator in enumerate(operators_of_query)}
        self._sends = layout.channels_from(fragment)
        root, emit = (layout.root, layout.emit) if consumer is None else (consumer.root, consumer.spec.emit)
        answers = any(o is root for o in operators) and not self._sends  # partitions write their own
        answers = answers or any(channel.exchange.index == ANSWER for channel in into)
        answers = answers and (consumer is not None or not layout.consumers)
        output = OutputWriter.of(root, emit) if answers else None
        self._stage = Stage(self.part, output, root if answers and operators else None)
        joins = bool(layout.consumers) and any(o is layout.root for o in self.fragment.operators)
        self.beside = {
            each.spec.name: ConsumerRunner(each, layout.partitions)
            for each in layout.consumers
            if joins and each.beside(layout.partitions)
        }
        self._consumers = {each.spec.name: each for each in layout.consumers}
        self._columns = {each.spec.name: each.columns_in(layout.root) for each in layout.consumers}
        self.inputs = PartitionInputs(layout, fragment, partition, self.numbers)
        self.scheduled = None
        if layout.schedule is not None:
            self.scheduled = ScheduledPartition(
                layout.root, list(self.beside.values()), layout.catalogue, layout.tick, layout.schedule
            )
        self.state = self.start()
        self.decisions = Decisions()
        self.clock: Callable[[], int] = lambda: time.time_ns() // 1_000

    def start(self) -> PartitionState:
        """The memory of a partition before its first step."""
        gates, feeds, static = self.inputs.gates.start(), self.inputs.feeds(), self.inputs.static()
        output = self._stage.output
        emit = None if output is None else output.start()
        consumers = {key: runner.start() for key, runner in self.beside.items()}
        routes = {channel.called: Routes() for channel in self._sends}
        stages = [] if self.spread is None else self.spread.start()
        scheduled = [] if self.scheduled is None else [self.scheduled.start()]
        return PartitionState(
            self.part.start(), gates, emit, feeds, static, consumers, routes, stages=stages, scheduled=scheduled
        )

    def restored(self, data: bytes, classes: Iterable[type]) -> PartitionState:
        """A memory that was saved; CheckpointError where it cannot be one of this partition."""
        with codec.restoring():
            state: PartitionState = codec.decode(data, classes)
            if self.scheduled is not None:
                self.scheduled.mend(state.scheduled)
            alike(self.start(), state)
            self.part.check_kernels(state.part, state.feeds.values())
            self.inputs.gates.check(state.gates)
            for channel in self._sends:
                state.routes[channel.called].check_partitions(self.layout.partitions_of(channel.fragment))
            need(state.consumers.keys() == self.beside.keys())
            for key, runner in self.beside.items():
                runner.check(state.consumers[key])
            for partition, memory in self._partitions(state):
                partition.stage.part.check_kernels(memory.part, memory.feeds.values())
            if self.part.spilling is not None:
                self.part.spilling.adopt(state.part.operators)
            return state

    def step(self, messages: Iterable[Message], decided: Sequence[Any] = ()) -> list[Message]:
        """Everything that came for this partition in a batch; what goes on from here.

        `decided` is what was decided in the step if it is taken again; after it, `decisions` are those of the step.
        """
        self.decisions = Decisions(decided)
        parts = sorted((heard(part) for message in messages for part in message.opened()), key=_index)
        self.inputs.attach(self.state)
        self.part.attach(self.state.part)
        for partition, memory in self._partitions(self.state):
            partition.stage.part.attach(memory.part)
        self.state.steps += 1
        out = Outgoing(self.layout, self.partition, self.stage_number, self.state.routes)
        self.inputs.admit(parts, out)
        self._pass_on(parts, out)
        self._begin_scheduled(parts)
        next_step = self.inputs.gates.next_step()
        if self.scheduled is not None:
            self._advance_scheduled(self.scheduled, next_step, parts, out)
        elif next_step is None:
            for name, rejected_rows in self.inputs.gates.reject_unbegun().items():
                self.inputs.reject(name, rejected_rows, out)
            self._catch_up(out)
        else:
            self._advance(*next_step, parts, out)
            self._flush(out)
        for part in self._parts:
            part.drain()  # the state is written next
        if self.scheduled is not None:
            self.scheduled.join.work.drain()
        return out.messages()

    def status(self) -> Message:
        """How the partition is doing, for the driver; to say so takes a walk through all that is kept."""
        return status_message(self.partition, partition_status(self))

    def give_back(self) -> None:
        """What it took to keep and send what a step gave is the system's again."""
        if self.part.spilling is not None:
            self.part.spilling.end_step()

    def close(self) -> None:
        """No thread is left behind."""
        for part in self._parts:
            part.close()
        if self.spread is not None:
            self.spread.close()

    @property
    def _parts(self) -> list[Part]:
        within = [] if self.spread is None else [partition.stage.part for partition in self.spread.all]
        return [self.part, *within, *(runner.part for runner in self.beside.values())]

    def _partitions(self, state: PartitionState) -> Iterable[tuple[Partition, StageMemory]]:
        """The partitions of the plan within this one, with what they remember."""
        return () if self.spread is None else zip(self.spread.all, state.stages, strict=True)

    def hosted(self, state: PartitionState) -> Iterator[tuple[Part, PartState]]:
        """The operators of the plan that are here, as often as there are partitions, and what they remember."""
        yield self.part, state.part
        for partition, memory in self._partitions(state):
            yield partition.stage.part, memory.part

    @property
    def wake(self) -> int | None:
        """When, by the clock, something comes of silence here, if the run follows its inputs (see
        `InputGates.wake`)."""
        self.inputs.attach(self.state)
        if (
            self.part.slides.puts_off
            and self.inputs.heard_at is not None
            and self.part.slides.unfinished(self.state.part)
        ):
            return self.inputs.heard_at + 1  # at once
        next_timer = self._stage.next_timer(self.state)
        for partition, memory in self._partitions(self.state):
            next_timer = min(next_timer, partition.stage.next_timer(memory))
        for key, runner in self.beside.items():
            runner.state = self.state.consumers[key]
            if self.scheduled is None:  # else it is not there yet
                next_timer = min(next_timer, runner.next_timer)
        return self.inputs.gates.wake(self.inputs.gates.next_timer(next_timer))

    @property
    def ended(self) -> bool:
        """Whether nothing more can come of any input that has an end."""
        return all(input_state.ended for input_state in self.state.gates.inputs.values())

    @property
    def reached_times(self) -> dict[str, int | None]:
        """How far time has come, of the answer and of every input."""
        self.inputs.attach(self.state)
        return {"the answer": self.state.gates.frontier, **self.inputs.reached_times}

    # --- a step ------------------------------------------------------------------------------------------------------

    def _advance(self, before: int, frontier: int, origin: int, parts: Sequence[Frame], out: Outgoing) -> None:
        """Advance in several steps where a batch is large: so what is alive at a time stays small, and in the cache."""
        if self.consumer is not None and self.consumer.begin is not None:
            origin = self.consumer.begin
        for at in self._stops(before, frontier):
            open_ids, last_row = self.state.part.open_ids, self.inputs.gates.last_row
            step = Step(
                before,
                at,
                origin,
                open_ids,
                sharing=self.inputs.sharing,
                clock=self._working_clock,
                decisions=self.decisions,
                last_row=last_row,
            )
            self._step(step, parts, out)
            before = at

    # --- work that is put in order -----------------------------------------------------------------------------------

    def _begin_scheduled(self, parts: Sequence[Frame]) -> None:
        if self.scheduled is None:
            return
        for key, runner in self.beside.items():
            runner.state = self.state.consumers[key]
        (memory,) = self.state.scheduled
        self.scheduled.begin(memory, ScheduledBatch.of(parts))

    def _advance_scheduled(
        self,
        scheduled: ScheduledPartition,
        next_step: tuple[int, int, int] | None,
        parts: Sequence[Frame],
        out: Outgoing,
    ) -> None:
        """Take in what time has passed, no more of it at once than may wait, and give each such part its turn."""
        last_used = self.inputs.last_used()
        keys = list(self.beside)

        def turn(last: bool) -> None:
            scheduled.turn(self.inputs.gates, last_used, lambda index, rows: out.answer(keys[index], rows), last)

        if next_step is not None:
            before, frontier, origin = next_step
            stops = self._stops_for(scheduled.join.schedule.buffer, before, frontier)
            for at in stops:
                step = Step(before, at, origin, self.state.part.open_ids, last_row=self.inputs.gates.last_row)
                brought = self.inputs.come_in(self.inputs.released(at))
                given = self._stage.advance(self.state, brought, step, last_used)
                self.state.gates.frontier = before = at
                scheduled.join.arrive(sides_of(self.layout.root, self.part, given.deltas))
                turn(last=at == frontier)
        elif self.inputs.gates.state.frontier is not None:
            turn(last=True)
        else:
            return
        self._flush(out)

    def _stops_for(self, rows: int, before: int, frontier: int) -> list[int]:
        """Where to step to, so that no more than so many rows of an input are taken in by a step."""
        stops: set[int] = set()
        for state in self.state.gates.inputs.values():
            if state.waiting:
                times = np.sort(np.concatenate([part.t for part in state.waiting]))
                stops.update(times[rows::rows].tolist())
        return [*sorted(t for t in stops if before < t < frontier), frontier]

    @property
    def _working_clock(self) -> Callable[[], int] | None:
        """What says how long a step has worked, where slides may be put off: in a run that waits for more, for only
        that one has steps that bring nothing."""
        return self.clock if self.part.slides.puts_off and self.inputs.follows else None

    def _catch_up(self, out: Outgoing) -> None:
        """Time stands still: what was put off is made."""
        frontier, origin = self.state.gates.frontier, self.state.gates.origin
        if not self.part.slides.puts_off or frontier is None or origin is None:
            return
        step = Step(
            frontier,
            frontier,
            origin,
            self.state.part.open_ids,
            clock=self._working_clock,
            decisions=self.decisions,
            sharing=self.inputs.sharing,
        )
        given = self._stage.idle(self.state, step)
        if given is not None:
            self._send(given, step, out)

    def _stops(self, before: int, frontier: int) -> list[int]:
        """Where to step to. What others send is for one step, and so is what others learn under an open row id."""
        if not self._in_slices:
            return [frontier]
        waiting = [[part.t for part in state.waiting] for state in self.state.gates.inputs.values()]
        most = max(waiting, key=lambda parts: sum(map(len, parts)), default=[])
        stops: set[int] = set()
        at = SLICE_ROWS
        for times in most:
            stops.update(times[at::SLICE_ROWS].tolist())
            at = (at - len(times)) % SLICE_ROWS if at < len(times) else at - len(times)
        return [*sorted(t for t in stops if before < t < frontier), frontier]

    @cached_property
    def _in_slices(self) -> bool:
        if self.layout.emit_name == "latest":
            return False  # reported once a batch
        sources = all(channel.exchange.fragment is None for channel in self.inputs.channels.values())
        return sources and not any(channel.exchange.sender.open_ends for channel in self._sends)

    def _step(self, step: Step, parts: Sequence[Frame], out: Outgoing) -> None:
        state, frontier = self.state, step.frontier
        released = self.inputs.released(frontier)
        if self.spread is not None:
            self._step_partitions(self.spread, released, step, out)
            return
        brought = self.inputs.brought(released, parts, step)
        slides = {key: state.slides[str(i)] for key, i in self.numbers.items() if str(i) in state.slides}
        if self.consumer is not None:
            slides |= self.consumer.slides_below(_of_subplan(state.slides))
        given = self._stage.advance(state, brought, step, self.inputs.last_used(), slides)
        self.inputs.settle_changes(released, given.unmatched, out)
        self._send(given, step, out)
        state.gates.frontier = frontier

    def _step_partitions(
        self, spread: Partitions, released: Mapping[str, StreamDelta], step: Step, out: Outgoing
    ) -> None:
        """A step of a plan that is spread over partitions within this one, as in a process without Spark."""
        state = self.state
        brought = {self.inputs.source(name): [rows] for name, rows in released.items() if len(rows)}
        for name, parts in state.static.items():
            if parts:
                rows, state.static[name] = pa.concat_batches(parts), []
                brought[self.inputs.source(name)] = [
                    StreamDelta(rows, np.zeros(len(rows), dtype=np.int64), step.frontier)
                ]
        stepped = spread.advance(state.stages, brought, step, self.inputs.last_used())
        for operator, came, went in stepped.passed:
            counted = state.in_prefix.setdefault(str(self.numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went
        unmatched = {name: stepped.unmatched.get(self.inputs.source(name), no_int64s()) for name in released}
        self.inputs.settle_changes(released, unmatched, out)
        form, schema = self.layout.answers[SHARED]
        for rows in in_order(stepped.answers, form, schema):
            if len(rows) or form == "latest":
                out.answer(SHARED, rows)
        state.gates.frontier = step.frontier

    def _send(self, given: Advanced, step: Step, out: Outgoing) -> None:
        """What goes on from here, of this fragment and of the queries that run beside it."""
        shared = self._outputs(given)
        at_the_end = step.frontier == FOREVER  # nobody asks where slides end before
        slides = self.slides() if at_the_end else {}
        beside = self._step_beside(shared, step, slides)
        below = {_BELOW + number: last for number, last in slides.items()}
        for channel in self._sends:
            sender = channel.exchange.sender
            if channel.query == self.query:
                out.send(channel, given.deltas[self.part.number[id(sender)]], slides)
                continue
            output = self._consumers[channel.query].input_of(sender)
            if output is not None:
                # A shared join has no windows that slide; other shared plans are read through an operator of the query.
                out.send(channel, picked(shared[output], self._columns[channel.query][output]), {})
                continue
            runner = self.beside[channel.query]
            own = {**runner.slides(), **below} if at_the_end else {}
            out.send(channel, beside[channel.query].deltas[runner.part.number[id(sender)]], own)
        for key, advanced in ((self.query, given), *beside.items()):
            if advanced.rows is not None and (len(advanced.rows) or self.layout.emit_name == "latest"):
                out.answer(key, advanced.rows)

    def _flush(self, out: Outgoing) -> None:
        """The batch is over for the answers that are emitted then."""
        rows = {self.query: self._stage.flush(self.state)}
        rows |= {key: runner.stage.flush(self.state.consumers[key]) for key, runner in self.beside.items()}
        within = [partition.stage.flush(memory) for partition, memory in self._partitions(self.state)]
        if waited := [each for each in within if each is not None]:
            rows[SHARED] = merged(waited, *self.layout.answers[SHARED])
        for key, rows_out in rows.items():
            if rows_out is not None and len(rows_out):
                out.answer(key, rows_out)

    def _outputs(self, given: Advanced) -> dict[str, Delta]:
        """What is made here of what queries share, by name."""
        outputs: dict[str, Delta] = {}
        if self.layout.consumers and self.consumer is None:
            for name, operator in outputs_of(self.layout.root).items():
                if id(operator) in self.part.number:
                    delta = given.deltas[self.part.number[id(operator)]]
                    assert isinstance(delta, Delta)
                    outputs[name] = delta
        return outputs

    def _step_beside(self, shared: Mapping[str, Delta], step: Step, slides: Mapping[str, int]) -> dict[str, Advanced]:
        advanced: dict[str, Advanced] = {}
        for key, runner in self.beside.items():
            runner.state = self.state.consumers[key]
            pairs = picked(shared[PAIRS], self._columns[key][PAIRS])
            advanced[key] = runner.advance(pairs, shared, step, self.inputs.last_used(), slides)
        return advanced

    # --- what goes on ------------------------------------------------------------------------------------------------

    def _pass_on(self, parts: Sequence[Frame], out: Outgoing) -> None:
        """The next stage hears of the inputs through one partition, and of sliding windows through every one."""
        for part in parts:
            if part.kind == "slides":
                for number, last in part.about["last"].items():
                    self.state.slides[number] = max(last, self.state.slides.get(number, last))
        first = min(
            number for number, stage_number in self.layout.stage_number.items() if stage_number == self.stage_number
        )
        if self.fragment.number == first and self.partition == 0:
            out.to_all_above(self.inputs.seen_for_later_stages([part for part in parts if part.kind == "seen"]))

    def slides(self) -> dict[str, int]:
        own = {str(self.numbers[key]): last for key, last in self.part.slides.last_of_windows(self.state.part).items()}
        return dict(sorted({**self.state.slides, **own}.items()))  # whatever order frames came in


def _of_subplan(slides: Mapping[str, int]) -> dict[str, int]:
    """The last slides that a query has heard of from the sub-plan that it shares."""
    return {number.removeprefix(_BELOW): last for number, last in slides.items() if number.startswith(_BELOW)}


def _index(part: Frame) -> tuple[int, int, str, str]:
    """Parts may come in any order; what a partition makes of them does not depend on it."""
    about = part.about
    return about.get("sender", 0), about.get("number", 0), about.get("channel", about.get("source", "")), part.kind
