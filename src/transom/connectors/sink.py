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

    def prepare(self) -> int:
        """Makes sure of what was written, and tells how many parts a commit will make: where a restart goes on."""
        ...

    def commit(self) -> int:
        """Shows what was written, and tells how many parts there are."""
        ...

    def abandon(self) -> None:
        """Forgets what was written since the last commit, and lets go of everything: the run has failed."""
        ...

    def close(self) -> None:
        """Commits, and shows what is shown only at the end."""
        ...
