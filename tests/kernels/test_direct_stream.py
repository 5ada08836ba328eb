"""Changes emitted without counting are those that are counted, in the same order."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import (
    GIVEN_AGAIN,
    MISSING,
    NAMELESS,
    NO_OPEN_ID,
    TAKEN_BACK,
    Delta,
    Ends,
    Halves,
    no_open_ids,
)
from transom.core.schema import BOOLEAN, DOUBLE, INTEGER, VARCHAR, Schema
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.to_stream.direct_stream import AliveRows, DirectStreamKernel
from transom.kernels.to_stream.to_stream import ToStreamKernel
from transom.pipeline.memory import state_rows
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.open_ids import OpenIdPool

DECIMAL = pa.decimal128(38, 2)
SCHEMAS = {
    "numbers": Schema.of(("a", INTEGER), ("b", INTEGER)),
    "texts": Schema.of(("a", VARCHAR), ("b", INTEGER)),
    "floats": Schema.of(
        ("a", DOUBLE),
    ),
    "decimals": Schema.of(("a", DECIMAL), ("b", BOOLEAN), ("c", VARCHAR)),
}
VALUES: dict[pa.DataType, tuple[Any, ...]] = {
    INTEGER: (0, 1, 2, -5, None),
    VARCHAR: ("", "a", "ab", "a\0", "long text one", "long text two", "long text one,", "long teXt one", "é", None),
    DOUBLE: (0.5, -0.0, None, float("nan")),
    DECIMAL: (Decimal("0.50"), Decimal("-0.5"), Decimal(2**70), Decimal(2**70 + 1), None),
    BOOLEAN: (True, False, None),
}


def delta(random: Random, schema: Schema, before: int, frontier: int, opened: list[int], last: bool) -> Delta:
    """Rows that begin, some of them open, and ends of rows that were `opened` earlier: at last, of all of them."""
    count = random.randint(0, 12)
    arrays = [pa.array([random.choice(VALUES[c.type]) for _ in range(count)], c.type) for c in schema]
    ta = np.array([random.randrange(before, frontier) for _ in range(count)], dtype=np.int64)
    te = np.array([t + random.randint(1, 9) if random.random() < 0.9 else FOREVER for t in ta], dtype=np.int64)
    open_id = no_open_ids(count).copy()
    closed = [number for number in opened if last or random.random() < 0.3]
    opened[:] = [number for number in opened if number not in closed]
    ends = Ends.of(np.array(closed, dtype=np.int64), np.array([random.randrange(before, frontier) for _ in closed]))
    if not last:
        free = [number for number in range(200) if number not in opened]  # one that was closed may be in use again
        for i in np.flatnonzero(te == FOREVER):
            open_id[i] = free.pop(0)
            opened.append(int(open_id[i]))
    values = pa.RecordBatch.from_arrays(arrays, schema=schema.arrow())
    return Delta(values, ta, te, open_id, frontier, ends if closed else Ends())


@pytest.mark.parametrize("change", ["istream", "dstream", "changes"])
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_counting_gives(change: str, kind: str, seed: int) -> None:
    random, schema = Random(f"{change} {kind} {seed}"), SCHEMAS[kind].arrow()
    direct, counted = DirectStreamKernel(change, schema), ToStreamKernel(change, schema)
    mine, theirs = direct.start(), counted.start()
    opened: list[int] = []
    reported = 0
    before = 0
    for i in range(60):
        frontier = before + random.randint(1, 6) if i < 59 else FOREVER
        rows = delta(random, SCHEMAS[kind], before, min(frontier, before + 6), opened, last=i == 59)
        if random.random() < 0.3:  # often rows come in the order of time
            order = np.argsort(rows.ta, kind="stable")
            rows = replace(rows, ta=rows.ta[order], te=rows.te[order], open_id=rows.open_id[order])
        step = Step(before, frontier, 0, OpenIdPool())
        found, expected = direct.step(mine, (rows,), step), counted.step(theirs, (rows,), step)
        assert str(found.values.to_pylist()) == str(expected.values.to_pylist())
        assert found.t.tolist() == expected.t.tolist() and found.values.schema == expected.values.schema
        reported += len(found)
        if random.random() < 0.2:
            mine = codec.decode(codec.encode(mine), STATE_CLASSES)
        before = frontier
    assert reported > 100 and isinstance(mine, AliveRows) and state_rows(mine) == 0


@pytest.mark.parametrize("first", [(0, 1, None), (-4, 0, 1, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_rows_made_of_two_are_compared_by_what_they_are_made_of(seed: int, first: tuple[int | None, ...]) -> None:
    """Rows with the same name are not looked at twice, those of other names may be equal, and some miss a half.

    Where the first column is NULL in these alone, they are put in order by the first one of the other half.
    """
    random = Random(seed)
    schema = Schema.of(("a", INTEGER), ("b", VARCHAR), ("c", INTEGER), ("d", VARCHAR)).arrow()
    pool = [(random.choice(first), random.choice(VALUES[VARCHAR])) for _ in range(5)]
    sides = np.array([0, 0, 1, 1], dtype=np.uint8)
    direct, counted = DirectStreamKernel("changes", schema), ToStreamKernel("changes", schema)
    mine, theirs = direct.start(), counted.start()
    for before in range(0, 60, 3):
        names = np.array([[random.choice((MISSING, *range(5))) for _ in range(20)] for _ in range(2)])
        halves = [[pool[name] if name != MISSING else (None, None) for name in side] for side in names.tolist()]
        values = pa.RecordBatch.from_pylist(
            [dict(zip("abcd", left + right, strict=True)) for left, right in zip(*halves, strict=True)], schema
        )
        ta = np.array([random.randrange(before, before + 3) for _ in range(20)], dtype=np.int64)
        te = ta + np.array([random.randint(1, 6) for _ in ta])
        if None in first and random.random() < 0.3:  # of some nobody says what they are made of
            names[:, ::3] = NAMELESS
        rows = Delta(values, ta, te, no_open_ids(20), before + 3, halves=Halves(sides, names))
        step = Step(before, before + 3, 0, OpenIdPool())
        found, expected = direct.step(mine, (rows,), step), counted.step(theirs, (replace(rows, halves=None),), step)
        assert found.values.to_pylist() == expected.values.to_pylist() and found.t.tolist() == expected.t.tolist()


@pytest.mark.parametrize("change", ["istream", "dstream", "changes"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_many_rows_of_one_instant(change: str, kind: str) -> None:
    """So many that they are sorted by words first; some leave as equal ones enter."""
    random, schema = Random(f"{change} {kind}"), SCHEMAS[kind].arrow()
    count = 300
    arrays = [pa.array([random.choice(VALUES[c.type]) for _ in range(count)], c.type) for c in SCHEMAS[kind]]
    ta, te = np.repeat([1, 4], count // 2), np.repeat([4, 7], count // 2)
    rows = Delta(pa.RecordBatch.from_arrays(arrays, schema=schema), ta, te, no_open_ids(count), 9)
    found, expected = (
        kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))  # type: ignore[arg-type]
        for kernel in (DirectStreamKernel(change, schema), ToStreamKernel(change, schema))
    )
    assert str(found.values.to_pylist()) == str(expected.values.to_pylist()) and len(found)
    assert found.t.tolist() == expected.t.tolist()


@pytest.mark.parametrize("change", ["istream", "dstream", "changes"])
def test_a_row_that_turns_out_to_stay_never_leaves(change: str) -> None:
    """It was open, and its end is the end of time: nothing is said of it any more, and nothing is kept."""
    schema = SCHEMAS["numbers"].arrow()
    kernel, open_ids = DirectStreamKernel(change, schema), np.array([3, NO_OPEN_ID])
    values = pa.RecordBatch.from_pylist([{"a": 1, "b": 2}, {"a": 3, "b": 4}], schema)
    state = kernel.start()
    kernel.step(
        state, (Delta(values, np.array([1, 1]), np.array([FOREVER, 7]), open_ids, 5),), Step(0, 5, 0, OpenIdPool())
    )
    stays = Ends.of(np.array([3]), np.array([FOREVER]))
    rows = Delta(values[:0], np.array([], np.int64), np.array([], np.int64), no_open_ids(0), FOREVER, stays)
    out = kernel.step(state, (rows,), Step(5, FOREVER, 0, OpenIdPool()))
    assert out.t.tolist() == ([] if change == "istream" else [7]) and state_rows(state) == 0


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_given_twice_need_not_be_kept(seed: int) -> None:
    """When they begin and when they are over: the changes are those of rows that end by their open row ids."""
    random, schema = Random(seed), SCHEMAS["texts"].arrow()
    kernel = DirectStreamKernel("changes", schema)
    keeping, twice = kernel.start(), kernel.start()
    opened: list[int] = []
    shown: dict[int, Any] = {}
    for before in range(0, 60, 3):
        frontier, last = before + 3, before == 57
        rows = delta(random, SCHEMAS["texts"], before, frontier, opened, last)
        step = Step(before, frontier, 0, OpenIdPool())
        closed, ends = rows.ends.arrays()
        over = pa.RecordBatch.from_pylist([shown.pop(number) for number in closed.tolist()], schema)
        is_open = rows.open_id != NO_OPEN_ID
        values = rows.values.to_pylist()
        shown |= {int(rows.open_id[i]): values[i] for i in np.flatnonzero(is_open)}
        again = Delta(
            pa.concat_batches([over, rows.values]),
            np.concatenate([np.full(len(over), before - 9), rows.ta]),
            np.concatenate([ends, rows.te]),
            np.concatenate([np.full(len(over), TAKEN_BACK), np.where(is_open, GIVEN_AGAIN, NO_OPEN_ID)]),
            frontier,
        )
        found, expected = kernel.step(twice, (again,), step), kernel.step(keeping, (rows,), step)
        assert found.values.to_pylist() == expected.values.to_pylist() and found.t.tolist() == expected.t.tolist()
        assert twice.slots.in_use == keeping.slots.in_use - len(opened)


def test_columns_pass_as_they_are_where_nothing_can_cancel() -> None:
    """No two rows at one instant, none that begins as another ends: not even copied."""
    schema = SCHEMAS["texts"].arrow()
    values = pa.RecordBatch.from_arrays([pa.array(["x", "y"]), pa.array([1, 1], INTEGER)], schema=schema)
    kernel = DirectStreamKernel("istream", schema)
    rows = Delta(values, np.array([3, 5]), np.array([4, 9]), no_open_ids(2), 8)
    state = kernel.start()
    out = kernel.step(state, (rows,), Step(0, 8, 0, OpenIdPool()))
    buffers = [[buffer and buffer.address for buffer in column.buffers()] for column in (*values, *out.values)]
    assert buffers[:2] == buffers[2:] and out.t.tolist() == [3, 5] and state.slots.in_use == 1
