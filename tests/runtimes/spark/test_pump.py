"""Rows of a program on their way to the tasks of Spark."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom.connectors.iterable import IterableSource, Supply
from transom.connectors.spool import Spool
from transom.core.schema import BIGINT, TIMESTAMP, Column, Schema
from transom.plan.catalogue import StreamDefinition, TimeColumn
from transom.runtimes.spark import pump
from transom.runtimes.spark.pump import Pump

COLUMNS = Schema((Column("ts", TIMESTAMP), Column("a", BIGINT)))
NOON = datetime(2024, 5, 1, 12)


def endless() -> Iterator[dict[str, Any]]:
    for i in itertools.count():
        yield {"ts": NOON + timedelta(seconds=i), "a": i}


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def test_rows_that_never_end_wait_for_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "_ROWS", 10)
    monkeypatch.setattr(pump, "AHEAD", 100)
    definition = StreamDefinition("s", COLUMNS, TimeColumn("ts", 0))
    source = IterableSource(Supply("s", endless(), COLUMNS.arrow()), COLUMNS, time_column="ts", stamped=None)
    asked: list[int] = []
    used = 0

    def count() -> int:
        asked.append(used)
        return used

    pumping = Pump(source, str(tmp_path / "rows"), definition, ending="end", used=count)

    def rows() -> int:
        return Spool(str(tmp_path / "rows"), COLUMNS).rows

    try:
        wait_for(lambda: rows() >= 100)
        before = len(asked)
        wait_for(lambda: len(asked) > before + 2)
        assert rows() < 120, "it has looked again, and waits"
        used = 80
        wait_for(lambda: rows() >= 180)
        before = len(asked)
        wait_for(lambda: len(asked) > before + 2)
        assert rows() < 200 and pumping.error is None
    finally:
        pumping.stop()
