"""What a query reads on Spark: DataFrames by Spark, or by our tasks where they are files that we know; all else by our
tasks, or ahead of them by this process where the rows are in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from transom.connectors.connector import Source
from transom.connectors.open import declaration_of, narrowed, source_opener
from transom.connectors.spool import open_spool
from transom.core.schema import Schema
from transom.kernels.operator import Operator, scanned
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.planner.columns_read import shown_whole
from transom.program.batch_size import BatchSize
from transom.program.unread import reject_grown
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.parquet_frame import ParquetFrame, readable_files
from transom.runtimes.spark.prefetcher import Prefetcher
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.settings import partitions
from transom.runtimes.spark.sizing import first_size, worth_sharing
from transom.runtimes.spark.workers import on_one_machine


class QueryInputs:
    """The inputs of a query that is to be laid out, and then of its layout.

    `prefetchers` are those of the query that this one resumes from.
    """

    def __init__(self, root: Operator, context: QueryContext, prefetchers: dict[str, Prefetcher]) -> None:
        read = {scanned(operator) for operator in root.walk() if not operator.inputs}
        self.frames = {name.lower(): frame for name, frame in context.frames.items() if name.lower() in read}
        self.prefetchers = prefetchers
        self.left_to_spark = False
        """Whether a file was found that Spark may read otherwise than we would."""
        self.alone = on_one_machine(context.spark)
        self._spark = context.spark
        self._open_source = context.open_source
        self._ending = context.run_options.ending

    def own(self, layout: Layout) -> list[str]:
        """The inputs that are no DataFrames."""
        return [name for name in layout.sources if name not in self.frames]

    # --- how it is laid out ------------------------------------------------------------------------------------------

    def tasks(self, catalogue: Catalogue, laid_out: Callable[[int], Layout]) -> int:
        """Every stage of a plan costs a batch, and the start, more than a task can win that has one machine anyway.

        A plan of one stage gains by several where much waits for it and there are cores enough, or where Spark brings
        the rows.
        """
        if laid_out(1).schedule is not None:
            return 1  # work is put in order where all of it is
        wanted: int | None = catalogue.options.get("tasks")
        if wanted is not None:
            return wanted
        number = int(partitions(self._spark) or "2")
        if not self.alone:
            return number
        if not self.frames:
            # Partitions of a shuffle are made for clusters; here there are cores. Memory is not divided for nothing.
            number = min(number, self._spark.sparkContext.defaultParallelism)
            if self._ending == "stopped" or not worth_sharing(laid_out(1), self._open_source, number):
                return 1
        return number if laid_out(number).stage_count == 1 else 1

    def batch_size(self, layout: Layout, written_by_tasks: bool) -> BatchSize | None:
        """How large batches are; None where rows or files are given. Of a DataFrame Spark takes what it is told to."""
        options = layout.catalogue.options
        if options.get("batch_rows") is not None or options.get("batch_files") is not None:
            return None
        read = [self._read(layout, name) for name in layout.sources]
        return first_size(layout, read, self._ending, written_by_tasks)

    # --- reading -----------------------------------------------------------------------------------------------------

    def files(self, layout: Layout) -> dict[str, ParquetFrame]:
        """The DataFrames whose files our tasks read."""
        if self.left_to_spark:
            return {}
        files = {name: readable_files(frame, layout.sources[name]) for name, frame in self.frames.items()}
        return {name: file for name, file in files.items() if isinstance(file, ParquetFrame)}

    def prefetch(self, layout: Layout, rows_in: Callable[[str], int], folder: Callable[[], str]) -> None:
        """Begin to read what tasks cannot: rows of this process. `folder` is that of the query."""
        for name in self.own(layout):
            used = partial(rows_in, name)
            if name in self.prefetchers:
                self.prefetchers[name].used = used
                continue
            definition = layout.sources[name]
            source = self._open_source(definition)
            if not source.distributed:
                spool = os.path.join(folder(), "rows", name)
                self.prefetchers[name] = Prefetcher(source, spool, definition, self._ending, used)

    def openers(self, layout: Layout) -> dict[str, Callable[[], Source]]:
        """What opens each input that is no DataFrame, wherever it is read."""
        return {name: self._opener(layout, name) for name in self.own(layout)}

    def growing(self, layout: Layout) -> frozenset[str]:
        """The inputs whose present end is not their end."""
        return frozenset(name for name in self.own(layout) if self._may_grow(layout, name))

    def reject_grown(self, layout: Layout, checkpoint: QueryCheckpoint) -> None:
        """Inputs that had been read to their end must have stayed as they are."""
        planned = checkpoint.reached().planned
        last = checkpoint.offset(planned - 1) if planned else {"ended": []}
        for name in last["ended"]:
            if name in self.frames or name not in layout.sources:
                continue  # Spark knows how far it has read a DataFrame, and partitions take no row of it
            source = self._open_source(layout.sources[name])
            if source.distributed:  # of the others, a prefetcher knows
                reject_grown(layout.sources[name], source, last["at"].get(name, {}))

    def raise_what_went_wrong(self) -> None:
        for prefetcher in self.prefetchers.values():
            if prefetcher.error is not None:
                raise prefetcher.error

    def stop(self) -> None:
        """Read nothing ahead any more."""
        for prefetcher in self.prefetchers.values():
            prefetcher.stop()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _opener(self, layout: Layout, name: str) -> Callable[[], Source]:
        definition, within = layout.sources[name], layout.catalogue.within
        if name in self.prefetchers:
            return partial(open_spool, declaration_of(definition), self.prefetchers[name].folder)
        opener = source_opener(definition, within)
        if shown_whole(definition, layout.catalogue):
            return opener
        return partial(narrowed, opener, [column.name for column in self._read(layout, name)])

    def _read(self, layout: Layout, name: str) -> Schema:
        """The columns of an input that are read."""
        definition = layout.sources[name]
        if shown_whole(definition, layout.catalogue):
            return definition.columns
        read = {index for channel in layout.channels_of(name) for index in channel.columns}
        return Schema(tuple(definition.columns[index] for index in sorted(read)))

    def _may_grow(self, layout: Layout, name: str) -> bool:
        if self._ending == "end" or layout.sources[name].time is None:
            return False
        # Rows that a program makes as it goes come to an end in this run, and until then it is waited for.
        return self._ending == "stopped" or name not in self.prefetchers or not self.prefetchers[name].closes
