"""A tactic that changes at steps that the test says: it shows what one that stays shows, and no row twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s
from transom.core.time import FOREVER
from transom.kernels.changing import TacticChange
from transom.kernels.joinagg.adaptive import AdaptiveKernel, AdaptiveState
from transom.kernels.joinagg.change_cost import LOOK, PRICES
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall
from transom.kernels.kernel import Step
from transom.pipeline import registry
from transom.state import codec
from transom.state.open_ids import OpenIdPool

OTHER = {"pc": "factorised", "factorised": "pc"}


def spec(grouped: bool) -> JoinAggregateSpec:
    """COUNT, an exact floating SUM and MIN of a text, by the key or over everything."""
    types = (pa.string(), pa.float64(), pa.string())
    calls = (JoinCall("count"), JoinCall("sum", 1, 1), JoinCall("min", 0, 2))
    group = ((0, 0),) if grouped else ()
    columns = [("k", pa.string())] * grouped + [("n", pa.int64()), ("s", pa.float64()), ("m", pa.string())]
    return JoinAggregateSpec((types, types), ((0,), (0,)), None, group, calls, pa.schema(columns))


class Feed:
    """Rows of an input that live for ten instants; ends are open where `is_open`."""

    def __init__(self, seed: int, pool: OpenIdPool, is_open: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.pool, self.is_open = pool, is_open
        self.waiting: list[tuple[int, int]] = []

    def delta(self, before: int, frontier: int) -> Delta:
        count = int(self.random.integers(0, 4))
        ta = np.sort(self.random.integers(before, frontier, count))
        keys = self.random.choice(np.array(["a", "b", ""]), count).tolist()
        keys = [None if self.random.random() < 0.1 else key for key in keys]
        floats = self.random.choice([1e300, -1e300, 0.1, 3.0], count)
        texts = self.random.choice(["x", "yy", "zzz"], count)
        values = pa.record_batch({"k": pa.array(keys, pa.string()), "f": floats, "t": texts})
        ended = [(open_id, te) for open_id, te in self.waiting if te < frontier]
        self.waiting = [one for one in self.waiting if one[1] >= frontier]
        if not self.is_open:
            return Delta(values, ta, ta + 10, np.full(count, NO_OPEN_ID), frontier)
        open_ids = self.pool.take(count)
        soon = [(int(i), int(t) + 10) for i, t in zip(open_ids, ta, strict=True)]
        assert all(te >= frontier for _, te in soon)
        self.waiting += soon
        ends = (
            self.pool.close(*(np.array(part, dtype=np.int64) for part in zip(*ended, strict=True))) if ended else Ends()
        )
        return Delta(values, ta, np.full(count, FOREVER), open_ids, frontier, ends)


def ran(
    kernel: AdaptiveKernel, is_open: bool, when: Callable[[int], bool]
) -> Iterator[tuple[list[Any], AdaptiveState]]:
    """By step, the rows that are shown at its end; saved and read back now and then."""
    pool = OpenIdPool()
    feeds = [Feed(number, pool, is_open) for number in range(2)]
    state, shown = kernel.start(), {}
    for number, (before, frontier) in enumerate(pairwise(range(0, 120, 5))):
        step = Step(before, frontier, 0, pool)
        moved = None
        if number and when(number):
            moved = kernel._change(state, TacticChange(before, 0, state.tactic, OTHER[state.tactic]), step)
        out = kernel.step(state, tuple(feed.delta(before, frontier) for feed in feeds), step)
        for delta in (moved, out):
            if delta is None:
                continue
            rows = list(zip(*(column.to_pylist() for column in delta.values.columns), strict=True))
            for row, open_id in zip(rows, delta.open_id.tolist(), strict=True):
                if open_id != NO_OPEN_ID:
                    assert open_id not in shown, "a row is shown twice"
                    shown[open_id] = row
            for open_id in delta.ends.arrays()[0].tolist():
                del shown[open_id]
        pool.finish_step()
        if number % 4 == 0:
            state = codec.decode(codec.encode(state), registry.STATE_CLASSES)
            kernel.check(state)
        assert pool.in_use == len(shown) + sum(len(feed.waiting) for feed in feeds) + pairs_open(state)
        yield sorted(shown.values(), key=repr), state


def pairs_open(state: AdaptiveState) -> int:
    return sum(len(own) for host in state.hosted if hasattr(host, "join") for own in host.join.open_pairs.owned())


@pytest.mark.parametrize(
    ("grouped", "is_open", "join"),
    [(True, False, "ring_hash"), (False, True, "ring_hash"), (True, True, "lazy_hash")],
)
def test_a_change_at_any_step_is_not_seen(grouped: bool, is_open: bool, join: str) -> None:
    kernel = AdaptiveKernel(spec(grouped), join, "factorised")
    stays = [shown for shown, _ in ran(kernel, is_open, lambda number: False)]
    assert sum(len(shown) > 0 for shown in stays) > 10
    for steps in (range(1, 23), range(5, 23, 5)):
        changed = list(ran(kernel, is_open, steps.__contains__))
        assert [shown for shown, _ in changed] == stays
        assert changed[-1][1].changed == len(steps)


def rows_of(keys: Int64s, at: int) -> Delta:
    count = len(keys)
    return Delta(pa.record_batch({"k": keys}), np.full(count, at), np.full(count, at + 3), np.full(count, -1), at + 1)


def test_it_changes_when_the_other_is_better_and_what_was_lost_pays_for_it() -> None:
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    counts = JoinAggregateSpec(((pa.int64(),),) * 2, ((0,), (0,)), None, ((0, 0),), (JoinCall("count"),), schema)
    kernel, pool = AdaptiveKernel(counts, "ring_hash", "factorised"), OpenIdPool()
    state = kernel.start()

    def passed(keys: int, steps: int, start: int) -> None:
        random = np.random.default_rng(start)
        for at in range(start, start + steps):
            given = tuple(rows_of(random.integers(0, keys, 2_000), at) for _ in range(2))
            kernel.step(state, given, Step(at, at + 1, 0, pool))
            pool.finish_step()

    passed(6_000, 15, 0)
    assert state.tactic == "pc" and state.changed == 1
    passed(60, 15, 15)
    assert state.tactic == "factorised" and state.changed == 2
    passed(60, 30, 30)
    assert state.changed == 2, "it stays where nothing changes"
    down, up = state.changes
    assert down.cost_before > 1.5 * down.cost_after and up.cost_before > 1.5 * up.cost_after
    assert up.made > 10 > 3 > down.made and down.rows >= LOOK
    assert up.lost >= PRICES["factorised"].to_change(rows=10_000, pairs=0) / 1_000
    assert state.lines()[0] == "factorised now, changed 2 times" and len(state.lines()) == 3


def test_nothing_changes_between_tactics_that_are_about_as_good() -> None:
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    counts = JoinAggregateSpec(((pa.int64(),),) * 2, ((0,), (0,)), None, ((0, 0),), (JoinCall("count"),), schema)
    for first in OTHER:
        kernel, pool = AdaptiveKernel(counts, "ring_hash", first), OpenIdPool()
        state, random = kernel.start(), np.random.default_rng(3)
        for at in range(40):
            given = tuple(rows_of(random.integers(0, 1_400, 2_000), at) for _ in range(2))
            kernel.step(state, given, Step(at, at + 1, 0, pool))
            pool.finish_step()
        assert state.changed == 0
