"""How answers leave: the forms report the same story, and each what is only its own to report."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.kernels.stepping import ints
from tests.pipeline.queries import Running
from transom.core.delta import Delta, Ends
from transom.core.schema import BIGINT, VARCHAR, Schema
from transom.core.time import FOREVER, SECOND, from_datetime, to_datetime
from transom.kernels.kernel import Step
from transom.pipeline.answer import output_schema
from transom.pipeline.emit import LifetimesEmit
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import RelationHistory
from transom.state.open_ids import OpenIdPool

QUERIES = (
    "SELECT k FROM s [ROWS 2]",
    "SELECT k FROM s [RANGE 3 SECONDS] UNION ALL SELECT k FROM t [ROWS 1]",
    "SELECT s.k FROM s [ROWS 2], t [RANGE 4 SECONDS] WHERE s.k = t.k",
    "SELECT k, COUNT(*) FROM s [PARTITION BY k ROWS 2 RANGE 3 SECONDS] GROUP BY k",
    "SELECT DISTINCT k FROM t [RANGE 5 SECONDS SLIDE 2 SECONDS]",
)


def rows(seed: int) -> list[tuple[str, float, int | None]]:
    random = Random(seed)
    return [(random.choice("st"), float(second // 2), random.choice([1, 2, None])) for second in range(40)]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_all_forms_tell_the_same_story(text: str, seed: int) -> None:
    forms = {emit: Running(text, emit) for emit in ("changes", "lifetimes", "latest")}
    streams = {change: Running(f"{change}({text})") for change in ("ISTREAM", "DSTREAM", "RSTREAM")}
    reported: dict[str, list[tuple[Any, ...]]] = {name: [] for name in (*forms, *streams)}
    latest: dict[int, Counter[Any]] = {}
    inputs: dict[str, list[tuple[Any, ...]]] = {"s": [], "t": []}

    def advance() -> None:
        for name, running in (forms | streams).items():
            before = running.pipeline.state.gates.frontier
            out = running.advance()
            reported[name] += out
            frontier = running.pipeline.state.gates.frontier
            if name == "latest" and frontier is not None and frontier != before:
                latest[frontier] = Counter(out)

    for name, second, k in rows(seed):
        inputs[name].append((to_datetime(0) + timedelta(seconds=second), k))
        for running in (*forms.values(), *streams.values()):
            if name in running.pipeline.inputs:
                running.push(name, (second, k))
        advance()
    for running in (*forms.values(), *streams.values()):
        for name in running.pipeline.inputs:
            running.pipeline.end(name)
    advance()

    expected = evaluate(forms["changes"].query, forms["changes"].catalogue, inputs)
    assert isinstance(expected, RelationHistory) and len(expected.points) > 5
    changes = RelationHistory.of_changes(
        (round(at * SECOND), 1 if sign == "+" else -1, row) for sign, at, *row in reported["changes"]
    )
    ends = (
        (row, round(ta * SECOND), None if te is None else round(te * SECOND)) for *row, ta, te in reported["lifetimes"]
    )
    assert changes.points == expected.points == RelationHistory.of_lifetimes(ends).points
    read = [at for name, given in inputs.items() if name in forms["latest"].pipeline.inputs for at, _ in given]
    at_the_end = {FOREVER: from_datetime(max(read))}
    assert {
        frontier: expected.snapshot(at_the_end.get(frontier, frontier - 1)) for frontier in latest
    } == latest and len(latest) > 5
    assert reported["ISTREAM"] == [(at, *row) for sign, at, *row in reported["changes"] if sign == "+"]
    assert reported["DSTREAM"] == [(at, *row) for sign, at, *row in reported["changes"] if sign == "-"]
    if "SLIDE" not in text:  # over slides it reports more than changes
        whole = [(t / SECOND, *row) for t, bag in expected.points for row in bag.elements()]
        assert sorted(reported["RSTREAM"], key=repr) == sorted(whole, key=repr)


def test_latest_is_the_snapshot_just_before_progress() -> None:
    running = Running("SELECT k FROM s [RANGE 3 SECONDS]", "latest")
    running.push("s", (1, 7), (2, 5), (2, 5))
    assert running.advance() == [(7,)]
    running.push("s", (4, 9))
    assert running.advance() == [(5,), (5,), (7,)]
    running.push("s", (6, None))
    assert running.advance() == [(9,)]
    running.restart()
    assert running.end("s") == [(None,), (9,)], "as of the last row: at the end of time there is nothing"


def test_lifetimes_leave_open_what_is_open_and_tell_forever_as_the_greatest_time() -> None:
    rows_window = Running("SELECT k FROM s [ROWS 1]", "lifetimes")
    rows_window.push("s", (1, 1), (2, 2))
    assert rows_window.advance() == []
    assert sorted(rows_window.end("s"), key=repr) == [(1, 1.0, 2.0), (2, 2.0, None)]
    unbounded = Running("SELECT k FROM s", "lifetimes")
    unbounded.push("s", (1, 1))
    assert unbounded.end("s") == [(1, 1.0, FOREVER / SECOND)]


def test_a_lifetime_is_written_once_when_its_end_is_known() -> None:
    running = Running("SELECT k FROM s [RANGE 5 SECONDS]", "lifetimes")
    running.push("s", (1, 1), (2, 2))
    assert running.advance() == [(1, 1.0, 6.0)]
    running.push("s", (9, 3))
    assert running.advance() == [(2, 2.0, 7.0)]


def test_what_leaves_and_enters_at_once_is_not_mentioned() -> None:
    running = Running("SELECT k FROM s [RANGE 1 SECOND]")
    running.push("s", (1, 1), (2, 1), (3, 2))
    assert running.advance() == [("+", 1.0, 1)]
    assert running.end("s") == [("-", 3.0, 1), ("+", 3.0, 2), ("-", 4.0, 2)]


def test_rows_of_one_instant_that_push_each_other_out_are_never_seen() -> None:
    for emit in ("changes", "lifetimes"):
        running = Running("SELECT k FROM s [ROWS 1]", emit)
        running.push("s", (1, 1), (1, 2), (1, 3), (2, 4))
        reported = [*running.advance(), *running.end("s")]
        assert 1 not in [row[2 if emit == "changes" else 0] for row in reported]
        assert 2 not in [row[2 if emit == "changes" else 0] for row in reported]


def test_a_row_that_turns_out_to_be_a_ghost_is_not_written() -> None:
    emit = LifetimesEmit(Schema.of(("a", BIGINT)))
    state = emit.start()
    rows = Delta(pa.record_batch({"a": [1, 2]}), ints([5, 6]), ints([FOREVER] * 2), ints([0, 1]), 7)
    assert len(emit.write(state, rows, Step(0, 7, 0, OpenIdPool()))) == 0
    none = pa.record_batch({"a": pa.array([], pa.int64())})
    ends = Delta(none, ints([]), ints([]), ints([]), 9, Ends.of(ints([0, 1]), ints([5, 8])))
    assert emit.write(state, ends, Step(7, 9, 0, OpenIdPool()))["a"].to_pylist() == [2]
    assert len(emit.remaining(state)) == 0


@pytest.mark.parametrize(
    ("emit", "names"),
    [
        ("stream", ["at", "at_1", "te", "x", "x_1"]),
        ("changes", ["change", "at", "at_1", "te", "x", "x_1"]),
        ("lifetimes", ["at", "te", "x", "x_1", "ta", "te_1"]),
        ("latest", ["at", "te", "x", "x_1"]),
    ],
)
def test_columns_have_distinct_names(emit: str, names: list[str]) -> None:
    schema = Schema.of(("at", BIGINT), ("te", VARCHAR), ("x", BIGINT), ("x", BIGINT))
    assert output_schema(emit, schema).names == names
