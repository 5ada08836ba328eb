"""Queries with every clause, function and type of the language: equal to the reference at every instant, for any cut
into batches, any restart, any number of partitions, both ways to report lifetimes and any tactic that is asked for."""

from __future__ import annotations

from random import Random

import pytest

from tests.profile import examples
from tests.properties import any_run
from tests.properties.examples import Example, Inputs, lively_example
from tests.properties.idiom_queries import DECLARATIONS, FAMILIES, IdiomGenerator, rows_of_inputs, statement_of
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.core.errors import UnsupportedError
from transom.planner.plan import plan
from transom.runtimes.reference.history import History

EXAMPLES = examples(by_day=5, at_night=2_500)
INPUTS = Inputs(DECLARATIONS, rows_of_inputs)
TACTICS = {
    "multiway": ("auto", "auto", "tree", "parallel_tree", "mjoin", "parallel_mjoin"),
    "joinagg": ("auto", "auto", "pc", "ic", "tc", "factorised"),
}


@pytest.mark.parametrize("runs", ["locally", "in_partitions"])
def test_idioms_equal_reference(runs: str) -> None:
    @over_seeds(f"idioms {runs}", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"idioms {runs} {seed}")
        family = random.choice(FAMILIES)

        def statement() -> tuple[str, Noted]:
            generator = IdiomGenerator(random, repeats=10)
            return statement_of(generator, family), generator.noted

        tactic = random.choice(["auto", "auto", "lazy_hash", "nested_loop"])
        example = lively_example(random, statement, tactic, INPUTS)
        forced = {option: random.choice(tactics) for option, tactics in TACTICS.items()}
        run = any_run.locally if runs == "locally" else any_run.in_partitions

        def run_forced() -> History:
            force(example, forced)
            return run(example, random)

        example.check(run_forced)

    check()


def force(example: Example, forced: dict[str, str]) -> None:
    """These tactics, each if the query admits it."""
    options = example.catalogue.options
    options.update(dict.fromkeys(forced, "auto"))
    for option, tactic in forced.items():
        options[option] = tactic
        try:
            plan(example.query, example.catalogue)
        except UnsupportedError as error:
            if f"tactic '{tactic}'" not in str(error):
                raise
            options[option] = "auto"
