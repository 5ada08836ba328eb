"""A burning building to look at: queries that run while somebody watches, with something wrong in each way."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from transom import Session

HOT = "SELECT room, MAX(celsius) AS hottest FROM readings [RANGE 20 SECONDS] GROUP BY room HAVING MAX(celsius) >= 25"
ALARMS = """
    ISTREAM(SELECT r.room, r.celsius, s.density
            FROM readings [RANGE 1 MINUTE] r JOIN smoke [RANGE 1 MINUTE] s ON r.room = s.room
            WHERE r.celsius > 24 AND s.density > 0.3)
"""
LATEST = "SELECT room, COUNT(*) AS readings, AVG(celsius) AS mean FROM readings [RANGE 1 MINUTE] GROUP BY room"

Row = dict[str, object]


class Building:
    """`speed`: how much faster its time goes than the clock; it ends at the clock."""

    def __init__(self, speed: float = 20.0, pause: float = 0.02) -> None:
        self.session = Session()
        self._pause = pause
        self._step = timedelta(seconds=speed * pause)
        self._over = threading.Event()
        begin = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(minutes=12)
        self.session.stream(
            "readings", self._rows(begin, self._reading, 1), time="at", bound="2 seconds", late="dead_letter"
        )
        self.session.stream("smoke", self._rows(begin - timedelta(minutes=4), self._smoke, 2), time="at")

    def start(self) -> None:
        self.session.start(HOT, name="hot rooms", follow=True)
        self.session.start(ALARMS, name="alarms", follow=True)
        self.session.start(LATEST, name="rooms now", emit="latest", follow=True)

    def close(self) -> None:
        self._over.set()
        self.session.close()

    def _rows(
        self, begin: datetime, made: Callable[[datetime, int, random.Random], Row], seed: int
    ) -> Callable[[], Iterator[Row]]:
        def rows() -> Iterator[Row]:
            chance = random.Random(seed)
            at, number = begin, 0
            while not self._over.wait(self._pause):
                at, number = at + self._step, number + 1
                yield made(at, number, chance)

        return rows

    def _reading(self, at: datetime, number: int, chance: random.Random) -> Row:
        if number % 97 == 50:
            return {"at": None, "room": "attic", "celsius": 19.0}
        late = timedelta(minutes=1) if number % 61 == 60 else timedelta(0)
        room = chance.choice(["attic", "cellar", "hall", "kitchen", "library", "study"])
        return {"at": at - late, "room": room, "celsius": round(chance.gauss(21 if room != "kitchen" else 24, 2.2), 1)}

    def _smoke(self, at: datetime, number: int, chance: random.Random) -> Row:
        return {
            "at": at,
            "room": chance.choice(["kitchen", "hall", "study"]),
            "density": round(chance.random() * 0.5, 2),
        }
