"""What a stateful stage does with the cargo of a bucket: a step with its memory, and what goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pandas as pd

from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES
from transom.pipeline.bucket_status import kept_in
from transom.pipeline.cargo import CARGO, SPLITS, STATUS, CargoPart, Parcel
from transom.pipeline.exhausted import told_when_exhausted
from transom.pipeline.layout import SINK
from transom.runtimes.spark.answer_parts import written
from transom.runtimes.spark.cargo_rows import CARGO_SCHEMA, cargo_batch
from transom.runtimes.spark.handover import memory_at
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.log_names import files_of
from transom.runtimes.spark.spark_log import SparkLog
from transom.runtimes.spark.state_files import StateFiles
from transom.runtimes.spark.stretch import Inputs, Stretch
from transom.runtimes.spark.worker_errors import told_to_the_driver
from transom.state.arena import Arena

_BUCKETS: dict[tuple[str, int, int], tuple[Bucket, keeper.Warm]] = {}
"""Buckets that this process has hosted, by run, fragment and number: their kernels need not be built again."""

MOST_BUCKETS: Final = 64

READERS: Final = 2
"""So many threads read ahead of a bucket that reads by itself."""


class Hosting:
    """The work of a host."""

    def __init__(self, hosted: Hosted) -> None:
        self._host = hosted
        self._labels = Labels(hosted.layout)
        self._inputs = Inputs(hosted.reading)

    def take(self, label: int, rows: Iterator[pd.DataFrame], entries: Any) -> pd.DataFrame:
        """The cargo of a bucket, or what only passes this level; what goes on from here. `entries` is Spark's state."""
        log = SparkLog(entries, self._files(label))
        fragment, number = self._labels.place(self._host.level, label)
        if fragment == SINK:
            columns = ["fragment", "bucket", "kind", "blob"]
            return self._frame([Parcel(*row) for frame in rows for row in frame[columns].itertuples(index=False)])
        with told_to_the_driver():
            bucket, warm = self._bucket(fragment, number, log)
            came, gone = self._unloaded(fragment, number, rows)
            begin = partial(memory_at, self._host.folder if self._host.begins else None, fragment, number)
            try:
                with told_when_exhausted(partial(kept_in, bucket)):
                    kept = keeper.step(bucket, log, warm, came, begin, partial(written, self._host.writers))
            finally:
                bucket.close()  # buckets lie here for long, and nobody tells when they are needed no more
            bucket.state = bucket.start()  # what was put down belongs to whoever takes it next
            parcels = [*gone, *kept.parcels]
        cost = {"fragment": fragment, "bucket": number, "written": kept.written, "rebuilt": kept.rebuilt}
        told = Parcel(SINK, number, STATUS, parts=(CargoPart({"kind": "kept", "kept": cost}),))
        return self._frame([*parcels, told])

    def _files(self, label: int) -> StateFiles:
        host = self._host
        return StateFiles(None if host.folder is None else files_of(host.folder, host.level, label), host.least)

    def _unloaded(self, fragment: int, number: int, rows: Iterator[pd.DataFrame]) -> tuple[list[Parcel], list[Parcel]]:
        """What came for a bucket, what it is to read by itself included; and what of that goes past it."""
        came: list[Parcel] = []
        gone: list[Parcel] = []
        for kind, blob in (row for frame in rows for row in zip(frame["kind"], frame["blob"], strict=True)):
            if kind == SPLITS:
                for parcel in self._inputs.parcels(Stretch.of(blob), READERS):
                    (came if parcel.kind == CARGO else gone).append(parcel)
            else:
                came.append(Parcel(fragment, number, CARGO, self._host.depot.pick_up(kind, blob)))
        return came, gone

    def _bucket(self, fragment: int, number: int, log: SparkLog) -> tuple[Bucket, keeper.Warm]:
        place = self._host.run, fragment, number
        if place not in _BUCKETS:
            known = log.header()
            if known is not None:
                log.tidy(keeper.Header.of(known).entries())
            while len(_BUCKETS) >= MOST_BUCKETS:
                del _BUCKETS[next(iter(_BUCKETS))]
            name, depot = f"{fragment}-{number}", self._host.depot
            on_disk = os.path.join(depot.warm_folder(), self._host.run)
            in_memory = on_disk if depot.memory is None else os.path.join(depot.memory, self._host.run)
            warm = Arena(os.path.join(in_memory, name), BUCKET_CLASSES, os.path.join(on_disk, name))
            home = os.path.join(on_disk, f"{name}.spill")
            _BUCKETS[place] = Bucket(self._host.layout, fragment, number, home), warm
        return _BUCKETS[place]

    def _frame(self, parcels: list[Parcel]) -> pd.DataFrame:
        batch = cargo_batch(parcels, self._labels, self._host.level + 1, self._host.depot)
        return pd.DataFrame({name: batch.column(name).to_pandas() for name in CARGO_SCHEMA.names})
