"""Looks for an arrival plan that shows the fingerprint of the older policies. The new one is never run here.

`python -m benchmarks.shared.plan_search` takes some minutes. The paper's figure 5 is missing. A plan has four
stages of equal length, no two neighbours with the same rate; rates are in steps of a tenth of what can be processed,
and the last is a little more than that, or nothing would be left to do at the end. MQT drops about when more work
waits than two buffers full of a row's last group, FIFO when it is more than two buffers full of whole rows; the backlog
is the same for both until then, and must have its peak between the two, and a small rest at the end. Plans that pass
this are simulated under FIFO, MQT and MandF, in random order; of those with most of the fingerprint that with the
greatest margin is taken.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from benchmarks.shared.cases import CASES, ROWS_AN_INTERVAL, WORLD
from benchmarks.shared.fingerprint import IMPLIED, OLDER, fingerprint, margin
from transom.scheduling.policy import policy_named
from transom.scheduling.simulation import ArrivalPlan, World, simulate

STAGES: Final = 4
LENGTHS: Final = (20, 30, 40, 60)
FACTORS: Final = tuple(round(0.3 + 0.1 * step, 1) for step in range(18))
LAST_FACTORS: Final = (1.01, 1.02, 1.03, 1.04, 1.05, 1.1)
PEAK: Final = (7_000, 8_600)
REST: Final = (100, 900)
ORDER: Final = ("P7", "P4", "P8", "P3", "P5", "P1", "P2", "P6", "random")  # what fails most often first


@dataclass(frozen=True)
class Found:
    plan: ArrivalPlan
    failed: tuple[str, ...]
    implied: int
    margin: float

    @property
    def rank(self) -> tuple[int, int, float]:
        return -len(self.failed), self.implied, self.margin


def candidates() -> list[ArrivalPlan]:
    """Plans whose backlog, in rows, has its peak and its rest where they should be."""
    factors = np.array(list(product(FACTORS, FACTORS, FACTORS, LAST_FACTORS)))
    factors = factors[(np.diff(factors, axis=1) != 0).all(axis=1)]
    found = []
    for length in LENGTHS:
        backlog = np.full(len(factors), 2 * WORLD.buffer * WORLD.unprocessed)
        peak = backlog.copy()
        for stage in range(STAGES):
            backlog = np.maximum(0, backlog + (factors[:, stage] - 1) * ROWS_AN_INTERVAL * length)
            peak = np.maximum(peak, backlog)
        fits = (peak >= PEAK[0]) & (peak <= PEAK[1]) & (backlog >= REST[0]) & (backlog <= REST[1])
        found += [plan_of(tuple(line), length) for line in factors[fits].tolist()]
    return found


def plan_of(factors: tuple[float, ...], length: int) -> ArrivalPlan:
    """Rates as parts of what can be processed."""
    return ArrivalPlan(tuple(round(factor * ROWS_AN_INTERVAL, 6) for factor in factors), length)


def judge(plan: ArrivalPlan, world: World = WORLD, patience: int = 99) -> Found:
    """What of the fingerprint a plan does not show; gives up after so many failures."""
    failed: list[str] = []
    implied = 0
    least = 1.0
    fifo = simulate(CASES["P1"], plan, policy_named("fifo"), world).last  # in all cases a row is the same work
    for case in ORDER:
        last = {name: simulate(CASES[case], plan, policy_named(name), world).last for name in OLDER if name != "fifo"}
        last["fifo"] = fifo
        reported = fingerprint(case, last)
        failed += [f"{case} {what}" for what, holds in reported.items() if not holds and what not in IMPLIED]
        implied += sum(holds for what, holds in reported.items() if what in IMPLIED)
        least = min(least, margin(case, last))
        if len(failed) > patience:
            break
    return Found(plan, tuple(failed), implied, least)


def search(most: int, seed: int = 0) -> Iterator[tuple[int, Found]]:
    """Better and better plans among the first so many, with their numbers."""
    plans = candidates()
    best: Found | None = None
    for number, at in enumerate(np.random.default_rng(seed).permutation(len(plans))[:most].tolist()):
        found = judge(plans[at], patience=99 if best is None else len(best.failed))
        if best is None or found.rank > best.rank:
            best = found
            yield number, found


def main() -> int:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    started = time.perf_counter()
    print(f"{len(candidates()):,} plans fit, {most} are simulated")
    for number, best in search(most):
        fails = ", ".join(best.failed) or "nothing"
        reported = (
            f"{best.plan.rates} x {best.plan.intervals}: fails {fails}; implied {best.implied}; {best.margin:.4f}"
        )
        print(f"{number}: {reported}", flush=True)
    print(f"took {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
