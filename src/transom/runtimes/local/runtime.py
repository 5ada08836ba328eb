"""The local runtime: queries run in this process, a step of each in turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol

from transom.connectors.connector import Source
from transom.core.errors import OptionError, SourceError
from transom.planner.explain import Measured
from transom.planner.sharing_shape import Sharable
from transom.planner.statistics import Machine
from transom.program.checkpoint_manifest import Manifest
from transom.program.inputs import Definition
from transom.program.interrupt import listen
from transom.program.planned import Planned
from transom.program.run import Order, Terms
from transom.program.sharing import sharing_of
from transom.program.statistics import this_machine
from transom.runtimes.local.analyze import measure
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.run import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _home(order: Order, number: int, checkpoint: str | None) -> str | None:
    """Where files lie that a checkpoint refers to: in its folder, or on the disk that SET spill names."""
    if checkpoint is None:
        return None
    where = order.planned.catalogue.options.get("spill")
    if where is None:
        return os.path.join(checkpoint, f"spill-{number}")
    owner = hashlib.sha256(os.path.abspath(checkpoint).encode()).hexdigest()[:16]
    return os.path.join(where, f"transom-checkpoint-{owner}-{number}")


class Sources(Protocol):
    """What queries read by the name of a definition."""

    def open(self, definition: Definition) -> Source: ...


class LocalRuntime:
    def __init__(self, inputs: Sources) -> None:
        listen()
        self._inputs = inputs

    @property
    def missing_settings(self) -> Sequence[object]:
        return ()

    def machine(self) -> Machine:
        return this_machine()

    def begin(self, brief: bool = False) -> None:
        """There is nothing to start."""

    def assemble(self, orders: Sequence[Order], terms: Terms) -> LocalRun:
        if terms.on_batch is not None:
            raise OptionError(
                "batches have no numbers of their own in this process",
                remedy="write on_rows, or run the query on Spark",
            )
        jobs = self._jobs(orders, terms)
        shared = {query.name for job in jobs if job.join is not None for query in job.queries}
        run = LocalRun(
            jobs,
            checkpoint=terms.checkpoint,
            every=terms.every,
            clock=terms.clock,
            names=[order.name for order in orders],
            manifest=Manifest.of("local", orders, shared),
        )
        run.resume()
        return run

    def open(self, terms: Terms) -> LocalRun:
        def make(order: Order, asked: Sharable | None) -> LocalJob:
            return self._job([order], [] if asked is None else [asked], 0, terms)

        return LocalRun((), every=terms.every, clock=terms.clock, make=make)

    def _jobs(self, orders: Sequence[Order], terms: Terms) -> list[LocalJob]:
        """Queries on the same join share it; where the first of them stands they take their turn."""
        sharing = sharing_of([order.planned for order in orders])
        found: list[LocalJob] = []
        for place, order in enumerate(orders):
            group = sharing.group_of(place)
            if not group:
                found.append(self._job([order], [], place, terms))
            elif place == group[0]:
                found.append(self._job([orders[i] for i in group], [sharing.asked[i] for i in group], place, terms))
        return found

    def _job(self, orders: Sequence[Order], asked: Sequence[Sharable], number: int, terms: Terms) -> LocalJob:
        home = _home(orders[0], number, terms.checkpoint)
        return LocalJob(orders, self._inputs.open, asked=asked, ending=terms.ending, clock=terms.clock, home=home)

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        return measure(planned, self._inputs.open, emit)

    def adopt(self, name: str, frame: DataFrame) -> NoReturn:
        raise SourceError(
            f"'{name}' is a DataFrame of Spark, and the queries of this session run in this process",
            remedy="use transom.Session(spark=..) with its SparkSession"
            + ("" if frame.isStreaming else ", or hand over its rows: df.toArrow()"),
        )

    def dataframe(self, order: Order) -> NoReturn:
        raise OptionError(
            "the queries of this session run in this process, and there is no DataFrame of Spark",
            remedy="use transom.Session(spark=..), or take the rows with to_arrow()",
        )

    def close(self) -> None: ...
