"""What a stateful stage does with the cargo of a bucket: a step with its memory, and what goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import pandas as pd

from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES
from transom.pipeline.bucket_status import kept_in
from transom.pipeline.cargo import STATUS, CargoPart, Parcel, pack
from transom.pipeline.exhausted import told_when_exhausted
from transom.pipeline.layout import SINK
from transom.runtimes.spark.answer_parts import written
from transom.runtimes.spark.cargo_rows import CARGO_SCHEMA, cargo_batch
from transom.runtimes.spark.handover import memory_at
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.worker_errors import told_to_the_driver
from transom.state.arena import Arena

if TYPE_CHECKING:
    from transom.runtimes.spark.host import Host

_BUCKETS: dict[tuple[str, int, int], tuple[Bucket, keeper.Warm]] = {}
"""Buckets that this process has hosted, by run, fragment and number: their kernels need not be built again."""

MOST_BUCKETS: Final = 64


class Hosting:
    """The work of a host; `log` is that of the bucket at hand."""

    def __init__(self, host: Host, log: keeper.Log, labels: Labels) -> None:
        self._host = host
        self._log = log
        self._labels = labels

    def take(self, label: int, rows: Iterator[pd.DataFrame]) -> pd.DataFrame:
        """The cargo of a bucket, or what only passes this level; what goes on from here."""
        fragment, number = self._labels.place(self._host.level, label)
        if fragment == SINK:
            columns = ["fragment", "bucket", "kind", "blob"]
            return self._frame([Parcel(*row) for frame in rows for row in frame[columns].itertuples(index=False)])
        with told_to_the_driver():
            bucket, warm = self._bucket(fragment, number)
            cargo = [row for frame in rows for row in zip(frame["kind"], frame["blob"], strict=True)]
            blobs = [self._host.depot.pick_up(kind, blob) for kind, blob in cargo]
            begin = partial(memory_at, self._host.memories, fragment, number)
            try:
                with told_when_exhausted(partial(kept_in, bucket)):
                    kept = keeper.step(bucket, self._log, warm, blobs, begin)
            finally:
                bucket.close()  # buckets lie here for long, and nobody tells when they are needed no more
            bucket.state = bucket.start()  # what was put down belongs to whoever takes it next
            parcels = list(written(self._host.writers, kept.parcels))
        cost = {"fragment": fragment, "bucket": number, "written": kept.written, "rebuilt": kept.rebuilt}
        told = Parcel(SINK, number, STATUS, pack([CargoPart({"kind": "kept", "kept": cost})]))
        return self._frame([*parcels, told])

    def _bucket(self, fragment: int, number: int) -> tuple[Bucket, keeper.Warm]:
        place = self._host.run, fragment, number
        if place not in _BUCKETS:
            while len(_BUCKETS) >= MOST_BUCKETS:
                del _BUCKETS[next(iter(_BUCKETS))]
            folder = os.path.join(self._host.depot.warm_folder(), self._host.run)
            warm = Arena(os.path.join(folder, f"{fragment}-{number}"), BUCKET_CLASSES)
            home = os.path.join(folder, f"{fragment}-{number}.spill")
            _BUCKETS[place] = Bucket(self._host.layout, fragment, number, home), warm
        return _BUCKETS[place]

    def _frame(self, parcels: list[Parcel]) -> pd.DataFrame:
        batch = cargo_batch(parcels, self._labels, self._host.level + 1, self._host.depot)
        return pd.DataFrame({name: batch.column(name).to_pandas() for name in CARGO_SCHEMA.names})
