"""Any queries on one join whose work is put in order: each equal to the reference of that query alone.

With any policy, however little time a step has and however few rows may wait, coming, going and restarts included; and
where rows are lost, every pair that is missing is one of theirs.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.profile import examples
from tests.properties.scheduling_trials import Trial, trial_of
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut
from tests.run_locally import Push
from transom.core.time import FOREVER
from transom.pipeline import scheduled_work

EXAMPLES = examples(by_day=6, at_night=300)


def with_and_without_a_key(*policies: str, by_day: str) -> list[Any]:
    """Joins on a key by one of them by day, and by all at night."""
    keyed = [pytest.param(one, True, marks=[pytest.mark.nightly] * (one != by_day)) for one in policies]
    return [*(pytest.param(one, False) for one in policies), *keyed]


@pytest.fixture(autouse=True)
def little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few rows, what is cut into parts only where there are many is cut as well."""
    monkeypatch.setattr(scheduled_work, "PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(scheduled_work, "GIVEN_AT_ONCE", 3)
    monkeypatch.setattr(scheduled_work, "MOMENT", 2)


def change(trial: Trial, random: Random, seen: Counter[str]) -> None:
    """Queries come and go, and the process is another one."""
    if trial.waiting and trial.group.subplan.progress < FOREVER and random.random() < 0.1:
        trial.come()
        seen["came"] += 1
    if len(trial.here) > 1 and random.random() < 0.05:
        trial.go(random.choice(trial.here))
        seen["went"] += 1
    if random.random() < 0.15:
        seen["with work waiting"] += not trial.group.at_rest
        trial.restart()
        seen["restarts"] += 1


@pytest.mark.parametrize(
    ("policy", "keyed"), with_and_without_a_key("fifo", "mqt", "mandf", "admandf", "slack", by_day="mqt")
)
def test_each_query_equals_the_reference_whatever_is_done_first(policy: str, keyed: bool) -> None:
    seen: Counter[str] = Counter()
    name = f"scheduling {policy}{' by key' * keyed}"

    @over_seeds(name, EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"{name} {seed}")
        trial = trial_of(random, policy, "block", keyed=keyed)
        for push in cut(random, trial.rows):
            while trial.group.full:
                seen["blocked"] += 1
                trial.advance()
            trial.push(push)
            trial.check_ledgers()
            seen["apart"] += len({trial.group.progress_of(requested.member.name) for requested in trial.here}) > 1
            change(trial, random, seen)
            if random.random() < 0.5:
                requested = random.choice(trial.here)
                reached = trial.group.progress_of(requested.member.name)
                seen["punctual"] += reached is not None and bool(trial.check(requested, reached))
        trial.finish()
        assert all(not shed for *_, shed, _ in trial.ledgers())
        lively = [trial.check(requested, None) for requested in trial.here]
        lively += [trial.check(requested, requested.left) for requested in trial.gone if requested.left is not None]
        seen["lively"] += max(lively) >= 3

    check()
    assert seen["lively"] >= EXAMPLES // 7, seen
    assert seen["came"] + seen["went"] and seen["blocked"] + seen["with work waiting"], seen
    assert seen["restarts"], seen
    assert policy == "fifo" or seen["apart"], "no query was ahead of another"


@pytest.mark.parametrize(("policy", "keyed"), with_and_without_a_key("fifo", "mqt", "admandf", "slack", by_day="slack"))
def test_what_is_lost_is_accounted_for_and_everything_else_is_there(policy: str, keyed: bool) -> None:
    seen: Counter[str] = Counter()
    name = f"shedding {policy}{' by key' * keyed}"

    @over_seeds(name, EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"{name} {seed}")
        trial = trial_of(random, policy, "shed", keyed=keyed)
        pushes = cut(random, trial.rows)
        for number, push in enumerate(pushes):
            trial.push(push)
            trial.check_ledgers()
            change(trial, random, seen)
            while number > len(pushes) // 3 and not trial.group.at_rest:  # the rush is over
                trial.advance()
        trial.finish()
        for requested in trial.here:
            lost = trial.check_partial(requested)
            seen["partial"] += lost > 0
            seen["whole"] += lost == 0
            seen["exact again"] += trial.exact_again(requested)

    check()
    assert all(seen[what] for what in ("partial", "whole", "exact again", "restarts")), seen


def test_all_that_waits_is_done_at_the_end() -> None:
    random = Random(1)
    trial = trial_of(random, "mqt", "block")
    for name, rows in trial.rows.items():
        trial.push(Push(name, rows, end=True))
    trial.finish()
    assert trial.group.finished and trial.group.at_rest
    assert all(trial.group.progress_of(requested.member.name) == FOREVER for requested in trial.here)
