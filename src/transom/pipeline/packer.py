"""The rows of sources, looked at where they are read and packed for the buckets that want them.

Several tasks may read a source at once, each a stretch of it. A task judges what it can (rows without a time, rows
that are late by what the task itself saw) and tells every bucket what its stretch looked like: how many rows, their
greatest time, the times at which the query might begin. A bucket that knows this of all stretches, in their order,
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
from transom.pipeline.admission import FIT, LATE, REASONS, UNFIT, Input, Looked, Refused
from transom.pipeline.cargo import CARGO, SIDE_ROWS, CargoPart, Parcel, pack
from transom.pipeline.layout import SINK, Layout, Port
from transom.pipeline.leap import Leap
from transom.pipeline.seen import packed_times, told
from transom.pipeline.side import count_reasons, refused_rows, unreadable
from transom.pipeline.way import places
from transom.plan.catalogue import StreamDefinition

MOST_FIRSTS: Final = 1 << 8
"""So many of the earliest times are told for a query to begin at. If all of them are late, nobody can tell."""

MOST_BYTES: Final = 16 << 20
"""A blob is sent on when it has grown so large."""


@dataclass
class Stretch:
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
    """What one task packs. `sender` orders the stretches of an input; `now` is the time of the batch.

    If the run `follows` its inputs, time goes on by `now`, which must have been taken before anybody looked how far
    they go. If the time of the query had `begun` before this batch, nobody has to know where it might. Where rows have
    no way to go nobody `sifts` them before they are there.
    """

    def __init__(
        self,
        layout: Layout,
        sender: int,
        now: int | None = None,
        follows: bool = False,
        begun: bool = False,
        sifts: bool = True,
    ) -> None:
        self._layout = layout
        self._sender = sender
        self._now = now
        self._follows = follows
        self._begun = begun
        self._sifts = sifts
        self._stretches: dict[str, Stretch] = {}
        self._parts: dict[tuple[int, int], list[CargoPart]] = defaultdict(list)
        self._sizes: dict[tuple[int, int], int] = defaultdict(int)
        self._number = 0
        self._doors = {
            name: Input(definition, layout.tick, layout.origin)
            for name, definition in layout.sources.items()
            if definition.time is not None
        }

    def hear_of(self, name: str, at_end: bool = True) -> None:
        """Tell of a source even if no row of it comes, and whether all of it was read."""
        self._stretches.setdefault(name, Stretch()).at_end = at_end

    def take(self, name: str, batch: pa.RecordBatch, wanted: pa.Array | None = None) -> Iterator[Parcel]:
        """Rows of a source, in its order and its declared columns; `wanted` is false where nobody reads a row."""
        stretch = self._stretches.setdefault(name, Stretch())
        first = stretch.rows_in
        stretch.rows_in += len(batch)
        if name not in self._doors:
            yield from self._send(name, batch, None)
            return
        definition = self._layout.sources[name]
        if isinstance(definition, StreamDefinition) and definition.arrival_time:
            # Stamped by the buckets: they know the clock, here is only the place in the stretch.
            yield from self._send(name, batch, np.arange(first, stretch.rows_in, dtype=np.int64))
            return
        door = self._doors[name]
        looked = door.look(batch, stretch.greatest, ordered=name not in self._layout.unordered, now=self._now)
        if looked.greatest is not None:
            stretch.greatest = (
                max(stretch.greatest, looked.greatest) if stretch.greatest is not None else looked.greatest
            )
        codes = looked.codes
        if stretch.began is None and looked.greatest is not None:
            stretch.began = int(looked.times[np.isin(codes, (FIT, *UNFIT))][0])
        if looked.leap is not None or stretch.leap is not None:
            stretch.leap = looked.leapt(stretch.leap, codes)
        if codes.any():
            yield from self._send_unfit(name, batch, looked)
            yield from self._refuse(name, door, batch, codes, looked.times, stretch)
            fit = np.flatnonzero(codes == FIT)
            kept, t = batch.take(pa.array(fit)), looked.times[fit]
            wanted = None if wanted is None else wanted.take(pa.array(fit))
        else:
            kept, t = batch, looked.times
        self._note_firsts(name, door, kept, t, stretch)
        if wanted is not None and wanted.true_count < len(wanted):
            yield from self._send_unwanted(name, t[~wanted.to_numpy(zero_copy_only=False)])
            kept, t = kept.filter(wanted), t[wanted.to_numpy(zero_copy_only=False)]
        yield from self._send(name, kept, t)

    def reject(self, name: str, rejected: pa.RecordBatch) -> Iterator[Parcel]:
        """Rows that the source could not read (see `source.REJECTED`)."""
        stretch = self._stretches.setdefault(name, Stretch())
        stretch.rows_in += len(rejected)
        stretch.rejected += len(rejected)
        count_reasons(stretch.reasons, rejected.column("reason").to_pylist())
        yield self._side(unreadable(self._layout.sources[name].name, rejected))

    def end(self, name: str) -> None:
        """There is nothing more of this input."""
        self._stretches.setdefault(name, Stretch()).ended = True

    def finish(self) -> Iterator[Parcel]:
        """What is left, and to every bucket what this task saw, which is packed once."""
        seen = pack(self._seen(name, stretch) for name, stretch in self._stretches.items())
        for number, level in self._layout.level.items():
            if level == 1:
                for bucket in range(self._layout.buckets_of(number)):
                    yield Parcel(number, bucket, CARGO, seen, tuple(self._parts.pop((number, bucket), ())))
        for place in list(self._parts):
            yield self._flush(place)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _seen(self, name: str, stretch: Stretch) -> CargoPart:
        leap = stretch.leap
        return told(
            name,
            self._sender,
            now=self._now,
            rows_in=stretch.rows_in,
            late=stretch.late,
            rejected=stretch.rejected,
            greatest=stretch.greatest,
            ended=stretch.ended,
            at_end=stretch.at_end,
            follows=self._follows,
            began=stretch.began,
            leap=None if leap is None else [leap.before, leap.to, leap.late],
            reasons=stretch.reasons,
            firsts=packed_times(stretch.firsts),
            more=stretch.more,
            begun=self._begun,
        )

    def _send_unwanted(self, name: str, t: Int64s) -> Iterator[Parcel]:
        (port,) = [port for port in self._layout.ports_of(name) if port.accounts]
        rows = pa.RecordBatch.from_arrays([pa.array(t, pa.int64())], [""])
        yield from self._add(port, 0, "unwanted", rows, np.arange(len(t), dtype=np.int64))

    def _note_firsts(self, name: str, door: Input, kept: pa.RecordBatch, t: Int64s, stretch: Stretch) -> None:
        """Times at which the query might begin: which of them are late is known to the buckets alone."""
        if self._begun or door.origin is not None or not len(t):
            return
        beginning = door.begins(kept, np.arange(len(t)))
        if not len(beginning):
            return
        times = t[beginning]
        assert door.definition.time is not None
        in_order = name not in self._layout.unordered
        if door.definition.time.bound == 0 and in_order and isinstance(door.definition, StreamDefinition):
            times = times[:1]  # no admitted row is older than the first, and that one is admitted
        known = np.unique(np.concatenate([stretch.firsts, times]))
        stretch.firsts, stretch.more = known[:MOST_FIRSTS], stretch.more or len(known) > MOST_FIRSTS

    def _refuse(
        self, name: str, door: Input, batch: pa.RecordBatch, codes: Any, times: Int64s, stretch: Stretch
    ) -> Iterator[Parcel]:
        positions = np.flatnonzero((codes != FIT) & ~np.isin(codes, UNFIT))
        if not len(positions):
            return
        late = int((codes[positions] >= LATE).sum())
        if late and door.definition.late == "fail":
            raise door.late_row(times[codes >= LATE][0])
        stretch.late += late
        stretch.rejected += len(positions) - late
        refused = Refused(batch.take(pa.array(positions)), [REASONS[code] for code in codes[positions]])
        count_reasons(stretch.reasons, refused.reasons)
        rows = refused_rows(door.definition.name, refused, keep_late=door.definition.late == "side")
        if len(rows):
            yield self._side(rows)

    def _side(self, rows: pa.RecordBatch) -> Parcel:
        return Parcel(SINK, self._sender, SIDE_ROWS, parts=(CargoPart({"kind": "side"}, rows),))

    def _send(self, name: str, batch: pa.RecordBatch, t: Int64s | None) -> Iterator[Parcel]:
        if not len(batch):
            return
        for port in self._layout.ports_of(name):
            rows = batch.select(list(port.columns))
            if t is not None:
                rows = rows.append_column("", pa.array(t, pa.int64()))
            found, wanted = None, None
            if self._sifts:
                scanned = self._layout.as_scanned(name, batch)
                found, wanted = places(port.exchange, scanned, self._layout.buckets_of(port.fragment))
            if found is None:
                all_rows = np.arange(len(batch), dtype=np.int64) if wanted is None else wanted
                found = np.array_split(all_rows, self._layout.buckets_of(port.fragment))
            for bucket, positions in enumerate(found):
                yield from self._add(port, bucket, "rows", rows, positions)
            if port.accounts and wanted is not None and t is not None:
                unwanted = np.delete(np.arange(len(batch), dtype=np.int64), wanted)
                shown = rows if self._layout.sources[name].late == "side" else rows.select([len(port.columns)])
                yield from self._add(port, 0, "unwanted", shown, unwanted)

    def _send_unfit(self, name: str, batch: pa.RecordBatch, looked: Looked) -> Iterator[Parcel]:
        """Changes of a table that make no sense: they may be late as well, and late comes first."""
        positions = np.flatnonzero(np.isin(looked.codes, UNFIT))
        if not len(positions):
            return
        (port,) = [port for port in self._layout.ports_of(name) if port.accounts]
        rows = batch.select(list(port.columns)).append_column("", pa.array(looked.times, pa.int64()))
        yield from self._add(port, 0, "unfit", rows.append_column("", pa.array(looked.codes)), positions)

    def _add(self, port: Port, bucket: int, kind: str, rows: pa.RecordBatch, positions: Int64s) -> Iterator[Parcel]:
        if not len(positions):
            return
        mine = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
        place = port.fragment, bucket
        # Numbered: blobs of one task may come to a bucket in another order than they were sent.
        about = {"kind": kind, "port": port.name, "sender": self._sender, "number": self._number}
        self._number += 1
        self._parts[place].append(CargoPart(about, mine))
        self._sizes[place] += mine.nbytes
        if self._sizes[place] >= MOST_BYTES:
            yield self._flush(place)

    def _flush(self, place: tuple[int, int]) -> Parcel:
        parts = self._parts.pop(place)
        self._sizes.pop(place, None)
        return Parcel(*place, CARGO, parts=tuple(parts))
