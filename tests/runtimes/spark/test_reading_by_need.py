"""How far a batch goes on Spark: by what the batches before it reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.run_on_spark import spark_query
from transom.connectors.connector import OpenSink, Source, Split
from transom.connectors.memory import MemorySink
from transom.connectors.open import declaration_of, open_source, source_opener
from transom.connectors.spool import Spool, open_spool
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.program.alignment import InputPace, read_by_need
from transom.program.batch_size import FIRST_ROWS, MOST_ROWS
from transom.program.planned import read_program
from transom.runtimes.spark import message_source
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.message_source import MOST_WAITING, MessageReader
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.task_split import TaskReading

FAST_AND_SLOW = """
SET batch_rows = 200;
CREATE STREAM fast (k INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '1000', rows = '2000');
CREATE STREAM slow (k INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '200', rows = '400');
ISTREAM(SELECT f.k FROM fast [NOW] AS f, slow [NOW] AS s WHERE f.ts = s.ts)
"""


@pytest.mark.nightly
def test_a_slow_stream_does_not_run_ahead_of_the_others(spark: SparkSession) -> None:
    peak: list[int] = []

    def watch(query: SparkQuery) -> None:
        peak.append(max(one.waiting for one in query.status().inputs))

    (one,) = [one for one in read_program(FAST_AND_SLOW, Catalogue()) if one.standing]
    query = spark_query(one, spark, open_source, OpenSink(lambda opening: MemorySink(opening.schema)), watch=watch)
    query.run()
    assert query.table().num_rows == 400
    assert max(peak) <= 200, "where each was read as fast as it could be, 320 waited"
    assert len(peak) <= 12


ORDERS_AND_REFUNDS = """
CREATE STREAM orders (id INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '10', rows = '7');
CREATE STREAM refunds (id INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '1', rows = '{refunds}', heartbeat = '1 SECOND');
SELECT o.id FROM orders [NOW] AS o, refunds [NOW] AS r WHERE o.id = r.id
"""


def reader(folder: Path, refunds: int = 0, max_rows: int | None = 5) -> MessageReader:
    """The source of a query that follows its inputs, as Spark has it in a process of its own."""
    text = ORDERS_AND_REFUNDS.format(refunds=refunds)
    (one,) = [one for one in read_program(text, Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 2)
    names = ("orders", "refunds")
    openers = {name: source_opener(layout.sources[name]) for name in names}
    reading = TaskReading(
        layout, names, openers, 2, max_rows, None, LocalShuffle(), frozenset(names), follow=True, feedback=str(folder)
    )
    return MessageReader(reading)


def plan(source: MessageReader, start: dict[str, Any]) -> dict[str, Any]:
    return source.latestOffset(start, source.getDefaultReadLimit())


def test_a_batch_is_made_when_something_is_due_and_says_who_had_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_source, "_PATIENCE", 0.0)
    source = reader(tmp_path, refunds=100)
    first = plan(source, source.initialOffset())
    assert first["at_end"] == [] and first["follows"] and first["now"] > 0
    paces = {"orders": InputPace(10, 5, 0, 0.5), "refunds": InputPace(20, 5, 5, 0.5)}
    Feedback(paces).write(str(tmp_path))
    second = plan(source, first)
    assert second["at_end"] == second["ended"] == ["orders"], "which holds time back, and now it has ended"
    assert list(second["splits"]) == ["orders"], "refunds are ahead, and may have more: their heartbeat is silent"


def test_a_batch_of_wide_rows_has_fewer_unless_a_number_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_source, "MOST_BYTES", 10_000)
    lines = [f'{{"ts": "2024-05-01 00:00:00", "a": "{"x" * 1_000}"}}\n'] * 100
    (tmp_path / "wide.jsonl").write_text("".join(lines))
    text = f"""CREATE STREAM s (ts TIMESTAMP, a VARCHAR, WATERMARK FOR ts AS ts)
        WITH (connector = 'files', path = '{tmp_path}/wide.jsonl'); SELECT a FROM s [NOW]"""
    (one,) = [one for one in read_program(text, Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 2)

    def rows(max_rows: int | None) -> int:
        opener = source_opener(layout.sources["s"])
        source = MessageReader(TaskReading(layout, ("s",), {"s": opener}, 2, max_rows, None, LocalShuffle()))
        splits = plan(source, source.initialOffset())["splits"]["s"]
        return sum(Split.unpacked(split).rows for split in splits)

    assert 5 <= rows(None) <= 20 and rows(1_000) == 100


def test_what_waits_for_a_silent_input_does_not_grow_with_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[int, int | None]] = []
    monkeypatch.setattr(message_source, "_PATIENCE", 0.0)
    monkeypatch.setattr(
        message_source, "read_by_need", lambda paces, most, read, waiting: requested.append((most, waiting))
    )
    Feedback(rows=MOST_ROWS).write(str(tmp_path))
    for max_rows in (None, 5):
        source = reader(tmp_path, max_rows=max_rows)
        plan(source, source.initialOffset())
    assert requested == [(MOST_ROWS, MOST_WAITING * FIRST_ROWS), (5, MOST_WAITING * 5)]


def test_no_batch_is_made_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_source, "_PATIENCE", 0.0)
    source = reader(tmp_path)
    monkeypatch.setattr(source, "_read", lambda name, rows, batch: batch.at_end.append(name) or 0)  # both are silent
    paces = {name: InputPace(10, 5, 0, 0.5) for name in ("orders", "refunds")}
    begun = {"batch": 3, "at": {}, "ended": [], "now": 1_000}
    assert plan(source, begun)["batch"] == 4, "nobody says when something is due"
    Feedback(paces).write(str(tmp_path))
    assert plan(source, begun) is begun
    Feedback(paces, wake=(time.time_ns() // 1000) + 3_600_000_000).write(str(tmp_path))
    assert plan(source, begun) is begun
    Feedback(paces, wake=2_000).write(str(tmp_path))
    due = plan(source, begun)
    assert due["batch"] == 4 and due["at_end"] == ["orders", "refunds"] and not due["splits"]
    assert plan(source, due) is due, "it has not helped"
    monkeypatch.setattr(message_source, "_PATIENCE", 60.0)
    Feedback(paces, stopping=True).write(str(tmp_path))
    assert plan(source, due) is due, "who is to stop does not wait"


def test_what_the_source_is_reported_is_read_back(tmp_path: Path) -> None:
    reported = Feedback({"a": InputPace(5, 3, 1, 0.25), "b": InputPace()}, 17, True, 1 << 20, 3)
    reported.write(str(tmp_path))
    assert Feedback.read(str(tmp_path)) == reported


class Pauses:
    """The sleep of a source that waits: what happens in the first, the second .. of them. One more is one too many."""

    def __init__(self, *happen: Callable[[], None]) -> None:
        self._left = list(happen)

    def sleep(self, seconds: float) -> None:
        assert self._left, "it goes on waiting"
        self._left.pop(0)()


def nothing() -> None: ...


def to_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *happen: Callable[[], None]
) -> tuple[MessageReader, Spool]:
    """The source of a run to the end of rows that a program makes, and where those are laid out."""
    declared = "CREATE STREAM s (id INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
    (one,) = [one for one in read_program(declared + "SELECT id FROM s", Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 2)
    definition, rows = layout.sources["s"], str(folder / "rows")
    openers: dict[str, Callable[[], Source]] = {"s": lambda: open_spool(declaration_of(definition), rows)}
    source = MessageReader(TaskReading(layout, ("s",), openers, 2, 5, None, LocalShuffle(), feedback=str(folder)))
    source.prepareForTriggerAvailableNow()
    monkeypatch.setattr(time, "sleep", Pauses(*happen).sleep)
    return source, Spool(rows, definition.columns)


def some(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int32()), "ts": pa.array(ids, pa.timestamp("us"))})


def test_rows_that_pause_are_waited_for_in_a_run_to_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, spool = to_the_end(
        tmp_path, monkeypatch, nothing, lambda: spool.append(some(1, 2)), nothing, nothing, lambda: spool.close()
    )
    first = plan(source, source.initialOffset())
    assert first["at"] == {"s": {"rows": 2}} and not first["ended"]
    second = plan(source, first)
    assert second["ended"] == ["s"] and not second["splits"]
    assert plan(source, second) is second, "which Spark takes for the end"


def test_nobody_waits_for_rows_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, spool = to_the_end(
        tmp_path,
        monkeypatch,
        nothing,
        lambda: Feedback(stopping=True).write(str(tmp_path)),
        lambda: monkeypatch.setattr(os, "getppid", lambda: -1),
    )
    begun = source.initialOffset()
    assert plan(source, begun) is begun, "the query is stopping"
    Feedback().write(str(tmp_path))
    assert plan(source, begun) is begun, "the driver has died"
    spool.append(some(1))
    Feedback(stopping=True).write(str(tmp_path))
    assert plan(source, begun)["at"] == {"s": {"rows": 1}}


SPOILT = [
    "",
    "{",
    "[1]",
    "\udc80",
    "[" * 100_000,
    '{"paces": {"a": 1}}',
    '{"paces": {"a": {"rows": "x"}}}',
    f'{{"paces": {{}}, "wake": 1{"0" * 400}, "stopping": false, "rows": null, "begun": null}}',
    f'{{"paces": {{}}, "wake": 1, "rows": 5, "begun": null, "stopping": {" " * (1 << 24)}true}}',
    *(
        f'{{"paces": {{}}, "wake": 1, "stopping": false, "begun": null, "rows": {rows}}}'
        for rows in (0, -1, 1 << 40, 1.5, '"x"')
    ),
    *(f'{{"paces": {{}}, "wake": 1, "stopping": false, "rows": 5, "begun": {n}}}' for n in ("true", 2**63, '"x"')),
    '{"paces": {}, "wake": 1, "stopping": false, "rows": 5}',
]
PACE = {"watermark": "5", "rows": "1", "waiting": "0", "density": "0.5"}
WRONG = {
    "watermark": [str(BEGINNING - 1), str(FOREVER + 1), "0.5", "null", f"1{'0' * 400}"],
    "rows": [str(2**63), "1e3"],
    "waiting": [str(2**63), f"1{'0' * 400}"],
    "density": ["1e-320", "0", "-1", "1e300", "Infinity", "NaN", f"1{'0' * 400}", '"x"'],
}
for field, values in WRONG.items():
    for value in values:
        pace = ", ".join(f'"{name}": {reported}' for name, reported in {**PACE, field: value}.items())
        SPOILT.append(f'{{"paces": {{"a": {{{pace}}}}}, "wake": null, "stopping": false, "rows": null, "begun": null}}')


@pytest.mark.parametrize("text", SPOILT, ids=lambda text: text[:100])
def test_a_spoilt_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "feedback.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Feedback.read(str(tmp_path)) == Feedback()


def test_the_utmost_that_is_reported_can_be_planned_by(tmp_path: Path) -> None:
    density = InputPace(BEGINNING + 1).after(FOREVER - 1, 1, 0).density
    paces = {
        "a": InputPace(BEGINNING, 2**63 - 1, 0, density),
        "b": InputPace(FOREVER, 0, 2**63 - 1, 2.0**62),
        "c": InputPace(0, 1, -1, density),
    }
    reported = Feedback(paces, FOREVER + 1)
    reported.write(str(tmp_path))
    assert Feedback.read(str(tmp_path)) == reported
    read_by_need(reported.paces, 2**62, lambda name, rows: rows)
