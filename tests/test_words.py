"""The sources keep to the words of the field: names that were given up do not come back."""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "transom"

GIVEN_UP = {
    "": "cargo parcel parcels depot depots doors trunk crew agenda heritage keeper upto holder holders told asked "
    "refused refuse refuses pump stretch stretches",
    "pipeline": "bucket buckets port ports door",
    "runtimes": "bucket buckets",
    "planner": "bucket buckets",
    "program": "terms",
    "connectors": "abandon piece place",
}
"""By the folder below `src/transom` that they were in; without one: everywhere."""

NAME_NO_THING = {"found", "known", "mine"}
"""As whole names: whoever reads one has to look up what it holds."""


def parts(name: str) -> list[str]:
    """
    >>> parts("_HolderPool"), parts("rows_upto")
    (['holder', 'pool'], ['rows', 'upto'])
    """
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def given_up(path: Path) -> list[str]:
    room = path.relative_to(SOURCES).parts[0]
    words = {*GIVEN_UP[""].split(), *GIVEN_UP.get(room, "").split()}
    text = path.read_text(encoding="utf-8").lower()
    if not any(word in text for word in words | NAME_NO_THING):  # to look at each name takes seconds in all
        return []
    return [
        f"{path}:{line}: {name}"
        for line, name in names(path)
        if name in NAME_NO_THING or words.intersection(parts(name))
    ]


def test_no_name_has_a_word_that_was_given_up() -> None:
    assert [hit for path in sorted(SOURCES.rglob("*.py")) for hit in given_up(path)] == []


def test_a_word_that_was_given_up_is_found() -> None:
    assert "holder" in parts("NO_HOLDER") and "bucket" in parts("BucketState") and "upto" in parts("_upto")


def test_every_class_has_a_name_of_its_own() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for name in re.findall(r"^ *class (\w+)[:(]", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            found[name].append(str(path.relative_to(SOURCES)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_no_two_files_differ_by_an_s() -> None:
    stems = {path.stem for path in SOURCES.rglob("*.py")}
    assert [stem for stem in sorted(stems) if f"{stem}s" in stems] == []
