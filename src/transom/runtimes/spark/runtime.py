"""The Spark runtime: each query is a streaming query, in a session of the user's own or in one that Transom starts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.connectors.connector import OpenSink
from transom.core.errors import OptionError, SourceError
from transom.kernels.operator import scanned
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.planner.explain import Measured
from transom.planner.sharing_shape import Sharable
from transom.planner.statistics import Machine
from transom.program.checkpoint_folder import CheckpointFolder
from transom.program.checkpoint_manifest import Manifest
from transom.program.inputs import Frame, Inputs
from transom.program.interrupt import listen
from transom.program.nowhere import Nowhere
from transom.program.planned import Planned
from transom.program.run import Order, Terms
from transom.program.sharing import Sharing, sharing_of
from transom.program.statistics import in_buckets
from transom.runtimes.spark import settings
from transom.runtimes.spark.checkpoint import begun
from transom.runtimes.spark.group import Place, SparkGroup
from transom.runtimes.spark.member import SparkMember
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.run import SparkRun
from transom.runtimes.spark.shared import Lease
from transom.runtimes.spark.types import readable, schema_of
from transom.runtimes.spark.workers import Needs, check_workers


class SparkRuntime:
    """`spark` is a session to be used as it is; without one, one is started when it is first needed."""

    def __init__(self, inputs: Inputs, spark: SparkSession | None = None, cores: int | None = None) -> None:
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
        return in_buckets(self._buckets())

    def _buckets(self) -> int:
        """Without starting Spark to ask for it."""
        if self._given is None:
            return self._lease.cores
        told = settings.partitions(self._given) or ""
        return int(told) if told.isdecimal() else self._lease.cores

    def begin(self, brief: bool = False) -> None:
        if self._given is None:
            self._lease.begin(brief)

    def assemble(self, orders: Sequence[Order], terms: Terms) -> SparkRun:
        if terms.clock is not None:
            raise OptionError(
                "on Spark time cannot be held: the clock is that of its workers",
                remedy="leave clock out, or run the query in this process (Session without spark=..)",
            )
        self._check(orders, terms)
        folder = None if terms.checkpoint is None else CheckpointFolder(terms.checkpoint)
        try:
            if folder is not None:
                sharing = sharing_of([order.planned for order in orders])
                shared = {
                    orders[place].name for places in _together(orders, sharing) if len(places) > 1 for place in places
                }
                folder.claim(Manifest.of("spark", orders, shared), begun(folder.folder))
            return SparkRun(self._units(orders, terms), folder, [order.name for order in orders])
        except BaseException:
            if folder is not None:
                folder.release()
            raise

    def _check(self, orders: Sequence[Order], terms: Terms) -> None:
        """Before anything is written; workers of a session of our own are started on this machine, by this Python."""
        if self._given is None:
            return

        def needs() -> Needs:
            sources = [source for order in orders for source in self._sources(order.planned)]
            written = (
                [] if terms.on_batch is not None else [order.open_sink for order in orders if order.emit != "latest"]
            )
            return Needs.of(map(self._inputs.open, sources), written, terms.checkpoint)

        check_workers(self._given, needs)

    def _sources(self, planned: Planned) -> list[StreamDefinition | TableDefinition]:
        """The definitions that a query reads itself."""
        assert planned.root is not None
        read = {scanned(operator) for operator in planned.root.walk() if not operator.inputs}
        named = [planned.catalogue.relations[name] for name in sorted(read - self._inputs.frames.keys())]
        return [one for one in named if isinstance(one, StreamDefinition | TableDefinition)]

    def _units(self, orders: Sequence[Order], terms: Terms) -> list[SparkQuery]:
        """Queries on the same join are one streaming query; those that tell snapshots stay alone."""
        sharing = sharing_of([order.planned for order in orders])
        return [
            self._query(orders[places[0]], terms)
            if len(places) == 1
            else self._group([(orders[place], sharing.asked[place]) for place in places], terms)
            for places in _together(orders, sharing)
        ]

    def _group(self, orders: Sequence[tuple[Order, Sharable]], terms: Terms) -> SparkGroup:
        frames, checkpoint = self._inputs.frames, _folder(terms, f"shared-{orders[0][0].name}")
        place = Place(self.spark, self._inputs.open, terms, frames, checkpoint)
        return SparkGroup([SparkMember(order, asked) for order, asked in orders], place)

    def open(self, terms: Terms) -> SparkRun:
        def make(order: Order, asked: Sharable | None) -> SparkQuery:
            self._check([order], terms)
            if asked is None or order.emit == "latest" or self._reads_frames(asked):
                return self._query(order, terms)
            place = Place(self.spark, self._inputs.open, terms, open=True)
            return SparkGroup([SparkMember(order, asked)], place)

        return SparkRun([], make=make)

    def _reads_frames(self, asked: Sharable) -> bool:
        """Spark alone knows how far it has read a DataFrame: nobody else can go on from there."""
        return any(scan.name.lower() in self._inputs.frames for scan in asked.scans)

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        self._check([], Terms())
        most: list[int] = []

        def watch(query: SparkQuery) -> None:
            kept = [operator.state_bytes for operator in query.status().operators]
            most[:] = [max(pair) for pair in zip(most or kept, kept, strict=True)]

        query = SparkQuery(
            planned,
            self.spark,
            self._inputs.open,
            OpenSink(lambda opening: Nowhere()),
            frames=self._inputs.frames,
            emit=emit,
            watch=watch,
        )
        query.run()
        operators = query.status().operators
        return [
            Measured(
                operator.rows_in,
                operator.rows_out,
                operator.ends,
                bytes_kept,
                operator.seconds,
                () if operator.slides is None else operator.slides.lines(),
            )
            for operator, bytes_kept in zip(operators, most or [0] * len(operators), strict=True)
        ]

    def adopt(self, name: str, frame: DataFrame) -> Frame | pa.Table:
        """A streaming DataFrame is read where it lives; the rows of any other one are fetched."""
        if not hasattr(frame, "isStreaming"):
            raise SourceError(
                f"'{name}' is a {type(frame).__name__} of Spark, not a DataFrame", remedy="give a pyspark.sql.DataFrame"
            )
        frame = readable(frame)
        columns = schema_of(frame, f"'{name}'")
        return Frame(frame, columns) if frame.isStreaming else frame.toArrow()

    def dataframe(self, order: Order) -> DataFrame:
        self._check([order], Terms())
        return self._query(order, Terms()).dataframe()

    def close(self) -> None:
        """Stop Spark if it was started for this runtime, and for no other one that is still there."""
        self._lease.release()

    def _query(self, order: Order, terms: Terms) -> SparkQuery:
        return SparkQuery(
            order.planned,
            self.spark,
            self._inputs.open,
            order.open_sink,
            frames=self._inputs.frames,
            open_side=order.open_side,
            emit=order.emit,
            ending=terms.ending,
            checkpoint=_folder(terms, order.name),
            name=order.name,
            on_batch=terms.on_batch,
        )


def _together(orders: Sequence[Order], sharing: Sharing) -> list[list[int]]:
    """The places of the orders, those together that are one streaming query."""
    found: list[list[int]] = []
    for place in range(len(orders)):
        group = [i for i in sharing.group_of(place) if orders[i].emit != "latest"]
        if place not in group or len(group) < 2:
            found.append([place])
        elif place == group[0]:
            found.append(group)
    return found


def _folder(terms: Terms, name: str) -> str | None:
    """Where the checkpoint of one of the queries lies."""
    return None if terms.checkpoint is None else os.path.abspath(os.path.join(terms.checkpoint, name))
