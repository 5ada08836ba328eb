"""What a query sees of a shared join, said once more without haste: pair by pair."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import Delta, forever, no_open_ids
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.kernel import Step
from transom.kernels.shared_join.narrow import NarrowKernel
from transom.state.open_ids import OpenIdPool

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
STEP = Step(0, 1_000, 0, OpenIdPool())


def drawn(seed: int) -> Delta:
    random = np.random.default_rng(seed)
    age, ta = random.integers(-9, 10, 200), random.integers(20, 60, 200)
    texts = pa.array([None if i % 7 == 0 else f"row {i}" for i in range(200)])
    values = pa.record_batch({"number": pa.array(np.arange(200)), "text": texts, "age": pa.array(age)})
    return Delta(values, ta, forever(200), no_open_ids(200), frontier=1_000)


def end(begin: int, length: int) -> int:
    return FOREVER if begin + length >= FOREVER else begin + length


@pytest.mark.parametrize("begin", [None, 40])
@pytest.mark.parametrize(
    "lengths", [(5, 5), (3, 8), (8, 1), (1, 1), (100, 100), (UNBOUNDED, 4), (UNBOUNDED, UNBOUNDED)]
)
def test_a_pair_is_seen_while_both_of_its_rows_live(lengths: tuple[int, int], begin: int | None) -> None:
    pairs = drawn(sum(lengths) % 97)
    out = NarrowKernel((0, 1), 2, lengths, begin, SCHEMA).step(None, (pairs,), STEP)
    expected = []
    for i, (ta, age) in enumerate(zip(pairs.ta.tolist(), pairs.values.column("age").to_pylist(), strict=True)):
        left, right = (ta - age, ta) if age > 0 else (ta, ta + age)
        te = min(end(left, lengths[0]), end(right, lengths[1]))
        if te > ta and (begin is None or min(left, right) >= begin):
            expected.append((i, pairs.values.column("text")[i].as_py(), ta, te))
    reported = [column.to_pylist() for column in out.values.columns]
    assert list(zip(*reported, out.ta.tolist(), out.te.tolist(), strict=True)) == expected
    assert len(expected) > 3 and out.values.schema == SCHEMA


def test_nothing_is_seen_of_pairs_before_the_query_began() -> None:
    out = NarrowKernel((0,), 2, (9, 9), 100, SCHEMA.remove(1)).step(None, (drawn(1),), STEP)
    assert len(out) == 0 and out.values.schema == SCHEMA.remove(1)


def test_it_can_give_some_columns_under_other_names() -> None:
    pairs = drawn(2)
    whole = NarrowKernel((0, 1), 2, (4, 4), None, SCHEMA)
    schema = pa.schema([("y", pa.string()), ("x", pa.int64()), ("z", pa.string())])
    some = whole.picking([1, 0, 1], schema).step(None, (pairs,), STEP)
    all_of_them = whole.step(None, (pairs,), STEP)
    assert some.values == all_of_them.values.select([1, 0, 1]).rename_columns(["y", "x", "z"])
    assert some.te.tolist() == all_of_them.te.tolist()
