"""The list of planted bugs follows the sources: each of them can still be planted."""

from __future__ import annotations

import ast
import json
import math
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.planted.bug import Bug
from tests.planted.bugs import BUGS
from tests.planted.plant import CAUGHT_BY, OutOfTime, named, planted, renewed, run_stage
from tests.profile import NIGHTLY

SOURCES = Path(__file__).parents[2] / "src" / "transom"


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    names = Counter(bug.name for bug in BUGS)
    assert len(names) == len(BUGS) >= 34
    assert all(name.isidentifier() for name in names)


@cache
def parsed(source: str) -> str:
    return ast.dump(ast.parse(source))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_can_be_planted(bug: Bug) -> None:
    source = (SOURCES / bug.file).read_text(encoding="utf-8")
    changed = planted(bug, source)
    assert bug.why and changed != source
    if NIGHTLY:
        assert ast.dump(ast.parse(changed)) != parsed(source), "the change is none"


def test_what_is_thought_to_catch_a_bug_runs_by_day(request: pytest.FixtureRequest) -> None:
    """With `make test`, which is what notices a bug; where only some tests were asked for nothing is known."""
    asked = request.config.option
    everywhere = {"src/transom", "tests"} <= set(request.config.args)
    if NIGHTLY or asked.keyword or asked.markexpr or asked.deselect or not everywhere:
        pytest.skip("not all tests of the day are here")
    thought = json.loads(CAUGHT_BY.read_text(encoding="utf-8"))
    there = {item.nodeid for item in request.session.items}
    assert {name: test for name, test in thought.items() if test not in there} == {}
    assert thought.keys() <= {bug.name for bug in BUGS}


def test_a_text_that_is_not_there_once_is_rejected() -> None:
    bug = Bug("made_up", "nowhere.py", "a = b", "a = c", "")
    for source in ("", "a = b\na = b\n"):
        with pytest.raises(ValueError, match="made_up"):
            planted(bug, source)
    assert planted(bug, "a = b\n") == "a = c\n"


def test_a_name_may_have_a_dash_of_its_own() -> None:
    tests = ["a.py::t[x]", "a.py::t[x - y]", "a.py::t"]
    assert [named(failed, tests) for failed in ("a.py::t", "a.py::t[x", "b.py::t")] == [
        "a.py::t",
        "a.py::t[x - y]",
        "b.py::t",
    ]


def test_hints_that_came_during_a_run_are_kept() -> None:
    first, second, third = (bug.name for bug in BUGS[:3])
    hints = {third: "c.py::t", "came_meanwhile": "d.py::t", second: "b.py::t"}
    assert list(renewed(hints, {first: "a.py::t", second: "b.py::other"}).items()) == [
        (first, "a.py::t"),
        (second, "b.py::other"),
        (third, "c.py::t"),
        ("came_meanwhile", "d.py::t"),
    ]


@pytest.mark.nightly
def test_all_that_fail_or_the_first_and_no_longer_than_there_is_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text("def test_it():\n    assert False, 'x - y'\n", encoding="utf-8")
    (tmp_path / "test_endless.py").write_text("def test_it():\n    while True: pass\n", encoding="utf-8")
    both = ["test_a.py", "test_b.py"]
    assert run_stage(tmp_path, both, math.inf, first=False) == ["test_a.py::test_it", "test_b.py::test_it"]
    assert run_stage(tmp_path, both, math.inf) == ["test_a.py::test_it"]
    assert run_stage(tmp_path, ["test_nowhere.py"], math.inf, may_be_gone=True) == []
    assert run_stage(tmp_path, ["test_endless.py"], math.inf, 2) == ["tests that do not end (2 s)"]
    with pytest.raises(OutOfTime):
        run_stage(tmp_path, ["test_endless.py"], time.monotonic() + 2)
    with pytest.raises(OutOfTime):
        run_stage(tmp_path, both, time.monotonic())
