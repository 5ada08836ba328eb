"""What a runtime is to a session: something that makes queries of plans, runs them together, and measures them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from typing import Literal as OneOf

import pyarrow as pa

from transom.connectors.connector import OpenSink, Sink
from transom.core.errors import OptionError
from transom.kernels.multiway.statistics import Machine
from transom.planner.explain import Measured
from transom.program.arguments import require_path
from transom.program.clock import Clock
from transom.program.inputs import DataFrameInput, Definition
from transom.program.planned import Planned
from transom.program.progress import Listener, Progress
from transom.program.status import Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERY: Final = 16
"""The most steps between two checkpoints, unless `every` says otherwise; one comes sooner where nothing is to do."""

Ending = OneOf["end", "now", "stopped"]
"""How a run ends. "end": with its input, and time with it. "now": with all there is now, and time stays open for the
next run. "stopped": when it is stopped; until then it waits for more where an input may grow."""

OnBatch = Callable[[pa.Table, int], None]
"""Takes the rows of a batch and its number, by which a batch that is run again can be known."""


@dataclass(frozen=True)
class QuerySpec:
    """A query to be run: its plan, what it is called, the form of its answer, and where that and rejected rows go."""

    planned: Planned
    name: str
    emit: str
    open_sink: OpenSink
    open_dead_letters: OpenSink | None = None


@dataclass(frozen=True)
class RunOptions:
    """How queries are run, and end. `checkpoint` is a folder."""

    ending: Ending = "end"
    checkpoint: str | None = None
    every: int = EVERY
    clock: Clock | None = None
    on_batch: OnBatch | None = None

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            require_path(self.checkpoint, "a checkpoint")


def ending_of(follow: bool, end: bool | None, checkpoint: str | None) -> Ending:
    """Whether time ends with the input: with a checkpoint a next run goes on, so it stays open unless told to `end`.

    >>> ending_of(False, None, None), ending_of(False, None, "kept"), ending_of(True, None, "kept")
    ('end', 'now', 'stopped')
    """
    if follow:
        if end is not None:
            raise OptionError(
                "a query that waits for more has no end of its own", remedy="leave out either follow or end"
            )
        return "stopped"
    if end is False and checkpoint is None:
        raise OptionError(
            "time is to stay open for the next run, and there is no checkpoint for it to resume from",
            remedy="give a folder as checkpoint, or leave out end=False",
        )
    return "now" if end is False or (end is None and checkpoint is not None) else "end"


class QueryInRun(Protocol):
    """A query of a run."""

    name: str

    @property
    def sink(self) -> Sink: ...

    @property
    def in_memory(self) -> bool: ...

    @property
    def finished(self) -> bool: ...

    def table(self) -> pa.Table: ...

    def status(self, lately: float = 0.0) -> Status:
        """How it is doing. Sizes of states may have been measured so many seconds ago: to ask all arrays for them takes
        as long as the rest."""


class Run(Protocol):
    """Queries that run together, and may come and go while it goes on.

    `run` goes to the end that it is to have, or until it is stopped; `watch` is called after batches, and now and then
    while there is nothing to do. Listeners are notified of every batch, in the thread that runs it.
    """

    listeners: list[Listener]

    @property
    def queries(self) -> Sequence[QueryInRun]: ...

    @property
    def finished(self) -> bool: ...

    def status(self) -> list[Status]: ...

    def begin(self) -> None:
        """Begin an open run: the queries that are there at first have come, and may resume from the checkpoint."""

    def last(self, name: str) -> Progress | None:
        """What the last batch of a query did; None where batches are too small to speak of."""

    def recent(self, name: str) -> Sequence[Progress]:
        """What a query did of late: on Spark a batch each, in this process the steps of about a second."""

    def run(self, watch: Callable[[Run], None] = ...) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None:
        """Leave everything as it was at the last checkpoint."""

    def add(self, spec: QuerySpec) -> QueryInRun:
        """Between two steps, as `remove`."""

    def remove(self, name: str) -> None: ...

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Have something done between two steps, by the thread that runs them."""

    def reject_requests(self) -> None:
        """The run is over: what was requested is not done any more."""


def until_full(watch: Callable[[Run], None] = lambda run: None) -> Callable[[Run], None]:
    """Watches as well, and ends the run once nobody looks at more rows of any of its queries (LIMIT)."""

    def watching(run: Run) -> None:
        watch(run)
        if run.queries and all(query.sink.full for query in run.queries):
            run.stop()

    return watching


class Runtime(Protocol):
    name: str

    @property
    def missing_settings(self) -> Sequence[object]:
        """What the place where queries run should have and has not, each as a line to write."""

    def machine(self) -> Machine:
        """What a planner is to know of the place where queries run."""

    def reader(self, definition: Definition) -> str | None:
        """Who reads an input, where that is not a matter of course."""

    def begin(self, brief: bool = False) -> None:
        """Start what takes long, while the caller goes on. `brief`: it is for a minute or so."""

    def assemble(self, specs: Sequence[QuerySpec], run_options: RunOptions) -> Run:
        """Ready to run, from the checkpoint if there is one."""

    def open(self, run_options: RunOptions) -> Run:
        """A run without queries, to which they can come; it is to `begin` before it is run."""

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        """Run a query, forget its answer, and say what each operator did, in the order of EXPLAIN."""

    def adopt(self, name: str, frame: DataFrame) -> DataFrameInput | pa.Table:
        """A DataFrame of Spark as an input of this name."""

    def dataframe(self, spec: QuerySpec) -> DataFrame:
        """The answer as a streaming DataFrame of Spark."""

    def close(self) -> None: ...
