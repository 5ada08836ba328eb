from __future__ import annotations

import pyarrow as pa
import pytest

from transom.pipeline.frames import Frame, pack, unpack

ROWS = pa.record_batch({"k": pa.array([1, None, 3], pa.int32()), "g": pa.array(["a", "", None])})


def test_parts_come_back_in_their_order_with_what_they_are_about() -> None:
    parts = [Frame({"kind": "seen", "greatest": None, "n": 2**60}), Frame({"kind": "rows"}, ROWS)] * 2
    assert list(unpack(pack(parts))) == parts
    assert [part.kind for part in unpack(pack(parts))] == ["seen", "rows"] * 2


@pytest.mark.parametrize("rows", [ROWS.slice(0, 0), ROWS.slice(1, 2), ROWS.take(pa.array([2, 0]))])
def test_a_cut_of_rows_travels_without_the_rest(rows: pa.RecordBatch) -> None:
    (part,) = unpack(pack([Frame({"kind": "rows"}, rows)]))
    assert part.rows is not None and part.rows.equals(rows)
    wide = pa.record_batch({"n": pa.array(range(100_000))})
    assert len(pack([Frame({"kind": "rows"}, wide.slice(5, 2))])) < 1_000


def test_columns_may_be_nameless_and_named_alike() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"])], ["", ""])
    (part,) = unpack(pack([Frame({"kind": "rows"}, rows)]))
    assert part.rows is not None and [column.to_pylist() for column in part.rows.columns] == [[1], ["x"]]


def test_nothing_is_no_parts_and_a_buffer_is_as_good_as_bytes() -> None:
    assert list(unpack(pack([]))) == []
    blob = pack([Frame({"kind": "rows"}, ROWS)])
    assert list(unpack(pa.py_buffer(blob))) == list(unpack(blob))


def test_a_blob_that_was_cut_off_is_not_read_as_less() -> None:
    blob = pack([Frame({"kind": "rows"}, ROWS)])
    with pytest.raises((pa.ArrowException, ValueError, OSError)):
        list(unpack(blob[:-200]))
