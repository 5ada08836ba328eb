"""A level of the plan as a stateful stage of Spark: every group of cargo is a bucket, whose memory Spark keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from transom.connectors.connector import TaskWriter
from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES
from transom.pipeline.bucket_status import kept_in
from transom.pipeline.cargo import STATUS, CargoPart, Parcel, pack
from transom.pipeline.exhausted import told_when_exhausted
from transom.pipeline.layout import SINK, Layout
from transom.runtimes.spark.answer_parts import written
from transom.runtimes.spark.cargo_rows import CARGO_SCHEMA, cargo_batch
from transom.runtimes.spark.depot import Depot
from transom.runtimes.spark.handover import HEADER, LOG, memory_at
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.worker_errors import told_to_the_driver
from transom.state.arena import Arena

_BUCKETS: dict[tuple[str, int, int], tuple[Bucket, keeper.Warm]] = {}
"""Buckets that this process has hosted, by run, fragment and number: their kernels need not be built again."""


MOST_BUCKETS: Final = 64


class Host(StatefulProcessor):
    """`run` names the run of the query, so that a worker does not confuse one with another.

    Rows of answers that have `writers` are written here, and only what these tell of them goes on. In the folder
    `memories` is what buckets begin with.
    """

    def __init__(
        self,
        layout: Layout,
        level: int,
        run: str,
        depot: Depot,
        writers: Mapping[str, TaskWriter] = MappingProxyType({}),
        memories: str | None = None,
    ) -> None:
        self._layout = layout
        self._level = level
        self._run = run
        self._depot = depot
        self._writers = dict(writers)
        self._memories = memories

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._log = SparkLog(handle)
        self._labels = Labels(self._layout)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        fragment, number = self._labels.place(self._level, int(key[0]))
        if fragment == SINK:
            for frame in rows:
                parcels = [
                    Parcel(*row) for row in frame[["fragment", "bucket", "kind", "blob"]].itertuples(index=False)
                ]
                yield self._frame(parcels)
            return
        with told_to_the_driver():
            bucket, warm = self._bucket(fragment, number)
            cargo = [row for frame in rows for row in zip(frame["kind"], frame["blob"], strict=True)]
            blobs = [self._depot.pick_up(kind, blob) for kind, blob in cargo]
            begin = partial(memory_at, self._memories, fragment, number)
            try:
                with told_when_exhausted(partial(kept_in, bucket)):
                    kept = keeper.step(bucket, self._log, warm, blobs, begin)
            finally:
                bucket.close()  # buckets lie here for long, and nobody tells when they are needed no more
            bucket.state = bucket.start()  # what was put down belongs to whoever takes it next
            parcels = list(written(self._writers, kept.parcels))
        cost = {"fragment": fragment, "bucket": number, "written": kept.written, "rebuilt": kept.rebuilt}
        told = Parcel(SINK, number, STATUS, pack([CargoPart({"kind": "kept", "kept": cost})]))
        yield self._frame([*parcels, told])

    def close(self) -> None:
        pass

    def _bucket(self, fragment: int, number: int) -> tuple[Bucket, keeper.Warm]:
        place = self._run, fragment, number
        if place not in _BUCKETS:
            while len(_BUCKETS) >= MOST_BUCKETS:
                del _BUCKETS[next(iter(_BUCKETS))]
            folder = os.path.join(self._depot.warm_folder(), self._run)
            warm = Arena(os.path.join(folder, f"{fragment}-{number}"), BUCKET_CLASSES)
            home = os.path.join(folder, f"{fragment}-{number}.spill")
            _BUCKETS[place] = Bucket(self._layout, fragment, number, home), warm
        return _BUCKETS[place]

    def _frame(self, parcels: list[Parcel]) -> pd.DataFrame:
        batch = cargo_batch(parcels, self._labels, self._level + 1, self._depot)
        return pd.DataFrame({name: batch.column(name).to_pandas() for name in CARGO_SCHEMA.names})


class SparkLog:
    """The log of the bucket at hand, in Spark's state: one variable, because each costs every batch some time."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getMapState(LOG, "entry long, part int", "blob binary")

    def header(self) -> str | None:
        found = self._entries.getValue(HEADER)
        return None if found is None else bytes(found[0]).decode()

    def write_header(self, header: str) -> None:
        self._entries.updateValue(HEADER, (header.encode(),))

    def read(self, entry: int, part: int) -> bytes:
        found = self._entries.getValue((entry, part))
        assert found is not None
        return bytes(found[0])

    def write(self, entry: int, part: int, blob: bytes) -> None:
        self._entries.updateValue((entry, part), (blob,))

    def remove(self, entry: int, part: int) -> None:
        self._entries.removeKey((entry, part))
