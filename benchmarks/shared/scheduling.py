"""Which work of a shared join goes first: the experiment of paper 2 on a virtual clock, exact and repeatable.

Four policies in nine cases; then the new policy once more for every other reading of what the paper leaves open; then
fifty arrival plans drawn at random, with random windows. Nothing is timed: the cost of work is part of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from benchmarks.shared.cases import CASES, ROWS_AN_INTERVAL, WORLD, random_windows
from benchmarks.shared.fingerprint import IMPLIED, OLDER, fingerprint
from transom.scheduling.load import LoadMethod, Readings
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import policy_named
from transom.scheduling.simulation import ArrivalPlan, Outcome, simulate

NEW: Final = "admandf"
OURS: Final = "slack"
POLICIES: Final = (*OLDER, NEW, OURS)
EQUALS_MQT: Final = ("P2", "P3", "P5", "P6")
STAGES: Final = 4
EQUAL: Final = 1e-4
"""Shares nearer to each other than this are equal."""

VARIED: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"rows": "newest"},
    {"weights": "equal"},
    {"decide": "before"},
    {"previous": "estimated"},
    {"previous": "measured"},
    {"rates": "first"},
    {"rates": "infinite"},
    {"otherwise": "keep"},
    {"otherwise": "now"},
    {"begin": LoadMethod.MQT},
    {"ties": "nearest"},
    {"interval": 1.0},
    {"interval": 500.0},
)
"""The default reading, and every other one that differs from it in one point."""

_OF_MANDF: Final = {"rows", "weights", "begin", "ties"}
"""The points that MandF has too."""


@dataclass(frozen=True)
class Case:
    """A set of windows under one reading, and what each policy made of it."""

    name: str
    windows: tuple[int, ...]
    outcomes: Mapping[str, Outcome]

    @property
    def groups(self) -> str:
        return str(groups_of(self.windows))

    @property
    def fingerprint(self) -> dict[str, bool]:
        return fingerprint(self.name, {name: self.outcomes[name].last for name in OLDER})

    @property
    def shows(self) -> bool:
        """All that is said of the older policies holds."""
        return all(holds for what, holds in self.fingerprint.items() if what not in IMPLIED)

    @property
    def over_best_other(self) -> float:
        return self.outcomes[NEW].last.processed / max(self.outcomes[name].last.processed for name in OLDER)

    @property
    def claims(self) -> dict[str, bool]:
        """What the paper says of its policy, and whether it holds."""
        new, mqt = self.outcomes[NEW].last, self.outcomes["mqt"].last
        found = {"drops_none": new.ledger.shed == 0, "at_least_the_others": self.over_best_other >= 1 - EQUAL}
        if self.name in EQUALS_MQT:
            found["equals_mqt"] = abs(new.processed - mqt.processed) < EQUAL
        return found


def run_case(name: str, plan: ArrivalPlan) -> Case:
    """All policies, by the default reading."""
    outcomes = {policy: simulate(CASES[name], plan, policy_named(policy), WORLD) for policy in POLICIES}
    return Case(name, CASES[name], outcomes)


def run_reading(changed: Mapping[str, Any], default: list[Case], plan: ArrivalPlan) -> list[Case]:
    """The same by another reading; what does not depend on it is taken over."""
    readings = replace(Readings(), **changed)
    again = [NEW, *(["mandf"] if _OF_MANDF & set(changed) else []), *(["mqt"] if "ties" in changed else [])]
    return [
        replace(
            case,
            outcomes={
                **case.outcomes,
                **{name: simulate(case.windows, plan, policy_named(name, readings), WORLD) for name in again},
            },
        )
        for case in default
    ]


def reading_name(changed: Mapping[str, Any]) -> str:
    """
    >>> reading_name({"begin": LoadMethod.MQT}), reading_name({})
    ('begin = mqt', 'the default')
    """
    assert set(changed) <= {field.name for field in fields(Readings)}
    return ", ".join(f"{name} = {value}" for name, value in changed.items()) or "the default"


def plan_name(plan: ArrivalPlan) -> str:
    """
    >>> plan_name(ArrivalPlan((560, 400), 40))
    '560, 400; 40 intervals each'
    """
    return f"{', '.join(f'{rate:g}' for rate in plan.rates)}; {plan.intervals} intervals each"


@dataclass(frozen=True)
class Seed:
    """One arrival plan drawn at random: the shares that each policy dropped and processed."""

    seed: int
    plan: ArrivalPlan
    dropped: Mapping[str, float]
    processed: Mapping[str, float]

    @property
    def served(self) -> bool:
        """FIFO drops none; loads under which it does are those that the paper leaves to later work."""
        return self.dropped["fifo"] == 0

    def drops_no_more(self, policy: str, other: str) -> bool:
        return self.dropped[policy] <= self.dropped[other]

    def processes_no_less(self, policy: str, other: str) -> bool:
        return self.processed[policy] >= self.processed[other] - EQUAL


def seeded_plan(seed: int, intervals: int) -> ArrivalPlan:
    """Four rates of half to one and a half of what can be processed, and rows that come at random at these rates."""
    factors = np.random.default_rng(seed).uniform(0.5, 1.5, STAGES)
    return ArrivalPlan(tuple((factors * ROWS_AN_INTERVAL).tolist()), intervals, seed)


def run_seeds(seeds: int, intervals: int) -> list[Seed]:
    """The windows are drawn, too. So many seeds, and then more until as many are served by FIFO."""
    found: list[Seed] = []
    while len(found) < seeds or sum(one.served for one in found) < seeds:
        seed = len(found)
        windows, plan = random_windows(seed), seeded_plan(seed, intervals)
        last = {name: simulate(windows, plan, policy_named(name), WORLD).last for name in POLICIES}
        dropped = {name: stage.dropped for name, stage in last.items()}
        found.append(Seed(seed, plan, dropped, {name: stage.processed for name, stage in last.items()}))
    return found
