"""Aggregates over negative tuples, against plain Python on every snapshot; nothing is kept per input row."""

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

from tests.kernels.aggregate.definition import CALLS, CUTS, LAST, TYPES, Calls, by_definition, lives, schema
from tests.kernels.negative.changelogs import ChangelogRelation, SteppedChangelog
from tests.kernels.stepping import Life, snapshot
from transom.core.delta import Changelog
from transom.core.errors import EvaluationError
from transom.kernels.aggregate.aggregate import AggregateSpec
from transom.kernels.kernel import Step
from transom.kernels.negative.aggregate import NegativeAggregateKernel
from transom.state.codec import saved_bytes
from transom.state.open_ids import OpenIdPool

WITHOUT_HEAPS = CALLS[:10]
ORDERED_ALONE = CALLS[10:]


def kernel(grouped: bool, calls: Calls = CALLS) -> NegativeAggregateKernel:
    specs = tuple(spec for spec, _ in calls)
    return NegativeAggregateKernel((0,) if grouped else (), specs, schema(grouped, calls), TYPES)


@pytest.mark.parametrize("calls", [CALLS, WITHOUT_HEAPS, ORDERED_ALONE, CALLS[:2]])
def test_every_snapshot_is_aggregated_exactly(calls: Calls) -> None:
    @settings(max_examples=40)
    @given(lives(), CUTS, st.booleans(), st.booleans(), st.integers(0, 99))
    def check(given_lives: list[Life], cuts: list[int], grouped: bool, restart: bool, seed: int) -> None:
        stepped = SteppedChangelog(kernel(grouped, calls), restart=restart)
        stepped.feed([ChangelogRelation(given_lives, TYPES, Random(seed))], cuts)
        for instant in range(LAST):
            assert stepped.snapshot(instant) == by_definition(snapshot(given_lives, instant), grouped, calls), instant
        state, alive = stepped.state.groups, snapshot(given_lives, LAST - 1)
        assert state.keys.slots.in_use == (len({values[0] for values in alive}) if grouped else 0)
        combinations = {values[: None if grouped else 0] or values[1:] for values in alive}
        if calls == CALLS:
            assert stepped.state.combinations.slots.in_use == len(combinations)
        if calls in (WITHOUT_HEAPS, CALLS[:2]):
            assert state.slots.high == len(state.row_group) == 0 == stepped.state.combinations.slots.high

    check()


@pytest.mark.parametrize(
    ("spec", "type_", "column", "values"),
    [
        (AggregateSpec("avg", 1, False), pa.float64(), 1, [2, 2, 2]),
        (AggregateSpec("sum", 1, False), pa.decimal128(38, 0), 1, [5, 0, 0]),
        (AggregateSpec("sum", 2, False), pa.float64(), 2, [0.1, 0.0, -0.0]),
        (AggregateSpec("min", 2, False), pa.float64(), 2, [0.0, -0.0, 0.0]),
        (AggregateSpec("max", 2, False), pa.float64(), 2, [math.nan, math.nan, 1.0]),
        (AggregateSpec("max", 4, False), pa.string(), 4, ["more than sixteen bytes", "more than sixteen", "a"]),
        (AggregateSpec("count", 4, True), pa.int64(), 4, ["a", "a", None]),
    ],
)
@pytest.mark.parametrize("cuts", [[30], [2, 3, 6, 7, 8, 30]])
def test_nothing_is_said_while_the_result_stays_the_same(
    spec: AggregateSpec, type_: pa.DataType, column: int, values: list[object], cuts: list[int]
) -> None:
    rows: list[Life] = [
        (("g", *(value if i == column else None for i in range(1, 5))), t, 20 - t) for t, value in enumerate(values)
    ]
    stepped = SteppedChangelog(kernel(True, ((spec, type_),))).feed([ChangelogRelation(rows, TYPES)], cuts)
    assert [instant for instant, _ in stepped.points] == [0, 20]


def test_what_ends_and_comes_again_later_is_reported_again() -> None:
    rows: list[Life] = [(("g", 5, None, None, None), t, t + 3) for t in (0, 6)]
    for cuts in ([20], [2, 4, 20]):
        stepped = SteppedChangelog(kernel(True, CALLS[3:4])).feed([ChangelogRelation(rows, TYPES)], cuts)
        assert [(t, bag.total()) for t, bag in stepped.points] == [(0, 1), (3, 0), (6, 1), (9, 0)]


def test_a_sum_of_nothing_is_not_one_of_zeros() -> None:
    rows: list[Life] = [(("g", None, None, None, None), 0, 9), (("g", 0, None, None, None), 3, 6)]
    for cuts in ([20], [2, 4, 20]):
        stepped = SteppedChangelog(kernel(True, CALLS[3:4])).feed([ChangelogRelation(rows, TYPES)], cuts)
        assert [stepped.snapshot(t) for t in (0, 3, 6)] == [Counter({("g", v): 1}) for v in (None, 0, None)]


def test_equal_arguments_of_two_groups_are_two_entries_of_the_heaps() -> None:
    rows: list[Life] = [((group, 5, 0.5, None, "x"), 0, te) for group, te in (("g", 4), ("h", 8))]
    stepped = SteppedChangelog(kernel(True, ORDERED_ALONE)).feed([ChangelogRelation(rows, TYPES)], [2, 6])
    for instant in (1, 5):
        assert stepped.snapshot(instant) == by_definition(snapshot(rows, instant), True, ORDERED_ALONE)


def test_a_global_aggregate_has_its_row_from_the_origin_on() -> None:
    stepped = SteppedChangelog(kernel(False, CALLS[:1])).feed([ChangelogRelation([], TYPES)], [3, 5])
    assert stepped.points == [(0, Counter({(0,): 1}))]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_more_than_38_digits_is_an_error(sign: int) -> None:
    rows: list[Life] = [(("g", None, None, Decimal(sign) * Decimal("6e35"), None), t, 500) for t in range(2)]
    with pytest.raises(EvaluationError, match="38 digits"):
        SteppedChangelog(kernel(False, CALLS[8:9])).feed([ChangelogRelation(rows, TYPES)], [600])


@pytest.mark.parametrize("calls", [CALLS, WITHOUT_HEAPS])
def test_memory_is_that_of_the_groups_alive(calls: Calls) -> None:
    rows: list[Life] = [((f"group {t // 2}", t, 0.5, None, f"{t} " * 50), t, t + 5) for t in range(1_000)]
    stepped = SteppedChangelog(kernel(True, calls))
    stepped.feed([ChangelogRelation(rows, TYPES)], range(4, 104, 4))
    early = saved_bytes(stepped.state)
    stepped.feed([ChangelogRelation(rows, TYPES)], range(104, 1_020, 4))
    state = stepped.state
    assert saved_bytes(state) <= 1.1 * early and not stepped.alive and len(stepped.points) > 500
    assert state.groups.keys.slots.in_use == 0 == state.combinations.slots.in_use
    assert [pairs.slots.in_use for pairs in state.groups.pairs] == [0] * len(state.groups.pairs)
    assert state.groups.texts.columns[0].alive == 0 and len(state.groups.texts.columns[0].arena) < 10_000


def test_many_equal_rows_take_the_place_of_one() -> None:
    rows: list[Life] = [(("g", t % 3, None, None, None), t, t + 900) for t in range(1_000)]
    stepped = SteppedChangelog(kernel(True, ((AggregateSpec("min", 1, False), pa.int64()),)))
    stepped.feed([ChangelogRelation(rows, TYPES)], [100, 900])
    assert stepped.state.combinations.slots.in_use == 3
    stepped.feed([ChangelogRelation(rows, TYPES)], [1_897, 1_898, 1_899])
    assert stepped.points == [(0, Counter({("g", 0): 1}))]
    stepped.feed([ChangelogRelation(rows, TYPES)], [1_900, 1_901])
    assert stepped.points[1:] == [(1_899, Counter())]


def test_a_step_that_brings_nothing_new_leaves_a_sound_state() -> None:
    """Numbers that are taken for the rows of a step and given back at once have no rooms."""
    kernel = NegativeAggregateKernel(
        (), (AggregateSpec("max", 0, False),), pa.schema([("m", pa.int64())]), (pa.int64(),)
    )
    state, open_ids = kernel.start(), OpenIdPool()
    for step in (1, 2):
        rows = Changelog(pa.record_batch({"x": [7] * 100}), np.full(100, step), departed=0, frontier=step + 1)
        kernel.step(state, (rows,), Step(0, step + 1, 0, open_ids))
        kernel.check(state)
