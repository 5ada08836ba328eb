"""When an operator changes its tactic while it runs, whatever the tactics are: what it notes, and what decides.

It hosts the tactics and keeps the state of the one in force beside fresh states of the others. Costs are microseconds
that follow from counts of rows, never from a clock, so a step that is taken again decides alike. Whoever watches adds
up what each of the others would have saved. It changes to one when that is as much as the change costs, and that one is
`BETTER` times as good now: so whatever comes, changes cost no more than they could have saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from transom.core.time import format_instant
from transom.kernels.kernel import Step
from transom.state.checks import need

BETTER: Final = 1.5
"""So many times as cheap another tactic has to be."""

LEAST_ROWS: Final = 256
"""Fewer rows say nothing."""

WATCH: Final = "on"
STAY: Final = "off"
SHUFFLE: Final = "shuffle"
"""Change again and again, whatever it costs: to be tested."""

MOST_NOTED: Final = 16  # changes that are remembered, the last ones


@dataclass
class TacticChange:
    """That the tactic changed: at what instant, after how many rows of this operator, and why: how many of `what` a row
    made, microseconds a row of both tactics, and what had been lost until then in milliseconds."""

    at: int
    rows: int
    before: str
    after: str
    made: float = 0.0
    what: str = "pairs"
    cost_before: float = 0.0
    cost_after: float = 0.0
    lost: float = 0.0

    def __str__(self) -> str:
        """
        >>> print(TacticChange(5_000_000, 512, "pc", "factorised", 98.5, "pairs", 24.8, 0.9, 6.2))
        from pc to factorised at 1970-01-01 00:00:05, after 512 rows: 98.5 pairs a row, 24.8 us against 0.9; 6.2 ms lost
        """
        when = f"from {self.before} to {self.after} at {format_instant(self.at)}, after {self.rows:,} rows"
        if not self.cost_after:
            return f"{when}: at random"
        costs = f"{self.cost_before:.3g} us against {self.cost_after:.3g}; {self.lost:.3g} ms lost"
        return f"{when}: {self.made:.3g} {self.what} a row, {costs}"


@dataclass
class ChangingState:
    """`hosted` are the states of all tactics: of those that are not in force, fresh ones. `tactic` is the name of the
    one in force, `lost` what each of them would have saved since, and `changed` counts changes."""

    hosted: list[Any]
    in_force: int
    tactic: str
    rows: int = 0
    lost: list[float] = field(default_factory=list)
    changed: int = 0
    changes: list[TacticChange] = field(default_factory=list)

    def check(self) -> None:
        need(0 <= self.in_force < len(self.hosted))

    def lines(self) -> list[str]:
        """Which tactic is in force, and when and why it changed, for people."""
        earlier = self.changed - len(self.changes)
        left_out = f", the first {earlier:,} are left out" if earlier else ""
        times = f"{self.changed:,} time{'s' * (self.changed != 1)}"
        return [f"{self.tactic} now, changed {times}{left_out}", *map(str, self.changes)]

    def put_in_force(self, number: int, state: Any, fresh: Any, change: TacticChange) -> None:
        """Another tactic goes on with this state; the one that did begins anew if it comes back."""
        self.hosted[self.in_force] = fresh
        self.hosted[number] = state
        self.in_force, self.tactic = number, change.after
        self.lost = []
        self.changed += 1
        self.changes = [*self.changes[1 - MOST_NOTED :], change]

    def due(self, costs: Sequence[float], rows: int, to_change: Callable[[int], float]) -> int | None:
        """The number of the tactic that is to be in force from now on, None for this one.

        `costs` is what a row costs each tactic, of so many rows since this was asked last; `to_change` what it costs to
        bring a tactic to where this one is. Of several the cheapest is taken, though to change to one that is a
        little dearer may pay sooner.
        """
        now = costs[self.in_force]
        lost = self.lost or [0.0] * len(costs)
        self.lost = [max(0.0, before + (now - cost) * rows) for before, cost in zip(lost, costs, strict=True)]
        better = [n for n, cost in enumerate(costs) if now > BETTER * cost and self.lost[n] >= to_change(n)]
        return min(better, key=costs.__getitem__, default=None)


def at_random(state: ChangingState, names: Sequence[str], step: Step) -> TacticChange | None:
    """A change to another tactic in every other step, by what nobody foresees and everybody can repeat."""
    drawn = (step.before * 0x9E3779B97F4A7C15 + state.rows * 0xBF58476D1CE4E5B9) >> 32
    if drawn & 1:
        return None
    after = names[(state.in_force + 1 + (drawn >> 1) % (len(names) - 1)) % len(names)]
    return TacticChange(step.before, state.rows, names[state.in_force], after)
