from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.stepped import stepped
from transom import QueryError, Result, Session, TransomError

EVIL = "<script>alert('x')</script><img src=x onerror=\"boom\">&"


class Shape(HTMLParser):
    """The elements of a page, its text, and whether they are closed as they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


HARMLESS = {"table", "thead", "tbody", "tr", "th", "td", "div", "span", "b", "pre", "ul", "li"}


def page(thing: Any) -> Shape:
    shape = Shape(thing._repr_html_())
    assert set(shape.elements) <= HARMLESS and shape.attributes <= {"style"}
    return shape


@pytest.fixture
def session() -> Session:
    made = Session()
    made.stream(EVIL, [{"ts": f"2024-05-01 00:00:0{i}", EVIL: EVIL} for i in range(3)], time="ts")
    return made


def test_rows_and_names_are_escaped(session: Session) -> None:
    quoted = EVIL.replace('"', '""')
    (result,) = results = session.execute(f'SELECT "{quoted}" AS "{quoted}", NULL AS n FROM "{quoted}" [ROWS 2]')
    shown = page(result)
    assert shown.text.count(EVIL) == 3 and "NULL" in shown.text and "rows" in shown.text
    assert page(results).text == shown.text


def test_a_long_table_is_cut_and_says_so() -> None:
    shown = page(Result("q", pa.table({"a": range(1000), "b": ["x" * 999] * 1000})))
    assert shown.elements.count("tr") == 21
    assert "1,000 rows, the first 20 shown" in shown.text and "x" * 201 not in shown.text
    assert page(Result("q", pa.table({"a": pa.array([], pa.int32())}))).text.endswith("0 rows")


def test_plans_are_trees(session: Session) -> None:
    quoted = EVIL.replace('"', '""')
    text = f'SELECT x."{quoted}" FROM "{quoted}" [ROWS 2] AS x JOIN "{quoted}" [NOW] AS y ON x.ts = y.ts'
    explained = session.explain(text)
    shown = page(explained)
    assert EVIL in shown.text and shown.text.count("keeps") == explained.count("keeps ")
    assert shown.elements.count("li") >= explained.count("\n#") and "shared, see above" in shown.text
    measured = page(session.explain(text, analyze=True))
    assert "3 out" in measured.text and " ms" in measured.text
    assert page(session.execute("EXPLAIN " + text)[0]).elements.count("li") == shown.elements.count("li")
    assert '"queries"' in page(session.explain(text, json=True)).text


def test_status_declarations_and_running_queries(session: Session) -> None:
    quoted = EVIL.replace('"', '""')
    query = stepped(session, f'SELECT COUNT(*) AS n FROM "{quoted}"')
    assert "waits for" in page(query.status()).text
    query.run()
    shown = page(query.status())
    assert EVIL in shown.text and "finished" in shown.text and "waiting" in shown.text
    with session.start(f'SELECT COUNT(*) AS n FROM "{quoted}"') as running:
        running.await_termination(60)
        assert "rows out" in page(running).text
    (declared,) = session.execute(f'CREATE VIEW v AS SELECT "{quoted}" FROM "{quoted}"')
    assert EVIL in page(declared).text.replace('""', '"')


# --- frames ----------------------------------------------------------------------------------------------------------

TWICE = pa.table([[1, 2], [3, 4]], names=["a", "a"])


def test_results_for_arrow_and_python() -> None:
    result = Result("q", TWICE.select([0]))
    assert result.to_arrow() is result.table and len(result) == 2
    assert result.to_pylist() == [{"a": 1}, {"a": 2}]
    with pytest.raises(QueryError, match="no rows"):
        Result("CREATE ..").to_pandas()
    assert Result("CREATE ..") and len(Result("CREATE ..")) == 0


def test_results_for_pandas() -> None:
    pytest.importorskip("pandas")
    frame = Result("q", TWICE).to_pandas()
    assert frame.to_dict("list") == {"a": [1, 2], "a_1": [3, 4]}
    session = Session()
    session.table("t", [{"a": 2**40, "b": 2**62}, {"a": 1, "b": 2**62}])
    sums = session.run("SELECT SUM(a) AS a, SUM(b) AS b FROM t", emit="latest").to_pandas()
    assert str(sums["a"].dtype) == "int64" and sums["a"].tolist() == [2**40 + 1]
    assert sums["b"].tolist() == [2**63], "exact, though no int64 can hold it"


def test_results_for_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("frame", table)))
    kind, table = Result("q", TWICE).to_polars()
    assert kind == "frame" and table.column_names == ["a", "a_1"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    result = Result("q", TWICE)
    with pytest.raises(TransomError, match=f"{library} is not installed") as error:
        getattr(result, f"to_{library}")()
    assert f"pip install {library}" in str(error.value)
