"""Everything that the pages say is run, and everything that they list is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Block, Page, PageError, made_parts, pages, read_page
from tests.docs.programs import run_programs
from tests.docs.tables import EXAMPLES, PARTS, error_classes
from tests.docs.world import run_page
from transom.connectors.properties import FORMATS, TIME_UNITS, read_file_properties
from transom.core.errors import OptionError
from transom.core.schema import SQL_NAMES
from transom.core.time import UNITS
from transom.plan.functions import AGGREGATES, FUNCTIONS
from transom.plan.options import OPTIONS
from transom.planner.join import TACTICS

PAGES = {page.name: page for page in pages()}
SOURCES = ROOT / "src" / "transom"


def text_of(name: str) -> str:
    return PAGES[f"docs/{name}.md"].text


@pytest.mark.parametrize("name", PAGES)
def test_the_statements_and_figures_of_a_page(name: str) -> None:
    def compare(block: Block, made: str) -> None:
        if made != block.text.rstrip("\n"):
            raise PageError(f"{name}:{block.line}: run python -m tests.docs.remake; the figure should be\n{made}")

    run_page(PAGES[name], compare)


@pytest.mark.parametrize("name", PAGES)
def test_the_programs_of_a_page(name: str, tmp_path: Path) -> None:
    run_programs(PAGES[name], tmp_path)


def test_the_programs_of_the_readme(tmp_path: Path) -> None:
    """Its other blocks are tried by tests/test_readme.py."""
    page = read_page("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))
    run_programs(page, tmp_path)


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if list(made_parts(page))])
def test_the_made_tables_of_a_page(name: str) -> None:
    for part, given in made_parts(PAGES[name]):
        assert given == PARTS[part](), f"run python -m tests.docs.remake: '{part}' is old"


# --- nothing is left out ---------------------------------------------------------------------------------------------


def test_every_function_is_listed() -> None:
    (table,) = (text for name, text in made_parts(PAGES["docs/language.md"]) if name == "functions")
    for function in FUNCTIONS:
        assert function.name in EXAMPLES, f"write an example for {function.name}"
        for written in (function.usage, *function.aliases):
            assert f"`{written.replace('|', chr(92) + '|')}`" in table, written
    for aggregate in AGGREGATES:
        assert f"`{aggregate.upper()}(" in table
    assert set(EXAMPLES) == {function.name for function in FUNCTIONS}


def test_every_option_type_unit_and_error_is_listed() -> None:
    text = text_of("language")
    for word in [*OPTIONS, *SQL_NAMES.values(), *(unit.upper() for unit in UNITS)]:
        assert f"`{word}`" in text, word
    for kind in error_classes():
        assert f"`{kind.__name__}`" in text, kind


def test_every_property_of_files_is_listed() -> None:
    with pytest.raises(OptionError) as told:
        read_file_properties({"zzz": ""}, source=True)
    assert told.value.remedy is not None
    names = re.findall(r"\w+", told.value.remedy.removeprefix("its properties are "))
    assert {"path", "format"} <= set(names)
    for word in [*names, *FORMATS, *TIME_UNITS]:
        assert f"`{word}`" in text_of("language"), word


def test_every_operator_has_its_page_and_every_tactic_its_place() -> None:
    listed = {path.stem for path in (DOCS / "operators").glob("*.md")}
    assert listed == {"window", "select", "join", "aggregate", "distinct", "set-operation", "to-stream", "table"}
    for name in listed:
        assert f"(operators/{name}.md)" in text_of("README")
    for kernel in (SOURCES / "kernels" / "window").glob("[a-z]*.py"):
        assert f"`{kernel.stem}`" in text_of("operators/window"), kernel
    for tactic in TACTICS:
        assert f"`{tactic}`" in text_of("operators/join"), tactic


def test_every_room_is_on_the_plan_of_the_house() -> None:
    rooms = [path for path in SOURCES.iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) > 8
    for room in rooms:
        assert f"`{room.name}`" in text_of("architecture") or f"`{room.name}/" in text_of("architecture"), room


# --- the pages hang together -----------------------------------------------------------------------------------------


def anchors(page: Page) -> set[str]:
    """The places of a page that a link can name, as GitHub spells them."""
    titles = re.findall(r"^#+ (.+)$", page.text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    here = ROOT / name
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[name].text):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        assert target.exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors(PAGES[target.relative_to(ROOT).as_posix()]), f"{name}: {link}"


@pytest.mark.parametrize("name", PAGES)
def test_files_that_are_named_are_there(name: str) -> None:
    """Paths in `code` that begin with a folder of the project."""
    for path in re.findall(r"`((?:src|tests|docs|examples)/[\w./-]+)`", PAGES[name].text):
        assert (ROOT / path).exists(), f"{name}: {path}"
