"""Rows of a Parquet file from any row on, a batch at a time; the memory it takes is that of the batch."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from transom.connectors.conform import DeclaredRows, ParsedRows, find_columns
from transom.connectors.fit import always_fits
from transom.connectors.lines import BLOCK_BYTES
from transom.connectors.listing import Listed, cannot_read, show
from transom.connectors.recognise import mark_of_parquet
from transom.connectors.splits import SPLIT_RECORDS
from transom.connectors.storage import storage_of
from transom.core.errors import SourceError
from transom.core.location import is_remote


@dataclass
class ParquetRows:
    """An open file, read up to row `at`. `left` is what the last batch had more than was asked for.

    `wanted` are the names of the declared columns there; None: nobody reads a value of the column, and any would fit.
    """

    file: Listed
    count: int
    at: int
    wanted: list[str | None]
    batches: Iterator[pa.RecordBatch]
    left: pa.RecordBatch | None = None

    def take(self, rows: int) -> ParsedRows | None:
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
        nothing = pa.nulls(len(batch))
        columns = [nothing if name is None else batch.column(name) for name in self.wanted]
        return ParsedRows(np.arange(len(batch)), columns)


@dataclass(frozen=True)
class Footer:
    """How many rows a file has, the numbers of the rows behind its row groups, and how it is known again.

    `row_bytes` is about what a row takes, on the average.
    """

    mark: str
    rows: int
    groups: tuple[int, ...]
    row_bytes: int = 1


class Footers:
    """The footers of files, each read once as long as the file stays the same by its size and its time."""

    def __init__(self, declared: DeclaredRows, read: Collection[int] | None = None) -> None:
        self._declared = declared
        self._read = read
        self._footers: dict[str, tuple[tuple[int, ...], Footer]] = {}

    def of(self, file: Listed) -> Footer:
        try:
            key = file.now()
        except OSError as error:
            raise cannot_read(file.path, error) from None
        footer = self._footers.get(file.name)
        if footer is None or footer[0] != key:
            footer = self._footers[file.name] = (key, _read_footer(file, self._declared, self._read))
        return footer[1]

    def forget(self, file: Listed) -> None:
        """The file has been read to its end: nobody will ask for its footer again."""
        self._footers.pop(file.name, None)


def parquet_schema(file: Listed) -> pa.Schema:
    """The columns that a file says it has."""
    with _open(file) as parquet:
        return parquet.schema_arrow


def _read_footer(file: Listed, declared: DeclaredRows, read: Collection[int] | None) -> Footer:
    with _open(file) as parquet:
        present = _present(parquet, file, declared, read)
        metadata = parquet.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        behind = tuple(itertools.accumulate(group.num_rows for group in groups))
        return Footer(mark_of_parquet(file.path), metadata.num_rows, behind, _row_bytes(metadata, present))


def cut_at_groups(footer: Footer, start: int, stop: int) -> list[tuple[int, int]]:
    """The rows [start, stop) in parts that end where row groups do: a group is best read by one task."""
    parts = []
    for behind in (*footer.groups, footer.rows):
        if start < min(behind, stop) and (behind - start >= SPLIT_RECORDS or behind >= stop):
            parts.append((start, min(behind, stop)))
            start = min(behind, stop)
    return parts


def open_parquet(
    file: Listed, at: int, batch_rows: int, declared: DeclaredRows, read: Collection[int] | None = None
) -> ParquetRows:
    """The file from row `at` (counted from 0) on. Columns that are not among those `read` need not be filled in."""
    parquet = _open(file)
    wanted = _present(parquet, file, declared, read)
    count = parquet.metadata.num_rows
    reject_shorter(file, count, at)
    heavy = max(1, BLOCK_BYTES // _row_bytes(parquet.metadata, wanted))  # so many rows are about a block
    present = [name for name in wanted if name is not None]
    return ParquetRows(file, count, at, wanted, _batches_from(parquet, at, min(batch_rows, heavy), present))


def _present(
    parquet: pyarrow.parquet.ParquetFile, file: Listed, declared: DeclaredRows, read: Collection[int] | None
) -> list[str | None]:
    """What the declared columns are called in a file, but for those that nobody reads a value of."""
    names = _wanted(parquet, file, declared)
    wanted: list[str | None] = list(names)
    if read is not None:
        given = {field.name: field.type for field in parquet.schema_arrow}
        spared = [i for i, c in enumerate(declared.columns) if i not in read and always_fits(given[names[i]], c.type)]
        for index in spared[len(spared) == len(names) :]:  # without any column nobody knows how many rows there are
            wanted[index] = None
    return wanted


def _row_bytes(metadata: pyarrow.parquet.FileMetaData, names: Collection[str | None]) -> int:
    """About what these columns of a row take, on the average."""
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    columns = [i for i, path in enumerate(paths) if path in names or path.partition(".")[0] in names]
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    size = sum(group.column(i).total_uncompressed_size for group in groups for i in columns)
    return 1 + int(size // max(1, metadata.num_rows))


def reject_shorter(file: Listed, count: int, read: int) -> None:
    if read > count:
        raise SourceError(
            f"file '{show(file.name)}' has {count} rows, and {read} of it have been read before",
            remedy="files may be added, but not rewritten; start the query anew",
        )


def _open(file: Listed) -> pyarrow.parquet.ParquetFile:
    try:
        if is_remote(file.path):  # where requests cost more than memory
            where, given = storage_of(file.path).open(file.path), {"pre_buffer": True, "buffer_size": 0}
        else:
            # Buffered, not pre-fetched: a column of a row group is not held in memory as a whole.
            where, given = file.path, {"pre_buffer": False, "buffer_size": 1024 * 1024}
        parquet = pyarrow.parquet.ParquetFile(where, coerce_int96_timestamp_unit="us", **given)
        _ = parquet.schema_arrow.names  # decoded here, where it is reported
        return parquet
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise cannot_read(file.path, error) from None
    except UnicodeDecodeError as error:
        raise SourceError(
            f"file '{show(file.name)}' has a column whose name is not valid UTF-8:"
            f" '{error.object.decode('utf-8', 'backslashreplace')}'",
            remedy="write the file with proper names",
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise _broken(file, str(error)) from None


def _wanted(parquet: pyarrow.parquet.ParquetFile, file: Listed, declared: DeclaredRows) -> list[str]:
    """The names in the file of the declared columns."""
    present = parquet.schema_arrow.names
    return [present[index] for index in find_columns(declared.columns, present, show(file.name))]


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
