"""A plan in many partitions of one process: a stage for every fragment and partition, and what moves between them.

The fragments are those of a cluster (`Layout`). Every stage has a memory of its own, so all tasks of a stage can be
stepped at once, by threads: compiled loops and Arrow run without the interpreter's lock. What moves is a reference to
rows and the positions of those that a partition is to get; it gathers them itself, in its thread. The rows of an input
come here judged and released, once for all partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator, scanned
from transom.kernels.slide_join.budget import RunBudget
from transom.kernels.worker_pool import WorkerPool, processors
from transom.pipeline.exchange import ExchangedRows, FeedState, Sent, fed, spread_rows, static_rows
from transom.pipeline.layout import Channel, Layout
from transom.pipeline.memory import StageMemory
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part
from transom.pipeline.pushed_prefix import apply_prefix, spread_by
from transom.pipeline.stage import Stage
from transom.pipeline.timers import Brought, is_something
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import Catalogue, TableDefinition
from transom.planner.columns_read import columns_read
from transom.planner.fragments import ANSWER

T = TypeVar("T")

MANY_ROWS: Final = 4_096
"""From so many rows on a step is shared among threads; fewer are done before another thread has woken."""

Passed = list[tuple[Operator, int, int]]
"""Operators outside of all stages, the rows that came to each, and those that went on."""


@dataclass(frozen=True)
class Partition:
    """A stage of one fragment in one partition. `sends`: by its number the operator whose rows go through a channel."""

    fragment: int
    number: int
    stage: Stage
    channels: tuple[Channel, ...]
    sends: tuple[tuple[Channel, int], ...]


@dataclass
class Stepped:
    """What a step gave: the answers of the stages, by source the changes that met no row, and who passed rows on."""

    answers: list[pa.RecordBatch] = field(default_factory=list)
    unmatched: dict[str, Int64s] = field(default_factory=dict)
    passed: Passed = field(default_factory=list)


class Partitions:
    """The stages of a layout, fragments in their order, partitions of a fragment side by side."""

    def __init__(self, layout: Layout, catalogue: Catalogue, budget: RunBudget | None = None) -> None:
        self.layout = layout
        self._budget = budget or RunBudget()
        self.all = [
            self._partition(fragment.number, number, catalogue)
            for fragment in layout.fragments
            for number in range(layout.partitions_of(fragment.number))
        ]
        self._by_stage: list[list[int]] = [[] for _ in range(layout.stage_count)]
        for index, each in enumerate(self.all):
            self._by_stage[layout.stage_number[each.fragment] - 1].append(index)
        self._inputs = [channel for channel in layout.channels if channel.exchange.source is not None]
        self._read = {channel.name: self._columns(channel) for channel in self._inputs}
        self._counted = self._counted_once()
        hosted = {id(operator) for fragment in layout.fragments for operator in fragment.operators}
        self._scans: dict[str, list[Operator]] = {}
        for operator in layout.operators:
            if isinstance(operator.node, StreamScan | TableScan) and id(operator) not in hosted:
                self._scans.setdefault(scanned(operator), []).append(operator)
        workers = min(layout.partitions, processors()) - 1
        self._worker_pool = WorkerPool(workers) if workers else None

    def start(self) -> list[StageMemory]:
        return [
            StageMemory(
                each.stage.part.start(),
                None if each.stage.output is None else each.stage.output.start(),
                {channel.name: FeedState() for channel in each.channels if channel.exchange.fragment is not None},
            )
            for each in self.all
        ]

    def close(self) -> None:
        if self._worker_pool is not None:
            self._worker_pool.close()

    def advance(
        self, memories: Sequence[StageMemory], released: Mapping[str, Sequence[StreamDelta]], step: Step, last_used: int
    ) -> Stepped:
        """From `step.before` to `step.frontier`, stage by stage. For `last_used` see `Part.step`."""
        stepped = Stepped()
        rows = 0
        for source, parts in released.items():
            count = sum(map(len, parts))
            rows += count
            stepped.passed += [(scan, 0, count) for scan in self._scans.get(source, ())]
        each = self._worker_pool.each if self._worker_pool is not None and rows >= MANY_ROWS else _in_turn
        sent: dict[str, list[Sent]] = {channel.name: [] for channel in self.layout.channels}
        inputs = [channel for channel in self._inputs if released.get(_source(channel))]
        spread = each([partial(self._spread, channel, released[_source(channel)]) for channel in inputs])
        for channel, (given, passed) in zip(inputs, spread, strict=True):
            sent[channel.name] = given
            stepped.passed += passed
        slides: dict[int, int] = {}
        for at_stage in self._by_stage:
            tasks = [partial(self._step, self.all[i], memories[i], sent, step, last_used, slides) for i in at_stage]
            for i, (answer, unmatched, going, passed) in zip(at_stage, each(tasks), strict=True):
                stepped.passed += passed
                if answer is not None:
                    stepped.answers.append(answer)
                for name, delta in going:
                    sent[name].append(delta)
                self._note_unmatched(self.all[i], unmatched, sent, stepped)
            if step.frontier == FOREVER:  # nobody asks before
                last_used = max([last_used, *self._last_matched(at_stage, sent, stepped)])
                for i in at_stage:
                    for window, last in self.all[i].stage.part.slides.last_of_windows(memories[i].part).items():
                        slides[window] = max(last, slides.get(window, last))
        return stepped

    # --- inside ------------------------------------------------------------------------------------------------------

    def _partition(self, fragment: int, number: int, catalogue: Catalogue) -> Partition:
        layout = self.layout
        channels = layout.channels_into(fragment)
        operators = layout.fragments[fragment - 1].operators
        named = {(id(channel.exchange.into), channel.exchange.index): channel.name for channel in channels}
        going = layout.channels_from(fragment)
        partitions = layout.partitions_of(fragment)
        given = {id(channel.exchange.sender) for channel in going}
        part = Part(
            operators,
            named,
            catalogue,
            layout.tick,
            whole=True,
            given=given,
            partitions=partitions,
            finals=layout.finals,
            pool=self._budget.pool(number, partitions),
        )
        answers = any(operator is layout.root for operator in operators) and not going
        answers = answers or any(channel.exchange.index == ANSWER for channel in channels)
        output = OutputWriter.of(layout.root, layout.emit) if answers else None
        stage = Stage(part, output, layout.root if answers and operators else None)
        sends = tuple((channel, part.number[id(channel.exchange.sender)]) for channel in going)
        return Partition(fragment, number, stage, tuple(channels), sends)

    def _columns(self, channel: Channel) -> tuple[int, ...] | None:
        """The columns of a stream that anybody reads, where its rows move as they are; None for all."""
        definition = self.layout.sources[_source(channel)]
        if channel.exchange.prefix or isinstance(definition, TableDefinition):
            return None
        read = tuple(columns_read(self.layout.root, _source(channel)))
        return None if len(read) == len(definition.columns) else read

    def _counted_once(self) -> dict[str, list[int]]:
        """By channel the operators on its way, without those that are in the pushed-down prefix of an earlier one,
        too."""
        counted: dict[str, list[int]] = {}
        seen: set[int] = set()
        for channel in self.layout.channels:
            counted[channel.name] = [id(operator) for operator in channel.exchange.prefix if id(operator) not in seen]
            seen.update(counted[channel.name])
        return counted

    def _count(self, channel: Channel, passed: Passed) -> Callable[[Operator, int, int], None]:
        counted = self._counted[channel.name]

        def count(operator: Operator, came: int, went: int) -> None:
            if id(operator) in counted:
                passed.append((operator, came, went))

        return count

    def _spread(self, channel: Channel, parts: Sequence[StreamDelta]) -> tuple[list[Sent], Passed]:
        """The rows of an input behind the way, and who gets which."""
        passed: Passed = []
        shares = []
        partitions, partitioning = self.layout.partitions_of(channel.fragment), channel.exchange.partitioning
        for number, part in enumerate(parts):
            inner = apply_prefix(channel.exchange.prefix, part, self._count(channel, passed))
            if partitioning.kind == "keys":
                positions = spread_by(partitioning.keys, self._as_scanned(channel, inner.values), partitions)
            else:
                positions = np.array_split(np.arange(len(inner), dtype=np.int64), partitions)
            read = self._read[channel.name]
            if read is not None:
                inner = replace(inner, values=inner.values.select(list(read)))
            shares.append(Sent(number, inner, positions))
        return shares, passed

    def _as_scanned(self, channel: Channel, values: pa.RecordBatch) -> pa.RecordBatch:
        return values if channel.exchange.prefix else self.layout.as_scanned(_source(channel), values)

    def _step(
        self,
        partition: Partition,
        memory: StageMemory,
        sent: Mapping[str, Sequence[Sent]],
        step: Step,
        last_used: int,
        slides: Mapping[int, int],
    ) -> tuple[pa.RecordBatch | None, Mapping[str, Int64s], list[tuple[str, Sent]], Passed]:
        step = replace(step, open_ids=memory.part.open_ids)
        passed: Passed = []
        brought = {
            channel.name: self._brought(channel, partition.number, sent[channel.name], memory, step)
            for channel in partition.channels
        }
        given = partition.stage.advance(memory, brought, step, last_used, slides)
        going: list[tuple[str, Sent]] = []
        for channel, number in partition.sends:
            delta = given.deltas[number]
            if is_something(delta):
                to = self.layout.partitions_of(channel.fragment)
                positions = spread_rows(channel, delta.values, partition.number, to, self._count(channel, passed))
                going.append((channel.name, Sent(partition.number, delta, positions)))
        return given.rows, given.unmatched, going, passed

    def _brought(self, channel: Channel, number: int, sent: Sequence[Sent], memory: StageMemory, step: Step) -> Brought:
        rows = [part for each in sent for part in each.rows(number)]
        if channel.exchange.fragment is not None:
            return fed(channel, (rows, [part for each in sent for part in each.ends]), memory.feeds, step, None)
        values, t = self._gathered(channel, rows)
        if self.layout.sources[_source(channel)].time is not None:
            return StreamDelta(values, t, step.frontier)
        return static_rows(channel, values, step, negative=self.layout.root.negative)

    def _gathered(self, channel: Channel, rows: Sequence[ExchangedRows]) -> tuple[pa.RecordBatch, Int64s]:
        """The rows of an input that came, one part after the other; columns that nobody reads are NULL."""
        prefix = channel.exchange.prefix
        schema = (prefix[-1].schema if prefix else self.layout.sources[_source(channel)].columns).held()
        if not rows:
            return empty_batch(schema), no_int64s()
        batches = [part.values for part in rows]
        values = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        t = rows[0].times[0] if len(rows) == 1 else np.concatenate([part.times[0] for part in rows])
        read = self._read[channel.name]
        if read is None:
            return values, t
        columns = dict(zip(read, values.columns, strict=True))
        arrays = [columns[i] if i in columns else pa.nulls(len(t), type_) for i, type_ in enumerate(schema.types)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema), t

    def _note_unmatched(
        self,
        partition: Partition,
        unmatched: Mapping[str, Int64s],
        sent: Mapping[str, Sequence[Sent]],
        stepped: Stepped,
    ) -> None:
        """Positions among all changes, by those among the ones that came here."""
        for channel in partition.channels:
            if channel.accounts and channel.name in unmatched:
                (changes,) = sent[channel.name]
                noted = stepped.unmatched.get(_source(channel), no_int64s())
                here = changes.positions[partition.number][unmatched[channel.name]]
                stepped.unmatched[_source(channel)] = np.sort(np.concatenate([noted, here]))

    def _last_matched(
        self, at_stage: Iterable[int], sent: Mapping[str, Sequence[Sent]], stepped: Stepped
    ) -> Iterator[int]:
        """The times of the last changes that tables have taken in a stage."""
        for channel in {channel.name: channel for i in at_stage for channel in self.all[i].channels}.values():
            source = channel.exchange.source
            if source is None or not channel.accounts:
                continue
            definition = self.layout.sources[source.lower()]
            if isinstance(definition, TableDefinition) and definition.time is not None:
                for changes in sent[channel.name]:
                    assert isinstance(changes.delta, StreamDelta)
                    t = np.delete(changes.delta.t, stepped.unmatched.get(source.lower(), no_int64s()))
                    yield from t[-1:].tolist()


def _source(channel: Channel) -> str:
    assert channel.exchange.source is not None
    return channel.exchange.source.lower()


def _in_turn(tasks: Sequence[Callable[[], T]]) -> list[T]:
    return [task() for task in tasks]
