"""Random input: typed rows with NULLs, disorder within the bound, now and then a late row, and a cut into batches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.run_locally import Push, Rows
from transom.core.time import to_datetime

Draw = Callable[[st.SearchStrategy[Any]], Any]

KEYS = st.sampled_from([0, 1, 1, 2, None])
TEXTS = st.sampled_from(["a", "b", "", "ab", None])
NUMBERS = st.sampled_from([0, 1, 2, 3, 5, -4, 2_147_483_000, None])
FLOATS = st.sampled_from([0.1, 0.2, 0.5, -0.0, 1e16, -1e16, 1.0, float("nan"), None, float("inf"), 3e-310])
DECIMALS = st.sampled_from([Decimal("0.10"), Decimal("1.00"), Decimal("-2.50"), Decimal("9999.99"), None])
SECONDS = st.integers(0, 20)


def in_source_order(draw: Draw, count: int, bound: int) -> list[int]:
    """Times in seconds in the order in which rows arrive; a delay above the bound may make a row late."""
    times = draw(st.lists(SECONDS, min_size=count, max_size=count))
    delays = draw(st.lists(st.sampled_from([0, 0, *range(bound + 1), bound + 4]), min_size=count, max_size=count))
    order = sorted(range(count), key=lambda i: times[i] + delays[i])
    return [times[i] for i in order]


def rows_of(draw: Draw, base: int, bound: int, values: st.SearchStrategy[tuple[Any, ...]], least: int) -> Rows:
    count = draw(st.integers(least, 12))
    times = in_source_order(draw, count, bound)
    start = to_datetime(base)
    return [(start + timedelta(seconds=second), *draw(values)) for second in times]


def inputs(draw: Draw, bounds: dict[str, int]) -> dict[str, Rows]:
    base = draw(st.sampled_from([0, 1_700_000_000_000_000, -7_000_000]))
    row = st.tuples(KEYS, TEXTS, NUMBERS, FLOATS, DECIMALS)
    given = {name: rows_of(draw, base, bounds[name], row, 5) for name in ("s", "t", "u")}
    given["r"] = rows_of(draw, base, 1, st.tuples(st.sampled_from(["+", "+", "+", "-", "?"]), KEYS, TEXTS), 3)
    given["p"] = rows_of(draw, base, 0, st.tuples(KEYS, TEXTS), 3)
    given["names"] = [(0, "a"), (1, "b"), (1, "c"), (None, "d"), (2, None)]
    return given


def cut(draw: Draw, given: dict[str, Rows]) -> list[Push]:
    """The inputs in batches of any size, in any interleaving, each in its own order."""
    rest = {name: list(rows) for name, rows in given.items()}
    size = draw(st.sampled_from([1, 2, 5, 100]))
    pushes = []
    while any(rest.values()):
        name = draw(st.sampled_from([name for name in rest if rest[name]]))
        count = draw(st.integers(1, size))
        pushes.append(Push(name, rest[name][:count], end=len(rest[name]) <= count and draw(st.booleans())))
        rest[name] = rest[name][count:]
    return pushes
