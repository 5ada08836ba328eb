"""`Session.sql`: a query that is planned and not run, and the parameters of its text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from transom import OptionError, QueryError, Session
from transom.core.values import Value

NOON = datetime(2024, 5, 1, 12)
LONG = 60.0


def endless() -> Iterator[dict[str, Any]]:
    for i in itertools.count():
        yield {"ts": NOON + timedelta(seconds=i), "a": i}


def test_an_endless_stream_keeps_nobody_waiting() -> None:
    read: list[int] = []

    def noted() -> Iterator[dict[str, Any]]:
        for row in endless():
            read.append(row["a"])
            yield row

    with Session(batch_rows=5) as session:
        session.stream("s", noted, time="ts")
        before = len(read)  # the first row has told the columns
        query = session.sql("SELECT a FROM s [ROWS 2]", emit="lifetimes")
        assert query.schema.names == ["a", "ta", "te"]
        assert "ROWS 2" in query.explain() and "<ul" in query._repr_html_()
        assert repr(query) == "<Query SELECT a FROM s [ROWS 2]>"
        assert len(read) == before
        running = query.start(name="rows")
        assert running.await_progress(NOON, timeout=LONG) and session.queries == [running]


def test_every_collect_runs_anew() -> None:
    session = Session()
    session.execute("CREATE TABLE t (a INTEGER) WITH (connector = 'memory')")
    query = session.sql("SELECT a FROM t", emit="latest")
    assert query.to_pylist() == []
    session.append("t", [{"a": 1}])
    assert query.to_pylist() == [{"a": 1}] and query.to_arrow().num_rows == 1
    assert query.to_pandas()["a"].tolist() == [1]
    assert "0 rows in, 1 out" in query.explain(analyze=True)
    with pytest.raises(OptionError, match="no DataFrame of Spark"):
        query.to_spark()


def test_an_insert_is_run_like_any_query(tmp_path: Path) -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    insert = session.sql(f"""
        CREATE SINK out WITH (connector = 'files', path = '{tmp_path}/out.csv', emit = 'lifetimes');
        INSERT INTO out SELECT a FROM t
    """)
    assert list(tmp_path.iterdir()) == [] and insert.schema.names == ["a", "ta", "te"]
    result = insert.collect()
    assert result.table is None and result.status is not None and result.status.rows_out == 1
    assert (tmp_path / "out.csv").read_text().startswith("a,ta,te\n1,")


def test_a_text_without_its_query_declares_nothing() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    view = "CREATE VIEW v AS SELECT a FROM t"
    for text in (view, f"{view}; EXPLAIN SELECT a FROM v", f"{view}; SELECT a FROM v; SELECT a FROM v"):
        with pytest.raises(QueryError, match="one query is expected"):
            session.sql(text)
    assert session.run(f"{view}; SELECT a FROM v", emit="latest").to_pylist() == [{"a": 1}]


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "A",
        "it's; DROP TABLE t -- $b",
        'a "quoted" \\ $name',
        "",
        0,
        -7,
        2**40,
        True,
        None,
        1.5,
        -1e300,
        Decimal("-12.340"),
        Decimal("1E+3"),
        date(2024, 5, 1),
        NOON,
        NOON + timedelta(microseconds=1),
    ],
)
def test_a_parameter_is_a_constant_of_its_type(value: Value) -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    (row,) = session.run("SELECT $p AS p, '$p' AS text, a AS \"$p\" FROM t", emit="latest", p=value).to_pylist()
    assert row == {"p": value, "text": "$p", "$p": 1}
    assert value is None or type(row["p"]) is type(value)


def test_a_column_is_called_as_the_parameter_is_written() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    result = session.run("SELECT $p, $p[1], $q, $r FROM t", emit="latest", p=[1, 2], q={"a": 1}, r=-3)
    assert result.to_arrow().schema.names == ["$p", "$p[1]", "$q", "$r"]


def test_parameters_stand_wherever_constants_do() -> None:
    session = Session()
    session.stream("s", list(itertools.islice(endless(), 9)), time="ts")
    view = "SELECT a FROM s [ROWS $limit] WHERE a - $less > 2 AND a IN ($one, $two, $less)"
    text = f"CREATE VIEW v AS {view}; SELECT a FROM v"
    assert session.run(text, emit="latest", limit=5, less=-1, one=7, two=4).to_pylist() == [{"a": 4}, {"a": 7}]


@pytest.mark.parametrize(
    ("text", "parameters", "reported"),
    [
        ("SELECT a FROM t WHERE a = $b", {}, r"line 1, column 27: the parameter '\$b' has no value"),
        ("SELECT a FROM t WHERE a = $b", {"B": 1}, r"the parameter '\$b' has no value"),
        ("SELECT a FROM t WHERE a = $b", {"b": 1, "c": 2}, r"the text has no parameter '\$c'"),
        ("SELECT a FROM t WHERE a = '$b'", {"b": 1}, r"the text has no parameter '\$b'"),
        ("SELECT a FROM t WHERE a = $ b", {}, r"a value is missing before '\$'"),
        ("SELECT a FROM $b", {"b": "t"}, "is the name of another one already"),
        ("SELECT a FROM t WHERE a = $b", {"b": [object()]}, "the parameter 'b' cannot be <object"),
        ("SELECT a FROM t WHERE a = $b", {"b": [1]}, r"cannot mix \w+ and INTEGER\[\]"),
        ("SELECT a FROM t WHERE a = $b", {"b": float("nan")}, "the parameter 'b' cannot be nan"),
        ("SELECT a FROM t WHERE a = $b", {"b": Decimal(10) ** 40}, "the parameter 'b' has 41 digits"),
        ("SELECT a FROM t WHERE a = $b", {"b": "\ud800"}, "the parameter 'b' cannot be"),
    ],
)
def test_what_is_wrong_with_parameters_is_said(text: str, parameters: Any, reported: str) -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    with pytest.raises(QueryError, match=reported):
        session.run(text, **parameters)
