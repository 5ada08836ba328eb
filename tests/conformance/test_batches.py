"""Every case of what a batch reports, on every runtime, with a restart after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.conformance.conformance import HERE, Block, Case, inputs, moment, read, row
from tests.profile import first_of
from tests.run_in_partitions import Cluster
from tests.run_locally import Push, batch_of
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.pipeline.driver import Pipeline
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.plan import plan
from transom.runtimes.reference.history import value_order

CASES = [case for path in sorted((HERE / "batches").glob("*.md")) for case in read(path)]

Reported = list[list[tuple[Any, ...]]]


def in_partitions(root: Operator, catalogue: Catalogue, batches: Sequence[Sequence[Push]], partitions: int) -> Reported:
    """Every row is a step of its own."""
    reported: Reported = []
    saved = None
    for batch in batches:
        with closing(Pipeline(root, catalogue, "net", partitions=partitions)) as pipeline:
            if saved is not None:
                pipeline.restore(saved)
            rows = [found for push in batch for found in _step_by_step(pipeline, catalogue, push)]
            reported.append(_values([*rows, pipeline.flush()]))
            saved = pipeline.snapshot()
    return reported


def _step_by_step(pipeline: Pipeline, catalogue: Catalogue, push: Push) -> Iterable[pa.RecordBatch]:
    definition = catalogue.relations[push.name]
    assert isinstance(definition, StreamDefinition | TableDefinition)
    for one in push.rows:
        pipeline.push(push.name, batch_of(definition.columns, [one]))
        yield from _advanced(pipeline)
    if push.end:
        pipeline.end(push.name)
        yield from _advanced(pipeline)


def _advanced(pipeline: Pipeline) -> Iterable[pa.RecordBatch]:
    output, _ = pipeline.advance()
    return () if output is None else output.batches


def in_fragment_partitions(
    root: Operator, catalogue: Catalogue, batches: Sequence[Sequence[Push]], partitions: int
) -> Reported:
    reported: Reported = []
    layout = Layout(root, catalogue, "net", partitions)
    with closing(Cluster(layout)) as cluster:
        for batch in batches:
            found = cluster.batch([[push] for push in batch])
            reported.append(_values([merged(found, layout.emit_name, layout.output_schema)]))
            cluster.restart()
    return reported


def _values(batches: Iterable[pa.RecordBatch | None]) -> list[tuple[Any, ...]]:
    known = (batch for batch in batches if batch is not None)
    return [each for batch in known for each in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


RUNTIMES: dict[str, tuple[Callable[..., Reported], int]] = {
    "one partition": (in_partitions, 1),
    "partitions": (in_partitions, 3),
    "fragment_partitions": (in_fragment_partitions, 2),
}


def parted(block: Block) -> list[Block]:
    """What stands between the lines `--`."""
    found: list[list[str]] = [[]]
    for line in block.text.splitlines():
        if line.strip() == "--":
            found.append([])
        else:
            found[-1].append(line)
    return [replace(block, text="\n".join(lines)) for lines in found]


def batches_of(case: Case, catalogue: Catalogue) -> list[list[Push]]:
    streams = case.of("stream")
    found = []
    for batch in zip(*map(parted, streams), strict=True):
        rows = inputs(replace(case, blocks=batch), catalogue)
        found.append([Push(name, rows[name]) for name in rows if rows[name]])
    return [*found, [Push(block.argument.lower(), [], end=True) for block in streams]]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("lifetimes", first_of("direct", "negative"))
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_what_a_batch_tells(case: Case, lifetimes: str, runtime: str) -> None:
    catalogue = Catalogue()
    statement = parse_statements(case.cql, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    catalogue.options["lifetimes"] = lifetimes
    run, count = RUNTIMES[runtime]
    reported = run(plan(statement.query, catalogue), catalogue, batches_of(case, catalogue), count)
    (block,) = case.of("expect")
    first = moment if block.argument == "stream" else str
    expected = [
        [(first(line[0]), *row(line[1:], statement.query.schema)) for line in each.lines] for each in parted(block)
    ]
    if block.argument == "net":
        reported = [sorted(batch, key=lambda each: (each[0] == "+", value_order(each[1:]))) for batch in reported]
    assert reported == expected, f"{case.cql}\n{runtime}, {lifetimes}"
