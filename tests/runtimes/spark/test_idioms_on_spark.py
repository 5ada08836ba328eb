"""Queries with every clause, function and type in a real streaming query: equal to the reference."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.profile import examples
from tests.properties.examples import lively_example
from tests.properties.idiom_queries import FAMILIES, IdiomGenerator, statement_of
from tests.properties.queries import Noted
from tests.properties.test_idioms_equal_reference import INPUTS
from tests.run_on_spark import run_on_spark
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=0, at_night=5)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_idioms_on_spark(spark: SparkSession, family: str) -> None:
    fresh = Random()
    for seed in [fresh.randrange(1 << 48) for _ in range(EXAMPLES)]:
        random = Random(f"{family} on spark {seed}")

        def statement(random: Random = random) -> tuple[str, Noted]:
            generator = IdiomGenerator(random)
            return statement_of(generator, family), generator.noted

        example = lively_example(random, statement, given=INPUTS)
        example.catalogue.options["lifetimes"] = random.choice(["direct", "negative"])
        batch_rows = random.choice([3, 5, 1 << 20])
        answer = run_on_spark(
            spark, example.query, example.catalogue, example.rows, emit=example.emit, batch_rows=batch_rows
        )
        reported = difference(example.expected, answer)
        assert reported is None, f"seed {seed}: {example.text}\n(first: reference, second: Spark)\n{reported}"
