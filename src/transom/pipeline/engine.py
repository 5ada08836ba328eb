"""What a job of this process steps: a query by itself, or several behind the sub-plan that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

import pyarrow as pa

from transom.kernels.operator import Operator
from transom.pipeline.admission import RejectedRows
from transom.pipeline.driver import Pipeline
from transom.pipeline.part import Counters

Emit = Callable[[int, pa.RecordBatch], None]
"""Takes the rows that a step brought to a query, by the place of the query; those that stayed where they were get none.

Nobody else holds the rows, so that one answer can go before the next is made.
"""

NOTHING_REJECTED: Final[Mapping[str, RejectedRows]] = MappingProxyType({})

OperatorState = tuple[Operator, Counters, list[Any]]
"""An operator, what it has done, and what its kernels remember."""


class Engine(Protocol):
    @property
    def subplan(self) -> Pipeline:
        """What takes the rows of all inputs in: the whole plan of a query that shares nothing."""

    @property
    def rejected_rows(self) -> Mapping[str, RejectedRows]:
        """The changes of tables that the last step rejected, by input."""

    @property
    def finished(self) -> bool: ...

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits to be done, or to be emitted."""

    @property
    def timer_passed(self) -> bool:
        """Whether progress has passed something, though nothing came: else a step would give nothing."""

    @property
    def full(self) -> bool:
        """Whether no more rows are to be brought for now."""

    def advance(self, emit_rows: Emit) -> bool:
        """Go to the present progress, and give each query what came out for it; whether time or work went on."""

    def catch_up(self, emit_rows: Emit) -> bool:
        """Make results that were put off, as nothing has come; whether there were any."""

    @property
    def holds_rows(self) -> bool:
        """Whether rows of an answer wait for the end of the batch."""

    def flush(self, emit_rows: Emit, only: str | None = None) -> None:
        """The batch is over, for one query alone or for all: give each the rows that have waited for that."""

    def progress_of(self, name: str) -> int | None:
        """How far the inputs of a query have come, or its own work where that is scheduled; None before its time began.

        After `advance` all before it is final.
        """

    def operators_of(self, name: str) -> Iterator[OperatorState]:
        """The operators of a query and what they did, in the order of EXPLAIN."""

    def rows_out(self, name: str) -> int: ...

    def output_key(self, name: str) -> tuple[str, ...] | None:
        """The columns that name a row of the output of a query, where it has net changes of an answer with a key."""

    def used_before(self, name: str) -> Mapping[str, list[int]]:
        """What had become of the rows of each input when a query came: used, late, rejected."""

    def drain(self) -> None: ...

    def close(self) -> None: ...

    def begin(self) -> None:
        """There is no checkpoint to resume from; a run that died may have left something."""

    def snapshot(self) -> bytes: ...

    def saved(self) -> None:
        """What `snapshot` gave is in its place."""

    def restore(self, data: bytes) -> None: ...


@dataclass
class Alone:
    """A query that shares nothing."""

    subplan: Pipeline
    rejected_rows: Mapping[str, RejectedRows] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.subplan.finished

    @property
    def at_rest(self) -> bool:
        return True

    @property
    def timer_passed(self) -> bool:
        return self.subplan.timer_passed

    @property
    def full(self) -> bool:
        return False

    def advance(self, emit_rows: Emit) -> bool:
        output, self.rejected_rows = self.subplan.advance()
        for rows in () if output is None else output.batches:
            emit_rows(0, rows)
        return output is not None

    def catch_up(self, emit_rows: Emit) -> bool:
        output = self.subplan.idle()
        if output is not None:
            emit_rows(0, output.rows)
        return output is not None

    @property
    def holds_rows(self) -> bool:
        return self.subplan.holds_rows

    def flush(self, emit_rows: Emit, only: str | None = None) -> None:
        rows = self.subplan.flush()
        if rows is not None:
            emit_rows(0, rows)

    def progress_of(self, name: str) -> int:
        return self.subplan.progress

    def operators_of(self, name: str) -> Iterator[OperatorState]:
        return self.subplan.operator_states()

    def rows_out(self, name: str) -> int:
        return self.subplan.state.rows_out

    def output_key(self, name: str) -> tuple[str, ...] | None:
        return self.subplan.output_key

    def used_before(self, name: str) -> Mapping[str, list[int]]:
        return {}

    def drain(self) -> None:
        self.subplan.drain()

    def close(self) -> None:
        self.subplan.close()

    def begin(self) -> None:
        self.subplan.begin()

    def snapshot(self) -> bytes:
        return self.subplan.snapshot()

    def saved(self) -> None:
        self.subplan.saved()

    def restore(self, data: bytes) -> None:
        self.subplan.restore(data)
