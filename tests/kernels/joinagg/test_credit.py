"""TC against the definition on every snapshot, over two to four inputs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.aggregate.definition import TYPES
from tests.kernels.join.pairs import KINDS
from tests.kernels.joinagg.join_snapshots import (
    CUTS,
    EXTREMES,
    LAST,
    SUMS,
    agrees,
    check,
    crowd,
    relations,
    spec_of,
    steady,
)
from tests.kernels.joinagg.partial_results import Merged
from tests.kernels.stepping import Life, Relation, Stepped
from tests.profile import examples
from transom.kernels.joinagg import credit
from transom.kernels.joinagg.credit import CreditKernel
from transom.kernels.joinagg.live_rows import CREDIT, TE

CALLS = (*SUMS, *EXTREMES)


@settings(max_examples=examples(by_day=40, at_night=400))
@given(st.data(), CUTS, st.sampled_from(sorted(KINDS)), st.sampled_from([(), (0,), (1,), (1, 0)]), st.booleans())
def test_every_snapshot_of_the_join_is_aggregated(
    data: st.DataObject, cuts: list[int], kind: str, grouped: tuple[int, ...], restart: bool
) -> None:
    check(CreditKernel, spec_of(kind, 2, grouped, CALLS), data.draw(relations(kind, 2)), cuts, restart)


@settings(max_examples=examples(by_day=25, at_night=250))
@given(st.data(), CUTS, st.sampled_from([3, 4]), st.frozensets(st.integers(0, 3)), st.booleans())
def test_more_than_two_inputs_on_one_key(
    data: st.DataObject, cuts: list[int], inputs: int, grouped: frozenset[int], restart: bool
) -> None:
    spec = spec_of("both", inputs, sorted(i for i in grouped if i < inputs), (*CALLS, ("min", 2, 1), ("sum", 2, 1)))
    check(CreditKernel, spec, data.draw(relations("both", inputs, rows=4)), cuts, restart)


@settings(max_examples=examples(by_day=30, at_night=300))
@given(st.data(), CUTS, st.sampled_from([2, 3]), st.frozensets(st.integers(0, 2)), st.booleans())
def test_only_tuples_that_satisfy_the_residual_count(
    data: st.DataObject, cuts: list[int], inputs: int, grouped: frozenset[int], restart: bool
) -> None:
    kind = data.draw(st.sampled_from([None, "text"])) if inputs == 2 else "text"
    spec = spec_of(kind, inputs, sorted(i for i in grouped if i < inputs), CALLS, residual=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credit, "BLOCK", data.draw(st.sampled_from([1, 3, 1000])))
        check(CreditKernel, spec, data.draw(relations(kind, inputs, rows=6)), cuts, restart)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("grouped", [(), (0, 1)])
def test_more_groups_and_credits_than_there_is_room_for_at_once(grouped: tuple[int, ...], residual: bool) -> None:
    spec = spec_of("integer", 2, grouped, CALLS, residual)
    for cuts in ([LAST], [3, 9, 10, 17, LAST]):
        check(CreditKernel, spec, crowd(2, 60, 30), cuts, restart=False)


def test_nothing_is_kept_of_what_is_over() -> None:
    early, late = steady(CreditKernel, CALLS)
    assert late <= early


def test_an_end_takes_the_credits_of_its_row_and_no_others() -> None:
    lives: list[list[Life]] = [[((1, None, 1, None, None, None), 0, 10)], [((1, None, 2, None, None, None), 1, 5)]]
    types = [pa.int64(), *TYPES]
    spec = spec_of("integer", 2, (), CALLS)
    stepped = Stepped(CreditKernel(spec)).feed([Relation(each, types) for each in lives], [2])
    live = stepped.state.live
    owners = np.flatnonzero(live.entries[: live.rows.slots.high, CREDIT] >= 0)
    assert live.entries[owners, TE].tolist() == [5]  # the member that ends first, though it came last


@settings(max_examples=25)
@given(st.data(), CUTS, st.sampled_from([(), (1,), (0, 1)]), st.booleans())
def test_the_partial_results_of_partitions_add_up(
    data: st.DataObject, cuts: list[int], grouped: tuple[int, ...], restart: bool
) -> None:
    spec = spec_of("small", 2, grouped, CALLS)
    agrees(lambda whole: Merged(whole, 2, CreditKernel), spec, data.draw(relations("small", 2)), cuts, restart)
