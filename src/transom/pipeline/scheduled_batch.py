"""What is decided of a batch before it comes, where work is put in order: it is logged with the plan of the batch.

So a batch that runs again, wherever and however fast, does the same work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from transom.pipeline.frames import Frame

_KIND: Final = "schedule"


@dataclass(frozen=True)
class ScheduledBatch:
    """It was planned at `now` by the clock, and a second has work of that `speed`; None: nobody has measured it yet.

    `all`: nobody knows of a batch after it, so that nothing may be left.
    """

    now: int
    speed: float | None
    all: bool = False

    def frame(self) -> Frame:
        """
        >>> ScheduledBatch.of([ScheduledBatch(7, 1e6).frame()])
        ScheduledBatch(now=7, speed=1000000.0, all=False)
        """
        return Frame({"kind": _KIND, **asdict(self)})

    @classmethod
    def of(cls, frames: Iterable[Frame]) -> ScheduledBatch | None:
        """What came of it, if it did."""
        about = next((each.about for each in frames if each.kind == _KIND), None)
        return None if about is None else cls(about["now"], about["speed"], about["all"])
