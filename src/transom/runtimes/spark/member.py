"""A query that shares its join with others on Spark: what it asks, where its answer goes, and how it is doing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.pipeline.answer import output_schema
from transom.plan.algebra import Stream
from transom.planner.operator import Operator
from transom.planner.sharing_shape import Sharable
from transom.program.run import Order
from transom.program.status import InputStatus, Status

if TYPE_CHECKING:
    from transom.runtimes.spark.group import SparkGroup
    from transom.runtimes.spark.query import SparkQuery


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
        self._sinks: list[Sink] = []

    def join(self, group: SparkGroup, outlet: Operator) -> None:
        """It is in this group from now on."""
        (root,) = outlet.inputs
        assert (self.emit, self.schema) == (outlet.tactic.name, output_schema(self.emit, root.schema))
        self._in = group, root

    def open(self, group: SparkQuery) -> list[Sink]:
        """Where the answer goes, and refused rows if they are wanted; opened once."""
        if not self._sinks:
            self._sinks = group.open_sinks(self.order.open_sink, self.order.open_side, self.schema)
        return self._sinks

    @property
    def sink(self) -> Sink:
        if not self._sinks:
            assert self._in is not None
            self.open(self._in[0])
        return self._sinks[0]

    @property
    def in_memory(self) -> bool:
        return self.sink.collected() is not None

    @property
    def finished(self) -> bool:
        known = self._in
        return known is None or known[0].finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        found = self.sink.collected()
        assert found is not None
        return found

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
        for sink in self._sinks:
            sink.close()

    def abandon(self) -> None:
        """It has not come after all."""
        for sink in self._sinks:
            sink.abort(0)

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
