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
}


def seen_frame(source: str, sender: int, **seen: Any) -> Frame:
    """What a task saw of a source, on its way."""
    return brief(Frame({"kind": "seen", "source": source, "sender": sender, **seen}))


def brief(part: Frame) -> Frame:
    """Without what is as usual."""
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
    found: list[int] = np.diff(times, prepend=0).tolist()
    return found


def unpacked_times(packed: Sequence[int]) -> Int64s:
    return np.array(list(accumulate(packed)), dtype=np.int64)


def digest(parts: Iterable[Frame], first: int | None) -> list[Frame]:
    """What all tasks saw of one source, of which `first` is the first admitted instant by now.

    What follows the clock and what does not stay apart: they have clocks of their own.
    """
    found: dict[tuple[bool, str | None], Seen] = {}
    for part in parts:
        seen = part.about
        of = {name: seen[name] for name in ("source", "sender", "source_partition")}
        known = found.setdefault((seen["follows"], seen["source_partition"]), {**_USUAL, **of})
        known["rows_in"] += seen["rows_in"]
        known["now"] = _greater(known["now"], seen["now"])
        known["greatest"] = _greater(known["greatest"], seen["greatest"])
        for flag in ("ended", "at_end", "follows", "begun"):
            known[flag] = known[flag] or seen[flag]
        known["firsts"] = [] if first is None or known["begun"] else [first]
    return [seen_frame(**known) for known in found.values()]


def _greater(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
