"""Rows and silence in any order: one pipeline, partitions on bad days and the reference agree on what is out, and when.

The reference knows no clock: it is requested the answer to the rows that were taken, each with the time that it got.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from tests.profile import examples
from tests.run_in_partitions import Cluster
from tests.run_locally import Answer, Push, batch_of
from transom.core.time import SECOND, UNBOUNDED, to_datetime
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.plan.algebra import Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import StreamHistory

DECLARED = """
CREATE STREAM h (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (heartbeat = '3 SECONDS', ahead = '20 SECONDS');
CREATE STREAM i (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '4 SECONDS');
CREATE STREAM j (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '7 SECONDS');
CREATE STREAM a (k INTEGER) WITH (time = 'arrival');
CREATE STREAM b (k INTEGER) WITH (time = 'arrival');
"""
QUERIES = {
    "DSTREAM(SELECT DISTINCT k FROM a [RANGE 5 SECONDS])": "a",
    "DSTREAM(SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k)": "ab",
    "ISTREAM(SELECT k, COUNT(*) AS n FROM b [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k)": "b",
    "DSTREAM(SELECT k FROM h [RANGE 5 SECONDS])": "h",
    "ISTREAM(SELECT h.k FROM h [RANGE 5 SECONDS], i [RANGE 9 SECONDS] WHERE h.k = i.k)": "hi",
    "DSTREAM(SELECT k FROM i [RANGE 3 SECONDS] UNION ALL SELECT k FROM j [RANGE 1 SECOND])": "ij",
}


@dataclass(frozen=True)
class Look:
    """A while later somebody looks: rows of each input (how far from the clock, key), and who was at its end."""

    later: int
    rows: dict[str, list[tuple[int, int]]]
    at_end: list[str]


def looks(names: str, random: Random) -> Iterator[Look]:
    for _ in range(12):
        rows = {
            name: [(random.randint(-6, 25 if random.random() < 0.2 else 0), random.randint(1, 2)) for _ in range(count)]
            for name in names
            for count in [random.choice((0, 0, 0, 1, 2))]
        }
        later = random.choice((1, SECOND, 3 * SECOND, random.randint(1, 5 * SECOND)))
        yield Look(later, rows, [name for name in names if random.random() < 0.7])


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(examples(by_day=3, at_night=30)))
def test_rows_and_silence_give_the_same_answer_everywhere(text: str, seed: int) -> None:
    random = Random(f"{text} {seed}")
    catalogue = Catalogue()
    statement = parse_statements(DECLARED + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement) and isinstance(statement.query, Stream)
    root = plan(statement.query, catalogue)
    partitions, threads = random.choice([(1, 1), (1, 3), (2, 1)])
    layout = Layout(root, catalogue, "changes", partitions, threads=threads)
    pipeline, here, there = Pipeline(root, catalogue), Answer(True, "changes"), Answer(True, "changes")
    taken: dict[str, list[tuple[Any, ...]]] = {name: [] for name in QUERIES[text]}
    out: list[tuple[int, int]] = []
    now = 100 * SECOND
    with closing(Cluster(layout, random)) as cluster:
        for number, look in enumerate(looks(QUERIES[text], random)):
            now += look.later
            pushes = [_push(catalogue, name, rows, now) for name, rows in look.rows.items() if rows]
            for push in pushes:
                _take(pipeline, catalogue, push, now, taken[push.name])
            for name in pipeline.inputs:
                polled_at = now if name in look.at_end else None
                pipeline.gates.hear(name, now, came=bool(look.rows[name]), polled_at=polled_at)
            pipeline.gates.follow(now, look.at_end)
            if pipeline.gates.leave_idle_behind() or pushes or pipeline.timer_passed:
                output, _ = pipeline.advance()
                here.add(output.rows) if output is not None else None
            reported = cluster.batch([pushes], now, look.at_end)
            there.add(merged(reported, layout.emit_name, layout.output_schema))
            assert sorted(there.values) == sorted(here.values)
            out.append((pipeline.progress, len(here.values)))
            if (seed + number) % 4 == 0:
                saved = pipeline.snapshot()
                pipeline = Pipeline(root, catalogue)
                pipeline.restore(saved)
                cluster.restart()
    expected = evaluate(statement.query, _with_times_of_their_own(catalogue), taken)
    assert isinstance(expected, StreamHistory)
    for progress, count in out:
        assert sum(len(rows) for t, rows in expected.points if t < progress) == count, "out too early, or too late"
    for name in taken:
        assert cluster.counts("late")[name] == pipeline.ledger(name).late
        assert cluster.counts("rejected")[name] == pipeline.ledger(name).rejected


def _push(catalogue: Catalogue, name: str, rows: list[tuple[int, int]], now: int) -> Push:
    definition = catalogue.relations[name]
    assert isinstance(definition, StreamDefinition)
    if definition.arrival_time:
        return Push(name, [(k, None) for _, k in rows])
    return Push(name, [(to_datetime(now + t * SECOND), k) for t, k in rows])


def _take(pipeline: Pipeline, catalogue: Catalogue, push: Push, now: int, taken: list[tuple[Any, ...]]) -> None:
    """Push it, and note which rows are taken, with their times."""
    definition = catalogue.relations[push.name]
    assert isinstance(definition, StreamDefinition)
    clock = pipeline.state.gates.clock
    rejected = pipeline.push(push.name, batch_of(definition.columns, push.rows), now)
    if definition.arrival_time:
        first = max(now, clock + 1)
        taken += [(k, to_datetime(first + index)) for index, (k, _) in enumerate(push.rows)]
        return
    left = [] if rejected is None else [(row["ts"], row["k"]) for row in rejected.values.to_pylist()]
    for row in push.rows:
        if row in left:
            left.remove(row)
        else:
            taken.append(row)
    assert not left


def _with_times_of_their_own(catalogue: Catalogue) -> Catalogue:
    """What the reference takes row by row: nothing that was taken is late."""
    relations: dict[str, Any] = {}
    for name, definition in catalogue.relations.items():
        assert isinstance(definition, StreamDefinition)
        relations[name] = replace(definition, time=replace(definition.time, bound=UNBOUNDED), arrival_time=False)
    return replace(catalogue, relations=relations)
