"""Starts a Kafka broker, fills two topics, runs unpaid.cql and shows what a client reads from those it has written."""

from __future__ import annotations

import json
import os
import random
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import transom
from transom.testing.kafka_broker import KafkaBroker

ORDERS = 200
PARTITIONS = {"orders": 3, "payments": 2, "unpaid": 2, "paid": 1}
NOON = datetime(2024, 5, 1, 12)


def fill(servers: str) -> None:
    """An order every seven seconds, by four customers; one in ten is not paid, and one in twenty too late."""
    draw = random.Random(7)
    rows: list[tuple[str, int, datetime, dict[str, Any]]] = []
    for id_ in range(1, ORDERS + 1):
        ordered = NOON + timedelta(seconds=7 * id_)
        order = {"id": id_, "customer": draw.choice(["ann", "bob", "eve", "joe"]), "amount": draw.randrange(5, 500) / 4}
        rows.append(("orders", id_, ordered, order))
        fate = draw.random()
        if fate > 0.1:
            waits = 700 if fate < 0.15 else draw.randrange(1, 590)
            rows.append(("payments", id_, ordered + timedelta(seconds=waits), {"order_id": id_}))
    producer = Producer({"bootstrap.servers": servers})
    for topic, key, at, row in sorted(rows, key=lambda each: each[2]):
        producer.produce(topic, json.dumps(row | {"ts": str(at)}), str(key))
        producer.poll(0)
    for topic in ("orders", "payments"):  # the day is over in every partition
        for partition in range(PARTITIONS[topic]):
            row = {"id": 0, "order_id": 0, "ts": str(NOON + timedelta(hours=1))}
            producer.produce(topic, json.dumps(row), partition=partition)
    producer.flush()


def read(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values as any client finds them that reads what is committed."""
    settings = {"bootstrap.servers": servers, "group.id": "show", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.partition.eof": True, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS[topic])])
    found, ended = [], 0
    while ended < PARTITIONS[topic]:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
        elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
            ended += 1
    consumer.close()
    return found


def main() -> None:
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as kept:
        os.environ["KAFKA"] = broker.servers
        admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, n, 1) for name, n in PARTITIONS.items()]).values():
            made.result(30)
        fill(broker.servers)
        transom.Session().execute(Path(__file__).with_name("unpaid.cql").read_text(), checkpoint=kept)
        unpaid = [json.loads(value) for _, value in read(broker.servers, "unpaid") if value is not None]
        print(f"{len(unpaid)} of {ORDERS} orders were not paid within ten minutes:")
        for row in sorted(unpaid, key=lambda row: str(row["at"]))[:5]:
            print(f"  {row['at']}  order {row['id']} of {row['customer']}, {row['amount']}")
        last = dict(read(broker.servers, "paid"))
        print("paid so far:")
        for _, value in sorted(last.items(), key=lambda each: each[0] or b""):
            row = json.loads(value or b"{}")
            print(f"  {row['customer']}: {row['orders']} orders, {row['amount']}")


if __name__ == "__main__":
    main()
