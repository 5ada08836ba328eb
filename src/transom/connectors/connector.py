"""What a connector is: a source gives offsets and splits and reads a split; one way for every runtime.

Whoever runs a query asks its source how far the next batch goes (`plan`), and has the splits that lead there read by
itself or by tasks in other processes (`read_split`). Planning parses no row, so it costs little beside the reading; and
a split says exactly which records it holds, so that whoever reads it, and however often, finds the same rows. Offsets
and splits are JSON: they are kept in checkpoints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa

from transom.connectors.source import Growing, Position, Rejected, SourceBatch, rejected_batch
from transom.core.location import Within
from transom.core.schema import Schema

_BATCH_BYTES: Final = 16 * 1024 * 1024
"""About so many bytes are read at a time where a batch is read by one reader."""


@dataclass(frozen=True)
class Split:
    """What one task reads: about `rows` records, rejected ones included, of one partition of the source from `at` on.

    What a partition is the source says: a file, a partition of a topic. Rows of one partition come in the order in
    which they were written; between partitions there is none. `at` is for the source alone; in a `divisible` split it
    is a number, and `n` records further on it is `at + n`.
    """

    partition: str
    at: Any
    rows: int
    divisible: bool = False

    def packed(self) -> list[Any]:
        """As JSON can hold it."""
        return [self.partition, self.at, self.rows, self.divisible]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> Split:
        partition, at, rows, divisible = packed
        return cls(partition, at, rows, divisible)

    def part(self, first: int, behind: int) -> Split:
        """The records [first, behind) of a divisible split."""
        return Split(self.partition, self.at + first, behind - first, True)


@dataclass(frozen=True)
class Plan:
    """How far a batch goes: `position` is the offset behind `splits`.

    `ended` says that there is nothing more right now. A bounded read stops there; one that follows a growing source
    asks again later, from `position`, unless the source is `over`: nothing will ever come.
    """

    position: Position
    splits: tuple[Split, ...]
    ended: bool
    over: bool = False

    @property
    def rows(self) -> int:
        """How many records the splits have."""
        return sum(split.rows for split in self.splits)


@dataclass(frozen=True)
class Limits:
    """How much a batch may have, rejected records included; None is as much as there is.

    A source that knows no files or no bytes leaves those limits alone. `bytes` are about so many: what is over is no
    more than a split.
    """

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if any(most is not None and most < 1 for most in (self.rows, self.files, self.bytes)):
            raise ValueError("a limit must be at least 1")


@dataclass(frozen=True)
class SplitRows:
    """Some rows of a split in the declared columns and in order, and those among them that cannot be read."""

    rows: pa.RecordBatch
    rejected: Sequence[Rejected] = ()


@dataclass(frozen=True)
class Declaration:
    """A stream or table as its source is to give it.

    `time_column` holds the instant of a row: it must be there and within the time domain. `stamped` is a column that
    comes from no source: it is NULL until the row is stamped. Of a `static` table all rows are read before anything is
    answered. No file is to be opened that leads outside of `within`. It travels to other processes.
    """

    name: str
    columns: Schema
    properties: dict[str, str]
    time_column: str | None = None
    stamped: str | None = None
    static: bool = False
    within: Within | None = None


class Source(ABC):
    """Rows from an offset on. It remembers nothing that an answer depends on."""

    distributed: ClassVar[bool] = False
    """Whether a source that was opened in another process, from the same declaration, can read its splits."""

    closes: ClassVar[bool] = False
    """Whether it may say by itself that it is over though its input is not to end with the run; until it does, planning
    waits for rows."""

    @property
    def sampled(self) -> bool:
        """Whether a planner may look at the first rows: it costs little, and takes them from nobody."""
        return False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The declared columns."""

    @abstractmethod
    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """How far the next batch goes from an offset, within the limits, and the splits to read. `{}` is the beginning.

        With `growing` there may be more at another time. True: it may be in the middle of being written, so an
        unfinished last line waits. "later": after this run, so what is there now is complete.
        """

    @abstractmethod
    def read_split(self, split: Split) -> Iterator[SplitRows]:
        """The rows of a split, a batch at a time."""

    def read(self, position: Position, max_rows: int, *, growing: Growing = False) -> SourceBatch:
        """The next batch, planned and read here: at most `max_rows` rows, and fewer where rows are large."""
        plan = self.plan(position, Limits(max_rows, bytes=_BATCH_BYTES), growing=growing)
        parts = [part for split in plan.splits for part in self.read_split(split)]
        whole = [part.rows for part in parts if len(part.rows)] or [pa.RecordBatch.from_pylist([], self.schema)]
        rows = whole[0] if len(whole) == 1 else pa.concat_batches(whole)
        rejected = rejected_batch([row for part in parts for row in part.rejected])
        return SourceBatch(rows, rejected, plan.position, plan.ended, plan.over)

    def files(self) -> Mapping[str, int]:
        """Files that must be seen wherever its splits are read, some of them at least, with their sizes now."""
        return {}
