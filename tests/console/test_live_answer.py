"""What is seen of an answer while it comes, in each form in which it is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from transom import Session
from transom.connectors.connector import Opening
from transom.connectors.tapped import MOST_ROWS, AnswerTap, TappedSink
from transom.core.time import FOREVER, from_datetime
from transom.program.live_answer import MOST_SHOWN, Bar, LiveAnswer, LiveView
from transom.session import workspace_of

TIME = pa.timestamp("us")
ROWS = [{"t": f"2024-05-01 10:00:0{i}", "k": k, "a": i} for i, k in enumerate(["x", None, "x", "y"])]
QUERY = "SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k"


def second(number: int) -> int:
    return from_datetime(datetime(2024, 5, 1, 10, 0, number))


def answer_of(emit: Any, query: str = QUERY) -> LiveAnswer:
    with Session(tick="1 second", batch_rows=1) as session:
        session.stream("s", ROWS, time="t")
        workspace_of(session).taps.watch()
        session.run(query, emit=emit)
        return LiveView(workspace_of(session).taps.answers["query-1"]).look(0)


def test_changes_become_lifetimes_as_the_engine_itself_has_them() -> None:
    """NULL among the values; and what is said of it by `lifetimes` is said by `changes` as well."""
    changes, lifetimes = answer_of("changes"), answer_of("lifetimes")
    assert {*changes.bars} == {*lifetimes.bars}
    assert Bar("NULL, 1", second(1), second(3)) in changes.bars
    assert changes.table == () and changes.columns == ("change", "at", "k", "n")


def test_a_stream_has_instants_and_no_table() -> None:
    found = answer_of("changes", "ISTREAM(SELECT a FROM s)")
    assert [(bar.label, bar.begin == bar.end) for bar in found.bars] == [(str(i), True) for i in range(4)]
    assert found.table is None and found.form == "stream"


def test_the_latest_is_shown_in_its_order() -> None:
    found = answer_of("latest", "SELECT a FROM s ORDER BY a DESC LIMIT 2")
    assert (found.table, found.table_rows, found.rows) == ((("3",), ("2",)), 2, ())


def test_net_changes_by_key() -> None:
    tap = AnswerTap()
    tap.watch()
    schema = pa.schema([("change", pa.string()), ("k", pa.string()), ("n", pa.int64())])
    tap.opened(Opening(schema, form="net", key=("k",)))
    rows: Sequence[tuple[str, str | None, int]] = [("+", "x", 1), ("+", None, 2), ("+", "x", 3), ("-", None, 2)]
    tap.write(pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema))
    found = LiveView(tap).look(0)
    assert (found.table, found.bars) == ((("x", "3"),), ())


def test_an_end_whose_begin_nobody_saw() -> None:
    tap = AnswerTap()
    tap.watch()
    rows = pa.table({"change": ["-"], "at": pa.array([5], TIME), "a": [1]})
    tap.opened(Opening(rows.schema, form="changes"))
    tap.write(rows.to_batches()[0])
    assert LiveView(tap).look(0).bars == (Bar("1", None, 5),)


def test_a_lifetime_without_an_end() -> None:
    tap = AnswerTap()
    tap.watch()
    rows = pa.table({"a": [1], "ta": pa.array([5], TIME), "te": pa.array([FOREVER], pa.int64()).cast(TIME)})
    tap.opened(Opening(rows.schema, form="lifetimes"))
    tap.write(rows.to_batches()[0])
    assert LiveView(tap).look(0).bars == (Bar("1", 5, None),)


def test_snapshots_are_told_apart_by_the_clock() -> None:
    tap = AnswerTap()
    view = LiveView(tap)
    tap.opened(Opening(pa.schema([("a", pa.int64())]), form="latest"))
    for now, rows in ((10, [1, 2]), (20, [2, 3])):
        tap.replace(pa.record_batch({"a": rows}))
        found = view.look(now)
    assert set(found.bars) == {Bar("1", 10, 20), Bar("2", 10, None), Bar("3", 20, None)}


def test_a_view_of_snapshots_does_not_grow() -> None:
    tap = AnswerTap()
    view = LiveView(tap)
    tap.opened(Opening(pa.schema([("a", pa.int64())]), form="latest"))
    for now in range(1000):
        tap.replace(pa.record_batch({"a": [now]}))
        found = view.look(now)
    assert len(found.bars) <= MOST_SHOWN and len(view._gone) <= MOST_SHOWN and len(view._shown) == 1


def test_nothing_is_kept_before_somebody_looks() -> None:
    tap = AnswerTap()
    tap.opened(Opening(pa.schema([("a", pa.int64())]), form="stream"))
    tap.write(pa.record_batch({"a": [1]}))
    assert (tap.newest().rows, tap.newest().passed) == ((), 1)
    tap.watch()
    assert tap.newest().missed


@pytest.mark.parametrize("size", [1, 7, MOST_ROWS, 10 * MOST_ROWS])
def test_the_newest_rows_are_kept_and_no_more(size: int) -> None:
    tap = AnswerTap()
    tap.watch()
    whole = max(3 * MOST_ROWS, size) // size if size > 1 else MOST_ROWS + 5
    for number in range(whole):
        tap.write(pa.record_batch({"a": range(number * size, (number + 1) * size)}))
    kept = [value for batch in tap.newest().rows for value in batch.column(0).to_pylist()]
    assert kept == list(range(whole * size))[-MOST_ROWS:]
    assert sum(batch.nbytes for batch in tap.newest().rows) <= 3 * 8 * MOST_ROWS


def test_a_tapped_sink_is_as_the_sink_behind_it() -> None:
    """Whatever a sink can say is asked of the sink itself."""
    own = {name for name in vars(TappedSink) if not name.startswith("_")}
    from transom.connectors.connector import Sink

    assert {name for name in vars(Sink) if not name.startswith("_")} - own == {"snapshots"}
