"""DISTINCT, INTERSECT and EXCEPT over negative tuples, and the streams of them, against the snapshots of the law."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.negative.changelogs import ChangelogRelation, SteppedChangelog
from tests.kernels.relations import CUTS, LAST, SCHEMA, TYPES, relations
from tests.kernels.stepping import Life, Relation, Stepped, bag, values_of
from tests.kernels.test_set_operation import MEANING
from transom.kernels.negative.set_operation import NegativeSetOperationKernel
from transom.kernels.to_stream.to_stream import ToStreamKernel


@pytest.mark.parametrize(("kind", "all_"), MEANING)
def test_multiplicities_at_every_instant(kind: str, all_: bool) -> None:
    @settings(max_examples=25)
    @given(relations(), relations(), CUTS, st.booleans(), st.integers(0, 99))
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool, seed: int) -> None:
        sides = [left] if kind == "distinct" else [left, right]
        inputs = [ChangelogRelation(side.lives, TYPES, Random(seed)) for side in sides]
        stepped = SteppedChangelog(NegativeSetOperationKernel(kind, all_, SCHEMA), restart=restart).feed(inputs, cuts)
        for instant in range(LAST):
            expected = MEANING[kind, all_](bag(left.lives, instant), bag(right.lives, instant))
            assert stepped.snapshot(instant) == expected, instant
        alive = [bag(side.lives, LAST - 1) for side in sides]
        assert stepped.state.keys.slots.in_use == len({value for side in alive for value in side})

    check()


def test_a_value_that_is_handed_over_is_reported_once() -> None:
    lives: list[Life] = [(("a", 0.0), t, t + 3) for t in (0, 3, 6)]
    stepped = SteppedChangelog(NegativeSetOperationKernel("distinct", False, SCHEMA))
    stepped.feed([ChangelogRelation(lives, TYPES)], [2, 5, 12])
    assert [instant for instant, _ in stepped.points] == [0, 9]


def test_memory_is_that_of_the_values_alive() -> None:
    lives: list[Life] = [((f"value number {t}", 0.5), t, t + 4) for t in range(1_000)]
    stepped = SteppedChangelog(NegativeSetOperationKernel("except", True, SCHEMA))
    stepped.feed([ChangelogRelation(lives, TYPES), ChangelogRelation(lives[::3], TYPES)], range(4, 1_012, 4))
    tally = stepped.state
    assert tally.keys.slots.in_use == 0 and tally.counts.shape[1] <= 64 and tally.rows.shape[1] == 0
    assert len(tally.values.columns[0].arena) < 4_000 and len(stepped.points) > 500 and not stepped.alive


@pytest.mark.parametrize("change", ["istream", "dstream", "rstream", "changes"])
def test_streams_are_those_of_the_direct_method(change: str) -> None:
    @settings(max_examples=25)
    @given(relations(), CUTS, st.booleans(), st.sampled_from([(), (3,)]))
    def check(relation: Relation, cuts: list[int], restart: bool, slides: tuple[int, ...]) -> None:
        kernel = ToStreamKernel(change, SCHEMA, slides if change == "rstream" else ())
        direct, negative = Stepped(kernel), SteppedChangelog(kernel, restart=restart)
        signed = ChangelogRelation(relation.lives, TYPES)
        for frontier in cuts:
            expected = direct.step((relation.delta(direct.open_ids, direct.before, frontier),), frontier)
            found = negative.step((signed.delta(negative.before, frontier),), frontier)
            assert found.t.tolist() == expected.t.tolist() and values_of(found.values) == values_of(expected.values)
        assert negative.state.tally.row_slots.high == 0

    check()
