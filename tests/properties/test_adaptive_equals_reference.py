"""Aggregates over joins whose tactic changes at random steps: equal to the reference at every instant, and punctual.

With any cut, restarts before, at and after a change, in one process and laid out over partitions.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.profile import examples
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.joinagg_queries import JoinAggregates
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.kernels.joinagg.adaptive import AdaptiveKernel, AdaptiveState, TacticChange
from transom.kernels.kernel import Step
from transom.pipeline import fragment_partition
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=2, at_night=300)


def test_a_tactic_that_changes_equals_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()
    shuffled = AdaptiveKernel._shuffled

    def counted(kernel: AdaptiveKernel, state: AdaptiveState, step: Step) -> TacticChange | None:
        change = shuffled(kernel, state, step)
        if change is not None:
            ran[change.after] += 1
        return change

    monkeypatch.setattr(AdaptiveKernel, "_shuffled", counted)

    @over_seeds("adaptive", EXAMPLES, ran)
    def check(seed: int) -> None:
        random = Random(f"adaptive {seed}")

        def statement() -> tuple[str, Noted]:
            generator = JoinAggregates(random, repeats=10)
            return generator.statement("one_key_of_two"), generator.noted

        example = lively_example(random, statement)
        example.catalogue.options |= {"joinagg": "adaptive", "adapt": "shuffle"}
        monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
        for run in (locally, in_partitions):
            answer = run(example, random)
            reported = difference(example.expected, answer)
            assert reported is None, f"{run.__name__}: {example.text}\n(first: reference)\n{reported}"
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected

    check()
    assert all(ran[tactic] >= EXAMPLES // 2 for tactic in ("pc", "factorised")), ran
