"""A streaming DataFrame of the user's as frames.

Catalyst selects the columns that the query reads, and empties the rows that none of its filters would take, before
anything leaves the JVM. Their times stay: the law takes watermarks and counts from all rows. A row without a proper
time is kept whole, as it is going to be shown in the dead-letter table. Where the DataFrame is a folder of Parquet
files the task gets their names alone, and reads them (`parquet_frame.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.connectors.memory import MemorySource
from transom.connectors.source import rejected_batch
from transom.core.errors import SourceError
from transom.core.time import FOREVER, to_datetime
from transom.pipeline.layout import Definition, Layout
from transom.pipeline.packer import Packer
from transom.plan.expression import Literal
from transom.planner.columns_read import selections
from transom.runtimes.spark.catalyst import literal, pushable_filter
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.local_shuffle import LocalShuffle, batch_number
from transom.runtimes.spark.message_rows import MESSAGE_FIELDS, message_batch
from transom.runtimes.spark.parquet_frame import ParquetFrame
from transom.runtimes.spark.types import declared_columns, reference
from transom.runtimes.spark.worker_errors import reported_to_driver


def packed(
    frame: DataFrame,
    name: str,
    layout: Layout,
    local_shuffle: LocalShuffle,
    wants_time: bool,
    feedback: str | None,
    files: ParquetFrame | None = None,
) -> DataFrame:
    """The rows of stream `name`, packed for the partitions; `files` are what tasks read instead of its rows.

    The clock of a batch, where it matters, is the one that Spark logs with it: whoever runs it again finds the same. In
    the folder `feedback` is noted in which batch time began; who does not see it says where it might.
    """
    definition = layout.sources[name]
    if definition.time is None or not frame.isStreaming:
        raise SourceError(
            f"'{definition.name}' is not a streaming DataFrame with a time column",
            remedy="read it with spark.readStream, and say time = '..'",
        )
    clock = [F.unix_micros(F.current_timestamp()).alias("now")] if wants_time else []
    if files is None:
        rows, read = _rows_of(frame, name, layout)
        chosen = frame.select(*rows, *clock)
    else:
        chosen = files.files(frame).select("path", "length", *clock)
        read = _files_of(files, name, layout)

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        labels = Labels(layout)
        with reported_to_driver():
            whole = (batch for batch in batches if len(batch))
            first = next(whole, None)
            now = first.column("now")[0].as_py() if wants_time and first is not None else None
            number = batch_number()
            begun = feedback is not None and number is not None and Feedback.read(feedback).begun_before(number)
            packer = Packer(layout, context.partitionId(), now, begun=begun)
            packer.hear_of(name, at_end=False)
            for rows, rejected, flags in read(chain([] if first is None else [first], whole)):
                if len(rejected):
                    yield message_batch(packer.reject(name, rejected), labels, 1, local_shuffle)
                yield from (
                    message_batch([message], labels, 1, local_shuffle) for message in packer.take(name, rows, flags)
                )
            yield from (message_batch([message], labels, 1, local_shuffle) for message in packer.finish())

    return chosen.mapInArrow(pack, MESSAGE_FIELDS)


Read = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[pa.RecordBatch, pa.RecordBatch, pa.Array | None]]]
"""Of what Spark brings to a task: rows in declared columns, rejected ones, and which of the rows anybody reads."""


def _rows_of(frame: DataFrame, name: str, layout: Layout) -> tuple[list[Column], Read]:
    """What Spark is to bring of the rows, and how they are taken."""
    definition = layout.sources[name]
    assert definition.time is not None
    columns, time_column = definition.columns, definition.time.column
    names = [column.name for column in columns]
    at = _time_column(definition)
    exact = declared_columns(frame, columns, f"'{definition.name}'")
    given = [column if column is not None else reference(n) for column, n in zip(exact, names, strict=True)]
    sent = set(layout.channels_of(name)[0].columns) | {at}
    shown = _will_be_shown(exact[at], definition.columns[at].type, layout)
    wanted = _wanted(layout, name, exact) if definition.late != "dead_letter" else None
    chosen = []
    for i, column in enumerate(given):
        if i != at and i not in sent:
            column = F.when(shown, column)
        elif i != at and wanted is not None:
            column = F.when(wanted | shown, column)
        chosen.append(column.alias(str(i)))
    chosen.append((F.lit(True) if wanted is None else wanted | shown).alias("wanted"))
    filtered = wanted is not None  # a Column cannot go to a worker

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, pa.Array | None]]:
        for batch in batches:
            source = MemorySource(columns, time_column=time_column)
            source.append(pa.RecordBatch.from_arrays(batch.columns[: len(names)], names))
            conformed = source.read({}, len(batch))
            flags = batch.column(len(names)) if filtered and not len(conformed.rejected) else None
            yield conformed.rows, conformed.rejected, flags

    return chosen, read


def _files_of(files: ParquetFrame, name: str, layout: Layout) -> Read:
    definition = layout.sources[name]
    assert definition.time is not None
    columns, time_column = definition.columns, definition.time.column
    sent = set(layout.channels_of(name)[0].columns) | {_time_column(definition)}

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, pa.Array | None]]:
        source = files.source(columns, time_column, sent)
        for batch in batches:
            for uri, length in zip(batch.column("path").to_pylist(), batch.column("length").to_pylist(), strict=True):
                for part in files.read(source, uri) if length else ():  # to Spark, a file of no bytes has no rows
                    yield part.rows, rejected_batch(part.rejected), None

    return read


def _time_column(definition: Definition) -> int:
    assert definition.time is not None
    return [column.name.lower() for column in definition.columns].index(definition.time.column.lower())


def _will_be_shown(time: Column | None, type_: pa.DataType, layout: Layout) -> Column:
    """Rows that are rejected for their time; all of them where Spark cannot tell."""
    if time is None:
        return F.lit(True)
    bad = time.isNull() | (time >= literal(Literal(to_datetime(FOREVER), type_)))
    if layout.origin is not None:
        bad = bad | (time < literal(Literal(to_datetime(layout.origin), type_)))
    return F.coalesce(bad, F.lit(True))


def _wanted(layout: Layout, name: str, columns: list[Column | None]) -> Column | None:
    """What a row must pass to be read by anybody, as far as Spark can tell."""
    conditions = [pushable_filter(predicate, columns)[0] for predicate in selections(layout.root, name)]
    pushable = [condition for condition in conditions if condition is not None]
    if not conditions or len(pushable) < len(conditions):
        return None
    return F.coalesce(reduce(lambda a, b: a | b, pushable), F.lit(False))
