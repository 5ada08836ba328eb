"""Nested loop: any predicate, equality written out among them, and none at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Relation, Stepped
from transom.core.schema import BOOLEAN
from transom.kernels.join.join import JoinKernel
from transom.plan.expression import Call, ColumnRef, Expression, Literal
from transom.runtimes.reference.history import canonical


@pytest.mark.parametrize("kind", ["integer", "text", "decimal", "float", "three"])
def test_an_equality_means_what_it_means_to_the_hash_tactics(kind: str) -> None:
    @settings(max_examples=15)
    @given(pairs.relations(kind, False), pairs.relations(kind, False), pairs.CUTS, st.booleans())
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool) -> None:
        stepped = pairs.joined(pairs.join(kind, "nested_loop"), left, right, cuts, restart)
        assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)
        assert stepped.state.open_pairs.slots.in_use == len(stepped.open)

    check()


@pytest.mark.parametrize(
    ("predicate", "wanted"), [(None, True), (Literal(True, BOOLEAN), True), (Literal(None, BOOLEAN), False)]
)
def test_without_columns_in_the_predicate_all_pairs_are_wanted_or_none(
    predicate: Expression | None, wanted: bool
) -> None:
    lives: list[Life] = [((k, None, i), i, None if i == 3 else i + 4) for i, k in enumerate([0, None, 0, 1, 5])]
    relation = Relation(lives, pairs.types_of("integer"), frozenset({1}))
    kernel = pairs.join("integer", "lazy_hash")
    kernel = JoinKernel("nested_loop", (), (), predicate, kernel.schema, kernel.left_width)
    stepped = pairs.joined(kernel, relation, Relation(lives, relation.types), [2, 3, 7, 60])
    meeting = [
        canonical(a + b)
        for a, a_begin, a_end in lives
        for b, b_begin, b_end in lives
        if max(a_begin, b_begin) < min(99 if a_end is None else a_end, 99 if b_end is None else b_end)
    ]
    assert sorted((life[0] for life in stepped.all_lives()), key=repr) == (sorted(meeting, key=repr) if wanted else [])


def test_an_inequality_with_nulls() -> None:
    number = pairs.PAYLOAD[1]
    kernel = pairs.join("integer", "lazy_hash")
    less = Call("<", (ColumnRef(0, number, "a"), ColumnRef(kernel.left_width, number, "b")), BOOLEAN)
    kernel = JoinKernel("nested_loop", (), (), less, kernel.schema, kernel.left_width)
    lives: list[Life] = [((k, None, i), 0, 9) for i, k in enumerate([3, None, 1, 2])]
    relation = Relation(lives, pairs.types_of("integer"))
    stepped = Stepped(kernel).feed((relation, relation), [60])
    found = sorted((values[0], values[kernel.left_width]) for values, _, _ in stepped.all_lives())
    assert found == [(1, 2), (1, 3), (2, 3)]
