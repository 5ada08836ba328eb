from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.reading import read_all
from transom.connectors.connector import Opening, Sink, SinkDeclaration
from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.open import check_sink, open_sink_of, open_source
from transom.core.errors import OptionError, SourceError
from transom.core.schema import INTEGER, TIMESTAMP, Schema
from transom.plan.catalogue import SinkDefinition, StreamDefinition, TableDefinition, TimeColumn

COLUMNS = Schema.of(("n", INTEGER), ("ts", TIMESTAMP))
ANSWER = pa.schema([("n", pa.int32())])


def open_sink(definition: SinkDefinition) -> Sink:
    return open_sink_of(definition, SinkDeclaration(definition.name, definition.properties))(Opening(ANSWER))


def stream(**properties: str) -> StreamDefinition:
    return StreamDefinition("s", COLUMNS, TimeColumn("ts", 0), properties=properties)


def test_the_connector_is_chosen_by_its_name(tmp_path: Path) -> None:
    assert isinstance(open_source(stream(connector="files", path=str(tmp_path))), FileSource)
    assert isinstance(open_source(stream(connector="memory")), MemorySource)
    assert isinstance(open_sink(SinkDefinition("o", properties={"connector": "Memory"})), MemorySink)
    files = SinkDefinition("o", properties={"connector": "files", "path": str(tmp_path / "o.csv")})
    assert isinstance(open_sink(files), FileSink)


@pytest.mark.parametrize(
    ("properties", "what", "remedy"),
    [
        ({}, "does not say where it is", "path = .."),
        ({"connector": "pulsar"}, "no connector 'pulsar'", "'files', 'generator',"),
        ({"connector": "files"}, "needs a path", "path = '..'"),
        ({"connector": "files", "path": ""}, "needs a path", "path = '..'"),
        ({"connector": "files", "path": "a\0b"}, "zero character", "path of a file"),
        ({"connector": "files", "path": "a", "format": "xml"}, "no file format 'xml'", "parquet, csv, jsonl"),
        ({"connector": "files", "path": "a", "fromat": "csv"}, "no property 'fromat'", "write format"),
        ({"connector": "files", "path": "a", "colour": "red"}, "no property 'colour'", "its properties are"),
        ({"connector": "files", "path": "a", "delimiter": "ab"}, "delimiter", "one character"),
        ({"connector": "files", "path": "a", "delimiter": '"'}, "delimiter", "one character"),
        ({"connector": "files", "path": "a", "null": 'a"'}, "null text", "null ="),
        ({"connector": "files", "path": "a", "null": ";", "delimiter": ";"}, "null text", "null ="),
        ({"connector": "files", "path": "a", "time_unit": "days"}, "time_unit cannot be 'days'", "'us'"),
        ({"connector": "memory", "path": "a"}, "no property 'path'", "connector"),
    ],
)
def test_wrong_properties_are_rejected_with_a_remedy(properties: dict[str, str], what: str, remedy: str) -> None:
    with pytest.raises(OptionError) as error:
        open_source(stream(**properties))
    assert what in error.value.what
    assert remedy in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({}, "does not say where it is"),
        ({"connector": "files"}, "needs a path"),
        ({"connector": "files", "path": "out"}, "does not tell the format"),
        ({"connector": "files", "path": "out.csv", "time_unit": "s"}, "no property 'time_unit'"),
        ({"connector": "memory", "format": "csv"}, "no property 'format'"),
    ],
)
def test_wrong_properties_of_a_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError) as error:
        check_sink(SinkDefinition("o", properties=properties))
    assert what in error.value.what
    assert error.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_delimiters_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\tts\n1\t2024-05-01\n")
    for name in ("tab", "\t", "\\t"):
        opened = open_source(stream(connector="files", path=str(tmp_path / "a.csv"), delimiter=name))
        assert [row["n"] for row in read_all(opened).rows] == [1]


def test_the_time_of_a_stream_must_be_there_but_not_that_of_a_static_table(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    where = {"connector": "files", "path": str(tmp_path / "a.jsonl")}
    assert len(read_all(open_source(stream(**where))).rejected) == 1
    table = TableDefinition("t", COLUMNS, properties=where)
    assert read_all(open_source(table)).rows == [{"n": 1, "ts": None}]
    arrival = open_source(replace(stream(**where), arrival_time=True))
    assert read_all(arrival).rows == [{"n": 1, "ts": None}]


def test_memory_gives_back_what_was_appended() -> None:
    source = open_source(stream(connector="memory"))
    assert isinstance(source, MemorySource)
    assert source.read({}, 5).ended
    may = datetime(2024, 5, 1)
    source.append(pa.record_batch({"TS": pa.array([may, None]), "n": [1, 2]}))
    source.append(pa.record_batch({"ts": pa.array([may, may]), "n": [3, 2**40]}))
    for step in (1, 2, 3, 9):
        everything = read_all(source, step=step)
        assert [row["n"] for row in everything.rows] == [1, 3]
        assert [row["position"] for row in everything.rejected] == ["memory, row 2", "memory, row 4"]
    for position in everything.positions:
        assert read_all(source, position).rows == []
    with pytest.raises(SourceError, match="no column 'n'"):
        source.append(pa.record_batch({"ts": pa.array([may])}))


def test_memory_stamps_nothing_itself() -> None:
    source = open_source(replace(stream(connector="memory"), arrival_time=True))
    assert isinstance(source, MemorySource)
    source.append(pa.record_batch({"n": [1]}))
    assert read_all(source).rows == [{"n": 1, "ts": None}]


def test_a_memory_sink_collects() -> None:
    sink = MemorySink(ANSWER)
    for value in (1, 2):
        sink.write(pa.record_batch([pa.array([value], pa.int32())], schema=ANSWER))
        sink.commit(value, sink.prepare(value))
    assert sink.table().to_pylist() == [{"n": 1}, {"n": 2}]
    sink.replace(pa.record_batch([pa.array([7], pa.int32())], schema=ANSWER))
    sink.close()
    assert sink.table().to_pylist() == [{"n": 7}]
