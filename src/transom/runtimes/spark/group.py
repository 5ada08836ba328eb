"""Standing queries that share a join on Spark: one streaming query with one state, and a sink for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.connectors.source import Source
from transom.pipeline.answer import output_schema
from transom.pipeline.outlet import divided
from transom.pipeline.side import SIDE
from transom.planner.operator import Operator
from transom.planner.outlets import together
from transom.planner.sharing import share
from transom.planner.sharing_shape import Sharable
from transom.program.run import Order, Terms
from transom.program.status import Status
from transom.runtimes.spark.batch_sinks import BatchSink, FunctionSink, InDriver, PlainSink, open_batch_sink
from transom.runtimes.spark.query import Definition, SparkQuery


class SparkMember:
    """A query of a group: where its answer goes, and how it is doing."""

    def __init__(self, order: Order, outlet: Operator, group: SparkGroup) -> None:
        self.name = order.name
        self.order = order
        self.emit = outlet.tactic.name
        self.root = outlet.inputs[0]
        self.schema = output_schema(self.emit, self.root.schema)
        self.rows_out = 0
        self._group = group

    @property
    def opened(self) -> BatchSink:
        return self._group.answer_of(self)

    @property
    def sink(self) -> Sink | BatchSink:
        answer = self.opened
        return answer.sink if isinstance(answer, PlainSink) else answer

    @property
    def in_memory(self) -> bool:
        return isinstance(self.sink, MemorySink)

    @property
    def finished(self) -> bool:
        return self._group.finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        sink = self.sink
        assert isinstance(sink, MemorySink)
        return sink.table()

    def status(self) -> Status:
        """As of the last batch; `rows_out` are those of this run."""
        whole = self._group.status()
        place = {id(operator): i for i, operator in enumerate(self._group.layout.operators)}
        mine = [whole.operators[place[id(operator)]] for operator in self.root.walk()]
        numbered = tuple(replace(operator, number=number) for number, operator in enumerate(mine, 1))
        return replace(whole, name=self.name, operators=numbered, rows_out=self.rows_out)


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


class SparkGroup(SparkQuery):
    """Queries on the same join, as `asked` says of each; none of them tells snapshots."""

    def __init__(
        self,
        orders: Sequence[tuple[Order, Sharable]],
        spark: SparkSession,
        open_source: Callable[[Definition], Source],
        *,
        frames: Mapping[str, DataFrame] | None,
        terms: Terms,
        checkpoint: str | None,
    ) -> None:
        first = orders[0][0]
        asked = [each for _, each in orders]
        shared = share(asked, first.planned.catalogue, [None] * len(orders))
        root = together(shared.roots, [order.name for order, _ in orders], [order.emit for order, _ in orders])
        self.members = [
            SparkMember(order, outlet, self) for (order, _), outlet in zip(orders, root.inputs, strict=True)
        ]
        super().__init__(
            replace(first.planned, root=root, decisions=()),
            spark,
            open_source,
            first.open_sink,
            frames=frames,
            follow=terms.follow,
            checkpoint=checkpoint,
            name=f"shared-{first.name}",
            on_batch=terms.on_batch,
        )

    def answer_of(self, member: SparkMember) -> BatchSink:
        answers = self._sinks()[0]
        assert isinstance(answers, DividedSink)
        return answers.sinks[self.members.index(member)]

    def _sinks(self) -> list[BatchSink]:
        """Where the answers go, and refused rows if they are wanted; to a side that several queries have, once."""
        if not self._opened:
            reached = self._reached()
            answers: list[BatchSink] = []
            sides: list[BatchSink] = []
            for member in self.members:
                if self._on_batch is not None:
                    answers.append(FunctionSink(self._on_batch))
                else:
                    answers.append(open_batch_sink(member.order.open_sink, member.schema, reached))
                if member.order.open_side is not None:
                    side = open_batch_sink(member.order.open_side, SIDE, reached)
                    known = [other.sink for other in sides if isinstance(other, PlainSink)]
                    if not isinstance(side, PlainSink) or not any(side.sink is other for other in known):
                        sides.append(side)
            self._opened = [DividedSink(self.members, answers), *sides]
        return self._opened
