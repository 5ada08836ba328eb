"""A broker for the tests of a session, topics of random names, and an ordinary client that writes and reads them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from transom.testing.kafka_broker import KafkaBroker


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """One broker for all tests of a test process; whoever kills it starts it again."""
    from transom.testing.kafka_broker import BrokerUnavailable, KafkaBroker  # not for tests that need none of it

    pytest.importorskip("confluent_kafka")
    try:
        running = KafkaBroker()
    except BrokerUnavailable as why:
        pytest.skip(f"there is no Kafka broker: {why}")
    with running:
        yield running


class TestTopic:
    """A topic of this test alone."""

    __test__ = False

    def __init__(self, broker: KafkaBroker, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.broker, self.name = broker, f"t-{uuid.uuid4().hex[:12]}"
        self.admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        new = NewTopic(self.name, partitions, 1, config=dict(settings or {}))
        self.admin.create_topics([new])[self.name].result(30)

    @property
    def properties(self) -> dict[str, str]:
        return {"connector": "kafka", "topic": self.name, "properties.bootstrap.servers": self.broker.servers}

    @property
    def said(self) -> str:
        """As a declaration says it."""
        return ", ".join(f"'{name}' = '{value}'" for name, value in self.properties.items())

    def write(
        self, *values: Any, partition: int = 0, key: Any = None, transaction: str | None = None, **more: Any
    ) -> None:
        """Texts as they are, anything else as JSON. A `transaction` is committed, aborted, or left open."""
        from confluent_kafka import Producer

        own = {} if transaction is None else {"transactional.id": uuid.uuid4().hex}
        producer = Producer({"bootstrap.servers": self.broker.servers, "linger.ms": 0, "log_level": 0, **own})
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for value in values:
            producer.produce(self.name, _bytes(value), _bytes(key), partition, **more)
        producer.flush(30)
        if transaction == "committed":
            producer.commit_transaction(30)
        elif transaction == "aborted":
            producer.abort_transaction(30)
        elif transaction == "open":
            self.open_transaction = producer

    def grow(self, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(30)

    def messages(self, isolation: str = "read_committed") -> list[Any]:
        """All that an ordinary client sees now, partition by partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        partitions = consumer.list_topics(self.name, 30).topics[self.name].partitions
        consumer.assign([TopicPartition(self.name, number, 0) for number in partitions])
        messages: list[Any] = []
        ended: set[int] = set()
        deadline = time.monotonic() + 60
        while len(ended) < len(partitions) and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.05):
                error = message.error()
                if error is None:
                    messages.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        consumer.close()
        assert len(ended) == len(partitions)
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))

    def values(self) -> list[Any]:
        return [None if message.value() is None else json.loads(message.value()) for message in self.messages()]


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that happens by itself."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.02)
