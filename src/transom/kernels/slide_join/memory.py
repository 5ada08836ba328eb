"""What a join of sliding windows remembers, and how much of it is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from transom.core.time import BEGINNING
from transom.kernels.slide_join.estimates import Estimates
from transom.kernels.slide_join.fold import FoldedGroups
from transom.kernels.slide_join.report import SlideReport
from transom.kernels.slide_join.sorted_run import SortedRun, by_itself
from transom.state.codec import Deferred
from transom.state.spill import SpillFile, SpillStore


@dataclass(eq=False)
class Loose:
    """Rows of one input that begin and end together, as they came."""

    source: int
    ta: int
    te: int
    batches: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0


@dataclass(eq=False)
class BasicWindow:
    """The rows of all inputs that came since the instant before, up to and with `at`; dead ones may be gone."""

    at: int
    runs: list[SortedRun] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """In memory."""
        return sum(p.bytes for p in self.runs if p.in_memory) + sum(rows.bytes for rows in self.loose)

    @property
    def in_memory(self) -> bool:
        return any(run.in_memory for run in self.runs)


@dataclass(eq=False)
class Stored:
    """Results of the slide `birth` that all end at `death`: a block of paper 4, or a part of one."""

    birth: int
    death: int
    rows: int
    bytes: int
    batch: pa.RecordBatch | None
    file: SpillFile | None = None
    away: bool = False
    """Whether it was on disk: whoever reads a state that has all of it puts it there again."""

    STATE_VERSION: ClassVar[int] = 2

    def __post_init__(self) -> None:
        self.reader: SpillStore | None = None

    def alive(self, at: int) -> bool:
        return self.birth <= at < self.death

    @property
    def in_memory(self) -> bool:
        return self.batch is not None

    def read(self) -> pa.RecordBatch:
        if self.batch is not None:
            return self.batch
        assert self.file is not None and self.reader is not None
        return self.reader.read(self.file, 0)

    def spill(self, store: SpillStore) -> None:
        self.save(store)
        self.batch = None

    def save(self, store: SpillStore) -> None:
        if self.file is None:
            self.file = store.write([self.batch])
        self.reader = store

    def give_up(self, store: SpillStore) -> None:
        if self.file is not None:
            store.give_up(self.file)
            self.file = None

    def compacted(self) -> Stored:
        """Whole, unless a checkpoint may refer to the file."""
        if self.reader is not None and self.reader.durable and self.file is not None:
            return Stored(self.birth, self.death, self.rows, self.bytes, None, self.file)
        away = self.batch is None or self.away
        batch = self.batch if self.batch is not None else Deferred(self.read)
        return Stored(self.birth, self.death, self.rows, self.bytes, batch, away=away)

    def compacted_bytes(self) -> int:
        durable = self.reader is not None and self.reader.durable
        return 0 if durable and self.file is not None else self.bytes


@dataclass(eq=False)
class SlideWork:
    """The result of the slide `at`, as far as it is made. `kind` is chosen when it is begun.

    First the join, share by share, and then the merge with `stored` results, one after the other: `unit` is the next
    of either. Where a share has too many results, every 2^cuts-th row that it is probed with makes a unit. `due` is
    what the clock said when the slide was due. Of the join so far: rows that were probed with, tuples that could have
    matched, results and their bytes, and seconds, without those of the disk.
    """

    at: int
    attempt: int = 1
    kind: str = ""
    stores: bool = False
    bits: int = 0
    cuts: int = 0
    merging: bool = False
    unit: int = 0
    put_off: bool = False
    from_disk: bool = False
    merged_from_disk: bool = False
    rows: int = 0
    seconds: float = 0.0
    due: int = 0
    probes: int = 0
    candidates: int = 0
    results: int = 0
    result_bytes: int = 0
    join_seconds: float = 0.0
    merged: int = 0
    merge_seconds: float = 0.0
    groups: FoldedGroups | None = None
    """Of an aggregate, what the results so far come to."""

    STATE_VERSION: ClassVar[int] = 3

    def put_off_again(self) -> None:
        """The attempt has ended, and the next one begins anew."""
        self.attempt += 1
        self.put_off, self.kind, self.merging, self.unit, self.rows = True, "", False, 0, 0
        self.groups = None

    @property
    def units(self) -> int:
        """Of the join."""
        return 1 << (self.bits + self.cuts)


@dataclass
class SlideJoinState:
    """`at` is the last instant that was emitted. `covered`: the stored results are all those that live on from there.

    `last` is the greatest finite instant at which a row begins or ends.
    """

    at: int = BEGINNING
    last: int = BEGINNING
    windows: list[BasicWindow] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    covered: bool = True
    works: list[SlideWork] = field(default_factory=list)
    estimates: Estimates = field(default_factory=Estimates)
    report: SlideReport = field(default_factory=SlideReport)
    pace: int = 0
    """How much work is right for a step, where slides may be left for later in any; 0: nobody knows."""
    sharing: int = 1
    """How many joins, each in a place of its own, share the budget."""
    voided: list[list[int]] = field(default_factory=list)
    """Attempts that have ended, of which nobody has heard yet: instant and number."""

    STATE_VERSION: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.reader: SpillStore | None = None

    @property
    def runs(self) -> Iterator[SortedRun]:
        for window in self.windows:
            yield from window.runs

    @property
    def window_bytes(self) -> int:
        """In memory."""
        return sum(window.bytes for window in self.windows)

    @property
    def stored_bytes(self) -> int:
        """In memory."""
        return sum(part.bytes for part in self.stored if part.batch is not None)

    @property
    def group_bytes(self) -> int:
        return sum(work.groups.bytes for work in self.works if work.groups is not None)

    @property
    def bytes(self) -> int:
        return self.window_bytes + self.stored_bytes + self.group_bytes

    @property
    def parts(self) -> Iterator[SortedRun | Stored]:
        """All that may be in files."""
        yield from self.runs
        yield from self.stored

    def attach(self, store: SpillStore) -> None:
        """Files are read from this store."""
        if self.reader is not store:
            self.reader = store
            for part in self.parts:
                part.reader = store
                if part.away and part.in_memory:
                    part.spill(store)
                part.away = False

    def void(self, window: BasicWindow, store: SpillStore) -> None:
        """Unfinished first attempts that need a window which goes to disk end here.

        What they would have stored is missing from then on. An older one that is under way still merges what there is.
        """
        ended = [work for work in self.works if not work.put_off and any(run.alive(work.at) for run in window.runs)]
        for work in ended:
            self.voided.append([work.at, work.attempt])
            work.put_off_again()
            self.report.put_off += 1
        if ended:
            self.covered = False
            under_way = next((work for work in self.works if work.kind and not work.put_off), None)
            if under_way is None:
                self.drop(self.stored, store)
            else:
                under_way.stores = False

    def drop(self, parts: Sequence[Stored], store: SpillStore) -> None:
        """Stored results that nobody needs any more."""
        if parts:
            for part in parts:
                part.give_up(store)
            self.stored = [part for part in self.stored if part not in parts]

    def reported(self) -> SlideReport:
        """What it has done, and has in memory now."""
        return replace(self.report, tactics=dict(self.report.tactics), held_bytes=self.bytes)

    def move_in(self) -> None:
        """What is in memory is there by itself: of a state that was read back it lies within all of what was read."""
        for part in self.parts:
            if part.batch is not None:
                part.batch = by_itself(part.batch)
        for window in self.windows:
            for loose in window.loose:
                loose.batches = [by_itself(batch) for batch in loose.batches]

    def save(self, store: SpillStore) -> None:
        """Everything into files that a checkpoint can refer to."""
        self.attach(store)
        before = store.written
        for part in self.parts:
            part.save(store)
        self.report.bytes_written += store.written - before

    @property
    def files(self) -> list[SpillFile]:
        return [part.file for part in self.parts if part.file is not None]
