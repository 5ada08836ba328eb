"""Answers that are handed to the program itself, as they come."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


class CallbackSink:
    """Calls `on_rows` with every batch of rows, and for an answer that is `latest` with every new snapshot.

    >>> seen = []
    >>> CallbackSink(lambda rows: seen.extend(rows.to_pylist())).write(pa.record_batch({"a": [1, 2]}))
    >>> seen
    [{'a': 1}, {'a': 2}]
    """

    def __init__(self, on_rows: Callable[[pa.Table], None]) -> None:
        self._on_rows = on_rows

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self._on_rows(pa.Table.from_batches([batch]))

    def replace(self, batch: pa.RecordBatch) -> None:
        self._on_rows(pa.Table.from_batches([batch]))

    def prepare(self) -> int:
        return 0

    def commit(self) -> int:
        return 0

    def abandon(self) -> None:
        """What was handed over cannot be taken back."""

    def close(self) -> None:
        """Nothing is held that would have to be let go."""
