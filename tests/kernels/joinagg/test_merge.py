"""Partial results of several partitions, merged in the order of time, against the definition on every snapshot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join.pairs import KINDS
from tests.kernels.joinagg.join_snapshots import CUTS, EXTREMES, LAST, SUMS, by_definition, relations, spec_of
from tests.kernels.joinagg.partial_results import Merged
from tests.kernels.stepping import Life, Relation, Stepped
from transom.core.errors import EvaluationError
from transom.kernels.joinagg.merge import MergeAggregateKernel, MergeCall
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall

CALLS = (*SUMS, *EXTREMES)


@settings(max_examples=80)
@given(st.data(), CUTS, st.sampled_from(sorted(KINDS)), st.integers(2, 3), st.booleans())
def test_the_partitions_together_say_what_one_would(
    data: st.DataObject, cuts: list[int], kind: str, inputs: int, restart: bool
) -> None:
    grouped = data.draw(st.lists(st.integers(0, inputs - 1), max_size=2, unique=True))
    calls = data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=len(CALLS)))
    given_rows = data.draw(relations(kind, inputs, rows=7, opened=True))
    spec = spec_of(kind, inputs, grouped, calls)
    stepped = Stepped(Merged(spec, data.draw(st.integers(2, 3))), restart=restart).feed(given_rows, cuts)
    for instant in range(LAST):
        assert stepped.snapshot(instant) == by_definition(spec, [each.lives for each in given_rows], instant), instant
    merged = stepped.state[0]
    partial = sum(int((state.totals.shown >= 0).sum()) for state in stepped.state[1:])
    assert merged.kept.slots.in_use == partial
    assert merged.totals.groups.slots.in_use == len(stepped.open)


def counted(*given: Life) -> list[Any]:
    """Partial rows of a COUNT(x), as (rows, count), merged over everything."""
    kernel = MergeAggregateKernel((), (MergeCall("count", pa.int64()),), pa.schema([("n", pa.int64())]))
    relation = Relation(list(given), (pa.int64(), pa.int64()))
    return Stepped(kernel).feed([relation], [4, 30]).all_lives()


def test_without_partial_rows_there_is_a_row_from_the_origin_on() -> None:
    assert counted() == [((0,), 0, None)]


def test_what_leaves_one_partition_and_enters_another_changes_nothing() -> None:
    assert counted(((3, 2), 1, 5), ((4, 2), 5, 9)) == [((0,), 0, 1), ((0,), 9, None), ((2,), 1, 9)]


def test_counts_of_the_partitions_may_be_too_many_together() -> None:
    with pytest.raises(EvaluationError, match="join has more than"):
        counted(((2**62, 0), 1, 5), ((2**62, 0), 2, 5))


def test_a_value_in_place_of_another_changes_the_exact_sum() -> None:
    """One row leaves the partition as the other comes: it has as many rows and values as before."""
    types = (pa.int64(), pa.float64())
    schema = pa.schema([("s", pa.float64())])
    spec = JoinAggregateSpec((types, types), ((0,), (0,)), None, (), (JoinCall("sum", 0, 1),), schema)
    left: list[Life] = [((1, 1.0), 0, 5), ((1, 2.5), 5, 9)]
    right: list[Life] = [((1, None), 0, 20)]
    stepped = Stepped(Merged(spec, 2)).feed([Relation(left, types), Relation(right, types)], [3, 30])
    assert stepped.all_lives() == [((1.0,), 0, 5), ((2.5,), 5, 9), ((None,), 9, None)]
