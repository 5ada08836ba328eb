"""Open row ids in a queue: no two rows share one, ends reach the oldest, and the places stay as many as are needed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from transom.state.open_ids import OPEN, OpenIdPool, OpenIdQueue


@pytest.mark.parametrize("seed", range(40))
def test_queues_that_share_a_pool(seed: int) -> None:
    """Against lists: what is taken is nobody's, what is closed is the oldest, and nothing is used again in its step."""
    random = Random(seed)
    pool = OpenIdPool()
    most = [random.choice([1, 3, 10, 200]) for _ in range(random.randint(1, 3))]
    queues = [OpenIdQueue() for _ in most]
    ids_of: list[list[int]] = [[] for _ in most]
    single: list[int] = []
    for step in range(120):
        closed: set[int] = set()
        for queue, of_queue, limit in zip(queues, ids_of, most, strict=True):
            taken = queue.take(pool, random.choice([0, 1, 2, limit, random.randint(0, 2 * limit)]), limit).tolist()
            in_use = {h for others in (*ids_of, single) for h in others}
            assert not in_use & set(taken) and not closed & set(taken) and len(set(taken)) == len(taken)
            assert (pool.end[taken] == OPEN).all()
            of_queue += taken
            leaving = max(len(of_queue) - limit, 0)
            te = np.arange(step * 1_000, step * 1_000 + leaving)
            open_ids, ends = queue.close(pool, te).arrays()
            assert open_ids.tolist() == of_queue[:leaving] and ends.tolist() == te.tolist()
            assert pool.end[open_ids].tolist() == te.tolist()
            closed |= set(of_queue[:leaving])
            del of_queue[:leaving]
            assert len(queue) == len(of_queue)
        if random.random() < 0.3:  # another owner, whose rows end in any order
            single += pool.take(3).tolist()
            assert len(set(single)) == len(single) and not set(single[-3:]) & {
                h for of_queue in ids_of for h in of_queue
            }
        elif len(single) > 4:
            gone = random.sample(single, 3)
            pool.close(np.array(gone), np.full(3, step))
            single = [h for h in single if h not in gone]
        pool.finish_step()
        assert pool.in_use == sum(map(len, ids_of)) + len(single)


@pytest.mark.parametrize(("most", "step"), [(500, 1_000), (1_000, 1_000), (1_000, 7), (5_000, 300)])
def test_two_queues_that_compete_for_places_stay_small(most: int, step: int) -> None:
    pool, queues = OpenIdPool(), (OpenIdQueue(), OpenIdQueue())
    high = 0
    for i in range(1_000):
        for queue in queues:
            fresh = min(step, most)  # of a longer step the first rows never need an open row id
            queue.take(pool, fresh, most)
            queue.close(pool, np.zeros(max(len(queue) - most, 0), dtype=np.int64))
        pool.finish_step()
        high = max(high, pool.slots.high) if i < 200 else high
        assert i < 200 or pool.slots.high == high
    assert high <= 3.5 * (2 * most + 4 * min(step, most))
