"""Tables of PostgreSQL that are read once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import Database
from transom.connectors.connector import Limits, Source
from transom.connectors.open import open_source
from transom.connectors.source import Position
from transom.core.errors import OptionError, SourceError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue
from transom.session import Session

COLUMNS = "name VARCHAR, moons INTEGER, mass DECIMAL(10, 2), seen TIMESTAMP, tags VARCHAR[]"


def declared(url: str, columns: str = COLUMNS, table: str = "planets") -> str:
    return f"CREATE TABLE p ({columns}) WITH (connector = 'postgres', url = '{url}', table = '{table}')"


def opened(text: str) -> Source:
    catalogue = Catalogue()
    parse_statements(text, catalogue)
    definition: Any = catalogue.relations["p"]
    return open_source(definition)


@pytest.fixture
def planets(postgres: Database) -> Database:
    postgres.execute(
        'CREATE TABLE planets (moons smallint, "Name" text, mass numeric, seen timestamptz, tags text[], more json)',
        "INSERT INTO planets VALUES (2, 'mars', 0.11, '2024-05-01 02:00+02', '{red}', '{}'),"
        " (1, 'earth', 1, NULL, NULL, NULL), (NULL, 'x', NULL, NULL, '{}', NULL)",
    )
    return postgres


def test_a_table_is_read_in_any_batches_and_again(planets: Database) -> None:
    expected = [
        ("earth", 1, 1, None, None),
        ("mars", 2, 0.11, datetime(2024, 5, 1), ["red"]),
        ("x", None, None, None, []),
    ]
    for rows in (1, 2, None):
        source = opened(declared(planets.url))
        position: Position = {}
        rows_read: list[tuple[Any, ...]] = []
        while True:
            plan = source.plan(position, Limits(rows))
            for split in plan.splits:
                parts = [part for _ in range(2) for part in source.read_split(split)]
                assert parts[0].rows.equals(parts[1].rows)
                rows_read += [tuple(row.values()) for row in parts[0].rows.to_pylist()]
            position = plan.position
            if plan.ended:
                break
        assert [(n, m, None if mass is None else float(mass), *rest) for n, m, mass, *rest in rows_read] == expected
        assert not opened(declared(planets.url)).plan(position, Limits()).splits


@pytest.mark.nightly
def test_a_table_that_changes_while_it_is_read_is_reported(planets: Database) -> None:
    plan = opened(declared(planets.url)).plan({}, Limits(1))
    assert opened(declared(planets.url)).plan(plan.position, Limits(1)).rows == 1
    planets.execute("UPDATE planets SET moons = 3 WHERE moons = 2")
    with pytest.raises(SourceError, match="has changed"):
        opened(declared(planets.url)).plan(plan.position, Limits(1))


@pytest.mark.parametrize(
    ("columns", "table", "says"),
    [("a INTEGER", "planets", "no column 'a'"), ("name VARCHAR", "nowhere", "there is no table")],
)
def test_what_is_not_there_is_reported(planets: Database, columns: str, table: str, says: str) -> None:
    with pytest.raises(SourceError, match=says) as error:
        opened(declared(planets.url, columns, table)).plan({}, Limits())
    assert error.value.remedy


def test_a_stream_is_rejected() -> None:
    text = declared("postgresql://x", "ts TIMESTAMP, WATERMARK FOR ts AS ts").replace("CREATE TABLE", "CREATE STREAM")
    with pytest.raises(OptionError, match="read once"):
        opened(text)


@pytest.mark.nightly
def test_rows_of_a_stream_meet_a_table(planets: Database, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,planet\n2024-05-01 00:00:00,mars\n2024-05-01 00:00:01,earth\n")
    text = f"""{declared(planets.url, "name VARCHAR, moons INTEGER")};
        CREATE STREAM s (ts TIMESTAMP, planet VARCHAR, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{tmp_path}/s.csv');
        ISTREAM(SELECT planet, moons FROM s [NOW] JOIN p ON planet = name)"""
    results = Session().execute(text)
    assert [(row["planet"], row["moons"]) for row in results[-1].to_pylist()] == [("mars", 2), ("earth", 1)]
