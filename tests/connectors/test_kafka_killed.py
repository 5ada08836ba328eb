"""From topic to topic through twenty kills, of the process and of the broker: what an ordinary client reads in the end
is what an unbroken run has written. Offsets are read again after each of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.connectors.kafka_topics import TestTopic
from transom.testing.kafka_broker import KafkaBroker

KILLS = 20
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


def started(program: Path, checkpoint: Path, runtime: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.connectors.kafka_run", str(program), str(checkpoint), runtime]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def begun(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "begins"


def kill_all(process: subprocess.Popen[str]) -> None:
    """The process and all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_twenty_kills_change_nothing(kafka: KafkaBroker, tmp_path: Path, runtime: str) -> None:
    orders, payments = TestTopic(kafka, 3), TestTopic(kafka, 2)
    fill(orders, 1, 3)
    fill(payments, 2, 2)
    found = []
    for broken in (False, True):
        pairs, sums = TestTopic(kafka, 2), TestTopic(kafka)
        program = tmp_path / f"{broken}.cql"
        topics = {"orders": orders, "payments": payments, "pairs": pairs, "sums": sums}
        program.write_text(PROGRAM.format(**{name: topic.said for name, topic in topics.items()}))
        if broken:
            kills = _kill_again_and_again(kafka, program, tmp_path / "kept", runtime)
            assert kills >= KILLS, "it was done before it was killed so often"
        process = started(program, tmp_path / ("kept" if broken else "whole"), runtime)
        process.communicate(timeout=600)
        assert process.returncode == 0
        found.append((ordinary(pairs, False), ordinary(sums, True)))
    assert len(found[0][0]) > ROWS // 2  # type: ignore[arg-type]
    assert found[0] == found[1]


def _kill_again_and_again(broker: KafkaBroker, program: Path, checkpoint: Path, runtime: str) -> int:
    """How often something was killed while the run was at work: the process, and every fifth time the broker."""
    draw, kills, seed = random.Random(), 0, random.randrange(1 << 30)
    draw.seed(seed)
    print(f"seed {seed}")
    while kills < KILLS:
        process = started(program, checkpoint, runtime)
        begun(process)
        time.sleep(draw.uniform(0, 0.8) * (1 if runtime == "local" else 6))
        if process.poll() is not None:
            process.communicate()
            return kills
        if kills % 5 == 4:
            broker.kill()
            kills += 1
            time.sleep(draw.uniform(0, 1.0))
            broker.start()
            time.sleep(draw.uniform(0, 1.0))
        kill_all(process)
        kills += 1
    return kills


@pytest.mark.nightly
def test_a_broker_that_starts_again_goes_unnoticed(kafka: KafkaBroker, tmp_path: Path) -> None:
    orders, payments, pairs, sums = (TestTopic(kafka, partitions) for partitions in (3, 2, 2, 1))
    fill(orders, 1, 3)
    fill(payments, 2, 2)
    topics = {"orders": orders, "payments": payments, "pairs": pairs, "sums": sums}
    program = tmp_path / "program.cql"
    program.write_text(PROGRAM.format(**{name: topic.said for name, topic in topics.items()}))
    process = started(program, tmp_path / "kept", "local")
    begun(process)
    for pause in (1.0, 2.0):
        time.sleep(pause)
        assert process.poll() is None, "it was done before"
        kafka.kill()
        time.sleep(0.5)
        kafka.start()
    process.communicate(timeout=600)
    assert process.returncode == 0
    found = [json.loads(message.value())["id"] for message in pairs.messages()]
    assert len(found) == len(set(found)) > ROWS // 2
