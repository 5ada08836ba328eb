"""Reads the messages of one partition between two offsets, and keeps the connection for whoever reads on there.

A reader is ahead of whoever asks: the library fetches while rows are parsed. Readers are kept by the process, since the
tasks of Spark open their source anew for every batch.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from transom.connectors.kafka_client import PATIENCE, made, message_of, retriable, settings_of
from transom.core.errors import SourceError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_AT_ONCE: Final = 500
"""So many messages are taken from the library at a time. Each is an object of Python's that its garbage collector
follows: with more than 700 of them it walks through all that are there, again and again, which costs four times as much
as the messages do."""

_MOST_READERS: Final = 32
"""So many a process keeps while nobody reads with them: each has threads and messages that it has fetched."""


class PartitionReader:
    """`offset` is that of the next message that it gives."""

    def __init__(self, topic: str, partition: int, client: Mapping[str, str]) -> None:
        from confluent_kafka import Consumer

        self.topic, self.partition = topic, partition
        own = {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        defaults = {
            "group.id": "transom",  # the library wants one; nothing is committed to it
            "isolation.level": "read_committed",
            "queued.min.messages": "200000",
            "queued.max.messages.kbytes": "32768",
            "fetch.message.max.bytes": "8388608",
        }
        self._consumer: Consumer = made(Consumer, {**settings_of({**defaults, **client}), **own})
        self.offset: int | None = None
        self._fetched: list[Message] = []
        """Messages from `offset` on that nobody has asked for yet."""
        self._empty_to = 0
        """Before this offset there is no message that has not been fetched."""

    def read(self, start: int, stop: int) -> Iterator[list[Message]]:
        """The messages with the offsets [start, stop). Some offsets have none: those of transaction markers, of
        transactions that were aborted, and what compaction took away."""
        if start != self.offset:
            self._seek(start)
        deadline = time.monotonic() + PATIENCE
        while True:
            fetched = self._fetched or self._fetch(start, stop)
            if fetched:
                deadline = time.monotonic() + PATIENCE
                count = len(fetched)
                if fetched[-1].offset() >= stop:
                    count = next(i for i, message in enumerate(fetched) if message.offset() >= stop)
                self._fetched = fetched[count:]
                if count:
                    start = fetched[count - 1].offset() + 1
                    self.offset = start
                    yield fetched[:count]
            if self._fetched or start >= stop or self._empty_to >= stop:
                self.offset = stop
                return
            if time.monotonic() > deadline:
                raise SourceError(
                    f"partition {self.partition} of topic '{self.topic}' brings no message from offset {start} on,"
                    f" though it has {stop}",
                    remedy="see that its broker runs; the query resumes from its checkpoint",
                )

    def close(self) -> None:
        self._consumer.close()

    def _seek(self, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.unassign()
        self._fetched, self._empty_to = [], 0
        self._consumer.assign([TopicPartition(self.topic, self.partition, offset)])
        self.offset = offset

    def _fetch(self, start: int, stop: int) -> list[Message]:
        messages: list[Message] = self._consumer.consume(min(stop - start, _AT_ONCE), 0)
        if not messages:
            message = self._consumer.poll(0.1)
            messages = [] if message is None else [message]
        if events := [message for message in messages if message.error() is not None]:
            for message in events:
                self._mind(message, start)
            messages = [message for message in messages if message.error() is None]
        return messages

    def _mind(self, message: Message, start: int) -> None:
        """What the library says among the messages: that the partition is at its end, or an error."""
        from confluent_kafka import KafkaError

        error = message.error()
        if error.code() == KafkaError._PARTITION_EOF:
            offset = message.offset()
            self._empty_to = max(self._empty_to, -1 if offset is None else offset)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise self._lost(start)
        elif not retriable(error):
            raise SourceError(
                f"partition {self.partition} of topic '{self.topic}' cannot be read: {error.str()}",
                remedy="see that the topic is there and that it may be read",
            )

    def _lost(self, start: int) -> SourceError:
        from confluent_kafka import KafkaException, TopicPartition

        where = f"partition {self.partition} of topic '{self.topic}'"
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self.topic, self.partition), timeout=10)
        except KafkaException as error:
            return SourceError(
                f"{where} cannot be read from offset {start} on: {message_of(error)}", remedy="look at it"
            )
        if start < low:
            return SourceError(
                f"{where} begins at offset {low} now, and it had been read to offset {start}: retention has removed"
                f" {low - start} offsets that were not read",
                remedy="keep messages for longer (retention.ms); start the query anew to read what is left",
            )
        return shrunken(self.topic, self.partition, start, high)


def shrunken(topic: str, partition: int, start: int, end: int) -> SourceError:
    """Less is there than has been read."""
    return SourceError(
        f"partition {partition} of topic '{topic}' ends at offset {end}, and it had been read to offset {start}",
        remedy="it is not the topic that it was; start the query anew with an empty checkpoint folder",
    )


_Kept = OrderedDict[tuple[object, ...], list[PartitionReader]]
_kept: _Kept = OrderedDict()
_lock = threading.Lock()


@contextmanager
def reader_of(topic: str, partition: int, client: Mapping[str, str], offset: int) -> Iterator[PartitionReader]:
    """A reader of this process, at best one that has come to the offset before. Kept for the next one, unless it fails.

    After a fork there is none: handles stay with the process that made them.
    """
    key = (os.getpid(), topic, partition, tuple(sorted(client.items())))
    with _lock:
        readers = _kept.pop(key, [])
        nearest = next((reader for reader in readers if reader.offset == offset), readers[0] if readers else None)
        if others := [reader for reader in readers if reader is not nearest]:
            _kept[key] = others
    reader = nearest or PartitionReader(topic, partition, client)
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    closing: list[PartitionReader] = []
    with _lock:
        _kept.setdefault(key, []).append(reader)
        _kept.move_to_end(key)
        while sum(len(some) for each, some in _kept.items() if each[0] == os.getpid()) > _MOST_READERS:
            oldest = next(each for each in _kept if each[0] == os.getpid())
            closing += _kept.pop(oldest)
    for each in closing:
        each.close()
