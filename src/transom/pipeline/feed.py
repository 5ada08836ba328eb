"""What one fragment sends another from process to process: the rows of an exchange (`exchange.py`), packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from transom.core.delta import Delta, SignedDelta
from transom.pipeline.agenda import Brought
from transom.pipeline.cargo import CargoPart
from transom.pipeline.exchange import Received, Rows, SentEnds, departed_of, ends_of, spread_rows, times_of
from transom.pipeline.layout import Port
from transom.pipeline.routes import Routes

_LIFETIMES = ("ta", "te", "holder")


def sent(port: Port, delta: Brought, bucket: int, buckets: int, routes: Routes) -> list[tuple[int, CargoPart]]:
    """The parts that take what an operator gave in `bucket` to the buckets that want it."""
    about: dict[str, Any] = {"port": port.name, "sender": bucket}
    kind = "delta" if isinstance(delta, Delta) else "signed" if isinstance(delta, SignedDelta) else "stream"
    names = _LIFETIMES if kind == "delta" else ("",)
    columns = delta.values.columns + [pa.array(each, pa.int64()) for each in times_of(delta)]
    rows = pa.RecordBatch.from_arrays(columns, [*("" for _ in delta.values.columns), *names])
    found = []
    # Ends first: a holder that was closed may be in use again for a row of this very step.
    for ended in ends_of(bucket, delta):
        for to, ends in routes.ends(ended, buckets):
            told = pa.record_batch({"holder": ends.holder, "te": ends.te})
            found.append((to, CargoPart({**about, "kind": "ends"}, told)))
    spread = spread_rows(port, delta.values, bucket, buckets)
    if isinstance(delta, Delta):
        routes.note(delta.holder, spread)
    for to, positions in enumerate(spread):
        if len(positions):
            some = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
            departed = {"departed": departed_of(delta, positions)} if kind == "signed" else {}
            found.append((to, CargoPart({**about, "kind": kind, **departed}, some)))
    return found


def unpacked(parts: Sequence[CargoPart]) -> Received:
    """What came through a port, as it was sent."""
    rows: list[Rows] = []
    ends: list[SentEnds] = []
    for part in parts:
        assert part.rows is not None
        sender, columns = part.about["sender"], part.rows.columns
        if part.kind == "ends":
            ends.append(SentEnds(sender, columns[0].to_numpy(), columns[1].to_numpy()))
            continue
        behind = len(_LIFETIMES) if part.kind == "delta" else 1
        values = pa.RecordBatch.from_arrays(columns[:-behind], part.rows.schema.names[:-behind])
        times = tuple(column.to_numpy() for column in columns[-behind:])
        rows.append(Rows(sender, values, times, part.about.get("departed", 0)))
    return rows, ends
