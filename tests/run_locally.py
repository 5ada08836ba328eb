"""The local engine as a test drives it: any cut into batches, any interleaving, a restart wherever one is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from tests.net_table import NetTable
from transom.core.schema import Schema
from transom.core.time import BEGINNING, FOREVER, from_datetime
from transom.kernels.nested import shown_rows
from transom.kernels.operator import Operator
from transom.pipeline import partitions as partitions_of_a_process
from transom.pipeline.answer import output_form, output_schema
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.planner.answer_key import answer_key
from transom.planner.plan import plan
from transom.runtimes.reference.history import History, RelationHistory, StreamHistory

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Push:
    """Rows of one input that arrive together; no rows is the end of the input."""

    name: str
    rows: Rows
    end: bool = False


def batch_of(columns: Schema, rows: Rows) -> pa.RecordBatch:
    arrays = [pa.array([row[i] for row in rows], column.type) for i, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.arrow())


def all_at_once(inputs: dict[str, Rows]) -> list[Push]:
    return [Push(name, rows, end=True) for name, rows in inputs.items()]


def row_by_row(inputs: dict[str, Rows]) -> list[Push]:
    """One row of each input in turn."""
    pushes = []
    for i in range(max((len(rows) for rows in inputs.values()), default=0)):
        pushes += [Push(name, [rows[i]]) for name, rows in inputs.items() if i < len(rows)]
    return pushes + [Push(name, [], end=True) for name in inputs]


class Answer:
    """The output so far, read back as a history."""

    def __init__(self, stream: bool, emit: str, root: Operator | None = None) -> None:
        self.stream = stream
        self.emit = emit
        self.values: list[tuple[Any, ...]] = []
        self.table = NetTable(answer_key(root)) if root is not None and emit == "net" and not stream else None
        self.schema = None if root is None else output_schema(output_form(root, emit), root.schema)

    def add(self, batch: pa.RecordBatch) -> None:
        if self.schema is not None:
            batch = shown_rows(batch, self.schema)
        if self.table is not None:
            self.table.apply(batch)
            return
        rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        self._check(rows)
        self.values += rows

    def _check(self, rows: list[tuple[Any, ...]]) -> None:
        """What the law asks of the output beyond the history that it reports: its order, and no ghosts."""
        if self.stream:
            assert all(a[0] <= b[0] for a, b in pairwise(rows)), "time goes back"
        elif self.emit == "changes":
            assert all((a[1], a[0] == "+") <= (b[1], b[0] == "+") for a, b in pairwise(rows)), (
                "+ before -, or time goes back"
            )
        else:
            assert all(te is None or ta < te for *_, ta, te in rows), "a ghost is shown"

    def history(self, **counts: Any) -> History:
        if self.table is not None:
            return RelationHistory.of([(BEGINNING, self.table.rows.elements())], **counts)
        if self.stream:
            return StreamHistory.of(((from_datetime(at), row) for at, *row in self.values), **counts)
        if self.emit == "changes":
            changes = ((from_datetime(at), 1 if sign == "+" else -1, row) for sign, at, *row in self.values)
            return RelationHistory.of_changes(changes, **counts)
        lifetimes = (
            (row, from_datetime(ta), None if te is None else from_datetime(te)) for *row, ta, te in self.values
        )
        return RelationHistory.of_lifetimes(lifetimes, **counts)


def run_locally(
    query: Node,
    catalogue: Catalogue,
    inputs: dict[str, Rows],
    pushes: Iterable[Push] | None = None,
    *,
    emit: str = "changes",
    partitions: int = 1,
    threads: bool = False,
    restart: Callable[[int], bool] = lambda i: False,
    commit: Callable[[int], bool] = lambda i: True,
    watch: Callable[[Pipeline, Answer], None] = lambda pipeline, answer: None,
) -> History:
    """Push everything, advancing after each push; `restart(i)` puts a save and a fresh start after push i.

    A batch is over after push i if `commit(i)`, and when it is saved; then, `watch` looks at the answer.
    With `threads` every step of several partitions is shared among threads, however few its rows are.
    """
    with ExitStack() as lent, ExitStack() as opened:
        if threads:
            lent.enter_context(patch.object(partitions_of_a_process, "MANY_ROWS", 0))
        operator = plan(query, catalogue)
        pipeline = opened.enter_context(closing(Pipeline(operator, catalogue, emit, partitions=partitions)))
        answer = Answer(isinstance(query, Stream), emit, operator)
        definitions = {name: catalogue.relations[name] for name in pipeline.names}
        for name in pipeline.statics:
            _push(pipeline, definitions, Push(name, inputs.get(name, [])))
        todo = list(all_at_once(inputs) if pushes is None else pushes)
        todo += [Push(name, [], end=True) for name in pipeline.inputs]
        for i, push in enumerate(todo):
            if push.name not in pipeline.inputs:
                continue
            _push(pipeline, definitions, push)
            output, _ = pipeline.advance()
            if output is not None:
                answer.add(output.rows)
            if commit(i) or restart(i) or i == len(todo) - 1:
                if (rows := pipeline.flush()) is not None:
                    answer.add(rows)
                watch(pipeline, answer)
            if restart(i):
                saved = pipeline.snapshot()
                opened.close()
                pipeline = opened.enter_context(closing(Pipeline(operator, catalogue, emit, partitions=partitions)))
                pipeline.restore(saved)
        pipeline.drain()
        if not pipeline.inputs:
            output, _ = pipeline.advance()
            if output is not None:
                answer.add(output.rows)
            if (rows := pipeline.flush()) is not None:
                answer.add(rows)
        for name in pipeline.inputs:
            ledger = pipeline.ledger(name)
            assert ledger.rows_in == len(inputs.get(name, [])), (name, ledger)
            assert ledger.waiting == sum(len(part.t) for part in pipeline.state.gates.inputs[name].waiting), (
                name,
                ledger,
            )
        assert pipeline.progress == FOREVER
        late = {name: pipeline.ledger(name).late for name in pipeline.inputs}
        rejected = {name: pipeline.ledger(name).rejected for name in pipeline.inputs}
        return answer.history(late=late, rejected=rejected)


def _push(pipeline: Pipeline, definitions: dict[str, Any], push: Push) -> None:
    definition = definitions[push.name]
    assert isinstance(definition, StreamDefinition | TableDefinition)
    if push.rows:
        pipeline.push(push.name, batch_of(definition.columns, push.rows))
    if push.end:
        pipeline.end(push.name)
