"""What a join within a memory budget reports, slide by slide: rows of attempts, and markers that end these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any

import pyarrow as pa

from tests.run_locally import Push, batch_of
from transom.core.time import from_datetime
from transom.kernels.operator import Operator
from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, StreamDefinition
from transom.planner.plan import plan
from transom.runtimes.reference.history import History, StreamHistory, value_order


class EmittedSlides:
    """Rows count once their attempt is complete; every slide is completed once, and nothing follows that."""

    def __init__(self) -> None:
        self.complete: dict[int, list[tuple[Any, ...]]] = {}
        self.voided: list[int] = []
        self._open: dict[int, list[tuple[Any, ...]]] = {}
        self._attempts: dict[int, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        for at, *rest in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            self.add_row(from_datetime(at), tuple(rest))

    @staticmethod
    def of(answer: History) -> EmittedSlides:
        """Of an answer that was read back as the rows of a stream."""
        assert isinstance(answer, StreamHistory)
        reported = EmittedSlides()
        for instant, rows in answer.points:
            for row in rows:
                reported.add_row(instant, row)
        return reported

    def add_row(self, instant: int, reported: tuple[Any, ...]) -> None:
        attempt, status, *row = reported
        assert instant not in self.complete, "a slide goes on after it was complete"
        assert attempt == self._attempts.get(instant, 1), "an attempt of no number that was expected"
        if status is None:
            self._open.setdefault(instant, []).append(tuple(row))
            return
        assert all(value is None for value in row)
        rows = self._open.pop(instant, [])
        if status == "complete":
            self.complete[instant] = sorted(rows, key=value_order)
        else:
            assert status == "incomplete"
            self.voided.append(instant)
            self._attempts[instant] = attempt + 1

    @property
    def unfinished(self) -> set[int]:
        """Slides that have begun or been put off, and are not complete."""
        return (set(self._open) | set(self.voided)) - set(self.complete)

    def history(self, until: int | None = None) -> StreamHistory:
        """What is complete."""
        reported = [(at, rows) for at, rows in self.complete.items() if until is None or at < until]
        return StreamHistory.of((at, row) for at, rows in reported for row in rows)


def run_within_budget(
    query: Node,
    catalogue: Catalogue,
    pushes: Sequence[Push],
    restart: Callable[[int], bool] = lambda i: False,
    watch: Callable[[Pipeline, EmittedSlides], None] = lambda pipeline, reported: None,
) -> tuple[EmittedSlides, Pipeline]:
    """As `run_locally`, of a query with SET memory; the pipeline is closed."""
    reported = EmittedSlides()
    with ExitStack() as open_ones:
        operator: Operator = plan(query, catalogue)
        pipeline = open_ones.enter_context(closing(Pipeline(operator, catalogue)))
        for i, push in enumerate([*pushes, *(Push(name, [], end=True) for name in pipeline.inputs)]):
            if push.name not in pipeline.inputs:
                continue
            definition = catalogue.relations[push.name]
            assert isinstance(definition, StreamDefinition)
            if push.rows:
                pipeline.push(push.name, batch_of(definition.columns, push.rows))
            if push.end:
                pipeline.end(push.name)
            output, _ = pipeline.advance()
            if output is not None:
                reported.add(output.rows)
            watch(pipeline, reported)
            if restart(i):
                saved = pipeline.snapshot()
                open_ones.close()
                pipeline = open_ones.enter_context(closing(Pipeline(operator, catalogue)))
                pipeline.restore(saved)
    return reported, pipeline


def slide_state(pipeline: Pipeline) -> SlideJoinState:
    """What the join of a pipeline remembers."""
    (state,) = (
        state for of_one in pipeline.state.part.operators for state in of_one if isinstance(state, SlideJoinState)
    )
    return state
