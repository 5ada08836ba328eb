"""How fast a count grows."""

from __future__ import annotations

from collections import deque
from typing import Final

_SECONDS_OF_RATE: Final = 5.0


class Rate:
    """How much a count grows a second, over the last few of them.

    >>> rate = Rate()
    >>> [rate.of(*look) for look in ((0, 10.0), (100, 11.0), (100, 12.0))]
    [0, 100, 50]
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[int, float]] = deque()

    def of(self, count: int, now: float) -> int:
        self._looks.append((count, now))
        while now - self._looks[0][1] > _SECONDS_OF_RATE and len(self._looks) > 2:
            self._looks.popleft()
        before, then = self._looks[0]
        return round((count - before) / (now - then)) if now > then else 0
