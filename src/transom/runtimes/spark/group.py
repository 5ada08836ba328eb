"""Standing queries that share a join on Spark: one streaming query with one state, and a sink for each of them.

Queries come and go between two batches: the streaming query is stopped, and another one goes on from there with what it
remembers (`handover.py`). A query that comes begins at the progress that has been reached.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.connectors.source import Source
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.answer import output_schema
from transom.pipeline.outlet import divided
from transom.pipeline.side import SIDE
from transom.planner.operator import Operator
from transom.planner.outlets import together
from transom.planner.sharing import NOT_COUNTED, Sides, share
from transom.planner.sharing_shape import Sharable
from transom.program.run import Order, Terms
from transom.program.status import InputStatus, Status
from transom.runtimes.spark.batch_sinks import BatchSink, FunctionSink, InDriver, PlainSink, open_batch_sink
from transom.runtimes.spark.checkpoint import QueryCheckpoint, Reached
from transom.runtimes.spark.handover import Stop, hand_over
from transom.runtimes.spark.query import Definition, Heritage, SparkQuery


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
        self._group: SparkGroup | None = None
        self._last: Status | None = None
        self._answer: BatchSink | None = None
        self._side: BatchSink | None = None

    def join(self, group: SparkGroup, outlet: Operator) -> None:
        """It is in this group from now on."""
        self._group = group
        self.emit = outlet.tactic.name
        self.root = outlet.inputs[0]
        self.schema = output_schema(self.emit, self.root.schema)

    def stand_still(self, status: Status) -> None:
        """Its status, as long as its group has not done a batch."""
        self._last = status

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
        if (group is None or not group.statuses.batches) and self._last is not None:
            return self._last
        assert group is not None
        whole = group.status()
        place = {id(operator): i for i, operator in enumerate(group.layout.operators)}
        mine = [whole.operators[place[id(operator)]] for operator in self.root.walk()]
        numbered = tuple(replace(operator, number=number) for number, operator in enumerate(mine, 1))
        inputs = tuple(self._since(one) for one in whole.inputs)
        return replace(whole, name=self.name, inputs=inputs, operators=numbered, rows_out=self.rows_out)

    def leave(self) -> None:
        """What it has written is complete; how it is doing stays as it is."""
        self._last, self._group = self.status(), None
        for sink in (self._answer, self._side):
            if sink is not None and not (sink is self._side and isinstance(sink, PlainSink)):  # which others may have
                sink.close()

    def _since(self, one: InputStatus) -> InputStatus:
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


@dataclass(frozen=True)
class Place:
    """Where a group runs, and how: the same for all that goes on from it."""

    spark: SparkSession
    open_source: Callable[[Definition], Source]
    terms: Terms
    frames: Mapping[str, DataFrame] | None = None
    checkpoint: str | None = None
    open: bool = False
    """Whether queries may come and go. Rows of sides that anybody counts are counted whoever is there."""


class SparkGroup(SparkQuery):
    """Queries on the same join; none of them tells snapshots."""

    def __init__(
        self,
        members: Sequence[SparkMember],
        place: Place,
        sides: Sides = NOT_COUNTED,
        heritage: Heritage | None = None,
    ) -> None:
        first = members[0].order
        shared = share([one.asked for one in members], first.planned.catalogue, [one.begin for one in members], sides)
        orders = [member.order for member in members]
        root = together(shared.roots, [order.name for order in orders], [order.emit for order in orders])
        self.members = list(members)
        self.sides = counted([member.asked for member in members], sides)
        self._where = place
        self._broken: BaseException | None = None
        """What went wrong between this group and the one that was to go on from it."""
        super().__init__(
            replace(first.planned, root=root, decisions=()),
            place.spark,
            place.open_source,
            first.open_sink,
            frames=place.frames,
            follow=place.terms.follow,
            checkpoint=place.checkpoint,
            name=f"shared-{first.name}",
            on_batch=place.terms.on_batch,
            open=place.open,
            heritage=heritage,
        )
        for member, outlet in zip(self.members, root.inputs, strict=True):
            member.join(self, outlet)

    def open(self, member: SparkMember) -> tuple[BatchSink, BatchSink | None]:
        return member.open(self._reached(), self._where.terms)

    def _sinks(self) -> list[BatchSink]:
        """Where the answers go, and refused rows if they are wanted; to a side that several queries have, once."""
        if not self._opened:
            answers: list[BatchSink] = []
            sides: list[BatchSink] = []
            for member in self.members:
                answer, side = self.open(member)
                answers.append(answer)
                known = [other.sink for other in sides if isinstance(other, PlainSink)]
                if side is not None and not (isinstance(side, PlainSink) and any(side.sink is one for one in known)):
                    sides.append(side)
            self._opened = [DividedSink(self.members, answers), *sides]
        return self._opened

    def _take(self, cargo: pa.Table, number: int) -> None:
        """Sinks know batches by their number in the whole run."""
        super()._take(cargo, number + self.batches_before)

    # --- coming and going --------------------------------------------------------------------------------------------

    @property
    def batches_before(self) -> int:
        return 0 if self._stop is None else self._stop.batches

    def admits(self, asked: Sharable) -> bool:
        """Whether a query may come to this group: it has the same join, which its windows leave as it is."""
        same = asked.join == self.members[0].asked.join
        return self._where.open and same and not self.finished and counted([asked], self.sides) == self.sides

    def changed(self, come: Sequence[SparkMember] = (), go: Sequence[str] = ()) -> SparkGroup | None:
        """Stop, and let another group go on with other queries; None if the end of the input had come by then."""
        try:
            return self._changed(come, go)
        except BaseException as error:
            self._broken = error
            raise

    def ended(self) -> bool:
        if self._broken is not None:
            raise self._broken
        return super().ended()

    def _changed(self, come: Sequence[SparkMember], go: Sequence[str]) -> SparkGroup | None:
        self.finish()
        stop = self._stopped()
        upto = None if stop is None else stop.upto
        if upto == FOREVER:
            return None
        for member in self.members:
            member.stand_still(member.status())
        for member in come:
            self._let_in(member, upto)
        for member in self.members:
            if member.name in go:
                member.leave()
        staying = [member for member in self.members if member.name not in go]
        folders = [*self._older, self._folder()]
        heritage = Heritage(stop, self._pumps, folders)
        following = SparkGroup([*staying, *come], self._where, self.sides, heritage)
        if stop is not None:
            hand_over(self.spark, stop, following.layout, following._folder())
        self._forget(stop)
        return following

    def _stopped(self) -> Stop | None:
        """Where this group, or that from which it was to go on, has come to."""
        reached = QueryCheckpoint(self._folder()).reached()
        if not reached.done:
            return self._stop
        offset = QueryCheckpoint(self._folder()).offset(reached.done - 1)
        return Stop(self.layout, self._folder(), self.statuses.upto, offset, self.batches_before + reached.done)

    def _let_in(self, member: SparkMember, upto: int | None) -> None:
        """As if it had been there, with its time set to begin now."""
        member.begin = upto
        first = self.members[0]
        whole = self.status() if self.statuses.batches or first._last is None else first._last
        member.before = {one.name: one for one in whole.inputs}
        inputs = tuple(member._since(one) for one in whole.inputs)
        progress = BEGINNING if upto is None else upto
        member.stand_still(replace(whole, name=member.name, inputs=inputs, operators=(), rows_out=0, progress=progress))

    def _forget(self, stop: Stop | None) -> None:
        """What nobody goes on from any more is removed; rows that were pumped stay."""
        for folder in self._older:
            if stop is None or folder != stop.folder:
                shutil.rmtree(os.path.join(folder, "spark"), ignore_errors=True)
                shutil.rmtree(os.path.join(folder, "memories"), ignore_errors=True)
        if self._depot.folder is not None:
            shutil.rmtree(self._depot.folder, ignore_errors=True)


def counted(asked: Sequence[Sharable], sides: Sides = NOT_COUNTED) -> Sides:
    """The sides of a join whose rows are counted, by one of these queries or before."""
    left, right = (sides[i] or any(one.windows[i].rows is not None for one in asked) for i in (0, 1))
    return left, right
