"""Whether the work of a shared join can be put in order (paper 2), and how SET asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transom.plan.catalogue import Catalogue
from transom.plan.options import OPTIONS
from transom.planner.sharing_shape import Sharable


@dataclass(frozen=True)
class Schedule:
    """A policy, what happens when more than `buffer` rows of a side wait, and the time of a step, in microseconds."""

    policy: str
    overload: str
    buffer: int
    budget: int

    def __str__(self) -> str:
        """
        >>> print(Schedule("mqt", "shed", 5000, 50_000))
        scheduled by mqt, a step of 50 ms; when more than 5,000 rows of a side wait: shed
        """
        over = {"block": "its source waits", "shed": "shed", "fail": "an error"}[self.overload]
        step = f"a step of {self.budget / 1000:g} ms"
        return f"scheduled by {self.policy}, {step}; when more than {self.buffer:,} rows of a side wait: {over}"


IN_BATCHES: Final = 500_000
"""The time of a step where rows come in batches, unless one is given: each batch has a price of its own."""


def policy_for(overload: str) -> str:
    """What `auto` comes to. Where no row is ever lost deadlines mean nothing, and the quickest work first has most
    queries soonest; else as much as can be has to be done before rows leave, which `slack` alone asks for.
    """
    return "mqt" if overload == "block" else "slack"


def schedule_of(request: Sharable, catalogue: Catalogue, batches: bool = False) -> Schedule | str | None:
    """How the work of this join is put in order, or why it is not; None where nobody asks for it. Rows may come in
    batches.

    The work of a row can be divided where its partners lie in the order of their age: the part of each window is a
    range of them. So do those of a key; as a rule they are few, and nothing is gained by an order of so little work.
    """

    def option(name: str) -> Any:
        return catalogue.options.get(name, OPTIONS[name].default)

    policy = option("schedule")
    if policy == "off":
        return None
    if any(window.rows is not None for window in request.windows):
        return "a window counts rows"
    if policy == "auto" and request.keys.left and option("join") != "nested_loop":
        return "rows find their partners by a key, at once; with many of a key, name a policy"
    budget = catalogue.options.get("step_budget", IN_BATCHES) if batches else option("step_budget")
    overload = option("overload")
    return Schedule(policy_for(overload) if policy == "auto" else policy, overload, option("buffer"), budget)
