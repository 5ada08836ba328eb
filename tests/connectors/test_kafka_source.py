"""A topic read as a source: by offsets, as committed, from where it is said, with what is wrong by its offset."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.kafka_topics import TestTopic, until
from transom.connectors.conform import DeclaredRows
from transom.connectors.connector import Declaration, Limits, Plan, SinkDeclaration, Source
from transom.connectors.kafka_client import Topic
from transom.connectors.kafka_sink import check_start
from transom.connectors.kafka_source import KafkaSource
from transom.connectors.message_values import JsonValues
from transom.core.errors import OptionError, SinkError, SourceError
from transom.core.schema import INTEGER, TIMESTAMP, Schema
from transom.session import Session
from transom.testing.kafka_broker import BrokerUnavailable, KafkaBroker

COLUMNS = Schema.of(("ts", TIMESTAMP), ("v", INTEGER))


def row(second: int, **more: Any) -> dict[str, Any]:
    return {"ts": f"2024-05-01 10:00:{second:02}", "v": second, **more}


def source_of(topic: TestTopic, **properties: str) -> KafkaSource:
    said = {"format": "json", **{name.replace("__", "-").replace("_", "."): text for name, text in properties.items()}}
    return KafkaSource(Declaration("s", COLUMNS, topic.properties | said, time_column="ts"))


def read(source: Source, plan: Plan) -> list[Any]:
    return [v for split in plan.splits for part in source.read_split(split) for v in part.rows.column("v").to_pylist()]


@pytest.mark.nightly
def test_offsets_are_planned_and_read_again(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka, 2)
    topic.write(*map(row, range(10)))
    topic.write(*map(row, range(30, 35)), partition=1)
    source = source_of(topic)
    first = source.plan({}, Limits(6))
    assert first.position == {"0": 4, "1": 2} and not first.ended and first.live == {"0": False, "1": False}
    assert read(source, first) == [0, 1, 2, 3, 30, 31]
    second = source.plan(first.position, Limits())
    assert second.ended and second.live == {"0": True, "1": True}
    assert read(source, second) == [4, 5, 6, 7, 8, 9, 32, 33, 34]
    assert read(source_of(topic), first) == [0, 1, 2, 3, 30, 31], "whoever reads a split, and however often"
    whole = source.plan({}, Limits()).splits[0]
    cut = [whole.part(0, 3), whole.part(3, 10)]
    assert [v for part in cut for v in read(source, Plan({}, (part,), True))] == list(range(10))
    assert source.plan(second.position, Limits()).splits == ()


@pytest.mark.nightly
def test_what_is_not_committed_is_not_there(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    topic.write(row(1), row(2), transaction="committed")
    topic.write(row(3), transaction="aborted")
    topic.write(row(4), transaction="committed")
    source = source_of(topic)
    plan = source.plan({}, Limits())
    assert plan.position == {"0": 7}, "markers of transactions have offsets"
    assert read(source, plan) == [1, 2, 4]
    topic.write(row(5), transaction="open")
    topic.write(row(6))
    held = source.plan(plan.position, Limits())
    assert held.position == plan.position and held.ended, "the end is the last stable offset"
    topic.open_transaction.abort_transaction(30)
    until(lambda: bool(source.plan(plan.position, Limits()).splits))
    assert read(source, source.plan(plan.position, Limits())) == [6]


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, [1, 2, 3]),
        ({"scan_startup_mode": "latest-offset"}, []),
        ({"scan_startup_mode": "timestamp", "scan_startup_timestamp__millis": "2000"}, [2, 3]),
        ({"scan_startup_mode": "timestamp", "scan_startup_timestamp__millis": "9000"}, []),
        (
            {"scan_startup_mode": "specific-offsets", "scan_startup_specific__offsets": "partition:0,offset:1"},
            [2, 3],
        ),
    ],
)
def test_it_begins_where_it_is_said(kafka: KafkaBroker, properties: dict[str, str], found: list[int]) -> None:
    topic = TestTopic(kafka, 2)
    for second, partition in ((1, 0), (2, 0), (3, 1)):
        topic.write(row(second), partition=partition, timestamp=second * 1000)
    source = source_of(topic, **properties)
    assert read(source, source.plan({}, Limits())) == found
    topic.write(row(4), timestamp=4000)
    more = [*found, 4] if 3 not in found else [*found[:-1], 4, 3]
    if properties.get("scan_startup_timestamp__millis") == "9000":
        more = [4]
    assert read(source, source.plan({}, Limits())) == more, "the latest is that of the first look"


@pytest.mark.nightly
def test_partitions_that_come_later_are_read_from_their_beginning(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    topic.write(row(1))
    source = source_of(
        topic,
        scan_startup_mode="latest-offset",
        scan_topic__partition__discovery_interval="0.01 SECONDS",
    )
    plan = source.plan({}, Limits())
    assert plan.position == {"0": 1}
    topic.grow(3)
    topic.write(row(2), partition=2)
    until(lambda: len(source.plan(plan.position, Limits()).position) == 3)
    assert read(source, source.plan(plan.position, Limits())) == [2]


@pytest.mark.nightly
def test_retention_that_was_faster_is_an_error_with_the_number_of_offsets(kafka: KafkaBroker) -> None:
    from confluent_kafka import TopicPartition

    topic = TestTopic(kafka)
    topic.write(*map(row, range(9)))
    source = source_of(topic)
    plan = source.plan({}, Limits(2))
    assert read(source, plan) == [0, 1]
    removed = topic.admin.delete_records([TopicPartition(topic.name, 0, 7)])
    next(iter(removed.values())).result(30)
    fresh = source_of(topic, properties_client_id="another")
    with pytest.raises(SourceError, match="retention has removed 5 offsets") as error:
        read(fresh, fresh.plan(plan.position, Limits()))
    assert error.value.remedy
    with pytest.raises(SourceError, match="ends at offset 9, and it had been read to offset 100"):
        fresh.plan({"0": 100}, Limits())


def test_bad_messages_are_dead_letters_with_their_offsets(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    topic.write(
        row(1), "junk", None, '{"ts": "2024-05-01 10:00:02",\n "v": 2}\n', row(3) | {"v": "x"}, b"\xff", '{}{"v":1}'
    )
    source = source_of(topic)
    (split,) = source.plan({}, Limits()).splits
    parts = list(source.read_split(split))
    assert [v for part in parts for v in part.rows.column("v").to_pylist()] == [1, 2]
    rejected = [each for part in parts for each in part.rejected]
    assert [each.position.rpartition(", ")[2] for each in rejected] == [f"offset {at}" for at in (1, 2, 4, 5, 6)]
    assert f"topic {topic.name}, partition 0" in rejected[0].position
    assert rejected[1].reason == "the message has no value" and "cannot hold 'x'" in rejected[2].reason


def test_a_field_that_is_missing_can_be_told() -> None:
    declared = DeclaredRows(COLUMNS)
    values = [b'{"ts": "x", "V": 1}', b'{"ts": "x", "v": null}', b'{"ts": "x"}', b"junk", b'{"v": {"ts": 1}}']
    parts, wrong = JsonValues(declared, complete=True).parsed(values)
    assert sorted(row for part in parts for row in part.origin.tolist()) == [0, 1]
    assert {row: why for row, why in wrong.items() if row in (2, 3)}[2] == "has no field 'v'"
    assert sorted(wrong) == [2, 3, 4]
    parts, wrong = JsonValues(declared).parsed(values[:3])
    assert not wrong and sum(len(part.origin) for part in parts) == 3


@pytest.mark.nightly
def test_csv_is_in_the_order_of_the_columns(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    good = ["2024-05-01 10:00:01,1", '"2024-05-01 10:00:02",2\n']
    topic.write(good[0], "2024-05-01 10:00:01,1\n2024-05-01 10:00:09,9", good[1], '"2024-05-01 10:00:03,3', "", "1,2,3")
    source = source_of(topic, format="csv")
    (split,) = source.plan({}, Limits()).splits
    parts = list(source.read_split(split))
    assert [v for part in parts for v in part.rows.column("v").to_pylist()] == [1, 2]
    assert [each.position[-1] for part in parts for each in part.rejected] == ["1", "3", "4", "5"]


@pytest.mark.nightly
def test_arrow_messages_have_many_rows(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)

    def message(**columns: list[Any]) -> bytes:
        batch = pa.record_batch(columns)
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(out.getvalue())

    topic.write(message(V=[1, 2], ts=["2024-05-01 10:00:00"] * 2), b"no", message(w=[1]))
    topic.write(message(ts=["2024-05-01 10:00:01"], v=[3]))
    source = source_of(topic, format="arrow")
    (split,) = source.plan({}, Limits()).splits
    parts = list(source.read_split(split))
    assert [v for part in parts for v in part.rows.column("v").to_pylist()] == [1, 2, 3]
    reasons = [each.reason for part in parts for each in part.rejected]
    assert "no Arrow IPC stream" in reasons[0] and "has no column 'ts'" in reasons[1]


def test_keys_and_metadata_are_columns(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka, 2)
    topic.write({"v": 1}, partition=1, key={"name": "ann"}, timestamp=5000, headers=[("h", b"x")])
    topic.write("junk", partition=1, key={"name": "joe"})
    topic.write({"v": 2}, partition=1, key="junk")
    topic.write({"v": 3}, partition=1, key={"name": "bob"}, timestamp=7000)
    session = Session()
    session.execute(f"""
        CREATE STREAM s (
            name VARCHAR, v INTEGER, at TIMESTAMP METADATA FROM 'timestamp', partition INTEGER METADATA VIRTUAL,
            "offset" BIGINT METADATA, topic VARCHAR METADATA, headers STRUCT(key VARCHAR, value VARCHAR)[] METADATA,
            WATERMARK FOR at AS at
        ) WITH ({topic.said}, 'value.format' = 'json', 'key.format' = 'json', 'key.fields' = 'name')""")
    rows = session.run('ISTREAM(SELECT name, v, partition, "offset", topic, headers FROM s)').to_pylist()
    assert [(r["name"], r["v"], r["partition"], r["offset"], r["topic"]) for r in rows] == [
        ("ann", 1, 1, 0, topic.name),
        ("bob", 3, 1, 3, topic.name),
    ]
    assert [r["headers"] for r in rows] == [[{"key": "h", "value": "x"}], []]
    letters = session.run("SELECT reason FROM transom_dead_letters", emit="latest").to_pylist()
    assert len(letters) == 2 and any("a key that is not valid JSON" in str(letter["reason"]) for letter in letters)


def test_a_query_resumes_at_its_offsets(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = TestTopic(kafka, 2)
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
            WITH ({topic.said}, format = 'json');
        CREATE SINK o WITH (connector = 'files', path = '{tmp_path}/o.csv');
        INSERT INTO o ISTREAM(SELECT v FROM s)"""
    for first in (0, 10, 20):
        topic.write(*map(row, range(first, first + 10, 2)))
        topic.write(*map(row, range(first + 1, first + 10, 2)), partition=1)
        Session(batch_rows=4).execute(text, checkpoint=str(tmp_path / "kept"), end=first == 20)
    lines = (tmp_path / "o.csv").read_text().splitlines()[1:]
    assert sorted(int(line.rpartition(",")[2]) for line in lines) == list(range(30))


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"topic": ""}, "needs a topic"),
        ({"properties.bootstrap.servers": None}, "needs the address of a broker"),
        ({"format": "xml"}, "no message format 'xml'"),
        ({"format": None}, "have a format"),
        ({"properties.no.such.thing": "1"}, "rejects its properties"),
        ({"properties.auto.offset.reset": "latest"}, "cannot be set"),
        ({"scan.startup.mode": "newest"}, "cannot be read from 'newest'"),
        ({"scan.startup.mode": "timestamp"}, "belong together"),
        ({"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "0:1"}, "names no offsets"),
        ({"key.fields": "w"}, "which is no column"),
        ({"key.format": "json"}, "without 'key.fields'"),
        ({"metadata.v": "colour"}, "no metadata 'colour'"),
        ({"metadata.v": "timestamp"}, "is a INTEGER"),
        ({"tpic": "x"}, "no property 'tpic'"),
    ],
)
def test_a_wrong_declaration_is_rejected(properties: dict[str, str | None], says: str) -> None:
    pytest.importorskip("confluent_kafka")
    given: dict[str, str | None] = {
        "connector": "kafka",
        "topic": "t",
        "properties.bootstrap.servers": "127.0.0.1:1",
        "format": "json",
        **properties,
    }
    said = {name: text for name, text in given.items() if text is not None}
    with pytest.raises(OptionError, match=says) as error:
        source = KafkaSource(Declaration("s", COLUMNS, said, time_column="ts"))
        source.plan({}, Limits())
    assert error.value.remedy


def test_a_broker_that_has_just_started_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may know no topic and no leaders of partitions, or be behind what the client has seen, or answer without an
    offset and without an error: that is no end of a partition, and no beginning. A handle that asks by an older leader
    does so again and again."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    latest = pytest.importorskip("confluent_kafka.admin").OffsetSpec.latest()
    codes = confluent_kafka.KafkaError
    errors = [codes(code) for code in (codes._NOENT, codes.UNKNOWN_TOPIC_OR_PART, codes.FENCED_LEADER_EPOCH)]
    offsets = [SimpleNamespace(offset=offset) for offset in (confluent_kafka.OFFSET_INVALID, 7)]
    answers = iter([*map(confluent_kafka.KafkaException, errors), *offsets])

    class Handle:
        def __init__(self) -> None:
            self.rejected: Any = None

        def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
            answered: Future[Any] = Future()
            answer = self.rejected or next(answers)
            if isinstance(answer, Exception):
                self.rejected = answer if answer.args[0].code() > 0 else None
                answered.set_exception(answer)
            else:
                answered.set_result(answer)
            return dict.fromkeys(wanted, answered)

        def poll(self, _: float) -> None:
            pass

    monkeypatch.setattr("transom.connectors.kafka_client.made", lambda *_: Handle())
    monkeypatch.setattr("transom.connectors.kafka_client.PATIENCE", 5.0)
    assert Topic("t", {}).offsets([0], latest) == {0: 7}


def test_avro_is_rejected_with_what_to_do() -> None:
    pytest.importorskip("confluent_kafka")
    said = {
        "connector": "kafka",
        "topic": "t",
        "properties.bootstrap.servers": "127.0.0.1:1",
        "format": "avro-confluent",
    }
    with pytest.raises(OptionError, match="no message format 'avro-confluent'") as error:
        KafkaSource(Declaration("s", COLUMNS, said, time_column="ts"))
    assert error.value.remedy == "have the topic written as json or arrow, or register a connector that decodes Avro"


def test_a_topic_or_broker_that_is_not_there_is_an_error(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = TestTopic(kafka)
    topic.name = "nobody-has-made-it"
    with pytest.raises(SourceError, match="there is no topic"):
        source_of(topic).plan({}, Limits())
    monkeypatch.setattr("transom.connectors.kafka_client.PATIENCE", 60.0)
    monkeypatch.setattr("transom.connectors.kafka_client._FIRST", 0.5)
    monkeypatch.setattr("transom.connectors.kafka_client._REQUEST", 0.5)
    properties = topic.properties | {"properties.bootstrap.servers": "127.0.0.1:1", "format": "json"}
    with pytest.raises(SourceError, match=r"at 127.0.0.1:1 cannot be read: no broker answers: .*Connection refused"):
        KafkaSource(Declaration("s", COLUMNS, properties, time_column="ts")).plan({}, Limits())
    with pytest.raises(SinkError, match=r"at 127.0.0.1:1 cannot be written to: no broker answers"):
        check_start(SinkDeclaration("o", properties))
    check_start(SinkDeclaration("o", topic.properties | {"format": "json"}))  # a topic that the broker makes


@pytest.mark.nightly
def test_a_wrong_password_and_a_topic_that_nobody_makes_are_errors_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the patience that a broker is met with that may be starting again."""
    monkeypatch.setattr("transom.connectors.kafka_client._FIRST", 3600.0)
    monkeypatch.setattr("transom.connectors.kafka_client.PATIENCE", 3600.0)
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
        ' required username="broker" password="b" user_broker="b" user_ann="right";',
        "auto.create.topics.enable": "false",
    }
    try:
        broker = KafkaBroker(settings)
    except BrokerUnavailable as why:
        pytest.skip(f"there is no Kafka broker: {why}")
    with broker:
        said = {
            "connector": "kafka",
            "topic": "nobody",
            "properties.bootstrap.servers": broker.servers,
            "format": "json",
        }
        said |= {"properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN"}
        for password, says, remedy in (
            ("wrong", "Invalid username or password", "check 'properties.sasl.'"),
            ("right", "there is no topic 'nobody' at 127.0.0.1", "create it"),
        ):
            said |= {"properties.sasl.username": "ann", "properties.sasl.password": password}
            with pytest.raises(SourceError, match=says) as source:
                KafkaSource(Declaration("s", COLUMNS, said, time_column="ts")).plan({"0": 7}, Limits())
            with pytest.raises(SinkError, match=says) as sink:
                check_start(SinkDeclaration("o", said))
            for error in (source.value, sink.value):
                assert str(error.remedy).startswith(remedy) and password not in str(error)


def test_the_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(OptionError, match="confluent-kafka") as error:
        KafkaSource(Declaration("s", COLUMNS, {"connector": "kafka"}))
    assert error.value.remedy == "pip install 'transom[kafka]'"


@pytest.mark.nightly
def test_a_run_that_follows_reads_what_comes(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    topic.write(row(1))
    session = Session()
    session.execute(f"""
        CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts) WITH ({topic.said}, format = 'json')
    """)
    query = session.start("ISTREAM(SELECT v FROM s)", follow=True)
    try:
        time.sleep(0.3)
        topic.write(row(2), row(3))
        until(lambda: query.status.inputs[0].rows_in == 3)
    finally:
        query.stop()


@pytest.mark.nightly
def test_a_topic_can_be_a_table_that_never_changes_or_be_stamped_on_arrival(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka, 2)
    for partition in (0, 1):
        topic.write({"id": partition, "name": "ab"[partition]}, partition=partition)
    session = Session()
    session.execute(f"""
        CREATE TABLE names (id INTEGER, name VARCHAR) WITH ({topic.said}, format = 'json');
        CREATE STREAM arrivals (id INTEGER) WITH ({topic.said}, format = 'json', time = 'arrival');
    """)
    rows = session.run(
        "ISTREAM(SELECT a.id, n.name FROM arrivals [NOW] AS a, names AS n WHERE a.id = n.id)"
    ).to_pylist()
    assert sorted((str(row["id"]), str(row["name"])) for row in rows) == [("0", "a"), ("1", "b")]
