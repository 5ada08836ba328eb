"""Rows of a program on their way to the tasks of Spark."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from transom.connectors.connector import Limits, Plan, Source, Split, SplitRows
from transom.connectors.iterable import IterableSource, Supply
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.connectors.spool import Spool, SpoolSource
from transom.core.errors import CheckpointError
from transom.core.schema import BIGINT, TIMESTAMP, Column, Schema
from transom.plan.catalogue import StreamDefinition, TimeColumn
from transom.program.run import Ending
from transom.runtimes.spark import prefetcher
from transom.runtimes.spark.prefetcher import Prefetcher

COLUMNS = Schema((Column("ts", TIMESTAMP), Column("a", BIGINT)))
NOON = datetime(2024, 5, 1, 12)
Partitions = Mapping[str, Sequence[int | None]]


def endless() -> Iterator[dict[str, Any]]:
    for i in itertools.count():
        yield {"ts": NOON + timedelta(seconds=i), "a": i}


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def test_rows_that_never_end_wait_for_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetcher, "_ROWS", 10)
    monkeypatch.setattr(prefetcher, "AHEAD", 100)
    definition = StreamDefinition("s", COLUMNS, TimeColumn("ts", 0))
    source = IterableSource(Supply("s", endless(), COLUMNS.arrow()), COLUMNS, time_column="ts", stamped=None)
    requested: list[int] = []
    used = 0

    def count() -> int:
        requested.append(used)
        return used

    pumping = Prefetcher(source, str(tmp_path / "rows"), definition, ending="end", used=count)

    def rows() -> int:
        return Spool(str(tmp_path / "rows"), COLUMNS).rows

    try:
        wait_for(lambda: rows() >= 100)
        before = len(requested)
        wait_for(lambda: len(requested) > before + 2)
        assert rows() < 120, "it has looked again, and waits"
        used = 80
        wait_for(lambda: rows() >= 180)
        before = len(requested)
        wait_for(lambda: len(requested) > before + 2)
        assert rows() < 200 and pumping.error is None
    finally:
        pumping.stop()


class Topic(Source):
    """A source of somebody else, whose offset is how far each of its partitions has been read."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._fitter = RowFitter(COLUMNS, time_column="ts", stamped=None, name="topic")

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        after, splits = dict(position), []
        for name, numbers in self._partitions.items():
            at = after.get(name, 0)
            count = min(len(numbers) - at, limits.rows or len(numbers))
            if count:
                splits.append(Split(name, at, count))
            after[name] = at + count
        ended = all(after[name] == len(numbers) for name, numbers in self._partitions.items())
        return Plan(after, tuple(splits), ended)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        numbers = self._partitions[split.partition][split.at : split.at + split.rows]
        # None stands for a row without a time, which is rejected
        times = [None if number is None else NOON + timedelta(seconds=number) for number in numbers]
        rows = pa.record_batch([pa.array(times, TIMESTAMP), pa.array(numbers, pa.int64())], ["ts", "a"])
        yield self._fitter.fit(self._fitter.columns_of(rows), split.at)


def pumped(folder: Path, partitions: Partitions, ending: Ending = "now") -> list[int]:
    """All that lies in the spool after another run, a restart, has pumped into it."""
    Prefetcher(
        Topic(partitions), str(folder), StreamDefinition("s", COLUMNS, TimeColumn("ts", 0)), ending, used=lambda: 0
    )
    reading = SpoolSource(COLUMNS, str(folder), time_column="ts")
    splits = reading.plan({}, Limits(), growing=True).splits
    return [number for split in splits for part in reading.read_split(split) for number in part.rows["a"].to_pylist()]


def test_a_source_is_read_on_from_its_own_offset(tmp_path: Path) -> None:
    assert pumped(tmp_path, {"0": [1, 2], "1": [3]}) == [1, 2, 3]
    assert pumped(tmp_path, {"0": [1, 2], "1": [3]}) == [1, 2, 3]
    more = {"0": [1, 2], "1": [3, 4], "2": [5]}
    assert pumped(tmp_path, more, ending="end") == [1, 2, 3, 4, 5]
    assert pumped(tmp_path, more, ending="end") == [1, 2, 3, 4, 5], "it has not grown"
    with pytest.raises(CheckpointError, match="has ended"):
        pumped(tmp_path, more | {"0": [1, 2, 6]}, ending="end")


@pytest.mark.parametrize("survive", range(4))
def test_whoever_is_killed_between_two_writes_loses_nothing_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survive: int
) -> None:
    partitions: Partitions = {"0": [1, None, 2], "1": [3, None], "2": [4]}
    monkeypatch.setattr(prefetcher, "_ROWS", 1)
    shown = itertools.count()
    replace = os.replace

    def killed(hidden: str, path: str) -> None:
        if next(shown) >= survive:
            raise KeyboardInterrupt
        replace(hidden, path)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        pumped(tmp_path, partitions)
    monkeypatch.setattr(os, "replace", replace)
    assert sorted(pumped(tmp_path, partitions)) == [1, 2, 3, 4]
    assert Spool(str(tmp_path), COLUMNS).rows == 6, "rejected ones included"


def test_an_offset_that_is_spoilt_is_reported(tmp_path: Path) -> None:
    pumped(tmp_path, {"0": [1]})
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"spoilt")
    with pytest.raises(CheckpointError, match="is damaged, which says how far"):
        pumped(tmp_path, {"0": [1]})
