"""The policies: what is done first, and when that changes.

| policy | method | paper 2 |
| --- | --- | --- |
| fifo | the oldest row first, with all its queries: fewest drops under a high load | section 3 |
| mqt | the queries that are quickest done first, of all rows: most queries a second | section 3 |
| mandf | mqt while the load is below a threshold, fifo from there on | section 4 |
| admandf | the same, with a threshold that follows the trend of load and rate | section 5 |
| slack | mqt while all could still be done in time, then fifo, and only as deep into each row as time allows | ours |

A policy has no memory: it works on the `PolicyState` beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from transom.scheduling.beta import Trend, next_beta
from transom.scheduling.load import Load, LoadMethod, Readings

FIRST_BETA: Final = 0.05


@dataclass
class PolicyState:
    """The method and beta in use; the rest is for adMandF: what was measured last, the rates at the last switches."""

    method: LoadMethod
    beta: float = 0.0
    depth: int = 0  # with FIFO, how many groups of every row come before the rest; 0 is all
    case: int = 0  # of the eight, the one that gave beta; 0 is none of them
    last_rate: float = -1.0  # below 0: nothing was measured yet
    beta_prev: float = 0.0
    rate_mqt: float = 0.0
    rate_fifo: float = 0.0


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def readings(self) -> Readings: ...

    def start(self) -> PolicyState: ...

    def follow(self, state: PolicyState, load: Load) -> None:
        """Takes note of a measurement, once an interval."""


@dataclass(frozen=True)
class FifoPolicy:
    readings: Readings = field(default_factory=Readings)
    name: str = "fifo"

    def start(self) -> PolicyState:
        return PolicyState(LoadMethod.FIFO)

    def follow(self, state: PolicyState, load: Load) -> None:
        pass


@dataclass(frozen=True)
class Mqt:
    readings: Readings = field(default_factory=Readings)
    name: str = "mqt"

    def start(self) -> PolicyState:
        return PolicyState(LoadMethod.MQT)

    def follow(self, state: PolicyState, load: Load) -> None:
        pass


@dataclass(frozen=True)
class MandF:
    readings: Readings = field(default_factory=Readings)
    beta: float = FIRST_BETA
    name: str = "mandf"

    def start(self) -> PolicyState:
        return PolicyState(self.readings.begin, self.beta)

    def follow(self, state: PolicyState, load: Load) -> None:
        state.method = chosen(load, state.beta)


@dataclass(frozen=True)
class AdMandF:
    readings: Readings = field(default_factory=Readings)
    beta: float = FIRST_BETA
    name: str = "admandf"

    def start(self) -> PolicyState:
        return PolicyState(self.readings.begin, self.beta, beta_prev=self.beta)

    def follow(self, state: PolicyState, load: Load) -> None:
        if state.last_rate < 0:
            state.last_rate = float(load.rate)
            first = {"first": float(load.rate), "zero": 0.0, "infinite": float("inf")}[self.readings.rates]
            state.rate_mqt = state.rate_fifo = first
        if self.readings.decide == "before":
            self._choose(state, load)
            self._adjust(state, load)
        else:
            self._adjust(state, load)
            self._choose(state, load)
        state.last_rate = float(load.rate)

    def _choose(self, state: PolicyState, load: Load) -> None:
        method = chosen(load, state.beta)
        if method != state.method:
            if method == LoadMethod.MQT:
                state.rate_mqt = float(load.rate)
            else:
                state.rate_fifo = float(load.rate)
        state.method = method

    def _adjust(self, state: PolicyState, load: Load) -> None:
        if not load.rate:  # a share of no rows says nothing
            return
        beta_prev = state.beta if self.readings.previous == "used" else state.beta_prev
        beta_next = beta_prev + (load.beta_now - beta_prev) / self.readings.interval
        beta_next = min(1.0, max(0.0, beta_next))
        rate_next = state.last_rate + (load.rate - state.last_rate) / self.readings.interval
        high = rate_next >= (state.rate_mqt + state.rate_fifo) / 2
        state.case, next_case = next_beta(Trend(state.method, high, load.beta_now, beta_next))
        if state.case:
            state.beta = next_case
        elif self.readings.otherwise != "keep":
            state.beta = beta_next if self.readings.otherwise == "next" else load.beta_now
        state.beta_prev = beta_next if self.readings.previous == "estimated" else load.beta_now


@dataclass(frozen=True)
class Slack:
    """By deadlines, where the work of an interval is known: a load that even FIFO cannot serve is the one the paper
    leaves open (section 7). What would be lost anyhow is then given up early, most expensive queries first."""

    readings: Readings = field(default_factory=Readings)
    reserve: float = 2.0  # intervals of slack below which MQT is left
    name: str = "slack"

    def start(self) -> PolicyState:
        return PolicyState(self.readings.begin)

    def follow(self, state: PolicyState, load: Load) -> None:
        if not load.slack:
            raise ValueError("the policy 'slack' must be told the capacity")
        state.method = LoadMethod.MQT if load.slack[-1] >= self.reserve else LoadMethod.FIFO
        in_time = [depth for depth, slack in enumerate(load.slack, 1) if slack >= 0]
        state.depth = max(in_time, default=1)


def chosen(load: Load, beta: float) -> LoadMethod:
    """FIFO from the threshold on. Where no row comes none will leave, and what is done soonest is best.

    Shares are compared, not the load with its threshold: with beta_now as beta the two are equal, and the threshold, a
    product, may be above by its last bit.
    """
    return LoadMethod.FIFO if load.rate and load.beta_now >= beta else LoadMethod.MQT


POLICIES: Final = {"fifo": FifoPolicy, "mqt": Mqt, "mandf": MandF, "admandf": AdMandF, "slack": Slack}


def policy_named(name: str, readings: Readings | None = None) -> Policy:
    policy: Policy = POLICIES[name](readings or Readings())
    return policy
