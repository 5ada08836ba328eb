"""The Spark runtime: each query is a streaming query, in a session of the user's own or in one that Transom starts.

It has many imports, since it puts queries together of what others do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.connectors.connector import OpenSink
from transom.core.errors import OptionError, SourceError
from transom.core.location import absolute_path
from transom.kernels.multiway.statistics import Machine
from transom.kernels.operator import scanned
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.planner.explain import Measured
from transom.planner.sharing import Request
from transom.planner.sharing_shape import Sharable
from transom.program.checkpoint_folder import CheckpointFolder, is_there
from transom.program.checkpoint_manifest import Manifest
from transom.program.explained import measured
from transom.program.inputs import DataFrameInput, Definition, SessionInputs
from transom.program.interrupt import listen
from transom.program.nowhere import Nowhere
from transom.program.planned import Planned
from transom.program.run import QuerySpec, RunOptions
from transom.program.sharing import Sharing, request_of, sharing_of
from transom.program.statistics import in_partitions
from transom.runtimes.spark import settings
from transom.runtimes.spark.checkpoint import begun
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.hadoop import check_reached
from transom.runtimes.spark.open_run import OPEN, OpenSparkRun
from transom.runtimes.spark.parquet_frame import readable_files
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.run import SparkRun
from transom.runtimes.spark.shared import Lease
from transom.runtimes.spark.spark_consumer import SparkConsumer
from transom.runtimes.spark.types import readable, schema_of
from transom.runtimes.spark.workers import Needs, check_workers


class SparkRuntime:
    """`spark` is a session to be used as it is; without one, one is started when it is first needed."""

    name = "spark"

    def __init__(self, inputs: SessionInputs, spark: SparkSession | None = None, cores: int | None = None) -> None:
        if spark is not None:
            settings.check(spark)
        listen()
        self._inputs = inputs
        self._given = spark
        self._lease = Lease(cores)

    @property
    def spark(self) -> SparkSession:
        return self._lease.spark if self._given is None else self._given

    @property
    def missing_settings(self) -> Sequence[object]:
        return () if self._given is None else settings.missing(self._given)

    def machine(self) -> Machine:
        return in_partitions(self._partitions())

    def reader(self, definition: Definition) -> str | None:
        """Of a DataFrame; all else is read by our own source."""
        frame = self._inputs.frames.get(definition.name.lower())
        if frame is None:
            return None
        files = readable_files(frame, definition)
        return "Transom, file by file as Spark lists them" if not isinstance(files, str) else f"Spark: {files}"

    def _partitions(self) -> int:
        """Without starting Spark to ask it."""
        if self._given is None:
            return self._lease.cores
        given = settings.partitions(self._given) or ""
        return int(given) if given.isdecimal() else self._lease.cores

    def begin(self, brief: bool = False) -> None:
        if self._given is None:
            self._lease.begin(brief)

    def assemble(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> SparkRun:
        if run_options.clock is not None:
            raise OptionError(
                "on Spark time cannot be held: the clock is that of its workers",
                remedy="leave clock out, or run the query in this process (Session without spark=..)",
            )
        self.check(specs, run_options)
        folder = None if run_options.checkpoint is None else CheckpointFolder(run_options.checkpoint)
        try:
            if folder is not None:
                sharing = sharing_of([spec.planned for spec in specs])
                shared = {
                    specs[index].name for indexes in _together(specs, sharing) if len(indexes) > 1 for index in indexes
                }
                check_reached(self.spark, folder.folder)
                is_begun = is_there(os.path.join(folder.folder, OPEN)) or begun(folder.folder)
                folder.claim(Manifest.of("spark", specs, shared), is_begun)
            return SparkRun(self._units(specs, run_options), folder, [spec.name for spec in specs])
        except BaseException:
            if folder is not None:
                folder.release()
            raise

    def check(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> None:
        """Check the workers before anything is written; those of a session of our own run here, by this Python."""
        if self._given is None:
            return

        def needs() -> Needs:
            sources = [source for spec in specs for source in self._sources(spec.planned)]
            written = (
                [] if run_options.on_batch is not None else [spec.open_sink for spec in specs if spec.emit != "latest"]
            )
            return Needs.of(map(self._inputs.open, sources), written, run_options.checkpoint)

        check_workers(self._given, needs)

    def _sources(self, planned: Planned) -> list[StreamDefinition | TableDefinition]:
        """The definitions that a query reads itself."""
        assert planned.root is not None
        read = {scanned(operator) for operator in planned.root.walk() if not operator.inputs}
        named = [planned.catalogue.relations[name] for name in sorted(read - self._inputs.frames.keys())]
        return [definition for definition in named if isinstance(definition, StreamDefinition | TableDefinition)]

    def _units(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> list[SparkQuery]:
        """Queries on the same join are one streaming query; those that emit snapshots stay alone."""
        sharing = sharing_of([spec.planned for spec in specs])
        return [
            self._query(specs[indexes[0]], run_options)
            if len(indexes) == 1
            else self._group([(specs[index], sharing.requests[index]) for index in indexes], run_options)
            for indexes in _together(specs, sharing)
        ]

    def _group(self, specs: Sequence[tuple[QuerySpec, Request]], run_options: RunOptions) -> SparkGroup:
        frames, checkpoint = self._inputs.frames, _folder(run_options, f"shared-{specs[0][0].name}")
        context = QueryContext(self.spark, self._inputs.open, run_options, frames, checkpoint)
        return SparkGroup([SparkConsumer(spec, request) for spec, request in specs], context)

    def open(self, run_options: RunOptions) -> SparkRun:
        folder = None if run_options.checkpoint is None else CheckpointFolder(run_options.checkpoint)
        try:
            if folder is not None:
                check_reached(self.spark, folder.folder)
            return OpenSparkRun(_UnitMaker(self, self._inputs, run_options), folder)
        except BaseException:
            if folder is not None:
                folder.release()
            raise

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        self.check([], RunOptions())
        most: list[int] = []

        def watch(query: SparkQuery) -> None:
            kept = [operator.state_bytes for operator in query.status().operators]
            most[:] = [max(pair) for pair in zip(most or kept, kept, strict=True)]

        spec = QuerySpec(planned, "query", emit, OpenSink(lambda opening: Nowhere()))
        query = SparkQuery(spec, QueryContext(self.spark, self._inputs.open, frames=self._inputs.frames), watch=watch)
        query.run()
        operators = query.status().operators
        return measured(operators, most or [0] * len(operators))

    def adopt(self, name: str, frame: DataFrame) -> DataFrameInput | pa.Table:
        """A streaming DataFrame is read where it lives; the rows of any other one are fetched."""
        if not hasattr(frame, "isStreaming"):
            raise SourceError(
                f"'{name}' is a {type(frame).__name__} of Spark, not a DataFrame", remedy="give a pyspark.sql.DataFrame"
            )
        frame = readable(frame)
        columns = schema_of(frame, f"'{name}'")
        return DataFrameInput(frame, columns) if frame.isStreaming else frame.toArrow()

    def dataframe(self, spec: QuerySpec) -> DataFrame:
        self.check([spec], RunOptions())
        return self._query(spec, RunOptions()).dataframe()

    def close(self) -> None:
        """Stop Spark if it was started for this runtime, and for no other one that is still there."""
        self._lease.release()

    def _query(self, spec: QuerySpec, run_options: RunOptions) -> SparkQuery:
        checkpoint = _folder(run_options, spec.name)
        return SparkQuery(
            spec, QueryContext(self.spark, self._inputs.open, run_options, self._inputs.frames, checkpoint)
        )


@dataclass(frozen=True)
class _UnitMaker:
    """Makes the streaming queries of an open run."""

    runtime: SparkRuntime
    inputs: SessionInputs
    run_options: RunOptions

    def request(self, spec: QuerySpec) -> Sharable | None:
        """Snapshots stay alone, and DataFrames: Spark alone knows how far it has read one, and nobody else can resume
        from there."""
        request = request_of(spec.planned)
        if not isinstance(request, Sharable) or spec.emit == "latest":
            return None
        return None if any(scan.name.lower() in self.inputs.frames for scan in request.scans) else request

    def check(self, spec: QuerySpec) -> None:
        self.runtime.check([spec], self.run_options)

    def context(self, folder: str | None) -> QueryContext:
        checkpoint = None if folder is None else absolute_path(folder)
        rows = None if checkpoint is None else os.path.dirname(checkpoint)
        return QueryContext(
            self.runtime.spark, self.inputs.open, self.run_options, checkpoint=checkpoint, rows=rows, open=True
        )

    def alone(self, spec: QuerySpec, folder: str | None) -> SparkQuery:
        checkpoint = None if folder is None else absolute_path(folder)
        context = QueryContext(
            self.runtime.spark, self.inputs.open, self.run_options, self.inputs.frames, checkpoint=checkpoint
        )
        return SparkQuery(spec, context)


def _together(specs: Sequence[QuerySpec], sharing: Sharing) -> list[list[int]]:
    """The indexes of the queries, those together that are one streaming query."""
    units: list[list[int]] = []
    for index in range(len(specs)):
        group = [i for i in sharing.group_of(index) if specs[i].emit != "latest"]
        if index not in group or len(group) < 2:
            units.append([index])
        elif index == group[0]:
            units.append(group)
    return units


def _folder(run_options: RunOptions, name: str) -> str | None:
    """Where the checkpoint of one of the queries lies."""
    return None if run_options.checkpoint is None else absolute_path(os.path.join(run_options.checkpoint, name))
