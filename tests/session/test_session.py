from __future__ import annotations

import decimal
import hashlib
import json
import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import transom
from tests.stepped import stepped
from transom import OptionError, QueryError, Session, SourceError, TransomError, UnsupportedError

NOON = datetime(2024, 5, 1, 12)


def rows(*values: int) -> list[dict[str, Any]]:
    return [{"ts": NOON + timedelta(seconds=i), "a": a} for i, a in enumerate(values)]


def test_a_text_is_run_as_a_whole_with_a_result_a_statement(tmp_path: Path) -> None:
    session = Session()
    session.stream("s", rows(1, 2, 3), time="ts")
    results = session.execute(f"""
        CREATE SINK files WITH (connector = 'files', path = '{tmp_path}/out.csv', emit = 'lifetimes');
        CREATE SINK kept WITH (connector = 'memory', emit = 'latest');
        INSERT INTO files SELECT a FROM s [RANGE 1 SECOND];
        INSERT INTO kept SELECT MAX(a) AS m FROM s;
        ISTREAM(SELECT a FROM s [NOW] WHERE a > 1);
        EXPLAIN SELECT a FROM s;
        EXPLAIN JSON SELECT a FROM s;
        EXPLAIN ANALYZE SELECT a FROM s
    """)
    assert [result.statement[:7].strip() for result in results] == [
        "CREATE", "CREATE", "INSERT", "INSERT", "ISTREAM", "EXPLAIN", "EXPLAIN", "EXPLAIN",
    ]  # fmt: skip
    assert results[0] == transom.Result(results[0].statement)
    files, kept, bare, explained, as_json, analyzed = results[2:]
    assert files.table is None and files.status is not None and files.status.rows_out == 3
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "1,2024-05-01 12:00:00,2024-05-01 12:00:01"
    assert kept.table is not None and kept.table.to_pylist() == [{"m": 3}]
    assert bare.table is not None and bare.table["a"].to_pylist() == [2, 3]
    assert explained.text is not None and explained.text.startswith("#4 project: a\n")
    assert as_json.text is not None and json.loads(as_json.text)["root"] == 4
    assert analyzed.text is not None and "3 rows in, 3 out" in analyzed.text


def test_nothing_starts_when_the_last_statement_is_wrong(tmp_path: Path) -> None:
    session = Session()
    session.stream("s", rows(1), time="ts")
    path = tmp_path / "deep" / "out.csv"
    with pytest.raises(QueryError, match="line 3"):
        session.execute(f"""CREATE SINK out WITH (connector = 'files', path = '{path}');
            INSERT INTO out SELECT a FROM s;
            SELECT nothing FROM s""")
    assert list(tmp_path.iterdir()) == []
    session.execute(f"CREATE SINK out WITH (connector = 'files', path = '{path}'); INSERT INTO out SELECT a FROM s")
    assert path.exists()


def test_every_kind_of_rows_is_taken() -> None:
    table = pa.table({"ts": [NOON, NOON + timedelta(seconds=1)], "a": [1, 2]})
    batches = table.to_batches(max_chunksize=1)
    given: list[Any] = [
        table,
        table.to_pylist(),
        batches,
        iter(batches),
        (row for row in table.to_pylist()),
        batches[0],
    ]
    given.append(pa.RecordBatchReader.from_batches(table.schema, batches))
    for data in given:
        session = Session()
        session.stream("s", data, time="ts")
        assert (
            session.run("ISTREAM(SELECT a FROM s)").to_arrow()["a"].to_pylist()
            == [1, 2][: 1 if data is batches[0] else 2]
        )


def test_a_row_with_a_partner_forever_is_written_before_the_end() -> None:
    """A partner that never leaves decides it: nothing that may come can change the row."""
    with Session(tick="1 second") as session:
        session.stream("s", [{"ts": "2024-05-01 10:00:00", "k": 1}, {"ts": "2024-05-01 10:00:01", "k": 2}], time="ts")
        session.stream("r", [{"ts": "2024-05-01 10:00:02", "k": 2}], time="ts")
        result = session.run("SELECT k FROM s WHERE EXISTS (SELECT 1 FROM r WHERE r.k = s.k)", emit="lifetimes")
        ((k, te),) = [(row["k"], row["te"]) for row in result.to_pylist()]
    assert k == 2 and te is not None


def test_arrow_types_become_sql_types() -> None:
    session = Session()
    columns = {
        "u8": pa.array([255], pa.uint8()),
        "u64": pa.array([2**64 - 1], pa.uint64()),
        "half": pa.array([0.5], pa.float16()),
        "text": pa.array(["é"], pa.large_string()),
        "known": pa.array(["x"]).dictionary_encode(),
        "day": pa.array([date(2024, 5, 1)], pa.date64()),
        "at": pa.array([NOON], pa.timestamp("ns", tz="Europe/Berlin")),
        "price": pa.array([decimal.Decimal("1.50")], pa.decimal128(9, 2)),
        "wait": pa.array([1_500_000], pa.duration("ns")),
        "nothing": pa.nulls(1),
    }
    session.table("t", pa.table(columns))
    (row,) = session.run("SELECT * FROM t", emit="latest").to_pylist()
    assert row == {
        "u8": 255, "u64": decimal.Decimal(2**64 - 1), "half": 0.5, "text": "é", "known": "x", "day": date(2024, 5, 1),
        "at": NOON.replace(tzinfo=UTC), "price": decimal.Decimal("1.50"),
        "wait": timedelta(milliseconds=1.5), "nothing": None,
    }  # fmt: skip
    for odd in (time(12), [timedelta(1)], {"a": timedelta(1)}):
        with pytest.raises(SourceError, match=r"column 'l' of 'u' is .*, which no SQL type can hold"):
            session.table("u", pa.table({"l": [odd]}))
    for nonsense in (3, "text", [1, 2], {"a": 1, "b": object()}):
        with pytest.raises(SourceError, match="cannot be read as a table"):
            session.table("u", nonsense)  # type: ignore[arg-type]


def test_what_is_wrong_with_a_declaration_is_reported() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    with pytest.raises(QueryError, match="declared already"):
        session.stream("T", rows(1), time="ts")
    with pytest.raises(SourceError, match="no column 'when'"):
        session.stream("s", rows(1), time="when")
    with pytest.raises(OptionError, match="bound cannot be 'soon'"):
        session.stream("s", rows(1), time="ts", bound="soon")
    with pytest.raises(OptionError, match="'late' cannot be"):
        session.stream("s", rows(1), time="ts", late="never")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="not a stream or table in memory"):
        session.append("nobody", rows(1))
    with pytest.raises(OptionError, match="no option 'tock'"):
        Session(tock="1 second")
    with pytest.raises(OptionError, match="emit cannot be"):
        session.sql("SELECT a FROM t", emit="all")  # type: ignore[arg-type]
    for text in ("", "CREATE VIEW v AS SELECT a FROM t", "SELECT a FROM t; SELECT a FROM t"):
        with pytest.raises(QueryError, match="one query is expected"):
            session.sql(text)
    with pytest.raises(UnsupportedError):
        session.run("SET join = 'ring_hash'; SELECT t.a FROM t, t AS u WHERE t.a < u.a")


def test_bounds_and_late_rows() -> None:
    disordered = [rows(0, 1, 2, 3, 4, 5)[i] for i in (3, 1, 5, 2)]
    session = Session()
    session.stream("s", disordered, time="ts", bound=timedelta(seconds=2), late="dead_letter")
    assert sorted(session.run("ISTREAM(SELECT a FROM s)").to_arrow()["a"].to_pylist()) == [1, 3, 5]
    (late,) = session.dead_letters.to_pylist()
    assert (late["stream"], late["reason"]) == ("s", "late: came after the watermark")
    assert json.loads(late["row"])["a"] == 2


def test_a_query_can_be_stepped_saved_and_restored() -> None:
    session = Session(batch_rows=1)
    session.stream("s", rows(*range(8)), time="ts")
    text = "SELECT SUM(a) AS s FROM s [ROWS 3]"
    whole = session.run(text).to_pylist()
    query = stepped(session, text)
    for _ in range(4):
        query.step()
    so_far = query.table().to_pylist()
    again = stepped(session, text)
    again.restore(query.snapshot())
    again.run()
    assert so_far + again.table().to_pylist() == whole
    assert again.finished and not again.step()


def test_rows_may_be_added_while_a_query_follows() -> None:
    session = Session()
    session.execute("CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
    session.append("s", rows(1))
    assert session.run("SELECT COUNT(*) AS n FROM s", emit="latest").to_pylist() == [{"n": 1}]
    session.append("s", [{"ts": NOON + timedelta(seconds=5), "a": "7"}])  # a text that is a number will do
    assert session.run("SELECT SUM(a) AS n FROM s", emit="latest").to_pylist() == [{"n": 8}]


def test_explain_tells_all_queries_of_a_text() -> None:
    session = Session(batch_rows=1)
    session.stream("s", rows(1, 2, 3), time="ts")
    text = "SELECT a FROM s; SELECT COUNT(*) AS n FROM s [ROWS 2]"
    assert session.explain(text).count("#1 scan: stream s") == 2
    plans = json.loads(session.explain(text, json=True))["queries"]
    assert [plan["statement"] for plan in plans] == text.split("; ")
    measured = json.loads(session.explain(text, json=True, analyze=True))["queries"][1]["operators"]
    by_tactic = {operator["tactic"]: operator["measured"] for operator in measured}
    assert (by_tactic["scan"]["rows_out"], by_tactic["rows"]["rows_in"], by_tactic["rows"]["ends"]) == (3, 3, 1)
    assert by_tactic["sliding"]["rows_out"] >= 2
    assert by_tactic["sliding"]["state_bytes"] > 0


def test_public_names_are_there_and_cost_nothing_until_they_are_used() -> None:
    for name in transom.__all__:
        assert getattr(transom, name).__name__ == name
    assert dir(transom) == transom.__all__
    with pytest.raises(AttributeError):
        transom.Sessions  # type: ignore[attr-defined]  # noqa: B018
    assert issubclass(QueryError, TransomError)
    heavy = (
        "import sys, transom; print([name for name in ('pyarrow', 'numba', 'numpy', 'sqlglot') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_the_package_carries_its_licence() -> None:
    folder = Path(__file__).parents[2]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    standard = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert hashlib.sha256((folder / "LICENSE").read_bytes()).hexdigest() == standard


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == transom.__version__


def test_names_come_and_go_with_their_rows() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    assert session.run("SELECT a FROM t", emit="latest").to_pylist() == [{"a": 1}]
    session.execute("CREATE OR REPLACE TABLE t (b INTEGER) WITH (connector = 'memory')")
    assert session.run("SELECT b FROM t", emit="latest").to_pylist() == []
    session.append("t", [{"b": 2}])
    session.execute("CREATE TABLE IF NOT EXISTS t (c INTEGER)")
    assert session.run("SELECT b FROM t", emit="latest").to_pylist() == [{"b": 2}]
    with pytest.raises(QueryError, match="a query before it reads 't'"):
        session.execute("SELECT b FROM t; DROP TABLE t")
    shown = session.execute("DESCRIBE t; DROP TABLE t; SHOW TABLES")
    assert shown[0].to_pylist() == [{"column": "b", "type": "INTEGER", "note": ""}]
    assert shown[2].to_arrow()["table"].to_pylist() == ["transom_dead_letters"]
    with pytest.raises(QueryError, match="always there"):
        session.execute("DROP TABLE transom_dead_letters")


def test_constants_need_no_input() -> None:
    session = Session()
    assert session.run("SELECT 1 + 1 AS two", emit="latest").to_pylist() == [{"two": 2}]
    assert session.run(
        "SELECT SUM(n) AS total FROM (VALUES (1), (2.5), (NULL)) AS v (n)", emit="latest"
    ).to_pylist() == [{"total": decimal.Decimal("3.5")}]
    names = {row["function"] for row in session.execute("SHOW FUNCTIONS")[0].to_pylist()}
    assert {"abs", "strpos", "time_bucket"} <= names


def test_a_property_of_the_environment_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_TEST_FOLDER", str(tmp_path / "secret-place"))
    session = Session()
    files = "connector = 'files', path = '$TRANSOM_TEST_FOLDER', format = 'csv'"
    text = f"CREATE OR REPLACE TABLE t (a INTEGER) WITH ({files})"
    with pytest.raises(TransomError) as caught:
        session.execute(f"{text}; SELECT a FROM t")
    assert "secret-place" not in str(caught.value) and "$TRANSOM_TEST_FOLDER" in str(caught.value)
    (tmp_path / "secret-place").mkdir()
    (tmp_path / "secret-place" / "a.csv").write_text("a\n7\n")
    session.execute(text)
    assert session.run("SELECT a FROM t", emit="latest").to_pylist() == [{"a": 7}]
    with pytest.raises(OptionError, match="'TRANSOM_NO_SUCH', which is not set"):
        session.execute("CREATE SINK s WITH (connector = 'files', path = '$TRANSOM_NO_SUCH')")
