"""One partition of one fragment: the same operators behind the same input gates as in a pipeline, fed with frames.

Every partition hears what all tasks saw of all inputs, so every partition knows by itself how far time has come, and
comes to the same result; a step takes all partitions of all fragments from the last progress to the new one. What it
gives goes to the partitions of the next fragments, and from the last fragment to the sink.

Where the pairs of a shared join are made, the queries that share it run beside it, each as far as it can without rows
of other partitions, and with a memory of its own.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError, SourceError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.decisions import Decisions
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.pipeline.admission import BEFORE_ORIGIN, FIT, REASONS, Classified, Codes, InputGate, RejectedRows
from transom.pipeline.consumer import PAIRS, outputs_of
from transom.pipeline.consumer_runner import ConsumerRunner, picked
from transom.pipeline.dead_letters import count_reasons, dead_letter_rows
from transom.pipeline.exchange import FeedState, fed, static_rows
from transom.pipeline.feed import unpacked
from transom.pipeline.frames import Frame, Message
from transom.pipeline.input_gates import InputGates, came_after_the_end
from transom.pipeline.layout import SHARED, Channel, Layout
from transom.pipeline.memory import StageMemory
from transom.pipeline.merge import in_order, merged, value_ranks
from transom.pipeline.outgoing import Outgoing, status_message
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.partition_state import PartitionState
from transom.pipeline.partition_status import partition_status
from transom.pipeline.partitions import Partition, Partitions
from transom.pipeline.pushed_prefix import apply_prefix
from transom.pipeline.routes import Routes
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.pipeline.scheduled_join import sides_of
from transom.pipeline.scheduled_partition import ScheduledPartition
from transom.pipeline.seen import brief, digest, heard, unpacked_times
from transom.pipeline.spilling import store_of
from transom.pipeline.stage import Advanced, Stage
from transom.pipeline.timers import Brought
from transom.plan.catalogue import TableDefinition
from transom.planner.fragments import ANSWER
from transom.state import codec
from transom.state.checks import alike, need

_JUDGED = ("rows", "unwanted", "unfit")


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
        self.channels = {channel.name: channel for channel in layout.channels_into(fragment)}
        channels = {(id(p.exchange.into), p.exchange.index): name for name, p in self.channels.items()}
        store, indexes = store_of(layout.catalogue, home, referred=False), layout.partitions_of(fragment)
        self.spread = None if layout.spread is None else Partitions(layout.spread, layout.catalogue)
        operators = self.fragment.operators if self.spread is None else ()
        if layout.schedule is not None:  # the join is made apart
            operators = tuple(operator for operator in operators if operator is not layout.root)
        finals = layout.finals
        self.part = Part(
            operators, channels, layout.catalogue, layout.tick, store=store, indexes=indexes, finals=finals
        )
        self.consumer = consumer = layout.consumer_of(fragment)
        self.query = SHARED if consumer is None else consumer.spec.name
        """Whose it is."""
        operators_of_query = layout.operators if consumer is None else consumer.operators
        self.numbers = {id(operator): i for i, operator in enumerate(operators_of_query)}
        self._sends = layout.channels_from(fragment)
        root, emit = (layout.root, layout.emit) if consumer is None else (consumer.root, consumer.spec.emit)
        answers = any(o is root for o in operators) and not self._sends  # partitions write their own
        answers = answers or any(p.exchange.index == ANSWER for p in self.channels.values())
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
        self.source_of: dict[str, str] = {}
        inputs: dict[str, InputGate] = {}
        for source, definition in layout.sources.items():
            if definition.time is None:
                continue
            # An input gate for every channel; a stream that others read has one here, too, for the sake of its time.
            channel_names = [p.name for p in layout.channels_of(source) if p.fragment == fragment] or [source]
            for name in channel_names:
                inputs[name] = InputGate(definition, layout.tick, layout.origin)
                self.source_of[name] = source
        self.gates = InputGates(inputs, layout.tick, layout.origin, self.source_of)
        self.scheduled = None
        if layout.schedule is not None:
            self.scheduled = ScheduledPartition(
                layout.root, list(self.beside.values()), layout.catalogue, layout.tick, layout.schedule
            )
        self.state = self.start()
        self.decisions = Decisions()
        self.clock: Callable[[], int] = lambda: time.time_ns() // 1_000
        self._heard_at: int | None = None
        self._sharing = 0
        self._follows = False
        self._nothing: dict[pa.DataType, pa.Array] = {}

    def start(self) -> PartitionState:
        """The memory of a partition before its first step."""
        gates = InputGates(self.gates.inputs, self.layout.tick, self.layout.origin).state
        feeds = {name: FeedState() for name, channel in self.channels.items() if channel.exchange.fragment is not None}
        static: dict[str, list[pa.RecordBatch]] = {
            name: [] for name, channel in self.channels.items() if self._is_static(channel)
        }
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
            self.gates.check(state.gates)
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
        self.gates.state = self.state.gates
        self.part.attach(self.state.part)
        for partition, memory in self._partitions(self.state):
            partition.stage.part.attach(memory.part)
        self.state.steps += 1
        out = Outgoing(self.layout, self.partition, self.stage_number, self.state.routes)
        self._admit(parts, out)
        self._pass_on(parts, out)
        self._begin_scheduled(parts)
        next_step = self.gates.next_step()
        if self.scheduled is not None:
            self._advance_scheduled(self.scheduled, next_step, parts, out)
        elif next_step is None:
            for name, rejected_rows in self.gates.reject_unbegun().items():
                self._reject(name, rejected_rows, out)
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
        self.gates.state = self.state.gates
        if self.part.puts_off and self._heard_at is not None and self.part.unfinished(self.state.part):
            return self._heard_at + 1  # at once
        next_timer = self._stage.next_timer(self.state)
        for partition, memory in self._partitions(self.state):
            next_timer = min(next_timer, partition.stage.next_timer(memory))
        for key, runner in self.beside.items():
            runner.state = self.state.consumers[key]
            if self.scheduled is None:  # else it is not there yet
                next_timer = min(next_timer, runner.next_timer)
        return self.gates.wake(self.gates.next_timer(next_timer))

    @property
    def ended(self) -> bool:
        """Whether nothing more can come of any input that has an end."""
        return all(input_state.ended for input_state in self.state.gates.inputs.values())

    @property
    def reached_times(self) -> dict[str, int | None]:
        """How far time has come, of the answer and of every input."""
        self.gates.state = self.state.gates
        watermarks = {f"'{self.source_of[name]}'": self.gates.watermark(name) for name in self.gates.inputs}
        return {"the answer": self.state.gates.frontier, **watermarks}

    # --- what came ---------------------------------------------------------------------------------------------------

    def _admit(self, parts: Sequence[Frame], out: Outgoing) -> None:
        """Split by split, in the order of the source."""
        rows: dict[tuple[str, int, str | None], list[Frame]] = defaultdict(list)
        for part in parts:
            if part.kind in _JUDGED:
                rows[part.about["channel"], part.about["sender"], part.about.get("source_partition")].append(part)
        seen = [part for part in parts if part.kind == "seen"]
        self._sharing = max((part.about["sharing"] for part in seen), default=0)
        self._reject_after_the_end(seen)
        for source in set(self.source_of.values()):
            of_source = {part.about["source_partition"] for part in seen if part.about["source"] == source}
            self.gates.enter(source, sorted(of_source - {None}))
        stamps: dict[tuple[str, int], int] = {}
        for name in self.gates.inputs:
            for about in (part.about for part in seen if part.about["source"] == self.source_of[name]):
                frames = rows[name, about["sender"], about["source_partition"]]
                if self.gates.stamped(name):
                    first = self._stamp(name, about, stamps)
                    for part in frames:
                        self._admit_stamped(name, part, first, out)
                    continue
                for part in frames:
                    self._admit_rows(name, part, out)
                self._begin(name, about)
                if self.source_of[name] not in self.layout.unordered:
                    self._see(name, about)
        for name in self.gates.inputs:
            for part in seen:
                if part.about["source"] == self.source_of[name] and self.source_of[name] in self.layout.unordered:
                    self._see(name, part.about)
        for channel in self.state.static:
            self.state.static[channel] += [
                self._whole(channel, p.rows)[0] for p in parts if p.about.get("channel") == channel
            ]
        self._note_time(seen)
        if self.fragment.number == self.layout.accountant and self.partition == 0:
            for part in seen:
                self._account(part.about)

    def _reject_after_the_end(self, seen: Sequence[Frame]) -> None:
        """Time has passed the rows of an input that has ended; none may follow."""
        for name, source in self.source_of.items():
            if self.gates.state.inputs[name].ended:
                more = sum(part.about["rows_in"] for part in seen if part.about["source"] == source)
                if more:
                    raise came_after_the_end(f"stream '{self.layout.sources[source].name}'")

    def _begin(self, name: str, about: dict[str, Any]) -> None:
        """The query may begin with the earliest of the times reported that is not late."""
        if self.gates.state.origin is not None:
            return
        if about["begun"]:
            raise CheckpointError(
                "time has not begun for a part of the query of which it is said that it has",
                remedy="put the checkpoint back from one copy as a whole, or start with an empty folder",
            )
        state, times = self.gates.state.inputs[name], unpacked_times(about["firsts"])
        watermark = self.gates.inputs[name].watermark(state, about["source_partition"])
        admitted = times[times >= watermark]
        if len(admitted):
            state.begin(int(admitted[0]))
        elif about["more"] and (state.first is None or watermark < state.first):  # else it begins no earlier with them
            raise SourceError(
                f"'{self.source_of[name]}' brings so many late rows that nobody can tell where time begins",
                remedy="SET origin = '..', or allow more disorder in WATERMARK FOR",
            )

    def _see(self, name: str, about: dict[str, Any]) -> None:
        state = self.gates.state.inputs[name]
        of = about["source_partition"]
        self.gates.inputs[name].leap_to(state, about["began"], about["leap"], of)
        state.see(about["greatest"], of)
        state.ended = state.ended or about["ended"]

    def _admit_rows(self, name: str, part: Frame, out: Outgoing) -> None:
        """Rows that a filter took away on their way, and unfit ones, are here to be judged, not to be kept."""
        values, t = self._whole(name, part.rows)
        codes: Codes = np.full(len(t), FIT, dtype=np.uint8)
        if part.kind == "unfit":
            assert part.rows is not None
            codes = part.rows.columns[-1].to_numpy()
        state = self.gates.state.inputs[name]
        if part.kind == "unwanted":
            state = replace(state, waiting=[])
        first = state.first
        of = part.about.get("source_partition")
        rejected_rows = self.gates.inputs[name].admit(state, Classified(values, t, codes, None), of)
        state.first = first  # what the tasks saw decides, not what came here of it
        state.ledger.rows_in -= len(t)  # counted where all of it is
        if part.kind == "unwanted":
            unwanted = sum(len(waiting.t) for waiting in state.waiting)
            state.ledger.used += unwanted
            self._count(self.channels[name], self.channels[name].exchange.prefix[0], unwanted, 0)
        if rejected_rows is not None:
            self._reject(name, rejected_rows, out)

    def _stamp(self, name: str, about: dict[str, Any], stamps: dict[tuple[str, int], int]) -> int:
        """The first stamp of a split, the same for all input gates of its stream."""
        source, state = self.source_of[name], self.gates.state.inputs[name]
        state.ended = state.ended or about["ended"]
        if (source, about["sender"]) not in stamps:
            stamps[source, about["sender"]] = self.gates.stamp(about["rows_in"], about["now"] or 0)
        first = stamps[source, about["sender"]]
        if about["rows_in"]:
            state.begin(first)
            state.see(self.gates.state.clock)
        return first

    def _admit_stamped(self, name: str, part: Frame, first: int, out: Outgoing) -> None:
        values, indexes = self._whole(name, part.rows)
        t = first + self.layout.tick * indexes
        values = self.gates.with_times(name, values, t)
        gate, state = self.gates.inputs[name], self.gates.state.inputs[name]
        early = gate.before_origin(t)
        if early:
            state.ledger.rejected += early
            self._reject(name, RejectedRows(values.slice(0, early), [REASONS[BEFORE_ORIGIN]] * early), out)
        if part.kind == "unwanted":
            state.ledger.used += len(t) - early
            return
        gate.wait(state, values.slice(early), t[early:])

    def _whole(self, channel: str, rows: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Any]:
        """Rows in the declared columns, those that nobody reads NULL; and what travelled behind them."""
        assert rows is not None
        definition = self.layout.sources[self._source(channel)]
        schema = definition.columns.held()
        columns = self.channels[channel].columns if rows.num_columns > 1 or definition.time is None else ()
        column_at = dict(zip(columns, rows.columns, strict=False))
        arrays = [
            column_at[at] if at in column_at else self._nulls(len(rows), kind) for at, kind in enumerate(schema.types)
        ]
        behind = rows.column(len(columns)).to_numpy() if definition.time is not None else None
        return pa.RecordBatch.from_arrays(arrays, schema=schema), behind

    def _nulls(self, count: int, kind: pa.DataType) -> pa.Array:
        """NULLs take as much room as values: one array stands for all columns of a type, in all parts of a batch."""
        nulls = self._nothing.get(kind)
        if nulls is None or len(nulls) < count:
            nulls = self._nothing[kind] = pa.nulls(count, kind)
        return nulls.slice(0, count)

    def _note_time(self, seen: Sequence[Frame]) -> None:
        """What time it was when the inputs were read, and which of them had nothing more."""
        now = max((p.about["now"] for p in seen if p.about["now"] is not None), default=None)
        self._heard_at, self._follows = now, any(p.about["follows"] for p in seen)
        if now is None:
            return
        spoke = {p.about["source"] for p in seen if p.about["rows_in"]}
        at_end = {p.about["source"] for p in seen if p.about["at_end"] and p.about["source_partition"] is None}
        # Nobody knows how much there is of a DataFrame: where a batch has none of it, there was no more.
        quiet = at_end | self.layout.unordered
        following = [p.about["now"] for p in seen if p.about["follows"]]
        if following:
            self.gates.follow(max(following), at_end - (spoke & self.layout.unordered))
        for source in set(self.source_of.values()):
            self.gates.hear(source, now, source in spoke, now if source in quiet else None)
        of_partitions: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for about in (p.about for p in seen if p.about["source_partition"] is not None):
            of_partitions[about["source"], about["source_partition"]].append(about)
        for of, abouts in of_partitions.items():
            polled_at = now if any(about["at_end"] for about in abouts) else None
            self.gates.hear_partition(*of, now, any(about["rows_in"] for about in abouts), polled_at)
        self.gates.leave_idle_behind()

    def _account(self, about: dict[str, Any]) -> None:
        source = about["source"]
        counts = self.state.reasons.setdefault(source, {})
        for reason, count in about["reasons"].items():
            counts[reason] = counts.get(reason, 0) + count
        totals = self.state.gates.seen.setdefault(source, [0, 0, 0, 0, 0])
        for i, what in enumerate(("rows_in", "late", "rejected", "ended")):
            totals[i] += int(about[what])
        totals[4] += about["leap"][2] if about["leap"] is not None else 0

    def _reject(self, name: str, rejected_rows: RejectedRows, out: Outgoing) -> None:
        if not self.channels[name].accounts:
            return
        source = self.source_of[name]
        definition = self.layout.sources[source]
        count_reasons(self.state.reasons.setdefault(source, {}), rejected_rows.reasons)
        out.dead_letters(dead_letter_rows(definition, rejected_rows))

    # --- a step ------------------------------------------------------------------------------------------------------

    def _advance(self, before: int, frontier: int, origin: int, parts: Sequence[Frame], out: Outgoing) -> None:
        """Advance in several steps where a batch is large: so what is alive at a time stays small, and in the cache."""
        if self.consumer is not None and self.consumer.begin is not None:
            origin = self.consumer.begin
        for at in self._stops(before, frontier):
            open_ids, last_row = self.state.part.open_ids, self.gates.last_row
            step = Step(
                before,
                at,
                origin,
                open_ids,
                sharing=self._sharing,
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
        last_used = self._last_used()
        keys = list(self.beside)

        def turn(last: bool) -> None:
            scheduled.turn(self.gates, last_used, lambda index, rows: out.answer(keys[index], rows), last)

        if next_step is not None:
            before, frontier, origin = next_step
            stops = self._stops_for(scheduled.join.schedule.buffer, before, frontier)
            for at in stops:
                step = Step(before, at, origin, self.state.part.open_ids, last_row=self.gates.last_row)
                released = {name: self._released(name, at) for name in self.gates.inputs if name in self.channels}
                brought: dict[str, Brought] = {
                    name: self._come_in(self.channels[name], rows) for name, rows in released.items()
                }
                given = self._stage.advance(self.state, brought, step, last_used)
                self.state.gates.frontier = before = at
                scheduled.join.arrive(sides_of(self.layout.root, self.part, given.deltas))
                turn(last=at == frontier)
        elif self.gates.state.frontier is not None:
            turn(last=True)
        else:
            return
        scheduled.join.forget(self.gates.state.origin)
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
        return self.clock if self.part.puts_off and self._follows else None

    def _catch_up(self, out: Outgoing) -> None:
        """Time stands still: what was put off is made."""
        frontier, origin = self.state.gates.frontier, self.state.gates.origin
        if not self.part.puts_off or frontier is None or origin is None:
            return
        step = Step(
            frontier,
            frontier,
            origin,
            self.state.part.open_ids,
            clock=self._working_clock,
            decisions=self.decisions,
            sharing=self._sharing,
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
        sources = all(channel.exchange.fragment is None for channel in self.channels.values())
        return sources and not any(channel.exchange.sender.open_ends for channel in self._sends)

    def _step(self, step: Step, parts: Sequence[Frame], out: Outgoing) -> None:
        state, frontier = self.state, step.frontier
        released = {name: self._released(name, frontier) for name in self.gates.inputs if name in self.channels}
        if self.spread is not None:
            self._step_partitions(self.spread, released, step, out)
            return
        brought: dict[str, Brought] = {
            name: self._come_in(self.channels[name], rows) for name, rows in released.items()
        }
        for name, channel in self.channels.items():
            if channel.exchange.fragment is not None:
                brought[name] = self._fed(name, channel, parts, step)
            elif name in state.static:
                brought[name] = self._static(name, channel, step)
        slides = {key: state.slides[str(i)] for key, i in self.numbers.items() if str(i) in state.slides}
        if self.consumer is not None:
            slides |= self.consumer.slides_below(_of_subplan(state.slides))
        given = self._stage.advance(state, brought, step, self._last_used(), slides)
        self._settle_changes(released, given.unmatched, out)
        self._send(given, step, out)
        state.gates.frontier = frontier

    def _step_partitions(
        self, spread: Partitions, released: Mapping[str, StreamDelta], step: Step, out: Outgoing
    ) -> None:
        """A step of a plan that is spread over partitions within this one, as in a process without Spark."""
        state = self.state
        brought = {self._source(name): [rows] for name, rows in released.items() if len(rows)}
        for name, parts in state.static.items():
            if parts:
                rows, state.static[name] = pa.concat_batches(parts), []
                brought[self._source(name)] = [StreamDelta(rows, np.zeros(len(rows), dtype=np.int64), step.frontier)]
        stepped = spread.advance(state.stages, brought, step, self._last_used())
        for operator, came, went in stepped.passed:
            counted = state.in_prefix.setdefault(str(self.numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went
        unmatched = {name: stepped.unmatched.get(self._source(name), no_int64s()) for name in released}
        self._settle_changes(released, unmatched, out)
        form, schema = self.layout.answers[SHARED]
        for rows in in_order(stepped.answers, form, schema):
            if len(rows) or form == "latest":
                out.answer(SHARED, rows)
        state.gates.frontier = step.frontier

    def _settle_changes(
        self, released: Mapping[str, StreamDelta], unmatched: Mapping[str, Int64s], out: Outgoing
    ) -> None:
        for name, delta in released.items():
            if isinstance(self.gates.inputs[name].definition, TableDefinition):
                rejected_rows = self.gates.settle_changes(name, delta, unmatched.get(name, no_int64s()))
                if rejected_rows is not None:
                    self._reject(name, rejected_rows, out)

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
            advanced[key] = runner.advance(pairs, shared, step, self._last_used(), slides)
        return advanced

    def _released(self, name: str, frontier: int) -> StreamDelta:
        rows = self.gates.release(name, frontier)
        if not self.layout.by_value(self.source_of[name]) or len(rows) < 2:
            return rows
        order = np.lexsort((value_ranks(rows.values.columns, len(rows)), rows.t))
        return StreamDelta(rows.values.take(pa.array(order)), rows.t[order], frontier)

    def _come_in(self, channel: Channel, rows: StreamDelta) -> StreamDelta:
        return apply_prefix(channel.exchange.prefix, rows, lambda *counted: self._count(channel, *counted))

    def _count(self, channel: Channel, operator: Operator, came: int, went: int) -> None:
        """Whoever is in the pushed-down prefix of several channels is counted once."""
        prefixes = (other.exchange.prefix for other in self.layout.channels[: self.layout.channels.index(channel)])
        if not any(operator is other for prefix in prefixes for other in prefix):
            counted = self.state.in_prefix.setdefault(str(self.numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went

    def _last_used(self) -> int:
        """The time of the last row used; of streams what was seen anywhere counts, as all of it is used by then."""
        last = [
            s.last_used if isinstance(self.gates.inputs[n].definition, TableDefinition) else s.greatest
            for n, s in self.state.gates.inputs.items()
        ]
        return max((t for t in last if t is not None), default=BEGINNING)

    def _fed(self, name: str, channel: Channel, parts: Sequence[Frame], step: Step) -> Brought:
        frames = [part for part in parts if part.about.get("channel") == name]
        return fed(channel, unpacked(frames), self.state.feeds, step, lambda *counted: self._count(channel, *counted))

    def _static(self, name: str, channel: Channel, step: Step) -> Brought:
        parts, self.state.static[name] = self.state.static[name], []
        definition = self.layout.sources[self._source(name)]
        rows = pa.concat_batches(parts) if parts else empty_batch(definition.columns.held())
        return static_rows(channel, rows, step, negative=self.layout.root.negative)

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
            out.to_all_above(self._seen_for_later_stages([part for part in parts if part.kind == "seen"]))

    def _seen_for_later_stages(self, seen: Sequence[Frame]) -> Iterator[Frame]:
        """All of it, of sources whose rows are judged there; of the others where time is."""
        by_source: dict[str, list[Frame]] = defaultdict(list)
        for part in seen:
            by_source[part.about["source"]].append(part)
        for source, parts in by_source.items():
            names = [name for name, of in self.source_of.items() if of == source]
            later = any(
                self.layout.stage_number[channel.fragment] > self.stage_number
                for channel in self.layout.channels_of(source)
            )
            if later or any(map(self.gates.stamped, names)):
                yield from map(brief, parts)
            else:
                firsts = [first for name in names if (first := self.state.gates.inputs[name].first) is not None]
                yield from digest(parts, min(firsts, default=None))

    def slides(self) -> dict[str, int]:
        own = {str(self.numbers[key]): last for key, last in self.part.last_of_slides(self.state.part).items()}
        return dict(sorted({**self.state.slides, **own}.items()))  # whatever order frames came in

    def _source(self, channel: str) -> str:
        source = self.channels[channel].exchange.source
        assert source is not None
        return source.lower()

    def _is_static(self, channel: Channel) -> bool:
        source = channel.exchange.source
        return source is not None and self.layout.sources[source.lower()].time is None


def _of_subplan(slides: Mapping[str, int]) -> dict[str, int]:
    """The last slides that a query has heard of from the sub-plan that it shares."""
    return {number.removeprefix(_BELOW): last for number, last in slides.items() if number.startswith(_BELOW)}


def _index(part: Frame) -> tuple[int, int, str, str]:
    """Parts may come in any order; what a partition makes of them does not depend on it."""
    about = part.about
    return about.get("sender", 0), about.get("number", 0), about.get("channel", about.get("source", "")), part.kind
