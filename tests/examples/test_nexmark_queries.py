"""The queries of examples/nexmark, in Flink's words: accepted as they are, and right against DuckDB."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.nexmark.data import COLUMNS
from tests.examples.nexmark_answers import ANSWERS
from tests.examples.readme import EXAMPLES, follow
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Stream
from transom.plan.catalogue import Catalogue, InsertStatement
from transom.planner.growth import growing
from transom.planner.plan import plan

FOLDER = EXAMPLES / "nexmark"
BOUNDED = {"q0", "q1", "q2", "q5", "q8", "q10", "q11", "q12", "q13", "q14", "q21", "q22"}
"""Of these nothing stays that input could make ever more of."""

Inputs = dict[str, pa.RecordBatch]


def naive(table: pa.Table) -> pa.Table:
    """Times without a zone, as the streams are declared."""
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Two minutes: twelve windows, and bidders who come back after a session."""
    folder = tmp_path_factory.mktemp("nexmark")
    runpy.run_path(str(FOLDER / "make_data.py"))["main"](folder, events=3_000, step=40_000)
    tables = {path.stem: naive(pq.read_table(path)) for path in folder.glob("*.parquet")}
    return {name: table.combine_chunks().to_batches()[0] for name, table in tables.items()}


@pytest.fixture(scope="module")
def database(inputs: Inputs) -> duckdb.DuckDBPyConnection:
    """The events with the names of the benchmark."""
    connection = duckdb.connect()
    for name, batch in inputs.items():
        connection.register(name, pa.table(batch).rename_columns(list(COLUMNS[name])))
    return connection


def answer(text: str, inputs: Inputs) -> tuple[Counter[tuple[Any, ...]], bool]:
    """The rows that are there in the end, and whether state is bounded."""
    catalogue = Catalogue()
    statement = parse_statements(text, catalogue)[-1]
    assert isinstance(statement, InsertStatement)
    root = plan(statement.query, catalogue)
    pipeline = Pipeline(root, catalogue)
    for name in pipeline.names:
        pipeline.push(name, inputs[name])
    for name in pipeline.inputs:
        pipeline.end(name)
    output, _ = pipeline.advance()
    assert output is not None
    columns = [column.to_pylist() for column in output.rows.columns]
    if isinstance(statement.query, Stream):  # rows that came, each with its instant
        rows = Counter(zip(*columns[1:], strict=True))
    else:
        signs = [1 if change == "+" else -1 for change in columns[0]]
        rows = Counter()
        for sign, row in zip(signs, zip(*columns[2:], strict=True), strict=True):
            rows[row] += sign
    return Counter({row: copies for row, copies in rows.items() if copies}), not growing(root, "changes")


@pytest.mark.parametrize("name", [f"q{number}" for number in range(23)])
def test_the_answer_is_that_of_duckdb(name: str, inputs: Inputs, database: duckdb.DuckDBPyConnection) -> None:
    rows, bounded = answer((FOLDER / f"{name}.cql").read_text(encoding="utf-8"), inputs)
    expected = Counter(database.execute(ANSWERS[name]).fetchall())
    assert expected and rows == expected
    assert bounded == (name in BOUNDED)


def test_windows_on_both_sides_bound_q7(inputs: Inputs, database: duckdb.DuckDBPyConnection) -> None:
    head, _, _ = (FOLDER / "q7.cql").read_text(encoding="utf-8").partition("SELECT")
    windows = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))"
    query = f"""
        SELECT B.auction, B.bidder, B.price, B.`dateTime`, B.extra
        FROM (SELECT * FROM {windows}) B
        JOIN (SELECT MAX(price) AS price, window_start, window_end FROM {windows} GROUP BY window_start, window_end) M
        ON B.price = M.price AND B.window_start = M.window_start AND B.window_end = M.window_end"""
    rows, bounded = answer(head + query, inputs)
    assert rows == Counter(database.execute(ANSWERS["q7"]).fetchall()) and bounded


@pytest.mark.nightly
def test_the_readme(tmp_path: Path) -> None:
    follow("nexmark", tmp_path)
