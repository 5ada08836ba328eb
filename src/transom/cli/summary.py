"""What became of every input row, reported at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable

from transom.core.text import visible
from transom.core.time import BEGINNING, format_instant
from transom.program.status import InputStatus, Status


def summary(statuses: Iterable[Status]) -> str:
    lines = []
    for status in statuses:
        end = "to the end of its input" if status.finished else f"up to {instant_text(status.progress)}"
        lines.append(f"{status.name}: {status.rows_out:,} rows out, {end}")
        width = max((len(one.name) for one in status.inputs), default=0)
        for one in status.inputs:
            lines.append(f"  {one.name:{width}}  {ledger(one)}")
            lines += [f"  {'':{width}}    {count:,} {reason}" for reason, count in one.reasons.items()]
            lines += [] if one.leap is None else [f"  {'':{width}}    {one.leap}"]
        lines += [f"  {line}" for one in status.operators if one.slides is not None for line in one.slides.lines()]
        if status.latency is not None:
            lines.append(f"  {status.latency}")
        if status.overload is not None:
            lines.append(f"  {status.overload}")
    return "\n".join(map(visible, lines))


def ledger(one: InputStatus) -> str:
    """
    >>> ledger(InputStatus("s", 5, 3, 1, 1, 0, None, True, {}))
    '5 rows in = 3 used + 1 late + 1 rejected + 0 waiting'
    """
    return (
        f"{one.rows_in:,} rows in = {one.used:,} used + {one.late:,} late + {one.rejected:,} rejected"
        f" + {one.waiting:,} waiting"
    )


def instant_text(instant: int) -> str:
    return "the beginning" if instant <= BEGINNING else format_instant(instant)
