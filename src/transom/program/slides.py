"""How a join that is emitted slide by slide is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from transom.kernels.slide_join.estimates import Estimates
from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.report import SlideReport


@dataclass(frozen=True)
class SlideStatus:
    """What became of the slides (`report`), what is known of their costs, and those that are put off at the moment."""

    report: SlideReport
    estimates: Estimates
    waiting: tuple[int, ...]

    def lines(self) -> tuple[str, ...]:
        """As EXPLAIN ANALYZE writes it."""
        return (*self.report.lines(), *self.estimates.lines())


def slides_of(memories: Sequence[Any]) -> SlideStatus | None:
    """That of an operator, by what its kernels remember."""
    for state in memories:
        if isinstance(state, SlideJoinState):
            report = replace(state.report, tactics=dict(state.report.tactics))
            waiting = tuple(work.at for work in state.works if work.put_off)
            return SlideStatus(report, replace(state.estimates), waiting)
    return None


def slides_in(statuses: Sequence[dict[str, Any] | None]) -> SlideStatus | None:
    """That of an operator in several partitions, by what each has reported of it."""
    parts = [one for one in statuses if one is not None]
    return SlideStatus(SlideReport.united(parts), Estimates(), ()) if parts else None
