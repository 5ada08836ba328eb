"""A row for every element: as lifetimes all of them end with their row, as negative tuples all depart with it."""

from __future__ import annotations

import pyarrow as pa

from tests.kernels.stepping import ints
from transom.core.delta import NO_OPEN_ID, Changelog, Delta, Ends
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.nested import encoded
from transom.kernels.unnest.unnest import UnnestKernel
from transom.plan.expression import ColumnRef
from transom.state.open_ids import OpenIdPool

KERNEL = UnnestKernel(ColumnRef(0, pa.list_(pa.int64()), "a"), pa.schema([("a", pa.binary()), ("x", pa.int64())]))
ROWS = pa.record_batch({"a": encoded(pa.array([[5, 6, 7], [], [8], [5, 9]]))})
STEP = Step(0, 5, 0, OpenIdPool())


def test_elements_have_the_end_of_their_row() -> None:
    ends = Ends.of(ints([4]), ints([2]))
    given = Delta(
        ROWS, ints([1, 1, 2, 3]), ints([FOREVER, 9, FOREVER, 8]), ints([7, NO_OPEN_ID, 3, NO_OPEN_ID]), 5, ends
    )  # fmt: skip
    out = KERNEL.step(None, (given,), STEP)
    assert isinstance(out, Delta) and out.ends is ends
    assert out.values.column("x").to_pylist() == [5, 6, 7, 8, 5, 9]
    assert out.ta.tolist() == [1, 1, 1, 2, 3, 3]
    assert out.te.tolist() == [FOREVER] * 4 + [8, 8]
    assert out.open_id.tolist() == [7, 7, 7, 3, NO_OPEN_ID, NO_OPEN_ID]


def test_elements_depart_with_their_row() -> None:
    out = KERNEL.step(None, (Changelog(ROWS, ints([1, 1, 2, 3]), departed=3, frontier=5),), STEP)
    assert isinstance(out, Changelog)
    assert out.values.column("x").to_pylist() == [5, 6, 7, 8, 5, 9]
    assert (out.t.tolist(), out.departed) == ([1, 1, 1, 2, 3, 3], 4)
