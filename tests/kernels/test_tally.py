"""Counting values instant by instant: net changes alone, in time order; values that are nowhere are forgotten."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.relations import CUTS, LAST, TYPES, relations
from tests.kernels.stepping import Relation, Values, bag, ints
from transom.kernels.tally import Steps, Tally
from transom.pipeline.registry import STATE_CLASSES
from transom.runtimes.reference.history import canonical
from transom.state import codec
from transom.state.open_ids import OpenIdPool


def values(tally: Tally, steps: Steps) -> list[Values]:
    columns = tally.values.gather(steps.key, TYPES)
    return [canonical(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


@settings(max_examples=60)
@given(relations(), relations(), CUTS, st.booleans())
def test_each_entry_is_a_change_of_the_snapshots(
    left: Relation, right: Relation, cuts: list[int], restart: bool
) -> None:
    tally, open_ids = Tally.of(TYPES), OpenIdPool()
    counts: tuple[Counter[Values], Counter[Values]] = (Counter(), Counter())
    before = 0
    for frontier in cuts:
        steps = tally.advance([side.delta(open_ids, before, frontier) for side in (left, right)], frontier)
        open_ids.finish_step()
        assert (steps.t[1:] >= steps.t[:-1]).all()
        entries = list(zip(steps.t.tolist(), values(tally, steps), steps.before.T, steps.after.T, strict=True))
        assert len({(t, value) for t, value, _, _ in entries}) == len(entries)
        for instant in range(before, frontier):
            for t, value, was, is_now in entries:
                if t == instant:
                    assert was.tolist() != is_now.tolist() and was.tolist() == [counts[0][value], counts[1][value]]
                    counts[0][value], counts[1][value] = is_now.tolist()
            assert +counts[0] == bag(left.lives, instant) and +counts[1] == bag(right.lives, instant)
        tally.forget_gone(steps)
        assert tally.keys.slots.in_use == len(+counts[0] | +counts[1])
        before = frontier
        if restart:
            tally = codec.decode(codec.encode(tally), STATE_CLASSES)
    assert before == LAST
    alive = [life for side in (left, right) for life in side.lives if life[2] is None or life[2] >= LAST]
    assert tally.row_slots.in_use == len(alive)


def test_changes_given_outright_are_counted_net() -> None:
    tally = Tally.of(TYPES)
    relation = Relation([(("a", None), 0, 9), (("b", None), 0, 9)], TYPES)
    (a, b) = tally.number(relation.delta(OpenIdPool(), 0, 5).values).tolist()
    steps = tally.apply(ints([1, 1, 1, 2]), ints([a, b, a, b]), ints([1, 1, -1, 1]))
    assert (steps.t.tolist(), steps.key.tolist()) == ([1, 2], [b, b])
    assert steps.before[0].tolist() == [0, 1] and steps.after[0].tolist() == [1, 2]
