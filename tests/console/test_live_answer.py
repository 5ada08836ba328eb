"""What is seen of an answer while it comes, in each form in which it is written."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from transom import Session
from transom.connectors.connector import Opening
from transom.connectors.tapped import MOST_ROWS, AnswerTap, TappedSink
from transom.core.time import FOREVER, from_datetime
from transom.program.live_answer import MOST_NEW, MOST_SHOWN, Bar, LiveAnswer, LiveView, cells, label
from transom.program.seen_rows import numbered
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
    assert len(found.bars) <= MOST_NEW and len(view._gone) <= MOST_NEW and len(view._shown) == 1


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


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.int32(), [1, 2, None]),
    "name": (pa.string(), ["", "a", "a, b", None, "x" * 300]),
    "f": (pa.float64(), [0.5, float("nan"), None, 1e300]),
    "d": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal(-3), None]),
    "b": (pa.bool_(), [True, False, None]),
    "when": (TIME, [datetime(2024, 5, 1), datetime(2024, 5, 1, 10, 0, 0, 5), None]),
    "long": (pa.duration("us"), [5, None]),
    "many": (pa.list_(pa.int64()), [[1, 2], [], None]),
    "both": (pa.struct([("x", pa.int64())]), [{"x": 1}, None]),
}


def changes_of(chance: random.Random, names: Sequence[str], number: int) -> list[tuple[Any, ...]]:
    """Changes in the order of their instants; some end what began before them all, and equal rows are there twice."""
    alive: list[tuple[Any, ...]] = []
    changes: list[tuple[Any, ...]] = []
    at = 0
    for _ in range(number):
        at += chance.choice([0, 0, 1, 7])
        if alive and chance.random() < 0.45:
            changes.append(("-", at, *alive.pop(chance.randrange(len(alive)))))
            continue
        row = tuple(chance.choice(VALUES[name][1]) for name in names)
        begins = chance.random() < 0.9
        changes.append(("+" if begins else "-", at, *row))
        if begins:
            alive.append(row)
    return changes


def folded(changes: Sequence[tuple[str, int, Any]]) -> tuple[list[Bar], list[Any]]:
    """Row by row: the lifetimes of rows by the begin, and those that are alive."""
    open_: dict[Any, deque[int]] = {}
    bars = []
    for change, at, row in changes:
        if change == "+":
            open_.setdefault(row, deque()).append(at)
        else:
            begins = open_.get(row)
            bars.append(Bar(label(row), begins.popleft() if begins else None, at))
    alive = [(row, begin) for row, begins in open_.items() for begin in begins]
    bars += [Bar(label(row), begin, None) for row, begin in alive]
    return bars, alive


@pytest.mark.parametrize("seed", range(12))
def test_what_is_seen_of_changes_is_what_row_by_row_would_be(seed: int) -> None:
    chance = random.Random(seed)
    names = chance.sample(list(VALUES), chance.randint(1, 4))
    number = chance.choice([1, 30, 90, 1500])
    changes = changes_of(chance, names, number)
    types = [pa.string(), TIME, *(VALUES[name][0] for name in names)]
    schema = pa.schema(list(zip(["change", "at", *names], types, strict=True)))
    tap = AnswerTap()
    view = LiveView(tap)
    tap.opened(Opening(schema, form="changes"))
    at = 0
    while at < number:
        some = changes[at : at + chance.choice([1, 5, 40])]
        arrays = [pa.array(column, type_) for column, type_ in zip(zip(*some, strict=True), types, strict=True)]
        tap.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        at += len(some)
        if chance.random() < 0.1:
            view.look(0)
    kept = changes[-MOST_ROWS:]
    arrays = [pa.array(column, type_) for column, type_ in zip(zip(*kept, strict=True), types, strict=True)]
    texts = cells(pa.RecordBatch.from_arrays(arrays, schema=schema))
    bars, alive = folded([(change, at, row[2:]) for (change, at, *_), row in zip(kept, texts, strict=True)])
    found = view.look(0)
    assert found.rows == tuple(texts[::-1][:MOST_NEW]) and found.partial == (number > MOST_ROWS)
    assert found.table_rows == len(alive) and found.table is not None
    assert len(found.table) == min(len(alive), MOST_SHOWN) and len(found.bars) == min(len(bars), MOST_NEW)
    begins = sorted((begin for _, begin in alive), reverse=True)[: len(found.table)]
    assert not ({*found.table} - {row for row, begin in alive if begin >= begins[-1]} if begins else found.table)
    first = sorted((instant(bar) for bar in bars), reverse=True)[: len(found.bars)]
    assert [instant(bar) for bar in found.bars] == first[::-1] and {*found.bars} <= {*bars}
    if len(bars) <= MOST_NEW:
        assert sorted(map(str, found.bars)) == sorted(map(str, bars))
        assert sorted(map(str, found.table)) == sorted(str(row) for row, _ in alive)


def instant(bar: Bar) -> int:
    at = bar.end if bar.begin is None else bar.begin
    assert at is not None
    return at


def test_rows_that_differ_in_their_last_letters_are_two() -> None:
    """Texts are cut where they are shown, and not before."""
    tap = AnswerTap()
    view = LiveView(tap)
    rows = pa.table(
        {"change": ["+", "+", "-"], "at": pa.array([1, 2, 3], TIME), "a": ["x" * 300 + end for end in "aba"]}
    )
    tap.opened(Opening(rows.schema, form="changes"))
    tap.write(rows.to_batches()[0])
    assert [(bar.begin, bar.end) for bar in view.look(0).bars] == [(1, 3), (2, None)]


def test_rows_of_many_columns_differ_by_the_first_of_them() -> None:
    """There are more of them than numbers of 64 bits."""
    columns = [pa.array(range(1024)), *(pa.array([i // 2 for i in range(1024)]) for _ in range(20))]
    assert len({*numbered(columns).tolist()}) == 1024
    assert len({*numbered(columns[1:]).tolist()}) == 512


def test_rows_of_net_changes_are_those_of_their_keys() -> None:
    chance = random.Random(7)
    schema = pa.schema([("change", pa.string()), ("k", pa.int64()), ("n", pa.int64())])
    for key in (("k",), None):
        tap = AnswerTap()
        view = LiveView(tap)
        tap.opened(Opening(schema, form="net", key=key))
        expected: dict[Any, tuple[str, str]] = {}
        for n in range(400):
            change, k = chance.choice("++-"), chance.randrange(50)
            row = (k, n % 3)
            tap.write(pa.RecordBatch.from_pylist([dict(zip(schema.names, (change, *row), strict=True))], schema))
            of = row if key is None else k
            expected.pop(of, None)
            if change == "+":
                expected[of] = str(row[0]), str(row[1])
        found = view.look(0)
        assert found.table == tuple(expected.values()) and found.table_rows == len(expected)


def test_many_columns_are_shown_in_part() -> None:
    names = [f"c{i}" for i in range(80)]
    times = pa.table({name: [1] for name in names} | {name: pa.array([5], TIME) for name in ("ta", "te")})
    tap = AnswerTap()
    tap.watch()
    tap.opened(Opening(times.schema, form="lifetimes"))
    tap.write(times.to_batches()[0])
    found = LiveView(tap).look(0)
    assert len(found.columns) == len(found.rows[0]) == 60 and found.columns[-2:] == ("ta", "te")
    assert found.bars == (Bar(", ".join(["1"] * 58), 5, 5),)


def test_an_answer_that_has_not_begun() -> None:
    """Of a relation it is known that it has no rows; a stream is none."""
    for form in ("changes", "net", "lifetimes", "stream"):
        tap = AnswerTap()
        tap.opened(Opening(pa.schema([("change", pa.string()), ("at", TIME), ("a", pa.int64())]), form=form))
        found = LiveView(tap).look(0)
        assert (found.rows, found.bars) == ((), ())
        assert found.table == (() if form in ("changes", "net") else None)


def test_a_tapped_sink_is_as_the_sink_behind_it() -> None:
    """Whatever a sink can say is asked of the sink itself."""
    own = {name for name in vars(TappedSink) if not name.startswith("_")}
    from transom.connectors.connector import Sink

    assert {name for name in vars(Sink) if not name.startswith("_")} - own == {"snapshots"}
