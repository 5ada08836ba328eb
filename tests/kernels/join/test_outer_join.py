"""Outer, semi and anti joins: at every instant a row is with its partners or alone; what is known of that moves on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Relation, Stepped, Values, snapshot, values_of
from tests.profile import examples
from transom.core.delta import GIVEN_AGAIN, NO_OPEN_ID, TAKEN_BACK, Delta, Ends
from transom.core.time import FOREVER
from transom.kernels.kernel import select_rows
from transom.kernels.outer_join.kinds import PAIRS, SIDES
from transom.kernels.outer_join.outer_join import OuterJoinKernel

TYPES = pairs.types_of("integer")
NULLS = tuple(None for _ in TYPES)
TACTICS = ("ring_hash", "lazy_hash")


def kernel(kind: str, tactic: str, twice: bool = False) -> OuterJoinKernel:
    inner = pairs.join("integer", tactic)
    both = inner.schema
    answer = both if kind in PAIRS else pa.schema([both.field(i) for i in range(len(TYPES))])
    return OuterJoinKernel(tactic, inner.left_keys, inner.right_keys, None, both, len(TYPES), kind, answer, twice=twice)


def by_definition(kind: str, left: Sequence[Life], right: Sequence[Life], instant: int) -> Counter[Values]:
    """The answer at an instant, out of the rows of both sides that are alive then."""
    sides = [list(snapshot(lives, instant).elements()) for lives in (left, right)]
    met = [(a, b) for a in sides[0] for b in sides[1] if a[0] is not None and a[0] == b[0]]
    if kind == "semi":
        return Counter({a for a, _ in met})
    found = Counter(a + b for a, b in met) if kind in PAIRS else Counter()
    for side in SIDES[kind]:
        alone = [row for row in sides[side] if all(row != pair[side] for pair in met)]
        found.update(alone if kind == "anti" else [row + NULLS if side == 0 else NULLS + row for row in alone])
    return found


class Told(Stepped):
    """Ends of rows with a NULL in the key pass with those of others, of which nothing was shown.

    Of rows that are given twice one that is alike is over when the second comes, whichever of them; until then they
    are among those that are open.
    """

    def note(self, out: Delta) -> None:
        open_id, te = out.ends.arrays()
        known = np.isin(open_id, list(self.open))
        once = out.open_id >= NO_OPEN_ID
        super().note(replace(select_rows(out, once), ends=Ends.of(open_id[known], te[known])))
        for i in np.flatnonzero(~once).tolist():
            (values,) = values_of(out.values.slice(i, 1))
            ta, end = int(out.ta[i]), int(out.te[i])
            if out.open_id[i] == GIVEN_AGAIN:
                assert self.before <= ta < out.frontier and end == FOREVER
                self.open[-2 - len(self.open) - len(self.lives)] = values, ta
            else:
                assert out.open_id[i] == TAKEN_BACK and self.before <= end < out.frontier
                shown = next(name for name, (its, _) in self.open.items() if name < 0 and its == values)
                began = self.open.pop(shown)[1]
                assert began < self.before, "it was given in this step as if it were to go on"
                self.lives.append((values, began, end))


def row(number: int, ta: int, te: int | None, key: int = 1) -> Life:
    return (key, None, number), ta, te


def stepped(
    kind: str, tactic: str, left: Sequence[Life], right: Sequence[Life], cuts: Iterable[int], opened: Iterable[int] = ()
) -> Stepped:
    """`opened` rows of the right are those whose ends are told when they have come."""
    found = Told(kernel(kind, tactic))
    return found.feed((Relation(left, TYPES), Relation(right, TYPES, frozenset(opened))), cuts)


@pytest.mark.parametrize("tactic", TACTICS)
@pytest.mark.parametrize("kind", SIDES)
def test_every_snapshot_is_that_of_the_definition(kind: str, tactic: str) -> None:
    growing = tactic == "ring_hash"
    relations = pairs.relations("integer", growing)

    @settings(max_examples=examples(by_day=8, at_night=75))
    @given(relations, relations, pairs.CUTS, st.booleans(), st.booleans())
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool, twice: bool) -> None:
        found = Told(kernel(kind, tactic, twice), restart=restart).feed((left, right), cuts)
        if (
            twice
            and all(not each.open for each in (left, right))
            and all(te is not None for each in (left, right) for _, _, te in each.lives)
        ):
            assert not found.open_ids.in_use
        lives = found.all_lives()
        for instant in range(pairs.LAST):
            assert snapshot(lives, instant) == by_definition(kind, left.lives, right.lives, instant)

    check()


def alone(found: Stepped) -> list[tuple[int, int, int | None]]:
    """Rows of the left without a partner: their numbers, and when they are so."""
    return sorted((values[2], ta, te) for values, ta, te in found.all_lives() if all(v is None for v in values[3:]))


@pytest.mark.parametrize("tactic", TACTICS)
def test_the_next_partner_may_come_as_the_last_one_leaves(tactic: str) -> None:
    """A step ends at that very instant: nobody knows yet whether the row is alone then."""
    left, right = [row(0, 1, 20)], [row(0, 1, 5), row(1, 5, 9)]
    for kind in ("left", "anti"):
        assert alone(stepped(kind, tactic, left, right, [5, 9, 30])) == [(0, 9, 20)]


@pytest.mark.parametrize("tactic", TACTICS)
def test_of_two_open_partners_the_one_that_stays_is_enough(tactic: str) -> None:
    left, right = [row(0, 1, 20)], [row(0, 2, 5), row(1, 2, 9)]
    for kind in ("left", "anti"):
        found = stepped(kind, tactic, left, right, [3, 7, 11, 30], opened=(0, 1))
        assert alone(found) == [(0, 1, 2), (0, 9, 20)]


def test_a_partner_that_leaves_early_does_not_hide_one_that_stays() -> None:
    left, right = [row(0, 1, 40)], [row(0, 2, 20), row(1, 3, 5)]
    for kind in ("left", "anti"):
        assert alone(stepped(kind, "lazy_hash", left, right, [4, 10, 30, 50])) == [(0, 1, 2), (0, 20, 40)]


@pytest.mark.parametrize("tactic", TACTICS)
def test_partners_that_came_meanwhile_leave_unnoticed_no_more_than_the_first(tactic: str) -> None:
    """When the first one leaves nothing is to be said; when the last one does there is nobody else to say so."""
    left, right = [row(0, 1, 40)], [row(0, 1, 5), row(1, 3, 9), row(2, 8, 15)]
    found = stepped("anti", tactic, left, right, [4, 7, 12, 20])
    assert alone(found) == [(0, 15, None)]
    found = stepped("semi", tactic, left, right, [4, 7, 12, 20])
    assert [(ta, te) for _, ta, te in found.all_lives()] == [(1, 15)]


@pytest.mark.parametrize("tactic", TACTICS)
def test_a_row_that_came_and_went_within_a_step_is_over(tactic: str) -> None:
    left, right = [row(0, 1, 6), row(1, 7, 9)], [row(0, 2, 4)]
    for kind in ("left", "anti"):
        assert alone(stepped(kind, tactic, left, right, [10, 30])) == [(0, 1, 2), (0, 4, 6), (1, 7, 9)]


def test_rows_keep_their_partners_when_the_ring_grows() -> None:
    """The ring has gone round when it gets too small; every other row has a partner that stays."""
    first, then = 50, 100
    left = [row(i, 1, 4, key=i) for i in range(first)]
    left += [row(i, 6, 40, key=i) for i in range(first, first + 40)]
    left += [row(i, 8, 40, key=i) for i in range(first + 40, first + then)]
    right = [row(i, 6, 30, key=i) for i in range(first, first + 40, 2)]
    found = stepped("anti", "ring_hash", left, right, [3, 5, 7, 9, 50])
    met = {values[0] for values, _, _ in right}
    expected = [(i, 30 if i in met else ta, te) for (_, _, i), ta, te in left]
    assert alone(found) == sorted(expected)


@pytest.mark.parametrize("tactic", TACTICS)
def test_a_row_that_is_given_twice_has_no_open_row_id(tactic: str) -> None:
    """Nor does its state say that it had one, which a checkpoint is asked for when it is read back."""
    for kind in ("left", "full", "anti"):
        found = Told(kernel(kind, tactic, twice=True))
        found.feed((Relation([row(0, 1, 20)], TYPES), Relation([], TYPES)), [5])
        assert alone(found) == [(0, 1, None)]
        assert not found.open_ids.in_use and not sum(map(len, found.state.owned()))
