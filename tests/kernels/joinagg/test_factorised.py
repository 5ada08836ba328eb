"""The factorised join-aggregate against the definition on every snapshot; what is over is forgotten."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.aggregate.definition import TYPES
from tests.kernels.join.pairs import KINDS
from tests.kernels.joinagg.join_snapshots import CUTS, EXTREMES, LAST, SUMS, by_definition, relations, spec_of
from tests.kernels.joinagg.partial_results import Merged
from tests.kernels.stepping import Life, Relation, Stepped
from transom.core.errors import EvaluationError
from transom.core.time import FOREVER
from transom.kernels.joinagg.factorised import FactorisedKernel
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall
from transom.runtimes.reference.history import grouped as one_of_equals

CALLS = (*SUMS, *EXTREMES)


@settings(max_examples=120)
@given(st.data(), CUTS, st.sampled_from(sorted(KINDS)), st.integers(2, 4), st.booleans())
def test_every_snapshot_of_the_join_is_aggregated(
    data: st.DataObject, cuts: list[int], kind: str, inputs: int, restart: bool
) -> None:
    grouped = data.draw(st.lists(st.integers(0, inputs - 1), max_size=2, unique=True))
    calls = data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=len(CALLS)))
    given_rows = data.draw(relations(kind, inputs, rows=8 if inputs == 2 else 5, opened=True))
    spec = spec_of(kind, inputs, grouped, calls)
    kernel: Any = FactorisedKernel(spec) if grouped else Merged(spec, 1)
    stepped = Stepped(kernel, restart=restart).feed(given_rows, cuts)
    for instant in range(LAST):
        assert stepped.snapshot(instant) == by_definition(spec, [each.lives for each in given_rows], instant), instant
    if grouped:
        check_forgotten(stepped, spec, given_rows)


def check_forgotten(stepped: Stepped, spec: JoinAggregateSpec, given_rows: list[Relation]) -> None:
    """What is kept is what is alive and has a key."""
    width = len(spec.key_columns[0])
    alive = [
        (i, one_of_equals(values[:width]))
        for i, each in enumerate(given_rows)
        for values, _, te in each.lives
        if (te is None or te >= LAST) and None not in values[:width]
    ]
    state = stepped.state
    assert state.rows.slots.in_use == len(alive)
    assert state.bundles.keys.slots.in_use == len({key for _, key in alive})
    assert state.bundles.index.slots.in_use >= len(set(alive))
    assert state.totals.groups.slots.in_use == len(stepped.open)
    assert stepped.open_ids.in_use == len(stepped.open) + sum(len(each.waiting) for each in given_rows)
    if not alive:
        parts = [part.keys.slots.in_use for part in state.rows.parts]
        assert state.entries.slots.in_use == 0 and parts == [0] * len(parts)


def grouped_by_key(*calls: JoinCall, types: tuple[pa.DataType, ...], results: tuple[pa.DataType, ...]) -> Any:
    schema = pa.schema([("k", types[0]), *((f"c{i}", type_) for i, type_ in enumerate(results))])
    return FactorisedKernel(JoinAggregateSpec((types, types), ((0,), (0,)), None, ((0, 0),), calls, schema))


def test_a_row_costs_the_same_whatever_its_matches() -> None:
    """Nobody could go through the matches one by one: there are 10^10 of them."""
    count = 100_000
    lives: list[Life] = [((1, i), 0, 10) for i in range(count)]
    kernel = grouped_by_key(
        JoinCall("count"), JoinCall("sum", 1, 1), JoinCall("max", 0, 1), types=(pa.int64(), pa.int64()),
        results=(pa.int64(), pa.decimal128(38, 0), pa.int64()),
    )  # fmt: skip
    stepped = Stepped(kernel).feed([Relation(lives, (pa.int64(), pa.int64()))] * 2, [5, 20])
    total = Decimal(count * (count - 1) // 2 * count)
    assert stepped.all_lives() == [((1, count * count, total, count - 1), 0, 10)]


def test_the_exact_sum_of_what_counts_many_times() -> None:
    types = (pa.int64(), pa.float64())
    left: list[Life] = [((1, value), 0, FOREVER) for value in (1e300, 0.1, -1e300, 5e-324)]
    right: list[Life] = [((1, None), t, FOREVER) for t in range(1, 1_001)]
    kernel = grouped_by_key(JoinCall("sum", 0, 1), JoinCall("avg", 0, 1), types=types, results=(pa.float64(),) * 2)
    stepped = Stepped(kernel).feed([Relation(left, types), Relation(right, types)], [500, 2_000])
    assert stepped.snapshot(1_500) == Counter(
        {(1, float(1_000 * Fraction(0.1)), float(1_000 * Fraction(0.1)) / 4_000): 1}
    )


def test_a_sum_beyond_38_digits_is_an_error_only_if_it_is_asked_for() -> None:
    wide = pa.decimal128(38, 0)
    kernel = grouped_by_key(JoinCall("sum", 0, 1), types=(pa.int64(), wide), results=(wide,))
    large: list[Life] = [((1, Decimal(9 * 10**37)), t, FOREVER) for t in (0, 1)]
    stepped = Stepped(kernel).feed([Relation(large, (pa.int64(), wide)), Relation([], (pa.int64(), wide))], [5])
    assert not stepped.all_lives()  # no match, no sum
    with pytest.raises(EvaluationError, match="38 digits"):
        Stepped(kernel).feed([Relation(large, (pa.int64(), wide)), Relation(large, (pa.int64(), wide))], [5])


def test_more_join_rows_than_a_count_can_tell_are_an_error() -> None:
    types = (pa.int64(),)
    lives: list[Life] = [((1,), 0, 9) for _ in range(2**13)]
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    spec = JoinAggregateSpec((types,) * 5, ((0,),) * 5, None, ((0, 0),), (JoinCall("count"),), schema)
    with pytest.raises(EvaluationError, match="join has more than"):
        Stepped(FactorisedKernel(spec)).feed([Relation(lives, types)] * 5, [5])


def test_keys_groups_and_texts_are_freed_and_used_again() -> None:
    lives: list[Life] = [((t, f"group {t}", f"{t} " * 50), t, t + 5) for t in range(1_000)]
    types = (pa.int64(), pa.string(), pa.string())
    schema = pa.schema([("g", pa.string()), ("h", pa.string()), ("m", pa.string()), ("s", pa.int64())])
    calls = (JoinCall("max", 1, 2), JoinCall("count", 0, 2))
    spec = JoinAggregateSpec((types, types), ((0,), (0,)), None, ((0, 1), (1, 1)), calls, schema)
    opened = frozenset(range(0, 1_000, 2))
    given_rows = [Relation(lives, types, opened), Relation(lives, types)]
    stepped = Stepped(FactorisedKernel(spec)).feed(given_rows, range(4, 1_020, 4))
    state = stepped.state
    assert state.rows.slots.in_use == state.bundles.index.slots.in_use == state.totals.groups.slots.in_use == 0
    assert state.bundles.keys.slots.in_use == state.entries.slots.in_use == stepped.open_ids.in_use == 0
    assert len(state.totals.rows) <= 512 and len(state.row_bundle) <= 128
    assert state.rows.texts.columns[0].alive == 0 and len(stepped.all_lives()) == 1_000


def test_many_groups_under_a_key_make_room_as_they_come() -> None:
    """More groups than there is room for at first, at one instant and within one event."""
    types = TYPES[:2]
    left: list[Life] = [(("k", i), 0, 9) for i in range(300)]
    right: list[Life] = [(("k", i), 1, 9) for i in range(2)]
    schema = pa.schema([("g", pa.int64()), ("h", pa.int64()), ("n", pa.int64()), ("m", pa.int64())])
    calls = (JoinCall("count"), JoinCall("min", 1, 1))
    spec = JoinAggregateSpec((types, types), ((0,), (0,)), None, ((0, 1), (1, 1)), calls, schema)
    stepped = Stepped(FactorisedKernel(spec)).feed([Relation(left, types), Relation(right, types)], [20])
    assert stepped.snapshot(1) == Counter({(i, j, 1, j): 1 for i in range(300) for j in range(2)})
    assert not stepped.snapshot(9) and stepped.state.entries.slots.in_use == 0
