"""The scheduler on a virtual clock: buffers of rows, an arrival plan, and a cost for every unit of window.

A row is in its buffer until so many others of its side came. A (row, query) is dropped when its row leaves before the
query was run for it. That is the paper's count; by our stricter one a query that was run is complete only if all its
partners were still there, the oldest row within its window included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from transom.scheduling.backlog import WorkRun
from transom.scheduling.load import Load
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import Policy, PolicyState
from transom.scheduling.scheduler import Scheduler, WorkLedger

SIDES: Final = 2
_FIRST_MOMENTS: Final = 50  # the unprocessed rows of the start came in so many moments


@dataclass(frozen=True)
class ArrivalPlan:
    """Rows that come in an interval, both sides together, stage by stage; `seed` makes them vary around that."""

    rates: tuple[float, ...]
    intervals: int
    seed: int | None = None

    def rows(self, ticks: int) -> NDArray[np.int64]:
        """Rows of each side (columns) in every tick (lines), with so many ticks in an interval."""
        wanted = np.repeat(np.asarray(self.rates) / ticks / SIDES, self.intervals * ticks)
        if self.seed is not None:
            return np.random.default_rng(self.seed).poisson(wanted, (SIDES, len(wanted))).T
        total = np.floor(np.cumsum(wanted) + 1e-9).astype(np.int64)
        return np.repeat(np.diff(total, prepend=0)[:, None], SIDES, axis=1)


@dataclass(frozen=True)
class World:
    """Everything but the queries and the plan. `capacity` is the work of an interval, in units of window."""

    capacity: float = 200 * 3_000
    buffer: int = 5_000
    unprocessed: float = 0.2
    ticks: int = 5
    seconds: float = 0.5  # of an interval
    foresight: bool = False  # which rows leave in the next interval is known, not guessed from the last


@dataclass
class Trace:
    """What was measured, an entry an interval."""

    time: list[float] = field(default_factory=list)
    rate: list[int] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    alpha: list[float] = field(default_factory=list)  # the threshold that the load was compared with
    beta: list[float] = field(default_factory=list)  # the beta that was made of it
    case: list[int] = field(default_factory=list)
    method: list[str] = field(default_factory=list)  # the method from here on

    def note(self, time: float, load: Load, alpha: float, state: PolicyState) -> None:
        self.time.append(time)
        self.rate.append(load.rate)
        self.load.append(load.load)
        self.alpha.append(alpha)
        self.beta.append(state.beta)
        self.case.append(state.case)
        self.method.append(state.method)


@dataclass(frozen=True)
class SimulatedStage:
    """Counts from the start to the end of a stage. `incomplete` of the processed had lost partners before they ran."""

    ledger: WorkLedger
    incomplete: int

    @property
    def processed(self) -> float:
        return self.ledger.processed / self.ledger.due

    @property
    def dropped(self) -> float:
        return self.ledger.shed / self.ledger.due

    @property
    def complete(self) -> float:
        return (self.ledger.processed - self.incomplete) / self.ledger.due


@dataclass(frozen=True)
class Outcome:
    stages: tuple[SimulatedStage, ...]
    trace: Trace
    ledgers: tuple[WorkLedger, ...]  # one a tick

    @property
    def last(self) -> SimulatedStage:
        return self.stages[-1]


def simulate(windows: tuple[int, ...], plan: ArrivalPlan, policy: Policy, world: World | None = None) -> Outcome:
    """Runs a plan from its first row to the end of its last stage."""
    return _Simulation(windows, plan, policy, world or World()).run()


class _Simulation:
    def __init__(self, windows: tuple[int, ...], plan: ArrivalPlan, policy: Policy, world: World) -> None:
        self.world, self.plan = world, plan
        self.groups = groups_of(windows, policy.readings.ties)
        self.scheduler = Scheduler(self.groups, policy, SIDES)
        self.windows = np.asarray((0, *windows))
        self.incomplete = 0
        self.time_left = 0.0  # work that the clock allows; below 0 while a run is still busy
        fresh = int(world.buffer * world.unprocessed)
        self.first = np.diff(np.linspace(0, fresh, _FIRST_MOMENTS + 1).astype(np.int64))
        self.rows = plan.rows(world.ticks)
        self.partners = [self._partners(side) for side in range(SIDES)]

    def run(self) -> Outcome:
        world, scheduler = self.world, self.scheduler
        scheduler.arrive([world.buffer - int(self.first.sum())] * SIDES, settled=True)
        for count in self.first.tolist():
            scheduler.arrive([count] * SIDES)
        scheduler.backlog.recent = [0] * SIDES
        trace, stages, ledgers = Trace(), [], []
        for tick, arriving in enumerate(self.rows.tolist(), 1):
            self._arrive(arriving)
            self._work(world.capacity / world.ticks)
            ledgers.append(scheduler.ledger())
            if tick % world.ticks == 0:
                beta = scheduler.state.beta
                load = scheduler.measure(self._leaving(tick), world.capacity)
                if scheduler.policy.readings.decide == "after":
                    beta = scheduler.state.beta
                trace.note(tick / world.ticks * world.seconds, load, load.threshold(beta), scheduler.state)
            if tick % (world.ticks * self.plan.intervals) == 0:
                stages.append(SimulatedStage(ledgers[-1], self.incomplete))
        return Outcome(tuple(stages), trace, tuple(ledgers))

    def _arrive(self, rows: list[int]) -> None:
        self.scheduler.arrive(rows)
        for number, side in enumerate(self.scheduler.backlog.sides):
            if side.arrived - self.world.buffer > side.left:
                self.scheduler.leave(number, side.arrived - self.world.buffer)

    def _leaving(self, tick: int) -> list[int]:
        """How many rows leave in the next interval, if as many come as in the last, or by what will come indeed."""
        backlog = self.scheduler.backlog
        coming = self.rows[tick : tick + self.world.ticks].sum(axis=0).tolist()
        return [
            max(0, side.arrived - side.left + more - self.world.buffer)
            for side, more in zip(backlog.sides, coming if self.world.foresight else backlog.recent, strict=True)
        ]

    def _work(self, budget: float) -> None:
        """What the clock allows. A row that was begun is finished, and the next tick has less time."""
        self.time_left += budget
        while self.time_left > 0:
            run = self.scheduler.next()
            if run is None:
                self.time_left = 0.0
                return
            cost = self.groups.work(run.done, run.target)
            run = run.cut(int(-(-self.time_left // cost)))
            self.time_left -= cost * run.rows
            self.scheduler.did(run)
            self._count_incomplete(run)

    def _partners(self, side: int) -> NDArray[np.int64]:
        """For each row of a side how many rows of the other came before it or with it."""
        old = self.world.buffer - int(self.first.sum())
        moments = [np.concatenate([[old], self.first, self.rows[:, which]]) for which in (side, 1 - side)]
        return np.repeat(np.cumsum(moments[1]), moments[0])

    def _count_incomplete(self, run: WorkRun) -> None:
        left = self.scheduler.backlog.sides[1 - run.side].left
        partners = self.partners[run.side][run.first : run.stop]
        if partners[0] - self.windows[run.target] >= left:
            return
        oldest_needed = self.windows[run.done + 1 : run.target + 1] + left
        self.incomplete += int(np.searchsorted(partners, oldest_needed).sum())
