"""Aggregates over rows that come and go, against plain Python on every snapshot; groups are freed and used again."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.aggregate.definition import CALLS, CUTS, LAST, LONG, TYPES, Calls, by_definition, lives, schema
from tests.kernels.stepping import Life, Relation, Stepped, snapshot, values_of
from transom.core.delta import NO_OPEN_ID, Delta
from transom.core.errors import EvaluationError
from transom.core.time import FOREVER
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.aggregate.cells import to_cells
from transom.kernels.kernel import Step
from transom.state.open_ids import OpenIdPool

OF_ROWS_THAT_STAY = tuple(call for call in CALLS if not call[0].function.startswith("quantile"))


def kernel(grouped: bool, calls: Calls = CALLS, running: bool = False, final: bool = False) -> AggregateKernel:
    specs = tuple(spec for spec, _ in calls)
    return AggregateKernel((0,) if grouped else (), specs, schema(grouped, calls), TYPES, running, final)


@settings(max_examples=60)
@given(lives(), CUTS, st.frozensets(st.integers(0, 14)), st.booleans(), st.booleans())
def test_every_snapshot_is_aggregated_exactly(
    given_lives: list[Life], cuts: list[int], opened: frozenset[int], grouped: bool, restart: bool
) -> None:
    relation = Relation(given_lives, TYPES, opened)
    stepped = Stepped(kernel(grouped), restart=restart).feed([relation], cuts)
    for instant in range(LAST):
        assert stepped.snapshot(instant) == by_definition(snapshot(given_lives, instant), grouped), instant
    state = stepped.state
    alive = [life for life in given_lives if life[2] is None or life[2] >= LAST]
    assert state.slots.in_use == len(alive)
    assert state.keys.slots.in_use == (len({values[0] for values, _, _ in alive}) if grouped else 0)
    assert stepped.open_ids.in_use == len(stepped.open) + len(relation.waiting)


@settings(max_examples=60)
@given(lives(), CUTS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_of_rows_that_never_leave_nothing_is_kept_but_their_totals(
    given_lives: list[Life], cuts: list[int], grouped: bool, restart: bool, random: Random
) -> None:
    forever: list[Life] = [(values, ta, FOREVER) for values, ta, _ in given_lives]
    random.shuffle(forever)  # as a union or a join gives them
    running = kernel(grouped, OF_ROWS_THAT_STAY, running=True)
    stepped = Stepped(running, restart=restart).feed([Relation(forever, TYPES)], cuts)
    for instant in range(LAST):
        expected = by_definition(snapshot(forever, instant), grouped, OF_ROWS_THAT_STAY)
        assert stepped.snapshot(instant) == expected, instant
    running.check(stepped.state)
    texts = {(values[0] if grouped else None, values[4]) for values, _, _ in given_lives if values[4] is not None}
    kept = sum(min(2, len({text for of, text in texts if of == group})) for group in {of for of, _ in texts})
    assert stepped.state.slots.in_use <= kept and not stepped.state.links.size


def test_of_rows_that_never_leave_only_the_least_and_the_greatest_texts_are_kept() -> None:
    calls = ((AggregateSpec("max", 4, False), pa.string()), (AggregateSpec("min", 4, False), pa.string()))
    rows: list[Life] = [(("gh"[t % 2], None, None, None, LONG + f"{t:06}"), t, FOREVER) for t in range(2_000)]
    running = kernel(True, calls, running=True)
    stepped = Stepped(running).feed([Relation(rows, TYPES)], range(10, 2_010, 10))
    expected = {("g", LONG + "001998", LONG + "000000"): 1, ("h", LONG + "001999", LONG + "000001"): 1}
    assert stepped.snapshot(1_999) == Counter(expected)
    state = stepped.state
    assert state.slots.in_use == 4 and len(state.row_group) <= 64
    assert state.texts.columns[0].alive == 4 * (len(LONG) + 6) and len(state.texts.columns[0].arena) < 4_000


@settings(max_examples=60)
@given(lives(), CUTS, st.frozensets(st.integers(0, 14)), st.booleans(), st.booleans())
def test_where_only_the_end_of_a_step_is_seen_a_group_shows_one_row_a_step(
    given_lives: list[Life], cuts: list[int], opened: frozenset[int], grouped: bool, running: bool
) -> None:
    if running:
        given_lives, opened = [(values, ta, FOREVER) for values, ta, _ in given_lives], frozenset()
    calls = OF_ROWS_THAT_STAY if running else CALLS
    relation, stepped = Relation(given_lives, TYPES, opened), Stepped(kernel(grouped, calls, running, final=True))
    for frontier in cuts:
        out = stepped.step((relation.delta(stepped.open_ids, stepped.before, frontier),), frontier)
        shown = [values[:1] if grouped else () for values in values_of(out.values)]
        assert len(shown) == len(set(shown))
        alive = Counter(values for values, _ in stepped.open.values())
        assert alive == by_definition(snapshot(given_lives, frontier - 1), grouped, calls)


def test_nothing_is_said_while_the_result_stays_the_same() -> None:
    rows: list[Life] = [((None, 5, None, None, "x"), t, t + 2) for t in (0, 1, 2, 3)]
    calls = ((AggregateSpec("max", 1, False), pa.int64()), (AggregateSpec("min", 4, False), pa.string()))
    stepped = Stepped(kernel(True, calls)).feed([Relation(rows, TYPES)], [1, 2, 3, 10])
    assert stepped.all_lives() == [((None, 5, "x"), 0, 5)]


def test_a_signalling_nan_is_a_nan_like_any_other() -> None:
    column = pa.array(np.array([0x7F800001, 0x7FC00000], dtype=np.uint32).view(np.float32))
    hi, _ = to_cells(column)
    assert hi[0] == hi[1] > to_cells(pa.array([math.inf], pa.float32()))[0][0]


def test_whole_sums_go_beyond_64_bits_and_come_back() -> None:
    rows: list[Life] = [(("g", 2**63 - 1, None, None, None), t, 2_000 + t) for t in range(1_000)]
    stepped = Stepped(kernel(True, CALLS[3:4])).feed([Relation(rows, TYPES)], [500, 1_000, 1_999, 3_001])
    assert stepped.snapshot(999) == Counter({("g", 1_000 * (2**63 - 1)): 1})
    assert stepped.snapshot(2_998) == Counter({("g", 2**63 - 1): 1})
    assert not stepped.open


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_more_than_38_digits_is_an_error(sign: int) -> None:
    large = Decimal(sign) * Decimal("6e35")
    rows: list[Life] = [(("g", None, None, large, None), t, 500) for t in range(2)]
    with pytest.raises(EvaluationError, match="38 digits"):
        Stepped(kernel(False, CALLS[8:9])).feed([Relation(rows, TYPES)], [600])


def test_groups_and_texts_are_freed_and_used_again() -> None:
    rows: list[Life] = [((f"group {t}", t, 0.5, None, f"{t} " * 50), t, t + 5) for t in range(1_000)]
    stepped = Stepped(kernel(True)).feed([Relation(rows, TYPES, frozenset(range(0, 1_000, 2)))], range(4, 1_020, 4))
    state = stepped.state
    assert state.slots.in_use == 0 and state.keys.slots.in_use == 0
    assert len(state.rows) <= 64 and len(state.row_group) <= 64 and state.floats.shape[0] <= 128
    assert state.texts.columns[0].alive == 0 and len(state.texts.columns[0].arena) < 10_000
    assert [pairs.slots.in_use for pairs in state.pairs] == [0] * len(state.pairs)
    assert stepped.open_ids.in_use == 0 and len(stepped.all_lives()) == 1_000


@pytest.mark.parametrize("running", [False, True])
def test_a_group_without_calls_is_shown_once(running: bool) -> None:
    """Rows that come to it change nothing that is seen of it."""
    kernel = AggregateKernel((0,), (), pa.schema([("k", pa.int64())]), (pa.int64(),), running=running)
    state, open_ids = kernel.start(), OpenIdPool()
    for step in range(3):
        t = np.array([10 * step + 1, 10 * step + 2])
        rows = Delta(pa.record_batch({"k": [7, 7]}), t, np.full(2, FOREVER), np.full(2, NO_OPEN_ID), 10 * step + 10)
        out = kernel.step(state, (rows,), Step(10 * step, 10 * step + 10, 0, open_ids))
        assert (len(out), len(out.ends.chunks)) == (1 if step == 0 else 0, 0)
