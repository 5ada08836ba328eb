"""TUMBLE, HOP and SESSION, alone and beside other windows: equal to the reference at every instant, for any cut into
batches, any restart, any number of partitions and both ways to report lifetimes."""

from __future__ import annotations

from random import Random

import pytest

from tests.profile import examples
from tests.properties import any_run
from tests.properties.examples import lively_example
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from tests.properties.window_queries import WindowGenerator, statement_of

FAMILIES = (
    "select", "join", "join3", "outer_join", "sub_query", "group", "aggregate", "distinct", "set_operation", "top_n",
    "over", "lateral", "group_sub_query",
    "any",
)  # fmt: skip
EXAMPLES = examples(by_day=1, at_night=200)


@pytest.mark.parametrize("runs", ["locally", "in_partitions"])
@pytest.mark.parametrize("family", FAMILIES)
def test_windows_equal_reference(family: str, runs: str) -> None:
    @over_seeds(f"{family} {runs} windows", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"{family} {runs} windows {seed}")

        def statement() -> tuple[str, Noted]:
            generator = WindowGenerator(random)
            return statement_of(generator, family), generator.noted

        example = lively_example(random, statement, random.choice(["auto", "auto", "lazy_hash", "nested_loop"]))
        run = any_run.locally if runs == "locally" else any_run.in_partitions
        example.check(lambda: run(example, random))

    check()
