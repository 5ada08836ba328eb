"""Joins of many and aggregates over joins whose tactic changes at random steps: equal to the reference, and punctual.

With any cut, restarts before, at and after a change, in one process and laid out over partitions.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.profile import examples
from tests.properties import occurrences
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.joinagg_queries import JoinAggregates
from tests.properties.multiway_queries import FAMILIES, MultiwayJoins
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.core.delta import Ends
from transom.kernels import shorter_steps
from transom.kernels.changing import TacticChange
from transom.kernels.joinagg.adaptive import AdaptiveKernel, AdaptiveState
from transom.kernels.kernel import Step
from transom.kernels.multiway.adaptive import AdaptiveJoinKernel, AdaptiveJoinState
from transom.pipeline import fragment_partition
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=2, at_night=300)
OF_MANY = examples(by_day=1, at_night=300)


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


@pytest.mark.parametrize("family", FAMILIES)
def test_a_join_of_many_that_changes_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()
    change = AdaptiveJoinKernel._change

    def counted(kernel: AdaptiveJoinKernel, state: AdaptiveJoinState, due: TacticChange, step: Step) -> Ends:
        ran[due.after.split()[0]] += 1
        return change(kernel, state, due, step)

    monkeypatch.setattr(AdaptiveJoinKernel, "_change", counted)

    @over_seeds(f"adaptive {family}", OF_MANY, ran)
    def check(seed: int) -> None:
        random = Random(f"adaptive {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = MultiwayJoins(random, repeats=15)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        example.catalogue.options |= {"multiway": "adaptive", "adapt": "shuffle"}
        monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
        monkeypatch.setattr(shorter_steps, "SLICE", random.choice([1, 4, 1 << 10]))
        for run in (locally, in_partitions):
            answer = run(example, random)
            reported = difference(example.expected, answer)
            assert reported is None, f"{run.__name__}: {example.text}\n(first: reference)\n{reported}"
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected
        occurrences.note(example.noted.pairs(), len(example.expected.instants))

    check()
    assert all(ran[tactic] >= OF_MANY for tactic in ("tree", "mjoin")), ran
