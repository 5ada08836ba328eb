"""What a task sends: to whom, what it judges by itself, and what it reports everybody about its split."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.pipeline.spread_queries import Row, laid_out, rows
from tests.run_locally import batch_of
from transom.core.errors import LateRowError
from transom.core.time import SECOND
from transom.pipeline import packer as packing
from transom.pipeline.frames import DEAD_LETTERS, Frame, Message
from transom.pipeline.layout import SINK, Layout
from transom.pipeline.packer import Packer
from transom.pipeline.seen import heard, unpacked_times

GROUPED = "SELECT k, COUNT(*) AS n FROM {0} [RANGE 5 SECONDS] {1} GROUP BY k"


def sent(layout: Layout, name: str, *batches: list[Row]) -> list[Message]:
    packer = Packer(layout, 4)
    found: list[Message] = []
    for batch in batches:
        found += packer.take(name, batch_of(layout.sources[name].columns, rows(layout, name, *batch).rows))
    return found + list(packer.finish())


def parts(messages: list[Message], kind: str) -> list[tuple[int, Frame]]:
    """The parts of a kind, each with its partition."""
    found = [(p.partition, part) for p in messages if p.fragment != SINK for part in p.opened()]
    return [(partition, part) for partition, part in found if part.kind == kind]


def rows_in(messages: list[Message], kind: str) -> list[tuple[int, pa.RecordBatch]]:
    return [(partition, part.rows) for partition, part in parts(messages, kind) if part.rows is not None]


def seen(messages: list[Message]) -> dict[str, Any]:
    """What was notified of the one source: the same to every partition."""
    reported = [heard(part) for _, part in parts(messages, "seen")]
    assert all(part == reported[0] for part in reported)
    return {**reported[0].about, "firsts": unpacked_times(reported[0].about["firsts"]).tolist()}


def test_every_partition_hears_of_every_split_and_a_key_goes_to_one() -> None:
    layout = laid_out(GROUPED.format("d", ""), partitions=4)
    messages = sent(layout, "d", [(t, t % 6, 0) for t in range(30)])
    assert Counter(partition for partition, _ in parts(messages, "seen")) == dict.fromkeys(range(4), 1)
    homes = [
        (partition, k) for partition, sent_on in rows_in(messages, "rows") for k in set(sent_on.column(0).to_pylist())
    ]
    assert sorted(k for _, k in homes) == list(range(6)) and len({partition for partition, _ in homes}) > 1
    assert seen(messages)["rows_in"] == 30 and seen(messages)["greatest"] == 29 * SECOND


def test_rows_that_nobody_reads_are_reported_of_by_their_time_alone() -> None:
    layout = laid_out(GROUPED.format("d", "WHERE x > 1"), partitions=2)
    messages = sent(layout, "d", [(1, 7, 0), (2, 7, 5), (3, 8, None)])
    ((partition, unwanted),) = rows_in(messages, "unwanted")
    assert partition == 0 and unwanted.columns[0].to_pylist() == [1 * SECOND, 3 * SECOND]
    assert sum(len(sent_on) for _, sent_on in rows_in(messages, "rows")) == 1
    shown = sent(laid_out(GROUPED.format("t", "WHERE x > 1")), "t", [(1, 7, 0)])
    ((_, whole),) = rows_in(shown, "unwanted")
    assert whole.num_columns == 4, "late = 'dead_letter': it may have to be shown"


def test_a_second_channel_does_not_account_for_rows_that_the_first_has_accounted_for() -> None:
    text = "SELECT m.k FROM d [NOW] AS m, d [RANGE 9 SECONDS] AS o WHERE m.k = o.x AND m.x > 1 AND o.x > 2"
    messages = sent(laid_out(text, partitions=1), "d", [(1, 7, 0), (1, 7, 2), (1, 7, 3)])
    assert [len(sent_on) for _, sent_on in rows_in(messages, "unwanted")] == [1]
    assert sorted(len(sent_on) for _, sent_on in rows_in(messages, "rows")) == [1, 2]


def test_a_task_judges_what_is_late_by_its_own_rows_across_its_batches() -> None:
    layout = laid_out(GROUPED.format("t", ""))
    messages = sent(layout, "t", [(10, 1, 0), (None, 2, 0)], [(8, 3, 0), (7, 4, 0)], [(11, 5, 0)])
    reported = seen(messages)
    assert (reported["rows_in"], reported["late"], reported["rejected"], reported["greatest"]) == (5, 1, 1, 11 * SECOND)
    assert reported["firsts"] == [t * SECOND for t in (8, 10, 11)]
    assert sorted(reported["reasons"].values()) == [1, 1]
    side = [part.rows for message in messages if message.kind == DEAD_LETTERS for part in message.opened()]
    assert [
        row["row"] for batch in side if batch is not None for row in batch.to_pylist() if "late" in row["reason"]
    ] == ['{"ts": "1970-01-01 00:00:07", "k": 4, "x": 0}']


def test_a_late_row_fails_the_task_where_that_is_asked_for() -> None:
    with pytest.raises(LateRowError, match="'f' came late"):
        sent(laid_out(GROUPED.format("f", "")), "f", [(10, 1, 0)], [(9, 1, 0)])


def test_without_disorder_only_the_first_time_of_a_split_can_begin_the_query() -> None:
    reported = seen(sent(laid_out(GROUPED.format("s", "")), "s", [(3, 1, 0), (4, 1, 0)], [(9, 1, 0)]))
    assert set(reported["firsts"]) <= {3 * SECOND, 9 * SECOND} and reported["firsts"][0] == 3 * SECOND


def test_a_change_that_takes_away_does_not_begin_a_query() -> None:
    reported = seen(sent(laid_out("SELECT k FROM r"), "r", [(1, "-", 1), (2, "+", 2), (3, "?", 3)]))
    assert reported["firsts"] == [2 * SECOND] and reported["greatest"] == 3 * SECOND
    assert (reported["late"], reported["rejected"]) == (0, 0), "whether the last one is late or unfit, a partition says"


def test_a_large_place_is_sent_before_the_end_and_its_parts_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 1)
    layout = laid_out("SELECT x FROM s [ROWS 2]")
    messages = sent(layout, "s", [(1, 1, 1)], [(1, 1, 2)], [(2, 1, 3)])
    assert len(messages) == 4, "three with a row, and one that reports of the split"
    assert [part.about["number"] for _, part in parts(messages, "rows")] == [0, 1, 2]
    assert {part.about["sender"] for _, part in parts(messages, "rows")} == {4}


def test_an_input_that_is_over_is_reported_of_without_a_row() -> None:
    layout = laid_out(GROUPED.format("d", ""))
    packer = Packer(layout, 0, now=17)
    packer.end("d")
    reported = seen(list(packer.finish()))
    assert (reported["ended"], reported["rows_in"], reported["greatest"], reported["now"]) == (True, 0, None, 17)
