"""A lone surrogate, half a character, is in no text: it is reported where it comes in, as an error of ours or a
reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from transom import QueryError, Session, SourceError

HALF = "\ud800"
COLUMNS = pa.schema([("ts", pa.timestamp("us")), ("v", pa.string())])


def rows(*values: str) -> list[dict[str, Any]]:
    return [{"ts": "2024-05-01", "v": value} for value in values]


def made(*values: str) -> Iterator[dict[str, Any]]:
    yield from rows(*values)


@pytest.mark.parametrize("data", [rows("a", HALF, "b"), made("a", HALF, "b")], ids=["held", "made"])
def test_in_a_row_it_spoils_that_row(data: Any) -> None:
    session = Session()
    session.stream("s", data, time="ts", columns=COLUMNS)
    assert session.run("ISTREAM(SELECT v FROM s)").to_arrow()["v"].to_pylist() == ["a", "b"]
    assert session.dead_letters["reason"].to_pylist() == [r"column 'v' is VARCHAR and cannot hold '\xed\xa0\x80'"]


def test_in_a_row_that_is_appended() -> None:
    session = Session()
    session.execute("CREATE TABLE t (v VARCHAR, n INTEGER) WITH (connector = 'memory')")
    session.append("t", [{"v": HALF, "n": 1}, {"v": "b", "n": 2}, {"v": "c", "n": HALF}])
    assert session.run("SELECT v FROM t", emit="latest").to_arrow()["v"].to_pylist() == ["b"]
    assert len(session.dead_letters) == 2


@pytest.mark.parametrize("data", [rows(HALF), made(HALF), [{HALF: 1}], iter([{HALF: 1}])])
def test_in_the_rows_or_keys_that_tell_the_columns(data: Any) -> None:
    with pytest.raises(SourceError, match="surrogates not allowed"):
        Session().stream("s", data, time="ts")


def test_in_the_name_of_an_input() -> None:
    for declare in (Session().table, Session().stream):
        with pytest.raises(SourceError, match=r"the name 's\\ud800' has half a character"):
            declare(f"s{HALF}", rows("a"))


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT '{HALF}' AS z FROM t",
        f"SELECT v FROM t WHERE v LIKE '{HALF}%'",
        f'SELECT v AS "{HALF}" FROM t',
        f"CREATE TABLE \"z{HALF}\" (a INTEGER) WITH (connector = 'memory')",
        f"CREATE TABLE z (a INTEGER) WITH (connector = 'files', path = '/tmp/{HALF}'); SELECT a FROM z",
    ],
)
def test_in_the_text_of_a_query(text: str) -> None:
    session = Session()
    session.table("t", [{"v": "a"}])
    with pytest.raises(QueryError, match="half a character") as error:
        session.execute(text)
    assert error.value.span is not None
    str(error.value).encode("utf-8")
