"""A running query: how far it goes, who holds it back, silence, arrival, static tables; a restart changes nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.queries import Running
from tests.profile import examples
from transom.core.errors import CheckpointError, LateRowError
from transom.core.time import FOREVER, SECOND
from transom.pipeline.admission import IDLE, LATE, NO_SUCH_ROW, REASONS

BOTH = "SELECT s.k FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k"


def ledger(running: Running, name: str) -> tuple[int, int, int, int, int]:
    of = running.pipeline.ledger(name)
    return of.rows_in, of.used, of.late, of.rejected, of.waiting


def test_progress_is_the_least_watermark_and_says_whose_it_is() -> None:
    running = Running(BOTH)
    pipeline = running.pipeline
    running.push("s", (10, 1))
    assert pipeline.held_back_by == "t" and running.advance() == []
    running.push("t", (9, 1))
    assert pipeline.progress == 7 * SECOND and pipeline.held_back_by == "t"
    running.push("t", (14, 1))
    assert pipeline.held_back_by == "s" and running.advance() == []  # the pair of 10 is not final at progress 10
    running.push("s", (11, 2))
    assert running.advance() == [("+", 10.0, 1)]
    pipeline.end("s")
    assert pipeline.held_back_by == "t"
    assert running.end("t") == [("-", 15.0, 1)]  # at 14 one pair follows the other
    assert pipeline.finished and pipeline.progress == FOREVER


def test_nothing_is_said_twice_and_nothing_without_progress() -> None:
    running = Running("ISTREAM(SELECT k FROM s)")
    running.push("s", (1, 1), (2, 2))
    assert running.advance() == [(1.0, 1)] and running.advance() == []
    running.push("s", (2, 3))
    assert running.advance() == []
    assert running.end("s") == [(2.0, 2), (2.0, 3)] and running.advance() == []


# --- idle ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True])
def test_a_silent_stream_is_left_behind_once_and_its_old_rows_are_late_because_of_it(restarted: bool) -> None:
    running = Running(BOTH)
    running.push("s", (1, 1))
    running.push("t", (1, 1), (20, 1))
    assert running.fall_idle("s") and not running.fall_idle("s")
    assert running.pipeline.progress == 18 * SECOND
    assert running.advance() == [("+", 1.0, 1), ("-", 6.0, 1)]
    if restarted:
        running.restart()
    assert running.pipeline.watermark("s") == 18 * SECOND
    rejected_rows = running.push("s", (17, 1), (18, 2), (25, 3), (17, 4), (21, 5))
    assert rejected_rows is not None
    # 17 would have been in time but for the silence; after 25 it is late by the stream's own watermark, as 21 is.
    assert rejected_rows.values["k"].to_pylist() == [1, 4, 5]
    assert rejected_rows.reasons == [REASONS[IDLE], REASONS[LATE], REASONS[LATE]]
    assert ledger(running, "s") == (6, 1, 3, 0, 2)
    assert running.pipeline.watermark("s") == 25 * SECOND


def test_silence_does_not_lead_anywhere_by_itself() -> None:
    alone = Running("SELECT k FROM s [ROWS 1]")
    alone.push("s", (5, 1))
    assert not alone.fall_idle("s")
    both = Running(BOTH)
    both.push("s", (5, 1))
    assert not both.fall_idle("s"), "the other is behind"
    both.pipeline.end("t")
    assert not both.fall_idle("s"), "an ended input is no progress to be raised to"


# --- arrival ---------------------------------------------------------------------------------------------------------


def test_streams_stamped_on_arrival_share_a_strictly_increasing_clock() -> None:
    running = Running("SELECT a.k, b.k AS other FROM a [ROWS 1], b [ROWS 1]", options="SET tick = '1 SECOND';")
    running.push("a", (1, None), (2, None), now=100 * SECOND + 7)
    running.push("b", (5, None), now=99 * SECOND)  # the wall clock went back
    assert running.advance() == [("+", 102.0, 2, 5)]
    running.restart()
    running.push("a", (3, None), now=50 * SECOND)
    assert running.advance() == [("-", 103.0, 2, 5), ("+", 103.0, 3, 5)]
    running.push("b", (6, None), now=200 * SECOND)
    assert running.advance() == [("-", 200.0, 3, 5), ("+", 200.0, 3, 6)]
    assert ledger(running, "a") == (3, 3, 0, 0, 0) and ledger(running, "b") == (2, 2, 0, 0, 0)


def test_a_row_without_a_value_that_is_stamped_on_arrival_takes_its_instant_along() -> None:
    running = Running(
        "SELECT k FROM an [NOW]", options="CREATE STREAM an (k INTEGER NOT NULL) WITH (time = 'arrival');"
    )
    running.push("an", (1, None), (None, None), (2, None), now=100 * SECOND)
    came = [(round(at * SECOND) - 100 * SECOND, k) for sign, at, k in running.end("an") if sign == "+"]
    assert came == [(0, 1), (2, 2)]


# --- late, rejected --------------------------------------------------------------------------------------------------


def test_a_late_row_stops_the_query_where_it_must() -> None:
    running = Running("SELECT k FROM f [ROWS 1]")
    running.push("f", (5, 1))
    with pytest.raises(LateRowError):
        running.push("f", (6, 1), (4, 1))
    assert ledger(running, "f") == (1, 0, 0, 0, 1)


def test_a_minus_without_its_row_is_rejected_when_its_time_comes() -> None:
    running = Running("SELECT k FROM r")
    running.push("r", (1, "+", 1), (2, "-", 2), (3, "-", 1), (4, "?", 1))
    assert ledger(running, "r") == (4, 0, 0, 1, 3)
    assert running.advance() == [("+", 1.0, 1), ("-", 3.0, 1)]
    assert ledger(running, "r") == (4, 2, 0, 2, 0)
    rejected_rows = running.rejected_rows["r"]
    assert rejected_rows.reasons == [REASONS[NO_SUCH_ROW]] and rejected_rows.values["k"].to_pylist() == [2]


def test_rows_that_no_source_could_read_are_counted_too() -> None:
    running = Running("SELECT s.k FROM s [ROWS 1], names WHERE s.k = names.k")
    running.pipeline.reject("S", 3)
    running.pipeline.reject("names", 2)
    running.push("names", (1, "one"))
    assert ledger(running, "s") == (3, 0, 0, 3, 0) and ledger(running, "names") == (3, 1, 0, 2, 0)


MOVES = st.lists(
    st.tuples(st.sampled_from("sstr"), st.lists(st.none() | st.integers(0, 12), max_size=4), st.integers(0, 5)),
    max_size=12,
)


@settings(max_examples=examples(by_day=30, at_night=300))
@given(MOVES)
def test_the_ledger_adds_up_at_every_moment(moves: Any) -> None:
    running = Running("SELECT s.k FROM s [ROWS 2], t [RANGE 5 SECONDS], r WHERE s.k = t.k AND t.k = r.k")
    pushed = dict.fromkeys("str", 0)
    rejected_rows = dict.fromkeys("str", 0)
    for name, seconds, then in moves:
        values: list[tuple[Any, ...]] = [("+-?"[i % 3], 1) if name == "r" else (1,) for i in range(len(seconds))]
        rows = [(second, *row) for second, row in zip(seconds, values, strict=True)]
        given_back = running.push(name, *rows)
        pushed[name] += len(rows)
        rejected_rows[name] += 0 if given_back is None else len(given_back.reasons)
        if then == 0:
            running.fall_idle("s")
        if then < 4:
            running.advance()
            rejected_rows["r"] += len(running.rejected_rows["r"].reasons) if "r" in running.rejected_rows else 0
        if then == 4:
            running.restart()
        for each in "str":
            of = running.pipeline.ledger(each)
            waiting = sum(len(part.t) for part in running.pipeline.state.gates.inputs[each].waiting)
            assert of.rows_in == pushed[each] and of.waiting == waiting and of.late + of.rejected == rejected_rows[each]
    running.end("s", "t", "r")
    assert all(running.pipeline.ledger(each).waiting == 0 for each in "str")


# --- static tables, origin -------------------------------------------------------------------------------------------


def test_static_tables_are_there_from_the_origin_and_hold_nothing_back() -> None:
    running = Running("SELECT s.k, label FROM s [RANGE 2 SECONDS], names WHERE s.k = names.k")
    running.push("names", (1, "one"), (1, "uno"))
    running.push("names", (None, "nobody"))
    running.restart()
    running.push("s", (3, 1), (4, 2))
    assert running.advance() == [("+", 3.0, 1, "one"), ("+", 3.0, 1, "uno")]
    assert running.pipeline.held_back_by == "s"
    assert running.end("s") == [("-", 5.0, 1, "one"), ("-", 5.0, 1, "uno")]
    assert ledger(running, "names") == (3, 3, 0, 0, 0)


def test_a_query_over_static_tables_alone_is_over_in_one_step() -> None:
    running = Running("SELECT COUNT(*) AS n FROM names", emit="latest")
    assert running.pipeline.held_back_by is None
    running.push("names", (1, "one"))
    assert running.advance() == [(1,)] and running.pipeline.finished


def test_a_set_origin_is_floored_to_the_tick_like_every_instant() -> None:
    options = "SET tick = '1 SECOND'; SET origin = '1970-01-01 00:00:02.500';"
    running = Running("SELECT COUNT(*) AS n FROM s [RANGE 9 SECONDS]", options=options)
    rejected_rows = running.push("s", (1.9, 1), (2.1, 2), (4, 3))
    assert rejected_rows is not None and rejected_rows.values["k"].to_pylist() == [1]
    assert running.advance() == [("+", 2.0, 1)]


# --- saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        Running(BOTH.replace("RANGE 5", "RANGE 6", 1)),
        Running(BOTH, emit="lifetimes"),
        Running(BOTH, options="SET tick = '1 SECOND';"),
        Running(BOTH, options="SET join = 'nested_loop';"),
        Running(BOTH, options="SET origin = '2024-01-01';"),
    ],
    ids=["window", "emit", "tick", "tactic", "origin"],
)
def test_the_memory_of_another_query_is_rejected(other: Running) -> None:
    running = Running(BOTH)
    with pytest.raises(CheckpointError, match="another query"):
        running.pipeline.restore(other.pipeline.snapshot())
    running.pipeline.restore(Running(BOTH).pipeline.snapshot())


def test_a_restart_anywhere_leaves_the_same_memory() -> None:
    text = "SELECT s.k, COUNT(*) AS n FROM s [ROWS 3], t [RANGE 4 SECONDS] WHERE s.k = t.k GROUP BY s.k"
    whole, broken = Running(text), Running(text)
    random = Random(4)
    for second in range(30):
        name, k = random.choice("st"), random.randrange(3)
        answers = []
        for running in (whole, broken):
            running.push(name, (second, k))
            answers.append(running.advance())
        assert answers[0] == answers[1]
        broken.restart()
    assert whole.end("s", "t") == broken.end("s", "t")
    for name in "st":
        assert ledger(whole, name) == ledger(broken, name)


def test_names_are_found_whatever_their_case() -> None:
    running = Running("SELECT k FROM s [ROWS 1]")
    row = pa.record_batch({"ts": pa.array([0], pa.timestamp("us")), "k": pa.array([1], pa.int32())})
    running.pipeline.push("S", row)
    running.pipeline.end("S")
    assert running.advance() == [("+", 0.0, 1)] and running.pipeline.watermark("S") == FOREVER
