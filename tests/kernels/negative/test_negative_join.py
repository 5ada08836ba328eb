"""The join under negative tuples: at every instant the pairs are those of the definition, and none is a ghost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Values, batch, ints, snapshot, values_of
from tests.profile import examples
from transom.core.delta import Changelog
from transom.core.schema import BOOLEAN
from transom.core.time import FOREVER
from transom.kernels import keys as key_bytes
from transom.kernels.kernel import Step
from transom.kernels.negative import join
from transom.kernels.negative.join import NegativeJoinKernel
from transom.pipeline.registry import STATE_CLASSES
from transom.plan.expression import Call, ColumnRef, Expression
from transom.state import codec
from transom.state.open_ids import OpenIdPool

TACTICS = ("ring_hash", "lazy_hash", "nested_loop")
RESTART = st.booleans()


def kernel_of(kind: str, tactic: str, residual: Expression | None = None) -> NegativeJoinKernel:
    direct = pairs.join(kind, tactic, residual)
    return NegativeJoinKernel(
        tactic, direct.left_keys, direct.right_keys, direct.residual, direct.schema, direct.left_width
    )


@st.composite
def histories(draw: Any, kind: str, tactic: str, distinct: bool = True) -> list[Life]:
    """Rows by their beginning; for a ring they end in that order. Without `distinct` equal rows are frequent."""
    begins = sorted(draw(st.lists(st.integers(0, 30), max_size=12)))
    ends = [ta + draw(st.sampled_from([1, 2, 5, 9, FOREVER])) for ta in begins]
    if tactic == "ring_hash":
        ends = [max(ta + 1, te) for ta, te in zip(begins, sorted(ends), strict=True)]
    lives: list[Life] = []
    for i, (ta, te) in enumerate(zip(begins, ends, strict=True)):
        key = tuple(draw(st.sampled_from(values)) for _, values in pairs.KINDS[kind])
        payload = (draw(st.sampled_from(["x", None, "y" * 30])), i) if distinct else (None, draw(st.integers(0, 1)))
        lives.append(((*key, *payload), ta, min(te, FOREVER)))
    return lives


def signed(lives: Sequence[Life], types: Sequence[pa.DataType], cuts: Iterable[int], random: Random) -> list[Any]:
    """The history as one delta per cut; instants come in any order, rows of one instant in theirs."""
    deltas = []
    for before, frontier in pairwise([-1, *cuts]):
        order = {t: random.random() for t in range(before, frontier)}
        gone = sorted(
            (v for v in lives if v[2] is not None and before <= v[2] < frontier), key=lambda v: order[v[2] or 0]
        )
        new = sorted((v for v in lives if before <= v[1] < frontier), key=lambda v: order[v[1]])
        t = ints([te or 0 for _, _, te in gone] + [ta for _, ta, _ in new])
        deltas.append(Changelog(batch([v for v, _, _ in [*gone, *new]], types), t, len(gone), frontier))
    return deltas


def folded(
    kernel: NegativeJoinKernel, inputs: Iterable[tuple[Changelog, Changelog]], restart: bool, distinct: bool = True
) -> tuple[dict[int, Counter[Values]], Any]:
    """The pairs there are after every instant at which something happened, and the state at the end."""
    state, before = kernel.start(), -1
    now: Counter[Values] = Counter()
    history = {-1: now}
    for left, right in inputs:
        out = kernel.step(state, (left, right), Step(before, left.frontier, 0, OpenIdPool()))
        out.values.validate(full=True)
        assert out.values.schema == kernel.schema and len(out.values) == len(out.t) and out.frontier == left.frontier
        rows = zip(out.t.tolist(), np.arange(len(out)) >= out.departed, values_of(out.values), strict=True)
        for t, changes in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0]):
            assert before <= t < out.frontier
            of_t = list(changes)
            gone, new = (Counter(values for _, arrives, values in of_t if arrives == sign) for sign in (False, True))
            assert gone <= now, "what departs was not there before that instant"
            assert not distinct or not gone & new, "a pair arrives and departs at one instant"
            now = now - gone + new
            history[t] = now
        before = left.frontier
        if restart:
            state = codec.decode(codec.encode(state), STATE_CLASSES)
    return history, state


def check(
    kernel: NegativeJoinKernel,
    kind: str,
    sides: tuple[list[Life], list[Life]],
    cuts: list[int],
    restart: bool,
    distinct: bool = True,
    also: Callable[[Values, Values], bool] = lambda a, b: True,
) -> None:
    left, right = (signed(lives, pairs.types_of(kind), cuts, Random(7)) for lives in sides)
    history, state = folded(kernel, zip(left, right, strict=True), restart, distinct)
    expected = pairs.by_definition(kind, *sides, also)
    now: Counter[Values] = Counter()
    for instant in range(-1, pairs.LAST):
        now = history.get(instant, now)
        assert now == snapshot(expected, instant)
    for side, lives in zip((state.left, state.right), sides, strict=True):
        stay = sum((te or 0) >= pairs.LAST for _, _, te in lives)
        assert side.alive == (pairs.kept(lives, kind) if kernel.left_keys else stay)


@pytest.mark.parametrize("tactic", TACTICS)
@pytest.mark.parametrize("kind", pairs.KINDS)
def test_pairs_are_those_of_the_definition_at_every_instant(kind: str, tactic: str) -> None:
    @settings(max_examples=examples(by_day=6, at_night=60))
    @given(histories(kind, tactic), histories(kind, tactic), pairs.CUTS, RESTART)
    def holds(left: list[Life], right: list[Life], cuts: list[int], restart: bool) -> None:
        check(kernel_of(kind, tactic), kind, (left, right), cuts, restart)

    holds()


@pytest.mark.parametrize("tactic", TACTICS)
def test_equal_rows_count_as_often_as_they_are_there(tactic: str) -> None:
    @settings(max_examples=30)
    @given(histories("boolean", tactic, False), histories("boolean", tactic, False), pairs.CUTS, RESTART)
    def holds(left: list[Life], right: list[Life], cuts: list[int], restart: bool) -> None:
        check(kernel_of("boolean", tactic), "boolean", (left, right), cuts, restart, distinct=False)

    holds()


@pytest.mark.parametrize("tactic", TACTICS)
def test_what_else_must_hold_of_a_pair_is_asked_in_blocks(tactic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "BLOCK", 3)
    number = len(pairs.types_of("both")) - 1
    first, second = ColumnRef(number, pairs.PAYLOAD[1], "a"), ColumnRef(2 * number + 1, pairs.PAYLOAD[1], "b")
    kernel = kernel_of("both", tactic, Call("<", (first, second), BOOLEAN))

    @settings(max_examples=20)
    @given(histories("both", tactic), pairs.CUTS, RESTART)
    def holds(lives: list[Life], cuts: list[int], restart: bool) -> None:
        check(kernel, "both", (lives, lives), cuts, restart, also=lambda a, b: bool(a[number] < b[number]))

    holds()


@pytest.mark.parametrize("tactic", ["ring_hash", "lazy_hash"])
@pytest.mark.parametrize("kind", ["text", "three"])
def test_rows_whose_hashes_collide_are_reported_apart(kind: str, tactic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_bytes, "hash_bytes", lambda data, offsets: np.full(len(offsets) - 1, 5, dtype=np.uint64))

    @settings(max_examples=10)
    @given(histories(kind, tactic), histories(kind, tactic), pairs.CUTS)
    def holds(left: list[Life], right: list[Life], cuts: list[int]) -> None:
        check(kernel_of(kind, tactic), kind, (left, right), cuts, False)

    holds()


@pytest.mark.parametrize("tactic", TACTICS)
def test_sides_grow_while_rows_are_there(tactic: str) -> None:
    random = Random(tactic)
    sides: list[list[Life]] = []
    for count in (400, 150):
        begins = sorted(random.randint(0, 40) for _ in range(count))
        spans = sorted(random.randint(1, 12) for _ in begins)
        ends = [
            ta + span if tactic == "ring_hash" else ta + random.randint(1, 12)
            for ta, span in zip(begins, spans, strict=True)
        ]
        sides.append(
            [((random.randint(0, 60), "t", i), ta, te) for i, (ta, te) in enumerate(zip(begins, ends, strict=True))]
        )
    for cuts in ([pairs.LAST], [*range(2, pairs.LAST, 2), pairs.LAST]):
        check(kernel_of("integer", tactic), "integer", (sides[0], sides[1]), cuts, restart=False)


@pytest.mark.parametrize("tactic", TACTICS)
def test_both_sides_may_be_one_input(tactic: str) -> None:
    lives: list[Life] = [((1, None, 3), 0, 4), ((1, "x", 3), 4, 5), ((2, None, 3), 4, 9), ((None, None, 3), 4, 9)]
    deltas = signed(lives, pairs.types_of("integer"), [3, 7, 20], Random(1))
    history, _ = folded(kernel_of("integer", tactic), [(delta, delta) for delta in deltas], False)
    expected = pairs.by_definition("integer", lives, lives)
    assert sorted(history) == [-1, 0, 4, 5, 9]
    for instant, there in history.items():
        assert there == snapshot(expected, instant)


@pytest.mark.parametrize("tactic", TACTICS)
def test_both_parts_are_in_order_of_time(tactic: str) -> None:
    types = pairs.types_of("boolean")
    lives: list[Life] = [((True, None, i), i % 9, i % 9 + 10) for i in range(40)]
    (delta,) = signed(lives, types, [pairs.LAST], Random(2))
    kernel = kernel_of("boolean", tactic)
    out = kernel.step(kernel.start(), (delta, delta), Step(0, pairs.LAST, 0, OpenIdPool()))
    assert (out.departed, out.arrived) == (1600, 1600)
    for part in (out.t[: out.departed], out.t[out.departed :]):
        assert (np.diff(part) >= 0).all()


def test_nothing_in_nothing_out() -> None:
    for tactic in TACTICS:
        kernel = kernel_of("text", tactic)
        state = kernel.start()
        nothing = Changelog(batch([], pairs.types_of("text")), ints([]), 0, 5)
        out = kernel.step(state, (nothing, nothing), Step(0, 5, 0, OpenIdPool()))
        assert len(out) == 0 and out.values.schema == kernel.schema
        row = replace(nothing, values=batch([("a", "x", 1)], pairs.types_of("text")), t=ints([6]), frontier=9)
        assert len(kernel.step(state, (row, replace(nothing, frontier=9)), Step(5, 9, 0, OpenIdPool()))) == 0


@pytest.mark.parametrize("tactic", TACTICS)
@pytest.mark.parametrize("kind", ["integer", "text"])
def test_memory_is_that_of_the_rows_there(kind: str, tactic: str) -> None:
    random = Random(1)
    spans = [20] if tactic == "ring_hash" else [1, 5, 50]
    keys: list[Any] = [i % 5 if kind == "integer" else f"key {i % 5}" for i in range(1_500)]
    lives: list[Life] = [((key, "t" * (i % 40), i), i, i + random.choice(spans)) for i, key in enumerate(keys)]
    few = lives[::40]
    left, right = (signed(side, pairs.types_of(kind), range(5, 1_600, 5), random) for side in (lives, few))
    history, state = folded(kernel_of(kind, tactic), zip(left, right, strict=True), False)
    assert len(history) > 100 and not history[max(history)]
    side = state.left
    assert side.alive == 0 and len(side.entries) <= 128 and len(side.head) <= 256
    for column in side.rows.columns:
        assert not hasattr(column, "arena") or (column.alive == 0 and len(column.arena) < 10_000)
    if tactic != "ring_hash":
        assert (side.head == -1).all() and side.values.slots.in_use == 0


@pytest.mark.parametrize("tactic", TACTICS)
def test_a_saved_state_has_no_room_for_more(tactic: str) -> None:
    types = pairs.types_of("text")
    lives: list[Life] = [((f"key {i}", "text", i), 0, 5) for i in range(3_000)]
    lives += [((f"key {i % 2}", "text", i), 6, FOREVER) for i in range(10)]
    kernel = kernel_of("text", tactic)
    nothing = signed([], types, [2, 20], Random(3))
    sizes = []
    state = kernel.start()
    for delta, other in zip(signed(lives, types, [2, 20], Random(3)), nothing, strict=True):
        kernel.step(state, (delta, other), Step(0, delta.frontier, 0, OpenIdPool()))
        assert len(state.left.head) >= len(state.left.entries), "chains get long"
        saved = codec.encode(state)
        sizes.append(len(saved))
        assert 0.5 < codec.saved_bytes(state) / len(saved) < 2
        state = codec.decode(saved, STATE_CLASSES)
    assert sizes[1] < sizes[0] / 10
    assert state.left.alive == 10
