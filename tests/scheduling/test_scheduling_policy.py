"""When each policy changes its method, and the eight cases by which adMandF moves its threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from transom.scheduling.beta import Trend, next_beta
from transom.scheduling.load import Load, LoadMethod, Readings
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import POLICIES, AdMandF, MandF, chosen, policy_named
from transom.scheduling.scheduler import Scheduler

FIFO, MQT = LoadMethod.FIFO, LoadMethod.MQT


def load(share: float, rate: int = 100) -> Load:
    """A load of this share of all that the rows could weigh."""
    return Load(rate, share * 2.0 * rate, 2.0)


@pytest.mark.parametrize(
    ("method", "high", "now", "foreseen", "case", "beta"),
    [
        (FIFO, True, 0.2, 0.3, 1, 0.2),
        (FIFO, True, 0.0, 0.0, 2, 0.0),
        (FIFO, False, 0.2, 0.1, 3, 0.2),
        (FIFO, False, 0.0, 0.0, 4, 0.01),
        (MQT, True, 0.2, 0.3, 5, 0.2),
        (MQT, True, 0.0, 0.0, 6, 0.02),
        (MQT, False, 0.2, 0.1, 7, 0.2),
        (MQT, False, 0.0, 0.0, 8, 0.03),
        (FIFO, True, 0.2, 0.1, 0, 0.1),
        (FIFO, False, 0.2, 0.3, 0, 0.3),
        (MQT, True, 0.2, 0.1, 0, 0.1),
        (MQT, False, 0.2, 0.3, 0, 0.3),
    ],
)
def test_the_eight_cases(method: LoadMethod, high: bool, now: float, foreseen: float, case: int, beta: float) -> None:
    assert next_beta(Trend(method, high, now, foreseen)) == (case, beta)


def test_fifo_and_mqt_never_change() -> None:
    for name, method in (("fifo", FIFO), ("mqt", MQT)):
        policy = policy_named(name)
        state = policy.start()
        for share in (0.0, 1.0):
            policy.follow(state, load(share))
            assert state.method is method


def test_mandf_is_fifo_from_the_threshold_on() -> None:
    policy = MandF(beta=0.25)
    state = policy.start()
    for share, method in ((0.2, MQT), (0.25, FIFO), (0.3, FIFO), (0.2, MQT)):
        policy.follow(state, load(share))
        assert state.method is method
        assert state.beta == 0.25


def test_a_load_at_its_threshold_is_for_fifo_to_the_last_bit() -> None:
    """Cases 1 and 5 set beta so that the threshold is the load. As a product it often comes out a bit above."""
    weights = groups_of([448, 622, 791, 1543, 3000]).weights
    loads = [Load(rate, waiting * weights[0], sum(weights)) for rate in range(400, 420) for waiting in range(1, 50)]
    assert any(load.load < load.threshold(load.beta_now) for load in loads)
    assert all(chosen(load, load.beta_now) is FIFO for load in loads)
    assert all(chosen(load, load.beta_now * 1.001) is MQT for load in loads)


def test_without_arrivals_nothing_leaves() -> None:
    for policy in (MandF(), AdMandF()):
        state = policy.start()
        policy.follow(state, Load(0, 0.0, 2.0))
        assert (state.method, state.beta) == (MQT, 0.05)


def follow(readings: Readings, loads: list[Load]) -> list[tuple[LoadMethod, int, float]]:
    policy = AdMandF(readings)
    state = policy.start()
    reported = []
    for load in loads:
        policy.follow(state, load)
        reported.append((state.method, state.case, round(state.beta, 4)))
    return reported


RISING = [load(0.0), load(0.0), load(0.2), load(0.0), load(0.0, 40), load(0.0, 40), load(0.1, 40), load(0.15, 40)]


def test_the_course_of_admandf() -> None:
    assert follow(Readings(), RISING) == [
        (FIFO, 2, 0.0),  # before the first switch every rate is high
        (FIFO, 2, 0.0),
        (FIFO, 1, 0.2),  # foreseen are 0.4
        (FIFO, 2, 0.0),
        (MQT, 4, 0.01),  # a rate that falls by more than half is foreseen below nothing, and low
        (MQT, 6, 0.02),
        (FIFO, 5, 0.1),
        (FIFO, 1, 0.15),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"decide": "before"},
        {"previous": "estimated"},
        {"previous": "measured"},
        {"rates": "infinite"},
        {"otherwise": "keep"},
        {"otherwise": "now"},
        {"begin": MQT},
        {"interval": 1.0},
    ],
    ids=str,
)
def test_every_reading_makes_a_difference(changed: dict[str, object]) -> None:
    loads = [*RISING, load(0.3, 60), load(0.1, 60), load(0.05, 90), load(0.05, 90), load(0.01, 10), load(0.02, 80)]
    assert follow(replace(Readings(), **changed), loads) != follow(Readings(), loads)  # type: ignore[arg-type]


def test_first_rates_are_those_measured_first() -> None:
    """A rate that falls a little is low beside the first, and without a load that leads to MQT."""
    falling = [load(0.0), load(0.0, 80)]
    assert follow(Readings(), falling)[-1][0] is FIFO
    assert follow(Readings(rates="first"), falling)[-1] == (MQT, 4, 0.01)


def test_the_load_is_of_the_rows_that_are_asked_for() -> None:
    """Ten old rows with half of their queries done, ten new ones with none."""
    loads = {}
    for rows in ("leaving", "newest"):
        for weights in ("slope", "equal"):
            readings = Readings(rows=rows, weights=weights, begin=MQT)
            scheduler = Scheduler(groups_of([1, 5]), MandF(readings), sides=1)
            scheduler.arrive([10])
            run = scheduler.next()
            assert run is not None and (run.rows, run.target) == (10, 1)
            scheduler.did(run)
            scheduler.arrive([10])
            scheduler.backlog.recent = [10]
            loads[rows, weights] = scheduler.measure().load
    assert loads == {
        ("leaving", "slope"): 2.5,
        ("leaving", "equal"): 10,
        ("newest", "slope"): 12.5,
        ("newest", "equal"): 20,
    }


def test_nobody_leaves_while_there_is_room() -> None:
    scheduler = Scheduler(groups_of([1, 5]), MandF())
    scheduler.arrive([10, 10])
    measured = scheduler.measure(leaving=[0, 0])
    assert (measured.rate, measured.load, scheduler.method) == (20, 0.0, MQT)


def test_policies_have_their_names() -> None:
    assert [policy_named(name).name for name in POLICIES] == list(POLICIES)
