"""A standing query on Spark: cargo from its sources, through a stateful stage for every level, to its sink."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.connectors.source import Source
from transom.core.errors import SparkError, TransomError
from transom.pipeline.cargo import OUT, SIDE_ROWS, CargoPart, unpack
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.pipeline.side import SIDE
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import OPTIONS
from transom.program.planned import Planned
from transom.program.status import Status
from transom.runtimes.spark.cargo_rows import CARGO_FIELDS
from transom.runtimes.spark.cargo_source import Reading, cargo_source
from transom.runtimes.spark.host import Host
from transom.runtimes.spark.pump import Pump
from transom.runtimes.spark.statuses import Statuses
from transom.runtimes.spark.worker_errors import read_back

Definition = StreamDefinition | TableDefinition

FOLLOW_EVERY: Final = "100 milliseconds"
"""How often a query that follows its inputs looks for more."""


_LOOK: Final = 0.05


class SparkQuery:
    """A query that can be run, asked how it is doing, and taken further as a streaming DataFrame.

    `frames` are the inputs that are DataFrames; `open_source` opens those whose rows are in this process.
    """

    def __init__(
        self,
        planned: Planned,
        spark: SparkSession,
        open_source: Callable[[Definition], Source],
        open_sink: Callable[[pa.Schema, int], Sink],
        *,
        frames: Mapping[str, DataFrame] | None = None,
        open_side: Callable[[pa.Schema, int], Sink] | None = None,
        emit: str = "changes",
        follow: bool = False,
        checkpoint: str | None = None,
        name: str = "query",
        max_files: int | None = None,
        watch: Callable[[SparkQuery], None] = lambda query: None,
    ) -> None:
        assert planned.root is not None
        self.name = name
        self.spark = spark
        self.follow = follow
        buckets = int(spark.conf.get("spark.sql.shuffle.partitions") or "2")
        self.layout = Layout(planned.root, planned.catalogue, emit, buckets)
        self.schema = self.layout.output_schema
        self._planned = planned
        self._frames = dict(frames or {})
        self._open_source = open_source
        self._open_sink, self._open_side = open_sink, open_side
        self._sink: Sink | None = None
        self._side: Sink | None = None
        self._checkpoint = checkpoint
        self._scratch: str | None = None
        self._max_rows: int = planned.catalogue.options.get("batch_rows", OPTIONS["batch_rows"].default)
        self._max_files = max_files
        self._statuses = Statuses(self.layout, name)
        self._watch = watch
        self._pumps: list[Pump] = []
        self._started: StreamingQuery | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    # --- running -----------------------------------------------------------------------------------------------------

    def start(self) -> StreamingQuery:
        """Begin; the query goes on in the background."""
        self._sinks()
        writer = self.cargo().writeStream.foreachBatch(self._batch).queryName(self._run_name())
        writer = writer.option("checkpointLocation", os.path.join(self._folder(), "spark")).outputMode("append")
        trigger: dict[str, Any] = {"processingTime": FOLLOW_EVERY} if self.follow else {"availableNow": True}
        self._started = writer.trigger(**trigger).start()
        return self._started

    @property
    def active(self) -> bool:
        return self._started is not None and self._started.isActive

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long; whether it has come. What went wrong is raised."""
        assert self._started is not None
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            for pump in self._pumps:
                if pump.error is not None:
                    raise pump.error
            if not self._started.isActive:
                self._raise_what_went_wrong()
                return True
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_LOOK)

    def run(self) -> None:
        """To the end of the input, which must have one."""
        self.start()
        try:
            self.wait()
        except BaseException:
            self.abandon()
            raise
        self.close()

    def stop(self) -> None:
        if self._started is not None:
            self._started.stop()

    def close(self) -> None:
        """Everything that was written is seen."""
        self.stop()
        for sink in self._sinks():
            sink.close()
        self._tidy()

    def abandon(self) -> None:
        self.stop()
        for sink in (self._sink, self._side):
            if sink is not None:
                sink.abandon()
        self._tidy()

    @property
    def finished(self) -> bool:
        return self._started is not None and not self._started.isActive

    @property
    def in_memory(self) -> bool:
        return isinstance(self._sinks()[0], MemorySink)

    @property
    def sink(self) -> Sink:
        return self._sinks()[0]

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        sink = self._sinks()[0]
        assert isinstance(sink, MemorySink)
        return sink.table()

    def status(self) -> Status:
        """How it is doing, as of the last batch."""
        with self._lock:
            return self._statuses.status()

    @property
    def statuses(self) -> Statuses:
        return self._statuses

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Spark's own progress events, the last hundred or so."""
        return [] if self._started is None else list(self._started.recentProgress)

    # --- the plan on Spark -------------------------------------------------------------------------------------------

    def cargo(self) -> DataFrame:
        """What reaches the sink, packed."""
        frame = self._sources()
        run = uuid.uuid4().hex
        for level in range(1, self.layout.levels + 1):
            host = Host(self.layout, level, run)
            frame = frame.groupBy("label").transformWithStateInPandas(host, CARGO_FIELDS, "append", "none")
        return frame

    def _sources(self) -> DataFrame:
        own = [name for name in self.layout.sources if name not in self._frames]
        spools = {}
        for name in own:
            definition = self.layout.sources[name]
            source = self._open_source(definition)
            if not hasattr(source, "reach"):
                folder = os.path.join(self._folder(), "rows", name)
                self._pumps.append(Pump(source, folder, definition, growing=self.follow))
                spools[name] = folder
        reading = Reading(
            self.layout,
            tuple(own),
            spools,
            tasks=self.spark.sparkContext.defaultParallelism,
            max_rows=self._max_rows,
            max_files=self._max_files,
            follow=self.follow,
        )
        called = f"transom_{uuid.uuid4().hex}"
        self.spark.dataSource.register(cargo_source(called, reading))
        return self.spark.readStream.format(called).load()

    # --- a batch -----------------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int) -> None:
        """What a batch brought to the sink."""
        rows = frame.select("kind", "blob").toArrow()
        told: list[pa.RecordBatch] = []
        statuses: list[CargoPart] = []
        sink, *side = self._sinks()
        for kind, blob in zip(rows.column("kind").to_pylist(), rows.column("blob"), strict=True):
            for part in unpack(blob.as_buffer()):
                if kind == OUT:
                    told.append(part.rows)
                elif kind == SIDE_ROWS:
                    for each in side:
                        each.write(part.rows)
                else:
                    statuses.append(part)
        with self._lock:
            self._statuses.take(statuses)
        if self.layout.emit_name == "latest":
            sink.replace(merged(told, "latest", self.schema))
        elif told:
            sink.write(merged(told, self.layout.emit_name, self.schema))
        for each in (sink, *side):
            each.commit()
        self._watch(self)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _sinks(self) -> list[Sink]:
        if self._sink is None:
            self._sink = self._open_sink(self.schema, 0)
            self._side = None if self._open_side is None else self._open_side(SIDE, 0)
        return [self._sink] if self._side is None else [self._sink, self._side]

    def _folder(self) -> str:
        if self._checkpoint is not None:
            return self._checkpoint
        if self._scratch is None:
            self._scratch = tempfile.mkdtemp(prefix="transom-query-")
        return self._scratch

    def _tidy(self) -> None:
        for pump in self._pumps:
            pump.stop()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _run_name(self) -> str:
        return f"{self.name}-{uuid.uuid4().hex[:8]}"

    def _raise_what_went_wrong(self) -> None:
        assert self._started is not None
        error = self._started.exception()
        if error is not None:
            raise self._told(error)

    def _told(self, error: Exception) -> TransomError:
        found = read_back(str(error))
        if found is None:
            found = SparkError(f"Spark gave the query up: {str(error).splitlines()[0]}", remedy="the log tells more")
        found.query = self._planned.statement.text
        return found
