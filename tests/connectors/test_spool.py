"""Rows laid out in a folder for other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.memory_storage import memory_storage
from tests.connectors.reading import read_all
from tests.connectors.reading_splits import agree, of_plan
from transom.connectors.connector import Limits, Split
from transom.connectors.memory import MemorySource
from transom.connectors.source import Rejected, rejected_batch
from transom.connectors.splits import divide
from transom.connectors.spool import Spool, SpoolSource
from transom.core.errors import SourceError
from transom.core.schema import BIGINT, TIMESTAMP, VARCHAR, Schema

COLUMNS = Schema.of(("ts", TIMESTAMP), ("id", BIGINT), ("name", VARCHAR))


def batch(*ids: int, **columns: pa.Array) -> pa.RecordBatch:
    rows = {
        "name": pa.array([None if id % 3 == 0 else f"n{id}" for id in ids]),
        "more": pa.array([0.5] * len(ids)),
        "ID": pa.array(ids, pa.int64()),
        "ts": pa.array([None if id % 5 == 0 else id for id in ids], TIMESTAMP),
    }
    return pa.record_batch(rows | columns)


BATCHES = [batch(1, 2, 3, 4), batch(), batch(5), batch(*range(6, 30)), batch(30, 31)]


@pytest.mark.parametrize("max_rows", [1, 2, 7, 1000])
def test_the_rows_and_rejects_of_memory_at_the_same_positions(tmp_path: Path, max_rows: int) -> None:
    memory = MemorySource(COLUMNS, time_column="ts")
    spool = Spool(str(tmp_path), COLUMNS)
    for each in BATCHES:
        memory.append(each)
        spool.append(each)
    spool.close()
    expected = read_all(memory, step=max_rows)
    read = agree(lambda: SpoolSource(COLUMNS, str(tmp_path), time_column="ts"), max_rows, {})
    assert read.rows == expected.rows
    assert read.rejected == expected.rejected
    assert len(read.rejected) == 6
    assert read.position == expected.positions[-1] == {"rows": spool.rows}
    assert read.over


def test_a_spool_on_a_storage_goes_on_where_it_was() -> None:
    with memory_storage() as (uri, storage):
        memory = MemorySource(COLUMNS, time_column="ts")
        for number, each in enumerate(batch for batch in BATCHES if len(batch)):
            memory.append(each)
            spool = Spool(f"{uri}/rows", COLUMNS)  # as after a restart
            assert not spool.closed and spool.offset == ({"n": number - 1} if number else {})
            spool.append(each, offset={"n": number})
        Spool(f"{uri}/rows", COLUMNS).close({"n": 99})
        assert Spool(f"{uri}/rows", COLUMNS).closed and Spool(f"{uri}/rows", COLUMNS).offset == {"n": 99}
        expected = read_all(memory, step=7)
        read = agree(lambda: SpoolSource(COLUMNS, f"{uri}/rows", time_column="ts"), 7, {})
        assert read.rows == expected.rows and read.rejected == expected.rejected
        assert not any(name.rpartition("/")[2].startswith(".") for name in storage.files)


def test_shares_are_cut_at_rows_and_some_files_are_taken_at_a_time(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS)
    for each in BATCHES:
        spool.append(each)
    spool.close()
    source = SpoolSource(COLUMNS, str(tmp_path))
    whole = source.plan({}, Limits())
    groups = divide(whole.splits, 4, 1)
    assert len(groups) == 4
    rows = of_plan(whole, SpoolSource(COLUMNS, str(tmp_path)), [piece for group in groups for piece in group]).rows
    assert [row["id"] for row in rows] == list(range(1, 32))
    two = source.plan({"rows": 2}, Limits(files=2))
    assert two.position == {"rows": 5} and not two.ended
    with pytest.raises(ValueError, match="at least 1"):
        source.plan({}, Limits(0))


def test_a_spool_grows_until_it_is_closed(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS)
    source = SpoolSource(COLUMNS, str(tmp_path))
    assert source.plan({}, Limits(5), growing=True).ended
    assert not source.plan({}, Limits(5)).ended  # a bounded read goes on until the rows are all there
    spool.append(batch(1, 2, 3))
    first = source.plan({}, Limits(2), growing=True)
    assert first.rows == 2 and not first.ended
    second = source.plan(first.position, Limits(2), growing=True)
    assert second.rows == 1 and second.ended and not second.over
    later = source.plan({"rows": 10}, Limits(2))  # a restored query: the rows are on their way again
    assert later.position == {"rows": 10} and not later.splits and not later.ended
    spool.close()
    third = source.plan(second.position, Limits(2), growing=True)
    assert not third.splits and third.ended and third.over
    with pytest.raises(SourceError, match="has 3 rows, and 10 had been read"):
        source.plan({"rows": 10}, Limits(2))
    with pytest.raises(ValueError, match="closed"):
        spool.append(batch(4))
    with pytest.raises(ValueError, match="closed"):
        Spool(str(tmp_path), COLUMNS).append(batch(4))


def test_half_a_file_is_not_seen_and_a_spool_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    Spool(str(tmp_path), COLUMNS).append(batch(1, 2))
    (tmp_path / ".00000001-000000000002-1-0.arrow").write_bytes(b"half")
    Spool(str(tmp_path), COLUMNS).append(batch(3))
    assert [row["id"] for row in read_all(SpoolSource(COLUMNS, str(tmp_path)), growing=True).rows] == [1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_that_were_rejected_before_count_and_come_out_again(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS)
    rejected = [Rejected(f"x, row {number}", "no row", "?") for number in (2, 4, 5)]
    spool.append(batch(1, 3), rejected_batch(rejected))
    spool.append(batch(), rejected_batch([Rejected("x, row 6", "no row", "!")]))
    spool.append(batch(7))
    spool.close()
    assert spool.rows == 7
    for max_rows in (1, 2, 7):
        read = agree(lambda: SpoolSource(COLUMNS, str(tmp_path), time_column="ts"), max_rows, {})
        assert [row["id"] for row in read.rows] == [1, 3, 7]
        assert [row["position"] for row in read.rejected] == [f"x, row {number}" for number in (2, 4, 5, 6)]


def test_slices_are_not_copied_and_outlive_the_file(tmp_path: Path) -> None:
    columns = Schema.of(("id", BIGINT))
    spool = Spool(str(tmp_path), columns)
    spool.append(pa.record_batch({"id": pa.array(range(100_000), pa.int64())}))
    spool.append(pa.record_batch({"id": pa.array([1], pa.int64())}))
    source = SpoolSource(columns, str(tmp_path))
    (piece, _) = source.plan({}, Limits()).splits
    before = pa.total_allocated_bytes()
    (chunk,) = source.read_split(piece.part(40_000, 90_000))
    assert pa.total_allocated_bytes() - before < 100_000
    spool.forget({"rows": 100_000})
    assert chunk.rows.column(0).to_numpy().tolist() == list(range(40_000, 90_000))


def test_rows_that_nobody_needs_are_forgotten(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS)
    for each in ([1, 2], [3], [4, 5]):
        spool.append(batch(*each), rejected_batch([Rejected("x", "no row", "?")]))
    spool.forget({"rows": 4})
    source = SpoolSource(COLUMNS, str(tmp_path), name="clicks")
    with pytest.raises(SourceError, match=r"'clicks' .* those before row 4 have been given up"):
        source.plan({}, Limits(1))
    assert source.plan({"rows": 3}, Limits()).rows == 5
    spool.forget({"rows": 8})
    assert [path.name[:8] for path in sorted(tmp_path.iterdir())] == ["00000002"] * 2
    with pytest.raises(SourceError, match="not there any more"):
        list(source.read_split(Split("00000000-000000000000-2-1.arrow", 0, 1)))
    with pytest.raises(ValueError, match="no file of a spool"):
        list(source.read_split(Split("../00000000-000000000000-2-1.arrow", 0, 1)))


def test_a_column_to_be_stamped_is_not_handed_over(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS, stamped="ts")
    spool.append(pa.record_batch({"id": pa.array([1]), "name": pa.array(["a"])}))
    with pytest.raises(SourceError, match="no column 'name'"):
        spool.append(pa.record_batch({"id": pa.array([1])}))
    source = SpoolSource(COLUMNS, str(tmp_path), stamped="ts")
    assert read_all(source, growing=True).rows == [{"ts": None, "id": 1, "name": "a"}]


def test_values_are_fitted_where_they_are_read(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), COLUMNS)
    spool.append(batch(1, 2, ID=pa.array(["7", "x"])))
    spool.close()
    read = agree(lambda: SpoolSource(COLUMNS, str(tmp_path), name="clicks"), 1, {})
    assert [row["id"] for row in read.rows] == [7]
    assert read.rejected[0]["position"] == "clicks, row 2"


def test_a_folder_that_cannot_hold_the_rows(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "x"), COLUMNS)
    (tmp_path / "x").rmdir()
    with pytest.raises(SourceError, match="cannot be laid out"):
        spool.append(batch(1))
    with pytest.raises(SourceError, match="not there any more"):
        SpoolSource(COLUMNS, str(tmp_path / "x")).plan({}, Limits(1))


READER = """
import sys
from transom.connectors.connector import Limits
from transom.connectors.spool import SpoolSource
from transom.core.schema import BIGINT, Schema
source = SpoolSource(Schema.of(("id", BIGINT)), sys.argv[1])
position, seen = {}, []
while True:
    reach = source.plan(position, Limits(3))
    for piece in reach.splits:
        for part in source.read_split(piece):
            seen += part.rows.column(0).to_pylist()
    position = reach.position
    if reach.over:
        break
print(seen)
"""


def test_another_process_reads_while_this_one_writes(tmp_path: Path) -> None:
    columns = Schema.of(("id", BIGINT))
    spool = Spool(str(tmp_path), columns)
    reader: Any = subprocess.Popen([sys.executable, "-c", READER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        for number in range(20):
            spool.append(pa.record_batch({"id": pa.array([2 * number, 2 * number + 1], pa.int64())}))
        spool.close()
        out, _ = reader.communicate(timeout=60)
    finally:
        reader.kill()
        reader.wait()
    assert out.strip() == str(list(range(40)))
