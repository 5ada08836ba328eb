"""What a batch of a query did, reported to whoever asked: the same of every runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from transom.program.status import Status


@dataclass(frozen=True)
class OperatorProgress:
    """What an operator keeps; `number` is that of EXPLAIN."""

    number: int
    operator: str
    tactic: str
    state_rows: int
    state_bytes: int


@dataclass(frozen=True)
class Progress:
    """A batch that is done: a micro-batch on Spark, in this process a step, or those of about a second together.

    `rows_in` are the rows that it read of all inputs, `progress` is the instant up to which the answer is final.

    >>> from transom import Session
    >>> session, seen = Session(batch_rows=1), []
    >>> session.on_progress(seen.append)
    >>> session.stream("s", [{"t": "2024-05-01", "a": 1}, {"t": "2024-05-02", "a": 2}], time="t")
    >>> _ = session.run("SELECT MAX(a) AS a FROM s")
    >>> sum(each.rows_in for each in seen), {each.query for each in seen}
    (2, {'query-1'})
    """

    query: str
    batch: int
    rows_in: int
    rows_per_second: float
    seconds: float
    progress: int
    operators: tuple[OperatorProgress, ...]


Listener = Callable[[Progress], None]

RECENT: Final = 100
"""How many of a query are remembered."""


def progress_of(status: Status, batch: int, rows_before: int, seconds: float) -> Progress:
    """`rows_before`: how many rows had been read before the batch."""
    rows = read_rows(status) - rows_before
    return Progress(
        query=status.name,
        batch=batch,
        rows_in=rows,
        rows_per_second=rows / seconds if seconds > 0 else 0.0,
        seconds=seconds,
        progress=status.progress,
        operators=tuple(
            OperatorProgress(
                operator.number, operator.operator, operator.tactic, operator.state_rows, operator.state_bytes
            )
            for operator in status.operators
        ),
    )


def read_rows(status: Status) -> int:
    """Rows of all inputs so far."""
    return sum(each.rows_in for each in status.inputs)
