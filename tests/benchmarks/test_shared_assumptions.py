"""Which assumption fails where adMandF drops more than MandF: a change changes one thing, and misses are explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.shared.assumptions import (
    Trial,
    as_drawn,
    counted,
    drawn,
    evenly,
    foreseen,
    measured_often,
    miss,
    rising_is_for_fifo,
    served_by_fifo,
)
from benchmarks.shared.scheduling import Seed
from transom.scheduling.simulation import ArrivalPlan

INTERVALS = 40


@pytest.fixture(scope="module")
def overloaded() -> Trial:
    """FIFO drops under this plan, and MandF a little less."""
    return drawn(1, INTERVALS)


def test_work_is_as_much_faster_as_fifo_needs(overloaded: Trial) -> None:
    assert overloaded.run("fifo").last.ledger.shed > 0
    faster = served_by_fifo(overloaded)
    assert faster.run("fifo").last.ledger.shed == 0
    assert replace(faster, world=overloaded.world) == overloaded
    slower = replace(faster.world, capacity=faster.world.capacity - 0.01 * overloaded.world.capacity)
    assert replace(faster, world=slower).run("fifo").last.ledger.shed > 0
    assert served_by_fifo(faster) == faster


def test_each_change_changes_one_thing(overloaded: Trial) -> None:
    assert evenly(overloaded) == replace(overloaded, plan=replace(overloaded.plan, seed=None))
    assert foreseen(overloaded).world.foresight
    assert replace(foreseen(overloaded), world=overloaded.world) == overloaded
    assert rising_is_for_fifo(overloaded).readings.otherwise == "now"
    assert replace(rising_is_for_fifo(overloaded), readings=overloaded.readings) == overloaded


def test_rows_and_work_are_the_same_however_often_it_is_measured(overloaded: Trial) -> None:
    often = measured_often(overloaded)
    ticks = overloaded.world.ticks
    assert np.array_equal(often.plan.rows(often.world.ticks), overloaded.plan.rows(ticks))
    found, before = often.run("fifo"), overloaded.run("fifo")
    assert [ledger.shed for ledger in found.ledgers] == [ledger.shed for ledger in before.ledgers]
    assert len(found.trace.time) == ticks * len(before.trace.time)
    assert found.trace.time[-1] == pytest.approx(before.trace.time[-1])


def test_where_fifo_drops_most_of_the_excess_is_its_own() -> None:
    found = miss(4, drawn(4, INTERVALS))
    assert found.dropped["mandf"] < found.dropped["admandf"] == found.dropped["fifo"]
    assert found.is_fifo and found.method == "fifo"
    assert found.then["admandf"].time < found.parted


@pytest.mark.nightly
def test_the_miss_that_fifo_serves_has_no_case_for_a_load_that_rises_at_a_low_rate() -> None:
    trial = drawn(10, INTERVALS)
    found = miss(10, trial)
    assert found.dropped["fifo"] == 0 < found.dropped["mandf"] < found.dropped["admandf"]
    assert (found.case, found.method, found.is_fifo) == (0, "mqt", False)
    for change in (evenly, rising_is_for_fifo):
        last = {name: change(trial).run(name).last for name in ("mandf", "admandf")}
        assert last["admandf"].dropped <= last["mandf"].dropped


def test_plans_are_counted_apart_by_what_fifo_drops() -> None:
    def seed(number: int, fifo: float, mandf: float, admandf: float) -> Seed:
        return Seed(number, ArrivalPlan((1,), 1), {"fifo": fifo, "mandf": mandf, "admandf": admandf}, {})

    found = as_drawn([seed(0, 0.2, 0.1, 0.2), seed(1, 0.1, 0.1, 0.1), seed(2, 0.0, 0.1, 0.2), seed(3, 0.0, 0.4, 0.0)])
    assert [(one.plans, one.no_more, one.more) for one in found.values()] == [
        (4, 2, (0, 2)),
        (3, 2, (2,)),
        (1, 0, (0,)),
    ]
    assert found["as drawn"].mean_dropped == pytest.approx({"mandf": 0.175, "admandf": 0.125})
    assert counted({}).no_more == 0
