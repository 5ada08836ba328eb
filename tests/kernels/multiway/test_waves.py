"""Which inputs are probed at once, and when is asked what."""

from __future__ import annotations

import pytest

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import ID, SHAPES, K, M, Shape, T
from transom.kernels.multiway.waves import WavedRoute, waved_route


def route(shape: Shape, *order: int) -> WavedRoute:
    return waved_route(tuples.kernel(shape).graph, order)


def targets(found: WavedRoute) -> list[list[int]]:
    return [[hop.target for hop in wave.hops] for wave in found.waves]


@pytest.mark.parametrize(
    ("name", "order", "waves"),
    [
        ("one key of five", (2, 4, 0, 1, 3), [[4, 0, 1, 3]]),
        ("composite", (0, 1, 2), [[1, 2]]),
        ("chain", (0, 1, 2, 3, 4), [[1], [2], [3], [4]]),
        ("chain", (2, 3, 4, 1, 0), [[3, 1], [4, 0]]),
        ("star", (0, 3, 1, 2), [[3, 1, 2]]),
        ("star", (1, 0, 3, 2), [[0], [3, 2]]),
        ("cycle", (0, 1, 2), [[1, 2]]),
        ("cycle of four", (0, 1, 2, 3), [[1, 3], [2]]),
        ("two islands", (0, 1, 2, 3), [[1], [2], [3]]),
        ("cross", (0, 1, 2), [[1], [2]]),
        # Input 1 is found by more keys from input 0 than from the row itself, so it waits for that.
        ("some share more", (2, 0, 1, 3), [[0, 3], [1]]),
    ],
)
def test_waves(name: str, order: tuple[int, ...], waves: list[list[int]]) -> None:
    assert targets(route(SHAPES[name], *order)) == waves


def test_what_is_asked_when() -> None:
    """Of one input and the row: by who probes. Of several: when these are put together, before others are."""
    less = (((0, ID), (1, ID)), ((1, ID), (2, ID)), ((0, K), (0, ID)))
    shape = Shape(4, (dict.fromkeys(range(4), K),), less=less)
    found = route(shape, 0, 1, 2, 3)
    (wave,) = found.waves
    assert found.check is not None and found.check.columns == ((0, (K, ID)),)
    assert [hop.check is not None for hop in wave.hops] == [True, False, False]
    assert [(merge.first, merge.last, merge.check is not None) for merge in wave.merges] == [
        (0, 2, True),
        (2, 3, False),
    ]
    other = route(shape, 3, 2, 1, 0)
    assert other.check is None and other.checks
    assert [hop.check is not None for hop in other.waves[0].hops] == [False, False, True]
    assert [(merge.last, merge.check is not None) for merge in other.waves[0].merges] == [(2, True), (3, True)]


def test_keys_that_the_row_does_not_have_are_compared() -> None:
    """Around a cycle the two ends of a wave meet in a key of their own."""
    (wave,) = route(SHAPES["cycle"], 0, 1, 2).waves
    assert [hop.check for hop in wave.hops] == [None, None]
    assert [merge.check.columns if merge.check else None for merge in wave.merges] == [((1, (M,)), (2, (M,)))]
    first, second = route(SHAPES["cycle of four"], 0, 1, 3, 2).waves
    assert not any(merge.check for merge in first.merges) and second.hops[0].check is not None
    assert not route(Shape(3, ({0: T, 1: T, 2: T},)), 0, 1, 2).checks
