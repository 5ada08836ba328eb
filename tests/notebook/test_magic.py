"""%%cql in an IPython of its own, and displays that renew themselves."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from transom import Session, StreamingQuery, TransomError
from transom.notebook.live_display import Html, Running
from transom.notebook.magic import run_cell
from transom.program.lifetimes_svg import lifetimes_svg
from transom.program.live_answer import Bar
from transom.session import workspace_of

EVIL = "<script>alert(1)</script>"


class Shown:
    """What a notebook would show, all that came one after the other."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def __call__(self, thing: Any) -> Shown:
        self.update(thing)
        return self

    def update(self, obj: Any) -> None:
        self.pages.append(obj._repr_html_())


@pytest.fixture
def names() -> dict[str, Any]:
    session = Session(batch_rows=1)
    session.stream("s", [{"t": f"2024-05-01 00:00:0{i}", "a": EVIL, "b": i} for i in range(4)], time="t")
    return {"session": session}


def test_a_cell_gives_the_results_of_its_statements(names: dict[str, Any]) -> None:
    shown = Shown()
    results = run_cell("--emit latest", "CREATE VIEW v AS SELECT MAX(b) AS m FROM s; SELECT m FROM v", names, shown)
    assert isinstance(results, list) and results[-1].to_pylist() == [{"m": 3}]


def test_a_live_cell_shows_a_query_until_it_is_over(names: dict[str, Any]) -> None:
    shown = Shown()
    query = run_cell("--live --name mine", "SELECT a, b FROM s [RANGE 2 SECONDS]", names, shown)
    assert isinstance(query, StreamingQuery) and query.name == "mine" and query.await_termination(60)
    for _ in range(600):
        if "mine: over" in shown.pages[-1]:
            break
        time.sleep(0.1)
    last = shown.pages[-1]
    assert "mine: over" in last and last.count("<circle") == 8 and "<script" not in last and "&lt;script" in last


def test_a_long_run_has_a_bar(names: dict[str, Any]) -> None:
    shown = Shown()
    running = Running(shown, seconds=0.0)
    workspace_of(names["session"]).execute("SELECT b FROM s", watch=running.watch, when_over=running.end)
    assert "<progress></progress>" in shown.pages[0] and 'value="1"' in shown.pages[-1]


@pytest.mark.parametrize("line", ["--emit never", "--what", "--name"])
def test_a_line_that_is_wrong_says_so(names: dict[str, Any], line: str) -> None:
    with pytest.raises(TransomError, match="%%cql"):
        run_cell(line, "SELECT 1", names, Shown())


def test_what_is_no_session_is_left_alone() -> None:
    with pytest.raises(TransomError, match="no session"):
        run_cell("", "SELECT 1", {"session": 7}, Shown())


def test_a_notebook_without_a_session_gets_one() -> None:
    names: dict[str, Any] = {}
    run_cell("--session mine", "SELECT 1 AS a", names, Shown())
    assert isinstance(names["mine"], Session)


def test_pictures_are_harmless() -> None:
    picture = lifetimes_svg([Bar(EVIL, None, 5), Bar(EVIL, 7, None), Bar("point", 6, 6)])
    assert (
        set(re.findall(r"<(\w+)", picture)) == {"svg", "text", "line", "circle"}
        and Html(picture)._repr_html_() == picture
    )


def test_the_extension_is_loaded_by_ipython() -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "transom")
    results = shell.run_cell_magic("cql", "--emit latest", "SELECT 1 + 1 AS two")
    assert results[0].to_pylist() == [{"two": 2}] and isinstance(shell.user_ns["session"], Session)
