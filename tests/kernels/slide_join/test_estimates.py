"""The choice of Algorithm 2: which results count as too many, and what no slow moment may decide for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from transom.kernels.slide_join.estimates import Average, Counted, Estimates, Situation, choose

# Four basic windows of 25 rows a stream, one pair of rows in 20 matches, 10 bytes a result: a slide has 5,000 bytes of
# results. 2,812 bytes are stored from before, and 1,562 of the new ones live on.
NOW = Situation(Counted(200, 10_000), Counted(150, 5_625), 5_625, 2_500, 4_000, True, 8_000, True, 4)


def known(disk: float | None, merging: float = 1e-7) -> Estimates:
    byte = Average() if disk is None else Average(disk, 1)
    return Estimates(Average(5, 100), Average(10, 1), Average(1e-6, 1), Average(merging, 1), byte, replace(byte))


def test_what_is_stored_has_to_fit_and_not_all_results() -> None:
    for room, forced in ((8_400, False), (8_300, True)):  # 4,375 bytes and the windows
        estimates = known(None)
        assert choose("hybrid", estimates, replace(NOW, room=room)).kind == "incremental"
        assert (estimates.join_cost is not None) == forced


def test_as_much_goes_to_disk_as_is_too_much() -> None:
    estimates = known(1e-8)
    plain = known(0.0)
    for one in (estimates, plain):
        choose("hybrid", one, replace(NOW, room=7_000))
    assert estimates.reuse_cost is not None and plain.reuse_cost is not None
    too_much = 2_812.5 + 1_562.5 - 3_000
    assert estimates.reuse_cost - plain.reuse_cost == pytest.approx(2 * too_much * 1e-8)
    choose("hybrid", estimates, replace(NOW, room=4_000))  # all of it
    choose("hybrid", plain, replace(NOW, room=4_000))
    assert estimates.reuse_cost - plain.reuse_cost == pytest.approx((2_812.5 + 1_562.5) * 1e-8)


def test_one_slow_merge_does_not_decide_for_good() -> None:
    slow = known(1e-12, merging=1.0)
    assert choose("hybrid", slow, replace(NOW, room=7_000)).kind == "incremental"


def test_a_slow_disk_makes_it_full() -> None:
    assert choose("hybrid", known(1e-5), replace(NOW, room=7_000)).kind == "full"
