"""A query laid out over buckets, hosted in this process: any number of buckets, any cut of rows into batches and tasks.

What a cluster does is done here by hand: cargo is packed by tasks, carried to the buckets of one level after the other,
and what reaches the sink is read back. A restart writes and reads the memory of every bucket.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tests.run_locally import Answer, Push, Rows, all_at_once, batch_of
from transom.core.time import FOREVER
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES
from transom.pipeline.cargo import CARGO, OUT, SIDE_ROWS, STATUS, Parcel, unpack
from transom.pipeline.layout import SINK, Layout
from transom.pipeline.merge import merged
from transom.pipeline.packer import Packer
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue
from transom.planner.plan import plan
from transom.runtimes.reference.history import History
from transom.state import codec


class Cluster:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.buckets = {
            (fragment.number, bucket): Bucket(layout, fragment.number, bucket)
            for fragment in layout.fragments
            for bucket in range(layout.buckets_of(fragment.number))
        }
        self.statuses: dict[tuple[int, int], dict[str, Any]] = {}
        self.side: list[pa.RecordBatch] = []

    def batch(self, tasks: Sequence[Sequence[Push]]) -> list[pa.RecordBatch]:
        """The rows of the answer that a batch of tasks brings."""
        parcels = [parcel for sender, pushes in enumerate(tasks) for parcel in self._packed(sender, pushes)]
        told: list[pa.RecordBatch] = []
        for level in range(1, self.layout.levels + 1):
            here: dict[tuple[int, int], list[bytes]] = defaultdict(list)
            later = []
            for parcel in parcels:
                if parcel.fragment != SINK and self.layout.level[parcel.fragment] == level:
                    here[parcel.fragment, parcel.bucket].append(parcel.blob)
                else:
                    later.append(parcel)
            at_level = [place for place in self.buckets if self.layout.level[place[0]] == level]
            assert set(here) == set(at_level), "every bucket hears of every batch"
            parcels = later + [parcel for place in at_level for parcel in self.buckets[place].step(here[place])]
        for parcel in parcels:
            assert parcel.fragment == SINK and parcel.kind != CARGO
            for part in unpack(parcel.blob):
                if parcel.kind == OUT:
                    assert part.rows is not None
                    told.append(part.rows)
                elif parcel.kind == SIDE_ROWS:
                    assert part.rows is not None
                    self.side.append(part.rows)
                elif parcel.kind == STATUS:
                    status = json.loads(part.about["status"])
                    self.statuses[status["fragment"], status["bucket"]] = status
        return told

    def restart(self) -> None:
        for place, bucket in list(self.buckets.items()):
            saved = codec.encode(bucket.state)
            fresh = Bucket(self.layout, *place)
            fresh.state = codec.decode(saved, BUCKET_CLASSES)
            self.buckets[place] = fresh

    def _packed(self, sender: int, pushes: Sequence[Push]) -> list[Parcel]:
        packer = Packer(self.layout, sender)
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


def run_in_buckets(
    query: Node,
    catalogue: Catalogue,
    inputs: dict[str, Rows],
    pushes: Sequence[Push] | None = None,
    *,
    buckets: int = 2,
    emit: str = "changes",
    tasks: Callable[[Push], Sequence[Push]] = lambda push: [push],
    restart: Callable[[int], bool] = lambda i: False,
) -> History:
    """A batch for every push, whose rows are read by the tasks that `tasks` makes of it."""
    layout = Layout(plan(query, catalogue), catalogue, emit, buckets)
    cluster = Cluster(layout)
    answer = Answer(isinstance(query, Stream), emit)
    todo = [push for push in (all_at_once(inputs) if pushes is None else pushes) if push.name in layout.sources]
    timed = [name for name, definition in layout.sources.items() if definition.time is not None]
    todo = [push for push in todo if push.name in timed] + [Push(name, [], end=True) for name in timed]
    static = [Push(name, inputs.get(name, []), end=True) for name in layout.sources if name not in timed]
    for i, push in enumerate(todo or [None]):
        stretches = [] if push is None else [[part] for part in tasks(push)]
        if i == 0:
            stretches += [static]
        answer.add(merged(cluster.batch(stretches), layout.emit_name, layout.output_schema))
        if restart(i):
            cluster.restart()
    assert all(status["progress"] == FOREVER for status in cluster.statuses.values())
    used, late, rejected = (cluster.counts(what) for what in ("used", "late", "rejected"))
    for name in timed:
        assert used[name] + late[name] + rejected[name] == len(inputs.get(name, [])), (name, used, late, rejected)
    return answer.history(late=late, rejected=rejected)
