"""The rows of sources, looked at where they are read and packed for the partitions that want them.

Several tasks may read a source at once, each a split of it. A task judges what it can (rows without a time, rows
that are late by what the task itself saw) and tells every partition what its split looked like: how many rows, their
greatest time, the times at which the query might begin. A partition that knows this of all splits, in their order,
judges the rest: so every row is judged as if one reader had read them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels.nested import held_rows
from transom.pipeline.admission import (
    FIT,
    LATE,
    REASONS,
    UNFIT,
    Classified,
    InputGate,
    RejectedRows,
    lacking,
    reject_lacking,
)
from transom.pipeline.dead_letters import count_reasons, dead_letter_rows, unreadable
from transom.pipeline.frames import DEAD_LETTERS, FRAMES, Frame, Message, pack
from transom.pipeline.layout import SINK, Channel, Layout
from transom.pipeline.leap import Leap
from transom.pipeline.pushed_prefix import rows_by_partition
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.pipeline.seen import packed_times, seen_frame
from transom.plan.catalogue import StreamDefinition, TableDefinition

MOST_FIRSTS: Final = 1 << 8
"""So many of the earliest times are reported for a query to begin at. If all of them are late, nobody can tell."""

MOST_BYTES: Final = 16 << 20
"""A blob is sent on when it has grown so large."""


@dataclass
class InputSplit:
    """What a task saw of one input. `at_end`: it had nothing more then.

    `began` is the time of its first row: from what came before to that there may be a leap.
    """

    rows_in: int = 0
    late: int = 0
    rejected: int = 0
    greatest: int | None = None
    ended: bool = False
    at_end: bool = False
    began: int | None = None
    leap: Leap | None = None
    firsts: Int64s = field(default_factory=no_int64s)
    more: bool = False
    reasons: dict[str, int] = field(default_factory=dict)


class Packer:
    """What one task packs. `sender` orders the splits of an input; `now` is the time of the batch.

    If the run `follows` its inputs, time goes on by `now`, which must have been taken before anybody looked how far
    they go. If the time of the query had `begun` before this batch, nobody has to know where it might. Where rows have
    no way to go nobody `sifts` them before they are there. `schedule` is passed on as it is, and so is how many joins
    are `sharing` a memory budget (0: nobody says).
    """

    def __init__(
        self,
        layout: Layout,
        sender: int,
        now: int | None = None,
        follows: bool = False,
        begun: bool = False,
        sifts: bool = True,
        schedule: ScheduledBatch | None = None,
        sharing: int = 0,
    ) -> None:
        self._layout = layout
        self._sender = sender
        self._now = now
        self._follows = follows
        self._begun = begun
        self._sifts = sifts
        self._schedule = schedule
        self._sharing = sharing
        self._splits: dict[tuple[str, str | None], InputSplit] = {}
        """By the input and, where its partitions are written side by side, the partition."""
        self._parts: dict[tuple[int, int], list[Frame]] = defaultdict(list)
        self._sizes: dict[tuple[int, int], int] = defaultdict(int)
        self._number = 0
        self._source_partition: str | None = None
        """The partition of the source that the rows come from that are being packed."""
        self._gates = {
            name: InputGate(definition, layout.tick, layout.origin)
            for name, definition in layout.sources.items()
            if definition.time is not None
        }

    def hear_of(self, name: str, at_end: bool = True, source_partition: str | None = None) -> None:
        """Report a source, or a partition of it, even if no row of it comes, and whether all of it was read."""
        self._splits.setdefault((name, source_partition), InputSplit()).at_end = at_end

    def take(
        self,
        name: str,
        batch: pa.RecordBatch,
        wanted: pa.Array | None = None,
        source_partition: str | None = None,
    ) -> Iterator[Message]:
        """Rows of a source, in its order and its declared columns; `wanted` is false where nobody reads a row. They are
        of one partition where several are written side by side."""
        batch = held_rows(batch)
        split = self._splits.setdefault((name, source_partition), InputSplit())
        self._source_partition = source_partition
        first = split.rows_in
        split.rows_in += len(batch)
        definition = self._layout.sources[name]
        if name not in self._gates:
            kept, rejected_rows = reject_lacking(definition, batch)
            yield from self._reject_rows(definition, rejected_rows, split)
            yield from self._send(name, kept, None)
            return
        if isinstance(definition, StreamDefinition) and definition.arrival_time:
            # Stamped by the partitions: they know the clock, here is only the place in the split.
            indexes, lacks = np.arange(first, split.rows_in, dtype=np.int64), lacking(definition, batch)
            kept, rejected_rows = reject_lacking(definition, batch)
            yield from self._reject_rows(definition, rejected_rows, split)
            yield from self._send(name, kept, indexes if lacks is None else indexes[~lacks])
            return
        gate = self._gates[name]
        classified = gate.classify(batch, split.greatest, ordered=name not in self._layout.unordered, now=self._now)
        if classified.greatest is not None:
            split.greatest = (
                max(split.greatest, classified.greatest) if split.greatest is not None else classified.greatest
            )
        codes = classified.codes
        if split.began is None and classified.greatest is not None:
            split.began = int(classified.times[np.isin(codes, (FIT, *UNFIT))][0])
        if classified.leap is not None or split.leap is not None:
            split.leap = classified.leapt(split.leap, codes)
        if codes.any():
            yield from self._send_unfit(name, batch, classified)
            yield from self._reject(name, gate, batch, codes, classified.times, split)
            fit = np.flatnonzero(codes == FIT)
            kept, t = batch.take(pa.array(fit)), classified.times[fit]
            wanted = None if wanted is None else wanted.take(pa.array(fit))
        else:
            kept, t = batch, classified.times
        self._note_firsts(name, gate, kept, t, split)
        if wanted is not None and wanted.true_count < len(wanted):
            yield from self._send_unwanted(name, t[~wanted.to_numpy(zero_copy_only=False)])
            kept, t = kept.filter(wanted), t[wanted.to_numpy(zero_copy_only=False)]
        yield from self._send(name, kept, t)

    def reject(self, name: str, rejected: pa.RecordBatch) -> Iterator[Message]:
        """Rows that the source could not read (see `source.REJECTED`)."""
        split = self._splits.setdefault((name, None), InputSplit())
        split.rows_in += len(rejected)
        split.rejected += len(rejected)
        count_reasons(split.reasons, rejected.column("reason").to_pylist())
        yield self._side(unreadable(self._layout.sources[name].name, rejected))

    def end(self, name: str) -> None:
        """Note that there is nothing more of this input."""
        self._splits.setdefault((name, None), InputSplit()).ended = True

    def finish(self) -> Iterator[Message]:
        """What is left, and to every partition what this task saw, which is packed once."""
        scheduled = [] if self._schedule is None else [self._schedule.frame()]
        seen = pack([*(self._seen(*key, split) for key, split in self._splits.items()), *scheduled])
        for number, stage_number in self._layout.stage_number.items():
            if stage_number == 1:
                for partition in range(self._layout.partitions_of(number)):
                    yield Message(number, partition, FRAMES, seen, tuple(self._parts.pop((number, partition), ())))
        for partition_id in list(self._parts):
            yield self._flush(partition_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _seen(self, name: str, source_partition: str | None, split: InputSplit) -> Frame:
        leap = split.leap
        return seen_frame(
            name,
            self._sender,
            source_partition=source_partition,
            now=self._now,
            rows_in=split.rows_in,
            late=split.late,
            rejected=split.rejected,
            greatest=split.greatest,
            ended=split.ended,
            at_end=split.at_end,
            follows=self._follows,
            began=split.began,
            leap=None if leap is None else [leap.before, leap.to, leap.late],
            reasons=split.reasons,
            firsts=packed_times(split.firsts),
            more=split.more,
            begun=self._begun,
            sharing=self._sharing,
        )

    def _send_unwanted(self, name: str, t: Int64s) -> Iterator[Message]:
        (channel,) = [channel for channel in self._layout.channels_of(name) if channel.accounts]
        rows = pa.RecordBatch.from_arrays([pa.array(t, pa.int64())], [""])
        yield from self._add(channel, 0, "unwanted", rows, np.arange(len(t), dtype=np.int64))

    def _note_firsts(self, name: str, gate: InputGate, kept: pa.RecordBatch, t: Int64s, split: InputSplit) -> None:
        """Times at which the query might begin: which of them are late is known to the partitions alone."""
        if self._begun or gate.origin is not None or not len(t):
            return
        beginning = gate.begins(kept, np.arange(len(t)))
        if not len(beginning):
            return
        times = t[beginning]
        assert gate.definition.time is not None
        in_order = name not in self._layout.unordered
        if gate.definition.time.bound == 0 and in_order and isinstance(gate.definition, StreamDefinition):
            times = times[:1]  # no admitted row is older than the first, and that one is admitted
        firsts = np.unique(np.concatenate([split.firsts, times]))
        split.firsts, split.more = firsts[:MOST_FIRSTS], split.more or len(firsts) > MOST_FIRSTS

    def _reject(
        self, name: str, gate: InputGate, batch: pa.RecordBatch, codes: Any, times: Int64s, split: InputSplit
    ) -> Iterator[Message]:
        positions = np.flatnonzero((codes != FIT) & ~np.isin(codes, UNFIT))
        if not len(positions):
            return
        late = int((codes[positions] >= LATE).sum())
        if late and gate.definition.late == "fail":
            raise gate.late_row(times[codes >= LATE][0])
        rejected_rows = RejectedRows(batch.take(pa.array(positions)), [REASONS[code] for code in codes[positions]])
        yield from self._reject_rows(gate.definition, rejected_rows, split, late)

    def _reject_rows(
        self,
        definition: StreamDefinition | TableDefinition,
        rejected_rows: RejectedRows | None,
        split: InputSplit,
        late: int = 0,
    ) -> Iterator[Message]:
        """Show and count rows, of which so many are late."""
        if rejected_rows is None:
            return
        split.late += late
        split.rejected += len(rejected_rows.reasons) - late
        count_reasons(split.reasons, rejected_rows.reasons)
        rows = dead_letter_rows(definition, rejected_rows)
        if len(rows):
            yield self._side(rows)

    def _side(self, rows: pa.RecordBatch) -> Message:
        return Message(SINK, self._sender, DEAD_LETTERS, parts=(Frame({"kind": "dead_letter"}, rows),))

    def _send(self, name: str, batch: pa.RecordBatch, t: Int64s | None) -> Iterator[Message]:
        if not len(batch):
            return
        for channel in self._layout.channels_of(name):
            rows = batch.select(list(channel.columns))
            if t is not None:
                rows = rows.append_column("", pa.array(t, pa.int64()))
            by_partition, wanted = None, None
            if self._sifts:
                scanned = self._layout.as_scanned(name, batch)
                by_partition, wanted = rows_by_partition(
                    channel.exchange, scanned, self._layout.partitions_of(channel.fragment)
                )
            if by_partition is None:
                all_rows = np.arange(len(batch), dtype=np.int64) if wanted is None else wanted
                by_partition = np.array_split(all_rows, self._layout.partitions_of(channel.fragment))
            for partition, positions in enumerate(by_partition):
                yield from self._add(channel, partition, "rows", rows, positions)
            if channel.accounts and wanted is not None and t is not None:
                unwanted = np.delete(np.arange(len(batch), dtype=np.int64), wanted)
                shown = (
                    rows if self._layout.sources[name].late == "dead_letter" else rows.select([len(channel.columns)])
                )
                yield from self._add(channel, 0, "unwanted", shown, unwanted)

    def _send_unfit(self, name: str, batch: pa.RecordBatch, classified: Classified) -> Iterator[Message]:
        """Changes of a table that make no sense: they may be late as well, and late comes first."""
        positions = np.flatnonzero(np.isin(classified.codes, UNFIT))
        if not len(positions):
            return
        (channel,) = [channel for channel in self._layout.channels_of(name) if channel.accounts]
        rows = batch.select(list(channel.columns)).append_column("", pa.array(classified.times, pa.int64()))
        yield from self._add(channel, 0, "unfit", rows.append_column("", pa.array(classified.codes)), positions)

    def _add(
        self, channel: Channel, partition: int, kind: str, rows: pa.RecordBatch, positions: Int64s
    ) -> Iterator[Message]:
        if not len(positions):
            return
        part = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
        partition_id = channel.fragment, partition
        # Numbered: frames of one task may come to a partition in another order than they were sent.
        about: dict[str, Any] = {"kind": kind, "channel": channel.name, "sender": self._sender, "number": self._number}
        if self._source_partition is not None:
            about["source_partition"] = self._source_partition
        self._number += 1
        self._parts[partition_id].append(Frame(about, part))
        self._sizes[partition_id] += part.nbytes
        if self._sizes[partition_id] >= MOST_BYTES:
            yield self._flush(partition_id)

    def _flush(self, partition_id: tuple[int, int]) -> Message:
        parts = self._parts.pop(partition_id)
        self._sizes.pop(partition_id, None)
        return Message(*partition_id, FRAMES, parts=tuple(parts))
