"""The local runtime: queries run in this process, a step of each in turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol

from transom.connectors.connector import Source
from transom.core.errors import OptionError, SourceError
from transom.core.location import is_remote
from transom.kernels.multiway.statistics import Machine
from transom.kernels.slide_join.budget import RunBudget
from transom.planner.explain import Measured
from transom.planner.sharing import Request
from transom.planner.sharing_shape import Sharable
from transom.program.checkpoint_manifest import Manifest
from transom.program.inputs import Definition
from transom.program.interrupt import listen
from transom.program.planned import Planned
from transom.program.run import QuerySpec, RunOptions
from transom.program.sharing import sharing_of
from transom.program.statistics import this_machine
from transom.runtimes.local.analyze import measure
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.open_run import OpenRun
from transom.runtimes.local.run import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _home(spec: QuerySpec, number: int, checkpoint: str | None) -> str | None:
    """Where files lie that a checkpoint refers to: in its folder, or on the disk that SET spill names.

    None: it refers to none, and has all that was spilled. So has one on a storage, which may outlive this disk.
    """
    if checkpoint is None or is_remote(checkpoint):
        return None
    where = spec.planned.catalogue.options.get("spill")
    if where is None:
        return os.path.join(checkpoint, f"spill-{number}")
    owner = hashlib.sha256(os.path.abspath(checkpoint).encode()).hexdigest()[:16]
    return os.path.join(where, f"transom-checkpoint-{owner}-{number}")


class Sources(Protocol):
    """What queries read by the name of a definition."""

    def open(self, definition: Definition) -> Source: ...


class LocalRuntime:
    name = "local"

    def __init__(self, inputs: Sources) -> None:
        listen()
        self._inputs = inputs

    @property
    def missing_settings(self) -> Sequence[object]:
        return ()

    def machine(self) -> Machine:
        return this_machine()

    def reader(self, definition: Definition) -> None:
        """Nobody else reads an input: all is read by this process."""

    def begin(self, brief: bool = False) -> None:
        """Nothing: there is no cluster to start."""

    def assemble(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> LocalRun:
        if run_options.on_batch is not None:
            raise OptionError(
                "batches have no numbers of their own in this process",
                remedy="write on_rows, or run the query on Spark",
            )
        jobs = self._jobs(specs, run_options)
        shared = {query.name for job in jobs if job.join is not None for query in job.queries}
        run = LocalRun(
            jobs,
            checkpoint=run_options.checkpoint,
            every=run_options.every,
            clock=run_options.clock,
            names=[spec.name for spec in specs],
            manifest=Manifest.of("local", specs, shared),
        )
        run.resume()
        return run

    def open(self, run_options: RunOptions) -> LocalRun:
        budget = RunBudget()

        def make(spec: QuerySpec, request: Sharable | None, number: int) -> LocalJob:
            return self._job([spec], [] if request is None else [request], number, run_options, budget)

        return OpenRun(make, checkpoint=run_options.checkpoint, every=run_options.every, clock=run_options.clock)

    def _jobs(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> list[LocalJob]:
        """Queries on the same join share it; where the first of them stands they take their turn."""
        sharing = sharing_of([spec.planned for spec in specs])
        jobs: list[LocalJob] = []
        budget = RunBudget()
        for index, spec in enumerate(specs):
            group = sharing.group_of(index)
            if not group:
                jobs.append(self._job([spec], [], index, run_options, budget))
            elif index == group[0]:
                together, requests = [specs[i] for i in group], [sharing.requests[i] for i in group]
                jobs.append(self._job(together, requests, index, run_options, budget))
        return jobs

    def _job(
        self,
        specs: Sequence[QuerySpec],
        requests: Sequence[Request],
        number: int,
        run_options: RunOptions,
        budget: RunBudget,
    ) -> LocalJob:
        home = _home(specs[0], number, run_options.checkpoint)
        return LocalJob(
            specs,
            self._inputs.open,
            requests=requests,
            ending=run_options.ending,
            clock=run_options.clock,
            home=home,
            budget=budget,
            lasting=run_options.checkpoint is not None,
        )

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        return measure(planned, self._inputs.open, emit)

    def adopt(self, name: str, frame: DataFrame) -> NoReturn:
        raise SourceError(
            f"'{name}' is a DataFrame of Spark, and the queries of this session run in this process",
            remedy="use transom.Session(spark=..) with its SparkSession"
            + ("" if frame.isStreaming else ", or hand over its rows: df.toArrow()"),
        )

    def dataframe(self, spec: QuerySpec) -> NoReturn:
        raise OptionError(
            "the queries of this session run in this process, and there is no DataFrame of Spark",
            remedy="use transom.Session(spark=..), or take the rows with to_arrow()",
        )

    def close(self) -> None: ...
