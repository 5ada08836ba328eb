"""What a connector is: a source gives offsets and splits and reads a split; a sink writes an epoch, prepares, commits,
aborts. One way for every runtime.

Whoever runs a query asks its source how far the next batch goes (`plan`), and has the splits that lead there read by
itself or by tasks in other processes (`read_split`). Planning parses no row, so it costs little beside the reading; and
a split says exactly which records it holds, so that whoever reads it, and however often, finds the same rows. Offsets
and splits are JSON: they are kept in checkpoints.

Rows of an answer are written epoch by epoch. `prepare` makes sure of the rows of an epoch, still unseen; what it gives
is kept in the checkpoint. Then `commit` shows them in one transaction that carries the number of the epoch: after a
crash it may be called again with the same number, and does nothing then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

import pyarrow as pa

from transom.connectors.screen import Screen
from transom.connectors.source import Growing, Position, Rejected, SourceBatch, rejected_batch
from transom.core.errors import OptionError
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
        """The split as JSON can hold it."""
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
    live: Mapping[str, bool] | None = None
    """Partitions that are written side by side, and whether each has nothing more right now: each has a watermark of
    its own then. None: one follows the other, in the order of the splits."""

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
    change: str | None = None
    """The column with + and - of a changing table."""
    primary_key: tuple[str, ...] = ()


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
        read = [(split.partition, part) for split in plan.splits for part in self.read_split(split)]
        parts, counts = [part for _, part in read], [(partition, len(part.rows)) for partition, part in read]
        whole = [part.rows for part in parts if len(part.rows)] or [pa.RecordBatch.from_pylist([], self.schema)]
        rows = whole[0] if len(whole) == 1 else pa.concat_batches(whole)
        rejected = rejected_batch([row for part in parts for row in part.rejected])
        return SourceBatch(rows, rejected, plan.position, plan.ended, plan.over, plan.live, counts)

    def version(self, split: Split) -> Any:
        """What the rows of a split depend on: as long as this is the same, they are, so that they may be read before
        the batch that they are in has begun. None: they must not."""
        return None

    def narrow(self, columns: Collection[str]) -> None:  # noqa: B027 most sources save nothing by it
        """Nobody reads a value of other columns. Where that saves something they may be NULL: it is the same row."""

    def settle(self, position: Position) -> None:  # noqa: B027 most sources are kept by somebody else
        """Whatever happens, nobody resumes from before this position: what lies there need not be kept for the run."""

    def files(self) -> Mapping[str, int]:
        """Files that must be seen wherever its splits are read, some of them at least, with their sizes now."""
        return {}


@dataclass(frozen=True)
class Resume:
    """What the log of a run says: epochs below `done` are committed, and those below `begun` may be.

    `token` is what the last of them was prepared with, in a runtime that keeps it; such a runtime commits it once more.
    """

    done: int
    begun: int
    token: Any = None


@dataclass(frozen=True)
class Opening:
    """How a runtime opens a sink for rows of `schema`. `resume` None: no log was found, the run begins.

    `replayed`: after a crash the rows of an epoch that was not committed come again, under the same number, so nothing
    need be staged for them. `snapshots`: every epoch brings the whole answer anew, by `replace`. `form` is how the
    answer is written, by its emit mode or as "stream"; None: these are rows that were rejected. `key`: these columns
    name a row, and changes come net, one an epoch of each value of them: + is the row that it has from now on, - says
    that it has none. `hold`: the query keeps to a memory budget, and the sink is to have no more than about so many
    bytes of its rows in memory, if it can be rid of them before the epoch ends.
    """

    schema: pa.Schema
    resume: Resume | None = None
    replayed: bool = False
    snapshots: bool = False
    form: str | None = None
    key: tuple[str, ...] | None = None
    hold: int | None = None


@dataclass(frozen=True)
class SinkDeclaration:
    """A sink as the query declares it. `run` is what the run is called in its checkpoint and the query within it, None
    without one: whoever keeps numbers of epochs keeps them by it, and has no other sink's among them. In the folder
    `staging` rows may be put that are not committed yet, if the run has a checkpoint. `screen` is that of the terminal,
    and `follow` says that the rows may never end.
    """

    name: str
    properties: dict[str, str]
    run: str | None = None
    staging: str | None = None
    within: Within | None = None
    screen: Screen | None = None
    follow: bool = False


class TaskWriter(Protocol):
    """What tasks write rows with, in their own processes. It travels to them."""

    def write(self, rows: Iterable[pa.RecordBatch]) -> Any:
        """A part that is safe, and that nobody sees yet; as JSON what `Sink.add_parts` is to know of it."""


class Sink(ABC):
    """Takes the rows of one epoch after the other, and shows those of an epoch whole or not at all."""

    snapshots: ClassVar[bool] = False
    """Whether it can show a relation as it is now (`replace`)."""

    @property
    def full(self) -> bool:
        """Whether it shows no more rows, whatever comes, so that nothing is gained by going on."""
        return False

    @property
    def held_bytes(self) -> int:
        """Of rows that wait in memory to be written, or for the commit of their epoch; they count towards the memory
        budget of the query. Where they become too many, and the run has no checkpoint, the epoch ends."""
        return 0

    @property
    def tasks(self) -> TaskWriter | None:
        """Where tasks write the rows of an answer themselves; then `add_parts` is told what they wrote."""
        return None

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Rows of the epoch at hand; they are seen after its commit at the latest, never in part."""

    def add_parts(self, parts: Iterable[tuple[int, Any]]) -> None:
        """What tasks have written for the epoch at hand: the number of the task's partition and what `write` gave."""
        raise AssertionError("tasks have written parts that nobody requested")

    def newest(self, most: int) -> list[pa.RecordBatch]:
        """Of what tasks have written, some of the last rows that were committed, read back for people who look; any
        thread may ask. Nothing where that is not easily had."""
        return []

    def replace(self, batch: pa.RecordBatch) -> None:
        """A whole snapshot, in place of all that was shown before; seen after the commit at the latest.

        It comes before `prepare`, and again before an epoch that a checkpoint counts is committed once more.
        """
        raise AssertionError("this sink shows no snapshots")

    def prepare(self, epoch: int) -> Any:
        """Make sure of what was written for the epoch. What `commit` must know after a crash, as JSON."""
        return None

    @abstractmethod
    def commit(self, epoch: int, token: Any) -> None:
        """Show what was prepared as the epoch of this number, or do nothing if that is done already."""

    def abort(self, epoch: int) -> None:
        """The run has failed in this epoch: forget what was not prepared, and let go of everything.

        What was prepared stays: a checkpoint may count it, and the next run commits it, or writes the epoch anew.
        """
        return

    def close(self) -> None:
        """The run has ended: show what is shown only at the end, and let go of everything."""
        return

    def collected(self) -> pa.Table | None:
        """What was written so far, of a sink that keeps it for the program to ask for."""
        return None


@dataclass(frozen=True)
class Connector:
    """What connector = '..' stands for. A `source` is opened from what is declared, in any process that reads it; when
    it is opened nothing is read yet. `check_sink` rejects a wrong declaration when it is read, and `check_start` what
    is in the way of a run, before it begins; neither changes anything. `folders` are those that tasks write to, by what
    they are to the user.
    """

    source: Callable[[Declaration], Source] | None = None
    sink: Callable[[SinkDeclaration, Opening], Sink] | None = None
    check_sink: Callable[[SinkDeclaration], object] = lambda declared: None
    check_start: Callable[[SinkDeclaration], object] = lambda declared: None
    folders: Callable[[SinkDeclaration], Mapping[str, str]] = lambda declared: {}


@dataclass(frozen=True)
class OpenSink:
    """Opens the sink of a query."""

    opens: Callable[[Opening], Sink]
    check: Callable[[], object] = lambda: None
    """Raises an error where something is in the way of a run, and touches nothing."""
    folders: Callable[[], Mapping[str, str]] = field(default=dict)
    """Folders that tasks write to, by what they are to the user."""
    path: str | None = None
    """Where it writes files, if it does."""

    def __call__(self, opening: Opening) -> Sink:
        sink = self.opens(opening)
        if opening.snapshots and not sink.snapshots:
            raise OptionError(
                "the sink cannot show the latest relation",
                remedy="choose emit = 'changes' or 'lifetimes' for it, or another connector",
            )
        return sink
