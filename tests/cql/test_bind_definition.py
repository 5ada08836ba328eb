"""CREATE STREAM, TABLE, VIEW and SINK: what the catalogue learns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.cql.queries import KNOWN, catalogue, marked, rejected
from transom.core import schema
from transom.core.errors import OptionError
from transom.core.time import SECOND
from transom.cql.statements import bind_query, parse_statements
from transom.plan.algebra import Relation, Stream
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
    TimeColumn,
    ViewDefinition,
)


def created(text: str, catalogue: Catalogue | None = None) -> object:
    (statement,) = parse_statements(text, catalogue if catalogue is not None else Catalogue())
    assert isinstance(statement, CreateStatement)
    return statement.definition


def test_a_stream_with_all_its_options() -> None:
    definition = created(
        """CREATE STREAM Trades (
             id BIGINT,            -- whose
             "Price in EUR" DECIMAL(10, 2) INVISIBLE,
             at TIMESTAMP,
             WATERMARK FOR at AS at - INTERVAL '2' SECOND)
           WITH (connector = 'files', PATH = 'in/*.parquet', format = parquet, late = 'dead_letter', idle = '30
           SECONDS',
                 'header.rows' = 2, csv.skip = -1)"""
    )
    assert definition == StreamDefinition(
        "Trades",
        schema.Schema.of(("id", schema.BIGINT), ("Price in EUR", pa.decimal128(10, 2)), ("at", schema.TIMESTAMP)),
        TimeColumn("at", 2 * SECOND),
        "dead_letter",
        30 * SECOND,
        False,
        frozenset({"Price in EUR"}),
        {"connector": "files", "path": "in/*.parquet", "format": "parquet", "header.rows": "2", "csv.skip": "-1"},
    )


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_heartbeat_and_how_far_ahead_rows_may_be_are_declared(kind: str) -> None:
    definition = created(
        f"""CREATE {kind} x (id BIGINT, ts TIMESTAMP, {"PRIMARY KEY (id), " * (kind == "TABLE")}WATERMARK FOR ts AS ts)
           WITH (connector = 'memory', heartbeat = '5 SECONDS', ahead = '1 DAY')"""
    )
    assert isinstance(definition, StreamDefinition | TableDefinition)
    assert (definition.heartbeat, definition.ahead, definition.idle) == (5 * SECOND, 86_400 * SECOND, None)
    assert definition.properties == {"connector": "memory"}


def test_a_watermark_without_a_bound() -> None:
    definition = created("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR TS AS ts)")
    assert isinstance(definition, StreamDefinition)
    assert definition.time == TimeColumn("ts", 0)
    assert definition.late == "drop"


def test_arrival_time_is_an_invisible_column() -> None:
    catalogue = Catalogue()
    definition = created("CREATE STREAM s (a INTEGER) WITH (time = 'arrival', connector = 'kafka')", catalogue)
    assert isinstance(definition, StreamDefinition)
    assert definition.arrival_time
    assert definition.time == TimeColumn("arrival_time", 0)
    assert definition.columns == schema.Schema.of(("a", schema.INTEGER), ("arrival_time", schema.TIMESTAMP))
    assert definition.properties == {"connector": "kafka"}
    assert bind_query("SELECT * FROM s [NOW]", catalogue).schema.names == ["a"]
    assert bind_query("SELECT a, arrival_time FROM s [NOW]", catalogue).schema.names == ["a", "arrival_time"]


def test_a_static_table() -> None:
    definition = created("CREATE TABLE t (a INT, b TEXT) WITH (path = 'x.csv')")
    columns = schema.Schema.of(("a", schema.INTEGER), ("b", schema.VARCHAR))
    assert definition == TableDefinition("t", columns, properties={"connector": "files", "path": "x.csv"})


def test_a_table_given_by_its_changes() -> None:
    catalogue = Catalogue()
    definition = created(
        "CREATE TABLE t (Op VARCHAR, a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (changes = 'op')", catalogue
    )
    assert isinstance(definition, TableDefinition)
    assert definition.change_column == "Op"
    assert bind_query("SELECT * FROM t", catalogue).schema.names == ["a", "ts"]
    assert "no column 'op'" in rejected("SELECT op FROM t", catalogue).what


def test_columns_of_metadata_are_for_the_connector() -> None:
    definition = created(
        """CREATE STREAM s (ts TIMESTAMP METADATA FROM 'timestamp' VIRTUAL, Offset_ BIGINT METADATA INVISIBLE,
             WATERMARK FOR ts AS ts) WITH (connector = 'kafka')"""
    )
    assert isinstance(definition, StreamDefinition) and definition.invisible == {"Offset_"}
    properties = {"connector": "kafka", "metadata.ts": "timestamp", "metadata.offset_": "Offset_"}
    assert definition.properties == properties
    assert (
        "a text is expected" in rejected("CREATE STREAM s (ts TIMESTAMP METADATA FROM x, WATERMARK FOR ts AS ts)").what
    )


def test_a_format_of_changes_needs_no_change_column() -> None:
    definition = created(
        """CREATE TABLE t (change INTEGER, ts TIMESTAMP METADATA FROM 'timestamp', PRIMARY KEY (change) NOT ENFORCED,
             WATERMARK FOR ts AS ts) WITH (connector = 'kafka', format = 'Upsert-JSON')"""
    )
    assert isinstance(definition, TableDefinition) and definition.change_column == "change_1"
    assert definition.relation_columns.names == ["change", "ts"]


def test_a_rate_is_for_the_planner_and_a_generator_reads_it_too() -> None:
    catalogue = Catalogue()
    parse_statements(
        """CREATE STREAM files (a INT) WITH (time = arrival, connector = 'files', path = 'x.csv', rate = 20);
           CREATE STREAM made (a INT) WITH (time = arrival, connector = 'generator', rate = 0.5);
           CREATE STREAM usual (a INT) WITH (time = arrival, connector = 'generator');
           CREATE STREAM unknown (a INT) WITH (time = arrival, connector = 'memory')""",
        catalogue,
    )
    definitions = [catalogue.relations[name] for name in ("files", "made", "usual", "unknown")]
    assert [each.rate for each in definitions if isinstance(each, StreamDefinition)] == [20.0, 0.5, 1.0, None]
    assert ["rate" in each.properties for each in definitions if isinstance(each, StreamDefinition)] == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "columns", ["k INT, v INT, ts TIMESTAMP, PRIMARY KEY (K, v)", "k INT, v INT, ts TIMESTAMP, PRIMARY KEY (k, V)"]
)
def test_a_table_upserted_on_its_key(columns: str) -> None:
    definition = created(f"CREATE TABLE t ({columns}, WATERMARK FOR ts AS ts)")
    assert isinstance(definition, TableDefinition)
    assert definition.primary_key == ("k", "v")
    assert definition.change_column is None


def test_a_key_behind_its_column() -> None:
    definition = created("CREATE TABLE t (k INT PRIMARY KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    assert isinstance(definition, TableDefinition) and definition.primary_key == ("k",)


def test_types() -> None:
    definition = created(
        "CREATE TABLE t (a BOOL, b TINYINT, c SMALLINT, d INT, e BIGINT, f REAL, g DOUBLE PRECISION, h DECIMAL, "
        "i NUMERIC(7), j DECIMAL(38, 38), k VARCHAR(20), l STRING, m DATE, n TIMESTAMP, o HUGEINT)"
    )
    assert isinstance(definition, TableDefinition)
    assert definition.columns.types == [
        schema.BOOLEAN, schema.TINYINT, schema.SMALLINT, schema.INTEGER, schema.BIGINT, schema.REAL, schema.DOUBLE,
        pa.decimal128(18, 3), pa.decimal128(7, 0), pa.decimal128(38, 38), schema.VARCHAR, schema.VARCHAR, schema.DATE,
        schema.TIMESTAMP, schema.HUGEINT,
    ]  # fmt: skip


def test_words_of_the_language_can_be_columns() -> None:
    catalogue = Catalogue()
    created(
        "CREATE TABLE t (rows INT, range INT, date DATE, now INT, slide INT, watermark INT, istream INT)", catalogue
    )
    bound = bind_query("SELECT rows + range, date, now, istream FROM t WHERE watermark = slide", catalogue)
    assert bound.schema.names == ["rows + range", "date", "now", "istream"]


def test_sinks() -> None:
    assert created("CREATE SINK s WITH (connector = 'files', emit = 'lifetimes')") == SinkDefinition(
        "s", "lifetimes", {"connector": "files"}
    )
    assert created("CREATE SINK s") == SinkDefinition("s", "changes", {})


def test_views_are_streams_or_relations() -> None:
    relation = created("CREATE VIEW w (x, y) AS SELECT A, B FROM S [NOW]", catalogue())
    assert isinstance(relation, ViewDefinition) and isinstance(relation.query, Relation)
    assert relation.query.schema.names == ["x", "y"]
    stream = created("CREATE VIEW w (x, y) AS SELECT DSTREAM A, B FROM S [NOW]", catalogue())
    assert isinstance(stream, ViewDefinition) and isinstance(stream.query, Stream)
    assert stream.query.schema.names == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "what", "remedy", "at"),
    [
        ("CREATE STREAM q (a INT)", "has no WATERMARK", "WATERMARK FOR ts", "q"),
        ("CREATE STREAM q (a INT, WATERMARK FOR ts AS ts)", "no column 'ts'", "did you mean a", "ts"),
        ("CREATE STREAM q (ts INT, WATERMARK FOR ts AS ts)", "is a INTEGER", "ts TIMESTAMP", "ts"),
        (
            "CREATE STREAM q (a TIMESTAMP, b TIMESTAMP, WATERMARK FOR a AS b)",
            "from its own column", "WATERMARK FOR a AS a", "b",
        ),
        (
            "CREATE STREAM q (a TIMESTAMP, WATERMARK FOR a AS a - INTERVAL '1' MONTH)",
            "no fixed length", "30 DAYS", "INTERVAL '1' MONTH",
        ),
        ("CREATE STREAM q (a INT, A INT)", "two columns 'A'", "something else", "A"),
        ("CREATE STREAM q (a BLOB)", "no type 'BLOB'", "VARCHAR", "BLOB"),
        ("CREATE STREAM q (a DECIMAL(50, 2))", "no such DECIMAL", "38 digits", "DECIMAL(50, 2)"),
        ("CREATE STREAM q (a INT DEFAULT 0)", "no such rule", "COALESCE", "DEFAULT"),
        ("CREATE STREAM q (a INT NOT NULL CHECK (a > 0))", "no such rule", "WHERE a > 0", "CHECK"),
        ("CREATE STREAM q (a INT REFERENCES b)", "no such rule", "NOT NULL", "REFERENCES"),
        ("CREATE STREAM q (a INT) WITH (time = 'dinner')", "no column 'dinner'", "did you mean a", "'dinner'"),
        (
            "CREATE STREAM q (a TIMESTAMP, WATERMARK FOR a AS a) WITH (time = 'arrival')",
            "either", "leave WATERMARK out", "time = 'arrival'",
        ),
        ("CREATE STREAM q (arrival_time INT) WITH (time = arrival)", "time of arrival", "something else", "q"),
        ("CREATE STREAM q (a INT, PRIMARY KEY (a))", "no primary key", "CREATE TABLE", "PRIMARY KEY (a)"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, late = 'keep')", "'late' cannot be", "'dead_letter'", "'keep'"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, idle = 'long')", "'idle' cannot be", "30 SECONDS", "'long'"),
        (
            "CREATE STREAM q (a INT) WITH (time = arrival, heartbeat = 'often')",
            "'heartbeat' cannot be", "1 SECOND", "'often'",
        ),
        ("CREATE STREAM q (a INT) WITH (time = arrival, ahead = '0 DAYS')", "'ahead' cannot be", "1 DAY", "'0 DAYS'"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, heartbeat = '1 S')", "no heartbeat", "leave heartbeat", "q"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, ahead = '1 DAY')", "has no ahead", "leave ahead", "q"),
        ("CREATE TABLE q (a INT) WITH (heartbeat = '1 S')", "never changes", "leave heartbeat out", "q"),
        ("CREATE TABLE q (a INT) WITH (ahead = '1 S')", "never changes", "leave ahead out", "q"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, rate = 'many')", "'rate' cannot be", "rate = 20", "'many'"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, rate = 0)", "'rate' cannot be", "rate = 20", "0"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, rate = 'nan')", "'rate' cannot be", "rate = 20", "'nan'"),
        ("CREATE STREAM q (a INT) WITH (time = arrival, changes = 'a')", "no change column", "CREATE TABLE", "'a'"),
        ("CREATE STREAM q (a INT) WITH (a = 1, A = 2)", "twice", "leave one", "A"),
        ("CREATE STREAM q (a INT) WITH (a 1)", "= is missing", "write =", "1"),
        ("CREATE STREAM S (a INT)", "'S' is declared already", "another name", "S"),
        ("CREATE TABLE out (a INT)", "'out' is declared already", "another name", "out"),
        (
            "CREATE TABLE q (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)",
            "nothing says how", "changes = 'op'", "q",
        ),
        ("CREATE TABLE q (a VARCHAR) WITH (changes = 'a')", "never changes", "WATERMARK", "q"),
        ("CREATE TABLE q (a INT) WITH (time = 'arrival')", "not stamped", "WATERMARK", "'arrival'"),
        (
            "CREATE TABLE q (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (changes = 'a')",
            "cannot be the change column", "VARCHAR", "'a'",
        ),
        ("CREATE TABLE q (a INT, PRIMARY KEY (b))", "no column 'b'", "did you mean a", "b"),
        ("CREATE TABLE q (a INT PRIMARY KEY, PRIMARY KEY (a))", "two primary keys", "PRIMARY KEY (a, b) once", None),
        ("CREATE TABLE q (PRIMARY KEY (b))", "no columns", "name TYPE", "q"),
        ("CREATE VIEW w (x) AS SELECT A, B FROM S", "1 names for 2 columns", "each column once", "x"),
        ("CREATE SINK w WITH (emit = 'everything')", "'emit' cannot be", "'latest'", "'everything'"),
        ("CREATE INDEX i ON S", "'INDEX'", "leave it out", "INDEX"),
    ],
)  # fmt: skip
def test_wrong_definitions(text: str, what: str, remedy: str, at: str | None) -> None:
    error = rejected(text)
    assert what in error.what
    assert error.remedy is not None and remedy in error.remedy
    assert at is None or marked(error) == at


def test_wrong_options_are_option_errors() -> None:
    assert isinstance(rejected("CREATE SINK w WITH (emit = 'x')"), OptionError)
    assert isinstance(rejected("SET ticks = 1"), OptionError)


def test_declared_spelling_is_kept() -> None:
    assert KNOWN.relations["events"].name == "Events"
