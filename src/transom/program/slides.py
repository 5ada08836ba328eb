"""How a join that is emitted slide by slide is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transom.kernels.slide_join.memory import SlideJoinState
from transom.kernels.slide_join.report import SlideReport


@dataclass(frozen=True)
class SlideStatus:
    """What became of the slides (`report`), what is known of their costs, and those that are put off at the moment.

    `estimates`: how many tuples of rows match (selectivity), bytes per result (row_bytes), seconds per row joined and
    merged, per byte written and read; what the last slide would have cost either way (reuse_cost, join_cost).
    """

    report: SlideReport
    estimates: dict[str, float | None]
    waiting: tuple[int, ...]

    def lines(self) -> tuple[str, ...]:
        """The lines that EXPLAIN ANALYZE writes."""
        return (*self.report.lines(), *self._of_costs())

    def _of_costs(self) -> list[str]:
        matching, reuse, join = (self.estimates.get(name) for name in ("selectivity", "reuse_cost", "join_cost"))
        if matching is None:
            return []
        texts = [f"one tuple of rows in {1 / matching:,.0f} matches" if matching else "nothing matches"]
        if reuse is not None and join is not None:
            texts.append(f"C_reuse {reuse:.3g} s, C_join {join:.3g} s for the last slide compared")
        return ["; ".join(texts)]


def slides_of(memories: Sequence[Any]) -> SlideStatus | None:
    """The slides of an operator, by what its kernels remember."""
    for state in memories:
        if isinstance(state, SlideJoinState):
            report = state.reported()
            waiting = tuple(work.at for work in state.works if work.put_off)
            return SlideStatus(report, state.estimates.values(), waiting)
    return None


def slides_in(statuses: Sequence[dict[str, Any] | None]) -> SlideStatus | None:
    """The slides of an operator in several partitions, by what each has reported of it."""
    parts = [each for each in statuses if each is not None]
    return SlideStatus(SlideReport.united([SlideReport(**each) for each in parts]), {}, ()) if parts else None
