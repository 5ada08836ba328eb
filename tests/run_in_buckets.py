"""A query laid out over buckets, hosted in this process: any number of buckets, any cut of rows into batches and tasks.

What a cluster does is done here by hand: cargo is packed by tasks, carried to the buckets of one level after the other,
and what reaches the sink is read back. A restart takes the warm memory away. With `disorder` there is also what happens
on bad days: cargo comes in any order, some steps are taken twice because what came of the first was lost, and some
buckets lose their memory.
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

from tests.memory_log import MemoryLog, MemoryWarm
from tests.run_locally import Answer, Push, Rows, all_at_once, batch_of
from transom.core.time import FOREVER
from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES, BucketState
from transom.pipeline.cargo import CARGO, OUT, SIDE_ROWS, STATUS, Parcel
from transom.pipeline.layout import SHARED, SINK, Layout
from transom.pipeline.merge import merged
from transom.pipeline.migration import begun_buckets, migrated_bucket
from transom.pipeline.packer import Packer
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue
from transom.planner.plan import plan
from transom.runtimes.reference.history import History
from transom.state import codec
from transom.state.arena import Arena

Task = Sequence[Push]
Batch = Sequence[Task]


class Home:
    """A bucket with its log and its warm memory."""

    def __init__(
        self, layout: Layout, fragment: int, bucket: int, folder: str | None, start: bytes | None = None
    ) -> None:
        self.bucket = Bucket(layout, fragment, bucket)
        self.log = MemoryLog()
        self._start = start
        self._path = None if folder is None else os.path.join(folder, f"{fragment}-{bucket}")
        self.warm = self._warm()

    def _warm(self) -> keeper.Warm:
        """In the process, or in a mapped file."""
        return MemoryWarm() if self._path is None else Arena(self._path, BUCKET_CLASSES)

    def step(self, came: list[Parcel], disorder: Random | None) -> list[Parcel]:
        if disorder is None or disorder.random() > 0.1:
            return self._step(came).parcels
        before, first = self.log.copy(), self.log.header() is None
        lost = self._step(came).parcels
        self.log = before
        again = self._step(disorder.sample(came, len(came)))
        assert again.rebuilt or first, "what was not committed was trusted"
        forms = {query: form for query, (form, _) in self.bucket.layout.answers.items()}
        assert _read(again.parcels, forms) == _read(lost, forms), "a step depends on the order in which cargo came"
        return again.parcels

    def _step(self, came: list[Parcel]) -> keeper.Kept:
        return keeper.step(self.bucket, self.log, self.warm, came, lambda: self._start)

    def recalled(self) -> Bucket:
        """The bucket with its memory, by its log alone."""
        if self.log.header() is not None:
            keeper.recalled(self.bucket, self.log, lambda: self._start)
        elif self._start is not None:
            self.bucket.state = codec.decode(self._start, BUCKET_CLASSES)
        return self.bucket

    def lose_memory(self) -> None:
        self.bucket.close()
        self.bucket = Bucket(self.bucket.layout, self.bucket.fragment.number, self.bucket.bucket)
        if self._path is not None and os.path.exists(self._path):
            os.unlink(self._path)
        self.warm = self._warm()

    def save_and_read(self) -> None:
        """The memory through the codec, and a fresh bucket."""
        saved = codec.encode(self.bucket.state)
        self.lose_memory()
        self.warm.put(keeper.Header.of(str(self.log.text)).token, codec.decode(saved, BUCKET_CLASSES))


def _read(parcels: list[Parcel], forms: Mapping[str, str]) -> list[str]:
    """What matters to others: not how a status tells of time spent, nor what lies beneath a NULL.

    Lifetimes have no order: in which they come depends on where a memory that was made again keeps its rows.
    """
    found = []
    for parcel in parcels:
        if parcel.kind != STATUS:
            parts = []
            for p in parcel.opened():
                columns = [] if p.rows is None else [c.to_pylist() for c in p.rows.columns]
                rows = [repr(row) for row in zip(*columns, strict=True)]
                unordered = parcel.kind == OUT and forms[p.about["query"]] == "lifetimes"
                parts.append((p.about, p.rows is None, sorted(rows) if unordered else rows))
            found.append(repr((parcel.fragment, parcel.bucket, parcel.kind, parts)))
    return sorted(found)


def of_consumers(bucket: Bucket, state: BucketState) -> dict[str, bytes]:
    """What each of several queries remembers for itself in a bucket."""
    if bucket.consumer is not None:
        return {bucket.query: codec.encode(state)}
    return {key: codec.encode(own) for key, own in state.consumers.items()}


class Cluster:
    """The buckets of a query, with what they begin with, if that is something. `disorder` makes the days bad."""

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
            (fragment.number, bucket): Home(
                layout, fragment.number, bucket, folder, starts.get((fragment.number, bucket))
            )
            for fragment in layout.fragments
            for bucket in range(layout.buckets_of(fragment.number))
        }
        self.statuses: dict[tuple[int, int], dict[str, Any]] = {}
        self.side: list[pa.RecordBatch] = []

    def batch(self, tasks: Batch, now: int | None = None, at_end: Sequence[str] | None = None) -> list[pa.RecordBatch]:
        """The rows of the answer that a batch of tasks brings, of a query that is alone."""
        return self.answers(tasks, now, at_end).get(SHARED, [])

    def answers(
        self, tasks: Batch, now: int | None = None, at_end: Sequence[str] | None = None
    ) -> dict[str, list[pa.RecordBatch]]:
        """The rows of the answers that a batch of tasks brings, by the keys of the queries.

        A run that follows its inputs says who is `at_end`.
        """
        parcels = [
            parcel for sender, pushes in enumerate(tasks) for parcel in self._packed(sender, pushes, now, at_end)
        ]
        told: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        for level in range(1, self.layout.levels + 1):
            here: dict[tuple[int, int], list[Parcel]] = defaultdict(list)
            later = []
            for parcel in parcels:
                if parcel.fragment != SINK and self.layout.level[parcel.fragment] == level:
                    here[parcel.fragment, parcel.bucket].append(self._travelled(parcel))
                else:
                    later.append(parcel)
            if self._disorder is not None:
                for came in here.values():
                    self._disorder.shuffle(came)
            at_level = [place for place in self.homes if self.layout.level[place[0]] == level]
            assert set(here) == set(at_level), "every bucket hears of every batch"
            for place in at_level:
                later += self.homes[place].step(here[place], self._disorder)
            parcels = later
        for parcel in parcels:
            assert parcel.fragment == SINK and parcel.kind != CARGO
            for part in parcel.opened():
                if parcel.kind == OUT:
                    assert part.rows is not None
                    told[part.about["query"]].append(part.rows)
                elif parcel.kind == SIDE_ROWS:
                    assert part.rows is not None
                    self.side.append(part.rows)
                elif parcel.kind == STATUS:
                    status = json.loads(part.about["status"])
                    self.statuses[status["fragment"], status["bucket"]] = status
        return told

    def _travelled(self, parcel: Parcel) -> Parcel:
        """As it comes to another process; within one it need not be packed."""
        if self._disorder is not None and self._disorder.random() < 0.3:
            return parcel
        return replace(parcel, blob=parcel.packed(), parts=())

    def changed(self, layout: Layout) -> Cluster:
        """The same queries but for some that have come and some that have gone."""
        states: dict[tuple[int, int], BucketState] = {}
        for home in self.homes.values():
            bucket = home.recalled()
            kept = of_consumers(bucket, bucket.state)
            migrated = migrated_bucket(bucket, layout)
            if migrated is not None:
                place, states[place] = migrated
                now = of_consumers(bucket, states[place])
                assert all(now[key] == kept[key] for key in now.keys() & kept.keys()), "whoever comes, who stays stays"
        states |= begun_buckets(self.layout, layout, self.homes[self.layout.accountant, 0].bucket)
        self.close()
        return Cluster(layout, self._disorder, {place: codec.encode(state) for place, state in states.items()})

    def restart(self) -> None:
        for home in self.homes.values():
            if self._disorder is None:
                home.save_and_read()
            elif self._disorder.random() < 0.8:
                home.lose_memory()

    def close(self) -> None:
        for home in self.homes.values():
            home.bucket.close()

    @property
    def upto(self) -> int | None:
        """How far all of the answer is out: all buckets agree on it."""
        (upto,) = {status["upto"] for status in self.statuses.values()}
        known: int | None = upto
        return known

    def _packed(self, sender: int, pushes: Task, now: int | None, at_end: Sequence[str] | None) -> list[Parcel]:
        begun = bool(self.statuses) and self.upto is not None
        # Where there is one bucket it reads by itself, and sifts no row before it has it.
        sifts = len(self.homes) > 1 or (self._disorder is not None and self._disorder.random() < 0.5)
        packer = Packer(self.layout, sender, now, follows=at_end is not None, begun=begun, sifts=sifts)
        if now is not None and not sender:
            for name in self.layout.sources:
                packer.hear_of(name, at_end is None or name in at_end)
        found: list[Parcel] = []
        for push in pushes:
            if push.rows:
                found += packer.take(push.name, batch_of(self.layout.sources[push.name].columns, push.rows))
            if push.end:
                packer.end(push.name)
        return found + list(packer.finish())

    def counts(self, what: str) -> dict[str, int]:
        """Late or rejected rows of every input that has a time, all buckets together."""
        place = {"used": 0, "late": 1, "rejected": 2}[what]
        found = {name: 0 for name, definition in self.layout.sources.items() if definition.time is not None}
        for status in self.statuses.values():
            for name in found:
                found[name] += status["inputs"].get(name, [0, 0, 0])[place]
                found[name] += status["seen"].get(name, [0, 0, 0])[place] if place else 0
        return found


def one_by_one(pushes: Sequence[Push]) -> list[Batch]:
    """A batch of one task for every push."""
    return [[[push]] for push in pushes]


def run_in_buckets(
    query: Node,
    catalogue: Catalogue,
    inputs: dict[str, Rows],
    batches: Sequence[Batch] | None = None,
    *,
    buckets: int = 2,
    threads: int = 1,
    emit: str = "changes",
    restart: Callable[[int], bool] = lambda i: False,
    unordered: frozenset[str] = frozenset(),
    disorder: Random | None = None,
    watch: Callable[[Batch, Cluster, Answer], None] = lambda batch, cluster, answer: None,
) -> History:
    """Run the batches, then end all inputs; static tables come with the first batch, in a task of their own."""
    root = plan(query, catalogue)
    layout = Layout(root, catalogue, emit, buckets, unordered, threads=threads)
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
