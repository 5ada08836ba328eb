"""A join of many that changes at steps that the test says: every tuple once, with the lifetime that it has by mjoin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s
from transom.core.schema import BOOLEAN, Column, Schema
from transom.core.time import FOREVER
from transom.kernels.changing import TacticChange
from transom.kernels.kernel import Step
from transom.kernels.multiway import adaptive
from transom.kernels.multiway.adaptive import AdaptiveJoinKernel, AdaptiveJoinState
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.join_tree import Tree
from transom.kernels.multiway.mjoin import MJoinKernel
from transom.kernels.multiway.node import MultiwayJoin
from transom.pipeline import registry
from transom.plan.algebra import Relation, StreamScan, Window, WindowSpec
from transom.plan.expression import Call, ColumnRef, Expression
from transom.state import codec
from transom.state.open_ids import OpenIdPool

TYPES = (pa.string(), pa.int64(), pa.float64())
ALL_SHAPES: tuple[Tree, ...] = (((0, 1), 2), ((0, 2), 1), ((1, 2), 0))


def ref(at: int) -> ColumnRef:
    return ColumnRef(at, TYPES[at % 3], str(at))


def on_one_key(count: int) -> tuple[tuple[Expression | None, ...], ...]:
    return ((ref(0), ref(1)),) * count


CHAIN = ((ref(0), None), (ref(0), ref(1)), (None, ref(1)))


class Feed:
    """Rows of an input that live for ten instants, or for four or twelve where they do not `grow`; ends are open where
    `is_open`."""

    def __init__(self, seed: int, pool: OpenIdPool, is_open: bool, grow: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.pool, self.is_open, self.grow = pool, is_open, grow
        self.waiting: list[tuple[int, int]] = []

    def delta(self, before: int, frontier: int) -> Delta:
        random, count = self.random, int(self.random.integers(0, 5))
        ta = np.sort(random.integers(before, frontier, count))
        te = ta + (10 if self.grow else random.choice([4, 12], count))
        keys = random.choice(np.array(["a", "b", "a text that is longer"]), count).tolist()
        keys = [None if random.random() < 0.1 else key for key in keys]
        numbers = pa.array(random.integers(0, 2, count))
        values = pa.record_batch({"k": pa.array(keys, pa.string()), "n": numbers, "f": random.random(count)})
        ended = [one for one in self.waiting if one[1] < frontier]
        self.waiting = [one for one in self.waiting if one[1] >= frontier]
        if not self.is_open:
            return Delta(values, ta, te, np.full(count, NO_OPEN_ID), frontier)
        open_ids = self.pool.take(count)
        self.waiting += list(zip(open_ids.tolist(), te.tolist(), strict=True))
        closed = Ends()
        if ended:
            ids, at = (np.array(part, dtype=np.int64) for part in zip(*ended, strict=True))
            closed = self.pool.close(ids, at)
        soon = [one for one in self.waiting if one[1] < frontier]
        self.waiting = [one for one in self.waiting if one[1] >= frontier]
        if soon:
            ids, at = (np.array(part, dtype=np.int64) for part in zip(*soon, strict=True))
            closed += self.pool.close(ids, at)
        return Delta(values, ta, np.full(count, FOREVER), open_ids, frontier, closed)


@dataclass(frozen=True)
class ToldKernel(AdaptiveJoinKernel):
    """Changes at the beginning of these steps, to each tactic in turn."""

    steps: Container[int] = ()

    def _shuffled(self, state: AdaptiveJoinState, step: Step) -> TacticChange | None:
        number = step.before // 4
        if number not in self.steps:
            return None
        after = self.names[(state.in_force + 1 + number % (len(self.names) - 1)) % len(self.names)]
        return TacticChange(step.before, 0, state.tactic, after)


def joined(
    kernel: Any, is_open: tuple[bool, ...], grow: tuple[bool, ...], steps: Container[int] = ()
) -> tuple[Counter[Any], Any]:
    """All tuples with their lifetimes, and the state in the end; saved and read back now and then."""
    pool = OpenIdPool()
    if isinstance(kernel, ToldKernel):
        kernel = replace(kernel, steps=steps)
    feeds = [Feed(number, pool, *how) for number, how in enumerate(zip(is_open, grow, strict=True))]
    state, found, shown = kernel.start(), Counter[Any](), dict[int, Any]()
    for number, (before, frontier) in enumerate(pairwise(range(0, 160, 4))):
        step = Step(before, frontier, 0, pool)
        out = kernel.step(state, tuple(feed.delta(before, frontier) for feed in feeds), step)
        rows = list(zip(*(column.to_pylist() for column in out.values.columns), strict=True))
        for row, ta, te, open_id in zip(rows, out.ta.tolist(), out.te.tolist(), out.open_id.tolist(), strict=True):
            if open_id == NO_OPEN_ID:
                found[row, ta, te] += 1
            else:
                assert open_id not in shown, "a tuple is there twice"
                shown[open_id] = (row, ta)
        for open_id, te in zip(*(part.tolist() for part in out.ends.arrays()), strict=True):
            row, ta = shown.pop(open_id)
            assert te < frontier
            if ta < te:
                found[row, ta, te] += 1
        pool.finish_step()
        if number % 4 == 0:
            state = codec.decode(codec.encode(state), registry.STATE_CLASSES)
            if isinstance(state, AdaptiveJoinState):
                state.check()
                kernel.check(state)
        within = 0
        if isinstance(state, AdaptiveJoinState):
            within = len(kernel.tactics[state.in_force].within(state.hosted[state.in_force]))
        assert pool.in_use == len(shown) + sum(len(feed.waiting) for feed in feeds) + within
    for row, ta in shown.values():
        found[row, ta, FOREVER] += 1
    return found, state


def kernel_of(
    keys: tuple[tuple[Expression | None, ...], ...],
    grow: tuple[bool, ...],
    trees: tuple[Tree, ...],
    numbered: bool,
    residual: tuple[Expression, ...] = (),
    last: Expression | None = None,
) -> AdaptiveJoinKernel:
    count = len(keys)
    graph = JoinGraph((TYPES,) * count, keys, residual, last, grow)
    schema = pa.schema([(f"c{at}", TYPES[at % 3]) for at in range(3 * count)])
    return ToldKernel(node_of(keys, residual, last), graph, schema, trees, "mjoin", "shuffle", numbered)


def node_of(
    keys: tuple[tuple[Expression | None, ...], ...],
    residual: tuple[Expression, ...] = (),
    last: Expression | None = None,
) -> MultiwayJoin:
    scan = StreamScan("s", Schema(tuple(Column(name, type_) for name, type_ in zip("knf", TYPES, strict=True))))
    relation: Relation = Window(scan, WindowSpec(range=10))
    return MultiwayJoin((relation,) * len(keys), keys, residual, last)


BIGGER = Call("<", (ref(2), ref(5)), BOOLEAN)
LAST = Call("<", (ref(5), ref(8)), BOOLEAN)
CASES = {
    "rings": (on_one_key(3), (False,) * 3, (True,) * 3, ALL_SHAPES, (), None),
    "ends in any order": (on_one_key(3), (False,) * 3, (False, True, False), ALL_SHAPES, (), None),
    "open ends": (on_one_key(3), (True,) * 3, (True,) * 3, ALL_SHAPES, (), None),
    "open ends in any order": (on_one_key(3), (True, False, True), (False, False, True), ALL_SHAPES, (), None),
    "one with open ends": (on_one_key(3), (False, False, True), (True, False, True), ALL_SHAPES, (BIGGER,), LAST),
    "a chain": (CHAIN, (False, True, False), (True, True, True), (((0, 1), 2), (0, (1, 2))), (), LAST),
    "four": (
        on_one_key(4), (True, False, False, True), (True, True, False, False), (((0, 1), (2, 3)),), (BIGGER,), None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_at_any_step_is_not_seen(name: str) -> None:
    keys, is_open, grow, trees, residual, last = CASES[name]
    kernel = kernel_of(keys, grow, trees, any(is_open), residual, last)
    expected, _ = joined(MJoinKernel(kernel.graph, kernel.schema), is_open, grow)
    assert expected.total() > 10
    for steps in (range(1, 39), range(5, 39, 5), (7,)):
        found, state = joined(kernel, is_open, grow, steps)
        assert found == expected
        assert state.changed >= 0.8 * len(steps), "but where a step brings nothing"


def test_columns_may_be_picked_and_turned() -> None:
    kernel = kernel_of(on_one_key(3), (True,) * 3, ALL_SHAPES, True)
    schema = pa.schema([("x", pa.float64()), ("y", pa.string())])
    picked = kernel.picking((8, 0), schema)
    expected, _ = joined(kernel, (True,) * 3, (True,) * 3)
    found, _ = joined(picked, (True,) * 3, (True,) * 3, range(0, 40, 3))
    assert found == Counter(((row[8], row[0]), ta, te) for (row, ta, te), n in expected.items() for _ in range(n))


# --- when it changes -------------------------------------------------------------------------------------------------


def plain_kernel(first: str) -> AdaptiveJoinKernel:
    keys = (((ColumnRef(0, pa.int64(), "k")),),) * 3
    scan = StreamScan("s", Schema((Column("k", pa.int64()),)))
    node = MultiwayJoin((Window(scan, WindowSpec(range=3)),) * 3, keys)
    graph = JoinGraph(((pa.int64(),),) * 3, keys, growing=(True,) * 3)
    schema = pa.schema([(name, pa.int64()) for name in "abc"])
    return AdaptiveJoinKernel(node, graph, schema, (((0, 1), 2),), first)


def rows_of(keys: Int64s, at: int) -> Delta:
    count = len(keys)
    return Delta(pa.record_batch({"k": keys}), np.full(count, at), np.full(count, at + 8), np.full(count, -1), at + 1)


class Run:
    """A kernel that takes rows of alarms `a` and `b` and readings `c`, as those of `benchmarks/adapt/joins.py`."""

    def __init__(self, first: str) -> None:
        self.kernel, self.pool, self.at = plain_kernel(first), OpenIdPool(), 0
        self.state = self.kernel.start()

    def step(self, *keys: Int64s) -> None:
        inputs = tuple(rows_of(each, self.at) for each in keys)
        self.kernel.step(self.state, inputs, Step(self.at, self.at + 1, 0, self.pool))
        self.pool.finish_step()
        self.at += 1

    def quiet(self, steps: int) -> None:
        """Alarms of devices with one fault each, which report often."""
        random = np.random.default_rng(self.at)
        for _ in range(steps):
            alarms = random.integers(0, 8, 40)
            self.step(alarms, 8 + random.integers(0, 8, 40), random.integers(0, 16, 4_000))

    def storm(self, steps: int) -> None:
        """Alarms of devices with both faults, which do not report."""
        random = np.random.default_rng(self.at)
        for _ in range(steps):
            self.step(random.integers(100, 200, 500), random.integers(100, 200, 500), random.integers(200, 900, 500))


def test_it_changes_when_the_other_is_better_and_what_was_lost_pays_for_it() -> None:
    run = Run("mjoin")
    run.quiet(40)
    assert run.state.tactic == "tree ((1, 2), 3)" and run.state.changed == 1
    run.storm(60)
    assert run.state.tactic == "mjoin" and run.state.changed == 2
    run.storm(60)
    assert run.state.changed == 2, "it stays where nothing changes"
    to_tree, to_mjoin = run.state.changes
    assert to_tree.what == "probes" and to_tree.made > 3 and to_tree.rows >= adaptive.LOOK // 40
    assert to_mjoin.what == "tuples" and to_mjoin.cost_before > 1.5 * to_mjoin.cost_after and to_mjoin.lost > 0


def test_it_changes_where_it_did_after_it_was_saved_and_read_back() -> None:
    once, again = Run("mjoin"), Run("mjoin")
    for _ in range(12):
        for run in (once, again):
            run.quiet(2)
        again.state = codec.decode(codec.encode(again.state), registry.STATE_CLASSES)
    for _ in range(40):
        for run in (once, again):
            run.storm(1)
        again.state = codec.decode(codec.encode(again.state), registry.STATE_CLASSES)
    assert once.state.changes == again.state.changes and once.state.changed == 2
    kept = ("rows", "lost", "came", "results", "work", "steps", "looks", "made", "wait")
    assert all(getattr(once.state, name) == getattr(again.state, name) for name in kept)


@pytest.mark.parametrize("first", ["tree", "mjoin"])
def test_nothing_changes_between_tactics_that_are_about_as_good(first: str) -> None:
    run, random = Run(first), np.random.default_rng(3)
    for _ in range(60):
        run.step(*(random.integers(0, 16_000, 2_000) for _ in range(3)))
    assert run.state.changed == 0 and run.state.looks > 0


def test_it_may_not_change_where_it_is_told_to_stay() -> None:
    run = Run("mjoin")
    object.__setattr__(run.kernel, "watch", "off")
    run.quiet(40)
    assert run.state.changed == 0
