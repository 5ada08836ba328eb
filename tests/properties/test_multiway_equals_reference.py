"""Any join of two to five inputs by every tactic: equal to the reference at every instant, and punctual.

Each is forced, on the local engine with any cut and restarts, and laid out over buckets.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties import occurrences
from tests.properties.examples import Example, lively_example
from tests.properties.multiway_queries import FAMILIES, MultiwayJoins
from tests.properties.queries import Noted
from tests.properties.streams import cut, cut_into_tasks
from tests.run_in_buckets import run_in_buckets
from tests.run_locally import Answer, run_locally
from transom.kernels.multiway import mjoin
from transom.pipeline import bucket
from transom.pipeline.driver import Pipeline
from transom.planner.multiway import TACTICS
from transom.planner.plan import plan
from transom.runtimes.reference.history import History, difference

EXAMPLES = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 8


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tactic_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lively: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        random = Random(f"multiway {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = MultiwayJoins(random, repeats=15)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        for tactic in TACTICS:
            example.catalogue.options["multiway"] = tactic
            kinds = {operator.kind for operator in plan(example.query, example.catalogue).walk()}
            assert ("MultiwayJoin" in kinds) == (tactic != "tree") and ("Join" in kinds) == (tactic == "tree")
            monkeypatch.setattr(bucket, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
            monkeypatch.setattr(mjoin, "PART", random.choice([1, 4, 1 << 13]))
            monkeypatch.setattr(mjoin, "BLOCK", random.choice([8, 1 << 20]))
            answer = (locally if random.random() < 0.5 else in_buckets)(example, random)
            told = difference(example.expected, answer)
            assert told is None, f"{tactic}: {example.text}\n(first: reference, second: the engine)\n{told}"
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected
            lively[tactic] += len(example.expected.instants) >= 3
        occurrences.note(example.noted.pairs(), len(example.expected.instants))

    check()
    assert all(lively[tactic] >= EXAMPLES // 4 for tactic in TACTICS), lively


def locally(example: Example, random: Random) -> History:
    pushes = cut(random, example.rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}

    def punctual(pipeline: Pipeline, answer: Answer) -> None:
        example.check_so_far(pipeline.state.doors.upto, answer.history)

    return run_locally(
        example.query, example.catalogue, example.rows, pushes, emit=example.emit,
        restart=restarts.__contains__, watch=punctual,
    )  # fmt: skip


def in_buckets(example: Example, random: Random) -> History:
    batches = cut_into_tasks(random, cut(random, example.rows))
    restarts = {random.randint(0, len(batches)) for _ in range(random.randint(0, 4))}
    return run_in_buckets(
        example.query, example.catalogue, example.rows, batches, buckets=random.choice([1, 2, 5]), emit=example.emit,
        restart=restarts.__contains__, disorder=Random(random.random()),
    )  # fmt: skip
