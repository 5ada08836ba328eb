"""IC against the definition on every snapshot."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join.pairs import KINDS
from tests.kernels.joinagg.join_snapshots import CUTS, LAST, SUMS, agrees, check, crowd, relations, spec_of, steady
from tests.kernels.joinagg.partial_results import Merged
from tests.profile import examples
from transom.kernels.joinagg import incremental
from transom.kernels.joinagg.incremental import IncrementalKernel


@settings(max_examples=examples(by_day=40, at_night=400))
@given(st.data(), CUTS, st.sampled_from(sorted(KINDS)), st.sampled_from([(), (0,), (1,), (1, 0)]), st.booleans())
def test_every_snapshot_of_the_join_is_aggregated(
    data: st.DataObject, cuts: list[int], kind: str, grouped: tuple[int, ...], restart: bool
) -> None:
    check(IncrementalKernel, spec_of(kind, 2, grouped, SUMS), data.draw(relations(kind, 2, opened=True)), cuts, restart)


@settings(max_examples=examples(by_day=25, at_night=250))
@given(st.data(), CUTS, st.sampled_from([None, "text"]), st.sampled_from([(), (0,), (1,), (0, 1)]), st.booleans())
def test_only_pairs_that_satisfy_the_residual_count(
    data: st.DataObject, cuts: list[int], kind: str | None, grouped: tuple[int, ...], restart: bool
) -> None:
    spec = spec_of(kind, 2, grouped, SUMS, residual=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental, "BLOCK", data.draw(st.sampled_from([1, 3, 1000])))
        check(IncrementalKernel, spec, data.draw(relations(kind, 2, opened=True)), cuts, restart)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("grouped", [(), (0, 1)])
def test_more_groups_and_matches_than_there_is_room_for_at_once(grouped: tuple[int, ...], residual: bool) -> None:
    spec = spec_of("integer", 2, grouped, SUMS, residual)
    for cuts in ([LAST], [3, 9, 10, 17, LAST]):
        check(IncrementalKernel, spec, crowd(2, 60, 30), cuts, restart=False)


def test_nothing_is_kept_of_what_is_over() -> None:
    early, late = steady(IncrementalKernel, SUMS)
    assert late <= early


@settings(max_examples=25)
@given(st.data(), CUTS, st.sampled_from([(), (1,), (0, 1)]), st.booleans())
def test_the_partial_results_of_partitions_add_up(
    data: st.DataObject, cuts: list[int], grouped: tuple[int, ...], restart: bool
) -> None:
    spec = spec_of("small", 2, grouped, SUMS)
    agrees(lambda whole: Merged(whole, 2, IncrementalKernel), spec, data.draw(relations("small", 2)), cuts, restart)
