"""Partitions judge rows, find the origin and know the time as one reader of everything would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.queries import Running, rows_of
from tests.pipeline.spread_queries import Spread, laid_out, rows
from tests.run_locally import Push, batch_of
from transom.core.errors import CheckpointError, LateRowError
from transom.core.time import SECOND
from transom.pipeline import fragment_partition, packer
from transom.pipeline.admission import InputGate
from transom.pipeline.frames import OUT, Message
from transom.pipeline.input_gates import InputGates

GROUPED = "SELECT k, COUNT(*) AS n FROM {0} [RANGE 5 SECONDS] {1} GROUP BY k"
TIMES = st.none() | st.integers(0, 12)
BATCHES = st.lists(st.lists(st.lists(TIMES, max_size=4), min_size=1, max_size=3), max_size=5)


@settings(max_examples=60)
@given(BATCHES, st.sampled_from(["", "WHERE x > 1"]), st.sampled_from([1, 3]))
def test_rows_are_late_across_splits_and_batches_as_if_one_had_read_them(
    batches: list[list[list[int | None]]], where: str, partitions: int
) -> None:
    spread = Spread(laid_out(GROUPED.format("t", where), partitions))
    definition = spread.layout.sources["t"]
    alone = InputGates({"t": InputGate(definition, 1)}, 1, None)
    state, number, shown = alone.state.inputs["t"], 0, 0
    for batch in batches:
        tasks = []
        for times in batch:
            push = rows(spread.layout, "t", *((t, number + i, (number + i) % 4) for i, t in enumerate(times)))
            number += len(times)
            tasks.append([push])
            rejected_rows = alone.inputs["t"].admit(
                state, alone.inputs["t"].classify(batch_of(definition.columns, push.rows))
            )
            shown += 0 if rejected_rows is None else len(rejected_rows.reasons)
        spread.batch(*tasks)
        found = alone.next_step()
        if found is not None:
            alone.release("t", found[1])
            alone.state.frontier = found[1]
        assert spread.cluster.frontier == alone.state.frontier
        if not where:  # a row that a filter takes away is done with at once
            assert spread.ledger("t")[0] == state.ledger.used
        assert spread.ledger("t")[1:] == (state.ledger.late, state.ledger.rejected)
    assert len(spread.side()) == shown, "every rejected row is in the dead-letter table, filtered ones as well"
    spread.end("t")
    assert sum(spread.ledger("t")) == number


def test_a_row_that_a_filter_takes_away_is_late_all_the_same() -> None:
    spread = Spread(laid_out(GROUPED.format("d", "WHERE x > 1")))
    spread.push("d", (10, 1, 5))
    spread.batch([rows(spread.layout, "d", (7, 1, 0))], [rows(spread.layout, "d", (9, 1, 0), (7, 1, 5))])
    spread.end("d")
    assert spread.ledger("d") == (2, 2, 0)


def test_the_first_late_row_of_another_task_fails_the_query_where_that_is_asked_for() -> None:
    spread = Spread(laid_out(GROUPED.format("f", "")))
    with pytest.raises(LateRowError, match="'f' came late"):
        spread.batch([rows(spread.layout, "f", (5, 1, 0))], [rows(spread.layout, "f", (4, 1, 0))])


def test_a_change_without_a_key_that_is_late_is_late() -> None:
    spread = Spread(laid_out("SELECT k, x FROM p"))
    spread.push("p", (5, 1, 0))
    spread.batch([rows(spread.layout, "p", (6, None, 0))], [rows(spread.layout, "p", (5, None, 0), (6, 2, 0))])
    spread.end("p")
    assert spread.ledger("p") == (2, 1, 1)
    assert [reason for reason, _ in spread.side()] == ["the primary key is missing"]


NONE = "SELECT COUNT(*) AS n FROM d [NOW] WHERE x > 100"
"""There are none from the origin on."""


def test_the_origin_is_the_first_admitted_instant_in_whichever_split_it_is() -> None:
    spread = Spread(laid_out(NONE))
    out = spread.batch(
        [rows(spread.layout, "d", (10, 1, 1), (9, 1, 2))],
        [rows(spread.layout, "d", (8, 1, 3), (7, 1, 4), (13, 1, 5))],
    )
    assert out == [("+", 8.0, 0)]
    spread.end("d")
    assert spread.ledger("d") == (4, 1, 0), "7 is late by what the first task saw"


def test_a_split_that_is_late_as_a_whole_does_not_begin_the_query() -> None:
    spread = Spread(laid_out(NONE))
    tasks = [[rows(spread.layout, "d", (t, 1, 1))] for t in (10, 3, 9, 4)]
    assert spread.batch(*tasks) == [] and spread.frontier() is None, "9 is the origin, and not complete yet"
    assert spread.push("d", (20, 1, 1)) == [("+", 9.0, 0)]


def test_the_origin_is_found_by_a_row_that_a_filter_takes_away_or_another_partition_has() -> None:
    spread = Spread(laid_out(GROUPED.format("d", "WHERE x > 1"), partitions=4))
    spread.push("d", (5, 1, 0), (6, 1, 9), (20, 2, 9))
    assert {home.partition.state.gates.origin for home in spread.cluster.homes.values()} == {5 * SECOND}


# --- idle streams and arrival ----------------------------------------------------------------------------------------

TWO = "SELECT m.x FROM s [RANGE 9 SECONDS] AS m, d [RANGE 9 SECONDS] AS o WHERE m.k = o.k"


def test_a_silent_stream_is_raised_in_all_partitions_and_what_comes_later_is_late() -> None:
    spread = Spread(laid_out(TWO))
    spread.batch([rows(spread.layout, "s", (1, 1, 1)), rows(spread.layout, "d", (1, 1, 1))], now=100)
    spread.push("d", (20, 1, 1), now=130)
    assert spread.frontier() is None, "s is at its origin"
    spread.push("d", (21, 1, 1), now=160)
    assert spread.frontier() == 19, "a minute without a row of s"
    spread.push("s", (18, 1, 1), (19, 1, 1), now=161)
    assert spread.ledger("s") == (1, 1, 0)
    assert {status["watermarks"]["s"] for status in spread.cluster.statuses.values()} == {19 * SECOND}


def test_no_row_may_follow_the_end_of_its_stream() -> None:
    spread = Spread(laid_out("SELECT k FROM s [RANGE 5 SECONDS]"))
    spread.batch([rows(spread.layout, "s", (1, 1, 1)), Push("s", [], end=True)])
    assert spread.end("s") == [], "it may be reported again"
    with pytest.raises(CheckpointError, match="stream 's' has ended, and there are rows of it now"):
        spread.push("s", (9, 1, 1))


def test_a_stream_that_is_read_twice_is_silent_once() -> None:
    text = (
        "SELECT m.x FROM s [RANGE 9 SECONDS] AS m, s [RANGE 3 SECONDS] AS n, d [NOW] AS o WHERE m.k = n.x AND m.k = o.k"
    )
    spread = Spread(laid_out(text))
    spread.batch([rows(spread.layout, "s", (1, 1, 1)), rows(spread.layout, "d", (1, 1, 1))], now=0)
    spread.push("d", (22, 1, 1), now=60)
    assert spread.frontier() == 20


def test_rows_are_stamped_on_arrival_alike_for_all_gates_and_all_partitions() -> None:
    text = "SELECT m.x AS mx, n.x AS nx FROM a [NOW] AS m, a [RANGE 9 SECONDS] AS n WHERE m.k = n.k"
    spread = Spread(laid_out(text, partitions=4))
    assert len(spread.layout.channels_of("a")) == 2

    def tasks(*parts: range) -> list[list[Push]]:
        return [[rows(spread.layout, "a", *((k, 10 * k) for k in part))] for part in parts]

    out = spread.batch(*tasks(range(3), range(0), range(3, 5)), now=7)
    out += spread.batch(*tasks(range(5, 6), range(6, 10)), now=3) + spread.end("a")
    came = [(round(row[1] * SECOND), *row[2:]) for row in out if row[0] == "+"]
    # One tick after the other, though the clock went back; and the same for both windows, or they would not meet.
    assert came == [(7 * SECOND + k, 10 * k, 10 * k) for k in range(10)]


def test_two_arrival_streams_share_one_clock_in_the_order_of_the_sources() -> None:
    spread = Spread(laid_out("SELECT k FROM a [NOW] UNION ALL SELECT k FROM b [NOW]", partitions=3))
    reported = spread.batch([rows(spread.layout, "b", (5, 0)), rows(spread.layout, "a", (1, 0), (2, 0))], now=1)
    reported += spread.end("a", "b")
    times = {row[2]: round(row[1] * SECOND) - SECOND for row in reported if row[0] == "+"}
    assert sorted(times.values()) == [0, 1, 2] and times[2] == times[1] + 1


@pytest.mark.parametrize("where", ["", "WHERE x > 10"])
def test_rows_that_arrive_before_the_origin_are_rejected(where: str) -> None:
    text = f"SET origin = '1970-01-01 00:00:05'; SELECT k, COUNT(*) AS n FROM a [NOW] {where} GROUP BY k"
    spread = Spread(laid_out(text, partitions=2))
    out = spread.batch([rows(spread.layout, "a", (1, 10), (2, 20))], now=4)
    out += spread.batch([rows(spread.layout, "a", (1, 10), (2, 20))], now=6) + spread.end("a")
    assert {row[2] for row in out if row[0] == "+"} == ({2} if where else {1, 2})
    assert spread.ledger("a") == (2, 0, 2) and len(spread.side()) == 2


# --- what travels ----------------------------------------------------------------------------------------------------


def test_columns_that_nobody_reads_are_null_where_they_would_be_and_do_no_harm() -> None:
    spread = Spread(laid_out("SELECT x FROM d [PARTITION BY x ROWS 1]"))
    out = spread.push("d", (1, None, 4), (2, 8, None), (9, None, 5)) + spread.end("d")
    assert [row for row in out if row[0] == "+"] == [("+", 1.0, 4), ("+", 2.0, None), ("+", 9.0, 5)]
    assert spread.ledger("d") == (3, 0, 0)


def test_a_query_that_reads_no_column_counts_rows() -> None:
    spread = Spread(laid_out("SELECT COUNT(*) AS n FROM d [RANGE UNBOUNDED]"))
    out = spread.batch([rows(spread.layout, "d", (1, 1, 1), (1, 2, 2))], [rows(spread.layout, "d", (2, 3, 3))])
    assert (out + spread.end("d"))[-1] == ("+", 2.0, 3)


def test_a_stream_read_by_two_keys_meets_itself() -> None:
    spread = Spread(
        laid_out("SELECT m.x AS a, n.k AS b FROM s [NOW] AS m, s [RANGE 9 SECONDS] AS n WHERE m.k = n.x", 5)
    )
    out = spread.push("s", (1, 7, 3), (2, 3, 8)) + spread.end("s")
    assert [row for row in out if row[0] == "+"] == [("+", 2.0, 8, 7)]
    assert spread.ledger("s") == (2, 0, 0), "it is counted once"


@pytest.mark.parametrize(
    "text", ["SELECT m.x, label FROM d [NOW] AS m, names WHERE m.k = names.k", "SELECT k, label FROM names"]
)
def test_a_static_table_is_there_from_the_origin_on(text: str) -> None:
    spread = Spread(laid_out(text, partitions=4))
    named = rows(spread.layout, "names", *((k, f"n{k}") for k in range(8)))
    tasks = [[Push("names", named.rows[:3])], [Push("names", named.rows[3:], end=True)]]
    if "d" in spread.layout.sources:
        assert spread.batch(*tasks) == []
        out = spread.push("d", *((t, t, t) for t in range(10))) + spread.end("d")
    else:
        out = spread.batch(*tasks)
    assert sorted(row[-1] for row in out if row[0] == "+") == [f"n{k}" for k in range(8)]


def test_in_which_order_messages_come_is_nothing_to_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "MOST_BYTES", 1)
    layout = laid_out("SELECT x FROM s [ROWS 2]", partitions=1)
    sent: list[Message] = []
    for sender in range(2):
        task = packer.Packer(layout, sender)
        for x in range(3):
            push = rows(layout, "s", (5, 0, 10 * sender + x))
            sent += task.take("s", batch_of(layout.sources["s"].columns, push.rows))
        task.end("s")
        sent += task.finish()
    assert len(sent) == 8
    reported = []
    for order in (sent, sent[::-1]):
        messages = fragment_partition.FragmentPartition(layout, 1, 0).step(order)
        reported.append([row for p in messages if p.kind == OUT for part in p.opened() for row in rows_of(part.rows)])
    assert reported[0] == reported[1] == [("+", 5.0, 11), ("+", 5.0, 12)]


def test_rows_without_an_order_are_late_by_the_batches_before_and_count_by_their_values() -> None:
    spread = Spread(laid_out("SELECT x FROM d [ROWS 1]", unordered=frozenset({"d"})))
    out = spread.batch(
        [rows(spread.layout, "d", (9, 1, 5), (1, 1, 3))], [rows(spread.layout, "d", (9, 1, 4), (5, 1, 0))]
    )
    assert spread.ledger("d")[1] == 0 and spread.frontier() == 7
    out += spread.push("d", (6, 1, 0), (7, 1, 1)) + spread.end("d")
    assert spread.ledger("d") == (5, 1, 0)
    assert [row[2] for row in out if row[0] == "+"] == [3, 0, 1, 5], "at 9 the greatest value counts as the last"


@pytest.mark.parametrize("size", [1, 3, 1 << 15])
def test_a_large_batch_is_taken_in_slices_with_the_same_answer(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_partition, "SLICE_ROWS", size)
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k"
    given: list[tuple[Any, ...]] = [(t // 3, t % 2, 0) for t in range(30)]
    spread = Spread(laid_out(text))
    running = Running(text)
    running.push("s", *((t, k) for t, k, _ in given))
    assert spread.push("s", *given) == running.advance()
    assert spread.end("s") == running.end("s")


def test_a_row_without_a_value_that_is_stamped_on_arrival_takes_its_instant_along() -> None:
    declared = "CREATE STREAM n (k INTEGER NOT NULL, x INTEGER) WITH (time = 'arrival');"
    spread = Spread(laid_out(declared + "SELECT x FROM n [NOW]"))
    out = spread.push("n", (1, 10), (None, 11), (2, 12), now=5) + spread.end("n")
    assert sorted((round(row[1] * SECOND) - 5 * SECOND, row[2]) for row in out if row[0] == "+") == [(0, 10), (2, 12)]
    assert spread.ledger("n") == (2, 0, 1)
    ((reason, row),) = spread.side()
    assert reason == "a column that is NOT NULL has no value" and '"x": 11' in row
