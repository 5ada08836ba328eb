"""Deadlines: how long work could wait, counted row by row, and what the policy makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.scheduling.backlog import Backlog, WorkRun
from transom.scheduling.load import Load, LoadMethod
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import Slack, policy_named
from transom.scheduling.scheduler import Scheduler
from transom.scheduling.simulation import ArrivalPlan, World, simulate
from transom.scheduling.slack import slack

GROUPS = groups_of([1, 5, 20])
ENDLESS = float("inf")


def test_nothing_to_do_can_wait_for_ever() -> None:
    assert slack(Backlog.empty(GROUPS.ends, 2), GROUPS, [5, 5], [5, 5], 10.0) == (ENDLESS,) * 3


def test_by_hand() -> None:
    """Ten rows come in an interval and ten leave; the first ten have their first group, of the rest nothing is done."""
    backlog = Backlog.empty(GROUPS.ends, 1)
    backlog.arrive([40])
    backlog.did(WorkRun(0, 0, 10, 0, 1))
    slacks = slack(backlog, GROUPS, [10], [10], capacity=100.0)
    # One group: work begins after an interval, and grows by a tenth of an interval in each.
    assert slacks[0] == pytest.approx(1.0)
    # Two: 10 * 4 in the first interval, then 10 * 5 in each; time goes faster.
    assert slacks[1] == pytest.approx(0.0)
    # Three: 10 * 19 in the first, then 10 * 20 in each, four of them: 790 at 4.
    assert slacks[2] == pytest.approx(4 - 7.9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.integers(1, 9), st.integers(0, 9), st.integers(1, 300))
def test_as_counted_row_by_row(done: list[int], rate: int, room: int, capacity: int) -> None:
    reached = sorted(done, reverse=True)
    backlog = Backlog.empty(GROUPS.ends, 1)
    backlog.arrive([30])
    backlog.sides[0].waiting = reached
    going = max(0, rate - room)
    slacks = slack(backlog, GROUPS, [rate], [going], float(capacity), horizon=100.0)
    for groups in range(1, 4):
        expected, work = ENDLESS, 0.0
        for row in range(30):
            left_over = [cost for cost, at in zip(GROUPS.costs[:groups], reached, strict=False) if at <= row]
            leaves = (row + (rate - going)) / rate
            if left_over:
                expected = min(expected, leaves - work / capacity)
                work += sum(left_over)
                expected = min(expected, (row + 1 + (rate - going)) / rate - work / capacity)
            elif work:
                expected = min(expected, leaves - work / capacity)
        assert slacks[groups - 1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reported", "method", "depth"),
    [
        ((ENDLESS, ENDLESS, 5.0), LoadMethod.MQT, 3),
        ((3.0, 2.0, 1.9), LoadMethod.FIFO, 3),
        ((3.0, 2.0, -0.1), LoadMethod.FIFO, 2),
        ((0.5, -1.0, -2.0), LoadMethod.FIFO, 1),
        ((-0.5, -1.0, -2.0), LoadMethod.FIFO, 1),
    ],
)
def test_what_the_policy_makes_of_it(reported: tuple[float, ...], method: LoadMethod, depth: int) -> None:
    policy = Slack()
    state = policy.start()
    policy.follow(state, Load(10, 0.0, 1.0, reported))
    assert (state.method, state.depth) == (method, depth)


def test_it_must_know_what_can_be_done() -> None:
    scheduler = Scheduler(GROUPS, policy_named("slack"))
    with pytest.raises(ValueError, match="must be told the capacity"):
        scheduler.measure()


def test_a_depth_comes_before_the_rest() -> None:
    scheduler = Scheduler(GROUPS, policy_named("slack"), sides=1)
    scheduler.arrive([4])
    scheduler.state.depth = 2
    for expected in (WorkRun(0, 0, 4, 0, 2), WorkRun(0, 0, 4, 2, 3)):
        assert scheduler.next() == expected
        scheduler.did(expected)
    assert scheduler.next() is None


def test_under_too_high_a_load_more_is_done_than_by_fifo() -> None:
    """What cannot be done in time is given up, the dear queries first: the case that the paper leaves open."""
    windows, plan, world = (5, 20, 60), ArrivalPlan((50, 60, 55, 50), 12), World(capacity=20 * 60, buffer=100, ticks=4)
    last_of = {name: simulate(windows, plan, policy_named(name), world).last for name in ("fifo", "mqt", "slack")}
    assert last_of["fifo"].dropped > 0
    assert last_of["slack"].dropped < last_of["fifo"].dropped
    assert last_of["slack"].processed > last_of["fifo"].processed
