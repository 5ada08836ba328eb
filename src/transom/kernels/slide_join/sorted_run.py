"""Rows of one input that begin and end together, sorted by hash: the stuff that basic windows are made of.

A **sorted run** is in memory, or in a file, or in both; it never changes. Sorted by hash, the rows of a range of hashes
lie together: that is a **share** of the sorted run. In a file every share of 1/2^bits is a batch of its own, so that a
join that does not fit into memory can be made share by share, each byte being read once.

In memory a directory by the first bits of the hash leads to the rows, so that a probe looks at a few neighbours alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.columns import text_parts
from transom.kernels.keys import Hashes
from transom.kernels.slide_join.spec import HASH, KEY
from transom.state.codec import Deferred
from transom.state.spill import SpillFile, SpillStore

SHARE_BYTES: Final = 1 << 13
"""A share in a file is about so large, if the sorted run is not cut into too many then."""

MOST_BITS: Final = 10
_COLUMN_BYTES: Final = 256
"""What an array takes besides its values, about."""


def held_bytes(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes) + _COLUMN_BYTES * int(batch.num_columns)


def by_itself(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in memory of their own, so that what they came with can be freed."""
    return batch.take(pa.array(np.arange(len(batch))))


class ProbeTable:
    """Sorted rows in memory, ready to be probed."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.hashes: Hashes = batch.column(HASH).to_numpy()
        bits = max(len(batch).bit_length() - 2, 1)
        self.shift = np.uint64(64 - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self.shift
        self.directory = np.append(np.searchsorted(self.hashes, firsts), len(batch)).astype(np.int32)
        self.keys: tuple[Int64s, Any] = _NO_KEYS
        if batch.schema.get_field_index(KEY) >= 0:
            self.keys = text_parts(batch.column(KEY))

    @property
    def bytes(self) -> int:
        return held_bytes(self.batch) + self.directory.nbytes + (0 if self.keys is _NO_KEYS else self.keys[0].nbytes)

    def share(self, number: int, bits: int) -> tuple[int, int]:
        return share_of(self.hashes, number, bits)


_NO_KEYS: Final = (np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))


@dataclass(eq=False)
class SortedRun:
    """`bytes` is what the sorted run takes in memory, or would take; `bits` is how finely it is cut in its file."""

    source: int
    ta: int
    te: int
    rows: int
    bytes: int
    batch: pa.RecordBatch | None
    file: SpillFile | None = None
    bits: int = 0
    away: bool = False
    """Whether it was on disk: whoever reads a state that has all of it puts it there again."""

    STATE_VERSION: ClassVar[int] = 2

    def __post_init__(self) -> None:
        self._table: ProbeTable | None = None
        self.reader: SpillStore | None = None  # that of the file; whoever reads states back says it again

    @property
    def key(self) -> tuple[int, ...]:
        """Tells it from others, while it lives."""
        return (id(self),)

    @property
    def in_memory(self) -> bool:
        return self.batch is not None

    def alive(self, at: int) -> bool:
        return self.ta <= at < self.te

    @property
    def table(self) -> ProbeTable:
        """Of a sorted run in memory."""
        assert self.batch is not None
        if self._table is None:
            self._table = ProbeTable(self.batch)
        return self._table

    def spill(self, store: SpillStore) -> None:
        """To disk; the memory is free then."""
        if self.file is None:
            self.bits = min(max(self.bytes // SHARE_BYTES, 1).bit_length() - 1, MOST_BITS)
            self.file = store.write(self._shares())
        self.reader = store
        self.batch = self._table = None

    def save(self, store: SpillStore) -> None:
        """To disk as well, for a checkpoint to refer to."""
        if self.file is None:
            batch, table = self.batch, self._table
            self.spill(store)
            self.batch, self._table = batch, table

    def give_up(self, store: SpillStore) -> None:
        if self.file is not None:
            store.give_up(self.file)
            self.file = None

    def read(self, number: int, bits: int) -> pa.RecordBatch:
        """Share `number` of 2^bits from the file, or a larger one that it is within."""
        assert self.file is not None and self.reader is not None
        if bits <= self.bits:
            span = 1 << (self.bits - bits)
            wanted = range(number * span, (number + 1) * span)
            parts = [self.reader.read(self.file, i) for i in wanted if self.file.rows[i]]
            return parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        return self.reader.read(self.file, number >> (bits - self.bits))

    def is_empty(self, number: int, bits: int) -> bool:
        """Whether the share surely has no row; nothing is read for that."""
        if self.file is None:
            return False
        if bits > self.bits:
            return not self.file.rows[number >> (bits - self.bits)]
        span = 1 << (self.bits - bits)
        return not any(self.file.rows[number * span : (number + 1) * span])

    def _shares(self) -> Sequence[pa.RecordBatch]:
        table = self.table
        shares = []
        for number in range(1 << self.bits):
            first, last = table.share(number, self.bits)
            shares.append(table.batch.slice(first, last - first))
        return shares

    def compacted(self) -> SortedRun:
        """Whole, unless a checkpoint may refer to the file."""
        if self.reader is not None and self.reader.durable and self.file is not None:
            return SortedRun(self.source, self.ta, self.te, self.rows, self.bytes, None, self.file, self.bits)
        batch = self.batch if self.batch is not None else Deferred(partial(self.read, 0, 0))
        away = self.away or not self.in_memory
        return SortedRun(self.source, self.ta, self.te, self.rows, self.bytes, batch, away=away)

    def compacted_bytes(self) -> int:
        durable = self.reader is not None and self.reader.durable
        return 0 if durable and self.file is not None else self.bytes


class Bundle:
    """Sorted runs of one input on disk, of which a share is read as one; it ends when the first of them does."""

    def __init__(self, runs: list[SortedRun]) -> None:
        self._runs = runs
        self.key = tuple(map(id, runs))
        self.in_memory = False
        self.ta = runs[0].ta
        self.te = min(run.te for run in runs)
        self.rows = sum(run.rows for run in runs)
        self.bytes = sum(run.bytes for run in runs)

    def is_empty(self, number: int, bits: int) -> bool:
        return all(run.is_empty(number, bits) for run in self._runs)

    def read(self, number: int, bits: int) -> pa.RecordBatch:
        parts = []
        for run in self._runs:
            if not run.is_empty(number, bits):
                part = run.read(number, bits)
                first, last = share_of(part.column(HASH).to_numpy(), number, bits)
                parts.append(part.slice(first, last - first))
        return by_hash(parts)


def by_hash(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of all, in the order of the hashes."""
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    order = np.argsort(batch.column(HASH).to_numpy(), kind="stable")
    return batch.take(pa.array(order))


def share_of(hashes: Hashes, number: int, bits: int) -> tuple[int, int]:
    """The rows of share `number` of 2^bits: from, to."""
    if bits == 0:
        return 0, len(hashes)
    edges = np.array([number, number + 1], dtype=np.uint64) << np.uint64(64 - bits)
    last = len(hashes) if number + 1 == 1 << bits else int(np.searchsorted(hashes, edges[1]))
    return int(np.searchsorted(hashes, edges[0])), last


def sorted_run(source: int, ta: int, te: int, batches: Sequence[pa.RecordBatch]) -> SortedRun:
    """Rows that begin and end together, as a sorted run."""
    batch = by_hash(batches)
    run = SortedRun(source, ta, te, len(batch), 0, batch)
    run.bytes = run.table.bytes
    return run
