"""Standing queries that share a join on Spark: one streaming query with one state, and a sink for each of them.

Queries come and go between two batches: the streaming query is stopped, and another one resumes from there with what it
remembers (`savepoint.py`). A query that comes begins at the progress that has been reached.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.core.errors import CheckpointError, TransomError
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.consumer import Consumer
from transom.planner.sharing import NOT_COUNTED, Request, Sides, shared_subplan
from transom.planner.sharing_shape import Sharable
from transom.program.run import QuerySpec
from transom.program.status import InputStatus, OperatorStatus, Status
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.query import Savepoint, SparkQuery
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.query_sinks import Sinks
from transom.runtimes.spark.savepoint import Stop, migrate_state
from transom.runtimes.spark.spark_consumer import SparkConsumer

_POLL: Final = 0.05


class SparkGroup(SparkQuery):
    """Queries on the same join; none of them emits snapshots."""

    def __init__(
        self,
        consumers: Sequence[SparkConsumer],
        context: QueryContext,
        sides: Sides = NOT_COUNTED,
        savepoint: Savepoint | None = None,
    ) -> None:
        first = consumers[0].spec
        subplan = shared_subplan([consumer.request for consumer in consumers], first.planned.catalogue, sides)
        self.consumers = list(consumers)
        self.sides = counted([consumer.request for consumer in consumers], sides)
        self._status_before: Status | None = None
        """How all was doing where this group resumes from another one."""
        planned = replace(first.planned, root=subplan, decisions=())
        super().__init__(
            QuerySpec(planned, f"shared-{first.name}", "changes", first.open_sink),
            context,
            consumers=tuple(consumer.consumer for consumer in consumers),
            savepoint=savepoint,
        )
        for consumer in self.consumers:
            consumer.join(self)

    def status_of(self, consumer: Consumer) -> tuple[Status, list[OperatorStatus], int]:
        """How all are doing, the operators that one of the queries has for itself, and how many rows left it."""
        with self._lock:
            return self._statuses.status(), *self._statuses.of_consumer(consumer)

    def _sinks(self) -> Sinks:
        """Where the answers go, and rejected rows if they are wanted; to a sink that several queries have, once."""
        if self._opened is None:
            answers: dict[str, Sink] = {}
            sides: dict[int, Sink] = {}
            for consumer in self.consumers:
                answers[consumer.key], *dead_letters = consumer.open(self)
                sides |= {id(each): each for each in dead_letters}
            self._opened = Sinks(answers, list(sides.values()))
        return self._opened

    def _take(self, messages: pa.Table, number: int) -> None:
        """Sinks know batches by their number in the whole run."""
        super()._take(messages, number + self.batches_before)

    # --- coming and going --------------------------------------------------------------------------------------------

    def admits(self, request: Sharable) -> bool:
        """Whether a query may come to this group: it has the same join, which its windows leave as it is."""
        first = self.consumers[0].request
        same = isinstance(first, Sharable) and request.join == first.join
        return self._context.open and same and not self.finished and counted([request], self.sides) == self.sides

    def changed(self, come: Sequence[SparkConsumer] = (), go: Sequence[str] = ()) -> SparkGroup | None:
        """Stop, and let another group go on with other queries; None if the end of the input had come by then."""
        try:
            return self._changed(come, go)
        except BaseException as error:
            self.fail(error)
            raise

    def let_go(self, name: str) -> None:
        """Let one of several queries go when all is over."""
        consumer = next(each for each in self.consumers if each.name == name)
        self.consumers.remove(consumer)
        self._opened = None
        consumer.leave()

    def _changed(self, come: Sequence[SparkConsumer], go: Sequence[str]) -> SparkGroup | None:
        self._await_planned()
        self.finish()
        stop = self._stopped()
        frontier = None if stop is None else stop.frontier
        if frontier == FOREVER:
            return None
        whole = self.status() if self._status_before is None or self.statuses.batches else self._status_before
        for consumer in self.consumers:
            consumer.last = consumer.status()
        for consumer in come:
            _let_in(consumer, frontier, whole)
            consumer.first = 0 if stop is None else stop.batches
        for consumer in self.consumers:
            if consumer.name in go:
                consumer.leave()
        staying = [consumer for consumer in self.consumers if consumer.name not in go]
        savepoint = Savepoint(stop, self._inputs.prefetchers, self._folders.left())
        following = SparkGroup([*staying, *come], self._next_context(), self.sides, savepoint)
        following._status_before = whole
        if stop is not None:
            self._migrate_state(stop, following)
        self._folders.forget_all_but(None if stop is None else stop.folder)
        return following

    def _migrate_state(self, stop: Stop, following: SparkGroup) -> None:
        try:
            migrate_state(self.spark, stop, following.layout, following._folders.kept)
        except BaseException as error:
            following._folders.drop()
            if isinstance(error, Exception) and not isinstance(error, TransomError):
                raise self._as_ours(error) from None
            raise

    def _stopped(self) -> Stop | None:
        """Where this group, or that from which it was to go on, has come to."""
        reached = QueryCheckpoint(self._folders.kept).reached()
        if not reached.done:
            return self._stop
        if not self.statuses.reported:
            raise CheckpointError(
                f"'{self._folders.status_file}' is gone, which says how far the queries had come",
                remedy="wait until they have done a batch, and add or stop a query then",
            )
        offset = QueryCheckpoint(self._folders.kept).offset(reached.done - 1)
        batches = self.batches_before + reached.done
        partitions = self.layout.partitions
        return Stop(self.layout, partitions, self._folders.kept, self.statuses.frontier, offset, batches)

    def _next_context(self) -> QueryContext:
        """For the group that follows: it has another folder beside this one, and the rows where they are."""
        if self.checkpoint is None:
            return self._context
        assert self._context.open, "only such a run knows where its queries have gone on"
        return replace(self._context, checkpoint=next_folder(self.checkpoint))

    def _await_planned(self) -> None:
        """A batch that was planned before a restart has to be done: sinks may have rows of it. And what a group is to
        go on with is read out of a state of its own."""
        while self.checkpoint is not None and self.active and not self.statuses.batches:
            reached = QueryCheckpoint(self._folders.kept).reached()
            if reached.done == reached.planned and (reached.done or self._stop is None):
                return
            time.sleep(_POLL)

    # --- the checkpoint of an open run -------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """What a process that resumes has to know of a group beside the state that Spark keeps, as JSON."""
        stop = self._stop
        return {
            "sides": list(self.sides),
            "stop": None
            if stop is None
            else {
                "partitions": stop.partitions,
                "frontier": stop.frontier,
                "offset": stop.offset,
                "batches": stop.batches,
            },
            "queries": [
                {
                    "name": consumer.name,
                    "key": consumer.key,
                    "begin": consumer.begin,
                    "first": consumer.first,
                    "before": {
                        name: [status.used, status.late, status.rejected] for name, status in consumer.before.items()
                    },
                }
                for consumer in self.consumers
            ],
        }

    @staticmethod
    def resumed(saved: dict[str, Any], consumers: Mapping[str, SparkConsumer], context: QueryContext) -> SparkGroup:
        """A group that goes on with what `saved` gave, of the same queries by their names."""
        ordered = []
        for of_query in saved["queries"]:
            consumer = consumers[of_query["name"]]
            consumer.key, consumer.begin, consumer.first = of_query["key"], of_query["begin"], of_query["first"]
            consumer.before = {name: _counts(name, *counts) for name, counts in of_query["before"].items()}
            ordered.append(consumer)
        savepoint = None
        if (stop := saved["stop"]) is not None:
            assert context.checkpoint is not None
            stopped = Stop(
                None, stop["partitions"], context.checkpoint, stop["frontier"], stop["offset"], stop["batches"]
            )
            savepoint = Savepoint(stopped, {}, [])
        left, right = saved["sides"]
        return SparkGroup(ordered, context, (bool(left), bool(right)), savepoint)


def next_folder(folder: str) -> str:
    """Beside this one."""
    return os.path.join(os.path.dirname(folder), uuid.uuid4().hex[:12])


def _counts(name: str, used: int, late: int, rejected: int) -> InputStatus:
    """What had become of the rows of an input."""
    return InputStatus(name, used + late + rejected, used, late, rejected, 0, None, False, {})


def _let_in(consumer: SparkConsumer, frontier: int | None, whole: Status) -> None:
    """Let a query in as if it had been there, with its time set to begin now; `whole` is how all are doing."""
    consumer.begin = frontier
    consumer.key = f"{consumer.name} {uuid.uuid4().hex}"
    consumer.before = {status.name: status for status in whole.inputs}
    inputs = tuple(consumer.since(status) for status in whole.inputs)
    progress = BEGINNING if frontier is None else frontier
    consumer.last = replace(whole, name=consumer.name, inputs=inputs, operators=(), rows_out=0, progress=progress)


def counted(requests: Sequence[Request], sides: Sides = NOT_COUNTED) -> Sides:
    """The sides of a join whose rows are counted, by one of these queries or before."""
    windows = [request.windows for request in requests if isinstance(request, Sharable)]
    left, right = (sides[i] or any(each[i].rows is not None for each in windows) for i in (0, 1))
    return left, right
