"""A query that shares its join with others on Spark: what it asks, where its answer goes, and how it is doing."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.answer import output_form, output_schema
from transom.pipeline.consumer import Consumer, ConsumerSpec
from transom.planner.sharing import Request
from transom.program.run import QuerySpec
from transom.program.status import InputStatus, Status
from transom.runtimes.spark.query_sinks import SinkSpec

if TYPE_CHECKING:
    from transom.runtimes.spark.group import SparkGroup
    from transom.runtimes.spark.query import SparkQuery


class SparkConsumer:
    """A query of a group: what it asks, where its answer goes, and how it is doing; `begin`: when it came to others."""

    def __init__(self, spec: QuerySpec, request: Request) -> None:
        self.name = spec.name
        self.key = spec.name
        """What its operators are known by; a name may be given again to a query that comes later."""
        self.spec = spec
        assert spec.planned.root is not None
        self.emit = output_form(spec.planned.root, spec.emit)
        self.schema = output_schema(self.emit, spec.planned.root.schema)
        self.request = request
        self.begin: int | None = None
        self.first = 0
        """The batch of the whole run with which it came."""
        self.before: dict[str, InputStatus] = {}
        """What had become of the inputs when it came."""
        self.last: Status | None = None
        """Its status as long as its group has not done a batch."""
        self._in: SparkGroup | None = None
        self._sinks: list[Sink] = []

    @cached_property
    def consumer(self) -> Consumer:
        """What it does with the join, planned when it comes; whoever comes or goes afterwards."""
        made = Consumer(ConsumerSpec(self.key, self.request, self.spec.emit), self.spec.planned.catalogue, self.begin)
        assert (self.emit, self.schema) == (made.emit_name, made.output_schema)
        return made

    def join(self, group: SparkGroup) -> None:
        """Be in this group from now on."""
        self._in = group

    def open(self, group: SparkQuery, *, comes: bool = False) -> list[Sink]:
        """Where the answer goes, and rejected rows if they are wanted; opened once. Of one that only `comes` to the
        group nothing was shown before."""
        if not self._sinks:
            spec = self.spec
            sink = SinkSpec(spec.open_sink, spec.open_dead_letters, self.schema, self.emit, self._output_key)
            self._sinks = group.open_sinks(sink, sys.maxsize if comes else self.first)
        return self._sinks

    @property
    def _output_key(self) -> tuple[str, ...] | None:
        """The key of the answer, by a plan of its own: the one that is kept is made once it is known when it came."""
        if self.emit != "net":
            return None
        return Consumer(ConsumerSpec(self.key, self.request, self.spec.emit), self.spec.planned.catalogue).output_key

    @property
    def sink(self) -> Sink:
        if not self._sinks:
            assert self._in is not None
            self.open(self._in)
        return self._sinks[0]

    @property
    def in_memory(self) -> bool:
        return self.sink.collected() is not None

    @property
    def finished(self) -> bool:
        group = self._in
        return group is None or group.finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        table = self.sink.collected()
        assert table is not None
        return table

    def status(self, lately: float = 0.0) -> Status:
        """The status as of the last batch, sizes too: what is shared, and then what is its own."""
        group = self._in
        if (group is None or not group.statuses.batches) and self.last is not None:
            return self.last
        assert group is not None
        whole, own, rows_out = group.status_of(self.consumer)
        operators = (*whole.operators, *(replace(each, number=each.number + len(whole.operators)) for each in own))
        inputs = tuple(self.since(shared) for shared in whole.inputs)
        status = replace(whole, name=self.name, inputs=inputs, operators=operators, rows_out=rows_out)
        scheduled = group.statuses.overload_of(self.consumer.spec.name)
        if scheduled is None:
            return status
        frontier, overload = scheduled
        progress = BEGINNING if frontier is None else frontier
        done = status.finished and progress == FOREVER
        return replace(status, progress=progress, overload=overload, finished=done)

    def leave(self) -> None:
        """What it has written is complete; how it is doing stays as it is."""
        self.last = self.status()
        self._in = None
        for sink in self._sinks:
            sink.close()

    def abort(self) -> None:
        """Give up a query that has not come after all."""
        for sink in self._sinks:
            sink.abort(0)
        self._sinks = []

    def since(self, shared: InputStatus) -> InputStatus:
        """What became of the rows since it came; those that waited then are its own."""
        before = self.before.get(shared.name)
        if before is None:
            return shared
        gone = before.used + before.late + before.rejected
        return replace(
            shared,
            rows_in=shared.rows_in - gone,
            used=shared.used - before.used,
            late=shared.late - before.late,
            rejected=shared.rejected - before.rejected,
        )
