"""The heart of the tests: any query, streams, cut, restart and tactic; equal at every instant, and punctual.

Query, rows and cut are drawn evenly from a seed.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.profile import examples
from tests.properties.examples import example_of
from tests.properties.queries import FAMILIES
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut
from tests.run_locally import Answer, run_locally
from transom.pipeline.driver import Pipeline
from transom.runtimes.reference.history import History

EXAMPLES = {1: examples(by_day=4, at_night=200), 3: examples(by_day=2, at_night=150)}
"""By the number of partitions."""


@pytest.mark.parametrize("partitions", EXAMPLES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_local_engine_equals_the_reference(family: str, partitions: int) -> None:
    @over_seeds(f"{family} {partitions}", EXAMPLES[partitions])
    def check(seed: int) -> None:
        check_example(family, seed, partitions)

    check()


def check_example(family: str, seed: int, partitions: int = 1) -> None:
    random = Random(f"{family} {seed}")
    example = example_of(random, family)
    pushes = cut(random, example.rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}
    threads = random.random() < 0.5

    def punctual(pipeline: Pipeline, answer: Answer) -> None:
        example.check_so_far(pipeline.state.gates.frontier, answer.history)

    def run() -> History:
        return run_locally(
            example.query,
            example.catalogue,
            example.rows,
            pushes,
            emit=example.emit,
            partitions=partitions,
            threads=threads,
            restart=restarts.__contains__,
            watch=punctual,
        )

    example.check(run)
