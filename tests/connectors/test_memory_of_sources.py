"""What a read takes is in proportion to the rows requested, not to the file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom.connectors.conform import DeclaredRows
from transom.connectors.lines import TextOffset, read_records, split_lines
from transom.connectors.listing import Listed
from transom.connectors.parquet_rows import open_parquet
from transom.core.errors import SourceError
from transom.core.schema import BIGINT, Schema


class Counting(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        return piece


def test_a_few_lines_of_a_large_file() -> None:
    file = Counting(b'{"id": 1}\n' * 2_000_000)
    records = read_records(file, "a", TextOffset(), 10, split_lines, growing=False)
    assert len(records) == 10
    assert file.taken < 1_000_000


def test_a_block_is_enough_at_a_time() -> None:
    file = Counting((b"x" * 1_000_000 + b"\n") * 40)
    records = read_records(file, "a", TextOffset(), 1_000, split_lines, growing=False)
    assert 10 < len(records) < 20
    assert file.taken < 20_000_000


def test_a_line_without_end_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.connectors.lines.LONGEST_RECORD", 1_000_000)
    monkeypatch.setattr("transom.connectors.lines.BLOCK_BYTES", 100_000)
    file = Counting(b"short\n" + b"x" * 5_000_000)
    first = read_records(file, "a", TextOffset(), 1_000, split_lines, growing=False)
    assert len(first) == 1
    with pytest.raises(SourceError, match="line 2 of file 'a' is longer"):
        read_records(file, "a", first.after, 1_000, split_lines, growing=False)


def test_a_few_rows_of_a_large_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    numbers = pa.array(np.random.default_rng(1).integers(0, 2**62, 2_000_000))
    pq.write_table(pa.table({"id": numbers}), path, row_group_size=2_000_000, use_dictionary=False)
    rows = open_parquet(Listed("a", str(path), 1), 0, 100, DeclaredRows(Schema.of(("id", BIGINT))))
    before = pa.default_memory_pool().bytes_allocated()
    piece = rows.take(100)
    assert piece is not None
    assert len(piece.origin) == 100
    assert pa.default_memory_pool().bytes_allocated() - before < 4_000_000  # of 16 MB
