"""The list of planted bugs follows the sources: each of them can still be planted."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.planted.bug import Bug
from tests.planted.bugs import BUGS
from tests.planted.plant import planted
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


def test_a_text_that_is_not_there_once_is_rejected() -> None:
    bug = Bug("made_up", "nowhere.py", "a = b", "a = c", "")
    for source in ("", "a = b\na = b\n"):
        with pytest.raises(ValueError, match="made_up"):
            planted(bug, source)
    assert planted(bug, "a = b\n") == "a = c\n"
