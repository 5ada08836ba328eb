"""Random input: typed rows with NULLs, disorder within the bound, now and then a late row, and a cut into batches.

Rows are drawn evenly from a seed, not by hypothesis, which loves the empty and the equal too much for answers with much
in them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

from tests.run_locally import Push, Rows
from transom.core.time import to_datetime

KEYS = (0, 1, 1, 2, None)
TEXTS = ("a", "a", "b", "", "ab", "a text longer than sixteen bytes", None)
NUMBERS = (0, 1, 2, 3, 5, -4, 2_147_483_000, None)
FLOATS = (0.1, 0.0, -0.0, 0.0, -0.0, 0.5, 1e16, -1e16, 1.0, float("nan"), None, float("inf"), 3e-310)
DECIMALS = (Decimal("0.10"), Decimal("1.00"), Decimal("-2.50"), Decimal("9999.99"), None)
ARRAYS: tuple[list[int | None] | None, ...] = ([], [1], [1, None], [1, 2], [2], [None], None)
STRUCTS = (None, None, *({"p": p, "q": q} for p in (0, 1, None) for q in ARRAYS[1:4]))
ROW = (KEYS, TEXTS, NUMBERS, FLOATS, DECIMALS)
ZONES = (*(datetime(2024, month, 31, hour, 30, tzinfo=UTC) for month in (3, 5, 10) for hour in (0, 1, 10)), None)
JSONS = ("null", '{"a": 1}', '{"a":1}', '{"a": {"a": "x"}}', "[1]", "[1, 2]", '"1"', "7.50", None)


def in_source_order(random: Random, count: int, bound: int) -> list[int]:
    """Times in seconds in the order in which rows arrive; a delay above the bound may make a row late."""
    times = [random.randint(0, 20) for _ in range(count)]
    delays = [random.choice([0, *range(bound + 1)] if random.random() < 0.95 else [bound + 4]) for _ in times]
    order = sorted(range(count), key=lambda i: times[i] + delays[i])
    return [times[i] for i in order]


def rows_of(random: Random, base: int, bound: int, values: tuple[tuple[Any, ...], ...], least: int) -> Rows:
    times = in_source_order(random, random.randint(least, 14), bound)
    start = to_datetime(base)
    return [(start + timedelta(seconds=second), *(random.choice(v) for v in values)) for second in times]


def inputs(random: Random, bounds: dict[str, int], nested: bool = False) -> dict[str, Rows]:
    row = (*ROW, ARRAYS, STRUCTS, ZONES, JSONS) if nested else ROW
    base = random.choice([0, 1_700_000_000_000_000, -7_000_000])
    given = {name: rows_of(random, base, bounds[name], row, 5) for name in ("s", "t", "u")}
    given["r"] = rows_of(random, base, 1, (("+", "+", "+", "+", "-", "-", "?"), KEYS, TEXTS[:3]), 8)
    given["p"] = rows_of(random, base, 0, (KEYS, TEXTS), 5)
    given["names"] = [(0, "a"), (1, "b"), (1, "c"), (None, "d"), (2, None)]
    return given


def cut(random: Random, given: dict[str, Rows]) -> list[Push]:
    """The inputs in batches of any size, in any interleaving, each in its own order."""
    rest = {name: list(rows) for name, rows in given.items()}
    size = random.choice([1, 2, 5, 100])
    pushes = []
    while any(rest.values()):
        name = random.choice([name for name in rest if rest[name]])
        count = random.randint(1, size)
        pushes.append(Push(name, rest[name][:count], end=len(rest[name]) <= count and random.random() < 0.5))
        rest[name] = rest[name][count:]
    return pushes


def cut_into_tasks(random: Random, pushes: list[Push]) -> list[list[list[Push]]]:
    """Pushes as batches of tasks: any number of them in a batch, each cut into stretches that any tasks read."""
    batches = []
    while pushes:
        count = random.randint(1, random.choice([1, 3, 8]))
        together, pushes = pushes[:count], pushes[count:]
        tasks: list[list[Push]] = [[]]
        for span in (span for push in together for span in _spans(random, push)):
            if random.random() < 0.6:
                tasks.append([])
            tasks[-1].append(span)
        batches.append(tasks)
    return batches


def _spans(random: Random, push: Push) -> list[Push]:
    cuts = sorted(random.randint(0, len(push.rows)) for _ in range(random.choice([0, 0, 1, 2])))
    parts = [push.rows[a:b] for a, b in pairwise([0, *cuts, len(push.rows)])]
    return [Push(push.name, rows) for rows in parts[:-1]] + [Push(push.name, parts[-1], push.end)]
