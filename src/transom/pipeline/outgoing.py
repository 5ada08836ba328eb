"""What a partition sends on: parts for the partitions of later fragments, and what goes to the sink."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from transom.core.delta import Changelog, Delta, StreamDelta
from transom.pipeline.feed import sent
from transom.pipeline.frames import DEAD_LETTERS, FRAMES, OUT, STATUS, Frame, Message, pack
from transom.pipeline.layout import SINK, Channel, Layout
from transom.pipeline.routes import Routes


class Outgoing:
    """Parts by their place, and what goes to the sink."""

    def __init__(self, layout: Layout, partition: int, stage_number: int, routes: Mapping[str, Routes]) -> None:
        self._layout = layout
        self._partition = partition
        self._stage_number = stage_number
        self._routes = routes
        self._parts: dict[tuple[int, int], list[Frame]] = defaultdict(list)
        self._messages: list[Message] = []
        self._answers: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._above: bytes | None = None

    def send(self, channel: Channel, delta: Delta | Changelog | StreamDelta, slides: dict[str, int]) -> None:
        routes = self._routes[channel.called]
        for to, part in sent(channel, delta, self._partition, self._layout.partitions_of(channel.fragment), routes):
            self._parts[channel.fragment, to].append(part)
        if slides:
            for to in range(self._layout.partitions_of(channel.fragment)):
                self._parts[channel.fragment, to].append(Frame({"kind": "slides", "last": slides}))

    def to_all_above(self, parts: Iterable[Frame]) -> None:
        """Packed once, for every partition of the next stage."""
        self._above = pack(parts)

    def answer(self, query: str, rows: pa.RecordBatch) -> None:
        """Rows of the answer to a query, in the order of time."""
        self._answers[query].append(rows)

    def dead_letters(self, rows: pa.RecordBatch) -> None:
        if len(rows):
            self._to_sink(DEAD_LETTERS, Frame({"kind": "dead_letter"}, rows))

    def _to_sink(self, kind: int, *parts: Frame) -> None:
        self._messages.append(Message(SINK, self._partition, kind, parts=parts))

    def messages(self) -> list[Message]:
        for query, rows in self._answers.items():
            self._to_sink(OUT, *(Frame({"kind": "out", "query": query}, each) for each in rows))
        return [*self._messages, *self._packed()]

    def _packed(self) -> Iterator[Message]:
        if self._above is not None:
            for number in (
                number
                for number, stage_number in self._layout.stage_number.items()
                if stage_number == self._stage_number + 1
            ):
                for to in range(self._layout.partitions_of(number)):
                    yield Message(number, to, FRAMES, self._above, tuple(self._parts.pop((number, to), ())))
        for partition_id, parts in self._parts.items():
            yield Message(*partition_id, FRAMES, parts=tuple(parts))


def status_message(partition: int, status: dict[str, Any]) -> Message:
    """How a partition is doing, on its way to the driver."""
    return Message(SINK, partition, STATUS, parts=(Frame({"kind": "status", "status": json.dumps(status)}),))
