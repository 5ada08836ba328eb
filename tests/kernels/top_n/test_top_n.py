"""Rows by their place in an order, many at once: against sorting the rows alive at every instant."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import Changelog, Delta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.negative.top_n import NegativeTopNKernel
from transom.kernels.top_n.row_order import RowOrder
from transom.kernels.top_n.top_n import Places, TopNKernel
from transom.plan.algebra import SortKey
from transom.state.open_ids import OpenIdPool

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
NUMBERED = pa.schema([*SCHEMA, pa.field("n", pa.int64())])
ORDER = RowOrder((0,), (SortKey(1, descending=True),))
LONG = "the same first letters "
Value = tuple[int | None, int | None, str]
Alive = list[tuple[Value, int, int]]


def made(random: Random, count: int, lasting: bool) -> Alive:
    """Values, beginnings and ends; many values are equal, and many rows share an instant."""
    found = []
    for _ in range(count):
        value = (random.choice([1, 1, 2, None]), random.choice([*range(40), None]), LONG + random.choice("abc"))
        ta = random.randrange(60)
        found.append((value, ta, FOREVER if lasting else ta + random.randint(1, 40)))
    return sorted(found, key=lambda row: row[1])


def snapshot(rows: Alive, at: int, places: Places) -> Counter[tuple[object, ...]]:
    """By the definition."""
    alive = [value for value, ta, te in rows if ta <= at < te]
    found: Counter[tuple[object, ...]] = Counter()
    for k in {value[0] for value in alive}:
        mine = sorted((v for v in alive if v[0] == k), key=lambda v: (v[1] is None, -(v[1] or 0), v[2]))
        before = 0
        for group, (_, tied) in enumerate(groupby(mine, key=lambda v: v[1]), 1):
            rank, ties = before + 1, list(tied)
            for value in ties:
                before += 1
                number = {"row_number": before, "rank": rank, "dense_rank": group}[places.function]
                if places.least <= number <= (places.most or FOREVER):
                    found[(*value, number) if places.numbered else value] += 1
    return found


def batch(values: list[Value]) -> pa.RecordBatch:
    columns = [pa.array([value[i] for value in values], SCHEMA.types[i]) for i in range(3)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def check_direct(rows: Alive, places: Places, random: Random) -> None:
    kernel = TopNKernel(ORDER, places, NUMBERED if places.numbered else SCHEMA)
    state, pool = kernel.start(), OpenIdPool()
    shown: list[tuple[tuple[object, ...], int, int]] = []
    open_rows: dict[int, int] = {}
    before = 0
    while before < 105:
        frontier = before + random.randint(1, 12)
        part = [row for row in rows if before <= row[1] < frontier]
        ta, te = (np.array([row[i] for row in part], dtype=np.int64) for i in (1, 2))
        delta = Delta(batch([row[0] for row in part]), ta, te, np.full(len(part), -1), frontier)
        out = kernel.step(state, (delta,), Step(before, frontier, 0, pool))
        for open_id, end in zip(*out.ends.arrays(), strict=True):
            place = open_rows.pop(int(open_id))
            shown[place] = (*shown[place][:2], int(end))
        for row, begins, ends, open_id in zip(out.values.to_pylist(), out.ta, out.te, out.open_id, strict=True):
            if open_id >= 0:
                open_rows[int(open_id)] = len(shown)
            shown.append((tuple(row.values()), int(begins), int(ends)))
        pool.finish_step()
        state.tally.check()
        state.check()
        kernel.check(state)
        before = frontier
    for at in range(105):
        assert Counter(value for value, ta, te in shown if ta <= at < te) == snapshot(rows, at, places), (places, at)
    if not places.lasting:
        assert state.tally.keys.slots.in_use == state.partitions.slots.in_use == state.slots.in_use == 0


def check_negative(rows: Alive, places: Places) -> None:
    kernel = NegativeTopNKernel(ORDER, places, NUMBERED if places.numbered else SCHEMA)
    state, alive = kernel.start(), Counter[tuple[object, ...]]()
    for at in range(105):
        departed = [row[0] for row in rows if row[2] == at]
        arrived = [row[0] for row in rows if row[1] == at]
        t = np.full(len(departed) + len(arrived), at)
        change = Changelog(batch(departed + arrived), t, len(departed), at + 1)
        out = kernel.step(state, (change,), Step(at, at + 1, 0, OpenIdPool()))
        values = [tuple(row.values()) for row in out.values.to_pylist()]
        alive.subtract(values[: out.departed])
        assert min(alive.values(), default=0) >= 0
        alive.update(values[out.departed :])
        assert +alive == snapshot(rows, at, places), (places, at)


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("numbered", [False, True])
def test_the_rows_with_a_place_are_those_of_the_sorted_snapshot(function: str, numbered: bool) -> None:
    random = Random(f"{function} {numbered}")
    for least, most in ((1, 1), (1, 5), (3, 20), (2, None), (1, 60)):
        places = Places(function, least, most, numbered)
        rows = made(random, 90, lasting=False)
        check_direct(rows, places, random)
        check_negative(rows, places)
        if most is not None:
            check_direct(made(random, 90, lasting=True), Places(function, least, most, numbered, True), random)


def test_of_rows_that_stay_those_with_a_place_are_kept_alone() -> None:
    kernel = TopNKernel(RowOrder((), (SortKey(1),)), Places("row_number", 1, 3, lasting=True), SCHEMA)
    state, pool, random = kernel.start(), OpenIdPool(), Random(1)
    for at in range(20):
        values: list[Value] = [(1, random.randrange(1000), "a") for _ in range(100)]
        ends = np.full(100, FOREVER)
        delta = Delta(batch(values), np.full(100, at), ends, np.full(100, -1), at + 1)
        kernel.step(state, (delta,), Step(at, at + 1, 0, pool))
        pool.finish_step()
        assert state.tally.keys.slots.in_use <= 3 and state.tally.row_slots.in_use == 0
