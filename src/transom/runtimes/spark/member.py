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
        self.order = order
        self.asked = asked
        self.begin: int | None = None
        self.before: dict[str, InputStatus] = {}
        """What had become of the inputs when it came."""
        self.rows_out = 0
        self.last: Status | None = None
        """Its status as long as its group has not done a batch."""
        self._group: SparkGroup | None = None
        self._answer: BatchSink | None = None
        self._side: BatchSink | None = None

    def join(self, group: SparkGroup, outlet: Operator) -> None:
        """It is in this group from now on."""
        self._group = group
        self.emit = outlet.tactic.name
        self.root = outlet.inputs[0]
        self.schema = output_schema(self.emit, self.root.schema)

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
        assert self._group is not None
        return self._group.open(self)[0]

    @property
    def sink(self) -> Sink | BatchSink:
        answer = self.opened
        return answer.sink if isinstance(answer, PlainSink) else answer

    @property
    def in_memory(self) -> bool:
        return isinstance(self.sink, MemorySink)

    @property
    def finished(self) -> bool:
        return self._group is None or self._group.finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        sink = self.sink
        assert isinstance(sink, MemorySink)
        return sink.table()

    def status(self) -> Status:
        """As of the last batch; `rows_out` are those of this run."""
        group = self._group
        if (group is None or not group.statuses.batches) and self.last is not None:
            return self.last
        assert group is not None
        whole = group.status()
        place = {id(operator): i for i, operator in enumerate(group.layout.operators)}
        mine = [whole.operators[place[id(operator)]] for operator in self.root.walk()]
        numbered = tuple(replace(operator, number=number) for number, operator in enumerate(mine, 1))
        inputs = tuple(self.since(one) for one in whole.inputs)
        return replace(whole, name=self.name, inputs=inputs, operators=numbered, rows_out=self.rows_out)

    def leave(self) -> None:
        """What it has written is complete; how it is doing stays as it is."""
        self.last, self._group = self.status(), None
        for sink in (self._answer, self._side):
            if sink is not None and not (sink is self._side and isinstance(sink, PlainSink)):  # which others may have
                sink.close()

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
