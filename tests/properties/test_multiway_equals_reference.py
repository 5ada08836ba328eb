"""Any join of two to six inputs by every tactic: equal to the reference at every instant, and punctual.

Each is forced, on the local engine with any cut and restarts, and laid out over partitions.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.profile import examples
from tests.properties import occurrences
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.multiway_queries import FAMILIES, MultiwayJoins
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.kernels import shorter_steps
from transom.kernels.multiway import mjoin, parallel_mjoin, parallel_tree
from transom.kernels.multiway.cost import TACTICS
from transom.pipeline import fragment_partition
from transom.planner.plan import plan
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=1, at_night=300)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tactic_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lively: Counter[str] = Counter()

    @over_seeds(f"multiway {family}", EXAMPLES, lively)
    def check(seed: int) -> None:
        random = Random(f"multiway {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = MultiwayJoins(random, repeats=15)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        for tactic in TACTICS:
            example.catalogue.options["multiway"] = tactic
            joins = [o for o in plan(example.query, example.catalogue).walk() if o.kind in ("Join", "MultiwayJoin")]
            names = {operator.tactic.name if operator.kind == "MultiwayJoin" else "tree" for operator in joins}
            assert names == {tactic}
            monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
            monkeypatch.setattr(mjoin, "PART", random.choice([1, 4, 1 << 13]))
            monkeypatch.setattr(mjoin, "BLOCK", random.choice([8, 1 << 20]))
            monkeypatch.setattr(shorter_steps, "SLICE", random.choice([1, 4, 1 << 10]))
            monkeypatch.setattr(parallel_tree, "PART", random.choice([1, 4, 1 << 13]))
            monkeypatch.setattr(parallel_tree, "BLOCK", random.choice([8, 1 << 20]))
            monkeypatch.setattr(parallel_mjoin, "FEW", random.choice([0, 0, 30]))
            answer = (locally if random.random() < 0.5 else in_partitions)(example, random)
            reported = difference(example.expected, answer)
            assert reported is None, f"{tactic}: {example.text}\n(first: reference, second: the engine)\n{reported}"
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected
            lively[tactic] += len(example.expected.instants) >= 3
        occurrences.note(example.noted.pairs(), len(example.expected.instants))

    check()
    assert all(lively[tactic] >= EXAMPLES // 4 for tactic in TACTICS), lively
