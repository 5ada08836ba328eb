from __future__ import annotations

import pyarrow as pa
import pytest

from transom.core.schema import Column, Schema
from transom.program.batch_size import FIRST_ROWS, LEAST_ROWS, MOST_BYTES, MOST_ROWS, BatchSize, most_rows


def sizes(price: float, row: float, batches: int, backlog: int, seconds: float = 5.0) -> list[int]:
    """The rows of batches with a price of their own and of a row, as long as there are any."""
    size, rows_of_batches = BatchSize(seconds), []
    for _ in range(batches):
        rows = min(size.rows, backlog)
        backlog -= rows
        rows_of_batches.append(rows)
        size = size.after(rows, price + row * rows)
    return rows_of_batches


def test_batches_grow_while_a_query_is_behind() -> None:
    """The first batch starts everything and says nothing; then the price of a batch becomes a small part of it."""
    rows_of_batches = sizes(price=0.5, row=2e-6, batches=8, backlog=1 << 30)
    assert (
        rows_of_batches[0] == FIRST_ROWS
        and rows_of_batches[1] == 4 * FIRST_ROWS
        and rows_of_batches == sorted(rows_of_batches)
    )
    assert 4.0 < 0.5 + 2e-6 * rows_of_batches[-1] < 6.0


def test_batches_shrink_to_the_latency_that_is_wanted() -> None:
    rows_of_batches = sizes(price=0.05, row=2e-6, batches=12, backlog=1 << 30, seconds=0.2)
    assert 0.1 < 0.05 + 2e-6 * rows_of_batches[-1] < 0.3
    assert sizes(price=9.0, row=1e-3, batches=12, backlog=1 << 30, seconds=0.2)[-1] == LEAST_ROWS


def test_a_batch_that_is_not_full_says_nothing() -> None:
    size = BatchSize(5.0).after(FIRST_ROWS, 9.0).after(4 * FIRST_ROWS, 1.0)
    assert size.after(7, 0.4) == size and size.after(7, 60.0) == size


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("columns", "most"),
    [(1, MOST_ROWS), (200, MOST_BYTES // 1_600), (1_000_000, LEAST_ROWS)],
)
def test_wide_rows_are_fewer(columns: int, most: int) -> None:
    schema = Schema(tuple(Column(f"c{i}", pa.int64()) for i in range(columns)))
    assert most_rows(schema) == most
    assert BatchSize(5.0, most=most).after(FIRST_ROWS, 0.1).rows == min(4 * FIRST_ROWS, most)
