"""The feed of a console: made once a tick, for however many look; bounded, however long."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import suppress
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Opening
from transom.connectors.tapped import AnswerTap
from transom.console.board import ShownQuery
from transom.console.feed import MOST_CLIENTS, Feed
from transom.program.live_answer import MOST_NEW, MOST_SHOWN, LiveView

SCHEMA = pa.schema([("change", pa.string()), ("at", pa.timestamp("us")), ("a", pa.int64())])


class Fake:
    """A board of one query, whose figures are those of its clock."""

    about, over = "a fake", False

    def __init__(self) -> None:
        self.now = 1000.0
        self.looks = 0
        self.wrong = False
        self.tap = AnswerTap()
        self.tap.opened(Opening(SCHEMA, form="changes"))
        self.query = ShownQuery("q", "SELECT", self.status, lambda: None, LiveView(self.tap))

    def queries(self) -> list[ShownQuery]:
        return [self.query]

    def dead_letters(self) -> AnswerTap:
        return self.tap

    def status(self) -> dict[str, Any]:
        self.looks += 1
        if self.wrong:
            raise OSError("<b>gone</b>")
        rows = int(100 * (self.now - 1000))
        operator = {
            "number": 1,
            "rows_in": rows,
            "rows_out": 0,
            "state_rows": 1,
            "state_bytes": 8,
            "seconds": (self.now - 1000) / 2,
        }
        one = {"name": "s", "rows_in": rows, "late": 1, "rejected": 2, "waiting": 0}
        return {
            "name": "q",
            "state": "running",
            "rows_in": rows,
            "rows_out": 0,
            "operators": [operator],
            "inputs": [one],
        }

    def write(self, *rows: tuple[str, int, int]) -> None:
        arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)]
        self.tap.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))


def looked(feed: Feed, board: Fake, clients: int, ticks: int, name: str | None = "q") -> list[list[dict[str, Any]]]:
    """What so many browsers are sent in so many ticks; without a name they look at the list."""

    async def one() -> list[dict[str, Any]]:
        found = []
        events = feed.events(name, frozenset({"answer"}))
        await anext(events)
        async for event in events:
            found.append(json.loads(event.removeprefix(b"data: ")))
            if len(found) == ticks:
                break
        await events.aclose()  # type: ignore[attr-defined]
        return found

    async def everybody() -> list[list[dict[str, Any]]]:
        tasks = [asyncio.create_task(one()) for _ in range(clients)]
        for _ in range(ticks):
            for _ in range(3):
                await asyncio.sleep(0)
            board.now += 1
            feed.tick()
            for _ in range(6):
                await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))

    return asyncio.run(everybody())


def feed_of(board: Fake) -> Feed:
    return Feed(board, clock=lambda: board.now)


def test_however_many_look_a_query_is_looked_at_once_a_tick() -> None:
    board = Fake()
    found = looked(feed_of(board), board, clients=10, ticks=4)
    assert board.looks == 4 and len(found) == 10 and all(one == found[0] for one in found)


def test_rates_are_of_the_last_seconds() -> None:
    board = Fake()
    (of_one,) = looked(feed_of(board), board, clients=1, ticks=3)
    (of_all,) = looked(feed_of(board), board, clients=1, ticks=3, name=None)
    (shown,) = of_all[-1]["queries"]
    assert of_one[-1]["detail"]["operators"][0]["rows_per_second"] == shown["rows_per_second"] == 100
    assert (shown["late"], shown["rejected"]) == (1, 2)


def test_an_answer_is_sent_when_there_is_more_of_it() -> None:
    board = Fake()
    board.write(("+", 5, 7))
    (found,) = looked(feed_of(board), board, clients=1, ticks=3)
    assert ["answer" in event for event in found] == [True, False, False]
    assert found[0]["answer"]["table"] == [["7"]] and found[0]["answer"]["bars"] == [["7", 5, None]]


def test_what_is_sent_is_bounded() -> None:
    board = Fake()
    for at in range(50):
        board.write(*(("+", 100 * at + i, i) for i in range(100)))
    (found,) = looked(feed_of(board), board, clients=1, ticks=1)
    answer = found[0]["answer"]
    assert [len(answer[what]) for what in ("rows", "table", "bars")] == [MOST_NEW, MOST_SHOWN, MOST_NEW]
    assert (answer["passed"], answer["partial"]) == (5000, True)


def test_a_query_that_cannot_be_looked_at_is_shown_as_that() -> None:
    board = Fake()
    feed = feed_of(board)
    feed.tick()
    board.wrong = True
    (found,) = looked(feed, board, clients=1, ticks=1, name=None)
    (shown,) = found[0]["queries"]
    assert (shown["state"], shown["error"]) == ("failed", "OSError: <b>gone</b>")


def test_an_answer_that_cannot_be_read_is_said_and_the_page_goes_on() -> None:
    """A file of Spark's tasks may go while its last rows are read back."""
    board = Fake()

    def gone(most: int) -> list[pa.RecordBatch]:
        raise OSError("no <b>file</b>")

    board.tap.passed_by(gone)
    (found,) = looked(feed_of(board), board, clients=1, ticks=2)
    assert found[0]["answer"] == {"error": "OSError: no <b>file</b>"} and found[1]["detail"]


def test_who_looks_at_one_query_has_the_others_left_alone() -> None:
    """But for their history, every five seconds."""
    board = Fake()
    other = ShownQuery("other", "SELECT", board.status, lambda: None)
    board.queries = lambda: [board.query, other]  # type: ignore[method-assign]
    (found,) = looked(feed_of(board), board, clients=1, ticks=10)
    assert board.looks == 10 + 2 and all("queries" not in event for event in found)
    (found,) = looked(feed_of(board), board, clients=1, ticks=10, name=None)
    assert board.looks == 12 + 20 and [each["name"] for each in found[0]["queries"]] == ["q", "q"]


def test_a_tick_that_is_under_way_is_not_for_who_comes_meanwhile() -> None:
    """It did not look for what they ask, and would say that there is no such query."""
    board = Fake()
    feed = feed_of(board)

    async def comes() -> dict[str, Any]:
        status, events = board.query.status, feed.events("q", frozenset())

        def meanwhile() -> dict[str, Any]:
            with suppress(StopIteration):
                anext(events).__await__().send(None)
            return status()

        board.query.status = meanwhile
        feed._clients = 1
        feed.tick()
        board.query.status = status
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.01)
        assert not first.done()
        feed.tick()
        found: dict[str, Any] = json.loads((await first).removeprefix(b"data: "))
        await events.aclose()  # type: ignore[attr-defined]
        return found

    assert asyncio.run(comes())["detail"]["name"] == "q"


def test_nothing_is_made_while_nobody_looks() -> None:
    board = Fake()
    feed = feed_of(board)
    board.write(("+", 5, 7))
    feed.tick()
    assert (feed._overview, feed._details, feed._answers) == (b"null", {}, {})
    looked(feed, board, clients=2, ticks=2)
    assert (feed._clients, feed._wanted.there()) == (0, set())


def test_an_answer_is_made_for_who_looks_at_it() -> None:
    """Whoever looks at the plan of a query has its figures, and the rows are left alone."""
    board = Fake()
    feed = feed_of(board)
    board.write(("+", 5, 7))

    async def sent(wants: frozenset[str]) -> dict[str, Any]:
        events = feed.events("q", wants)
        await anext(events)
        feed.tick()
        found: dict[str, Any] = json.loads((await anext(events)).removeprefix(b"data: "))
        made.append((bool(feed._answers), feed._dead_letters[0] >= 0))
        await events.aclose()  # type: ignore[attr-defined]
        return found

    made: list[tuple[bool, bool]] = []
    plan = asyncio.run(sent(frozenset()))
    answer = asyncio.run(sent(frozenset({"answer"})))
    letters = asyncio.run(sent(frozenset({"dead_letters"})))
    assert "detail" in plan and "answer" not in plan
    assert answer["answer"]["table"] == [["7"]] and letters["dead_letters"]["table"] == [["7"]]
    assert made == [(False, False), (True, False), (False, True)]
    assert not (feed._wanted.there() or feed._answers_wanted.there() or feed._letters_wanted)


def test_no_more_look_than_may() -> None:
    board = Fake()
    feed = feed_of(board)
    feed._clients = MOST_CLIENTS
    assert feed.full


class Busy(Fake):
    """A look at it takes some milliseconds."""

    def status(self) -> dict[str, Any]:
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return super().status()


def test_whoever_comes_is_answered_before_the_rest_is_over() -> None:
    """A look is to be followed by twenty seconds of rest."""
    board = Busy()
    feed = Feed(board, tick=0.01, share=0.0005)
    thread = threading.Thread(target=feed.run)

    async def answered() -> float:
        began = time.monotonic()
        events = feed.events(None, frozenset())
        await anext(events)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        return time.monotonic() - began

    async def two() -> list[float]:
        return [await answered(), await answered()]

    thread.start()
    waited = asyncio.run(two())
    assert max(waited) < 15 and board.looks <= 4
    began = time.monotonic()
    feed.stop()
    thread.join(20)
    assert time.monotonic() - began < 15 and not thread.is_alive()


def _looked(looks: list[str], name: str, board: Fake) -> dict[str, Any]:
    looks.append(name)
    return {**board.status(), "name": name}


def test_who_comes_has_their_query_looked_at_and_no_other() -> None:
    """Whoever clicks through many queries is to pay for what they look at, and for nothing that others look at."""
    board = Fake()
    looks: list[str] = []

    def named(name: str) -> ShownQuery:
        return ShownQuery(name, "SELECT", lambda: _looked(looks, name, board), lambda: None)

    queries = [named(name) for name in ("a", "b", "c")]
    board.queries = lambda: queries  # type: ignore[method-assign]
    feed = feed_of(board)
    feed.tick()
    looks.clear()

    async def come() -> list[dict[str, Any]]:
        found = []
        for name in ("b", None):
            events = feed.events(name, frozenset())
            await anext(events)
            feed.tick(everything=False)
            found.append(json.loads((await anext(events)).removeprefix(b"data: ")))
            await events.aclose()  # type: ignore[attr-defined]
        return found

    of_one, of_all = asyncio.run(come())
    assert looks == ["b"] and of_one["detail"]["name"] == "b"
    assert [each["name"] for each in of_all["queries"]] == ["a", "b", "c"]


def test_a_query_that_is_over_has_no_rate() -> None:
    board = Fake()
    feed = feed_of(board)
    looked(feed, board, clients=1, ticks=3)
    status = board.query.status
    board.query.status = lambda: {**status(), "state": "stopped"}
    (found,) = looked(feed, board, clients=1, ticks=1)
    assert found[0]["detail"]["rows_per_second"] == found[0]["detail"]["operators"][0]["rows_per_second"] == 0
    assert found[0]["detail"]["operators"][0]["share"] == 1.0


def test_history_remembers_the_figures() -> None:
    board = Fake()
    feed = feed_of(board)
    for _ in range(900):
        board.now += 1
        feed.tick()
    found = feed.history("q", 600)
    assert 590 <= len(found["time"]) <= 601 and found["rows_per_second"][-1] == 100 and found["rows_late"][-1] == 1
    newest = found["time"][-1]
    assert feed.history("q", 600, since=newest)["time"] == [newest - 1, newest]


def test_the_share_of_an_operator_is_that_of_the_last_seconds() -> None:
    board = Fake()
    feed = feed_of(board)
    feed.tick()
    one = {"number": 2, "rows_in": 0, "rows_out": 0, "state_rows": 0, "state_bytes": 0, "seconds": 100.0}
    status = board.status
    board.query.status = lambda: {**status(), "operators": [*status()["operators"], dict(one)]}
    found = looked(feed, board, clients=1, ticks=9)[0][-1]["detail"]["operators"]
    assert [each["share"] for each in found] == [1.0, 0.0] and found[1]["share_of_all"] > 0.9
