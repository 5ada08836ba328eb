"""What one fragment sends another: rows with lifetimes, and ends of rows sent earlier.

A holder is known in one bucket only. Across an exchange a row travels once, with the number that its holder has where
it comes from; later only that number and the end follow. The receiving bucket gives every such row a holder of its
own, under which it is known from there on. Negative tuples travel twice, whole, and need no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Ends, Int64s, SignedDelta, StreamDelta, no_int64s
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.pipeline.cargo import CargoPart
from transom.pipeline.layout import Port
from transom.pipeline.merge import value_ranks
from transom.pipeline.way import places
from transom.state.slots import grown

_LIFETIMES = ("ta", "te", "holder")


@dataclass
class FeedState:
    """`known[b][h]` is our holder for holder h of bucket b, -1 where there is none."""

    known: dict[str, Int64s] = field(default_factory=dict)


def sent(
    port: Port, delta: Delta | SignedDelta | StreamDelta, bucket: int, buckets: int
) -> list[tuple[int, CargoPart]]:
    """The parts that take what an operator gave in `bucket` to the buckets that want it."""
    about: dict[str, Any] = {"port": port.name, "sender": bucket}
    if isinstance(delta, SignedDelta):
        rows = delta.values.append_column("", pa.array(delta.t, pa.int64()))
        return [
            (to, CargoPart({**about, "kind": "signed", "departed": departed}, _some(rows, positions)))
            for to, positions in enumerate(_positions(port, delta.values, bucket, buckets))
            if len(positions)
            for departed in [int(np.searchsorted(positions, delta.departed))]
        ]
    if isinstance(delta, StreamDelta):
        rows = delta.values.append_column("", pa.array(delta.t, pa.int64()))
        return [
            (to, CargoPart({**about, "kind": "stream"}, _some(rows, positions)))
            for to, positions in enumerate(_positions(port, delta.values, bucket, buckets))
            if len(positions)
        ]
    found = []
    columns = delta.values.columns + [pa.array(part, pa.int64()) for part in (delta.ta, delta.te, delta.holder)]
    rows = pa.RecordBatch.from_arrays(columns, [*("" for _ in delta.values.columns), *_LIFETIMES])
    for to, positions in enumerate(_positions(port, delta.values, bucket, buckets)):
        if len(positions):
            found.append((to, CargoPart({**about, "kind": "delta"}, _some(rows, positions))))
    holder, te = delta.ends.arrays()
    if len(delta.ends.chunks) > 1:  # both inputs of a union may be the same: it brings their ends twice
        holder, first = np.unique(holder, return_index=True)
        te = te[first]
    if len(holder):
        ends = CargoPart({**about, "kind": "ends"}, pa.record_batch({"holder": holder, "te": te}))
        found += [(to, ends) for to in range(buckets)]
    return found


def received_stream(parts: Sequence[CargoPart], schema: pa.Schema, upto: int) -> StreamDelta:
    """The rows that all buckets sent, in time order; those of one instant in the order of their values."""
    batches = [part.rows for part in parts if part.rows is not None]
    if not batches:
        return StreamDelta(empty_batch(schema), no_int64s(), upto)
    t = np.concatenate([batch.columns[-1].to_numpy() for batch in batches])
    values = _values(batches, schema)
    if len(batches) > 1:
        order = np.lexsort((value_ranks(values.columns, len(values)), t))
        t, values = t[order], values.take(pa.array(order))
    return StreamDelta(values, t, upto)


def received_signed(parts: Sequence[CargoPart], schema: pa.Schema, upto: int, in_time_order: bool) -> SignedDelta:
    """What departed and what arrived, as all buckets sent it: nobody has to know a row by a number."""
    senders = sorted(parts, key=lambda part: part.about["sender"])
    batches = [part.rows for part in senders if part.rows is not None]
    if not batches:
        return SignedDelta(empty_batch(schema), no_int64s(), 0, upto)
    counts = [part.about["departed"] for part in senders]
    pieces = [batch.slice(0, count) for batch, count in zip(batches, counts, strict=True)]
    pieces += [batch.slice(count) for batch, count in zip(batches, counts, strict=True)]
    departed = sum(counts)
    t = np.concatenate([piece.columns[-1].to_numpy() for piece in pieces])
    values = _values(pieces, schema)
    if in_time_order and len(batches) > 1:
        order = np.lexsort((t, np.arange(len(t)) >= departed))
        t, values = t[order], values.take(pa.array(order))
    return SignedDelta(values, t, departed, upto)


def received(state: FeedState, parts: Sequence[CargoPart], schema: pa.Schema, step: Step, in_time_order: bool) -> Delta:
    """What all buckets sent, under holders of our own."""
    ends = Ends()
    batches: list[pa.RecordBatch] = []
    holders: list[Int64s] = []
    for part in _in_order(parts):
        assert part.rows is not None
        sender = str(part.about["sender"])
        if part.kind == "ends":
            ends += _closed(state, sender, part.rows, step)
        else:
            batches.append(part.rows)
            holders.append(_opened(state, sender, part.rows.column(len(schema) + 2).to_numpy(), step))
    if not batches:
        return Delta(empty_batch(schema), no_int64s(), no_int64s(), no_int64s(), step.upto, ends)
    ta = np.concatenate([batch.columns[-3].to_numpy() for batch in batches])
    te = np.concatenate([batch.columns[-2].to_numpy() for batch in batches])
    values, holder = _values(batches, schema), np.concatenate(holders)
    if in_time_order and (ta[1:] < ta[:-1]).any():
        order = np.argsort(ta, kind="stable")
        values, ta, te, holder = values.take(pa.array(order)), ta[order], te[order], holder[order]
    return Delta(values, ta, te, holder, step.upto, ends)


def _in_order(parts: Sequence[CargoPart]) -> list[CargoPart]:
    """Ends first: a holder that was closed may be in use again for a row of this very step."""
    return sorted(parts, key=lambda part: (part.kind != "ends", part.about["sender"]))


def _values(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    width = len(schema)
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return pa.RecordBatch.from_arrays(whole.columns[:width], schema=schema)


def _opened(state: FeedState, sender: str, theirs: Int64s, step: Step) -> Int64s:
    ours = np.full(len(theirs), NO_HOLDER, dtype=np.int64)
    rows = np.flatnonzero(theirs != NO_HOLDER)
    if not len(rows):
        return ours
    known = state.known.get(sender, no_int64s())
    top = int(theirs[rows].max()) + 1
    if top > len(known):
        known = grown(known, top, -1)
    distinct = np.unique(theirs[rows])
    fresh = distinct[known[distinct] < 0]
    if len(fresh):
        known[fresh] = step.holders.take(len(fresh))
    state.known[sender] = known
    ours[rows] = known[theirs[rows]]
    return ours


def _closed(state: FeedState, sender: str, rows: pa.RecordBatch, step: Step) -> Ends:
    """Ends of rows that came here; of the others nothing is known."""
    theirs, te = rows.column(0).to_numpy(), rows.column(1).to_numpy()
    known = state.known.get(sender, no_int64s())
    here = theirs < len(known)
    theirs, te = theirs[here], te[here]
    ours = known[theirs]
    mine = ours >= 0
    known[theirs[mine]] = -1
    return step.holders.close(ours[mine], te[mine])


def _positions(port: Port, values: pa.RecordBatch, bucket: int, buckets: int) -> list[Int64s]:
    found, wanted = places(port.exchange, values, buckets)
    if found is not None:
        return found
    to = bucket % buckets  # wherever it is: it may as well stay
    all_rows = np.arange(len(values), dtype=np.int64) if wanted is None else wanted
    return [all_rows if b == to else no_int64s() for b in range(buckets)]


def _some(rows: pa.RecordBatch, positions: Int64s) -> pa.RecordBatch:
    return rows if len(positions) == len(rows) else rows.take(pa.array(positions))
