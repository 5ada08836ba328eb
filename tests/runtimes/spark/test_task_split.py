"""What a task reads: as it travels, and by several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from transom.connectors.connector import Declaration, Limits, Source
from transom.connectors.spool import Spool, open_spool
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.task_split import TaskInputs, TaskReading, TaskSplit

TEXT = """
    CREATE STREAM s (ts TIMESTAMP, a BIGINT, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
    SELECT a FROM s WHERE a >= 0;
"""
FILES, ROWS = 40, 500


def reading(folder: Path) -> TaskReading:
    """Of a stream whose rows lie in many files."""
    (one,) = [one for one in read_program(TEXT, Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 1)
    declared = Declaration("s", layout.sources["s"].columns, {}, "ts")
    spool = Spool(str(folder), declared.columns)
    for i in range(FILES):
        numbers = range(i * ROWS, (i + 1) * ROWS)
        times = pa.array(numbers, pa.int64()).cast(declared.columns.types[0])
        spool.append(pa.record_batch([times, pa.array(numbers, pa.int64())], schema=declared.columns.arrow()))
    openers: dict[str, Callable[[], Source]] = {"s": partial(open_spool, declared, str(folder))}
    return TaskReading(layout, ("s",), openers, 2, None, None, LocalShuffle(), in_host=True)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_come_in_their_order_whoever_reads_them(tmp_path: Path, threads: int) -> None:
    given = reading(tmp_path)
    splits = given.openers["s"]().plan({}, Limits(), growing=False).splits
    assert len(splits) > 10
    task_split = TaskSplit(0, None, (), False, False, (("s", splits),), ("s",))
    inputs = TaskInputs(given)
    for _ in range(4):
        parts = [
            part
            for message in inputs.messages(task_split, threads)
            for part in message.opened()
            if part.rows is not None
        ]
        found = [a for part in parts for a in part.rows.column(0).to_pylist()]  # type: ignore[union-attr]
        assert found == list(range(FILES * ROWS))


def test_it_travels_as_text(tmp_path: Path) -> None:
    splits = reading(tmp_path).openers["s"]().plan({}, Limits(), growing=False).splits
    task_split = TaskSplit(0, 17, ("s",), True, True, (("s", splits),), ("s",))
    assert TaskSplit.of(bytes(task_split.message().blob)) == task_split
