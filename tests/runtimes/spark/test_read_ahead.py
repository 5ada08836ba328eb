"""Rows that are read before their batch has begun: those that it would have read, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom.connectors.connector import Limits, Split, SplitRows
from transom.connectors.files import FileSource
from transom.connectors.open import source_opener
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program
from transom.runtimes.spark import read_ahead
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.message_source import MessageReader
from transom.runtimes.spark.read_ahead import MOST_LEFT_OUT, ReadAhead
from transom.runtimes.spark.task_split import TaskInputs, TaskReading, TaskSplit

FILES = """
CREATE STREAM a (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{folder}/a{form}');
CREATE STREAM b (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{folder}/b{form}');
ISTREAM(SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k)
"""
ROWS, SECOND = 10, 1_000_000


def reading_of(folder: Path, form: str = "", **options: Any) -> TaskReading:
    (one,) = [one for one in read_program(FILES.format(folder=folder, form=form), Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 1)
    openers = {name: source_opener(layout.sources[name]) for name in ("a", "b")}
    given = TaskReading(layout, ("a", "b"), openers, 2, ROWS, None, LocalShuffle(), in_host=True)
    return replace(given, **options)


def rows_of(first: int) -> pa.Table:
    numbers = pa.array(range(first, first + ROWS), pa.int64())
    return pa.table(
        {"k": numbers, "ts": pa.array([n.as_py() * SECOND for n in numbers]).cast(pa.timestamp("us", "UTC"))}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "ab":
        (tmp_path / name).mkdir()
        for number in range(4):
            pq.write_table(rows_of(number * ROWS), tmp_path / name / f"{number}.parquet")
    return tmp_path


def splits_of(reading: TaskReading, name: str = "a") -> list[Split]:
    return list(reading.openers[name]().plan({}, Limits(), growing=False).splits)


def numbers(parts: list[SplitRows] | None) -> list[int] | None:
    return None if parts is None else [k for part in parts for k in part.rows.column("k").to_pylist()]


def test_a_split_is_read_once_and_before_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = reading_of(folder)
    first, second, *_ = splits_of(reading)
    ahead = ReadAhead(reading)
    assert ahead.take("a", first) is None
    ahead.begin([("a", [first])])
    done(ahead)

    def no(self: FileSource, split: Split) -> Iterator[SplitRows]:
        raise AssertionError("it was read")

    monkeypatch.setattr(FileSource, "read_split", no)
    assert numbers(ahead.take("a", first)) == list(range(ROWS))
    assert ahead.take("a", second) is None and ahead.take("b", first) is None
    ahead.begin([])
    assert ahead.take("a", first) is None


def test_a_file_that_was_replaced_is_read_anew(folder: Path) -> None:
    reading = reading_of(folder)
    first = splits_of(reading)[0]
    ahead = ReadAhead(reading)
    ahead.begin([("a", [first])])
    done(ahead)
    pq.write_table(rows_of(500), folder / "a" / "new")
    os.replace(folder / "a" / "new", folder / "a" / first.partition)
    assert ahead.take("a", first) is None
    task_split = TaskSplit(0, None, (), False, False, (("a", (first,)),), ("a", "b"))
    found = [
        k
        for message in TaskInputs(reading).messages(task_split, 2, ahead.take)
        for part in message.opened()
        if part.rows is not None
        for k in part.rows.column(0).to_pylist()
    ]
    assert found == list(range(500, 500 + ROWS))


def test_what_cannot_be_read_is_left_to_whoever_asks_for_it(folder: Path) -> None:
    reading = reading_of(folder)
    first = splits_of(reading)[0]
    (folder / "a" / first.partition).write_bytes(b"torn")
    ahead = ReadAhead(reading)
    ahead.begin([("a", [first])])
    assert ahead.take("a", first) is None


def test_no_more_is_held_than_there_is_room_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1)
    reading = reading_of(folder)
    first, second, *_ = splits_of(reading)
    ahead = ReadAhead(reading)
    ahead.begin([("a", [first, second])])
    done(ahead)
    assert ahead.take("a", first) is not None and ahead.take("a", second) is None


def test_it_is_done_less_and_less_often_where_it_is_for_nothing(folder: Path) -> None:
    reading = reading_of(folder)
    first = splits_of(reading)[0]
    ahead, tried = ReadAhead(reading), []
    for _ in range(300):
        ahead.begin([("a", [first])])
        tried.append(bool(ahead._futures))
    assert tried[:7] == [True, False, True, False, False, True, False]
    assert 5 < sum(tried) < 300 / MOST_LEFT_OUT + 8
    while not ahead._futures:
        ahead.begin([("a", [first])])
    for _ in range(3):  # it is of use again
        done(ahead)
        assert ahead.take("a", first) is not None
        ahead.begin([("a", [first])])
        assert ahead._futures


def test_another_run_begins_with_nothing(folder: Path) -> None:
    reading = reading_of(folder)
    first = splits_of(reading)[0]
    read_ahead.of("one", reading).begin([("a", [first])])
    done(read_ahead.of("one", reading))
    assert read_ahead.of("one", reading).take("a", first) is not None
    assert read_ahead.of("two", reading).take("a", first) is None
    assert read_ahead.of("one", reading).take("a", first) is None


# --- what is foreseen ------------------------------------------------------------------------------------------------


def batches(source: MessageReader, number: int) -> list[TaskSplit]:
    """What the tasks of the first so many batches read."""
    at, found = source.initialOffset(), []
    for _ in range(number):
        end = json.loads(json.dumps(source.latestOffset(at, source.getDefaultReadLimit())))
        (split,) = source.partitions(at, end)
        assert isinstance(split, TaskSplit)
        found.append(TaskSplit.of(bytes(split.message().blob)))
        at = end
    return found


@pytest.mark.usefixtures("unhurried")
def test_the_next_batch_is_foreseen(folder: Path) -> None:
    first, second, third, last = batches(MessageReader(reading_of(folder)), 4)
    assert first.ahead == second.splits and second.ahead == third.splits and third.ahead == last.splits
    assert {name for name, _ in first.ahead} == {"a", "b"} and last.ahead == ()


@pytest.mark.usefixtures("unhurried")
def test_who_plans_a_batch_again_says_nothing_of_the_next(folder: Path) -> None:
    source = MessageReader(reading_of(folder))
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    (again,) = MessageReader(reading_of(folder)).partitions(start, end)
    assert isinstance(again, TaskSplit) and again.splits and not again.ahead


@pytest.mark.usefixtures("unhurried")
def test_lines_may_be_longer_by_then_and_are_not_foreseen(folder: Path) -> None:
    for name in "ab":
        lines = [json.dumps({"k": n, "ts": f"2024-01-01 00:00:{n:02}"}) for n in range(3 * ROWS)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    first, second = batches(MessageReader(reading_of(folder, ".jsonl")), 2)
    assert first.splits and second.splits and not first.ahead


@pytest.mark.usefixtures("unhurried")
def test_only_the_task_that_reads_is_to_know(folder: Path) -> None:
    source = MessageReader(reading_of(folder, in_host=False))
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    assert not any(split.ahead for split in source.partitions(start, end))  # type: ignore[attr-defined]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes long to plan is not asked twice; here nobody looks at the clock."""
    monkeypatch.setattr("transom.runtimes.spark.message_source._QUICK", float("inf"))


def done(ahead: ReadAhead) -> None:
    for future in ahead._futures.values():
        future.result()
