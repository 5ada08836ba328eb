"""A query that shares its join with others on Spark: what it asks, where its answer goes, and how it is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.pipeline.answer import output_schema
from transom.pipeline.outlet import divided
from transom.pipeline.side import SIDE
from transom.plan.algebra import Stream
from transom.planner.operator import Operator
from transom.planner.sharing_shape import Sharable
from transom.program.run import Order, Terms
from transom.program.status import InputStatus, Status
from transom.runtimes.spark.batch_sinks import BatchSink, FunctionSink, InDriver, PlainSink, open_batch_sink
from transom.runtimes.spark.checkpoint import Reached

if TYPE_CHECKING:
    from transom.runtimes.spark.group import SparkGroup


class SparkMember:
    """A query of a group: what it asks, where its answer goes, and how it is doing; `begin`: when it came to others."""

    def __init__(self, order: Order, asked: Sharable) -> None:
        self.name = order.name
        self.key = order.name
        """What its operators are known by; a name may be given again to a query that comes later."""
        self.order = order
        assert order.planned.root is not None
        self.emit = "stream" if isinstance(order.planned.root.node, Stream) else order.emit
        self.schema = output_schema(self.emit, order.planned.root.schema)
        self.asked = asked
        self.begin: int | None = None
        self.before: dict[str, InputStatus] = {}
        """What had become of the inputs when it came."""
        self.rows_out = 0
        self.last: Status | None = None
        """Its status as long as its group has not done a batch."""
        self._in: tuple[SparkGroup, Operator] | None = None
        """Its group and what is its own there; one value, since others look at it while it changes."""
        self._answer: BatchSink | None = None
        self._side: BatchSink | None = None

    def join(self, group: SparkGroup, outlet: Operator) -> None:
        """It is in this group from now on."""
        (root,) = outlet.inputs
        assert (self.emit, self.schema) == (outlet.tactic.name, output_schema(self.emit, root.schema))
        self._in = group, root

    def open(self, reached: Reached, terms: Terms) -> tuple[BatchSink, BatchSink | None]:
        """Where the answer goes, and refused rows if they are wanted; opened once."""
        if self._answer is None:
            if terms.on_batch is not None:
                self._answer = FunctionSink(terms.on_batch)
            else:
                self._answer = open_batch_sink(self.order.open_sink, self.schema, reached)
            if self.order.open_side is not None:
                self._side = open_batch_sink(self.order.open_side, SIDE, reached)
        return self._answer, self._side

    @property
    def opened(self) -> BatchSink:
        if self._answer is None:
            assert self._in is not None
            return self._in[0].open(self)[0]
        return self._answer

    @property
    def sink(self) -> Sink | BatchSink:
        answer = self.opened
        return answer.sink if isinstance(answer, PlainSink) else answer

    @property
    def in_memory(self) -> bool:
        return isinstance(self.sink, MemorySink)

    @property
    def finished(self) -> bool:
        known = self._in
        return known is None or known[0].finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        sink = self.sink
        assert isinstance(sink, MemorySink)
        return sink.table()

    def status(self) -> Status:
        """As of the last batch; `rows_out` are those of this run."""
        known = self._in
        if (known is None or not known[0].statuses.batches) and self.last is not None:
            return self.last
        assert known is not None
        group, root = known
        whole = group.status()
        place = {id(operator): i for i, operator in enumerate(group.layout.operators)}
        mine = [whole.operators[place[id(operator)]] for operator in root.walk()]
        numbered = tuple(replace(operator, number=number) for number, operator in enumerate(mine, 1))
        inputs = tuple(self.since(one) for one in whole.inputs)
        return replace(whole, name=self.name, inputs=inputs, operators=numbered, rows_out=self.rows_out)

    def leave(self) -> None:
        """What it has written is complete; how it is doing stays as it is."""
        self.last = self.status()
        self._in = None
        for sink in (self._answer, self._side):
            if sink is not None and not (sink is self._side and isinstance(sink, PlainSink)):  # which others may have
                sink.close()

    def abandon(self) -> None:
        """It has not come after all."""
        for sink in (self._answer, self._side):
            if sink is not None:
                sink.abandon()

    def since(self, one: InputStatus) -> InputStatus:
        """What became of the rows since it came; those that waited then are its own."""
        known = self.before.get(one.name)
        if known is None:
            return one
        gone = known.used + known.late + known.rejected
        return replace(
            one,
            rows_in=one.rows_in - gone,
            used=one.used - known.used,
            late=one.late - known.late,
            rejected=one.rejected - known.rejected,
        )


class DividedSink(InDriver):
    """Gives every query of a group the rows of its own answer."""

    def __init__(self, members: Sequence[SparkMember], sinks: Sequence[BatchSink]) -> None:
        self.sinks = list(sinks)
        self._members = members

    def write(self, batch: int, rows: pa.RecordBatch) -> None:
        emits = [member.emit for member in self._members]
        schemas = [member.schema for member in self._members]
        answers = divided([rows], emits, schemas)
        for member, sink, mine in zip(self._members, self.sinks, answers, strict=True):
            member.rows_out += len(mine)
            sink.write(batch, mine)

    def replace(self, batch: int, rows: pa.RecordBatch) -> None:
        raise AssertionError("answers of several queries are no snapshot")

    def abandon(self) -> None:
        for sink in self.sinks:
            sink.abandon()

    def close(self) -> None:
        for sink in self.sinks:
            sink.close()
