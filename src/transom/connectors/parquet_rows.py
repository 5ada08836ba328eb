"""Rows of a Parquet file from any row on, a batch at a time; the memory it takes is that of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from transom.connectors.conform import Declared, Piece, find_columns
from transom.connectors.lines import BLOCK_BYTES
from transom.connectors.listing import Listed, cannot_read, show
from transom.core.errors import SourceError


@dataclass
class ParquetRows:
    """An open file, read up to row `at`. `left` is what the last batch had more than was asked for."""

    file: Listed
    count: int
    at: int
    wanted: list[str]
    batches: Iterator[pa.RecordBatch]
    left: pa.RecordBatch | None = None

    def take(self, rows: int) -> Piece | None:
        """The next rows, at most so many; None at the end of the file."""
        batch, self.left = self.left, None
        while batch is None or not len(batch):
            try:
                batch = next(self.batches, None)
            except (OSError, pa.ArrowException) as error:
                raise _broken(self.file, f"near row {self.at + 1}: {error}") from None
            if batch is None:
                if self.at < self.count:
                    raise _broken(self.file, f"it ends at row {self.at} of {self.count}")
                return None
        if len(batch) > rows:
            batch, self.left = batch.slice(0, rows), batch.slice(rows)
        self.at += len(batch)
        return Piece(np.arange(len(batch)), [batch.column(name) for name in self.wanted])


def open_parquet(file: Listed, at: int, batch_rows: int, declared: Declared) -> ParquetRows:
    """The file from row `at` (counted from 0) on."""
    try:
        # Buffered, not pre-fetched: a column of a row group is not held in memory as a whole.
        parquet = pyarrow.parquet.ParquetFile(
            file.path, buffer_size=1024 * 1024, pre_buffer=False, coerce_int96_timestamp_unit="us"
        )
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise cannot_read(file.path, error) from None
    except (OSError, pa.ArrowException) as error:
        raise _broken(file, str(error)) from None
    present = parquet.schema_arrow.names
    wanted = [present[place] for place in find_columns(declared.columns, present, show(file.name))]
    count = parquet.metadata.num_rows
    if at > count:
        raise SourceError(
            f"file '{show(file.name)}' has {count} rows, and {at} of it have been read before",
            remedy="files may be added, but not rewritten; start the query anew",
        )
    sizes = [parquet.metadata.row_group(group).total_byte_size for group in range(parquet.num_row_groups)]
    heavy = max(1, BLOCK_BYTES * count // max(1, sum(sizes)))  # so many rows are about a block, by their average size
    return ParquetRows(file, count, at, wanted, _batches_from(parquet, at, min(batch_rows, heavy), wanted))


def _batches_from(
    parquet: pyarrow.parquet.ParquetFile, at: int, batch_rows: int, wanted: list[str]
) -> Iterator[pa.RecordBatch]:
    skip = at
    groups = list(range(parquet.num_row_groups))
    while groups and skip >= parquet.metadata.row_group(groups[0]).num_rows:
        skip -= parquet.metadata.row_group(groups.pop(0)).num_rows
    if not groups:
        return
    for batch in parquet.iter_batches(batch_rows, row_groups=groups, columns=wanted, use_threads=False):
        if skip < len(batch):
            yield batch.slice(skip)
        skip = max(0, skip - len(batch))


def _broken(file: Listed, why: str) -> SourceError:
    return SourceError(
        f"file '{show(file.name)}' is not a whole Parquet file: {why}", remedy="write it anew or take it away"
    )
