from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.pipeline.spread_queries import laid_out
from transom.core.delta import StreamDelta
from transom.kernels.columns import empty_batch
from transom.pipeline.pushed_prefix import apply_prefix, passed, rows_by_partition
from transom.planner.fragments import Exchange


def exchange_of(text: str) -> Exchange:
    """The first exchange of a query over s (ts, k, x)."""
    return laid_out(text).fragments[0].exchanges[0]


def s(*rows: tuple[int | None, int | None]) -> pa.RecordBatch:
    schema = laid_out("SELECT * FROM s [NOW]").sources["s"].columns.arrow()
    columns = [pa.array([0] * len(rows), schema.types[0])]
    columns += [pa.array([row[i] for row in rows], schema.types[i + 1]) for i in range(2)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


FILTERED = exchange_of("SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] WHERE x > 1 GROUP BY k")


def test_rows_that_a_filter_takes_away_do_not_come_in_and_null_is_not_true() -> None:
    values, positions = passed(FILTERED.prefix, s((7, 2), (8, 1), (9, None), (None, 5)))
    assert values.to_pylist() == [{"k": 7}, {"k": None}]
    assert positions is not None and positions.tolist() == [0, 3]


def test_positions_through_two_filters_are_those_of_the_first_rows() -> None:
    first = FILTERED.prefix[0]
    second = exchange_of("SELECT k, x, COUNT(*) AS n FROM s [RANGE 5 SECONDS] WHERE k < 9 GROUP BY k, x").prefix[0]
    values, positions = passed([first, second], s((7, 1), (7, 3), (9, 3), (8, 0), (8, 4)))
    assert positions is not None and positions.tolist() == [1, 4]
    assert values.column("k").to_pylist() == [7, 8]


def test_where_all_pass_nobody_makes_a_list_of_them() -> None:
    values, positions = passed(FILTERED.prefix, s((7, 2), (8, 3)))
    assert positions is None and values.to_pylist() == [{"k": 7}, {"k": 8}]


def test_times_go_with_their_rows() -> None:
    rows = StreamDelta(s((7, 2), (8, 1), (9, 3)), np.array([3, 4, 4]), 5)
    counted: list[tuple[int, int]] = []
    found = apply_prefix(FILTERED.prefix, rows, lambda operator, came, went: counted.append((came, went)))
    assert counted == [(3, 2), (2, 2)]
    assert (found.values.to_pylist(), found.t.tolist(), found.frontier) == ([{"k": 7}, {"k": 9}], [3, 4], 5)
    assert apply_prefix((), rows, lambda *counts: None) is rows
    none = StreamDelta(empty_batch(rows.values.schema), rows.t[:0], 9)
    assert len(apply_prefix(FILTERED.prefix, none, lambda *counts: None)) == 0


def test_places_are_positions_of_the_rows_as_they_were_sent() -> None:
    rows = s(*((k % 10, k % 3) for k in range(60)))
    found, wanted = rows_by_partition(FILTERED, rows, 4)
    assert found is not None and wanted is not None
    assert (
        sorted(at for part in found for at in part.tolist()) == wanted.tolist() == [k for k in range(60) if k % 3 > 1]
    )
    homes = [{rows.column("k")[int(at)].as_py() for at in part} for part in found]
    assert sum(map(len, homes)) == len(set().union(*homes)) == 10, "a key is in one partition"


def test_without_keys_nothing_tells_where_rows_go_but_what_comes_in_is_known() -> None:
    anywhere = exchange_of("SELECT x FROM s [RANGE 5 SECONDS] WHERE x > 1")
    found, wanted = rows_by_partition(anywhere, s((7, 2), (8, 1)), 4)
    assert found is None and wanted is not None and wanted.tolist() == [0]
    assert rows_by_partition(anywhere, s((7, 2)), 4) == (None, None)
