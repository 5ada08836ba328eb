"""What every sink is: batches go in, and are seen whole or not at all."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Sink(Protocol):
    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows; they are seen after the next commit at the latest, never in part."""
        ...

    def replace(self, batch: pa.RecordBatch) -> None:
        """Shows these rows in place of all shown before: a whole snapshot, at once."""
        ...

    def commit(self) -> int:
        """Makes what was written last, and tells how many parts there are. A restart that knows the number goes on there."""
        ...

    def close(self) -> None:
        """Commits, and shows what is shown only at the end."""
        ...
