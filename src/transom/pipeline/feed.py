"""What one fragment sends another from process to process: the rows of an exchange (`exchange.py`), packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from transom.core.delta import Changelog, Delta
from transom.pipeline.exchange import ExchangedRows, Received, SentEnds, departed_of, ends_of, spread_rows, times_of
from transom.pipeline.frames import Frame
from transom.pipeline.layout import Channel
from transom.pipeline.routes import Routes
from transom.pipeline.timers import Brought

_LIFETIMES = ("ta", "te", "open_id")


def sent(channel: Channel, delta: Brought, partition: int, partitions: int, routes: Routes) -> list[tuple[int, Frame]]:
    """The parts that take what an operator gave in `partition` to the partitions that want it."""
    about: dict[str, Any] = {"channel": channel.name, "sender": partition}
    kind = "delta" if isinstance(delta, Delta) else "signed" if isinstance(delta, Changelog) else "stream"
    names = _LIFETIMES if kind == "delta" else ("",)
    columns = delta.values.columns + [pa.array(each, pa.int64()) for each in times_of(delta)]
    rows = pa.RecordBatch.from_arrays(columns, [*("" for _ in delta.values.columns), *names])
    frames = []
    # Ends first: an open row id that was closed may be in use again for a row of this very step.
    for ended in ends_of(partition, delta):
        for to, ends in routes.ends(ended, partitions):
            ended_rows = pa.record_batch({"open_id": ends.open_id, "te": ends.te})
            frames.append((to, Frame({**about, "kind": "ends"}, ended_rows)))
    spread = spread_rows(channel, delta.values, partition, partitions)
    if isinstance(delta, Delta):
        routes.note(delta.open_id, spread)
    for to, positions in enumerate(spread):
        if len(positions):
            some = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
            departed = {"departed": departed_of(delta, positions)} if kind == "signed" else {}
            frames.append((to, Frame({**about, "kind": kind, **departed}, some)))
    return frames


def unpacked(parts: Sequence[Frame]) -> Received:
    """What came through a channel, as it was sent."""
    rows: list[ExchangedRows] = []
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
        rows.append(ExchangedRows(sender, values, times, part.about.get("departed", 0)))
    return rows, ends
