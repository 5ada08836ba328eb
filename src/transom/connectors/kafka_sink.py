"""A topic of Kafka as a sink, exactly once: an epoch is one transaction, which also carries the number of the epoch.

The number is the committed offset of a group that belongs to the sink alone, written in the transaction of its rows. A
run that resumes asks for it: an epoch that is there already is not written again. To open a sink ends what an earlier
process of the same run has left open, and shuts that process out, should it still be alive.

| property | meaning |
| --- | --- |
| topic | its name |
| properties.bootstrap.servers | the brokers; other `properties.` go to Kafka's client library as they are |
| format, value.format | `json`, `csv`, `arrow`; of changes also `upsert-json` and `debezium-json` |
| key.fields, key.format | columns that make the key of a message, as `json` or, of one column, as `raw` text |
| delimiter, null | as of files |
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as NotInTime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.kafka_client import (
    OF_PRODUCERS,
    PATIENCE,
    Topic,
    in_time,
    made,
    read_client_properties,
    retriable,
    settings_of,
    sink_error,
)
from transom.connectors.message_texts import MessageWriter, read_writer
from transom.connectors.staged_sink import StagedSink
from transom.core.errors import SinkError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_KNOWN: Final = ("format", "value.format", "key.format", "key.fields", "delimiter", "null")
_AT_ONCE: Final = 10_000
"""So many messages are handed to the library at a time."""

_ANSWER: Final = 10.0
"""For so many seconds the number of an epoch is on its way, there or back: then it is begun anew with other handles.
Where the broker of the group went away the library may wait for ever, whatever it was told (librdkafka 5456)."""

_QUEUED: Final = 1_000_000
_OUR_NAME: Final = "transom"


class _NotThere(Exception):
    """A transaction of which a broker has said that it is committed, and that is not there."""


class KafkaSink(StagedSink):
    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        super().__init__(declared, opening)
        self._topic, self._client = read_properties(declared)
        self._writer: MessageWriter = read_writer(declared.properties).opened(opening)
        self._name = f"{_OUR_NAME}-{self.run}"
        self._handles: tuple[Producer, Consumer] | None = None
        self._connecting: Producer | None = None
        """It looks for its broker while rows are computed, and has claimed nothing yet."""
        self._next = 0
        """The first epoch that is not in the topic."""

    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                producer, consumer = self._handles or self._open()
                if epoch >= self._next:
                    self._write(producer, consumer, epoch, rows)
                    self._next = epoch + 1
                return
            except KafkaException as error:
                self._let_go()
                failure = error.args[0]
                if failure.fatal() and not retriable(failure):
                    raise SinkError(
                        f"the sink of topic '{self._topic}' has been shut out: {failure.str()}",
                        remedy="another process runs the same query from its checkpoint; let one of them run",
                    ) from None
                may_pass = retriable(failure) or failure.txn_requires_abort()
                if not may_pass or time.monotonic() > deadline:
                    raise sink_error(self._topic, error) from None
                time.sleep(0.2)  # with new handles: whether the epoch is in the topic is asked again
            except (NotInTime, _NotThere):
                self._let_go()
                if time.monotonic() > deadline:
                    raise _unanswered(self._topic) from None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._handles is None and self._connecting is None and len(batch):
            self._connecting = self._new_producer()
        super().write(batch)

    def close(self) -> None:
        self._connecting = None
        self._let_go()

    def abort(self, epoch: int) -> None:
        super().abort(epoch)
        self._let_go()

    def _new_producer(self) -> Producer:
        from confluent_kafka import Producer

        defaults = {
            "linger.ms": "5",
            "batch.size": "1048576",
            "queue.buffering.max.messages": str(_QUEUED),
            "queue.buffering.max.kbytes": "1048576",
            "partitioner": "murmur2_random",  # as the clients of Java do
        }
        client = {name: text for name, text in self._client.items() if name not in ("isolation.level", "group.id")}
        return made(Producer, {**settings_of({**defaults, **client}), "transactional.id": self._name})

    def _open(self) -> tuple[Producer, Consumer]:
        """Handles of this sink, and how far it has come: what an earlier process has left open is ended first."""
        from confluent_kafka import Consumer, KafkaError, KafkaException

        producer, self._connecting = self._connecting or self._new_producer(), None
        producer.init_transactions(PATIENCE)
        group = {"group.id": self._name, "enable.auto.commit": False, "isolation.level": "read_committed"}
        group |= {"retry.backoff.ms": 10}  # so often it is asked whether a transaction is over
        own = ("isolation.level", "group.id", *OF_PRODUCERS)
        security = {name: text for name, text in self._client.items() if not name.startswith(own)}
        consumer = made(Consumer, {**settings_of(security), **group})
        self._handles = producer, consumer
        try:
            self._next = self._committed(consumer)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT:
                raise
            self._end_left_open(producer, consumer)
            self._next = self._committed(consumer)
        return self._handles

    def _end_left_open(self, producer: Producer, consumer: Consumer) -> None:
        """A broker that is killed while it commits may take the transaction for over when it starts again, and never
        end it in the partitions (Kafka 4.3): its rows and its number wait there, and with them all readers. Another
        transaction that goes to all of them and is aborted ends it there, so that nothing of it is seen."""
        producer.begin_transaction()
        for partition in producer.list_topics(self._topic, _ANSWER).topics[self._topic].partitions:
            producer.produce(self._topic, b"", partition=partition)
        producer.flush(_ANSWER)
        self._send_number(producer, consumer, 0)
        producer.abort_transaction(PATIENCE)

    def _send_number(self, producer: Producer, consumer: Consumer, number: int) -> None:
        """With the rows of the transaction."""
        from confluent_kafka import TopicPartition

        offsets, group = [TopicPartition(self._topic, 0, number)], consumer.consumer_group_metadata()
        in_time(lambda: producer.send_offsets_to_transaction(offsets, group, PATIENCE), _ANSWER)

    def _committed(self, consumer: Consumer) -> int:
        """The first epoch that is not in the topic, once no transaction of this sink is on its way any more."""
        from confluent_kafka import KafkaException, TopicPartition

        (committed,) = consumer.committed([TopicPartition(self._topic, 0)], timeout=_ANSWER)
        if committed.error is not None:
            raise KafkaException(committed.error)
        return max(0, int(committed.offset))

    def _write(self, producer: Producer, consumer: Consumer, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        producer.begin_transaction()
        for batch in rows:
            for start in range(0, len(batch), _AT_ONCE):
                while len(producer) > _QUEUED - _AT_ONCE:
                    producer.poll(0.05)
                self._produce(producer, self._writer.messages(batch.slice(start, _AT_ONCE)))
        self._send_number(producer, consumer, epoch + 1)
        producer.commit_transaction(PATIENCE)
        if self._committed(consumer) <= epoch:
            raise _NotThere

    def _produce(self, producer: Producer, messages: list[dict[str, Any]]) -> None:
        from confluent_kafka import KafkaException

        if producer.produce_batch(self._topic, messages) < len(messages):
            raise KafkaException(next(message["_error"] for message in messages if "_error" in message))
        producer.poll(0)

    def _let_go(self) -> None:
        """Whatever is open is aborted by whoever opens the sink next, or by the broker in time."""
        if self._handles is not None:
            self._handles[1].close()
            self._handles = None


def _unanswered(topic: str) -> SinkError:
    return SinkError(
        f"rows cannot be written to topic '{topic}': the broker that keeps the numbers of epochs does not answer",
        remedy="see that all brokers run; the query resumes from its checkpoint",
    )


def read_properties(declared: SinkDeclaration) -> tuple[str, dict[str, str]]:
    return read_client_properties(declared.properties, _KNOWN, "a sink of connector 'kafka'")


def check_kafka_sink(declared: SinkDeclaration) -> None:
    """Rejects a wrong declaration, and asks no broker."""
    read_properties(declared)
    read_writer(declared.properties)


def check_start(declared: SinkDeclaration) -> None:
    """Rejects a broker that does not answer, and a topic that is not there and that no broker makes."""
    Topic(*read_properties(declared), SinkError).check_writable()
