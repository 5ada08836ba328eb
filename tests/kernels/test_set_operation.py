"""DISTINCT, INTERSECT and EXCEPT, with and without ALL: the multiplicities of the law at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.relations import CUTS, LAST, SCHEMA, TYPES, relations
from tests.kernels.stepping import Life, Relation, Stepped, Values, bag
from transom.kernels.set_operation.set_operation import SetOperationKernel

Bag = Counter[Values]
MEANING: dict[tuple[str, bool], Callable[[Bag, Bag], Bag]] = {
    ("distinct", False): lambda left, right: Counter(set(left)),
    ("intersect", False): lambda left, right: Counter(set(left) & set(right)),
    ("intersect", True): lambda left, right: left & right,
    ("except", False): lambda left, right: Counter(set(left) - set(right)),
    ("except", True): lambda left, right: left - right,
}


@pytest.mark.parametrize(("kind", "all_"), MEANING)
def test_multiplicities_at_every_instant(kind: str, all_: bool) -> None:
    @settings(max_examples=25)
    @given(relations(), relations(), CUTS, st.booleans())
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool) -> None:
        inputs = [left] if kind == "distinct" else [left, right]
        stepped = Stepped(SetOperationKernel(kind, all_, SCHEMA), restart=restart).feed(inputs, cuts)
        for instant in range(LAST):
            expected = MEANING[kind, all_](bag(left.lives, instant), bag(right.lives, instant))
            assert stepped.snapshot(instant) == expected, instant
        assert stepped.state.shown.slots.in_use == len(stepped.open)
        assert stepped.open_ids.in_use == len(stepped.open) + sum(len(relation.waiting) for relation in inputs)

    check()


def test_a_value_that_is_handed_over_has_one_lifetime() -> None:
    lives: list[Life] = [(("a", 0.0), t, t + 3) for t in (0, 3, 6)]
    stepped = Stepped(SetOperationKernel("distinct", False, SCHEMA)).feed([Relation(lives, TYPES)], [2, 5, 12])
    assert stepped.all_lives() == [(("a", 0.0), 0, 9)]


@pytest.mark.parametrize("values", [(-0.0, 0.0), (0.0, -0.0)])
def test_both_zeros_are_one_value_whichever_came_first(values: tuple[float, float]) -> None:
    lives: list[Life] = [(("a", value), t, t + 3) for t, value in enumerate(values)]
    stepped = Stepped(SetOperationKernel("distinct", False, SCHEMA)).feed([Relation(lives, TYPES)], [1, 2, 9])
    assert stepped.all_lives() == [(("a", 0.0), 0, 4)]


def test_memory_is_that_of_the_values_alive() -> None:
    lives: list[Life] = [((f"value number {t}", 0.5), t, t + 4) for t in range(1_000)]
    kernel = SetOperationKernel("except", True, SCHEMA)
    stepped = Stepped(kernel).feed([Relation(lives, TYPES), Relation(lives[::3], TYPES)], range(4, 1_012, 4))
    tally, shown = stepped.state.tally, stepped.state.shown
    assert tally.keys.slots.in_use == 0 and tally.counts.shape[1] <= 64 and tally.rows.shape[1] <= 64
    assert shown.nodes.shape[1] <= 64 and stepped.open_ids.slots.high <= 16
    assert len(tally.values.columns[0].arena) < 4_000
