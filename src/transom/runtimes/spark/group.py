"""Standing queries that share a join on Spark: one streaming query with one state, and a sink for each of them.

Queries come and go between two batches: the streaming query is stopped, and another one goes on from there with what it
remembers (`handover.py`). A query that comes begins at the progress that has been reached.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.connectors.connector import Sink, Source
from transom.core.errors import TransomError
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.consumer import Consumer
from transom.planner.sharing import NOT_COUNTED, Sides, shared_join
from transom.planner.sharing_shape import Sharable
from transom.program.run import Terms
from transom.program.status import OperatorStatus, Status
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.handover import Stop, hand_over
from transom.runtimes.spark.log_names import STATE
from transom.runtimes.spark.member import SparkMember
from transom.runtimes.spark.query import Definition, Heritage, Sinks, SparkQuery


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
        trunk = shared_join([member.asked for member in members], first.planned.catalogue, sides)
        self.members = list(members)
        self.sides = counted([member.asked for member in members], sides)
        self._where = place
        self._known: Status | None = None
        """How all was doing where this group goes on from another one."""
        super().__init__(
            replace(first.planned, root=trunk, decisions=()),
            place.spark,
            place.open_source,
            first.open_sink,
            frames=place.frames,
            ending=place.terms.ending,
            checkpoint=place.checkpoint,
            name=f"shared-{first.name}",
            on_batch=place.terms.on_batch,
            open=place.open,
            consumers=tuple(member.consumer for member in members),
            heritage=heritage,
        )
        for member in self.members:
            member.join(self)

    def status_of(self, consumer: Consumer) -> tuple[Status, list[OperatorStatus], int]:
        """How all are doing, the operators that one of the queries has for itself, and how many rows left it."""
        with self._lock:
            return self._statuses.status(), *self._statuses.of_consumer(consumer)

    def _sinks(self) -> Sinks:
        """Where the answers go, and refused rows if they are wanted; to a side that several queries have, once."""
        if self._opened is None:
            answers: dict[str, Sink] = {}
            sides: dict[int, Sink] = {}
            for member in self.members:
                answers[member.key], *side = member.open(self)
                sides |= {id(each): each for each in side}
            self._opened = Sinks(answers, list(sides.values()))
        return self._opened

    def _take(self, cargo: pa.Table, number: int) -> None:
        """Sinks know batches by their number in the whole run."""
        super()._take(cargo, number + self.batches_before)

    # --- coming and going --------------------------------------------------------------------------------------------

    def admits(self, asked: Sharable) -> bool:
        """Whether a query may come to this group: it has the same join, which its windows leave as it is."""
        same = asked.join == self.members[0].asked.join
        return self._where.open and same and not self.finished and counted([asked], self.sides) == self.sides

    def changed(self, come: Sequence[SparkMember] = (), go: Sequence[str] = ()) -> SparkGroup | None:
        """Stop, and let another group go on with other queries; None if the end of the input had come by then."""
        try:
            return self._changed(come, go)
        except BaseException as error:
            self.fail(error)
            raise

    def let_go(self, name: str) -> None:
        """One of several queries goes when all is over."""
        member = next(each for each in self.members if each.name == name)
        self.members.remove(member)
        self._opened = None
        member.leave()

    def _changed(self, come: Sequence[SparkMember], go: Sequence[str]) -> SparkGroup | None:
        self.finish()
        stop = self._stopped()
        upto = None if stop is None else stop.upto
        if upto == FOREVER:
            return None
        whole = self.status() if self._known is None or self.statuses.batches else self._known
        for member in self.members:
            member.last = member.status()
        for member in come:
            _let_in(member, upto, whole)
        for member in self.members:
            if member.name in go:
                member.leave()
        staying = [member for member in self.members if member.name not in go]
        assert self._scratch is not None  # those that queries come to have no checkpoint
        heritage = Heritage(stop, self._pumps, [*self._older, self._scratch])
        following = SparkGroup([*staying, *come], self._where, self.sides, heritage)
        following._known = whole
        if stop is not None:
            self._hand_over(stop, following)
        self._forget(stop)
        return following

    def _hand_over(self, stop: Stop, following: SparkGroup) -> None:
        try:
            hand_over(self.spark, stop, following.layout, following._folder())
        except BaseException as error:
            if following._scratch is not None:
                following._scratch.remove()
            if isinstance(error, Exception) and not isinstance(error, TransomError):
                raise self._told(error) from None
            raise

    def _stopped(self) -> Stop | None:
        """Where this group, or that from which it was to go on, has come to."""
        reached = QueryCheckpoint(self._folder()).reached()
        if not reached.done:
            return self._stop
        offset = QueryCheckpoint(self._folder()).offset(reached.done - 1)
        return Stop(self.layout, self._folder(), self.statuses.upto, offset, self.batches_before + reached.done)

    def _forget(self, stop: Stop | None) -> None:
        """What nobody goes on from any more is removed; rows that were pumped stay."""
        for scratch in self._older:
            if stop is None or scratch.path != stop.folder:
                for name in ("spark", "memories", STATE):
                    shutil.rmtree(os.path.join(scratch.path, name), ignore_errors=True)
        for held in filter(None, (self._cargo, self._memory)):
            held.remove()


def _let_in(member: SparkMember, upto: int | None, whole: Status) -> None:
    """As if it had been there, with its time set to begin now; `whole` is how all are doing."""
    member.begin = upto
    member.key = f"{member.name} {uuid.uuid4().hex}"
    member.before = {one.name: one for one in whole.inputs}
    inputs = tuple(member.since(one) for one in whole.inputs)
    progress = BEGINNING if upto is None else upto
    member.last = replace(whole, name=member.name, inputs=inputs, operators=(), rows_out=0, progress=progress)


def counted(asked: Sequence[Sharable], sides: Sides = NOT_COUNTED) -> Sides:
    """The sides of a join whose rows are counted, by one of these queries or before."""
    left, right = (sides[i] or any(one.windows[i].rows is not None for one in asked) for i in (0, 1))
    return left, right
