"""A query in many partitions of this process: the same rows, judged once, and the same accounts as in one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.profile import in_turn
from tests.run_locally import Rows, batch_of
from transom.core.errors import CheckpointError, EvaluationError
from transom.core.time import SECOND, to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.pipeline import partitions
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.fragments import kept_together
from transom.planner.plan import plan
from transom.state import codec

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, name VARCHAR, k INTEGER, v DOUBLE,
    WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM t (ts TIMESTAMP INVISIBLE, name VARCHAR, k BIGINT, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE TABLE r (ts TIMESTAMP INVISIBLE, op VARCHAR, name VARCHAR, k INTEGER, WATERMARK FOR ts AS ts)
    WITH (changes = 'op');
CREATE TABLE labels (k INTEGER, label VARCHAR);
"""
QUERIES = {
    "composite keys": "SELECT s.name, s.k, s.v, t.v AS w FROM s [RANGE 9 SECONDS], t [RANGE 5 SECONDS] "
    "WHERE s.name = t.name AND s.k = t.k",
    "strings and NULLs": "SELECT name, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 7 SECONDS] GROUP BY name",
    "filters on the way": "SELECT s.k, COUNT(*) AS n FROM s [RANGE 7 SECONDS], t [ROWS 4] "
    "WHERE s.k = t.k AND s.v > 0.3 AND t.v < 0.9 GROUP BY s.k",
    "an open end through two exchanges": "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT name, k FROM s [ROWS 9]) AS d "
    "GROUP BY k",
    "tables": "SELECT r.name, labels.label, s.v FROM s [RANGE 4 SECONDS], r, labels "
    "WHERE s.name = r.name AND r.k = labels.k",
    "a stream of changes": "ISTREAM(SELECT DISTINCT name FROM s [RANGE 2 SECONDS] WHERE v > 0.1)",
    "a window over them": "SELECT COUNT(*) AS n FROM ISTREAM(SELECT DISTINCT k FROM s [RANGE 2 SECONDS]) [ROWS 3]",
}


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every step is shared among threads, and none of them is left."""
    monkeypatch.setattr(partitions, "MANY_ROWS", 0)
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "transom-worker"]


def planned(text: str, options: str = "") -> tuple[Operator, Catalogue]:
    catalogue = Catalogue()
    statement = parse_statements(DECLARATIONS + options + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return plan(statement.query, catalogue), catalogue


def rows_of(random: Random, count: int = 120) -> dict[str, Rows]:
    """Out of order within the bound; keys that are NULL; changes that take away what is not there."""

    def common(i: int) -> tuple[Any, ...]:
        at = to_datetime(i * SECOND // 3) - timedelta(seconds=random.choice([0, 0, 1, 4]))
        return at, random.choice(["a", "b", "", "long enough to matter", None]), random.choice([0, 1, 2, -1, None])

    streams = {name: [(*common(i), random.random()) for i in range(count)] for name in "st"}
    streams["t"] = sorted(streams["t"], key=lambda row: row[0])
    changes = [(at, random.choice("+-"), name, k) for at, name, k in map(common, range(count))]
    return {
        **streams,
        "r": sorted(changes, key=lambda row: row[0]),
        "labels": [(k, f"label {k}") for k in (0, 1, 2, 2)],
    }


Reported = tuple[list[dict[str, Any]], dict[str, list[Any]], list[tuple[int, int, int]], list[int]]


def run(text: str, emit: str, number: int, seed: int) -> Reported:
    """The answer, what was rejected, the accounts of inputs and operators; the seed reports the cut and the
    restarts."""
    root, catalogue = planned(text)
    random = Random(seed)
    given = rows_of(random)
    pipeline = Pipeline(root, catalogue, emit, partitions=number)
    answer: list[pa.RecordBatch] = []
    rejected_rows: dict[str, list[Any]] = {}
    todo = {name: given[name] for name in pipeline.names}

    def push(name: str, rows: Rows) -> None:
        definition = catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        late = pipeline.push(name, batch_of(definition.columns, rows))
        rejected_rows.setdefault(name, []).extend([] if late is None else late.values.to_pylist())

    def advance() -> None:
        output, unmatched = pipeline.advance()
        answer.extend(() if output is None else output.batches)
        for name, some in unmatched.items():
            rejected_rows[name] += some.values.to_pylist()

    for name in pipeline.statics:
        push(name, todo.pop(name))
    while todo:
        name = random.choice(sorted(todo))
        count = random.choice([1, 5, 40])
        push(name, todo[name][:count])
        todo[name] = todo[name][count:]
        if not todo[name]:
            pipeline.end(name)
            del todo[name]
        advance()
        if random.random() < 0.1:
            saved = pipeline.snapshot()
            pipeline.close()
            pipeline = Pipeline(root, catalogue, emit, partitions=number)
            pipeline.restore(saved)
    assert pipeline.finished
    counted = [(c.rows_in, c.rows_out, c.ends_out) for _, c, _ in pipeline.operator_states()]
    ledgers = [count for name in pipeline.names for count in vars(pipeline.ledger(name)).values()]
    assert pipeline.state.rows_out == sum(map(len, answer))
    pipeline.close()
    return [row for batch in answer for row in batch.to_pylist()], rejected_rows, counted, ledgers


EMITS = ("changes", "lifetimes", "latest")


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("query", QUERIES)
def test_many_partitions_tell_what_one_tells_to_the_row(query: str, emit: str) -> None:
    """In the same order but for lifetimes, which have none; with the same counts at every operator."""
    for seed, number in in_turn(((1, 3), (2, 2), (3, 5)), EMITS.index(emit)):
        one, many = run(QUERIES[query], emit, 1, seed), run(QUERIES[query], emit, number, seed)
        if emit == "lifetimes":
            assert sorted(map(repr, one[0])) == sorted(map(repr, many[0]))
        else:
            assert one[0] == many[0]
        assert one[1] == many[1] and one[3] == many[3]
        assert [counted[:2] for counted in one[2]] == [counted[:2] for counted in many[2]]


def test_a_checkpoint_is_for_as_many_partitions_as_wrote_it() -> None:
    root, catalogue = planned(QUERIES["composite keys"])
    with closing(Pipeline(root, catalogue, partitions=3)) as three, closing(Pipeline(root, catalogue)) as one:
        for pipeline, other in ((one, three), (three, one)):
            with pytest.raises(CheckpointError, match="another number"):
                other.restore(pipeline.snapshot())


def test_a_spoilt_memory_of_one_partition_is_found() -> None:
    root, catalogue = planned(QUERIES["composite keys"])
    with closing(Pipeline(root, catalogue, partitions=3)) as pipeline:
        pipeline.state.stages.pop()
        spoilt = codec.encode({"plan": pipeline.fingerprint, "state": pipeline.state})
        with closing(Pipeline(root, catalogue, partitions=3)) as again, pytest.raises(CheckpointError):
            again.restore(spoilt)


def test_what_fails_in_a_partition_names_its_operator_and_leaves_no_thread() -> None:
    root, catalogue = planned("SELECT name, SUM(CAST(1000 * k AS TINYINT)) AS n FROM s [RANGE 7 SECONDS] GROUP BY name")
    with closing(Pipeline(root, catalogue, partitions=3)) as pipeline:
        definition = catalogue.relations["s"]
        assert isinstance(definition, StreamDefinition)
        pipeline.push("s", batch_of(definition.columns, rows_of(Random(1))["s"]))
        pipeline.end("s")
        with pytest.raises(EvaluationError):
            pipeline.advance()


SLIDES = """RSTREAM(SELECT s.v FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS], t [RANGE 4 SECONDS SLIDE 2 SECONDS]
WHERE s.k = t.k)"""


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        ("SELECT COUNT(*) AS n FROM s [ROWS 3]", "", "have to meet"),
        (SLIDES, "SET slide_join = 'full'; SET memory = '8 MB';", "put off"),
    ],
)
def test_what_cannot_be_spread_runs_in_one_partition(query: str, options: str, reason: str) -> None:
    root, catalogue = planned(query, options)
    assert reason in (kept_together(root) or "")
    with closing(Pipeline(root, catalogue, partitions=3)) as pipeline:
        assert pipeline.part.operators


def test_columns_that_nobody_reads_stay_behind() -> None:
    """A partition gathers what the query reads: of 40 rows the texts of one column, not of two."""
    root, catalogue = planned("SELECT s.k, t.v FROM s [RANGE 9 SECONDS], t [RANGE 9 SECONDS] WHERE s.k = t.k")
    with closing(Pipeline(root, catalogue, partitions=2)) as pipeline:
        assert pipeline._spread is not None
        read = pipeline._spread._read
        assert all(columns is None or 1 not in columns for columns in read.values())
