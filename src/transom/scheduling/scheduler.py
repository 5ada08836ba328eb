"""The scheduler of a shared join: what is next, which rows and up to which query.

It knows neither a clock nor what work costs. Whoever has both tells it what came and what left, takes as much of
`next()` as the time allows and says so with `did`, and once an interval asks it to `measure`. All of it is
deterministic, and what must outlive a process is in `backlog` and `state`.

>>> from transom.scheduling.mqt import groups_of
>>> from transom.scheduling.policy import policy_named
>>> scheduler = Scheduler(groups_of([10, 20, 90]), policy_named("mqt"))
>>> scheduler.arrive([2, 1])
>>> for _ in range(3):
...     run = scheduler.next()
...     print(f"rows {run.first} to {run.stop} of side {run.side}: from query {run.done} to {run.target}")
...     scheduler.did(run)
rows 0 to 2 of side 0: from query 0 to 2
rows 0 to 1 of side 1: from query 0 to 2
rows 0 to 2 of side 0: from query 2 to 3
>>> scheduler.leave(1, 1)
[WorkRun(side=1, first=0, stop=1, done=2, target=3)]
>>> scheduler.ledger()
WorkLedger(due=9, processed=8, shed=1, pending=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transom.scheduling.backlog import Backlog, WorkRun
from transom.scheduling.load import Load, LoadMethod, measure
from transom.scheduling.mqt import Groups
from transom.scheduling.policy import Policy
from transom.scheduling.slack import slack


@dataclass(frozen=True)
class WorkLedger:
    """Pairs of a row and a query: due = processed + shed + pending, at every instant."""

    due: int
    processed: int
    shed: int
    pending: int


class Scheduler:
    """The work of one shared join, by one policy."""

    def __init__(self, groups: Groups, policy: Policy, sides: int = 2) -> None:
        self.groups = groups
        self.policy = policy
        self.backlog = Backlog.empty(groups.ends, sides)
        self.state = policy.start()

    @property
    def method(self) -> LoadMethod:
        return self.state.method

    def arrive(self, rows: Sequence[int], settled: bool = False) -> None:
        """One moment: so many rows of each side came. Rows that are `settled` have nothing due."""
        self.backlog.arrive(rows, settled)

    def leave(self, side: int, target: int) -> list[WorkRun]:
        """The rows of a side numbered below `target` left. Gives what they still waited for, which is dropped now."""
        return self.backlog.leave(side, target)

    def next(self) -> WorkRun | None:
        """What is to be done now: rows of a run one by one, as many as there is time for."""
        if self.method == LoadMethod.FIFO:
            return self.backlog.oldest_first(self.state.depth)
        return self.backlog.best_first()

    def did(self, run: WorkRun) -> None:
        """This run, or its first rows, was done."""
        self.backlog.did(run)

    def measure(self, leaving: Sequence[int] | None = None, capacity: float = 0.0) -> Load:
        """An interval is over: measures the load and lets the policy decide.

        `leaving` is how many rows of each side will leave in the next interval; unless it is said, as many as came.
        `capacity` is the work that can be done in an interval, in units of window, where it is known.
        """
        came, self.backlog.recent = self.backlog.recent, [0] * len(self.backlog.sides)
        going = came if leaving is None else list(leaving)
        load = measure(self.backlog, self.groups, came, going, self.policy.readings)
        if capacity:
            load = replace(load, slack=slack(self.backlog, self.groups, came, going, capacity))
        self.policy.follow(self.state, load)
        return load

    def ledger(self) -> WorkLedger:
        backlog = self.backlog
        return WorkLedger(sum(backlog.due), sum(backlog.processed), sum(backlog.shed), sum(backlog.pending))
