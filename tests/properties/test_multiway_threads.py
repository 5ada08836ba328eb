"""The parallel tactics of joins of many inputs, while their threads are held up at random: the answer is the same.

Everything that may go to another thread does, in parts of a few rows, between restarts; afterwards no thread is left.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random

import pytest

from tests.profile import examples
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.multiway_queries import FAMILIES, MultiwayJoins
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.kernels import shorter_steps
from transom.kernels.multiway import mjoin, pace, parallel_mjoin, parallel_tree, probing
from transom.kernels.worker_pool import WorkerPool
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=4, at_night=150)


@pytest.mark.parametrize("tactic", ["parallel_mjoin", "parallel_tree"])
def test_held_up_threads_change_nothing(tactic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()
    delays = Random(7)

    def hold_up() -> None:
        ran[threading.current_thread().name] += 1
        time.sleep(delays.choice([0, 0, 1e-6, 5e-5, 3e-4]))

    monkeypatch.setattr(WorkerPool, "hook", hold_up)
    monkeypatch.setattr(parallel_mjoin, "FEW", 0)
    monkeypatch.setattr(probing, "measured_call", lambda: 0.0)
    monkeypatch.setattr(pace, "sooner", lambda *of: True)

    @over_seeds(f"threads {tactic}", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"threads {tactic} {seed}")
        family = random.choice(FAMILIES)

        def statement() -> tuple[str, Noted]:
            generator = MultiwayJoins(random, repeats=15)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        example.catalogue.options["multiway"] = tactic
        workers = random.choice([1, 2, 4])
        monkeypatch.setattr("transom.kernels.worker_pool.processors", lambda: workers + 1)
        for module in (mjoin, parallel_tree):
            monkeypatch.setattr(module, "PART", random.choice([1, 4, 1 << 13]))
            monkeypatch.setattr(module, "BLOCK", random.choice([8, 1 << 20]))
        monkeypatch.setattr(shorter_steps, "SLICE", random.choice([1, 4, 1 << 10]))
        answer = (locally if random.random() < 0.7 else in_partitions)(example, random)
        reported = difference(example.expected, answer)
        assert reported is None, f"{tactic}: {example.text}\n(first: reference, second: the engine)\n{reported}"
        assert not [thread for thread in threading.enumerate() if thread.name == "transom-worker"]

    check()
    assert ran["transom-worker"] > 5, ran  # how often depends on who is first
