"""Topics of changes as changing tables, and answers as topics of changes: there and back again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connectors.kafka_topics import TestTopic
from tests.profile import first_of
from transom.connectors.conform import DeclaredRows
from transom.connectors.message_changes import SOURCE_TIME, DebeziumJson, UpsertJson
from transom.core.errors import OptionError
from transom.core.schema import BIGINT, VARCHAR, Schema
from transom.plan.catalogue import Catalogue
from transom.program.growth_notes import growth_notes
from transom.program.planned import read_program
from transom.session import Session
from transom.testing.kafka_broker import KafkaBroker

ROW = DeclaredRows(Schema.of(("id", BIGINT), ("name", VARCHAR)))


def envelope(op: str, before: Any, after: Any, ts_ms: int, **more: Any) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": {"ts_ms": ts_ms, "db": "x"},
        "op": op,
        "ts_ms": ts_ms + 5,
        **more,
    }


def changes(parsed: Any) -> list[tuple[Any, ...]]:
    parts, _ = parsed
    return sorted(
        (int(origin), sign, *row)
        for part in parts
        for origin, sign, *row in zip(
            part.rows.origin, part.signs.to_pylist(), *(c.to_pylist() for c in part.rows.columns), strict=True
        )
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_envelopes_become_changes(wrapped: bool) -> None:
    ann, bob = {"id": 1, "name": "ann"}, {"id": 1, "name": "bob", "more": [1]}
    said = [
        envelope("r", None, ann, 1),
        envelope("u", ann, bob, 2),
        None,
        envelope("d", bob, None, 3),
        envelope("u", None, bob, 4),
        envelope("t", None, None, 5),
        envelope("c", None, None, 6),
        {"op": "c", "after": {"id": "x"}},
    ]
    values = [None if v is None else json.dumps({"schema": {}, "payload": v} if wrapped else v).encode() for v in said]
    values.append(b"junk")
    keyed = DebeziumJson(ROW, True, wrapped, "t").parsed(values)
    assert changes(keyed) == [(0, "+", 1, "ann"), (1, "+", 1, "bob"), (3, "-", 1, "bob"), (4, "+", 1, "bob")]
    assert sorted(keyed[1]) == [5, 6, 7, 8] and "none of c, r, u and d" in keyed[1][5]
    assert keyed[0][0].times[SOURCE_TIME].cast("int64").to_pylist() == [1000, 2000, 3000, 4000]
    bag = DebeziumJson(ROW, False, wrapped, "t").parsed(values)
    assert changes(bag) == [(0, "+", 1, "ann"), (1, "+", 1, "bob"), (1, "-", 1, "ann"), (3, "-", 1, "bob")]
    signs = bag[0][0].signs
    assert signs is not None and signs.to_pylist() == ["+", "-", "+", "-"], "what goes is before what comes"
    assert "REPLICA IDENTITY FULL" in bag[1][4]


def test_upserts_become_changes() -> None:
    parsed = UpsertJson(ROW).parsed([b'{"id": 1, "name": "ann"}', None, b"junk", b'{"id": 2}'])
    assert changes(parsed) == [(0, "+", 1, "ann"), (1, "-", None, None), (3, "+", 2, None)]
    assert sorted(parsed[1]) == [2]


TABLE = """
CREATE TABLE users (id BIGINT, name VARCHAR, ts TIMESTAMP METADATA FROM '{time}', {key} WATERMARK FOR ts AS ts)
    WITH ({said}, format = '{format}');
"""


def test_a_topic_of_upserts_is_a_changing_table(kafka: KafkaBroker) -> None:
    topic = TestTopic(kafka)
    for second, (id_, name) in enumerate([(1, "ann"), (2, "bob"), (1, "eve"), (1, "eve"), (2, None), (2, None)]):
        value = None if name is None else {"id": id_, "name": name}
        topic.write(value, key={"id": id_}, timestamp=1000 * (second + 1))
    session = Session()
    session.execute(TABLE.format(said=topic.said, format="upsert-json", time="timestamp", key="PRIMARY KEY (id),"))
    rows: list[Any] = session.run("SELECT id, name FROM users").to_pylist()
    assert [(r["change"], r["at"].second, r["id"], r["name"]) for r in rows] == [
        ("+", 1, 1, "ann"),
        ("+", 2, 2, "bob"),
        ("-", 3, 1, "ann"),
        ("+", 3, 1, "eve"),
        ("-", 5, 2, "bob"),
    ], "what is repeated changes nothing"
    letters = session.run("SELECT reason FROM transom_dead_letters", emit="latest").to_pylist()
    assert letters == [{"reason": "a '-' without its row"}], "and a repeated delete is named"


@pytest.mark.parametrize("key", ["PRIMARY KEY (id) NOT ENFORCED,", ""])
def test_a_table_whose_changes_may_count_twice_is_named(key: str) -> None:
    pytest.importorskip("confluent_kafka")
    said = "connector = 'kafka', topic = 't', 'properties.bootstrap.servers' = '127.0.0.1:1'"
    text = TABLE.format(said=said, format="debezium-json", time=SOURCE_TIME, key=key)
    notes = growth_notes(read_program(text, Catalogue()))
    assert len(notes) == (not key) and all("'users'" in note and "declare its PRIMARY KEY" in note for note in notes)


@pytest.mark.nightly
@pytest.mark.parametrize("key", ["PRIMARY KEY (id) NOT ENFORCED,", ""])
def test_a_topic_of_debezium_is_a_changing_table(kafka: KafkaBroker, key: str) -> None:
    topic = TestTopic(kafka)
    ann, eve = {"id": 1, "name": "ann"}, {"id": 1, "name": "eve"}
    topic.write(envelope("c", None, ann, 1000), envelope("u", ann, eve, 2000), envelope("d", eve, None, 3000), None)
    session = Session()
    session.execute(TABLE.format(said=topic.said, format="debezium-json", time=SOURCE_TIME, key=key))
    rows: list[Any] = session.run("SELECT id, name FROM users").to_pylist()
    assert [(r["change"], r["at"].second, r["name"]) for r in rows] == [
        ("+", 1, "ann"),
        ("-", 2, "ann"),
        ("+", 2, "eve"),
        ("-", 3, "eve"),
    ]
    columns = session.execute("DESCRIBE users")[0].to_pylist()
    assert [row["column"] for row in columns][:3] == ["id", "name", "ts"]


PROGRAM = """
CREATE STREAM s (ts TIMESTAMP, k VARCHAR, v INTEGER, WATERMARK FOR ts AS ts) WITH ({source}, format = 'json');
CREATE SINK out WITH ({sink}, format = '{format}', emit = '{emit}');
INSERT INTO out SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s{window} GROUP BY k
"""
BACK = """
CREATE TABLE back (k VARCHAR, n BIGINT, total DECIMAL(38, 0), ts TIMESTAMP METADATA FROM '{time}', PRIMARY KEY (k),
    WATERMARK FOR ts AS ts) WITH ({said}, format = '{format}');
"""


def there_and_back(
    kafka: KafkaBroker, session: Callable[[], Session], checkpoint: Path, form: str, emit: str
) -> tuple[TestTopic, list[dict[str, Any]]]:
    """Counts are written to a topic, and read from there as a table, all of it as it is emitted."""
    source, sink = TestTopic(kafka), TestTopic(kafka)
    source.write(*({"ts": f"2024-05-01 10:00:{i:02}", "k": "abc"[i % 3], "v": i} for i in range(30)))
    source.write({"ts": "2024-05-01 10:01:00", "k": "z", "v": 1})
    window, time = ("", "timestamp") if emit == "net" else (" [RANGE 3 SECONDS]", SOURCE_TIME)
    text = PROGRAM.format(source=source.said, sink=sink.said, format=form, emit=emit, window=window)
    session().execute(text, checkpoint=str(checkpoint))
    reader = Session()
    reader.execute(BACK.format(said=sink.said, format=form, time=time))
    answer = reader.run("SELECT k, n, total FROM back", emit="latest" if emit == "net" else "changes")
    return source, answer.to_pylist()


@pytest.mark.nightly
@pytest.mark.parametrize("batch_rows", first_of(4, 1000))
def test_envelopes_that_were_written_are_read_as_the_same_relation(
    kafka: KafkaBroker, tmp_path: Path, batch_rows: int
) -> None:
    source, answer = there_and_back(kafka, lambda: Session(batch_rows=batch_rows), tmp_path, "debezium-json", "changes")
    direct = Session()
    direct.execute(
        PROGRAM.format(source=source.said, sink="", format="", emit="", window="").partition("CREATE SINK")[0]
    )
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 3 SECONDS] GROUP BY k"
    everything: list[Any] = direct.run(query, emit="changes").to_pylist()
    expected = [row for row in everything if row["at"].minute == 0]

    def ordered(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(str(sorted(row.items())) for row in rows)

    assert ordered(answer) == ordered(expected)


def check_upserts(kafka: KafkaBroker, opened: Callable[[], Session], folder: Path) -> None:
    _, answer = there_and_back(kafka, opened, folder, "upsert-json", "net")
    counts = sorted((row["k"], row["n"], int(row["total"])) for row in answer)
    assert counts == [("a", 10, 135), ("b", 10, 145), ("c", 10, 155)]


@pytest.mark.nightly
def test_upserts_that_were_written_are_read_as_the_same_table(kafka: KafkaBroker, tmp_path: Path) -> None:
    check_upserts(kafka, lambda: Session(batch_rows=4), tmp_path)


@pytest.mark.nightly
def test_upserts_of_spark_are_read_as_the_same_table(kafka: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    check_upserts(kafka, lambda: Session(spark=spark, batch_rows=8), tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TABLE.format(said="{}", format="upsert-json", time="timestamp", key=""), "needs a key"),
        (
            "CREATE STREAM s (id BIGINT, ts TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR ts AS ts)"
            " WITH ({}, format = 'debezium-json')",
            "change the rows of a table",
        ),
        (
            "CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
            " WITH ({}, format = 'upsert-json')",
            "time of a change is not among the values",
        ),
        (
            "CREATE STREAM s (id BIGINT, ts TIMESTAMP METADATA FROM 'value.source.timestamp', WATERMARK FOR ts AS ts)"
            " WITH ({}, format = 'json')",
            "has no 'value.source.timestamp'",
        ),
    ],
)
def test_what_is_no_table_of_changes_is_rejected(text: str, says: str) -> None:
    pytest.importorskip("confluent_kafka")
    said = "connector = 'kafka', topic = 't', 'properties.bootstrap.servers' = '127.0.0.1:1'"
    session = Session()
    with pytest.raises(OptionError, match=says) as error:
        session.execute(text.format(said))
        session.run("SELECT id FROM users" if "users" in text else "SELECT id FROM s")
    assert error.value.remedy
