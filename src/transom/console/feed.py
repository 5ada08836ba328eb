"""What the console says again and again: made once a tick for all who look, and not at all while nobody does.

A browser that is slow misses ticks; nothing waits for it, and nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pyarrow as pa

from transom.connectors.connector import Opening
from transom.connectors.tapped import AnswerTap
from transom.console.board import Board, ShownQuery
from transom.monitoring.history import TIERS, SeriesHistory
from transom.monitoring.silence import Silence
from transom.monitoring.snapshot import error_text
from transom.program.live_answer import LiveAnswer, LiveView

TICK: Final = 0.5
_IDLE_TICK: Final = 5.0
"""How often queries are looked at for their history that nobody looks at."""

MOST_OF_A_CORE: Final = 0.006
"""What the queries leave to whoever looks at them."""

_MOST_OWED: Final = 10.0
"""So long a rest is put off for people who come; then they wait for it as well."""

MOST_CLIENTS: Final = 64
_LIST: Final = ""
"""In place of the name of a query: all of them, in short. No query has this name."""

_SECONDS_OF_RATE: Final = 5.0

_REACHES: Final = tuple(seconds * slots for seconds, slots in TIERS)

Json = dict[str, Any]


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str).encode(
        "utf-8", "replace"
    )


class Rates:
    """How much counts grow a second, over the last few of them.

    >>> rates = Rates()
    >>> [rates.of({"a": count}, now) for count, now in ((0, 10.0), (100, 11.0), (100, 12.0))]
    [{'a': 0.0}, {'a': 100.0}, {'a': 50.0}]
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, dict[str, float]]] = deque()

    def of(self, counts: dict[str, float], now: float) -> dict[str, float]:
        self._looks.append((now, counts))
        while now - self._looks[0][0] > _SECONDS_OF_RATE and len(self._looks) > 2:
            self._looks.popleft()
        then, before = self._looks[0]
        span = now - then
        return {name: (count - before.get(name, count)) / span if span > 0 else 0.0 for name, count in counts.items()}


class _Followed:
    """What is remembered of a query from tick to tick."""

    def __init__(self, query: ShownQuery) -> None:
        self.query = query
        self.rates = Rates()
        self.silence = Silence()
        self.status: Json = {}
        self.looked = 0.0
        self.last = False


class _Counted:
    """How many look at what, by its name."""

    def __init__(self) -> None:
        self._of: dict[str, int] = {}

    def add(self, name: str, one: int) -> None:
        self._of[name] = self._of.get(name, 0) + one
        if not self._of[name]:
            del self._of[name]

    def there(self) -> set[str]:
        return set(self._of.copy())  # in one go: others come and go meanwhile


class Feed:
    """`tick` in seconds; ticks come more slowly where they would take more than this `share` of a core."""

    def __init__(
        self, board: Board, tick: float = TICK, share: float = MOST_OF_A_CORE, clock: Callable[[], float] = time.time
    ) -> None:
        self.board = board
        self._tick = tick
        self._share = share
        self._clock = clock
        self._history = SeriesHistory()
        self._followed: dict[int, _Followed] = {}
        self._overview = b"null"
        self._queries = b"null"
        self._details: dict[str, bytes] = {}
        self._answers: dict[str, tuple[int, bytes]] = {}
        self._dead_letters: tuple[int, bytes] = (-1, b"null")
        tap = board.dead_letters()
        self._rejected = None if tap is None else LiveView(tap)
        self._clients = 0
        self._of_all = 0
        """Those of them that look at the list of queries."""
        self._wanted = _Counted()
        """Queries that somebody looks at."""
        self._answers_wanted = _Counted()
        """Those whose answers they look at."""
        self._letters_wanted = 0
        self._look = threading.Event()
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.Future[None] | None = None
        self._newcomers: deque[str] = deque()
        """What those look at who have just come."""
        self._begun = 0
        self._made: dict[str, int] = {}
        """In which tick it was made what is there for who looks at it; `_begun` is the last one that has begun."""

    # --- the thread that ticks ---------------------------------------------------------------------------------------

    def run(self) -> None:
        self.tick()
        _look_once()  # what the first look imports and compiles is not owed: whoever comes first would wait for it
        last = paid = time.monotonic()  # until `paid` it has to rest, or it takes more than its share
        while not self._over.is_set():
            self._look.clear()
            now, started = time.monotonic(), time.thread_time()
            due = max(last + (self._tick if self._clients else _IDLE_TICK), paid)
            if now >= due:
                last = now
                self.tick()
            elif self._newcomers and paid - now < _MOST_OWED:
                self.tick(everything=False)
            elif self._newcomers:
                self._over.wait(paid - _MOST_OWED - now)
            else:
                self._look.wait(due - now)
            paid = max(paid, now) + (time.thread_time() - started) / self._share

    def stop(self) -> None:
        self._over.set()
        self._look.set()
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def tick(self, everything: bool = True) -> None:
        """Look at the queries, once; or else at those alone that somebody waits for who has just come."""
        self._begun += 1  # before it is seen who is there: who comes from now on waits for the next tick
        now = self._clock()
        names = self._came()
        if everything:
            names = {*self._wanted.there(), *([_LIST] if self._of_all else [])}
        shown = self.board.queries()
        keep = {id(query) for query in shown}
        self._followed = {key: watched for key, watched in self._followed.items() if key in keep}
        for query in shown:
            watched = self._followed.setdefault(id(query), _Followed(query))
            if watched.last:
                continue
            old = not names or now - watched.looked >= _IDLE_TICK
            if query.name in names or (everything and (old or _LIST in names)) or not watched.status:
                watched.last, watched.looked = query.over, now
                self._look_at(watched, now)
        if names:
            self._make(names, everything, now)

    def _make(self, names: set[str], everything: bool, now: float) -> None:
        """What is sent to who looks at these."""
        followed = list(self._followed.values())
        wanted = [watched for watched in followed if watched.query.name in names]
        self._overview = encoded({"now": now, "about": self.board.about, "over": self.board.over})
        if _LIST in names:
            self._queries = encoded([_summary(watched.status) for watched in followed])
        kept = ({}, {}) if everything else (self._details, self._answers)
        self._details = {**kept[0], **{watched.query.name: encoded(watched.status) for watched in wanted}}
        answers = self._answers_wanted.there()
        self._answers = {
            **kept[1],
            **{watched.query.name: self._answer(watched.query) for watched in wanted if watched.query.name in answers},
        }
        if self._letters_wanted:
            self._reject()
        self._made = {**({} if everything else self._made), **dict.fromkeys(names, self._begun)}
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def _came(self) -> set[str]:
        newcomers = set()
        while self._newcomers:
            newcomers.add(self._newcomers.popleft())
        return newcomers

    def history(self, name: str, seconds: float, since: float = 0.0) -> Json:
        """The series of a query, by column; of what is known already from its newest moment, `since`, on."""
        query = self.query(name)
        if query is not None and query.past:
            reaches = sorted(query.past, key=float)
            return query.past[next((each for each in reaches if float(each) >= seconds), reaches[-1])]
        return self._history.of(name, seconds, self._clock(), since)

    def saved(self) -> bytes:
        """What is known of every query, for whoever looks at its checkpoint later; to be called when nobody ticks."""
        self.tick()
        now = self._clock()
        saved_of: Json = {}
        for watched in self._followed.values():
            explained, name = watched.query.explained(), watched.query.name
            saved_of[name] = {
                "explain": None if explained is None else str(explained),
                "plans": [] if explained is None else list(explained.plans),
                "operators": watched.status.get("operators", []),
                "partitions": watched.status.get("partitions", []),
                "series": {str(reach): self._history.of(name, reach, now) for reach in _REACHES},
            }
        return encoded(saved_of)

    def query(self, name: str) -> ShownQuery | None:
        return next((query for query in self.board.queries() if query.name == name), None)

    def _look_at(self, watched: _Followed, now: float) -> None:
        try:
            status = watched.query.status()
        except Exception as error:  # whatever is wrong with it is shown, and the others go on
            status = {**watched.status, "name": watched.query.name, "state": "failed", "error": error_text(error)}
        operators, inputs = status.get("operators", []), status.get("inputs", [])
        watched.silence.mark({"inputs": inputs, "held_back_by": status.get("held_back_by")}, now)
        counts = {"in": status.get("rows_in", 0), "out": status.get("rows_out", 0)}
        counts |= {f"input {each['name']}": each["rows_in"] for each in inputs}
        counts |= {f"#{each['number']}": each["rows_in"] or each["rows_out"] for each in operators}  # a scan reads
        counts |= {f"busy #{each['number']}": each["seconds"] for each in operators}
        rates = watched.rates.of(counts, now)
        if status.get("state") != "running":
            rates = dict.fromkeys(rates, 0.0)
        in_all = sum(each["seconds"] for each in operators)
        lately = sum(rates[f"busy #{each['number']}"] for each in operators)
        for each in operators:
            each["rows_per_second"] = rates[f"#{each['number']}"]
            each["share_of_all"] = each["seconds"] / in_all if in_all else 0.0
            each["share"] = rates[f"busy #{each['number']}"] / lately if lately > 0 else each["share_of_all"]
        for each in inputs:
            each["rows_per_second"] = rates[f"input {each['name']}"]
        status["rows_per_second"], status["rows_out_per_second"] = rates["in"], rates["out"]
        status["text"] = watched.query.text
        status["stoppable"] = watched.query.stop is not None
        watched.status = status
        values = {
            "rows_per_second": rates["in"],
            "rows_out_per_second": rates["out"],
            "lag_seconds": status.get("lag_seconds"),
            "held_back_seconds": (status.get("held_back_by") or {}).get("seconds"),
            "rows_waiting": sum(each["waiting"] for each in inputs),
            "rows_late": sum(each["late"] for each in inputs),
            "rows_rejected": sum(each["rejected"] for each in inputs),
            "state_rows": sum(each["state_rows"] for each in operators),
            "state_bytes": sum(each["state_bytes"] for each in operators),
        }
        self._history.add(watched.query.name, now, values)

    def _answer(self, query: ShownQuery) -> tuple[int, bytes]:
        if query.view is None:
            return -1, b"null"
        version = query.view.version
        answer = self._answers.get(query.name)
        if answer is not None and answer[0] == version:
            return answer
        return version, _shown(query.view, int(self._clock() * 1e6))

    def _reject(self) -> None:
        if self._rejected is not None and self._rejected.version != self._dead_letters[0]:
            self._dead_letters = self._rejected.version, _shown(self._rejected, 0)

    # --- those who look ----------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        return self._clients >= MOST_CLIENTS

    async def events(self, name: str | None, wants: frozenset[str]) -> AsyncIterator[bytes]:
        """What a browser is sent; of `wants`, "answer" and "dead_letters" come when there is more of them."""
        if self.full:  # since it was asked
            return
        self._loop = asyncio.get_running_loop()
        topic = _LIST if name is None else name
        self._clients += 1
        self._count(name, wants, 1)
        self._newcomers.append(topic)
        number = self._begun  # a tick that is under way may not have looked for this one
        self._look.set()
        seen = {"answer": -2, "dead_letters": -2}
        try:
            yield b"retry: 2000\n\n"
            while not self._over.is_set():
                made = self._made.get(topic, 0)
                if made <= number:
                    await self._ticked()
                    continue
                number = made
                parts = [b'{"overview":', self._overview]
                if name is None:
                    parts += [b',"queries":', self._queries]
                else:
                    parts += [b',"detail":', self._details.get(name, b"null")]
                for what, (version, data) in (
                    ("answer", self._answers.get(topic, (-1, b"null"))),
                    ("dead_letters", self._dead_letters),
                ):
                    if what in wants and version != seen[what]:
                        seen[what] = version
                        parts += [f',"{what}":'.encode(), data]
                yield b"data: " + b"".join(parts) + b"}\n\n"
        finally:
            self._clients -= 1
            self._count(name, wants, -1)

    def _count(self, name: str | None, wants: frozenset[str], one: int) -> None:
        """Somebody who looks for this has come, or goes."""
        self._letters_wanted += one if "dead_letters" in wants else 0
        if name is None:
            self._of_all += one
            return
        self._wanted.add(name, one)
        if "answer" in wants:
            self._answers_wanted.add(name, one)

    async def _ticked(self) -> None:
        if self._next is None:
            assert self._loop is not None
            self._next = self._loop.create_future()
        await asyncio.shield(self._next)

    def _wake(self) -> None:
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def _summary(status: Json) -> Json:
    """What the list of queries shows of one."""
    inputs = status.get("inputs", [])
    names = (
        "name", "state", "progress", "lag_seconds", "held_back_by", "rows_in", "rows_out", "rows_per_second",
        "rows_out_per_second", "batches", "error", "runtime", "stoppable",
    )  # fmt: skip
    overload = status.get("overload") or {}
    return {
        **{name: status.get(name) for name in names},
        "late": sum(each["late"] for each in inputs),
        "rejected": sum(each["rejected"] for each in inputs),
        "shed": overload.get("shed", 0),
    }


def _look_once() -> None:
    """At an answer of one row."""
    rows = pa.record_batch({"change": ["+"], "at": pa.array([0], pa.timestamp("us")), "a": [0]})
    tap = AnswerTap()
    view = LiveView(tap)
    tap.opened(Opening(rows.schema, form="changes"))
    tap.write(rows)
    _shown(view, 0)


def _shown(view: LiveView, now: int) -> bytes:
    """What is wrong with the rows of one, such as a file that went while it was read, is shown in their place."""
    try:
        return encoded(_answer_json(view.look(now)))
    except Exception as error:
        return encoded({"error": error_text(error)})


def _answer_json(answer: LiveAnswer) -> Json:
    return {**vars(answer), "bars": [(bar.label, bar.begin, bar.end) for bar in answer.bars]}
