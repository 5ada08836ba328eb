"""The product of sets of matches, by definition."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from transom.core.delta import Int64s
from transom.kernels.kernel import OPEN_END
from transom.kernels.multiway.match_sets import Matches, MatchSets, WaveMatches

FRONTIER = 20


def matches(random: Random, tuples: int, most: int) -> Matches:
    counts = [random.randint(0, most) for _ in range(tuples)]
    members = [
        (random.randrange(100), ta, random.choice([ta + 1, ta + 3, ta + 9, 40, OPEN_END]))
        for _ in range(sum(counts))
        for ta in [random.randrange(12)]
    ]
    return Matches(np.cumsum([0, *counts]), np.array(members, dtype=np.int64).reshape(-1, 3))


def by_definition(given: Int64s, indexes: Int64s, found: list[Matches]) -> list[list[int]]:
    """Rows of input 0 and one more, then the sets in order; ta and te."""
    whole = []
    for t, index in enumerate(indexes):
        own = [one.members[one.offsets[index] : one.offsets[index + 1]].tolist() for one in found]
        for members in product(*own):
            *bound, begin, end = given[t].tolist()
            ta = max([begin, *(member[1] for member in members)])
            ends = [end, *(member[2] for member in members)]
            te = min(ends)
            if ta < te:
                is_open = te > FRONTIER and OPEN_END in ends
                whole.append([*bound[:2], *(member[0] for member in members), ta, OPEN_END if is_open else te])
    return whole


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_the_product_is_what_its_sets_make(depth: int, seed: int) -> None:
    random = Random(f"{depth} {seed}")
    tuples = random.choice([1, 7, 300])
    found = [matches(random, tuples, most=3) for _ in range(depth)]
    indexes = np.sort([random.randrange(tuples) for _ in range(random.choice([0, tuples, 2 * tuples]))]).astype(
        np.int64
    )
    given = np.full((len(indexes), depth + 4), -1, dtype=np.int64)
    given[:, 0] = [random.randrange(100) for _ in indexes]
    given[:, 1] = [random.randrange(100) for _ in indexes]
    given[:, -2] = [random.randrange(12) for _ in indexes]
    given[:, -1] = given[:, -2] + [random.choice([1, 5, 30, 10**6]) for _ in indexes]
    given[given[:, -1] > 10**5, -1] = OPEN_END
    whole = by_definition(given, indexes, found)
    sets = MatchSets(given, indexes, list(range(2, depth + 2)), WaveMatches.of(found), FRONTIER)
    ta, te = sets.lifetimes()
    columns = [sets.positions(i).tolist() for i in range(depth + 2)]
    assert [list(row) for row in zip(*columns, ta.tolist(), te.tolist(), strict=True)] == whole
    limit = random.choice([1, 2, 50, 1 << 20])
    blocks = list(sets.blocks(limit))
    assert [row for block, _ in blocks for row in block.tolist()] == whole
    assert all(0 < len(block) == len(came) <= limit for block, came in blocks)
    assert len(whole) > 2 or depth > 2 or tuples == 1 or not len(indexes)


def test_sets_that_were_cut_short_are_used_as_far_as_all_go() -> None:
    short = Matches(np.array([0, 1]), np.array([[7, 0, 9]]))
    long = Matches(np.array([0, 1, 2]), np.array([[5, 0, 9], [6, 0, 9]]))
    given = np.array([[1, -1, -1, 0, 9]])
    sets = MatchSets(given, np.arange(1), [1, 2], WaveMatches.of([long, short]), FRONTIER)
    assert [block.tolist() for block, _ in sets.blocks(9)] == [[[1, 5, 7, 0, 9]]]


def test_only_some_members_are_kept() -> None:
    found = Matches(np.array([0, 2, 2, 5]), np.arange(15).reshape(5, 3)).kept(np.array([1, 2, 4]))
    assert found.offsets.tolist() == [0, 1, 1, 3] and found.members[:, 0].tolist() == [3, 6, 12]
