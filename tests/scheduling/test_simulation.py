"""The simulation: its books balance at every tick, and partners are counted as one would count them by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from transom.scheduling.load import Readings
from transom.scheduling.policy import POLICIES, policy_named
from transom.scheduling.simulation import SIDES, ArrivalPlan, World, simulate

WINDOWS = (5, 20, 60)
WORLD = World(capacity=20 * 60, buffer=100, ticks=4)
PLAN = ArrivalPlan((30, 10, 36, 24), 12)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [None, 3])
def test_the_books_balance(policy: str, seed: int | None) -> None:
    plan = ArrivalPlan(PLAN.rates, PLAN.intervals, seed)
    simulated = simulate(WINDOWS, plan, policy_named(policy), WORLD)
    assert len(simulated.ledgers) == 4 * 12 * WORLD.ticks
    for ledger in simulated.ledgers:
        assert ledger.due == ledger.processed + ledger.shed + ledger.pending
    for before, after in pairwise(simulated.ledgers):
        assert before.due <= after.due and before.processed <= after.processed and before.shed <= after.shed
    fresh = SIDES * WORLD.buffer * WORLD.unprocessed
    assert simulated.ledgers[-1].due == len(WINDOWS) * (fresh + plan.rows(WORLD.ticks).sum())
    assert [stage.ledger for stage in simulated.stages] == list(simulated.ledgers[47::48])
    assert len(simulated.trace.time) == 48
    assert sum(simulated.trace.rate) == plan.rows(WORLD.ticks).sum()
    assert 0 < simulated.last.complete < simulated.last.processed < 1


def test_it_is_repeatable() -> None:
    plan = ArrivalPlan(PLAN.rates, PLAN.intervals, seed=3)
    assert simulate(WINDOWS, plan, policy_named("admandf"), WORLD) == simulate(
        WINDOWS, plan, policy_named("admandf"), WORLD
    )
    assert plan.rows(4).tolist() != ArrivalPlan(PLAN.rates, PLAN.intervals, seed=4).rows(4).tolist()


def test_work_is_done_at_its_cost() -> None:
    """Nothing comes: the first 40 rows are all there is, 20 of them an interval."""
    simulated = simulate(WINDOWS, ArrivalPlan((0,), 3), policy_named("fifo"), WORLD)
    assert [ledger.processed for ledger in simulated.ledgers] == [3 * min(40, 5 * tick) for tick in range(1, 13)]
    assert simulated.last.incomplete == 0


def test_what_leaves_before_its_turn_is_dropped() -> None:
    """100 rows of each side come in a tick: all old ones go, none of which had its turn."""
    simulated = simulate(WINDOWS, ArrivalPlan((800,), 1), policy_named("fifo"), World(capacity=4, buffer=100, ticks=4))
    assert simulated.ledgers[0].shed == 3 * 40
    assert simulated.last.ledger.processed == 3  # a row that was begun is finished, and takes long


def test_partners_that_left_are_counted() -> None:
    """25 rows of each side come in a tick, and 10 rows are done: 30 of the first 40, the others leave, 10 new ones."""
    world = World(capacity=4 * 10 * 60, buffer=100, ticks=4)
    simulated = simulate(WINDOWS, ArrivalPlan((200,), 1), policy_named("fifo"), world)
    assert (simulated.last.ledger.processed, simulated.last.ledger.shed) == (3 * 40, 3 * 10)
    partners_at_arrival = [80 + number + 1 for number in range(15) for _ in range(SIDES)] + [100 + 25] * 10
    expected = sum(
        partners - window < 25 * (at // 10 + 1) for at, partners in enumerate(partners_at_arrival) for window in WINDOWS
    )
    assert simulated.last.incomplete == expected == 46


def test_the_load_decides_as_it_is_read() -> None:
    """The newest rows are never done by FIFO under such a load, so it is never left again; the oldest soon are."""
    methods = {
        rows: simulate(WINDOWS, PLAN, policy_named("mandf", Readings(rows=rows)), WORLD).trace.method
        for rows in ("newest", "leaving")
    }
    assert methods["newest"].count("fifo") > methods["leaving"].count("fifo") > 0


def test_with_foresight_the_rows_that_leave_are_known() -> None:
    """Few rows come, then many. Those that will leave make the load, one interval before they do."""
    plan = ArrivalPlan((4, 160), 1)
    loads = {
        foresight: simulate(WINDOWS, plan, policy_named("mandf"), replace(WORLD, capacity=4, foresight=foresight)).trace
        for foresight in (False, True)
    }
    assert loads[False].rate == loads[True].rate == [4, 160]
    assert loads[False].load[0] == 0  # the four oldest that follow have nothing due
    assert loads[True].load[0] > 0


def test_rows_come_at_the_rates_of_the_plan() -> None:
    rows = ArrivalPlan((30, 10), 12).rows(4)
    assert rows.shape == (96, SIDES)
    assert rows[:48].sum() == 360 and rows[48:].sum() == 120
    assert np.array_equal(rows[:, 0], rows[:, 1])
