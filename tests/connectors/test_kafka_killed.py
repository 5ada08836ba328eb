"""From topic to topic through twenty kills, of the run, of workers and of the broker: what an ordinary client reads in
the end is what an unbroken run has written. Offsets are read again after each of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cli.commands import transom
from tests.connectors.kafka_topics import TestTopic
from tests.killing import run_through_kills
from transom.testing.kafka_broker import KafkaBroker

ROWS = 8_000

PROGRAM = """
CREATE STREAM orders (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH ({orders}, format = 'json');
CREATE STREAM payments (id BIGINT, ts TIMESTAMP, amount INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH ({payments}, format = 'json');
CREATE SINK pairs WITH ({pairs}, format = 'json');
CREATE SINK sums WITH ({sums}, format = 'upsert-json', emit = 'net');
INSERT INTO pairs ISTREAM(
    SELECT o.id, p.amount FROM orders [RANGE 60 SECONDS] AS o, payments [RANGE 60 SECONDS] AS p WHERE o.id = p.id);
INSERT INTO sums SELECT amount, COUNT(*) AS n FROM payments GROUP BY amount;
"""


def fill(topic: TestTopic, seed: int, partitions: int) -> None:
    draw = random.Random(seed)
    for partition in range(partitions):
        rows = []
        for i in range(partition, ROWS, partitions):
            second = i / 100 + draw.random()
            ts = f"2024-05-01 10:{int(second // 60):02}:{second % 60:09.6f}"
            rows.append({"id": i, "ts": ts, "amount": draw.randrange(10)})
        topic.write(*rows, partition=partition)


def ordinary(topic: TestTopic, keyed: bool) -> object:
    """Each row with how often it is there; of upserts what each key has in the end."""
    messages = topic.messages()
    if keyed:
        return {message.key(): message.value() for message in messages}
    return sorted(json.dumps(json.loads(message.value()), sort_keys=True) for message in messages)


@pytest.mark.nightly
@pytest.mark.parametrize(("runtime", "batch"), [("local", 50), ("spark", 100)])
def test_twenty_kills_change_nothing(kafka: KafkaBroker, tmp_path: Path, runtime: str, batch: int) -> None:
    orders, payments = TestTopic(kafka, 3), TestTopic(kafka, 2)
    fill(orders, 1, 3)
    fill(payments, 2, 2)
    answers = []
    for broken in (False, True):
        pairs, sums = TestTopic(kafka, 2), TestTopic(kafka)
        program = tmp_path / f"{broken}.cql"
        topics = {"orders": orders, "payments": payments, "pairs": pairs, "sums": sums}
        program.write_text(PROGRAM.format(**{name: topic.said for name, topic in topics.items()}))
        if broken:
            run_through_kills((program, "--set", f"batch_rows={batch}"), tmp_path / "kept", runtime, (kafka,))
        else:
            done = transom("run", program, "--end")
            assert done.returncode == 0, done.stderr
        answers.append((ordinary(pairs, False), ordinary(sums, True)))
    assert len(answers[0][0]) > ROWS // 2  # type: ignore[arg-type]
    assert answers[0] == answers[1]
