"""Answers that are handed to the program itself, as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Sink


class CallbackSink(Sink):
    """Calls `on_rows` with every batch of rows, and for an answer that is `latest` with every new snapshot.

    >>> seen = []
    >>> CallbackSink(lambda rows: seen.extend(rows.to_pylist())).write(pa.record_batch({"a": [1, 2]}))
    >>> seen
    [{'a': 1}, {'a': 2}]
    """

    snapshots = True

    def __init__(self, on_rows: Callable[[pa.Table], None]) -> None:
        self._on_rows = on_rows

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self._on_rows(pa.Table.from_batches([batch]))

    def replace(self, batch: pa.RecordBatch) -> None:
        self._on_rows(pa.Table.from_batches([batch]))

    def commit(self, epoch: int, token: Any) -> None:
        """What was handed over has been seen, and cannot be taken back."""


class EpochCallbackSink(Sink):
    """Calls `on_epoch` with the rows of every epoch that has any, and its number.

    After a restart the last epoch may come again, with the same number and the same rows: a function that writes them
    under the number writes them once.
    """

    snapshots = True

    def __init__(self, on_epoch: Callable[[pa.Table, int], None]) -> None:
        self._on_epoch = on_epoch
        self._rows: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self._rows.append(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        self._rows = [batch]

    def commit(self, epoch: int, token: Any) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._on_epoch(pa.Table.from_batches(rows), epoch)
