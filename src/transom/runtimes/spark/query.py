"""A standing query on Spark: frames from its sources, through a stateful stage for every stage of the plan, to its
sink."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from transom.connectors.connector import Resume, Sink, TaskWriter
from transom.core.errors import SparkError, TransomError, UnlikeSparkError
from transom.core.location import absolute_path, is_remote, path_of
from transom.pipeline.consumer import Consumer
from transom.pipeline.frames import STATUS
from transom.pipeline.layout import SHARED, Layout
from transom.planner.multiway_choice import read_decisions, written
from transom.program.batch_size import FIRST_ROWS
from transom.program.run import QuerySpec
from transom.program.status import Status
from transom.runtimes.spark.checkpoint import QueryCheckpoint, damage
from transom.runtimes.spark.counted_rows import count_rows
from transom.runtimes.spark.dataframe_stages import answer_rows, from_sources, through_stages
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.guard import Guard, free_name
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.log_names import STATE
from transom.runtimes.spark.prefetcher import Prefetcher
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.query_folders import QueryFolders
from transom.runtimes.spark.query_inputs import QueryInputs
from transom.runtimes.spark.query_sinks import Sinks, SinkSpec, frames_of
from transom.runtimes.spark.savepoint import Stop
from transom.runtimes.spark.settings import settings_of
from transom.runtimes.spark.statuses import Statuses
from transom.runtimes.spark.task_split import TaskReading
from transom.runtimes.spark.temporary import TemporaryFolder
from transom.runtimes.spark.worker_errors import cause, read_back

FOLLOW_EVERY: Final = "100 milliseconds"
"""How often Spark looks for more in the DataFrames of a query that follows them; our own source waits by itself."""

_POLL: Final = 0.05


@dataclass(frozen=True)
class Savepoint:
    """What a query takes over from the one that it resumes from: where that stopped, if it had done a batch at all.

    In the folders may be rows that were read ahead, and cached state; they are removed in the end.
    """

    stop: Stop | None
    prefetchers: dict[str, Prefetcher]
    folders: list[TemporaryFolder]


class SparkQuery:
    """A query that can be run, asked how it is doing, and taken further as a streaming DataFrame.

    What it reads, where its answers go and what folders it has is known to objects of their own. File sinks are written
    by the tasks (`Sink.tasks`); with `on_batch` the answer goes to that function and to no sink.
    """

    def __init__(
        self,
        spec: QuerySpec,
        context: QueryContext,
        *,
        watch: Callable[[SparkQuery], None] = lambda query: None,
        consumers: tuple[Consumer, ...] = (),
        savepoint: Savepoint | None = None,
    ) -> None:
        self.spec, self._context = spec, context
        self.name = spec.name
        self.spark = context.spark
        self.ending = context.run_options.ending
        self._folders = QueryFolders(context.spark, context.checkpoint, [] if savepoint is None else savepoint.folders)
        # A query that goes on is planned as it was, whatever speaks for another plan by now.
        decided = self._folders.decisions()
        self._planned = spec.planned.decided(read_decisions(decided)) if decided else spec.planned
        root, catalogue = self._planned.root, self._planned.catalogue
        assert root is not None
        self._inputs = QueryInputs(root, context, {} if savepoint is None else savepoint.prefetchers)
        self._stop = None if savepoint is None else savepoint.stop
        laid_out = partial(
            Layout,
            root,
            catalogue,
            spec.emit,
            unordered=frozenset(self._inputs.frames),
            open=context.open,
            consumers=consumers,
            # One task is one partition, as in one process, unless more are asked for.
            threads=self._folders.threads() or catalogue.options.get("partitions") or 1,
        )
        partitions = self._folders.reached().partitions if self._stop is None else self._stop.partitions
        self.layout = laid_out(partitions or self._inputs.tasks(catalogue, laid_out))
        self.schema = self.layout.output_schema
        self._opened: Sinks | None = None
        size = self._inputs.batch_size(self.layout, self._written_by_tasks)
        self._first_rows = FIRST_ROWS if size is None else size.rows
        self._statuses = Statuses(self.layout, self.name, size)
        if self._folders.status_file is not None:
            self._statuses.recover(self._folders.status_file)
            self._statuses.resume(Feedback.read(self._folders.kept))
        self._watch = watch
        self._started: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self._local_shuffle = LocalShuffle()
        self.guard = Guard()
        self._lock = threading.Lock()
        self._closing = False
        self._sharing = 0
        self._earlier: list[Any] = []
        self._number = 0
        """Of the batch at hand."""
        self._began = 0.0

    # --- running -----------------------------------------------------------------------------------------------------

    def start(self) -> StreamingQuery:
        """Begin; the query goes on in the background."""
        checkpoint = QueryCheckpoint(self._folders.kept)
        checkpoint.claim(self.layout.fingerprint, written(self._planned.decisions), self.layout.threads)
        if not self._closing:
            self._inputs.reject_grown(self.layout, checkpoint)
        writers = self._sinks().writers()
        if self._inputs.alone:
            self._local_shuffle = self._folders.local_shuffle()
        feedback = replace(Feedback.read(self._folders.kept), stopping=False, sharing=self._sharing)
        feedback.write(self._folders.near)
        messages = self.messages(self._local_shuffle, writers, self._folders.kept)
        writer = (
            messages.writeStream.foreachBatch(self.guard.around(self._batch))
            .queryName(free_name(self.spark, self.name))
            .option("checkpointLocation", checkpoint.uri)
            .outputMode("append")
        )
        trigger: dict[str, Any] = {"availableNow": True}
        if self.ending == "stopped":
            trigger = {"processingTime": FOLLOW_EVERY if self._inputs.frames else "0 seconds"}
        try:
            with settings_of(self.spark, self.layout.partitions):
                self._started = writer.trigger(**trigger).start()
        except Exception as error:  # of PySpark, or of the JVM itself
            raise self._as_ours(error) from None
        return self._started

    @property
    def active(self) -> bool:
        return self._started is not None and self._started.isActive

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long; whether it has come. What went wrong is raised."""
        assert self._started is not None
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            self._inputs.raise_what_went_wrong()
            if not self._started.isActive:
                self._raise_what_went_wrong()
                return True
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL)

    def run(self) -> None:
        """Run to the end of the input, which must have one."""
        try:
            self.start()
            while not self.ended():
                time.sleep(_POLL)
        except BaseException:
            self.abort()
            raise
        self.close()

    def fail(self, error: BaseException) -> None:
        """End the query: it says why when it is asked whether it has ended."""
        self._failure = error

    def ended(self) -> bool:
        """Whether it has come to the end that it is to have; what went wrong is raised."""
        if self._failure is not None:
            raise self._failure
        try:
            if not self.wait(0):
                return False
        except UnlikeSparkError:  # the batch was not done, and Spark knows which files it has
            self._inputs.left_to_spark = True
            self._start_again()
            return False
        if self._inputs.frames and not self._closing and self.ending == "end":
            # Spark does not tell when a DataFrame is read to its end; so once more, to say so.
            self._closing = True
            assert self._started is not None
            self._started.awaitTermination()  # its name is free then
            self._start_again()
            return False
        return True

    def _start_again(self) -> None:
        self._earlier = self.progress
        self.start()

    def finish(self) -> None:
        """Stop after the batch that is under way."""
        self.guard.request_stop()
        self._let_the_source_go()
        while self.active and not self.guard.holding and (self.guard.busy or self._triggered):
            time.sleep(_POLL)
        self.stop()
        if self._started is not None:
            self._raise_what_went_wrong()

    @property
    def _triggered(self) -> bool:
        """Whether Spark is at work on a batch, its end included."""
        return self._started is not None and bool(self._started.status["isTriggerActive"])

    def stop(self) -> None:
        if self._started is not None:
            self._let_the_source_go()
            self._started.stop()

    def _let_the_source_go(self) -> None:
        """Spark does not stop while the source is waiting for more."""
        if self.active:
            with self._lock:
                self._statuses.stopping = True
                replace(Feedback.read(self._folders.near), stopping=True).write(self._folders.near)

    def share_budget(self, sharing: int) -> None:
        """From its next batch on so many queries of the run share a memory budget."""
        with self._lock:
            self._sharing = sharing
            if self.active:
                replace(Feedback.read(self._folders.near), sharing=sharing).write(self._folders.near)

    def close(self) -> None:
        """Everything that was written is seen."""
        self.stop()
        for sink in self._sinks().all:
            sink.close()
        self._tidy()

    def abort(self) -> None:
        self.stop()
        for sink in [] if self._opened is None else self._opened.all:
            sink.abort(self._number)
        self._tidy()

    @property
    def finished(self) -> bool:
        return self._started is not None and not self._started.isActive

    @property
    def in_memory(self) -> bool:
        return self.sink.collected() is not None

    @property
    def sink(self) -> Sink:
        (answer,) = self._sinks().answers.values()
        return answer

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        table = self.sink.collected()
        assert table is not None
        return table

    def status(self, lately: float = 0.0) -> Status:
        """How it is doing, as of the last batch, sizes too."""
        with self._lock:
            return self._statuses.status()

    @property
    def checkpoint(self) -> str | None:
        """The folder of its checkpoint, if the run has one."""
        return self._context.checkpoint

    @property
    def batches_before(self) -> int:
        """How many batches the query had that this one resumes from, and all before it."""
        return 0 if self._stop is None else self._stop.batches

    @property
    def statuses(self) -> Statuses:
        return self._statuses

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Spark's own progress events, the last hundred or so of every start."""
        return [*self._earlier, *([] if self._started is None else self._started.recentProgress)]

    def batch_seconds(self, number: int) -> float | None:
        """How long a batch took, by Spark's own account; None as long as it has none. To wait for rows is no work."""
        last = None if self._started is None else self._started.lastProgress
        if last is None or last["batchId"] < number:
            return None
        batches = [last] if last["batchId"] == number else self.progress
        event = next((each for each in batches if each["batchId"] == number), None)
        if event is None:
            return None
        spent: dict[str, float] = event["durationMs"]
        waited = spent.get("latestOffset", 0) if self.ending == "stopped" else 0
        return (spent.get("triggerExecution", 0) - waited) / 1000

    def dataframe(self) -> DataFrame:
        """The answer as a streaming DataFrame, to go on with; rejected rows are counted, and not in it."""
        if self._inputs.alone and not self._inputs.frames and "tasks" not in self.layout.catalogue.options:
            # Its checkpoint is the user's: how much lies there now must not decide over what goes on from it.
            self.layout = replace(self.layout, partitions=1)
        return answer_rows(self.messages(LocalShuffle()), self.schema)

    # --- the plan on Spark -------------------------------------------------------------------------------------------

    def messages(
        self,
        local_shuffle: LocalShuffle,
        writers: Mapping[str, TaskWriter] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> DataFrame:
        """What reaches the sink, packed; tasks write the rows of answers that have `writers` on the way.

        `checkpoint` is its folder, if the batches are ours.
        """
        folder = None if checkpoint is None else absolute_path(checkpoint)
        reading = self._reading(local_shuffle, folder)
        # Whoever takes the answer further runs it by himself, and could not have it begin again with another reader.
        files = {} if folder is None else self._inputs.files(self.layout)
        messages = from_sources(self.spark, reading, self._inputs.frames, files)
        if folder is not None and not is_remote(folder):
            os.makedirs(os.path.join(folder, STATE), exist_ok=True)
        return through_stages(messages, reading, writers, folder, begins=self._stop is not None)

    def _reading(self, local_shuffle: LocalShuffle, checkpoint: str | None) -> TaskReading:
        inputs, options = self._inputs, self.layout.catalogue.options
        inputs.prefetch(self.layout, self._statuses.rows_in, lambda: self._context.rows or self._folders.kept)
        silent = any(definition.idle is not None for definition in self.layout.sources.values())
        now = self.ending == "now" and (silent or self.layout.puts_off)
        return TaskReading(
            self.layout,
            tuple(inputs.own(self.layout)),
            inputs.openers(self.layout),
            tasks=self.spark.sparkContext.defaultParallelism,
            max_rows=options.get("batch_rows"),
            max_files=options.get("batch_files"),
            local_shuffle=local_shuffle,
            first_rows=self._first_rows,
            in_host=inputs.alone and self.layout.partitions == len(self.layout.fragments) == 1,
            growing=inputs.growing(self.layout),
            follow=self.ending == "stopped",
            time_known_from=time.time_ns() // 1000 if now else None,
            ending=tuple(inputs.frames) if self._closing else (),
            folder=os.getcwd(),
            checkpoint=checkpoint,
            feedback=None if checkpoint is None else self._folders.near,
            begin=None if self._stop is None else self._stop.offset,
        )

    # --- a batch -----------------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int) -> None:
        """What a batch brought to the sink."""
        self._began = time.monotonic()
        self._local_shuffle.forget(number)
        if not self._inputs.alone:
            # Where an executor has died Spark takes stages back and runs them again, but for the last one: so the last
            # one is not ours.
            frame = frame.repartition(1)
        self._take(frame.toArrow(), number)  # as it is: to choose columns would have Spark plan it anew
        self._watch(self)

    def _take(self, messages: pa.Table, number: int) -> None:
        brought = frames_of(messages)
        self._number = number
        self._sinks().take(brought, self.layout, number)
        with self._lock:  # progress is what is with the sink
            own = self._inputs.own(self.layout)
            before = sum(map(self._statuses.rows_in, own))
            self._statuses.take(brought[STATUS], time.monotonic() - self._began, number)
            count_rows(self._started, sum(map(self._statuses.rows_in, own)) - before)
            feedback = replace(self._statuses.feedback, sharing=self._sharing)
            for folder in {self._folders.near, self._folders.kept}:
                feedback.write(folder)
            if self._folders.status_file is not None:
                self._statuses.keep(self._folders.status_file)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _sinks(self) -> Sinks:
        """Where the answer goes, and rejected rows if they are wanted."""
        if self._opened is None:
            layout, spec = self.layout, self.spec
            answer, *dead_letters = self.open_sinks(
                SinkSpec(spec.open_sink, spec.open_dead_letters, self.schema, layout.emit_name, layout.output_key)
            )
            self._opened = Sinks({SHARED: answer}, dead_letters)
        return self._opened

    def open_sinks(self, spec: SinkSpec, first: int = 0) -> list[Sink]:
        """Where an answer goes that begins with the batch of this number, and rejected rows if they are wanted.

        They go on where the checkpoint is: a batch is an epoch, and comes again if it was not settled.
        """
        reached, before = self._folders.reached(), self.batches_before
        done, planned = before + reached.done, before + reached.planned
        return spec.opened(Resume(done, planned) if planned > first else None, self._context.run_options.on_batch)

    @property
    def _written_by_tasks(self) -> bool:
        """Whether the answer stays away from the driver, as far as is known before its sink is opened."""
        into_files = self.layout.emit != "latest" and bool(self.spec.open_sink.folders())
        return into_files and self._context.run_options.on_batch is None

    def _tidy(self) -> None:
        self._inputs.stop()
        self._folders.remove()

    def _raise_what_went_wrong(self) -> None:
        assert self._started is not None
        error = self._started.exception()
        if error is None or self.guard.holding:
            return
        raise self.guard.error or self._as_ours(error)

    def _as_ours(self, error: Exception) -> TransomError:
        ours = read_back(str(error))
        if ours is None and self._folders.checkpoint is not None:
            ours = damage(str(error), path_of(absolute_path(self._folders.checkpoint)))
        if ours is None:
            ours = SparkError(f"Spark gave the query up: {cause(str(error))}", remedy="the log says more")
        ours.query = self._planned.statement.text
        return ours
