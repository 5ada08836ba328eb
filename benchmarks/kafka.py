"""A window join from topics to a topic beside the same join from files to a file, and how fast one partition is read.

Rows are JSON of about 100 bytes. In `join` two streams of one partition each bring a row a millisecond; keys are drawn
so that a row meets about one of the other stream in its window, and every pair is written, to Kafka in transactions.
The broker runs on the same machine, and takes its part of it. In `source` one partition is read by this process alone:
only as messages, and as rows. `rows_per_cpu_s` counts the time of all threads of the process, those of the client
library as well.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Options,
    Outcome,
    Outcomes,
    Table,
    by_contestant,
    lines_of,
    short,
)
from transom.connectors.connector import Declaration, Limits
from transom.connectors.kafka_reader import reader_of
from transom.connectors.kafka_source import KafkaSource
from transom.core.schema import BIGINT, DOUBLE, TIMESTAMP, VARCHAR, Schema
from transom.session import Session
from transom.testing.kafka_broker import KafkaBroker

JOIN_ROWS, QUICK_JOIN_ROWS = 1_000_000, 40_000  # of each stream; a new sink waits up to a second for the broker, once
SOURCE_ROWS, QUICK_SOURCE_ROWS = 2_000_000, 200_000
WINDOW: Final = 10_000  # rows, one a millisecond
WARM: Final = 20_000

COLUMNS: Final = "ts TIMESTAMP, k BIGINT, name VARCHAR, price DOUBLE"
PROGRAM: Final = """
CREATE STREAM a ({columns}, WATERMARK FOR ts AS ts) WITH ({a});
CREATE STREAM b ({columns}, WATERMARK FOR ts AS ts) WITH ({b});
CREATE SINK o WITH ({o});
INSERT INTO o ISTREAM(
    SELECT a.k, a.price, b.name FROM a [RANGE {window} MILLISECONDS], b [RANGE {window} MILLISECONDS] WHERE a.k = b.k);
"""


def rows(count: int, seed: int) -> Iterator[bytes]:
    """About 100 bytes each."""
    for i in range(count):
        second, millis = divmod(i, 1000)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_714_557_600 + second))
        key = (i * 2_654_435_761 + seed * 97) % WINDOW
        yield b'{"ts": "%s.%03d", "k": %d, "name": "customer number %05d", "price": %d.25}' % (
            at.encode(),
            millis,
            key,
            i % 1000,
            i % 9973,
        )


def _topic(broker: KafkaBroker, values: Iterator[bytes] | None = None) -> str:
    """A topic of one partition."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 20, "batch.size": 1 << 20})
    batch: list[dict[str, Any]] = []
    for value in values or ():
        batch.append({"value": value})
        if len(batch) == 10_000:
            producer.produce_batch(name, batch)
            producer.flush()
            batch = []
    producer.produce_batch(name, batch)
    producer.flush()
    return name


def _said(broker: KafkaBroker, topic: str) -> str:
    return (
        f"connector = 'kafka', topic = '{topic}', 'properties.bootstrap.servers' = '{broker.servers}', format = 'json'"
    )


def join(broker: KafkaBroker, count: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.jsonl" for name in "abo"}
        for seed, name in enumerate("ab"):
            files[name].write_bytes(b"\n".join(rows(count, seed)) + b"\n")
        on_disk = {name: f"connector = 'files', path = '{path}'" for name, path in files.items()}
        topics = {"a": _topic(broker, rows(count, 0)), "b": _topic(broker, rows(count, 1)), "o": _topic(broker)}
        in_kafka = {name: _said(broker, topic) for name, topic in topics.items()}
        figures = {}
        for name, where in (("files", on_disk), ("kafka", in_kafka)):
            text = PROGRAM.format(columns=COLUMNS, window=WINDOW, **where)
            busy, started = time.process_time(), time.perf_counter()
            (*_, result) = Session().execute(text)
            took, busy = time.perf_counter() - started, time.process_time() - busy
            assert result.status is not None
            figures[name] = {
                "rows_per_s": 2 * count / took,
                "rows_per_cpu_s": 2 * count / busy,
                "seconds": took,
                "results": result.status.rows_out,
            }
        assert figures["files"]["results"] == figures["kafka"]["results"] > 0, "the answers differ"
        return figures


def source(broker: KafkaBroker, count: int) -> dict[str, dict[str, float]]:
    topic = _topic(broker, rows(count, 0))
    columns = Schema.of(("ts", TIMESTAMP), ("k", BIGINT), ("name", VARCHAR), ("price", DOUBLE))
    client = {"bootstrap.servers": broker.servers}
    properties = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.servers,
        "format": "json",
    }
    opened = KafkaSource(Declaration("s", columns, properties, time_column="ts"))
    (split,) = opened.plan({}, Limits()).splits

    def only_messages() -> int:
        with reader_of(topic, 0, client, split.at) as reader:
            return sum(len(some) for some in reader.read(split.at, split.at + split.rows))

    def as_rows() -> int:
        return sum(len(part.rows) for part in opened.read_split(split))

    return {"messages": _timed(only_messages, count), "rows": _timed(as_rows, count)}


def _timed(read: Callable[[], int], count: int) -> dict[str, float]:
    """The best of three: others use the machine as well."""
    timings = []
    for _ in range(3):
        busy, started = time.process_time(), time.perf_counter()
        assert read() == count
        took, busy = time.perf_counter() - started, time.process_time() - busy
        timings.append({"rows_per_s": count / took, "rows_per_cpu_s": count / busy, "seconds": took})
    return min(timings, key=lambda figures: figures["seconds"])


def experiments(options: Options) -> Experiments:
    with KafkaBroker() as broker:

        def measure(what: str) -> list[Outcome]:
            if what == "join":
                join(broker, min(WARM, QUICK_JOIN_ROWS))  # compiles what there is to compile
                count = QUICK_JOIN_ROWS if options.quick else JOIN_ROWS
                return [Outcome({"experiment": what, "rows": count}, join(broker, count))]
            count = QUICK_SOURCE_ROWS if options.quick else SOURCE_ROWS
            return [Outcome({"experiment": what, "rows": count}, source(broker, count))]

        yield Experiment(("join", "source"), measure)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    by_name = {outcome.cell["experiment"]: outcome for outcome in outcomes}
    joined, read = by_name["join"], by_name["source"]
    return {
        "kafka_over_files": round(joined["kafka"]["rows_per_s"] / joined["files"]["rows_per_s"], 2),
        "kafka_over_files_cpu": round(joined["kafka"]["rows_per_cpu_s"] / joined["files"]["rows_per_cpu_s"], 2),
        "join_rows_per_s": round(joined["kafka"]["rows_per_s"]),
        "partition_rows_per_s": round(read["rows"]["rows_per_s"]),
        "partition_rows_per_cpu_s": round(read["rows"]["rows_per_cpu_s"]),
        "messages_share_of_cpu": round(read["rows"]["rows_per_cpu_s"] / read["messages"]["rows_per_cpu_s"], 2),
    }


def tables(outcomes: Outcomes) -> list[Table]:
    def show(figures: Figures) -> str:
        return f"{short(figures['rows_per_s'])}, {short(figures['rows_per_cpu_s'])}"

    title = "Rows a second, and rows a second of processor time:"
    return [by_contestant(title, outcomes, show, lambda cell: str(cell["experiment"]))]


def panels(outcomes: Outcomes) -> list[Panel]:
    lines = lines_of(
        [Outcome({**outcome.cell, "x": outcome.cell["rows"]}, outcome.contestants) for outcome in outcomes],
        lambda figures: figures["rows_per_s"] / 1e6,
    )
    return [Panel("", "rows", "million rows a second", lines)]


def settings(options: Options) -> dict[str, int]:
    return {"window": WINDOW, "row_bytes": len(json.dumps(next(rows(1, 0)).decode())) - 2}


BENCHMARK: Final = Benchmark("From Kafka to Kafka", experiments, summary, tables, panels, settings)
