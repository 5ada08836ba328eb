"""The console in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from benchmarks.browser import why_not
from tests.console.browser import browser, held_by, page

if (missing := why_not()) is not None:
    pytest.skip(missing, allow_module_level=True)
pytest.importorskip("starlette", reason="the console is an extra: pip install 'transom[console]'")

from playwright.sync_api import Browser, Page, expect

from tests.console.building import ALARMS, Building
from tests.console.test_feed import Fake
from transom import Session
from transom.connectors.connector import Opening
from transom.connectors.tapped import AnswerTap
from transom.console.feed import Feed
from transom.console.open import Console
from transom.monitoring.address import Address
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA

if TYPE_CHECKING:
    from transom.console.open import Console as ConsoleType

MARKUP = "<img src=x onerror=document.title=7>"


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def building() -> Iterator[Building]:
    building = Building()
    try:
        building.start()
        yield building
    finally:
        building.close()


def test_the_queries_of_a_session_are_listed(opened: Browser, building: Building) -> None:
    console = building.session.console("127.0.0.1:0")
    with page(opened) as (shown, complaints):
        shown.goto(console.url)
        rows = shown.get_by_role("table", name="Queries").locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("running")
        expect(rows.filter(has_text="alarms")).to_have_count(1)
    assert complaints == []


@pytest.mark.nightly
def test_all_that_the_page_shows(opened: Browser, building: Building) -> None:
    console = building.session.console("127.0.0.1:0", allow_changes=True)
    with page(opened) as (shown, complaints):
        shown.goto(console.url)
        figures_move(shown)
        shown.get_by_role("link", name="alarms").click()
        the_plan_is_drawn(shown, building)
        shown.get_by_role("link", name="Answer").click()
        expect(shown.get_by_role("img", name="Lifetimes").locator("circle.begin").first).to_be_visible(timeout=120_000)
        a_dead_letter_is_found(shown, console)
        shown.goto(f"{base(console)}#/query/alarms/history")
        expect(shown.locator("canvas")).to_have_count(4)
        an_error_is_shown(shown, console)
        a_query_comes_and_goes(shown, building)
    assert complaints == []


def figures_move(shown: Page) -> None:
    cell = shown.get_by_role("row", name="hot rooms").locator("td").nth(4)
    expect(cell).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    before = cell.inner_text()
    expect(cell).not_to_have_text(before)


def the_plan_is_drawn(shown: Page, building: Building) -> None:
    operators: Any = building.session.explain(ALARMS).plans[0]["operators"]
    expect(shown.locator("g.node")).to_have_count(len(operators))
    expect(shown.locator("path.edge")).to_have_count(sum(len(each["inputs"]) for each in operators))
    expect(shown.locator("g.node.busy")).to_have_count(1)
    expect(shown.get_by_text("busiest 1")).to_be_visible()
    shown.locator("g.node", has_text="#9").click()
    expect(shown.locator("dl")).to_contain_text("readings.room = smoke.room")
    expect(shown.locator("pre.written mark")).to_have_text(["r.room = s.room"])
    shown.locator("g.node", has_text="#2").click()
    expect(shown.locator("pre.written mark")).to_have_text(["r.celsius > 24"])
    shown.locator("g.node", has_text="#3").click()
    expect(shown.locator("pre.written mark")).to_have_count(0)


def a_dead_letter_is_found(shown: Page, console: ConsoleType) -> None:
    shown.goto(f"{base(console)}#/query/hot%20rooms/inputs")
    letters = shown.get_by_role("table", name="Dead letters").locator("tbody tr")
    expect(letters.first).to_be_visible(timeout=120_000)
    shown.get_by_label("Find dead letters").fill("is NULL")
    expect(letters.first).to_contain_text("the time column 'at' is NULL")
    expect(letters.first).to_contain_text('"room": "attic"')
    shown.get_by_label("Find dead letters").fill("no such thing")
    expect(letters).to_have_count(0)


def an_error_is_shown(shown: Page, console: ConsoleType) -> None:
    shown.goto(f"{base(console)}#/editor")
    shown.get_by_label("Query text").fill("SELECT room,\n  celsus FROM readings")
    expect(shown.get_by_role("status").last).to_contain_text("line 2, column 3: there is no column 'celsus'")
    expect(shown.locator("mark")).to_have_text("celsus")
    shown.get_by_label("Query text").fill(f"SELECT '{MARKUP}' AS m, nothing FROM readings")
    expect(shown.get_by_role("status").last).to_contain_text("'nothing'")


def a_query_comes_and_goes(shown: Page, building: Building) -> None:
    shown.get_by_label("Query text").fill(f"SELECT room, '{MARKUP}' AS m FROM readings [RANGE 9 SECONDS]")
    expect(shown.get_by_role("status").last).to_contain_text("right: one query")
    expect(shown.locator("pre.plan")).to_contain_text("window range")
    shown.get_by_label("Name").fill("mine")
    shown.get_by_role("button", name="Start").click()
    expect(shown.locator("h1").first).to_have_text("mine")
    expect(shown.get_by_role("table", name="Latest")).to_contain_text(MARKUP, timeout=120_000)
    assert {query.name for query in building.session.queries} >= {"mine"}
    shown.get_by_role("button", name="Stop").click()
    expect(shown.locator(".title .state")).to_contain_text("stopped")
    assert "mine" not in {query.name for query in building.session.queries}
    assert shown.title() != "7"


class Partial(Fake):
    """Two slides are put off."""

    def status(self) -> dict[str, Any]:
        found = super().status()
        slides = {"waiting": ["1970-01-01T00:00:20Z", "1970-01-01T00:00:30Z"], "lines": []}
        found["operators"][0] |= {"title": "join", "slides": slides}
        return {**found, "history": {"seconds": 60.0, "rows": 1234, "bytes": 56_000, "from": "1970-01-01 00:00:20"}}


@pytest.mark.nightly
def test_partial_slides_are_told_apart(opened: Browser) -> None:
    board = Partial()
    board.write(("+", 10_000_000, 1), ("+", 40_000_000, 2))
    with (
        Console(Feed(board), None, Address("127.0.0.1", 0), False) as console,
        page(opened) as (shown, complaints),
    ):
        shown.goto(f"{console.url}#/query/q/answer")
        picture = shown.get_by_role("img", name="Lifetimes")
        expect(picture.locator("rect.partial")).to_have_count(2)
        expect(shown.get_by_text("Partial at 00:00:20, 00:00:30")).to_be_visible()
        expect(shown.get_by_text("1,234 rows in 56.0 kB are kept, from 1970-01-01 00:00:20 on")).to_be_visible()
        expect(shown.get_by_role("heading", name="Latest")).to_have_text("Latest: 2 rows")
        assert complaints == []


@pytest.mark.nightly
def test_a_page_in_the_background_asks_for_nothing(opened: Browser) -> None:
    board = Fake()
    feed = Feed(board, tick=0.05, share=1.0)
    with Console(feed, None, Address("127.0.0.1", 0), False) as console, page(opened) as (shown, complaints):
        shown.add_init_script(AWAY)
        shown.goto(f"{console.url}#/query/q/answer")
        expect(shown.locator("#link")).to_have_text("● live")
        shown.evaluate("window.leave(true)")
        assert gone(feed, shown)
        board.write(("+", 1, 7))
        shown.evaluate("window.leave(false)")
        expect(shown.get_by_role("table", name="Latest").locator("tbody tr")).to_have_count(1)
        assert complaints == []


def gone(feed: Feed, shown: Page) -> bool:
    """Nobody is served any more, after a while."""
    for _ in range(1200):
        if not feed._clients:
            return True
        shown.wait_for_timeout(50)
    return False


def base(console: ConsoleType) -> str:
    return console.url.partition("#")[0]


class Hour(Fake):
    """Each look is half a second later, and everything that can change has changed: rows, lines, bars, dead letters."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = AnswerTap()
        self.letters.opened(Opening(DEAD_LETTER_SCHEMA))
        self.number = 0

    def dead_letters(self) -> AnswerTap:
        return self.letters

    def status(self) -> dict[str, Any]:
        self.now += 0.5
        self.number += 1
        at = int(self.now * 1e6)
        self.write(("+", at, self.number), ("-", at, self.number - 40))
        letter = [["s"], [f"reason {self.number}"], ["s, row 7"], [f"row {self.number}"]]
        self.letters.write(pa.RecordBatch.from_arrays([pa.array(each) for each in letter], schema=DEAD_LETTER_SCHEMA))
        found = super().status()
        found["operators"][0] |= {"title": "join", "state_bytes": 8 * self.number}
        mark = {"watermark": None, "used": self.number, "ended": False, "reasons": {f"reason {self.number % 9}": 1}}
        found["inputs"][0] |= {**mark, "lag_seconds": 1.0, "leap": None}
        return found


AWAY = """
window.away = false;
Object.defineProperty(document, "hidden", { get: () => window.away });
window.leave = (away) => { window.away = away; document.dispatchEvent(new Event("visibilitychange")); };
"""


COUNTING = """
window.seen = 0;
const own = { EventSource, fetch: fetch.bind(window), setTimeout: setTimeout.bind(window) };
window.EventSource = class extends own.EventSource {
  constructor(...all) { super(...all); this.addEventListener("message", () => { window.seen += 1; }); }
};
window.fetch = (...all) => { if (`${all[0]}`.includes("/api/history")) window.seen += 1; return own.fetch(...all); };
window.setTimeout = (work, wait, ...all) => own.setTimeout(work, wait >= 1000 ? 5 : wait, ...all);
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("place", "times"),
    [("queries", 7200), ("query/q/plan", 7200), ("query/q/answer", 7200), ("query/q/inputs", 7200),
     ("query/q/history", 1800 + 7200)],
)  # fmt: skip
def test_a_page_left_open_for_an_hour_does_not_grow(opened: Browser, place: str, times: int) -> None:
    """An hour's two messages a second, and a question for the series every two; they come as fast as the page takes
    them. A fifth of it is over when it is first weighed: the newest rows are as many as are kept by then."""
    feed = Feed(board := Hour(), tick=0.001, share=1e6, clock=lambda: board.now)
    sizes = []
    with (
        Console(feed, None, Address("127.0.0.1", 0), False) as console,
        page(opened) as (shown, complaints),
    ):
        shown.add_init_script(AWAY + COUNTING)
        shown.goto(f"{console.url}#/{place}")
        for part in (times // 5, times):
            while shown.evaluate("window.seen") < part:
                shown.wait_for_timeout(250)
            sizes.append(size_of(shown))
        assert complaints == []
    print(place, sizes)
    (heap, nodes, listeners), (heap_later, nodes_later, listeners_later) = sizes
    assert (heap_later < heap + 400_000, nodes_later < nodes + 100, listeners_later == listeners) == (True,) * 3


def size_of(shown: Page) -> tuple[int, int, int]:
    """Bytes, nodes and listeners that nobody has let go of; nothing comes meanwhile, as what has just come and gone
    would be counted as well."""
    shown.evaluate("window.leave(true)")
    for _ in range(3):  # what one collection frees may have held what the next one frees
        shown.wait_for_timeout(100)
        found = held_by(shown)
    shown.evaluate("window.leave(false)")
    return found


@pytest.mark.nightly
def test_hostile_names_and_values_are_texts(opened: Browser) -> None:
    with Session() as session:
        rows = [{"t": f"2024-05-01 10:00:0{i}", MARKUP: MARKUP} for i in range(3)] + [{"t": None, MARKUP: MARKUP}]
        session.stream("s", rows, time="t")
        console = session.console("127.0.0.1:0")
        text = f'SELECT "{MARKUP}", \'<script>document.title = 1</script>\' AS "</title><b>" FROM s [RANGE 9 SECONDS]'
        session.start(text, name="q", follow=False).await_termination(60)
        with page(opened) as (shown, complaints):
            session.start(text, name="later", follow=True)
            for tab in ("plan", "answer", "inputs", "history"):
                shown.goto(f"{console.url}#/query/later/{tab}")
                shown.wait_for_timeout(1200)
                assert "later" in shown.title() and shown.locator("main img, main script, main b b").count() == 0
            assert complaints == []
