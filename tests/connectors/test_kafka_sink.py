"""Answers in a topic: every row once, whenever the process dies, as an ordinary client reads it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.connectors.kafka_topics import TestTopic
from tests.profile import first_of
from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.kafka_sink import KafkaSink
from transom.core.errors import OptionError, SinkError
from transom.core.schema import CHANGE_COLUMN
from transom.session import Session, workspace_of
from transom.testing.kafka_broker import KafkaBroker

ROWS = pa.schema([("v", pa.int32())])
CHANGES = pa.schema([CHANGE_COLUMN, ("at", pa.timestamp("us")), ("k", pa.string()), ("n", pa.int64())])
NET = pa.schema([CHANGE_COLUMN, ("k", pa.string()), ("n", pa.int64())])


class Gone(BaseException):
    """The process dies here."""


PLAIN = Opening(ROWS)


def opened(topic: TestTopic, run: str, opening: Opening = PLAIN, **properties: str) -> KafkaSink:
    said = {"format": "json", **{name.replace("_", "."): text for name, text in properties.items()}}
    return KafkaSink(SinkDeclaration("o", topic.properties | said, run=run), opening)


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int32())], schema=ROWS)


def commit(sink: KafkaSink, epoch: int, *values: int) -> None:
    sink.write(rows(*values))
    sink.commit(epoch, sink.prepare(epoch))


def test_intervals_are_texts_and_read_back(kafka: KafkaBroker, tmp_path: Path) -> None:
    texts = ["1 day 02:00:00", "-10:00:00.0005", None, "-3 days -01:00:00"]
    topic = TestTopic(kafka)
    sink = opened(topic, topic.name, Opening(pa.schema([("w", pa.duration("us"))])))
    micros = pa.array([93_600_000_000, -36_000_000_500, None, -262_800_000_000], pa.int64())
    sink.write(pa.record_batch([micros.view(pa.duration("us"))], ["w"]))
    sink.commit(0, sink.prepare(0))
    assert [value["w"] for value in topic.values()] == texts
    properties = ", ".join(f"{name} = '{text}'" for name, text in topic.properties.items())
    Session().execute(
        f"CREATE STREAM s (w INTERVAL) WITH ({properties}, format = 'json', time = 'arrival');"
        f"CREATE SINK o WITH (connector = 'files', path = '{tmp_path}/o.csv');"
        "INSERT INTO o SELECT ISTREAM w FROM s [NOW]"
    )
    (written,) = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert [line.split(",")[1] or None for line in written.splitlines()[1:]] == texts


def test_an_epoch_that_is_repeated_is_there_once(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.connectors.kafka_sink.PATIENCE", 15.0)
    topic = TestTopic(kafka, 2)
    sink = opened(topic, topic.name)
    commit(sink, 0, 1, 2)
    commit(sink, 2, 3)
    commit(sink, 2, 3)
    again = opened(topic, topic.name)
    for epoch, value in ((0, 1), (1, 9), (2, 3), (3, 4)):
        commit(again, epoch, value)
    assert sorted(value["v"] for value in topic.values()) == [1, 2, 3, 4]
    other = opened(topic, f"{topic.name}-other")
    commit(other, 0, 5)
    assert sorted(value["v"] for value in topic.values()) == [1, 2, 3, 4, 5], "another run has numbers of its own"
    with pytest.raises(SinkError, match="shut out") as error:
        commit(sink, 4, 6)
    assert error.value.remedy and len(topic.values()) == 5, "the one before is fenced"


@pytest.mark.nightly
def test_what_a_dead_process_has_begun_is_aborted(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    dead = opened(topic, topic.name)
    commit(dead, 0, 1)
    producer, _ = dead._handles or dead._open()
    producer.begin_transaction()
    producer.produce(topic.name, b'{"v": 2}')
    producer.flush(30)
    commit(opened(topic, topic.name), 1, 2)
    assert [value["v"] for value in topic.values()] == [1, 2]
    assert len(topic.messages("read_uncommitted")) == 3


def test_a_library_that_waits_for_ever_is_left_alone(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka 5456: to send the number of an epoch may never end where a broker went away."""
    topic = TestTopic(kafka)
    sink = opened(topic, topic.name)
    commit(sink, 0, 1)
    assert sink._handles is not None
    producer, consumer = sink._handles
    broken, went_on = threading.Event(), threading.Event()

    class Stuck:
        def __getattr__(self, name: str) -> Any:
            return getattr(producer, name)

        def __len__(self) -> int:
            return len(producer)

        def send_offsets_to_transaction(self, *arguments: Any) -> None:
            broken.wait(20)
            try:
                producer.send_offsets_to_transaction(*arguments)
                producer.commit_transaction(30)
            finally:
                went_on.set()

    sink._handles = Stuck(), consumer
    monkeypatch.setattr("transom.connectors.kafka_sink._ANSWER", 1.0)
    commit(sink, 1, 2)
    assert written(topic) == [1, 2] and not went_on.is_set(), "by other handles"
    broken.set()
    assert went_on.wait(30)
    commit(sink, 2, 3)
    assert written(topic) == [1, 2, 3], "who was left behind is fenced"
    sink.close()


def test_a_transaction_that_the_broker_forgets_is_written_again(kafka: KafkaBroker) -> None:
    """It has said that it is committed, and was killed."""
    topic = TestTopic(kafka)
    sink = opened(topic, topic.name)
    commit(sink, 0, 1)
    assert sink._handles is not None
    producer, consumer = sink._handles

    class Forgotten:
        def __getattr__(self, name: str) -> Any:
            return getattr(producer, name)

        def __len__(self) -> int:
            return len(producer)

        def commit_transaction(self, timeout: float) -> None:
            producer.abort_transaction(timeout)

    sink._handles = Forgotten(), consumer
    commit(sink, 1, 2)
    commit(sink, 2, 3)
    assert written(topic) == [1, 2, 3]
    sink.close()


def test_a_transaction_that_no_broker_ends_is_ended(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is open the number of the last epoch is not known; in all partitions it is ended by another one."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    topic = TestTopic(kafka, 2)
    sink = opened(topic, topic.name)
    commit(sink, 0, 1)
    again, plain = opened(topic, topic.name), KafkaSink._committed
    waits = iter([True])

    def committed(sink: KafkaSink, consumer: Any) -> int:
        if next(waits, False):
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT))
        return plain(sink, consumer)

    monkeypatch.setattr(KafkaSink, "_committed", committed)
    for epoch, value in ((0, 1), (1, 2)):
        commit(again, epoch, value)
    assert sorted(value["v"] for value in topic.values()) == [1, 2]
    aborted = [message.partition() for message in topic.messages("read_uncommitted") if not message.value()]
    assert sorted(aborted) == [0, 1]
    again.close()


@pytest.mark.nightly
def test_a_row_that_is_too_large_for_the_broker_is_an_error(kafka: KafkaBroker) -> None:
    topic, schema = TestTopic(kafka), pa.schema([("text", pa.string())])
    sink = opened(topic, topic.name, Opening(schema), properties_message_max_bytes="1000")
    sink.write(change_rows(schema, ("x" * 5000,)))
    with pytest.raises(SinkError, match="cannot be written to topic"):
        sink.commit(0, sink.prepare(0))
    assert topic.values() == []


TEXT = """
CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) WITH ({source}, format = 'json');
CREATE SINK o WITH ({sink}, format = 'json');
INSERT INTO o ISTREAM(SELECT v FROM s)
"""


def filled(kafka: KafkaBroker, count: int = 20) -> TestTopic:
    topic = TestTopic(kafka, 2)
    for partition in (0, 1):
        of_partition = [{"ts": f"2024-05-01 10:00:{v:02}", "v": v} for v in range(partition, count, 2)]
        topic.write(*of_partition, partition=partition)
    return topic


def written(topic: TestTopic) -> list[int]:
    return sorted(value["v"] for value in topic.values())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("moment", "at"), first_of(("transacted", 3), ("written", 1), ("prepared", 2), ("transacted", 1))
)
def test_every_row_is_there_once_whenever_the_process_dies(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, at: int
) -> None:
    source, sink = filled(kafka), TestTopic(kafka, 2)
    text = TEXT.format(source=source.said, sink=sink.said)
    prepare, transact = KafkaSink.prepare, KafkaSink.transact
    seen: list[int] = []

    def preparing(self: KafkaSink, epoch: int) -> Any:
        token = prepare(self, epoch)
        if moment == "written" and epoch >= at:
            raise Gone
        return token

    def transacting(self: KafkaSink, epoch: int, batches: Sequence[pa.RecordBatch]) -> None:
        seen.append(epoch)
        if moment == "transacted" or len(seen) < at:
            transact(self, epoch, batches)
        if len(seen) >= at:
            raise Gone

    def run() -> None:
        session = Session(batch_rows=4)
        workspace_of(session).assemble(
            workspace_of(session).prepare(text), checkpoint=str(tmp_path / "kept"), every=1, end=True
        ).run()

    with monkeypatch.context() as patch, pytest.raises(Gone):
        patch.setattr(KafkaSink, "prepare", preparing)
        patch.setattr(KafkaSink, "transact", transact if moment == "written" else transacting)
        run()
    run()
    assert written(sink) == list(range(20))


@pytest.mark.nightly
def test_a_batch_of_spark_that_is_repeated_is_there_once(
    kafka: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    source, sink = filled(kafka), TestTopic(kafka)
    text = TEXT.format(source=source.said, sink=sink.said)
    for end in (False, True):
        Session(spark=spark, batch_rows=8).execute(text, checkpoint=str(tmp_path / "kept"), end=end)
        if not end:
            commits = tmp_path / "kept" / "o" / "spark" / "commits"
            done = sorted((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
            assert len(done) > 1 and written(sink)
            done[-1].unlink()  # as if the driver had died before the batch was settled
            (commits / f".{done[-1].name}.crc").unlink(missing_ok=True)
    assert written(sink) == list(range(20))


def messages(topic: TestTopic) -> list[tuple[bytes | None, bytes | None]]:
    return [(message.key(), message.value()) for message in topic.messages()]


def change_rows(schema: pa.Schema, *changes: tuple[Any, ...]) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*changes, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def test_net_changes_are_upserts_by_the_key_of_the_answer(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    sink = opened(topic, topic.name, Opening(NET, key=("k",)), format="upsert-json")
    sink.write(change_rows(NET, ("+", "a", 1), ("-", "b", 7)))
    sink.commit(0, sink.prepare(0))
    assert messages(topic) == [(b'{"k": "a"}', b'{"k": "a", "n": 1}'), (b'{"k": "b"}', None)]


def test_changes_are_envelopes(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    sink = opened(topic, topic.name, Opening(CHANGES), format="debezium-json", key_fields="k", key_format="raw")
    sink.write(change_rows(CHANGES, ("+", 1_500_001, "a", 1), ("-", 2_000_000, "a", 1)))
    sink.commit(0, sink.prepare(0))
    source = b'"source": {"ts_ms": %d, "ts_us": %d}}'
    assert messages(topic) == [
        (b"a", b'{"before": null, "after": {"k": "a", "n": 1}, "op": "c", ' + source % (1500, 1500001)),
        (b"a", b'{"before": {"k": "a", "n": 1}, "after": null, "op": "d", ' + source % (2000, 2000000)),
    ]


@pytest.mark.nightly
def test_csv_and_arrow(kafka: KafkaBroker) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
    batch = change_rows(schema, ("a\nb", 1), ("c", None))
    csv, arrow = TestTopic(kafka), TestTopic(kafka)
    for topic, form in ((csv, "csv"), (arrow, "arrow")):
        sink = opened(topic, topic.name, Opening(schema), format=form)
        sink.write(batch)
        sink.commit(0, sink.prepare(0))
    assert messages(csv) == [(None, b'"a\nb",1'), (None, b"c,")]
    ((_, value),) = messages(arrow)
    assert pa.ipc.open_stream(value).read_all().to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    ("opening", "properties", "says"),
    [
        (Opening(ROWS), {"format": "xml"}, "no message format 'xml'"),
        (Opening(ROWS), {"format": "upsert-json"}, "rows have a key"),
        (Opening(NET), {"format": "upsert-json"}, "rows have a key"),
        (Opening(NET, key=("k",)), {"format": "debezium-json"}, "rows that come and rows that go"),
        (Opening(ROWS), {"key_fields": "w"}, "no column of the answer"),
        (Opening(NET), {"key_fields": "k;n", "key_format": "raw"}, "one column"),
        (Opening(NET), {"key_fields": "k", "format": "arrow"}, "no key"),
        (Opening(ROWS), {"properties_transactional_id": "x"}, "cannot be set"),
    ],
)
def test_a_sink_that_cannot_be_is_rejected(opening: Opening, properties: dict[str, str], says: str) -> None:
    pytest.importorskip("confluent_kafka")
    said = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "127.0.0.1:1", "format": "json"}
    said |= {name.replace("_", "."): text for name, text in properties.items()}
    with pytest.raises(OptionError, match=says) as error:
        KafkaSink(SinkDeclaration("o", said), opening)
    assert error.value.remedy
