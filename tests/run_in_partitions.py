"""A query laid out over partitions, hosted in this process: any number of partitions, any cut of rows into batches and
tasks.

What a cluster does is done here by hand: frames is packed by tasks, carried to the partitions of one stage after the
other, and what reaches the sink is read back. A restart takes the cached state away. With `disorder` there is also what
happens on bad days: frames comes in any order, some steps are taken twice because what came of the first was lost, and
some partitions lose their memory.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tests.memory_log import MemoryCache, MemoryLog
from tests.run_locally import Answer, Push, Rows, all_at_once, batch_of
from transom.core.time import FOREVER
from transom.pipeline import state_backend
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import DEAD_LETTERS, FRAMES, OUT, STATUS, Message
from transom.pipeline.layout import SHARED, SINK, Layout
from transom.pipeline.merge import merged
from transom.pipeline.migration import begun_partitions, migrated_partition
from transom.pipeline.packer import Packer
from transom.pipeline.partition_state import PARTITION_CLASSES, PartitionState
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue
from transom.planner.plan import plan
from transom.runtimes.reference.history import History
from transom.state import codec
from transom.state.arena import Arena

Task = Sequence[Push]
Batch = Sequence[Task]


class Home:
    """A partition with its log and its cached state."""

    def __init__(
        self, layout: Layout, fragment: int, partition: int, folder: str | None, start: bytes | None = None
    ) -> None:
        self.partition = FragmentPartition(layout, fragment, partition)
        self.log = MemoryLog()
        self._start = start
        self._path = None if folder is None else os.path.join(folder, f"{fragment}-{partition}")
        self.cache = self._cache()

    def _cache(self) -> state_backend.StateCache:
        """In the process, or in a mapped file."""
        return MemoryCache() if self._path is None else Arena(self._path, PARTITION_CLASSES)

    def step(self, came: list[Message], disorder: Random | None) -> list[Message]:
        if disorder is None or disorder.random() > 0.1:
            return self._step(came).messages
        before, first = self.log.copy(), self.log.header() is None
        lost = self._step(came).messages
        self.log = before
        again = self._step(disorder.sample(came, len(came)))
        assert again.rebuilt or first, "what was not committed was trusted"
        forms = {query: form for query, (form, _) in self.partition.layout.answers.items()}
        assert _read(again.messages, forms) == _read(lost, forms), "a step depends on the order in which frames came"
        return again.messages

    def _step(self, came: list[Message]) -> state_backend.KeptStep:
        return state_backend.step(self.partition, self.log, self.cache, came, lambda: self._start)

    def recovered(self) -> FragmentPartition:
        """The partition with its memory, by its log alone."""
        if self.log.header() is not None:
            state_backend.recovered(self.partition, self.log, lambda: self._start)
        elif self._start is not None:
            self.partition.state = codec.decode(self._start, PARTITION_CLASSES)
        return self.partition

    def lose_memory(self) -> None:
        self.partition.close()
        self.partition = FragmentPartition(
            self.partition.layout, self.partition.fragment.number, self.partition.partition
        )
        if self._path is not None and os.path.exists(self._path):
            os.unlink(self._path)
        self.cache = self._cache()

    def save_and_read(self) -> None:
        """The memory through the codec, and a fresh partition."""
        saved = codec.encode(self.partition.state)
        self.lose_memory()
        self.cache.put(state_backend.Header.of(str(self.log.text)).token, codec.decode(saved, PARTITION_CLASSES))


def _read(messages: list[Message], forms: Mapping[str, str]) -> list[str]:
    """What matters to others: not how a status reports of time spent, nor what lies beneath a NULL.

    Lifetimes and net changes have no order, nor have signed rows of one instant: in which they come depends on where a
    memory that was made again keeps its rows.
    """
    texts = []
    for message in messages:
        if message.kind != STATUS:
            parts = []
            for p in message.opened():
                columns = [] if p.rows is None else [c.to_pylist() for c in p.rows.columns]
                rows = [repr(row) for row in zip(*columns, strict=True)]
                unordered = message.kind == OUT and forms[p.about["query"]] in ("lifetimes", "net")
                if unordered:
                    rows.sort()
                elif p.about.get("kind") == "signed":
                    arrived = [at >= p.about["departed"] for at in range(len(rows))]
                    rows = [row for *_, row in sorted(zip(arrived, columns[-1], rows, strict=True))]
                parts.append((p.about, p.rows is None, rows))
            texts.append(repr((message.fragment, message.partition, message.kind, parts)))
    return sorted(texts)


def of_consumers(partition: FragmentPartition, state: PartitionState) -> dict[str, bytes]:
    """What each of several queries remembers for itself in a partition."""
    if partition.consumer is not None:
        return {partition.query: codec.encode(state)}
    return {key: codec.encode(own) for key, own in state.consumers.items()}


class Cluster:
    """The partitions of a query, with what they begin with, if that is something. `disorder` makes the days bad."""

    def __init__(
        self,
        layout: Layout,
        disorder: Random | None = None,
        starts: Mapping[tuple[int, int], bytes] = MappingProxyType({}),
    ) -> None:
        self.layout = layout
        self._disorder = disorder
        mapped = disorder is not None and disorder.random() < 0.3
        folder = tempfile.mkdtemp(prefix="transom-buckets-") if mapped else None
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.homes = {
            (fragment.number, partition): Home(
                layout, fragment.number, partition, folder, starts.get((fragment.number, partition))
            )
            for fragment in layout.fragments
            for partition in range(layout.partitions_of(fragment.number))
        }
        self.statuses: dict[tuple[int, int], dict[str, Any]] = {}
        self.schedule: ScheduledBatch | None = None
        """Of the next batch, where work is put in order."""
        self.side: list[pa.RecordBatch] = []
        self.sharing = 0
        """How many queries share a memory budget, if anybody says so."""

    def batch(self, tasks: Batch, now: int | None = None, at_end: Sequence[str] | None = None) -> list[pa.RecordBatch]:
        """The rows of the answer that a batch of tasks brings, of a query that is alone."""
        return self.answers(tasks, now, at_end).get(SHARED, [])

    def answers(
        self, tasks: Batch, now: int | None = None, at_end: Sequence[str] | None = None
    ) -> dict[str, list[pa.RecordBatch]]:
        """The rows of the answers that a batch of tasks brings, by the keys of the queries.

        A run that follows its inputs says who is `at_end`.
        """
        messages = [
            message for sender, pushes in enumerate(tasks) for message in self._packed(sender, pushes, now, at_end)
        ]
        reported: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        for stage_number in range(1, self.layout.stage_count + 1):
            here: dict[tuple[int, int], list[Message]] = defaultdict(list)
            later = []
            for message in messages:
                if message.fragment != SINK and self.layout.stage_number[message.fragment] == stage_number:
                    here[message.fragment, message.partition].append(self._travelled(message))
                else:
                    later.append(message)
            if self._disorder is not None:
                for came in here.values():
                    self._disorder.shuffle(came)
            at_stage = [index for index in self.homes if self.layout.stage_number[index[0]] == stage_number]
            assert set(here) == set(at_stage), "every partition hears of every batch"
            for index in at_stage:
                later += self.homes[index].step(here[index], self._disorder)
            messages = later
        for message in messages:
            assert message.fragment == SINK and message.kind != FRAMES
            for part in message.opened():
                if message.kind == OUT:
                    assert part.rows is not None
                    reported[part.about["query"]].append(part.rows)
                elif message.kind == DEAD_LETTERS:
                    assert part.rows is not None
                    self.side.append(part.rows)
                elif message.kind == STATUS:
                    status = json.loads(part.about["status"])
                    self.statuses[status["fragment"], status["partition"]] = status
        return reported

    def _travelled(self, message: Message) -> Message:
        """As it comes to another process; within one it need not be packed."""
        if self._disorder is not None and self._disorder.random() < 0.3:
            return message
        return replace(message, blob=message.packed(), parts=())

    def changed(self, layout: Layout) -> Cluster:
        """The same queries but for some that have come and some that have gone."""
        states: dict[tuple[int, int], PartitionState] = {}
        for home in self.homes.values():
            partition = home.recovered()
            kept = of_consumers(partition, partition.state)
            migrated = migrated_partition(partition, layout)
            if migrated is not None:
                index, states[index] = migrated
                now = of_consumers(partition, states[index])
                assert all(now[key] == kept[key] for key in now.keys() & kept.keys()), "whoever comes, who stays stays"
        states |= begun_partitions(self.layout, layout, self.homes[self.layout.accountant, 0].partition)
        self.close()
        return Cluster(layout, self._disorder, {index: codec.encode(state) for index, state in states.items()})

    def restart(self) -> None:
        for home in self.homes.values():
            if self._disorder is None:
                home.save_and_read()
            elif self._disorder.random() < 0.8:
                home.lose_memory()

    def close(self) -> None:
        for home in self.homes.values():
            home.partition.close()

    @property
    def frontier(self) -> int | None:
        """How far all of the answer is out: all partitions agree on it."""
        (frontier,) = {status["frontier"] for status in self.statuses.values()}
        agreed: int | None = frontier
        return agreed

    def _packed(self, sender: int, pushes: Task, now: int | None, at_end: Sequence[str] | None) -> list[Message]:
        begun = bool(self.statuses) and self.frontier is not None
        # Where there is one partition it reads by itself, and sifts no row before it has it.
        sifts = len(self.homes) > 1 or (self._disorder is not None and self._disorder.random() < 0.5)
        follows, schedule = at_end is not None, None if sender else self.schedule
        packer = Packer(
            self.layout,
            sender,
            now,
            follows=follows,
            begun=begun,
            sifts=sifts,
            schedule=schedule,
            sharing=self.sharing,
        )
        if now is not None and not sender:
            for name in self.layout.sources:
                packer.hear_of(name, at_end is None or name in at_end)
        messages: list[Message] = []
        for push in pushes:
            if push.rows:
                messages += packer.take(push.name, batch_of(self.layout.sources[push.name].columns, push.rows))
            if push.end:
                packer.end(push.name)
        return messages + list(packer.finish())

    def counts(self, what: str) -> dict[str, int]:
        """Late or rejected rows of every input that has a time, all partitions together."""
        index = {"used": 0, "late": 1, "rejected": 2}[what]
        counts = {name: 0 for name, definition in self.layout.sources.items() if definition.time is not None}
        for status in self.statuses.values():
            for name in counts:
                counts[name] += status["inputs"].get(name, [0, 0, 0])[index]
                counts[name] += status["seen"].get(name, [0, 0, 0])[index] if index else 0
        return counts


def one_by_one(pushes: Sequence[Push]) -> list[Batch]:
    """A batch of one task for every push."""
    return [[[push]] for push in pushes]


def run_in_partitions(
    query: Node,
    catalogue: Catalogue,
    inputs: dict[str, Rows],
    batches: Sequence[Batch] | None = None,
    *,
    partitions: int = 2,
    threads: int = 1,
    emit: str = "changes",
    restart: Callable[[int], bool] = lambda i: False,
    unordered: frozenset[str] = frozenset(),
    disorder: Random | None = None,
    watch: Callable[[Batch, Cluster, Answer], None] = lambda batch, cluster, answer: None,
) -> History:
    """Run the batches, then end all inputs; static tables come with the first batch, in a task of their own."""
    root = plan(query, catalogue)
    layout = Layout(root, catalogue, emit, partitions, unordered, threads=threads)
    with closing(Cluster(layout, disorder)) as cluster:
        answer = Answer(isinstance(query, Stream), emit, root)
        timed = [name for name, definition in layout.sources.items() if definition.time is not None]
        static = [Push(name, inputs.get(name, []), end=True) for name in layout.sources if name not in timed]
        given = one_by_one(all_at_once(inputs)) if batches is None else batches
        todo = [[[push for push in task if push.name in timed] for task in batch] for batch in given]
        todo += [[[Push(name, [], end=True)]] for name in timed]
        todo = [[static, *todo[0]], *todo[1:]] if todo else [[static]]
        for i, batch in enumerate(todo):
            answer.add(merged(cluster.batch(batch), layout.emit_name, layout.output_schema))
            watch(batch, cluster, answer)
            if restart(i):
                cluster.restart()
        assert all(status["progress"] == FOREVER for status in cluster.statuses.values())
        used, late, rejected = (cluster.counts(what) for what in ("used", "late", "rejected"))
        for name in timed:
            assert used[name] + late[name] + rejected[name] == len(inputs.get(name, [])), (name, used, late, rejected)
        return answer.history(late=late, rejected=rejected)
