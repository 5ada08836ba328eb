"""What the source of a streaming query learns of the batches that are done.

It lives in a process of its own, which Spark starts on the driver's machine, so the driver leaves it a file on a disk
there; a checkpoint on a storage has a copy, for a run that resumes from it and for tasks elsewhere. What it plans by it
is in the offset that Spark logs; so a file that is lost or spoilt costs time, and changes no answer.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Final

from transom.core.errors import CheckpointError
from transom.core.time import BEGINNING, FOREVER, UNBOUNDED
from transom.program.alignment import InputPace
from transom.program.batch_size import MOST_ROWS
from transom.program.checkpoint_folder import put, read

_NAME: Final = "feedback.json"
_LONGEST: Final = 1 << 24
"""Bytes; a hundred or two describe an input."""
_TIMES: Final = range(BEGINNING, FOREVER + 1)
_NUMBERS: Final = range(-(2**63), 2**63)
_ROWS: Final = range(1, MOST_ROWS + 1)
_FASTEST: Final = 1e15
_SHARING: Final = range(1 << 20)


@dataclass(frozen=True)
class Feedback:
    """How far the inputs have come, by their names, and when something is due though nothing comes.

    `wake` is by the clock; None: only rows take time on. `stopping`: the query is to end, so nobody waits for more.
    `rows` are the most that the next batch is to take of an input; None: nobody knows. The time of the query had
    `begun` when the batch of this number was done; None: nobody has said so. Of work that is put in order some `waits`
    for another batch, and a second has work of that `speed`, if it was measured. So many queries of the run are
    `sharing` a memory budget; 0: nobody has said so.
    """

    paces: dict[str, InputPace] = field(default_factory=dict)
    wake: int | None = None
    stopping: bool = False
    rows: int | None = None
    begun: int | None = None
    waits: bool = False
    speed: float | None = None
    sharing: int = 0

    def begun_before(self, batch: int) -> bool:
        """Whether time had begun when the batch of this number came: then, it has whenever that is run again."""
        return self.begun is not None and self.begun < batch

    def write(self, folder: str) -> None:
        put(os.path.join(folder, _NAME), json.dumps(asdict(self)).encode(), durable=False)

    @classmethod
    def read(cls, folder: str) -> Feedback:
        try:
            written = json.loads((read(os.path.join(folder, _NAME)) or b"")[:_LONGEST])
            wake, rows, begun = written["wake"], written["rows"], written["begun"]
            if any(number is not None and not _is_among(_NUMBERS, number) for number in (wake, begun)):
                return cls()
            if rows is not None and not _is_among(_ROWS, rows):
                return cls()
            paces = {str(name): _pace(**pace) for name, pace in written["paces"].items()}
            speed = written.get("speed")
            if speed is not None and not (isinstance(speed, int | float) and 1 <= speed <= _FASTEST):
                speed = None
            sharing = written.get("sharing", 0)
            if not _is_among(_SHARING, sharing):
                return cls()
            waits = written.get("waits") is True
            return cls(paces, wake, bool(written["stopping"]), rows, begun, waits, speed, sharing)
        except (CheckpointError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls()


def _pace(watermark: int, rows: int, waiting: int, density: float | None) -> InputPace:
    if not (_is_among(_TIMES, watermark) and _is_among(_NUMBERS, rows) and _is_among(_NUMBERS, waiting)):
        raise ValueError
    # One row in all time is the least, and all there can be at once are the most.
    if density is not None and not 1 / UNBOUNDED <= density <= _NUMBERS[-1]:
        raise ValueError
    return InputPace(watermark, rows, waiting, density)


def _is_among(allowed: range, number: object) -> bool:
    return type(number) is int and number in allowed
