"""The gate of an input: which rows are admitted, which wait, which are late, and where the watermark is.

Going through the source in its order, the watermark is the greatest time so far minus the declared bound; with a
heartbeat it is also the clock minus the bound, while the source has been read to its end. Partitions that are written
side by side are gone through each by itself, and the least of their watermarks is that of the input: how fast one is
read makes no row of another one late. A row below the watermark of its partition of the source is late; a row whose
time is missing, out of range or too far ahead of the clock, or whose change makes no sense, is rejected; the others
wait until progress passes them and are then released in time order. The ledger always adds up: rows in = used + late +
rejected + waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s, no_int64s
from transom.core.errors import LateRowError
from transom.core.schema import TIMESTAMP
from transom.core.time import BEGINNING, FOREVER, floor_to_tick, format_instant, next_tick
from transom.pipeline.leap import Leap, find_leap, least_leap
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.state.checks import need

Mask = npt.NDArray[np.bool_]

Codes = npt.NDArray[np.uint8]

FIT, MISSING_TIME, OUT_OF_RANGE, BEFORE_ORIGIN, MISSING_VALUE, BAD_CHANGE, MISSING_KEY, NO_SUCH_ROW, AHEAD = range(9)
LATE, IDLE = 9, 10
UNFIT = (BAD_CHANGE, MISSING_KEY)
"""Reasons that LATE overrides: the time of such a change is known."""
REASONS = (
    "",
    "the timestamp is missing",
    "the timestamp is out of range (years 1 to 9999)",
    "the timestamp is before the origin",
    "a column that is NOT NULL has no value",
    "the change is neither '+' nor '-'",
    "the primary key is missing",
    "a '-' without its row",
    "the timestamp is further ahead of the clock than is allowed",
    "late: came after the watermark",
    "idle: came after the stream had been silent and time had gone on without it",
)


@dataclass
class Ledger:
    """Where the rows of an input went; `waiting` is the rest."""

    rows_in: int = 0
    used: int = 0
    late: int = 0
    rejected: int = 0

    @property
    def waiting(self) -> int:
        return self.rows_in - self.used - self.late - self.rejected


@dataclass
class WaitingRows:
    """Rows in time order, rows of one instant in arrival order; of one partition, if there are several side by side."""

    values: pa.RecordBatch
    t: Int64s
    partition: str = ""

    def check(self) -> None:
        need(self.t.dtype == np.int64 and self.t.shape == (len(self.values),) and len(self.t) > 0)
        need(bool((self.t[1:] >= self.t[:-1]).all()))


@dataclass
class PartitionMark:
    """How far a partition has come, of an input whose partitions are written side by side. It `spoke` when it last
    brought something, by the clock on the wall, and was `quiet` when it was last found to have nothing more."""

    greatest: int | None = None
    raised: int | None = None
    spoke: int | None = None
    quiet: int | None = None

    def check(self) -> None:
        need(all(isinstance(instant, int | None) for instant in vars(self).values()))


@dataclass
class InputState:
    """What an input remembers. `greatest` is the greatest time seen; an idle input stands at `raised` at least.

    `beat` is what the clock said when its heartbeat last spoke. `last_used` is the time of the last row that the query
    has taken, `first` the least time of an admitted one.
    """

    greatest: int | None = None
    raised: int | None = None
    ended: bool = False
    last_used: int = BEGINNING
    waiting: list[WaitingRows] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    first: int | None = None
    beat: int | None = None
    leap: Leap | None = None
    partitions: dict[str, PartitionMark] = field(default_factory=dict)

    def check(self) -> None:
        need(all(isinstance(instant, int | None) for instant in (self.greatest, self.raised, self.first, self.beat)))

    def mark(self, partition: str | None) -> InputState | PartitionMark:
        """Whose greatest time counts for rows of a partition."""
        return self if partition is None else self.partitions[partition]

    def see(self, greatest: int | None, partition: str | None = None) -> None:
        if greatest is not None:
            for mark in {id(mark): mark for mark in (self, self.mark(partition))}.values():
                mark.greatest = greatest if mark.greatest is None else max(mark.greatest, greatest)

    def use(self, t: Int64s) -> None:
        if len(t):
            self.last_used = int(t[-1])

    def begin(self, t: int) -> None:
        self.first = t if self.first is None else min(self.first, t)


@dataclass(frozen=True)
class Classified:
    """Rows in source order, their instants and codes; `greatest` is the greatest instant that raises the watermark.

    Late rows and changes that cannot be applied raise it as well; rows out of range, before the origin or too far ahead
    of the clock do not.

    A row is LATE here if it is so by the rows of the batch alone, or by what is known of those before. `leap` is the
    position of a row that leaps in time, and from where to where.
    """

    batch: pa.RecordBatch
    times: Int64s
    codes: Codes
    greatest: int | None
    leap: tuple[int, int, int] | None = None

    def leapt(self, leap: Leap | None, codes: Codes) -> Leap | None:
        """The leap that is to be named, with the rows of these codes that are late because of it."""
        late = np.flatnonzero(codes >= LATE)
        if self.leap is not None and (leap is None or not leap.late):
            index, before, to = self.leap
            leap, late = Leap(before, to), late[late > index]
        if leap is not None and len(late):
            leap.leave_behind(self.times[late])
        return leap


@dataclass(frozen=True)
class RejectedRows:
    """Rows that were not admitted, each with its reason, for the dead-letter table."""

    values: pa.RecordBatch
    reasons: list[str]


class _Mark(NamedTuple):
    """The watermark of an input by what it has brought, and where it stands if it was left behind."""

    own: int
    stands: int


@dataclass(frozen=True)
class InputGate:
    """The gate of a stream or changing table: classifies rows and admits them."""

    definition: StreamDefinition | TableDefinition
    tick: int
    origin: int | None = None

    @cached_property
    def _bound(self) -> int:
        """How far the watermark stays behind: a multiple of the tick, so that it is floored like the times are."""
        assert self.definition.time is not None
        return -floor_to_tick(-self.definition.time.bound, self.tick)

    @cached_property
    def _least_leap(self) -> int:
        return least_leap(self._bound)

    def leap_to(
        self, state: InputState, began: int | None, within: Sequence[int] | None, partition: str | None = None
    ) -> None:
        """Rows follow whose times begin here, with a leap `within` them: its two instants."""
        leap, greatest = None if within is None else Leap(within[0], within[1]), state.mark(partition).greatest
        if leap is None and began is not None and greatest is not None:
            leap = Leap(greatest, began) if began - greatest > self._least_leap else None
        if leap is not None and (state.leap is None or not state.leap.late):
            state.leap = leap

    def watermark(self, state: InputState, partition: str | None = None) -> int:
        """Instants below it are complete, in a partition or in all. Forever once the source has ended."""
        if state.ended:
            return FOREVER
        return self._mark(state, partition).stands

    def _mark(self, state: InputState, partition: str | None = None) -> _Mark:
        if partition is None and state.partitions:
            marks = [self._mark(state, each) for each in state.partitions]
            return _Mark(min(mark.own for mark in marks), min(mark.stands for mark in marks))
        at = state.mark(partition)
        own = BEGINNING if at.greatest is None else max(at.greatest - self._bound, BEGINNING)
        if state.beat is not None:
            own = max(own, state.beat - self._bound)
        return _Mark(own, max([own, *(raised for raised in (state.raised, at.raised) if raised is not None)]))

    def enter(self, state: InputState, partitions: Iterable[str]) -> None:
        """There are these partitions. One that is new begins where the input is: time does not go back."""
        new = [partition for partition in partitions if partition not in state.partitions]
        if new:
            mark = self._mark(state).stands
            raised = mark if mark > BEGINNING else None
            state.partitions.update({partition: PartitionMark(raised=raised) for partition in new})

    def idle_partitions(self, state: InputState, now: int | None = None) -> dict[str, int]:
        """Partitions that are idle, and since when; `now`: if nothing comes of them until then."""
        longest, idle_since = self.definition.idle, {}
        for partition, mark in state.partitions.items():
            if longest is not None and mark.spoke is not None and mark.quiet is not None:
                since = mark.spoke + longest
                if since <= (mark.quiet if now is None else now):
                    idle_since[partition] = since
        return idle_since

    def leave_partitions_behind(self, state: InputState) -> bool:
        """Partitions that are idle do not hold back the others of the input; whether any did before."""
        fell = self.idle_partitions(state)
        if not fell or state.ended:
            return False
        marks = {partition: self._mark(state, partition).stands for partition in state.partitions}
        reached = reached_without(marks, fell)
        raised = [partition for partition in fell if marks[partition] < reached]
        for partition in raised:
            state.partitions[partition].raised = reached
        return bool(raised)

    def beat(self, state: InputState, now: int) -> None:
        """The source had nothing more when the clock said `now`: once in its period the heartbeat says so."""
        period = self.definition.heartbeat
        if period is not None and (state.beat is None or now // period > state.beat // period):
            state.beat = floor_to_tick(now, self.tick)

    def watermark_at(self, state: InputState, now: int) -> int:
        """Where the watermark is at the latest if nothing comes until the clock says `now`."""
        period, mark = self.definition.heartbeat, self.watermark(state)
        if state.partitions and not state.ended and (fell := self.idle_partitions(state, now)):
            marks = {partition: self._mark(state, partition).stands for partition in state.partitions}
            reached = reached_without(marks, fell)
            mark = min(max(each, reached) if partition in fell else each for partition, each in marks.items())
        return mark if period is None else max(mark, floor_to_tick(now // period * period, self.tick) - self._bound)

    def passes_at(self, instant: int) -> int | None:
        """When its heartbeat takes the watermark past an instant."""
        period = self.definition.heartbeat
        return None if period is None else -(-(next_tick(instant, self.tick) + self._bound) // period) * period

    def classify(
        self, batch: pa.RecordBatch, greatest: int | None = None, ordered: bool = True, now: int | None = None
    ) -> Classified:
        """What can be said of rows in source order, knowing no more of what came before than its greatest instant.

        `now` is what the clock said when they were read, for inputs that declare `ahead`.
        """
        times, codes = self._times(batch)
        if self.definition.ahead is not None and now is not None:
            codes[(times > now + self.definition.ahead) & (codes == FIT)] = AHEAD
        timed = np.flatnonzero(codes == FIT) if codes.any() else None
        t = times if timed is None else times[timed]
        if ordered:
            late = self._late_among(t, BEGINNING if greatest is None else greatest)
            codes[late if timed is None else timed[late]] = LATE
        self._check_change(batch, codes)
        if not len(t):
            return Classified(batch, times, codes, None)
        top, before, leap = int(t.max()), int(t[0]) if greatest is None else greatest, None
        if top - before > self._least_leap:
            indexes = np.arange(len(t)) if timed is None else timed
            leap = find_leap(indexes, t, before, self._least_leap)
        return Classified(batch, times, codes, top, leap)

    def stamped(self, batch: pa.RecordBatch, t: Int64s) -> Classified:
        """Rows that got these times on their arrival, ascending: only the origin may still lie ahead of them."""
        codes = np.zeros(len(batch), dtype=np.uint8)
        codes[: self.before_origin(t)] = BEFORE_ORIGIN
        self._check_values(batch, codes)
        return Classified(batch, t, codes, int(t[-1]) if len(t) else None)

    def before_origin(self, t: Int64s) -> int:
        """How many of these times, ascending, lie before the origin that was set."""
        return 0 if self.origin is None else int(np.searchsorted(t, self.origin))

    def admit_stamped(self, state: InputState, batch: pa.RecordBatch, t: Int64s) -> RejectedRows | None:
        """As `admit` of what `stamped` gives; there is seldom a row to reject."""
        first = int(t[0]) if len(t) else FOREVER
        least = self._mark(state).stands if self.origin is None else max(self._mark(state).stands, self.origin)
        if not least <= first < FOREVER or lacking(self.definition, batch) is not None:
            return self.admit(state, self.stamped(batch, t))
        state.ledger.rows_in += len(t)
        state.see(int(t[-1]))
        state.begin(first)
        state.waiting.append(WaitingRows(batch, t))
        return None

    def admit(self, state: InputState, classified: Classified, partition: str | None = None) -> RejectedRows | None:
        """Take rows in source order, or in that of their partition; the ones that were rejected come back with their
        reasons."""
        codes = self._with_late(state, classified.times, classified.codes, partition)
        rejected_rows = np.flatnonzero(codes)
        late = int((codes[rejected_rows] >= LATE).sum())
        if late and self.definition.late == "fail":
            raise self.late_row(classified.times[codes >= LATE][0])
        state.ledger.rows_in += len(codes)  # not before: a batch that fails was not taken
        state.ledger.late += late
        state.ledger.rejected += len(rejected_rows) - late
        state.see(classified.greatest, partition)
        if classified.leap is not None or (late and state.leap is not None):
            state.leap = classified.leapt(state.leap, codes)
        if not len(rejected_rows):
            self._note_first(state, classified.batch, np.arange(len(codes)), classified.times)
            self.wait(state, classified.batch, classified.times, partition)
            return None
        fit = np.flatnonzero(codes == FIT)
        t = classified.times[fit]
        self._note_first(state, classified.batch, fit, t)
        self.wait(state, classified.batch.take(pa.array(fit)), t, partition)
        return RejectedRows(
            classified.batch.take(pa.array(rejected_rows)), [REASONS[code] for code in codes[rejected_rows]]
        )

    def release(self, state: InputState, frontier: int) -> tuple[pa.RecordBatch | None, Int64s]:
        """The waiting rows before `frontier`, in time order."""
        released = self.release_parts(state, frontier)
        if not released:
            return None, no_int64s()
        if len(released) == 1:
            return released[0].values, released[0].t
        return pa.concat_batches([part.values for part in released]), np.concatenate([part.t for part in released])

    def release_parts(self, state: InputState, frontier: int) -> list[WaitingRows]:
        """The waiting rows before `frontier` in parts, one after the other in time; not copied if they came so."""
        if len(state.waiting) == 1 and state.waiting[0].t[-1] < frontier:  # in time order, all of them
            released, state.waiting = state.waiting, []
            state.ledger.used += len(released[0].t)
            return released
        released = []
        rest: list[WaitingRows] = []
        for part in state.waiting:
            count = int(np.searchsorted(part.t, frontier))
            if count:
                released.append(WaitingRows(part.values.slice(0, count), part.t[:count], part.partition))
            if count < len(part.t):
                rest.append(WaitingRows(part.values.slice(count), part.t[count:], part.partition) if count else part)
        state.waiting = rest
        state.ledger.used += sum(len(part.t) for part in released)
        if state.partitions:  # rows of an instant come in the order of partitions, whichever was read first
            released.sort(key=lambda part: (len(part.partition), part.partition))
        if any(b.t[0] < a.t[-1] for a, b in pairwise(released)):
            t = np.concatenate([part.t for part in released])
            order = np.argsort(t, kind="stable")
            values = pa.concat_batches([part.values for part in released])
            released = [WaitingRows(values.take(pa.array(order)), t[order])]
        return released

    def reject_waiting(self, state: InputState) -> RejectedRows | None:
        """Time has not begun and never will: what waits are changes that take away rows which never were."""
        values, _ = self.release(state, FOREVER)
        return None if values is None else reject_used(state.ledger, values)

    def begins(self, batch: pa.RecordBatch, rows: Int64s) -> Int64s:
        """Which of the rows can be the first of a query: not a '-' of a table, which takes away a row."""
        change = self.definition.change_column if isinstance(self.definition, TableDefinition) else None
        if change is None or not len(rows):
            return rows
        enters = pc.equal(batch.column(_position(self.definition, change)), "+").fill_null(False)
        beginning: Int64s = rows[enters.to_numpy(zero_copy_only=False)[rows]]
        return beginning

    def _note_first(self, state: InputState, batch: pa.RecordBatch, rows: Int64s, t: Int64s) -> None:
        beginning = self.begins(batch, rows)
        if len(beginning):
            state.begin(int((t if len(beginning) == len(rows) else t[np.isin(rows, beginning)]).min()))

    def _times(self, batch: pa.RecordBatch) -> tuple[Int64s, Codes]:
        """Instants floored to the tick, and the code of every row that has none."""
        assert self.definition.time is not None
        column = batch.column(_position(self.definition, self.definition.time.column))
        raw = column.view(pa.int64()) if column.type == TIMESTAMP else column.cast(pa.int64())
        codes = np.zeros(len(batch), dtype=np.uint8)
        t = (pc.fill_null(raw, 0) if raw.null_count else raw).to_numpy(zero_copy_only=False)
        exact = t
        if self.tick > 1:
            t = t // self.tick * self.tick
        outside = (t < BEGINNING) | (exact >= FOREVER)
        if outside.any():
            codes[outside] = OUT_OF_RANGE
        if raw.null_count:
            codes[raw.is_null().to_numpy(zero_copy_only=False)] = MISSING_TIME
        if self.origin is not None:
            codes[(t < self.origin) & (codes == FIT)] = BEFORE_ORIGIN
        self._check_values(batch, codes)
        return t, codes

    def _check_values(self, batch: pa.RecordBatch, codes: Codes) -> None:
        """Rows without a value that they must have cannot be read: such a row is not late, and moves no watermark."""
        rows = lacking(self.definition, batch)
        if rows is not None:
            codes[rows & (codes == FIT)] = MISSING_VALUE

    def _check_change(self, batch: pa.RecordBatch, codes: Codes) -> None:
        """What else may be wrong with a change of a table."""
        if isinstance(self.definition, StreamDefinition):
            return
        if self.definition.change_column is not None:
            change = batch.column(_position(self.definition, self.definition.change_column))
            valid = pc.fill_null(pc.is_in(change, pa.array(["+", "-"])), False)
            codes[~valid.to_numpy(zero_copy_only=False) & (codes == FIT)] = BAD_CHANGE
        for name in self.definition.primary_key:
            null = batch.column(_position(self.definition, name)).is_null()
            codes[null.to_numpy(zero_copy_only=False) & (codes == FIT)] = MISSING_KEY

    def late_row(self, t: int) -> LateRowError:
        definition = self.definition
        remedy = "allow more disorder in WATERMARK FOR, or declare late = 'dead_letter' or 'drop'"
        path = definition.properties.get("path")
        if definition.time is not None and definition.name == f"{path} [..]":  # FROM 'file.csv' [window]: not declared
            at = definition.time.column
            declared = f"(connector = 'files', path = '{path}', time = '{at}', bound = '1 MINUTE')"
            remedy = f"say how much out of order rows are: CREATE STREAM s WITH {declared}, and FROM s"
        return LateRowError(
            f"a row of '{definition.name}' came late: its time is {format_instant(int(t))}", remedy=remedy
        )

    def _with_late(self, state: InputState, t: Int64s, codes: Codes, partition: str | None) -> Codes:
        """The codes with what is late by what came before: the greatest instant so far, and idleness."""
        own, mark = self._mark(state, partition)
        late = t < mark
        if not late.any():
            return codes
        late &= np.isin(codes, (FIT, *UNFIT))
        codes = codes.copy()
        codes[late] = np.where(t[late] < own, LATE, IDLE)
        return codes

    def _late_among(self, t: Int64s, greatest: int) -> Mask:
        """A row is late when its time is below the watermark just before it."""
        bound = self._bound
        if len(t) and t[0] >= max(greatest, BEGINNING + bound) - bound and (t[1:] >= t[:-1]).all():
            return np.zeros(len(t), dtype=np.bool_)  # in time order, as it is most often
        before = np.maximum.accumulate(np.concatenate([[greatest], t[:-1]])) if len(t) else t
        late: Mask = t < np.maximum(before, BEGINNING + bound) - bound
        return late

    def wait(self, state: InputState, values: pa.RecordBatch, t: Int64s, partition: str | None = None) -> None:
        """Keep admitted rows until progress passes them."""
        if not len(t):
            return
        if (t[1:] < t[:-1]).any():
            order = np.argsort(t, kind="stable")
            values, t = values.take(pa.array(order)), t[order]
        state.waiting.append(WaitingRows(values, t, partition or ""))


def reached_without(marks: Mapping[str, int], fell: Mapping[str, int]) -> int:
    """How far those have come that do not wait for the ones that fell idle, each at its time.

    If all did, the last one had come so far before it did: so it does not matter how often somebody looks.
    """
    is_open = [mark for name, mark in marks.items() if name not in fell]
    return min(is_open) if is_open else marks[max(fell, key=lambda name: (fell[name], marks[name]))]


def lacking(definition: StreamDefinition | TableDefinition, batch: pa.RecordBatch) -> Mask | None:
    """Rows that have no value in a column that is NOT NULL; None: all have."""
    columns = [batch.column(_position(definition, name)) for name in definition.not_null]
    nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    if not nulls:
        return None
    rows: Mask = np.logical_or.reduce(nulls)
    if isinstance(definition, TableDefinition) and definition.change_column is not None and definition.primary_key:
        signs = batch.column(_position(definition, definition.change_column))
        rows &= ~pc.equal(signs, "-").fill_null(False).to_numpy(zero_copy_only=False)  # its key says enough
    return rows


def reject_lacking(
    definition: StreamDefinition | TableDefinition, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, RejectedRows | None]:
    """The rows of a static table that have all values that they must have, and the others."""
    rows = lacking(definition, batch)
    if rows is None:
        return batch, None
    without = batch.filter(pa.array(rows))
    return batch.filter(pa.array(~rows)), RejectedRows(without, [REASONS[MISSING_VALUE]] * len(without))


def reject_used(ledger: Ledger, values: pa.RecordBatch) -> RejectedRows:
    """Changes that were released and took away a row which was not there."""
    ledger.used -= len(values)
    ledger.rejected += len(values)
    return RejectedRows(values, [REASONS[NO_SUCH_ROW]] * len(values))


def _position(definition: StreamDefinition | TableDefinition, name: str) -> int:
    return [column.name.lower() for column in definition.columns].index(name.lower())
