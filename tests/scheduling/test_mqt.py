"""MQT groups: what their definition says, tried against the definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.scheduling.mqt import groups_of

WINDOWS = st.lists(st.integers(1, 60), min_size=1, max_size=9, unique=True).map(sorted)


def upper_hull(windows: list[int]) -> list[int]:
    """The corners by turning left or right, another way to the same."""
    points = [(0, 0), *((window, number) for number, window in enumerate(windows, 1))]
    hull: list[tuple[int, int]] = []
    for x, y in points:
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if (x2 - x1) * (y - y1) < (y2 - y1) * (x - x1):
                break
            hull.pop()
        hull.append((x, y))
    return [y for _, y in hull[1:]]


@given(WINDOWS)
@settings(max_examples=50, deadline=None)
def test_groups_are_the_upper_hull(windows: list[int]) -> None:
    groups = groups_of(windows)
    assert list(groups.ends) == upper_hull(windows)
    assert sum(groups.costs) == windows[-1]
    assert sum(groups.sizes) == len(windows)
    slopes = [size / cost for size, cost in zip(groups.sizes, groups.costs, strict=True)]
    assert slopes == sorted(slopes, reverse=True)
    assert groups.weights == pytest.approx([size * slope for size, slope in zip(groups.sizes, slopes, strict=True)])


@given(WINDOWS)
@settings(max_examples=50, deadline=None)
def test_nearest_cuts_groups_and_changes_no_slope(windows: list[int]) -> None:
    far, near = groups_of(windows), groups_of(windows, "nearest")
    assert set(far.ends) <= set(near.ends)
    assert sum(far.weights) == pytest.approx(sum(near.weights))


def test_equal_gaps_are_one_group_or_many() -> None:
    assert str(groups_of([10, 20, 30])) == "1-3"
    assert str(groups_of([10, 20, 30], "nearest")) == "1,2,3"


def test_work_counts_what_is_shared_once() -> None:
    groups = groups_of([10, 30, 100])
    assert [groups.work(0, 1), groups.work(1, 3), groups.work(0, 3)] == [10, 90, 100]


@pytest.mark.parametrize("windows", [[], [0, 1], [3, 3], [4, 2]])
def test_windows_must_grow(windows: list[int]) -> None:
    with pytest.raises(ValueError, match="must be above 0 and grow"):
        groups_of(windows)
