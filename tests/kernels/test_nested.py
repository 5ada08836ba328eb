"""Arrays and structs as the bytes that kernels carry: what is read from them is what was written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from transom.kernels.nested import decoded, encoded, held


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int64(), [0, -1, 2**63 - 1, -(2**63), None]),
        (pa.float64(), [0.0, -1.5, 2.5, float("-inf"), -5e-324, None]),
        (pa.decimal128(20, 2), [Decimal("-0.10"), Decimal("10000000000000000.00"), None]),
        (pa.string(), ["", "a", "a\0b", "\0", "ä", None]),
        (pa.list_(pa.float64()), [[-2.0], [], None]),
    ],
    ids=["integer", "float", "decimal", "text", "array"],
)
def test_elements_are_read_as_they_were_written(type_: pa.DataType, values: list[Any]) -> None:
    arrays = pa.array([values, [], None, values[::-1]], pa.list_(type_))
    found = decoded(encoded(arrays), arrays.type)
    assert found.type == arrays.type
    assert found.to_pylist() == arrays.to_pylist()


def test_an_empty_cut_of_arrays_holds_nothing() -> None:
    assert len(held(pa.array([[1], [2, 3]], pa.list_(pa.int32())).slice(2))) == 0
