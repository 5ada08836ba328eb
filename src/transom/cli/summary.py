"""What became of every input row, reported at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable

from transom.core.text import visible
from transom.core.time import BEGINNING, format_instant
from transom.pipeline.dead_letters import reason_and_fate
from transom.program.status import InputStatus, Status


def summary(statuses: Iterable[Status]) -> str:
    lines = []
    for status in statuses:
        end = "to the end of its input" if status.finished else f"up to {instant_text(status.progress)}"
        lines.append(f"{status.name}: {status.rows_out:,} rows out, {end}")
        width = max((len(each.name) for each in status.inputs), default=0)
        for each in status.inputs:
            lines.append(f"  {each.name:{width}}  {ledger(each)}")
            lines += [
                f"  {'':{width}}    {count:,} {reason_and_fate(reason)}" for reason, count in each.reasons.items()
            ]
            lines += [] if each.leap is None else [f"  {'':{width}}    {each.leap}"]
        lines += [
            f"  {line}"
            for operator in status.operators
            if operator.slides is not None
            for line in operator.slides.lines()
        ]
        if status.latency is not None:
            lines.append(f"  {status.latency}")
        if status.overload is not None:
            lines.append(f"  {status.overload}")
    return "\n".join(map(visible, lines))


def ledger(status: InputStatus) -> str:
    """
    >>> ledger(InputStatus("s", 5, 3, 1, 1, 0, None, True, {}))
    '5 rows in = 3 used + 1 late + 1 rejected + 0 waiting'
    """
    return (
        f"{status.rows_in:,} rows in = {status.used:,} used + {status.late:,} late + {status.rejected:,} rejected"
        f" + {status.waiting:,} waiting"
    )


def instant_text(instant: int) -> str:
    return "the beginning" if instant <= BEGINNING else format_instant(instant)
