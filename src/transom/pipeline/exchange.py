"""Rows that move from the partitions of one fragment to those of another: who gets which, and how they come together.

An open row id is known in one partition only. Across an exchange a row travels once, with the number that its open row
id has where it comes from; later only that number and the end follow. The receiving partition gives every such row an
open row id of its own, under which it is known from there on. Negative tuples travel twice, whole, and need no numbers.

Inside a process what moves are references: the delta of the sender and the positions of the rows that each receiver is
to get, who gathers them. What moves between processes is packed (`feed.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Changelog, Delta, Ends, Int64s, StreamDelta, no_int64s
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.scan.table import StaticTable
from transom.pipeline.layout import Channel
from transom.pipeline.merge import value_ranks
from transom.pipeline.pushed_prefix import Count, apply_prefix, rows_by_partition
from transom.pipeline.timers import Brought
from transom.plan.algebra import Stream
from transom.state.checks import need
from transom.state.slots import grown


@dataclass
class FeedState:
    """`open_ids[p][h]` is our open row id for open row id h of partition p, -1 where there is none."""

    open_ids: dict[str, Int64s] = field(default_factory=dict)

    def check(self) -> None:
        for open_ids in self.open_ids.values():
            need(isinstance(open_ids, np.ndarray) and open_ids.dtype == np.int64 and open_ids.ndim == 1)
            need(bool((open_ids >= -1).all()))

    def owned(self) -> list[Int64s]:
        return [open_ids[open_ids >= 0] for open_ids in self.open_ids.values()]


@dataclass(frozen=True)
class ExchangedRows:
    """Rows from one partition, and for each of them its time, or (ta, te, open row id); of negative tuples some
    departed."""

    sender: int
    values: pa.RecordBatch
    times: tuple[Int64s, ...]
    departed: int = 0


@dataclass(frozen=True)
class SentEnds:
    """Ends under the open row ids of one partition: of rows that went to whoever gets them, and perhaps of others."""

    sender: int
    open_id: Int64s
    te: Int64s


Received = tuple[Sequence[ExchangedRows], Sequence[SentEnds]]
"""What came to a partition through a channel, in any order."""


@dataclass(frozen=True)
class Sent:
    """What a partition gave, and the positions of the rows that each partition behind a channel is to get."""

    sender: int
    delta: Brought
    positions: Sequence[Int64s]

    def rows(self, to: int) -> list[ExchangedRows]:
        """The rows for one partition, gathered; none if there are none."""
        positions, delta = self.positions[to], self.delta
        if not len(positions):
            return []
        times = times_of(delta)
        values = delta.values
        if len(positions) < len(delta):
            values, times = values.take(pa.array(positions)), tuple(each[positions] for each in times)
        return [ExchangedRows(self.sender, values, times, departed_of(delta, positions))]

    @property
    def ends(self) -> list[SentEnds]:
        """Ends of rows that were sent before, for every receiver: which are its own, each finds by what it knows."""
        return ends_of(self.sender, self.delta)


def times_of(delta: Brought) -> tuple[Int64s, ...]:
    return (delta.ta, delta.te, delta.open_id) if isinstance(delta, Delta) else (delta.t,)


def departed_of(delta: Brought, positions: Int64s) -> int:
    """How many of the rows at these positions departed."""
    return int(np.searchsorted(positions, delta.departed)) if isinstance(delta, Changelog) else 0


def ends_of(sender: int, delta: Brought) -> list[SentEnds]:
    if not isinstance(delta, Delta) or not delta.ends.chunks:
        return []
    open_id, te = delta.ends.arrays()
    if len(delta.ends.chunks) > 1:  # both inputs of a union may be the same: it brings their ends twice
        open_id, first = np.unique(open_id, return_index=True)
        te = te[first]
    return [SentEnds(sender, open_id, te)] if len(open_id) else []


def spread_rows(
    channel: Channel, values: pa.RecordBatch, sender: int, partitions: int, count: Count | None = None
) -> list[Int64s]:
    """The positions of the rows that each partition behind a channel is to get."""
    positions, wanted = rows_by_partition(channel.exchange, values, partitions, count)
    if positions is not None:
        return positions
    to = sender % partitions  # wherever it is: it may as well stay
    all_rows = np.arange(len(values), dtype=np.int64) if wanted is None else wanted
    return [all_rows if p == to else no_int64s() for p in range(partitions)]


def fed(channel: Channel, came: Received, feeds: dict[str, FeedState], step: Step, count: Count | None) -> Brought:
    """What came from another fragment, as its operator would have brought it."""
    child = channel.exchange.sender
    schema = child.schema.held()
    rows, ends = came
    if isinstance(child.node, Stream):
        return apply_prefix(channel.exchange.prefix, stream_of(rows, schema, step.frontier), count)
    if child.negative:
        return changelog_of(rows, schema, step.frontier, in_time_order=child.ends_grow)
    return relation_of(feeds[channel.name], rows, ends, schema, step, in_time_order=child.ends_grow)


def stream_of(rows: Sequence[ExchangedRows], schema: pa.Schema, frontier: int) -> StreamDelta:
    """The rows that all partitions sent, in time order; those of one instant in the order of their values, or in that
    of the only partition that sent some: it knows no worse one."""
    if not rows:
        return StreamDelta(empty_batch(schema), no_int64s(), frontier)
    (t,), values = _together(rows), _values(rows, schema)
    if len(rows) > 1:
        alone = len({sent.sender for sent in rows}) == 1
        order = np.lexsort((t,) if alone else (value_ranks(values.columns, len(values)), t))
        t, values = t[order], values.take(pa.array(order))
    return StreamDelta(values, t, frontier)


def changelog_of(rows: Sequence[ExchangedRows], schema: pa.Schema, frontier: int, in_time_order: bool) -> Changelog:
    """What departed and what arrived, as all partitions sent it: nobody has to know a row by a number."""
    if not rows:
        return Changelog(empty_batch(schema), no_int64s(), 0, frontier)
    senders = sorted(rows, key=_sender)
    pieces = [_sliced(sent, slice(0, sent.departed)) for sent in senders]
    pieces += [_sliced(sent, slice(sent.departed, None)) for sent in senders]
    departed = sum(sent.departed for sent in senders)
    (t,), values = _together(pieces), _values(pieces, schema)
    if in_time_order and len(senders) > 1:
        order = np.lexsort((t, np.arange(len(t)) >= departed))
        t, values = t[order], values.take(pa.array(order))
    return Changelog(values, t, departed, frontier)


def relation_of(
    state: FeedState,
    rows: Sequence[ExchangedRows],
    ends: Sequence[SentEnds],
    schema: pa.Schema,
    step: Step,
    in_time_order: bool,
) -> Delta:
    """What all partitions sent, under open row ids of our own."""
    closed = Ends()
    # Ends first: an open row id that was closed may be in use again for a row of this very step.
    for sent in sorted(ends, key=_sender):
        closed += _closed(state, str(sent.sender), sent.open_id, sent.te, step)
    if not rows:
        return Delta(empty_batch(schema), no_int64s(), no_int64s(), no_int64s(), step.frontier, closed)
    senders = sorted(rows, key=_sender)
    open_id = _joined([_opened(state, str(sent.sender), sent.times[2], step) for sent in senders])
    ta, te, _ = _together(senders)
    values = _values(senders, schema)
    # Rows of several senders that begin at one instant may end at several: sliding windows end in the order of both.
    if in_time_order and ((ta[1:] < ta[:-1]) | (te[1:] < te[:-1])).any():
        order = np.lexsort((te, ta))
        values, ta, te, open_id = values.take(pa.array(order)), ta[order], te[order], open_id[order]
    return Delta(values, ta, te, open_id, step.frontier, closed)


def owned_here(state: FeedState, rows: Delta, step: Step) -> Delta:
    """What somebody else gave in this place, under open row ids of our own."""
    none = no_int64s()
    closed = Ends()
    for ended in ends_of(0, rows):
        closed += _closed(state, "0", ended.open_id, ended.te, step)
    open_id = _opened(state, "0", rows.open_id, step) if len(rows) else none
    return replace(rows, open_id=open_id, ends=closed)


def static_rows(channel: Channel, values: pa.RecordBatch, step: Step, negative: bool) -> Brought:
    """Rows of a static table that belong to a partition."""
    given = StreamDelta(values, no_int64s(), step.frontier)
    if not channel.exchange.into.inputs:  # the scan of the table itself
        return given
    whole = StaticTable().step(None, (given,), step)
    return Changelog(whole.values, whole.ta, 0, step.frontier) if negative else whole


def _sender(sent: ExchangedRows | SentEnds) -> int:
    return sent.sender


def _sliced(rows: ExchangedRows, part: slice) -> ExchangedRows:
    start, stop, _ = part.indices(len(rows.values))
    return ExchangedRows(rows.sender, rows.values.slice(start, stop - start), tuple(each[part] for each in rows.times))


def _together(rows: Sequence[ExchangedRows]) -> list[Int64s]:
    return [_joined(parts) for parts in zip(*(sent.times for sent in rows), strict=True)]


def _joined(parts: Sequence[Int64s]) -> Int64s:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _values(rows: Iterable[ExchangedRows], schema: pa.Schema) -> pa.RecordBatch:
    batches = [pa.RecordBatch.from_arrays(sent.values.columns[: len(schema)], schema=schema) for sent in rows]
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _opened(state: FeedState, sender: str, theirs: Int64s, step: Step) -> Int64s:
    ours = np.full(len(theirs), NO_OPEN_ID, dtype=np.int64)
    rows = np.flatnonzero(theirs != NO_OPEN_ID)
    if not len(rows):
        return ours
    open_ids = state.open_ids.get(sender, no_int64s())
    top = int(theirs[rows].max()) + 1
    if top > len(open_ids):
        open_ids = grown(open_ids, top, -1)
    distinct = np.unique(theirs[rows])
    fresh = distinct[open_ids[distinct] < 0]
    if len(fresh):
        open_ids[fresh] = step.open_ids.take(len(fresh))
    state.open_ids[sender] = open_ids
    ours[rows] = open_ids[theirs[rows]]
    return ours


def _closed(state: FeedState, sender: str, theirs: Int64s, te: Int64s, step: Step) -> Ends:
    """Ends of rows that came here; of the others nothing is known."""
    open_ids = state.open_ids.get(sender, no_int64s())
    here = theirs < len(open_ids)
    theirs, te = theirs[here], te[here]
    ours = open_ids[theirs]
    open_here = ours >= 0
    open_ids[theirs[open_here]] = -1
    return step.open_ids.close(ours[open_here], te[open_here])
