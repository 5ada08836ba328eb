"""How the queries of a job are doing: their inputs, and the operators with what they keep."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from transom.pipeline.engine import Engine
from transom.pipeline.memory import state_bytes, state_rows
from transom.program.slides import slides_of
from transom.program.status import InputStatus, OperatorStatus
from transom.program.tactic_changes import changes_of
from transom.runtimes.local.intake import Intake


class JobStatuses:
    """Asked between two steps, when nobody works on what the operators keep."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._sizes: dict[str, tuple[float, list[tuple[int, int]]]] = {}
        """Rows and bytes that the operators of a query kept, and when that was measured."""

    def inputs(self, engine: Engine, query: str) -> tuple[InputStatus, ...]:
        """What became of the rows since the query came."""
        return tuple(self._input(engine, name, query) for name in engine.subplan.names)

    def operators(self, engine: Engine, query: str, lately: float) -> tuple[OperatorStatus, ...]:
        """What they have done and keep; how much that is as it is now, or was at most `lately` seconds ago."""
        operators = list(engine.operators_of(query))
        sizes = self._sizes_of(query, [memory for _, _, memory in operators], lately)
        return tuple(
            OperatorStatus(
                number=number,
                operator=operator.kind,
                tactic=operator.tactic.name,
                rows_in=counters.rows_in,
                rows_out=counters.rows_out,
                ends=counters.ends_out,
                state_bytes=bytes_kept,
                seconds=counters.seconds,
                state_rows=rows_kept,
                slides=slides_of(memory),
                changes=changes_of(memory),
            )
            for number, ((operator, counters, memory), (rows_kept, bytes_kept)) in enumerate(
                zip(operators, sizes, strict=True), 1
            )
        )

    def shown(self, engine: Engine, queries: Sequence[str]) -> dict[str, Any]:
        """What people see who look at a checkpoint: nothing depends on it."""
        return {
            query: {
                "progress": engine.progress_of(query),
                "rows_out": engine.rows_out(query),
                "inputs": {
                    each.name: [each.rows_in, each.used, each.late, each.rejected, each.waiting, each.watermark]
                    for each in self.inputs(engine, query)
                },
            }
            for query in queries
        }

    def forget(self, query: str) -> None:
        """A query has left."""
        self._sizes.pop(query, None)

    def _input(self, engine: Engine, name: str, query: str) -> InputStatus:
        subplan = engine.subplan
        ledger, reading = subplan.ledger(name), self._intake.readings[name]
        used, late, rejected = engine.used_before(query).get(name, (0, 0, 0))
        return InputStatus(
            name=self._intake.definitions[name].name,
            rows_in=ledger.rows_in - used - late - rejected,
            used=ledger.used - used,
            late=ledger.late - late,
            rejected=ledger.rejected - rejected,
            waiting=ledger.waiting,
            watermark=subplan.watermark(name) if name in subplan.inputs else None,
            ended=reading.complete,
            reasons=dict(reading.reasons),
            leap=subplan.gates.leap(name),
        )

    def _sizes_of(self, query: str, memories: Sequence[Any], lately: float) -> list[tuple[int, int]]:
        now = time.monotonic()
        measured, sizes = self._sizes.get(query, (-math.inf, []))
        if now - measured >= lately or len(sizes) != len(memories):
            sizes = [(state_rows(memory), state_bytes(memory)) for memory in memories]
            self._sizes[query] = now, sizes
        return sizes
