"""How a running query is doing, at a moment between two steps."""

from __future__ import annotations

from dataclasses import dataclass

from transom.pipeline.exhausted import Kept
from transom.pipeline.leap import Leap
from transom.planner.explain import title
from transom.program.latency import Latency
from transom.program.notebook import status_html
from transom.program.overload import OverloadStatus
from transom.program.slides import SlideStatus


@dataclass(frozen=True)
class InputStatus:
    """Where the rows of an input went: rows_in = used + late + rejected + waiting, and why the rejected ones were.

    The watermark of a static table is None. `leap` is there if a row leapt in time and others were late because of it.
    """

    name: str
    rows_in: int
    used: int
    late: int
    rejected: int
    waiting: int
    watermark: int | None
    ended: bool
    reasons: dict[str, int]
    leap: Leap | None = None


@dataclass(frozen=True)
class OperatorStatus:
    """What an operator has done; `number` is that of EXPLAIN. `slides` is there of a join emitted slide by slide, and
    `changes` say of one that may change its tactic which is in force and when and why it changed."""

    number: int
    operator: str
    tactic: str
    rows_in: int
    rows_out: int
    ends: int
    state_bytes: int
    seconds: float
    state_rows: int = 0
    slides: SlideStatus | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PartitionStatus:
    """What one partition of a stage has done, on Spark; `stage` is the number of the fragment in EXPLAIN. `rows_in` are
    those of the operator that most came to, so that the partitions of a stage can be compared."""

    stage: int
    partition: int
    rows_in: int
    state_rows: int
    state_bytes: int
    seconds: float


@dataclass(frozen=True)
class Status:
    """How a query is doing. Instants below `progress` are final; `held_back_by` is the input that it waits for.

    `latency` is measured in this process where streams are stamped on arrival, from the start of the process on.
    `overload` is there of a query whose work is put in order (SET schedule); its progress is its own then.
    `partitions` are there on Spark.

    >>> from transom import Session
    >>> session = Session()
    >>> session.stream("s", [{"t": "2024-05-01", "a": 1}], time="t")
    >>> (result,) = session.execute("SELECT a FROM s")
    >>> result.status.rows_out, result.status.inputs[0].used, result.status.finished
    (1, 1, True)
    """

    name: str
    inputs: tuple[InputStatus, ...]
    operators: tuple[OperatorStatus, ...]
    progress: int
    held_back_by: str | None
    rows_out: int
    steps: int
    finished: bool
    latency: Latency | None = None
    overload: OverloadStatus | None = None
    partitions: tuple[PartitionStatus, ...] = ()

    @property
    def slides(self) -> SlideStatus | None:
        """The slides of a query that is a join emitted slide by slide."""
        return next((operator.slides for operator in self.operators if operator.slides is not None), None)

    def _repr_html_(self) -> str:
        return status_html(self)


def kept_by(status: Status) -> list[Kept]:
    """What the operators of a query keep."""
    return [
        (
            f"#{operator.number} {title(operator.operator, operator.tactic)} of {status.name}",
            operator.state_rows,
            operator.state_bytes,
        )
        for operator in status.operators
    ]
