"""What a scheduler knows can be saved and taken up again."""

from __future__ import annotations

import pytest

from transom.scheduling.backlog import Backlog, BacklogSide
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import POLICIES, PolicyState, policy_named
from transom.scheduling.scheduler import Scheduler
from transom.state.codec import decode, encode


def resume(scheduler: Scheduler, steps: range) -> list[object]:
    reported: list[object] = []
    for step in steps:
        scheduler.arrive([3 + step % 4, 5 - step % 3])
        for number, side in enumerate(scheduler.backlog.sides):
            reported.append(scheduler.leave(number, max(0, side.arrived - 20)))
        for _ in range(2):
            run = scheduler.next()
            if run is not None:
                scheduler.did(run.cut(4))
        reported += [scheduler.measure(capacity=100.0), scheduler.method, scheduler.ledger()]
    return reported


@pytest.mark.parametrize("policy", POLICIES)
def test_a_saved_scheduler_goes_on(policy: str) -> None:
    groups = groups_of([1, 5, 20])
    first = Scheduler(groups, policy_named(policy))
    resume(first, range(7))
    second = Scheduler(groups, policy_named(policy))
    second.backlog = decode(encode(first.backlog), [Backlog, BacklogSide])
    second.state = decode(encode(first.state), [PolicyState])
    expected = resume(first, range(7, 30))
    assert resume(second, range(7, 30)) == expected
    assert first.ledger().shed > 0
