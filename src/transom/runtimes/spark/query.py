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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from transom.connectors.callback import EpochCallbackSink
from transom.connectors.connector import Opening, OpenSink, Resume, Sink, Source, TaskWriter
from transom.connectors.open import declaration_of, narrowed, source_opener
from transom.connectors.spool import open_spool
from transom.core.errors import SparkError, TransomError, UnlikeSparkError
from transom.core.location import absolute_path, is_remote, path_of
from transom.core.schema import Schema
from transom.kernels.nested import shown_rows
from transom.kernels.operator import scanned
from transom.pipeline.consumer import Consumer
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA
from transom.pipeline.frames import DEAD_LETTERS, FILES, OUT, STATUS, Frame, unpack
from transom.pipeline.layout import SHARED, Layout
from transom.pipeline.merge import merged
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.planner.columns_read import shown_whole
from transom.planner.multiway_choice import read_decisions, written
from transom.program.batch_size import FIRST_ROWS, BatchSize
from transom.program.planned import Planned
from transom.program.run import Ending, OnBatch
from transom.program.status import Status
from transom.program.unread import reject_grown
from transom.runtimes.spark.checkpoint import CheckpointProgress, QueryCheckpoint, damage
from transom.runtimes.spark.counted_rows import count_rows
from transom.runtimes.spark.dataframe_stages import answer_rows, from_sources, through_stages
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.guard import Guard, free_name
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.log_names import STATE
from transom.runtimes.spark.parquet_frame import ParquetFrame, readable_files
from transom.runtimes.spark.prefetcher import Prefetcher
from transom.runtimes.spark.savepoint import Stop
from transom.runtimes.spark.settings import partitions, settings_of
from transom.runtimes.spark.sizing import first_size, worth_sharing
from transom.runtimes.spark.statuses import Statuses
from transom.runtimes.spark.task_split import TaskReading
from transom.runtimes.spark.temporary import TemporaryFolder, temporary_folder
from transom.runtimes.spark.worker_errors import cause, read_back
from transom.runtimes.spark.workers import on_one_machine
from transom.state.scratch import Scratch, in_memory

Definition = StreamDefinition | TableDefinition

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


@dataclass(frozen=True)
class Sinks:
    """Where the answers go, by the keys of the queries, and where rejected rows go."""

    answers: dict[str, Sink]
    dead_letters: list[Sink]

    @property
    def all(self) -> list[Sink]:
        return [*self.answers.values(), *self.dead_letters]


class SparkQuery:
    """A query that can be run, asked how it is doing, and taken further as a streaming DataFrame.

    `frames` are the inputs that are DataFrames; `open_source` opens those whose rows are in this process. File sinks
    are written by the tasks (`Sink.tasks`); with `on_batch` the answer goes to that function and to no sink.
    """

    def __init__(
        self,
        planned: Planned,
        spark: SparkSession,
        open_source: Callable[[Definition], Source],
        open_sink: OpenSink,
        *,
        frames: Mapping[str, DataFrame] | None = None,
        open_dead_letters: OpenSink | None = None,
        emit: str = "changes",
        ending: Ending = "end",
        checkpoint: str | None = None,
        name: str = "query",
        on_batch: OnBatch | None = None,
        watch: Callable[[SparkQuery], None] = lambda query: None,
        open: bool = False,
        consumers: tuple[Consumer, ...] = (),
        savepoint: Savepoint | None = None,
    ) -> None:
        # A query that goes on is planned as it was, whatever speaks for another plan by now.
        decided = "" if checkpoint is None else QueryCheckpoint(checkpoint).decisions()
        planned = planned.decided(read_decisions(decided)) if decided else planned
        assert planned.root is not None
        self.name = name
        self.spark = spark
        self.ending = ending
        self._checkpoint = checkpoint
        self._scratch: TemporaryFolder | None = None
        """What is the checkpoint of a query without one."""
        self._nearby: Scratch | None = None
        read = {scanned(operator) for operator in planned.root.walk() if not operator.inputs}
        self._frames = {each.lower(): frame for each, frame in (frames or {}).items() if each.lower() in read}
        self._alone = on_one_machine(spark)
        laid_out = partial(Layout, planned.root, planned.catalogue, emit)
        threads = self._threads(planned.catalogue)
        laid_out = partial(laid_out, unordered=frozenset(self._frames), open=open, consumers=consumers, threads=threads)
        known = None if savepoint is None or savepoint.stop is None else savepoint.stop.layout.partitions
        self._open_source = open_source
        self.layout = laid_out(known or self._reached().partitions or self._tasks(planned.catalogue, laid_out))
        self.schema = self.layout.output_schema
        self._planned = planned
        self._open_sink, self._open_dead_letters, self._on_batch = open_sink, open_dead_letters, on_batch
        self._opened: Sinks | None = None
        self._max_rows: int | None = planned.catalogue.options.get("batch_rows")
        self._max_files: int | None = planned.catalogue.options.get("batch_files")
        size = self._batch_size()
        self._first_rows = FIRST_ROWS if size is None else size.rows
        self._statuses = Statuses(self.layout, name, size)
        if checkpoint is not None:
            self._statuses.recover(self._status_file)
            self._statuses.resume(Feedback.read(checkpoint))
        self._watch = watch
        self._stop = None if savepoint is None else savepoint.stop
        self._prefetchers: dict[str, Prefetcher] = {} if savepoint is None else savepoint.prefetchers
        self._older: list[TemporaryFolder] = [] if savepoint is None else savepoint.folders
        self._started: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self._local_shuffle = LocalShuffle()
        self._messages: Scratch | None = None
        self._memory: Scratch | None = None
        self.guard = Guard()
        self._lock = threading.Lock()
        self._closing = False
        self._left_to_spark = False
        """Whether a file was found that Spark may read otherwise than we would."""
        self._earlier: list[Any] = []
        self._number = 0
        """Of the batch at hand."""
        self._began = 0.0

    # --- running -----------------------------------------------------------------------------------------------------

    def start(self) -> StreamingQuery:
        """Begin; the query goes on in the background."""
        checkpoint = QueryCheckpoint(self._folder())
        checkpoint.claim(self.layout.fingerprint, written(self._planned.decisions), self.layout.threads)
        if not self._closing:
            self._reject_grown(checkpoint)
        answers = self._sinks().answers
        if self._alone and self._messages is None:
            self._messages, memory = Scratch("cargo"), in_memory()
            self._memory = None if memory is None else Scratch("memory", memory)
            self._local_shuffle = LocalShuffle(self._messages.path, None if self._memory is None else self._memory.path)
        writers = {key: sink.tasks for key, sink in answers.items() if sink.tasks is not None}
        replace(Feedback.read(self._folder()), stopping=False).write(self._near())
        messages = self.messages(self._local_shuffle, writers, self._folder())
        writer = (
            messages.writeStream.foreachBatch(self.guard.around(self._batch))
            .queryName(free_name(self.spark, self.name))
            .option("checkpointLocation", checkpoint.uri)
            .outputMode("append")
        )
        trigger: dict[str, Any] = {"availableNow": True}
        if self.ending == "stopped":
            trigger = {"processingTime": FOLLOW_EVERY if self._frames else "0 seconds"}
        try:
            with settings_of(self.spark, self.layout.partitions):
                self._started = writer.trigger(**trigger).start()
        except Exception as error:  # of PySpark, or of the JVM itself
            raise self._as_ours(error) from None
        return self._started

    def _reject_grown(self, checkpoint: QueryCheckpoint) -> None:
        """Inputs that had been read to their end must have stayed as they are."""
        planned = checkpoint.reached().planned
        last = checkpoint.offset(planned - 1) if planned else {"ended": []}
        for name in last["ended"]:
            if name in self._frames or name not in self.layout.sources:
                continue  # Spark knows how far it has read a DataFrame, and partitions take no row of it
            source = self._open_source(self.layout.sources[name])
            if source.distributed:  # of the others, a prefetcher knows
                reject_grown(self.layout.sources[name], source, last["at"].get(name, {}))

    @property
    def active(self) -> bool:
        return self._started is not None and self._started.isActive

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long; whether it has come. What went wrong is raised."""
        assert self._started is not None
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            for prefetcher in self._prefetchers.values():
                if prefetcher.error is not None:
                    raise prefetcher.error
            if not self._started.isActive:
                self._raise_what_went_wrong()
                return True
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL)

    def run(self) -> None:
        """To the end of the input, which must have one."""
        try:
            self.start()
            while not self.ended():
                time.sleep(_POLL)
        except BaseException:
            self.abort()
            raise
        self.close()

    def fail(self, error: BaseException) -> None:
        """It is over, and says why when it is asked whether it has ended."""
        self._failure = error

    def ended(self) -> bool:
        """Whether it has come to the end that it is to have; what went wrong is raised."""
        if self._failure is not None:
            raise self._failure
        try:
            if not self.wait(0):
                return False
        except UnlikeSparkError:  # the batch was not done, and Spark knows which files it has
            self._left_to_spark = True
            self._start_again()
            return False
        if self._frames and not self._closing and self.ending == "end":
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
                replace(Feedback.read(self._near()), stopping=True).write(self._near())

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
        found = self.sink.collected()
        assert found is not None
        return found

    def status(self) -> Status:
        """How it is doing, as of the last batch."""
        with self._lock:
            return self._statuses.status()

    @property
    def batches_before(self) -> int:
        """Of the query that this one resumes from, and all before it."""
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
        known = [last] if last["batchId"] == number else self.progress
        rows_out = next((each for each in known if each["batchId"] == number), None)
        if rows_out is None:
            return None
        spent: dict[str, float] = rows_out["durationMs"]
        waited = spent.get("latestOffset", 0) if self.ending == "stopped" else 0
        return (spent.get("triggerExecution", 0) - waited) / 1000

    def dataframe(self) -> DataFrame:
        """The answer as a streaming DataFrame, to go on with; rejected rows are counted, and not in it."""
        if self._alone and not self._frames and "tasks" not in self.layout.catalogue.options:
            # Its checkpoint is the user's: how much lies there now must not decide over what goes on from it.
            self.layout = replace(self.layout, partitions=1)
        return answer_rows(self.messages(LocalShuffle()), self.schema)

    def _files(self) -> dict[str, ParquetFrame]:
        """The DataFrames whose files our tasks read."""
        if self._left_to_spark:
            return {}
        found = {name: readable_files(frame, self.layout.sources[name]) for name, frame in self._frames.items()}
        return {name: one for name, one in found.items() if isinstance(one, ParquetFrame)}

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
        files = {} if folder is None else self._files()
        messages = from_sources(self.spark, reading, self._frames, files)
        if folder is not None and not is_remote(folder):
            os.makedirs(os.path.join(folder, STATE), exist_ok=True)
        return through_stages(messages, reading, writers, folder, begins=self._stop is not None)

    def _reading(self, local_shuffle: LocalShuffle, checkpoint: str | None) -> TaskReading:
        own = [name for name in self.layout.sources if name not in self._frames]
        for name in own:
            definition = self.layout.sources[name]
            used = partial(self._statuses.rows_in, name)
            if name in self._prefetchers:
                self._prefetchers[name].used = used
                continue
            source = self._open_source(definition)
            if not source.distributed:
                folder = os.path.join(self._folder(), "rows", name)
                self._prefetchers[name] = Prefetcher(source, folder, definition, self.ending, used)
        silent = any(definition.idle is not None for definition in self.layout.sources.values())
        now = self.ending == "now" and (silent or self.layout.puts_off)
        return TaskReading(
            self.layout,
            tuple(own),
            {name: self._opener(name) for name in own},
            tasks=self.spark.sparkContext.defaultParallelism,
            max_rows=self._max_rows,
            max_files=self._max_files,
            local_shuffle=local_shuffle,
            first_rows=self._first_rows,
            in_host=self._alone and self.layout.partitions == len(self.layout.fragments) == 1,
            growing=frozenset(name for name in own if self._may_grow(name)),
            follow=self.ending == "stopped",
            time_known_from=time.time_ns() // 1000 if now else None,
            ending=tuple(self._frames) if self._closing else (),
            folder=os.getcwd(),
            checkpoint=checkpoint,
            feedback=None if checkpoint is None else self._near(),
            begin=None if self._stop is None else self._stop.offset,
        )

    def _opener(self, name: str) -> Callable[[], Source]:
        """Opens an input wherever it is read."""
        definition, within = self.layout.sources[name], self.layout.catalogue.within
        if name in self._prefetchers:
            return partial(open_spool, declaration_of(definition), self._prefetchers[name].folder)
        opener = source_opener(definition, within)
        if shown_whole(definition, self.layout.catalogue):
            return opener
        return partial(narrowed, opener, [column.name for column in self._read(name)])

    def _read(self, name: str) -> Schema:
        """The columns of an input that are read."""
        definition = self.layout.sources[name]
        if shown_whole(definition, self.layout.catalogue):
            return definition.columns
        read = {index for channel in self.layout.channels_of(name) for index in channel.columns}
        return Schema(tuple(definition.columns[index] for index in sorted(read)))

    def _may_grow(self, name: str) -> bool:
        """Whether the present end of an input is not its end."""
        if self.ending == "end" or self.layout.sources[name].time is None:
            return False
        # Rows that a program makes as it goes come to an end in this run, and until then it is waited for.
        return self.ending == "stopped" or name not in self._prefetchers or not self._prefetchers[name].closes

    # --- a batch -----------------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int) -> None:
        """What a batch brought to the sink."""
        self._began = time.monotonic()
        self._local_shuffle.forget(number)
        if not self._alone:
            # Where an executor has died Spark takes stages back and runs them again, but for the last one: so the last
            # one is not ours.
            frame = frame.repartition(1)
        self._take(frame.toArrow(), number)  # as it is: to choose columns would have Spark plan it anew
        self._watch(self)

    def _take(self, messages: pa.Table, number: int) -> None:
        brought: dict[int, list[Frame]] = {kind: [] for kind in (OUT, DEAD_LETTERS, STATUS, FILES)}
        for kind, blob in zip(messages.column("kind").to_pylist(), messages.column("blob"), strict=True):
            brought[kind] += unpack(blob.as_buffer())
        self._number = number
        sinks = self._sinks()
        for key, answer in sinks.answers.items():
            emit, held = self.layout.answers[key]
            shown = self.layout.shown[key]
            rows_out = [part.rows for part in brought[OUT] if part.about["query"] == key]
            if answer.tasks is not None:
                parts = [part.about for part in brought[FILES] if part.about["query"] == key]
                answer.add_parts((about["partition"], about["part"]) for about in parts)
            elif emit == "latest":
                answer.replace(shown_rows(merged(rows_out, emit, held), shown))
            elif len(rows := merged(rows_out, emit, held)):
                answer.write(shown_rows(rows, shown))
        rejected_rows = [part.rows for part in brought[DEAD_LETTERS]]
        for dead_letters in sinks.dead_letters if rejected_rows else ():
            dead_letters.write(pa.concat_batches(rejected_rows))
        for sink in sinks.all:
            sink.commit(number, sink.prepare(number))
        with self._lock:  # progress is what is with the sink
            own = [name for name in self.layout.sources if name not in self._frames]
            before = sum(map(self._statuses.rows_in, own))
            self._statuses.take(brought[STATUS], time.monotonic() - self._began, number)
            count_rows(self._started, sum(map(self._statuses.rows_in, own)) - before)
            for folder in {self._near(), self._folder()}:
                self._statuses.feedback.write(folder)
            if self._checkpoint is not None:
                self._statuses.keep(self._status_file)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _sinks(self) -> Sinks:
        """Where the answer goes, and rejected rows if they are wanted."""
        if self._opened is None:
            answer, *dead_letters = self.open_sinks(
                self._open_sink, self._open_dead_letters, self.schema, self.layout.emit_name, self.layout.output_key
            )
            self._opened = Sinks({SHARED: answer}, dead_letters)
        return self._opened

    def open_sinks(
        self,
        open_sink: OpenSink,
        open_dead_letters: OpenSink | None,
        schema: pa.Schema,
        form: str,
        key: tuple[str, ...] | None,
    ) -> list[Sink]:
        """Sinks that go on where the checkpoint is: a batch is an epoch, and comes again if it was not settled."""
        reached = self._reached()
        resume = Resume(reached.done, reached.planned) if reached.planned else None
        if self._on_batch is not None:
            opened: list[Sink] = [EpochCallbackSink(self._on_batch)]
        else:
            snapshots = form == "latest"
            opened = [open_sink(Opening(schema, resume, replayed=True, snapshots=snapshots, form=form, key=key))]
        if open_dead_letters is not None:
            opened.append(open_dead_letters(Opening(DEAD_LETTER_SCHEMA, resume, replayed=True)))
        return opened

    def _tasks(self, catalogue: Catalogue, laid_out: Callable[[int], Layout]) -> int:
        """Every stage of a plan costs a batch, and the start, more than a task can win that has one machine anyway.

        A plan of one stage gains by several where much waits for it and there are cores enough, or where Spark brings
        the rows.
        """
        if laid_out(1).schedule is not None:
            return 1  # work is put in order where all of it is
        wanted: int | None = catalogue.options.get("tasks")
        if wanted is not None:
            return wanted
        number = int(partitions(self.spark) or "2")
        if not self._alone:
            return number
        if not self._frames:
            # Partitions of a shuffle are made for clusters; here there are cores. Memory is not divided for nothing.
            number = min(number, self.spark.sparkContext.defaultParallelism)
            if self.ending == "stopped" or not worth_sharing(laid_out(1), self._open_source, number):
                return 1
        return number if laid_out(number).stage_count == 1 else 1

    def _threads(self, catalogue: Catalogue) -> int:
        """Over how many partitions a plan is spread that is in one task: over one, as in one process, unless
        reported."""
        known = None if self._checkpoint is None else QueryCheckpoint(self._checkpoint).threads()
        wanted: int | None = catalogue.options.get("partitions")
        return known or wanted or 1

    def _batch_size(self) -> BatchSize | None:
        """None where a number of rows or files is given; of a DataFrame Spark takes what it is told to take."""
        if self._max_rows is not None or self._max_files is not None:
            return None
        read = [self._read(name) for name in self.layout.sources]
        return first_size(self.layout, read, self.ending, self._written_by_tasks)

    @property
    def _written_by_tasks(self) -> bool:
        """Whether the answer stays away from the driver, as far as is known before its sink is opened."""
        return self._on_batch is None and self.layout.emit != "latest" and bool(self._open_sink.folders())

    def _reached(self) -> CheckpointProgress:
        return CheckpointProgress() if self._checkpoint is None else QueryCheckpoint(self._checkpoint).reached()

    def _folder(self) -> str:
        if self._checkpoint is not None:
            return self._checkpoint
        if self._scratch is None:
            self._scratch = temporary_folder(self.spark)
        return self._scratch.path

    def _near(self) -> str:
        """The folder for what the source on this machine is to know: to look into a storage all the time costs."""
        if not is_remote(self._folder()):
            return self._folder()
        if self._nearby is None:
            self._nearby = Scratch("query")
        return self._nearby.path

    @property
    def _status_file(self) -> str:
        return os.path.join(self._checkpoint or "", "status.json")

    def _tidy(self) -> None:
        for prefetcher in self._prefetchers.values():
            prefetcher.stop()
        folders: tuple[TemporaryFolder | None, ...] = (*self._older, self._scratch, self._nearby)
        for folder in (*folders, self._messages, self._memory):
            if folder is not None:
                folder.remove()
        self._scratch = self._nearby = None

    def _raise_what_went_wrong(self) -> None:
        assert self._started is not None
        error = self._started.exception()
        if error is None or self.guard.holding:
            return
        raise self.guard.error or self._as_ours(error)

    def _as_ours(self, error: Exception) -> TransomError:
        found = read_back(str(error))
        if found is None and self._checkpoint is not None:
            found = damage(str(error), path_of(absolute_path(self._checkpoint)))
        if found is None:
            found = SparkError(f"Spark gave the query up: {cause(str(error))}", remedy="the log says more")
        found.query = self._planned.statement.text
        return found
