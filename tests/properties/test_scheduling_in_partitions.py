"""Queries whose work is put in order, in a partition that is kept by a log: as on Spark, in one process.

Each is equal to the reference of that query alone, a batch that is run again does the same work, and what is lost is
counted and named.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.profile import NIGHTLY, examples
from tests.properties.scheduling_trials import Trial, trial_of
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut, cut_into_tasks
from tests.run_in_partitions import Batch, Cluster
from tests.run_locally import Push
from transom.core.time import FOREVER
from transom.pipeline import scheduled_work, state_backend
from transom.pipeline.consumer import Consumer
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.pipeline.scheduled_state import Shed
from transom.planner.sharing import shared_join
from transom.runtimes.spark.overload import with_earlier

EXAMPLES = examples(by_day=2, at_night=300)


@pytest.fixture(autouse=True)
def little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few rows, what is cut into parts only where there are many is cut as well."""
    monkeypatch.setattr(scheduled_work, "PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(scheduled_work, "GIVEN_AT_ONCE", 3)
    monkeypatch.setattr(scheduled_work, "MOMENT", 2)


class PartitionTrial:
    """The queries of a trial in a partition."""

    def __init__(self, trial: Trial, random: Random, seen: Counter[str]) -> None:
        trial.group.close()
        self.trial, self.random, self.seen = trial, random, seen
        self.cluster = Cluster(self._layout(), Random(random.random()))
        self.now = 1_000_000
        self.scheduled: dict[str, Any] | None = None

    def _layout(self) -> Layout:
        trial = self.trial
        before = {each.spec.name: each for each in self.cluster.layout.consumers} if hasattr(self, "cluster") else {}
        consumers = [
            before.get(requested.member.name, Consumer(requested.member, trial.catalogue, requested.begin))
            for requested in trial.here
        ]
        subplan = shared_join([requested.member.of_join for requested in trial.here], trial.catalogue)
        layout = Layout(subplan, trial.catalogue, "changes", 1, open=True, consumers=tuple(consumers))
        assert layout.schedule is not None
        return layout

    def batch(self, tasks: Batch, last: bool = False) -> None:
        trial, random = self.trial, self.random
        self.now += random.choice([1, 100_000, 700_000])
        speed = random.choice([None, 1e6, 1e8])
        self.cluster.schedule = ScheduledBatch(self.now, speed, last)
        if random.random() < 0.1:
            self.cluster.schedule = None  # nobody planned it: all is done
        reported = self.cluster.answers(tasks)
        for requested, consumer in zip(trial.here, self.cluster.layout.consumers, strict=True):
            rows = reported.get(requested.member.name, [])
            requested.answer.add(merged(rows, consumer.emit_name, consumer.output_schema))
        (status,) = self.cluster.statuses.values()
        self.scheduled = with_earlier(status["scheduled"], self.scheduled)
        for name, query in self.scheduled["queries"].items():
            due, processed, shed, pending = query["ledger"]
            assert due == processed + shed + pending, (name, query["ledger"])
            trial.shed[name] = Shed(*(np.array(column, dtype=np.int64) for column in query["shed"]))
            assert trial.shed[name].total == shed, name
        self.seen["apart"] += len({query["frontier"] for query in self.scheduled["queries"].values()}) > 1
        self.seen["left"] += self.scheduled["waits"]
        assert not (last and self.scheduled["waits"])

    def come_and_go(self) -> None:
        trial, random = self.trial, self.random
        comes, goes = random.random() < 0.2 and trial.waiting, random.random() < 0.1 and len(trial.here) > 1
        if (comes or goes) and self.cluster.frontier != FOREVER:
            assert self.scheduled is not None
            if goes:
                left = trial.here.pop(random.randrange(len(trial.here)))
                left.left = self.scheduled["queries"][left.member.name]["frontier"]
                trial.gone.append(left)
            if comes:
                trial.here.append(trial.waiting.pop())
                trial.here[-1].begin = self.cluster.frontier
            random.shuffle(trial.here)
            self.cluster = self.cluster.changed(self._layout())
            self.seen["came"] += bool(comes)
            self.seen["went"] += bool(goes)
            self.seen["changed with work waiting"] += self.scheduled["waits"]
        if random.random() < 0.2:
            self.seen["restarted with work waiting"] += self.scheduled is not None and self.scheduled["waits"]
            self.cluster.restart()

    def run(self) -> None:
        trial, random = self.trial, self.random
        for tasks in cut_into_tasks(random, cut(random, trial.rows)):
            self.batch(tasks)
            self.come_and_go()
            if random.random() < 0.3:
                self.batch([[]])  # there is nothing new, and work waits
        self.batch([[Push(name, [], end=True) for name in trial.rows]], last=True)
        self.cluster.close()


def trials(kind: str, policy: str, overload: str, check: Any, *, keyed: bool = False) -> Counter[str]:
    seen: Counter[str] = Counter()
    kind += " by key" * keyed

    @over_seeds(f"{kind} {policy}", EXAMPLES, seen)
    def each(seed: int) -> None:
        random = Random(f"{kind} {policy} {seed}")
        trial = trial_of(random, policy, overload, keyed=keyed)
        with patch.object(state_backend, "LEAST_BYTES", random.choice([1, 1 << 16])):
            PartitionTrial(trial, random, seen).run()
        check(trial, seen)

    each()
    return seen


AT_NIGHT = pytest.mark.nightly


@pytest.mark.parametrize("keyed", [False, pytest.param(True, marks=AT_NIGHT)])
@pytest.mark.parametrize(
    "policy", [pytest.param("fifo", marks=AT_NIGHT), "mqt", pytest.param("mandf", marks=AT_NIGHT), "admandf", "slack"]
)
def test_each_query_in_a_partition_equals_the_reference(policy: str, keyed: bool) -> None:
    def check(trial: Trial, seen: Counter[str]) -> None:
        assert all(not shed.total for shed in trial.shed.values())
        lively = [trial.check(requested, None) for requested in trial.here]
        lively += [trial.check(requested, requested.left) for requested in trial.gone if requested.left is not None]
        seen["lively"] += max(lively) >= 3

    seen = trials("scheduling in a partition", policy, "block", check, keyed=keyed)
    assert seen["lively"] >= EXAMPLES // 7 and seen["left"], seen
    assert not NIGHTLY or (seen["came"] and seen["went"] and seen["changed with work waiting"]), seen
    assert not NIGHTLY or policy == "fifo" or seen["apart"], "no query was ahead of another"


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "policy", [pytest.param("fifo", marks=AT_NIGHT), "mqt", "admandf", pytest.param("slack", marks=AT_NIGHT)]
)
def test_what_is_lost_in_a_partition_is_accounted_for(policy: str, keyed: bool) -> None:
    def check(trial: Trial, seen: Counter[str]) -> None:
        for requested in trial.here:
            lost = trial.check_partial(requested)
            seen["partial"] += lost > 0
            seen["whole"] += lost == 0

    seen = trials("shedding in a partition", policy, "shed", check, keyed=keyed)
    assert seen["partial"] and seen["left"] and (seen["whole"] or not NIGHTLY), seen
