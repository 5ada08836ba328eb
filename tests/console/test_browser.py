"""The console in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.browser import browser, page, why_not

if (missing := why_not()) is not None:
    pytest.skip(missing, allow_module_level=True)
pytest.importorskip("starlette", reason="the console is an extra: pip install 'transom[console]'")

from playwright.sync_api import Browser, Page, expect

from tests.console.building import ALARMS, Building
from tests.console.test_feed import Fake
from transom import Session
from transom.console.board import SessionBoard
from transom.console.feed import Feed
from transom.console.open import Console
from transom.monitoring.address import Address
from transom.session import workspace_of

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
        expect(shown.get_by_role("img", name="Lifetimes").locator("circle.begin").first).to_be_visible(timeout=30_000)
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
    expect(letters.first).to_be_visible(timeout=30_000)
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
    expect(shown.get_by_role("table", name="Latest")).to_contain_text(MARKUP, timeout=30_000)
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
        return found


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
        assert complaints == []


def base(console: ConsoleType) -> str:
    return console.url.partition("#")[0]


@pytest.mark.nightly
def test_a_page_left_open_does_not_grow(opened: Browser) -> None:
    """Ticks come fifty times as fast as for people: twenty seconds are a quarter of an hour."""
    building = Building(pause=0.005)
    building.start()
    console = Console(
        Feed(SessionBoard(building.session, workspace_of(building.session)), tick=0.01, share=1.0),
        None,
        Address("127.0.0.1", 0),
        False,
    )
    sizes: dict[str, list[tuple[float, float]]] = {}
    try:
        for place in ("queries", "query/hot%20rooms/answer", "query/rooms%20now/answer", "query/hot%20rooms/inputs"):
            with page(opened) as (shown, complaints):
                shown.goto(f"{console.url}#/{place}")
                shown.wait_for_timeout(5_000)
                sizes[place] = [size_of(shown)]
                shown.wait_for_timeout(5_000)
                sizes[place].append(size_of(shown))
                assert complaints == []
    finally:
        console.close()
        building.close()
    print(sizes)
    for place, ((heap, nodes), (heap_later, nodes_later)) in sizes.items():
        assert heap_later < heap + 1_000_000, (place, sizes)
        assert nodes_later < max(nodes * 1.5, 8_000), (place, sizes)


def size_of(shown: Page) -> tuple[float, float]:
    """Bytes and nodes that nobody has let go of."""
    tools = shown.context.new_cdp_session(shown)
    for _ in range(2):
        tools.send("HeapProfiler.collectGarbage")
    heap: Any = tools.send("Runtime.getHeapUsage")
    counters: Any = tools.send("Memory.getDOMCounters")
    tools.detach()
    return heap["usedSize"], counters["nodes"]


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
