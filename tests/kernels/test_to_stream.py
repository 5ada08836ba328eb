"""ISTREAM, DSTREAM, RSTREAM and changes: differences of neighbouring snapshots, in the order of time and of values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.relations import CUTS, LAST, SCHEMA, TYPES, relations
from tests.kernels.stepping import Relation, Stepped, Values, bag, values_of
from transom.core.errors import EvaluationError
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.to_stream import to_stream
from transom.kernels.to_stream.to_stream import ToStreamKernel
from transom.runtimes.reference.history import value_order

Reported = list[tuple[int, Values]]


def reported(change: str, relation: Relation, cuts: list[int], restart: bool, slides: tuple[int, ...] = ()) -> Reported:
    stepped = Stepped(ToStreamKernel(change, SCHEMA, slides), restart=restart)
    found: Reported = []
    for frontier in cuts:
        before = stepped.before
        out = stepped.step((relation.delta(stepped.open_ids, before, frontier),), frontier)
        assert all(before <= t < frontier for t in out.t.tolist())
        found += zip(out.t.tolist(), values_of(out.values), strict=True)
    alive = bag(relation.lives, LAST - 1)
    assert stepped.state.tally.keys.slots.in_use == len(alive)
    return found


def by_definition(change: str, relation: Relation, slides: tuple[int, ...] = ()) -> Reported:
    found: Reported = []
    for instant in range(LAST):
        was = bag(relation.lives, instant - 1) if instant else Counter()
        now = bag(relation.lives, instant)
        if change == "rstream":
            reported_now = any(instant % slide == 0 for slide in slides) if slides else now != was
            rows = now if reported_now else Counter()
        elif change == "changes":
            left, came = (
                [(sign, *row) for row in part.elements()] for sign, part in (("-", was - now), ("+", now - was))
            )
            found += [(instant, row) for part in (left, came) for row in sorted(part, key=lambda r: value_order(r[1:]))]
            continue
        else:
            rows = now - was if change == "istream" else was - now
        found += [(instant, row) for row in sorted(rows.elements(), key=value_order)]
    return found


@pytest.mark.parametrize("change", ["istream", "dstream", "rstream", "changes"])
def test_the_stream_is_the_difference_of_snapshots(change: str) -> None:
    @settings(max_examples=30)
    @given(relations(), CUTS, st.booleans())
    def check(relation: Relation, cuts: list[int], restart: bool) -> None:
        assert reported(change, relation, cuts, restart) == by_definition(change, relation)

    check()


@settings(max_examples=30)
@given(relations(), CUTS, st.booleans(), st.sampled_from([(1,), (3,), (2, 5)]))
def test_over_slides_the_snapshot_is_reported_at_every_multiple(
    relation: Relation, cuts: list[int], restart: bool, slides: tuple[int, ...]
) -> None:
    assert reported("rstream", relation, cuts, restart, slides) == by_definition("rstream", relation, slides)


def last_step(relation: Relation, slide: int, horizon: int) -> Any:
    kernel = ToStreamKernel("rstream", SCHEMA, (slide,))
    stepped = Stepped(kernel)
    step = Step(0, FOREVER, 0, stepped.open_ids, horizon)
    return kernel.step(stepped.state, (relation.delta(stepped.open_ids, 0, FOREVER),), step)


def test_at_the_end_of_all_input_slides_go_on_to_the_horizon() -> None:
    out = last_step(Relation([(("a", None), 4, FOREVER)], TYPES), 2, 9)
    assert out.t.tolist() == [4, 6, 8]


def test_a_leap_of_thousands_of_years_over_nothing_costs_nothing() -> None:
    far = FOREVER - 10
    out = last_step(Relation([(("a", None), 0, 2), (("b", None), far, far + 2)], TYPES), 1, far + 2)
    assert out.t.tolist() == [0, 1, far, far + 1]


def test_more_rows_than_fit_are_rejected_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Relation([(("a", None), 0, FOREVER)], TYPES)
    with pytest.raises(EvaluationError, match="RSTREAM"):
        last_step(lives, 1, FOREVER - 1)
    monkeypatch.setattr(to_stream, "MOST_ROWS", 4)
    with pytest.raises(EvaluationError, match="RSTREAM"):
        last_step(lives, 1, 4)
    assert last_step(lives, 1, 2).t.tolist() == [0, 1, 2]
