"""Aggregates of every kind, with FILTER and DISTINCT: equal to the reference at every instant, and punctual."""

from __future__ import annotations

from random import Random

import pytest

from tests.profile import examples
from tests.properties.aggregate_queries import FAMILIES, Aggregates
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds

EXAMPLES = examples(by_day=5, at_night=400)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_aggregate_equals_the_reference(family: str) -> None:
    @over_seeds(f"aggregates {family}", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"aggregates {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = Aggregates(random)
            return generator.statement(family), generator.noted

        example = lively_example(random, statement)
        joined = any("join" in each for each in example.noted.operators)
        run = locally if joined or random.random() < 0.6 else in_partitions
        example.check(lambda: run(example, random))

    check()
