"""What sources speak of: positions, rows that cannot be read, and batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

Position = dict[str, Any]
"""Where to read on, as JSON can hold it. `{}` is the beginning. Never changed once handed out."""

START: Final[Position] = {}

Growing = bool | Literal["later"]
"""Whether an input may have more at another time: while it is read (True), or only after this run ("later")."""

REJECTED: Final = pa.schema([("position", pa.string()), ("reason", pa.string()), ("raw", pa.string())])


@dataclass(frozen=True)
class Rejected:
    """A row that cannot be read: where it stands, what is wrong, and what it looks like."""

    position: str
    reason: str
    raw: str


@dataclass(frozen=True)
class SourceBatch:
    """`rows` in the declared columns and in source order, `rejected` (see REJECTED), and where to read on.

    `ended` says that there is nothing more right now. A bounded read stops there; one that follows a growing source
    asks again later, from `position`, unless the source is `over`: nothing will ever come.
    """

    rows: pa.RecordBatch
    rejected: pa.RecordBatch
    position: Position
    ended: bool
    over: bool = False
    live: Mapping[str, bool] | None = None
    """Partitions that are written side by side, and whether each has nothing more right now."""
    parts: Sequence[tuple[str, int]] = ()
    """Of which of them the rows are: so many of one, then so many of another."""

    def by_partition(self) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """The rows of each partition; all of them where one partition follows the other."""
        if self.live is None:
            yield None, self.rows
        at = 0
        for partition, count in self.parts if self.live is not None else ():
            yield partition, self.rows.slice(at, count)
            at += count


@dataclass(frozen=True)
class Chunk:
    """Some rows of one file, and how far it has been read then; `finished` when nothing is left in it now."""

    rows: pa.RecordBatch
    rejected: Sequence[Rejected]
    at: Any
    finished: bool


def rejected_batch(rows: Sequence[Rejected]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([row.position for row in rows], pa.string()),
            pa.array([row.reason for row in rows], pa.string()),
            pa.array([row.raw for row in rows], pa.string()),
        ],
        schema=REJECTED,
    )
