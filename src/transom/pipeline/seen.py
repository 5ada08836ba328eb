"""What a task saw of one input, as it is reported to every partition; and what later stages have to know of it.

Every task sends it to every partition, so it is small: what is as usual is left out, and of a task it is packed once,
for all. The times at which the query might begin are sent as long as its time has not begun.

A stage that no row of the input comes to wants to know where time is, and not who saw what: it is sent a digest of what
all tasks saw. Streams that are stamped on arrival are an exception: their clock counts rows task by task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

from transom.core.delta import Int64s
from transom.pipeline.frames import Frame

Seen = dict[str, Any]

_USUAL: Final[Seen] = {
    "source_partition": None,
    "now": None,
    "rows_in": 0,
    "late": 0,
    "rejected": 0,
    "greatest": None,
    "ended": False,
    "at_end": False,
    "follows": False,
    "began": None,
    "leap": None,
    "reasons": {},
    "firsts": [],
    "more": False,
    "begun": False,
    "sharing": 0,
}


def seen_frame(source: str, sender: int, **seen: Any) -> Frame:
    """What a task saw of a source, on its way."""
    return brief(Frame({"kind": "seen", "source": source, "sender": sender, **seen}))


def brief(part: Frame) -> Frame:
    """The note without what is as usual."""
    return Frame({name: value for name, value in part.about.items() if name not in _USUAL or value != _USUAL[name]})


def heard(part: Frame) -> Frame:
    """What was reported, with all that was left out.

    >>> heard(seen_frame("s", 3, rows_in=5, late=0)).about["rows_in"]
    5
    """
    return part if part.kind != "seen" else Frame({**_USUAL, **part.about})


def packed_times(times: Int64s) -> list[int]:
    """Ascending times, as few digits as they need.

    >>> packed_times(np.array([1_700_000_000_000_000, 1_700_000_000_000_250]))
    [1700000000000000, 250]
    """
    differences: list[int] = np.diff(times, prepend=0).tolist()
    return differences


def unpacked_times(packed: Sequence[int]) -> Int64s:
    return np.array(list(accumulate(packed)), dtype=np.int64)


def digest(parts: Iterable[Frame], first: int | None) -> list[Frame]:
    """What all tasks saw of one source, of which `first` is the first admitted instant by now.

    What follows the clock and what does not stay apart: they have clocks of their own.
    """
    by_split: dict[tuple[bool, str | None], Seen] = {}
    for part in parts:
        seen = part.about
        of = {name: seen[name] for name in ("source", "sender", "source_partition")}
        total = by_split.setdefault((seen["follows"], seen["source_partition"]), {**_USUAL, **of})
        total["rows_in"] += seen["rows_in"]
        total["now"] = _greater(total["now"], seen["now"])
        total["greatest"] = _greater(total["greatest"], seen["greatest"])
        total["sharing"] = max(total["sharing"], seen["sharing"])
        for flag in ("ended", "at_end", "follows", "begun"):
            total[flag] = total[flag] or seen[flag]
        total["firsts"] = [] if first is None or total["begun"] else [first]
    return [seen_frame(**total) for total in by_split.values()]


def _greater(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)
