"""The rules of the pages catch what they are for, and figures are drawn right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, PageError, made_parts, read_page, with_made
from tests.docs.programs import run_programs
from tests.docs.timeline import POINT, SPAN, Group, Mark, draw
from tests.docs.world import run_page
from transom.core.errors import QueryError
from transom.core.time import FOREVER

SECOND = 1_000_000
STREAM = "CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');\n"


def fenced(words: str, text: str) -> str:
    return f"```{words}\n{text.rstrip()}\n```\n"


QUERY = fenced("cql", STREAM + "SELECT a FROM s [RANGE 2 SECONDS];")
ROWS = fenced("stream s", "1 7")
RESULT = fenced("result changes", "1 + 7\n3 - 7")


def check(text: str) -> list[str]:
    """The figures of a page that keeps the rules."""
    figures: list[str] = []
    run_page(read_page("page.md", text), lambda block, made: figures.append(made))
    return figures


def test_a_page_that_keeps_the_rules() -> None:
    assert check(QUERY + ROWS + RESULT) == []
    (figure,) = check(QUERY + ROWS + fenced("text timeline", ""))
    assert figure.splitlines()[-1] == "  7         ●───────○"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (QUERY + ROWS, "does not say what the query gives"),
        (QUERY + RESULT, "gives no rows of s"),
        (QUERY + ROWS + fenced("result changes", "1 + 7"), "differ"),
        (QUERY + ROWS + fenced("result ledger", "s late 1 rejected 0"), "expected 1 late"),
        (QUERY + ROWS + RESULT + fenced("stream s", "1 8"), "no query of the page reads these rows"),
        (RESULT, "no query above"),
        (fenced("cql", STREAM) + fenced("error", "oops"), "nothing has failed"),
        (fenced("cql", "SELECT") + fenced("error", "oops"), "the message is another one"),
        (fenced("cql", STREAM + "SELECT a FROM s; SELECT a FROM s;"), "one query a block"),
        (fenced("sql", "SELECT 1"), "nobody runs a block 'sql'"),
        (fenced("text", "picture"), "nobody runs a block 'text'"),
        (QUERY + ROWS + fenced("text plan", ""), "does not say EXPLAIN"),
        (fenced("stream t", "1 7"), "not declared"),
        ("```\nx\n```\n", "does not say what it is"),
        ("```cql\nx\n", "not closed"),
        ("  ```cql\nx\n```\n", "at the start of its line"),
        ("## A\n\n## A\n", "the same title"),
    ],
)
def test_a_page_that_breaks_a_rule(text: str, reported: str) -> None:
    with pytest.raises(PageError, match=reported):
        check(text)


def test_a_mistake_without_its_message() -> None:
    with pytest.raises(QueryError):
        check(fenced("cql", "SELECT"))


def test_sections_stand_for_themselves() -> None:
    below = f"## One\n\n{fenced('cql', 'CREATE VIEW v AS SELECT a FROM s [NOW];')}## Two\n\n"
    with pytest.raises(QueryError, match="no stream, table or view 'v'"):
        check(fenced("cql", STREAM) + below + fenced("cql", "SELECT a FROM v;"))


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (fenced("python", ">>> 1 + 1\n3"), "Expected:"),
        (fenced("python", "1 + 1"), "behind >>>"),
        (fenced("console", "ls"), "behind '\\$ '"),
        (fenced("console", "$ ls"), "nobody runs 'ls'"),
        (fenced("console", "$ make nothing"), "make nothing is not there"),
        (fenced("console", "$ transom check missing.cql\nok"), "prints:\nerror: cannot read 'missing.cql'"),
        (fenced("console", "$ transom chekc"), "prints:\nusage"),
    ],
)
def test_a_program_that_does_something_else(text: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=reported):
        run_programs(read_page("page.md", text), tmp_path)


def test_programs_share_names_and_files(tmp_path: Path) -> None:
    text = fenced("file a.txt", "hello") + fenced(
        "python", ">>> from pathlib import Path\n>>> found = Path('a.txt').read_text()"
    )
    text += fenced("python", ">>> found\n'hello\\n'") + fenced("console", "$ make test")
    run_programs(read_page("page.md", text), tmp_path)


def test_made_text_is_put_in_its_place() -> None:
    page = read_page("a.md", "x\n```text timeline\nold\nolder\n```\n<!-- made: options -->\nold\n<!-- /made -->\ny\n")
    text = with_made(page, {2: "new"}, {"options": "| a |"})
    assert text == "x\n```text timeline\nnew\n```\n<!-- made: options -->\n| a |\n<!-- /made -->\ny\n"
    assert list(made_parts(read_page("a.md", text))) == [("options", "| a |")]


# --- figures ---------------------------------------------------------------------------------------------------------


def span(name: str, begin: int, end: int | None) -> Mark:
    return Mark(name, begin * SECOND, end if end is None or end == FOREVER else end * SECOND, SPAN)


def point(name: str, at: int) -> Mark:
    return Mark(name, at * SECOND, None, POINT)


def test_every_kind_of_end() -> None:
    marks = (span("known", 0, 2), span("forever", 1, FOREVER), span("open", 2, None))
    assert draw([Group("answer", marks)], cuts=[SECOND]) == "\n".join(
        [
            "            0   1   2",
            "            ┼───┼───┼──",
            "answer          ┊",
            "  known     ●───┼───○",
            "  forever       ●─────▶",
            "  open          ┊   ●┄▷",
        ]
    )


def test_rows_of_the_same_values_share_a_line_unless_they_touch() -> None:
    marks = (span("a", 0, 1), span("a", 2, 3), span("a", 3, 4))
    assert [line.rstrip() for line in draw([Group("answer", marks)]).splitlines()[3:]] == [
        "  a         ●───○   ●───○",
        "  a                     ●───○",
    ]


def test_points_of_a_stream_are_counted() -> None:
    marks = (point("a", 0), point("a", 0), point("a", 1), point("b", 1))
    assert draw([Group("s", marks)]).splitlines()[3:] == ["  a         2   ●", "  b             ●"]


def test_a_figure_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        draw([Group("s", (point("a", 0), Mark("b", 1, None, POINT), point("c", 100)))])


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw([])


def test_long_times_are_drawn_in_steps() -> None:
    figure = draw([Group("s", (point("a", 0), point("b", 600), point("c", 1800)))])
    assert figure.splitlines()[0].split() == ["0", "600", "1200", "1800"]


def test_a_block_knows_its_words() -> None:
    assert Block(("text", "timeline", "cut"), "", 1).arguments == ("timeline", "cut")
