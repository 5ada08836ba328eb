"""The windowed queries of NEXMark as they are written for Flink: accepted as they are, and right against DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.nexmark.data import AUCTION, BID, COLUMNS, PERSON, Size, write_events
from benchmarks.nexmark.flink import QUERIES as FLINK
from benchmarks.nexmark.queries import QUERIES
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.growth import growing
from transom.planner.plan import plan


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    folder: Path = tmp_path_factory.mktemp("events")
    write_events(Size(3_000, step=40_000), folder)
    found = {name: pq.read_table(sorted((folder / name).glob("*.parquet"))) for name in (PERSON, AUCTION, BID)}
    for name, table in found.items():  # without a time zone, as the streams are declared
        naive = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        found[name] = table.cast(pa.schema(naive))
    return found


def declared(name: str) -> str:
    columns = ", ".join(f"{column} {type_}" for column, type_ in COLUMNS[name].items())
    return f"CREATE STREAM {name} ({columns}, WATERMARK FOR date_time AS date_time);"


@pytest.mark.parametrize("name", ["q5", "q7", "q8", "q11", "q12"])
def test_as_flink_writes_it(name: str, events: dict[str, pa.Table]) -> None:
    query = next(query for query in QUERIES.values() if query.name == name)
    text = FLINK[name][1].replace("DESCRIPTOR(rt)", "DESCRIPTOR(`date_time`)")
    catalogue = Catalogue()
    statement = parse_statements("\n".join(map(declared, events)) + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    root = plan(statement.query, catalogue)
    assert growing(root, "changes") == []
    pipeline = Pipeline(root, catalogue)
    for stream in query.streams:
        pipeline.push(stream, events[stream].combine_chunks().to_batches()[0])
        pipeline.end(stream)
    output, _ = pipeline.advance()
    assert output is not None
    change, _, *values = (column.to_pylist() for column in output.rows.columns)
    assert set(change) == {"+"}
    database = duckdb.connect()
    for stream in query.streams:
        database.register(stream, events[stream])
    expected = database.execute(query.sql).fetchall()
    assert expected and Counter(zip(*values, strict=True)) == Counter(expected)
