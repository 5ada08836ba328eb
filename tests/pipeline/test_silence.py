"""What the clock does while nothing comes: arrival streams follow it, heartbeats speak, silent streams fall idle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.queries import Running
from tests.pipeline.spread_queries import Spread, laid_out, rows
from tests.profile import examples
from transom.core.time import BEGINNING, FOREVER, SECOND
from transom.pipeline.admission import AHEAD, LATE, REASONS
from transom.pipeline.input_gates import InputGates

STREAMS = """
CREATE STREAM h (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (heartbeat = '5 SECONDS');
CREATE STREAM o (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '10 SECONDS');
CREATE STREAM n (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (ahead = '1 HOUR', late =
'dead_letter'); CREATE TABLE q (ts TIMESTAMP INVISIBLE, k INTEGER PRIMARY KEY, WATERMARK FOR ts AS ts) WITH (heartbeat =
'1 SECOND');
"""

DEAD = "DSTREAM(SELECT DISTINCT k FROM {0} [RANGE 5 SECONDS])"


def running(text: str, emit: str = "changes", options: str = "") -> Running:
    return Running(text, emit, STREAMS + options)


def next_timer(query: Running) -> int:
    (stage,), (memory,) = query.pipeline._stages, query.pipeline.state.stages
    return query.pipeline.gates.next_timer(stage.next_timer(memory))


def timer_passed(query: Running) -> bool:
    return query.pipeline.timer_passed


# --- what is due -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["changes", "latest"])
def test_the_operators_say_when_something_comes_out_though_nothing_comes_in(emit: str) -> None:
    query = running("SELECT k FROM a [RANGE 5 SECONDS]", emit)
    assert next_timer(query) == FOREVER and not timer_passed(query), "time has not begun"
    query.push("a", (1, None), now=10 * SECOND)
    assert next_timer(query) == 10 * SECOND and timer_passed(query), "a row waits"
    query.advance()
    assert next_timer(query) == 15 * SECOND and not timer_passed(query)
    query.pipeline.gates.follow(15 * SECOND, ["a"])
    assert not timer_passed(query), "what ends at an instant is out once progress is past it"
    query.pipeline.gates.follow(15 * SECOND + 1, ["a"])
    assert timer_passed(query) and query.advance() == ([("-", 15.0, 1)] if emit == "changes" else [])
    assert next_timer(query) == FOREVER


def test_after_a_restart_everybody_is_due_once() -> None:
    query = running(DEAD.format("a"))
    query.push("a", (1, None), now=10 * SECOND)
    query.advance()
    query.restart()
    query.pipeline.gates.follow(12 * SECOND, ["a"])
    assert timer_passed(query) and query.advance() == []
    query.pipeline.gates.follow(13 * SECOND, ["a"])
    assert not timer_passed(query) and next_timer(query) == 15 * SECOND


# --- following the clock ---------------------------------------------------------------------------------------------


def test_what_is_stamped_on_arrival_follows_the_clock_and_no_row_is_before_it() -> None:
    query = running(DEAD.format("a"))
    gates = query.pipeline.gates
    query.push("a", (1, None), now=10 * SECOND)
    gates.follow(20 * SECOND, ["a"])
    assert query.pipeline.progress == 20 * SECOND
    assert query.advance() == [(15.0, 1)]
    gates.follow(19 * SECOND, ["a"])
    assert query.pipeline.progress == 20 * SECOND, "time does not go back"
    query.push("a", (2, None), now=18 * SECOND)
    assert query.pipeline.progress == 20 * SECOND + 1
    query.restart()
    query.pipeline.gates.follow(30 * SECOND, ["a"])
    assert query.advance() == [(25.0, 2)]


def test_instants_of_the_clock_are_floored_to_the_tick() -> None:
    query = running(DEAD.format("a"), options="SET tick = '1 SECOND';")
    query.push("a", (1, None), now=10 * SECOND)
    query.pipeline.gates.follow(12 * SECOND + 7, ["a"])
    assert query.pipeline.progress == 12 * SECOND
    query.push("a", (2, None), now=12 * SECOND + 8)
    assert query.pipeline.progress == 13 * SECOND


def test_a_heartbeat_speaks_once_in_its_period_and_what_is_below_it_is_late() -> None:
    query = running("SELECT k FROM h [NOW]")
    gates = query.pipeline.gates
    query.push("h", (3, 1))
    gates.follow(9 * SECOND, ["h"])
    assert query.pipeline.progress == 7 * SECOND, "the clock at that look, minus the bound"
    gates.follow(9_900_000, ["h"])
    assert query.pipeline.progress == 7 * SECOND, "the same period"
    gates.follow(10_400_000, ["h"])
    assert query.pipeline.progress == 8_400_000
    query.restart()
    rejected_rows = query.push("h", (8.3, 2), (8.4, 3), (11, 4))
    assert rejected_rows is not None and rejected_rows.reasons == [REASONS[LATE]]
    assert query.pipeline.progress == 9 * SECOND, "by the rows again"


def test_a_heartbeat_is_silent_while_there_is_more_to_read() -> None:
    query = running("SELECT k FROM h [NOW]")
    query.push("h", (3, 1))
    query.pipeline.gates.follow(3_600 * SECOND, [])
    assert query.pipeline.progress == 1 * SECOND
    assert query.push("h", (4, 2)) is None, "what was not read while nobody ran is not late"
    both = running("SELECT h.k FROM h [NOW], q WHERE h.k = q.k").pipeline.gates
    both.follow(3_600 * SECOND, ["q"])
    assert (both.watermark("h"), both.watermark("q")) == (BEGINNING, 3_600 * SECOND), "of the other one"


def test_where_all_are_silent_the_last_to_fall_idle_says_how_far_time_came() -> None:
    """However often somebody looks: at 12 seconds s alone is idle, at 20 both are."""
    text = "SELECT o.k FROM o [NOW], s [NOW] WHERE o.k = s.k"
    for looks in ([70], [12, 70], [12, 60, 70], [61, 70]):
        query = running(text)
        gates = query.pipeline.gates
        query.push("o", (3, 1))
        query.push("s", (5, 1))
        gates.hear("o", 2 * SECOND, came=True, polled_at=2 * SECOND)
        gates.hear("s", 5 * SECOND, came=True, polled_at=5 * SECOND)
        for look in looks:
            _look(gates, look * SECOND)
        assert query.pipeline.progress == 5 * SECOND
        assert not _look(gates, 99 * SECOND), "once"
    slow = "CREATE STREAM z (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '1 MINUTE');"
    together = running("SELECT z.k FROM z [NOW], s [NOW] WHERE z.k = s.k", options=slow)
    for name, second in (("z", 3), ("s", 5)):
        together.push(name, (second, 1))
        together.pipeline.gates.hear(name, 0, came=True, polled_at=0)
    assert _look(together.pipeline.gates, 60 * SECOND) and together.pipeline.progress == 5 * SECOND


@pytest.mark.parametrize("polled_at", [True, False])
def test_who_has_fallen_idle_does_not_hold_back_the_rows_of_those_that_have_ended(polled_at: bool) -> None:
    query = running("SELECT o.k FROM o [RANGE 9 SECONDS] UNION ALL SELECT s.k FROM s [RANGE 1 SECOND]")
    gates = query.pipeline.gates
    for name, second in (("o", 1), ("s", 2), ("s", 5)):
        query.push(name, (second, second))
        gates.hear(name, second * SECOND, came=True, polled_at=None)
    if polled_at:
        _look(gates, 20 * SECOND)
    query.pipeline.end("s")
    assert _look(gates, 90 * SECOND) and query.pipeline.progress == 5 * SECOND + 1
    query.advance()
    assert query.pipeline.ledger("s").used == 2


def test_nobody_is_silent_of_whom_there_is_more() -> None:
    query = running("SELECT o.k FROM o [NOW], s [NOW] WHERE o.k = s.k")
    gates = query.pipeline.gates
    query.push("o", (1, 1))
    query.push("s", (5, 1))
    gates.hear("o", SECOND, came=True, polled_at=SECOND)
    gates.hear("s", 2 * SECOND, came=True, polled_at=None)
    assert gates.wake(3 * SECOND) == 11 * SECOND, "s has more, so it goes on, and o is left behind"
    gates.hear("o", 30 * SECOND, came=False, polled_at=None)
    assert not gates.leave_idle_behind() and gates.wake(3 * SECOND) is None


# --- when to wake ----------------------------------------------------------------------------------------------------


def test_a_run_is_woken_when_progress_passes_what_is_due() -> None:
    query = running(DEAD.format("a"))
    gates = query.pipeline.gates
    query.push("a", (1, None), now=10 * SECOND)
    assert gates.wake(9 * SECOND) == 0
    assert gates.wake(15 * SECOND) == 15 * SECOND + 1
    assert gates.wake(FOREVER) is gates.wake(FOREVER - 1) is None
    assert running("SELECT k FROM s [NOW]").pipeline.gates.wake(BEGINNING) is None, "nothing but rows takes it on"
    beats = running("SELECT k FROM h [NOW]").pipeline.gates
    assert beats.wake(13 * SECOND - 1) == 15 * SECOND and beats.wake(13 * SECOND) == 20 * SECOND
    ticking = running("SELECT k FROM h [NOW]", options="SET tick = '1 SECOND';").pipeline.gates
    assert ticking.wake(12 * SECOND) == 15 * SECOND and ticking.wake(13 * SECOND) == 20 * SECOND


def test_a_run_is_woken_when_the_last_of_its_silent_inputs_is_left_behind() -> None:
    query = running("SELECT o.k FROM o [NOW], h [NOW] WHERE o.k = h.k")
    gates = query.pipeline.gates
    gates.hear("o", 30 * SECOND, came=True, polled_at=30 * SECOND)
    assert gates.wake(20 * SECOND) == 40 * SECOND, "the others will have passed it"
    assert gates.wake(41 * SECOND) == 45 * SECOND, "it is not waited for any more"
    assert running("SELECT o.k FROM o [NOW], t [NOW] WHERE o.k = t.k").pipeline.gates.wake(SECOND) is None


Moves = st.lists(
    st.tuples(st.sampled_from("ohstabq"), st.integers(0, 40), st.sampled_from(["came", "silent", "end"])), max_size=8
)


@settings(max_examples=examples(by_day=60, at_night=750), deadline=None)
@given(Moves, st.integers(0, 60), st.sampled_from(["o, s", "o, h", "s, t", "a, b", "h, q", "o, q, s", "o, h, s"]))
def test_nobody_is_woken_too_early_or_too_late(moves: Any, instant: int, names: str) -> None:
    """Following the clock to that moment takes progress past the instant, and no earlier moment does."""
    tables = ", ".join(name if name in "qr" else f"{name} [NOW]" for name in names.split(", "))
    query = running(f"SELECT COUNT(*) AS n FROM {tables}")
    gates, now = query.pipeline.gates, 0
    for name, second, what in moves:
        if name not in gates.inputs:
            continue
        now += SECOND
        if what == "end":
            query.pipeline.end(name)
            continue
        gates.hear(name, now, came=what == "came", polled_at=now)
        if what == "came" and not gates.stamped(name):
            query.push(name, (second, 1))
    at = instant * SECOND
    wake = gates.wake(at)
    last = max(now, 10_000 * SECOND) if wake is None else wake
    saved = query.pipeline.snapshot()
    if wake is None or (wake > 0 and last > now):
        early = last if wake is None else last - 1
        if any(entry.definition.heartbeat for entry in gates.inputs.values()):
            early = early // (5 * SECOND) * 5 * SECOND  # they may speak anywhere in their periods
        _follow(query.pipeline.gates, early)
        assert query.pipeline.progress <= at
        query.pipeline.restore(saved)
    if wake is not None:
        _follow(query.pipeline.gates, max(now, wake))
        assert query.pipeline.progress > at


def _follow(gates: InputGates, now: int) -> None:
    gates.follow(now, list(gates.inputs))
    for name in gates.inputs:
        if name in gates.state.quiet:
            gates.hear(name, now, came=False, polled_at=now)
    gates.leave_idle_behind()


def _look(gates: InputGates, now: int) -> bool:
    """Somebody looks for more everywhere, and there is none."""
    for name in gates.inputs:
        gates.hear(name, now, came=False, polled_at=now)
    return gates.leave_idle_behind()


# --- ahead -----------------------------------------------------------------------------------------------------------


def test_a_row_too_far_ahead_of_the_clock_is_rejected_and_takes_no_time_on() -> None:
    query = running("SELECT k FROM n [NOW]")
    rejected_rows = query.push("n", (10, 1), (3_610, 2), (3_610.000001, 3), (3_609, 4), now=10 * SECOND)
    assert rejected_rows is not None and rejected_rows.values["k"].to_pylist() == [3, 4]
    assert rejected_rows.reasons == [REASONS[AHEAD], REASONS[LATE]]
    assert query.pipeline.progress == 3_610 * SECOND
    assert (query.pipeline.ledger("n").rejected, query.pipeline.ledger("n").late) == (1, 1)


# --- in partitions
# ------------------------------------------------------------------------------------------------------


def test_partitions_follow_the_clock_of_their_batches() -> None:
    spread = Spread(laid_out(DEAD.format("a")))
    assert spread.push("a", (1, 0), (2, 0), now=10) == []
    assert {status["wake"] for status in spread.cluster.statuses.values()} <= {15 * SECOND + 1, 15 * SECOND + 2, None}
    assert spread.batch([rows(spread.layout, "a")], now=12) == []
    assert spread.frontier() == 10.000002, "a run that does not follow its input"
    assert spread.batch([rows(spread.layout, "a")], now=14, at_end=["a"]) == [] and spread.frontier() == 14.0
    assert spread.batch([rows(spread.layout, "a")], now=20, at_end=[]) == [(15.0, 1), (15.000001, 2)]
    assert {status["wake"] for status in spread.cluster.statuses.values()} == {None}


def test_nobody_is_silent_in_partitions_who_has_more_to_be_read() -> None:
    layout = laid_out("SELECT s.k FROM s [NOW], d [NOW] WHERE s.k = d.k")
    spread = Spread(layout)
    spread.batch([rows(layout, "s", (1, 1, 0), (2, 1, 0)), rows(layout, "d", (1, 1, 0))], now=0, at_end=["s", "d"])
    spread.batch([rows(layout, "d", (32, 1, 0))], now=60, at_end=["d"])
    assert spread.frontier() == 2.0
    spread.batch([rows(layout, "d", (33, 1, 0))], now=61, at_end=["s", "d"])
    assert spread.frontier() == 31.0


def test_a_dataframe_that_brings_rows_may_have_more() -> None:
    text = "CREATE STREAM h (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (heartbeat = '5 SECONDS');"
    layout = laid_out(f"{text} SELECT k FROM h [NOW]", unordered=frozenset("h"))
    spread = Spread(layout)
    spread.batch([rows(layout, "h", (1, 1), (2, 1))], now=60, at_end=["h"])
    assert spread.frontier() == 2.0
    spread.batch([], now=65, at_end=["h"])
    assert spread.frontier() == 65.0
