"""Any aggregate over a join by every tactic that can run it: equal to the reference at every instant, and punctual.

Each is forced, on the local engine with any cut and restarts, and laid out over partitions.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.profile import examples
from tests.properties import occurrences
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import Example, lively_example
from tests.properties.joinagg_queries import FAMILIES, JoinAggregates
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.core.errors import UnsupportedError
from transom.pipeline import fragment_partition
from transom.planner.joinagg import TACTICS
from transom.planner.plan import plan
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=2, at_night=300)
# What a family is there for; the others run what they can.
MEANT = {"one_key": {"factorised"}, "predicates": {"tc", "ic"}, "anything": {"pc"}}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tactic_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()

    @over_seeds(f"joinagg {family}", EXAMPLES, ran)
    def check(seed: int) -> None:
        random = Random(f"joinagg {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = JoinAggregates(random, repeats=10)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        tactics = admissible(example)
        assert family != "one_key" or "factorised" in tactics, example.text
        for tactic in tactics:
            ran[tactic] += 1
            example.catalogue.options["joinagg"] = tactic
            monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
            answer = (locally if random.random() < 0.5 else in_partitions)(example, random)
            reported = difference(example.expected, answer)
            assert reported is None, f"{tactic}: {example.text}\n(first: reference, second: the engine)\n{reported}"
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected
        occurrences.note(example.noted.pairs(), len(example.expected.instants))

    check()
    assert all(ran[tactic] >= EXAMPLES // 5 for tactic in MEANT[family]), ran


def admissible(example: Example) -> list[str]:
    """The tactics that do not reject the query; `auto` plans the first of them."""
    tactics = []
    for tactic in TACTICS:
        example.catalogue.options["joinagg"] = tactic
        try:
            plan(example.query, example.catalogue)
        except UnsupportedError as error:
            assert "join-aggregate tactic" in str(error), example.text
        else:
            tactics.append(tactic)
    return tactics
