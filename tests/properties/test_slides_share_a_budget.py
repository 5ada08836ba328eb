"""Several joins of sliding windows that keep to one budget, over streams that do not wait: each equals the reference.

They take turns at random, come and go, and all resume from what was saved of them together. A window that goes to disk
for the sake of one join may put off slides of another.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from random import Random

import pytest

from tests.emitted_slides import slide_state
from tests.profile import examples
from tests.properties.seeds import over_seeds
from tests.properties.test_slides_put_off import BUDGETS, Trial, query_of
from transom.kernels.slide_join import labour
from transom.kernels.slide_join.budget import RunBudget, limits_of
from transom.planner import slide_join
from transom.planner.slide_join import TACTICS

EXAMPLES = examples(by_day=8, at_night=400)


def test_joins_that_share_a_budget_equal_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    seen: Counter[str] = Counter()

    @over_seeds("share a budget", EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"share a budget {seed}")
        monkeypatch.setattr(labour, "UNIT_ROWS", random.choice([1, 4, 1 << 16]))
        memory, budget = random.choice(BUDGETS), RunBudget()
        pool, room = budget.pool(0, 1), limits_of(memory).room
        there: list[Trial] = []
        gone: list[Trial] = []
        with ExitStack() as open_ones:

            def come() -> None:
                names, query = query_of(random)
                trial = Trial(random, names, query, random.choice(TACTICS), memory, budget)
                open_ones.callback(trial.open_ones.close)
                there.append(trial)

            def leave(trial: Trial) -> None:
                trial.finish()
                trial.open_ones.close()
                there.remove(trial)
                gone.append(trial)

            come()
            come()
            for _ in range(random.randint(20, 50)):
                trial = random.choice(there)
                others = {id(each): (slide_state(each.pipeline), slide_state(each.pipeline).bytes) for each in there}
                trial.go_on()
                assert len(pool) == len(there)
                assert pool.bytes == sum(slide_state(each.pipeline).bytes for each in there)
                loose = sum(
                    rows.bytes for each in there for w in slide_state(each.pipeline).windows for rows in w.loose
                )
                # What has not been sorted yet stays, and so do groups, and a row or two that alone are too many.
                groups = sum(slide_state(each.pipeline).group_bytes for each in there)
                assert memory < 4_000 or pool.bytes - loose - groups <= room
                for each in there:
                    state, before = others[id(each)]
                    seen["pushed out by another"] += each is not trial and state.bytes < before
                    seen["put off by another"] += bool(each is not trial and state.voided)
                if random.random() < 0.05 and len(there) < 4:
                    come()
                if random.random() < 0.05 and len(there) > 1:
                    leave(random.choice(there))
                if random.random() < 0.05:
                    for each in there:
                        each.restart()
                    seen["restarts"] += 1
            while there:
                leave(there[0])
            assert not len(pool)
        for trial in gone:
            trial.check()

    check()
    assert seen["pushed out by another"] > EXAMPLES and seen["put off by another"], seen
    assert seen["restarts"], seen
