"""What a request may ask of the console, and everything that it may not: listed here, and tried."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom import Session
from transom.core.errors import QueryError
from transom.session import workspace_of

pytest.importorskip("starlette", reason="the console is an extra: pip install 'transom[console]'")
pytest.importorskip("httpx2", reason="Starlette's test client needs it")

from starlette.testclient import TestClient

from transom.console.board import SessionBoard
from transom.console.editor import Editor, _Turns
from transom.console.feed import Feed
from transom.console.guard import MOST_BODY, RequestGuard
from transom.console.server import console_app, page_files
from transom.monitoring.address import Address

TOKEN = "a-token-of-some-length"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        session.stream("s", [{"t": "2024-05-01", "a": 1, "b": MARKUP}, {"t": "2024-05-02", "a": 2, "b": "x"}], time="t")
        yield session


def client(session: Session, token: str | None = None, host: str = "127.0.0.1") -> TestClient:
    board = SessionBoard(session, workspace_of(session))
    app = RequestGuard(
        console_app(Feed(board), Editor(session, workspace_of(session), board), token), Address(host, 4040)
    )
    return TestClient(app, base_url="http://127.0.0.1:4040")


@pytest.fixture
def page(session: Session) -> TestClient:
    return client(session)


# --- who asks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:4040", "localhost:4040", "[::1]:4040", "LOCALHOST:4040"])
def test_this_machine_is_served(page: TestClient, host: str) -> None:
    assert page.get("/api/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:4040", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:4040",
        "localhost:4040.", "",
    ],
)  # fmt: skip
def test_another_name_for_this_machine_is_not_served(page: TestClient, host: str) -> None:
    assert page.get("/api/about", headers={"host": host}).status_code == 421


def test_of_all_addresses_only_numbers_are_served(session: Session) -> None:
    page = client(session, host="0.0.0.0")
    assert page.get("/api/about", headers={"host": "192.168.1.7:4040"}).status_code == 200
    assert page.get("/api/about", headers={"host": "evil.example:4040"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:4040"},
        {"origin": "http://127.0.0.1:8080"},
        {"origin": "http://localhost:4040"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_may_not_ask(page: TestClient, headers: dict[str, str]) -> None:
    assert page.get("/api/about", headers=headers).status_code == 403
    assert page.get("/", headers=headers).status_code == 403
    assert page.post("/api/check", json={"text": "SELECT a FROM s"}, headers=headers).status_code == 403


def test_the_page_itself_may_ask(page: TestClient) -> None:
    headers = {"origin": "http://127.0.0.1:4040", "sec-fetch-site": "same-origin"}
    assert page.post("/api/check", json={"text": "SELECT a FROM s"}, headers=headers).json()["ok"]


# --- what is asked for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/vendor/../../server.py", "/etc/passwd", "//etc/passwd",
        "/vendor/", "/static/app.js", "/index.html", "/server.py", "/vendor/uplot.LICENSE", "/app.js%00.html", "/api/",
    ],
)  # fmt: skip
def test_no_path_reaches_a_file(page: TestClient, path: str) -> None:
    assert page.get(path).status_code == 404


def test_what_is_served_is_what_the_page_is_made_of(page: TestClient) -> None:
    assert {"/", "/app.js", "/console.css", "/vendor/uplot.js", "/vendor/dagre.js"} <= set(page_files())
    for path, (data, kind) in page_files().items():
        answer = page.get(path)
        assert (answer.content, answer.headers["content-type"]) == (data, kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_scripts_of_ours_put_in_no_markup() -> None:
    for path, (data, _) in page_files().items():
        if path.endswith(".js") and "vendor" not in path:
            for word in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b"Function("):
                assert word not in data, (path, word)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_understood(page: TestClient, method: str) -> None:
    assert page.request(method, "/api/about").status_code == 405


def test_a_request_that_is_too_large_is_rejected(page: TestClient) -> None:
    assert page.post("/api/check", json={"text": "x" * MOST_BODY}).status_code == 413
    assert page.get("/api/plan", params={"query": "x" * 3000}).status_code == 414
    in_pieces = (b" " * 1024 for _ in range(MOST_BODY // 1024 + 2))  # of which no head says the size
    assert page.post("/api/check", content=in_pieces, headers={"content-type": "application/json"}).status_code == 413
    known = page.post("/api/check", json={"text": "SELECT a FROM s"}, headers={"content-length": "-1"})
    assert known.status_code == 413


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"text"', b"[" * 50_000, b"\xff\xfe"])
def test_what_is_no_json_object_is_rejected(page: TestClient, body: bytes) -> None:
    answer = page.post("/api/check", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and not answer.json()["ok"]


def test_forms_of_other_pages_are_rejected(page: TestClient) -> None:
    """A page may have the browser send a form anywhere; one of JSON it may not."""
    assert (
        page.post("/api/check", content=b'{"text":"SELECT 1"}', headers={"content-type": "text/plain"}).status_code
        == 415
    )
    assert page.post("/api/check", data={"text": "SELECT 1"}).status_code == 415


@pytest.mark.parametrize("text", [None, 7, ["SELECT"], {"a": 1}])
def test_a_text_is_a_text(page: TestClient, text: Any) -> None:
    assert not page.post("/api/check", json={"text": text}).json()["ok"]


def test_a_join_of_everything_with_everything_is_cut_short(session: Session) -> None:
    """Whoever may look may not have the process of the queries hold a hundred million rows."""
    start = datetime(2024, 5, 1)
    session.stream("many", [{"t": start + timedelta(seconds=i), "a": i} for i in range(400)], time="t")
    page = client(session)
    two = page.post("/api/preview", json={"text": "SELECT x.a FROM many x, many y"}).json()
    three = page.post("/api/preview", json={"text": "SELECT x.a FROM many x, many y, many z WHERE x.a < 3"}).json()
    within = "SELECT a FROM many x WHERE a IN (SELECT y.a FROM many y, many z, many w, many v)"
    assert (two["count"], two["read"], three["count"], three["read"]) == (400 * 400, 500, 3 * 100 * 100, 100)
    assert page.post("/api/preview", json={"text": within}).json()["read"] == 16


def test_what_is_asked_all_the_time_leaves_most_of_it_to_the_queries() -> None:
    turns, began, worked = _Turns(3.0, 1.0, "busy"), time.monotonic(), 0.0
    for _ in range(5):
        with turns.turn():
            start = time.thread_time()
            while time.thread_time() < start + 0.02:
                pass
            worked += time.thread_time() - start
    assert worked < (time.monotonic() - began) / 2


def test_whoever_asks_meanwhile_waits_for_a_while() -> None:
    turns = _Turns(0.0, 0.01, "others ask")
    with turns.turn(), pytest.raises(QueryError, match="others ask"), turns.turn():
        pass
    with turns.turn():
        pass


@pytest.mark.parametrize(
    "text",
    ["SELECT " + "(" * 30_000 + "a" + ")" * 30_000 + " FROM s", "SELECT a FROM s WHERE " + "NOT " * 15_000 + "a = 1",
     "SELECT " + "- " * 30_000 + "a FROM s", "SELECT " + "[" * 5_000 + "]" * 5_000 + " AS x FROM s",
     " UNION ALL ".join(["SELECT a FROM s"] * 2_000), "/*" * 30_000, "SELECT a FROM " + "(SELECT a FROM " * 900 + "s"],
    ids=["parentheses", "not", "minus", "arrays", "unions", "comments", "queries"],
)  # fmt: skip
def test_a_text_that_is_nested_without_end_is_an_error(page: TestClient, text: str) -> None:
    assert "nested too deeply" in page.post("/api/check", json={"text": text}).json()["what"]


# --- what is changed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/start", "/api/stop"])
@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_nothing_changes_without_the_token(session: Session, path: str, given: str | None, token: str | None) -> None:
    page = client(session, token)
    headers = {} if given is None else {b"x-transom-token": given.encode()}
    assert page.post(path, json={"text": "SELECT a FROM s", "name": "q"}, headers=headers).status_code == 403
    assert session.queries == []


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM t (ts TIMESTAMP, WATERMARK FOR ts AS ts) "
        "WITH (connector = 'files', path = '{path}', format = 'csv')",
        "CREATE TABLE t WITH (connector = 'files', path = '{path}', format = 'csv'); SELECT * FROM t",
        "CREATE SINK t WITH (connector = 'files', path = '{path}'); INSERT INTO t SELECT a FROM s",
        "SET spill = '{path}'; SELECT a FROM s",
        "DROP STREAM s",
        "CREATE VIEW v AS SELECT a FROM s",
    ],
)
def test_a_page_that_looks_names_no_file(session: Session, tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("ts\n2024-05-01\n")
    page, before = client(session, TOKEN), set(workspace_of(session).catalogue.relations)
    for request in ("check", "preview"):
        found = page.post(f"/api/{request}", json={"text": text.format(path=path)}).json()
        assert not found["ok"] and str(path) not in found["what"]
        assert "change nothing" in found["what"] or found["what"] == "'t' has no columns"  # they were not looked for
    assert set(workspace_of(session).catalogue.relations) == before and list(tmp_path.iterdir()) == [path]


def test_to_check_or_preview_declares_nothing(session: Session) -> None:
    page = client(session, TOKEN)
    headers = {"x-transom-token": TOKEN}
    text = "CREATE VIEW v AS SELECT a FROM s; SELECT a FROM v"
    assert page.post("/api/check", json={"text": text}, headers=headers).json()["ok"]
    assert page.post("/api/preview", json={"text": text}, headers=headers).json()["count"] == 2
    assert "v" not in workspace_of(session).catalogue.relations and session.queries == []


def test_with_the_token_queries_come_and_go(session: Session) -> None:
    page, headers = client(session, TOKEN), {"x-transom-token": TOKEN}
    assert page.get("/api/about", headers=headers).json()["changes"]
    for together in (False, True):
        asked = {"text": "SELECT a FROM s", "name": "one", "follow": True, "together": together}
        assert page.post("/api/start", json=asked, headers=headers).json() == {"ok": True, "name": "one"}
        assert [query.name for query in session.queries] == ["one"]
        assert not page.post("/api/start", json=asked, headers=headers).json()["ok"]  # the name is taken
        assert page.post("/api/stop", json={"name": "one"}, headers=headers).json() == {"ok": True}
        assert session.queries == []
    assert not page.post("/api/stop", json={"name": "one"}, headers=headers).json()["ok"]


# --- what is answered ------------------------------------------------------------------------------------------------


def test_an_error_says_where_it_is(page: TestClient) -> None:
    found = page.post("/api/check", json={"text": "SELECT a,\n  c FROM s"}).json()
    assert (found["ok"], found["line"], found["column"], found["length"]) == (False, 2, 3, 1)
    assert "'c'" in found["what"] and found["remedy"]


def test_a_right_text_is_explained(page: TestClient) -> None:
    found = page.post("/api/check", json={"text": "SELECT a FROM s; SELECT MAX(a) AS m FROM s"}).json()
    assert (found["ok"], found["queries"], len(found["plans"])) == (True, 2, 2)
    assert "#1 scan: stream s" in found["explain"]


def test_a_preview_has_values_as_texts(page: TestClient) -> None:
    found = page.post("/api/preview", json={"text": "ISTREAM(SELECT a, b FROM s)"}).json()
    assert found["columns"] == ["at", "a", "b"] and [row[1:] for row in found["rows"]] == [["1", MARKUP], ["2", "x"]]


def test_markup_is_handed_on_as_the_text_that_it_is(session: Session) -> None:
    """And JSON in which it stands is no page."""
    page = client(session, TOKEN)
    name = "no such <b>query</b>"
    answer = page.get("/api/plan", params={"query": name})
    assert answer.headers["content-type"] == "application/json" and answer.status_code == 404
    wrong = page.post("/api/check", json={"text": f'SELECT "{MARKUP}" FROM s'})
    assert MARKUP in wrong.json()["what"] and wrong.headers["content-type"] == "application/json"


def test_a_view_of_a_query_that_is_not_there(page: TestClient) -> None:
    assert page.get("/api/history", params={"query": "nobody", "seconds": "9" * 90}).json()["time"] == []
