"""Why adMandF drops more than MandF under some arrival plans: which assumption of paper 2 does not hold there.

Suspected are, with how each is made to hold while all else stays the same:

| assumption | where the paper says so | made to hold |
| --- | --- | --- |
| FIFO drops least, so a high load is for it | sections 3, 5.1; doubted in 7 | faster work, until FIFO drops none |
| a rate is high or low beside the rates of the last switches | section 5.3 | rows come evenly, not at random |
| a load rises at a high rate and falls at a low one | the eight cases have no other | else FIFO is used |
| as many rows leave next as came last | section 4.2 | the rows that will leave are known |
| half a second is often enough to measure | section 6.1 | a fifth of that |

Nothing is chosen by what MandF or adMandF make of it: how much faster the work must go is found with FIFO alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Final

from benchmarks.shared.cases import WORLD, random_windows
from benchmarks.shared.scheduling import NEW, Seed, seeded_plan
from transom.scheduling.load import Readings
from transom.scheduling.policy import policy_named
from transom.scheduling.simulation import ArrivalPlan, Outcome, Trace, World, simulate

OLD: Final = "mandf"
_STEP: Final = 0.01
"""Work is made faster by so much of what it was, as often as it takes."""


@dataclass(frozen=True)
class Trial:
    """All that a policy meets."""

    windows: tuple[int, ...]
    plan: ArrivalPlan
    world: World = WORLD
    readings: Readings = field(default_factory=Readings)

    def run(self, policy: str) -> Outcome:
        return simulate(self.windows, self.plan, policy_named(policy, self.readings), self.world)


def drawn(seed: int, intervals: int) -> Trial:
    return Trial(random_windows(seed), seeded_plan(seed, intervals))


def served_by_fifo(trial: Trial) -> Trial:
    """The same rows, and work that is just as much faster as FIFO needs to drop none."""
    for steps in count():
        faster = replace(trial, world=replace(trial.world, capacity=trial.world.capacity * (1 + _STEP * steps)))
        if not faster.run("fifo").last.ledger.shed:
            return faster
    raise AssertionError


def evenly(trial: Trial) -> Trial:
    """The same rates, without chance."""
    return replace(trial, plan=replace(trial.plan, seed=None))


def rising_is_for_fifo(trial: Trial) -> Trial:
    return replace(trial, readings=replace(trial.readings, otherwise="now"))


def foreseen(trial: Trial) -> Trial:
    return replace(trial, world=replace(trial.world, foresight=True))


def measured_often(trial: Trial) -> Trial:
    """In every tick; the rows are the same."""
    plan, world = trial.plan, trial.world
    return replace(
        trial,
        plan=replace(
            plan, rates=tuple(rate / world.ticks for rate in plan.rates), intervals=plan.intervals * world.ticks
        ),
        world=replace(world, capacity=world.capacity / world.ticks, seconds=world.seconds / world.ticks, ticks=1),
    )


RESTORED: Final[Mapping[str, Sequence[Callable[[Trial], Trial]]]] = {
    "FIFO drops none, as work is faster": (served_by_fifo,),
    "rows come evenly": (evenly,),
    "rows come evenly, FIFO drops none": (evenly, served_by_fifo),
    "FIFO where no case fits": (rising_is_for_fifo,),
    "FIFO where no case fits, FIFO drops none": (rising_is_for_fifo, served_by_fifo),
    "the rows that will leave are known": (foreseen,),
    "measured every 0.1 s": (measured_often,),
}


@dataclass(frozen=True)
class Count:
    """Under so many plans; `more` are the seeds of those under which adMandF drops more than MandF."""

    plans: int
    more: tuple[int, ...]
    mean_dropped: Mapping[str, float]

    @property
    def no_more(self) -> int:
        return self.plans - len(self.more)


def counted(dropped: Mapping[int, Mapping[str, float]]) -> Count:
    """Of the shares that both dropped, by seed."""
    more = tuple(seed for seed, shares in dropped.items() if shares[NEW] > shares[OLD])
    means = {name: sum(shares[name] for shares in dropped.values()) / max(1, len(dropped)) for name in (OLD, NEW)}
    return Count(len(dropped), more, means)


def as_drawn(seeds: Sequence[Seed]) -> dict[str, Count]:
    """All plans, and apart by whether FIFO drops no more than MandF."""
    least = [seed for seed in seeds if seed.drops_no_more("fifo", OLD)]
    groups = {
        "as drawn": seeds,
        "of these, FIFO drops no more than MandF": least,
        "of these, FIFO drops more than MandF": [seed for seed in seeds if seed not in least],
    }
    return {name: counted({seed.seed: seed.dropped for seed in some}) for name, some in groups.items()}


def restored(changes: Sequence[Callable[[Trial], Trial]], seeds: int, intervals: int) -> Count:
    """Both policies under every plan, with these changes."""
    dropped = {}
    for seed in range(seeds):
        trial = drawn(seed, intervals)
        for change in changes:
            trial = change(trial)
        dropped[seed] = {name: trial.run(name).last.dropped for name in (OLD, NEW)}
    return counted(dropped)


@dataclass(frozen=True)
class Moment:
    """What was in force in an interval: what was measured and decided at its beginning."""

    time: float
    case: int
    method: str
    load: float
    threshold: float
    beta: float
    pending: int


@dataclass(frozen=True)
class Miss:
    """A plan under which adMandF drops more than MandF, from `parted` on for good.

    `case` and `method` were in force when most of what it dropped in excess was dropped.
    """

    seed: int
    dropped: Mapping[str, float]
    is_fifo: bool  # adMandF did nothing else than FIFO, from the beginning to the end
    parted: float
    then: Mapping[str, Moment]
    case: int
    method: str
    excess: int


def miss(seed: int, trial: Trial) -> Miss:
    found = {name: trial.run(name) for name in ("fifo", OLD, NEW)}
    ticks = trial.world.ticks
    shed = {name: [ledger.shed for ledger in one.ledgers[ticks - 1 :: ticks]] for name, one in found.items()}
    more = [new - old for new, old in zip(shed[NEW], shed[OLD], strict=True)]
    trace = found[NEW].trace
    before = max(
        (at for at, rows in enumerate(more) if rows <= 0), default=0
    )  # its decision is in force when they part
    by_case: Counter[tuple[int, str]] = Counter()
    for case, method, (early, late) in zip(trace.case, trace.method, pairwise(more), strict=False):
        by_case[case, method] += late - early
    ((case, method), excess), *_ = by_case.most_common(1)
    return Miss(
        seed,
        {name: one.last.dropped for name, one in found.items()},
        found[NEW].ledgers == found["fifo"].ledgers,
        trace.time[min(before + 1, len(more) - 1)],
        {
            name: _moment(found[name].trace, before, found[name].ledgers[ticks * (before + 1) - 1].pending)
            for name in (OLD, NEW)
        },
        case,
        str(method),
        excess,
    )


def _moment(trace: Trace, at: int, pending: int) -> Moment:
    return Moment(
        trace.time[at], trace.case[at], str(trace.method[at]), trace.load[at], trace.alpha[at], trace.beta[at], pending
    )
