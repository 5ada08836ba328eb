"""Everything that the pages say is run, and everything that they list is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import drawings
from tests.docs.pages import DOCS, ROOT, Block, Page, PageError, made_parts, pages, read_page
from tests.docs.programs import run_programs
from tests.docs.tables import EXAMPLES, PARTS, error_classes
from tests.docs.world import run_page
from transom.cli.main import main
from transom.connectors.properties import FORMATS, TIME_UNITS, read_file_properties
from transom.core.errors import OptionError, QueryError
from transom.core.schema import SQL_NAMES
from transom.core.time import UNITS
from transom.kernels.all_tactics import tactics_of
from transom.plan.algebra import Join, TopN, Unnest, Window
from transom.plan.catalogue import Catalogue
from transom.plan.functions import AGGREGATES, FUNCTIONS
from transom.plan.options import OPTIONS
from transom.program.planned import read_program

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
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n.*?^```\n", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count("```python"), "a block of Python is not written by the rules"
    run_programs(read_page("README.md", "".join(blocks)), tmp_path)


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_the_drawings(name: str) -> None:
    drawn = drawings.DRAWINGS[name]().svg()
    assert (drawings.FIGURES / f"{name}.svg").read_text(encoding="utf-8") == drawn, "run python -m tests.docs.remake"
    assert any(f"figures/{name}.svg" in page.text for page in PAGES.values()), "no page shows it"


def test_every_figure_is_shown() -> None:
    shown = {
        Path(link).name for page in PAGES.values() for link in re.findall(r"\]\(([\w./]*figures/\w+\.\w+)\)", page.text)
    }
    assert {path.name for path in drawings.FIGURES.iterdir()} == shown


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if list(made_parts(page))])
def test_the_made_tables_of_a_page(name: str) -> None:
    for part, given in made_parts(PAGES[name]):
        assert given == PARTS[part](), f"run python -m tests.docs.remake: '{part}' is old"


# --- nothing is left out ---------------------------------------------------------------------------------------------


def test_every_function_is_listed() -> None:
    (table,) = (text for name, text in made_parts(PAGES["docs/functions.md"]) if name == "functions")
    for function in FUNCTIONS:
        assert function.name in EXAMPLES, f"write an example for {function.name}"
        for written in (function.usage, *function.aliases):
            assert f"`{written.replace('|', chr(92) + '|')}`" in table, written
    for aggregate in AGGREGATES:
        assert f"`{aggregate.upper()}(" in table or f"`{aggregate.upper()}`" in table
    assert set(EXAMPLES) == {function.name for function in FUNCTIONS}


def test_every_option_type_unit_and_error_is_listed() -> None:
    text = text_of("language") + text_of("options") + text_of("errors")
    for word in [*OPTIONS, *SQL_NAMES.values(), *(unit.upper() for unit in UNITS)]:
        assert f"`{word}`" in text, word
    for kind in error_classes():
        assert f"`{kind.__name__}`" in text, kind


WINDOWED = "CREATE STREAM s (ts TIMESTAMP, a INTEGER, b INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory')"


def windows_listed() -> list[str]:
    section = text_of("language").partition("## Windows")[2].partition("## ")[0]
    return [
        window for line in section.splitlines() if line.startswith("| `") for window in re.findall(r"`(\[.*?\])`", line)
    ]


def test_every_window_that_is_listed_can_be_written() -> None:
    catalogue = Catalogue()
    read_program(WINDOWED, catalogue)
    windows = windows_listed()
    assert len(windows) == 11
    specs = {str(read_program(f"SELECT a FROM s {window}", catalogue)[0].root) for window in windows}
    assert len(specs) == 9  # [10 SECONDS] and [RANGE INTERVAL '10' SECOND] are [RANGE 10 SECONDS]


UNSUPPORTED = {
    "LIMIT without ORDER BY": "SELECT a FROM (SELECT a FROM s LIMIT 1)",
    "other functions with OVER": "SELECT KURTOSIS(a) OVER (ORDER BY a) FROM s",
    "recursive queries": "WITH RECURSIVE t AS (SELECT a FROM s) SELECT a FROM t",
    "UPDATE": "UPDATE s SET a = 1",
    "DELETE": "DELETE FROM s",
}


@pytest.mark.parametrize(("word", "query"), UNSUPPORTED.items())
def test_what_the_page_says_is_rejected(word: str, query: str) -> None:
    first = "These are not supported"
    (paragraph,) = (text for text in text_of("language").split("\n\n") if text.startswith(first))
    assert word in " ".join(paragraph.split())
    catalogue = Catalogue()
    read_program(WINDOWED, catalogue)
    with pytest.raises(QueryError):
        read_program(query, catalogue)


def test_every_property_of_files_is_listed() -> None:
    with pytest.raises(OptionError) as reported:
        read_file_properties({"zzz": ""}, source=True)
    assert reported.value.remedy is not None
    names = re.findall(r"\w+", reported.value.remedy.removeprefix("its properties are "))
    assert {"path", "format"} <= set(names)
    for word in [*names, *FORMATS, *TIME_UNITS]:
        assert f"`{word}`" in text_of("language"), word


def test_every_option_of_the_command_line_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    options = set(re.findall(r"--\w+", capsys.readouterr().out)) - {"--help"}
    assert "--follow" in options
    section = text_of("running").partition("| option of run")[2].partition("\n\n")[0]
    assert set(re.findall(r"--\w+", section)) == options


def test_every_operator_has_its_page_and_every_tactic_its_place() -> None:
    listed = {path.stem for path in (DOCS / "operators").glob("*.md")}
    operators = {"window", "select", "join", "aggregate", "join-aggregate", "distinct", "set-operation", "to-stream"}
    assert listed == operators | {"table", "shared-join", "slide-join", "top-n", "over"}
    for name in listed:
        assert f"(operators/{name}.md)" in text_of("README")
    for node, page in ((Window, "window"), (Join, "join"), (TopN, "top-n"), (Unnest, "select")):
        for tactic in tactics_of(node):
            assert f"`{tactic.name}`" in text_of(f"operators/{page}"), tactic.name


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
