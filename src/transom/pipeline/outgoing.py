"""What a bucket sends on: parts for the buckets of later fragments, and what goes to the sink."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from transom.core.delta import Delta, SignedDelta, StreamDelta
from transom.pipeline.cargo import CARGO, OUT, SIDE_ROWS, STATUS, CargoPart, Parcel, pack
from transom.pipeline.feed import sent
from transom.pipeline.layout import SINK, Layout, Port
from transom.pipeline.routes import Routes


class Outgoing:
    """Parts by their place, and what goes to the sink."""

    def __init__(self, layout: Layout, bucket: int, level: int, routes: Mapping[str, Routes]) -> None:
        self._layout = layout
        self._bucket = bucket
        self._level = level
        self._routes = routes
        self._parts: dict[tuple[int, int], list[CargoPart]] = defaultdict(list)
        self._told: list[Parcel] = []
        self._answers: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._above: bytes | None = None

    def send(self, port: Port, delta: Delta | SignedDelta | StreamDelta, slides: dict[str, int]) -> None:
        routes = self._routes[port.called]
        for to, part in sent(port, delta, self._bucket, self._layout.buckets_of(port.fragment), routes):
            self._parts[port.fragment, to].append(part)
        if slides:
            for to in range(self._layout.buckets_of(port.fragment)):
                self._parts[port.fragment, to].append(CargoPart({"kind": "slides", "last": slides}))

    def to_all_above(self, parts: Iterable[CargoPart]) -> None:
        """Packed once, for every bucket of the next level."""
        self._above = pack(parts)

    def answer(self, query: str, rows: pa.RecordBatch) -> None:
        """Rows of the answer to a query, in the order of time."""
        self._answers[query].append(rows)

    def side(self, rows: pa.RecordBatch) -> None:
        if len(rows):
            self._to_sink(SIDE_ROWS, CargoPart({"kind": "side"}, rows))

    def _to_sink(self, kind: int, *parts: CargoPart) -> None:
        self._told.append(Parcel(SINK, self._bucket, kind, parts=parts))

    def parcels(self) -> list[Parcel]:
        for query, rows in self._answers.items():
            self._to_sink(OUT, *(CargoPart({"kind": "out", "query": query}, each) for each in rows))
        return [*self._told, *self._packed()]

    def _packed(self) -> Iterator[Parcel]:
        if self._above is not None:
            for number in (number for number, level in self._layout.level.items() if level == self._level + 1):
                for to in range(self._layout.buckets_of(number)):
                    yield Parcel(number, to, CARGO, self._above, tuple(self._parts.pop((number, to), ())))
        for place, parts in self._parts.items():
            yield Parcel(*place, CARGO, parts=tuple(parts))


def status_parcel(bucket: int, status: dict[str, Any]) -> Parcel:
    """How a bucket is doing, on its way to the driver."""
    return Parcel(SINK, bucket, STATUS, parts=(CargoPart({"kind": "status", "status": json.dumps(status)}),))
