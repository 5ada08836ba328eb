"""A tree of joins of any shape, bushy ones and such that join what shares no key included: equal to the reference."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.profile import examples
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import lively_example
from tests.properties.multiway_queries import FAMILIES, MultiwayJoins
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from transom.kernels.multiway.join_tree import Tree, leaves
from transom.kernels.multiway.statistics import JoinStatistics
from transom.plan.algebra import Join, Node
from transom.planner import multiway_choice
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=2, at_night=200)


def any_tree(random: Random, inputs: list[int]) -> Tree:
    if len(inputs) == 1:
        return inputs[0]
    cut = random.randrange(1, len(inputs))
    return any_tree(random, inputs[:cut]), any_tree(random, inputs[cut:])


def joins_of(node: Node) -> Iterator[Join]:
    if isinstance(node, Join):
        yield node
    for below in node.inputs:
        yield from joins_of(below)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_shape_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: set[Tree] = set()
    many: list[Join] = []

    @over_seeds(f"trees {family}", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"trees {family} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = MultiwayJoins(random, repeats=15)
            return generator.statement(family), generator.noted

        def shape(statistics: JoinStatistics, written: Tree, spread: bool) -> Tree:
            inputs = leaves(written)
            again = Random(seed)
            again.shuffle(inputs)
            tree = any_tree(again, inputs)
            shapes.add(tree)
            return tree

        monkeypatch.setattr(multiway_choice, "best_tree", shape)
        example = lively_example(random, statement)
        example.catalogue.options["multiway"] = "tree"
        many.extend(join for join in joins_of(example.query) if len(join.relations) > 2)
        for run in (locally, in_partitions):
            reported = difference(example.expected, run(example, random))
            assert reported is None, f"{shapes}: {example.text}\n(first: reference, second: the engine)\n{reported}"

    check()
    assert shapes or not many
