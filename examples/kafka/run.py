"""Starts a Kafka broker and a PostgreSQL, fills two topics, runs unpaid.cql and shows the tables that it keeps."""

from __future__ import annotations

import json
import os
import random
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from adbc_driver_postgresql import dbapi
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pgserver.postgres_server import get_server

import transom
from transom.testing.kafka_broker import KafkaBroker

ORDERS = 200
PARTITIONS = {"orders": 3, "payments": 2}
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


def main() -> None:
    with (
        KafkaBroker() as broker,
        tempfile.TemporaryDirectory() as kept,
        get_server(Path(kept) / "database", cleanup_mode="delete") as database,
    ):
        os.environ.update(KAFKA=broker.servers, PGURL=database.get_uri())
        admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, n, 1) for name, n in PARTITIONS.items()]).values():
            made.result(30)
        fill(broker.servers)
        program = Path(__file__).with_name("unpaid.cql").read_text()
        transom.Session().execute(program, checkpoint=os.path.join(kept, "checkpoint"))
        show(os.environ["PGURL"])


def show(url: str) -> None:
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute('SELECT "at"::text, id, customer, amount::text FROM unpaid ORDER BY "at", id')
        unpaid = cursor.fetchall()
        print(f"{len(unpaid)} of {ORDERS} orders were not paid within ten minutes:")
        for at, id_, customer, amount in unpaid[:5]:
            print(f"  {at}  order {id_} of {customer}, {amount}")
        cursor.execute("SELECT customer, orders, amount::text FROM paid ORDER BY customer")
        print("paid so far:")
        for customer, orders, amount in cursor.fetchall():
            print(f"  {customer}: {orders} orders, {amount}")


if __name__ == "__main__":
    main()
