"""Frames that go by distances or end at the row, over any window, equal the reference on every runtime."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.profile import NIGHTLY
from tests.properties.test_slides_put_off import bound
from tests.runtimes_under_test import RUNTIMES
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference

DECLARED = (
    "CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, x BIGINT, y DOUBLE, WATERMARK FOR ts AS ts)"
    " WITH (connector = 'memory');"
)
TIMES = tuple(f"INTERVAL '{far}' SECOND {way}" for far, way in ((2, "PRECEDING"), (1, "PRECEDING"), (2, "FOLLOWING")))
NUMBERS = ("2 PRECEDING", "1 PRECEDING", "1 FOLLOWING", "3 FOLLOWING")
CALLS = (
    "SUM(x)", "COUNT(*)", "MIN(x)", "MAX(y)", "AVG(x)", "COUNT(DISTINCT x)", "SUM(x) FILTER (WHERE x > 1)", "SUM(y)",
    "MEDIAN(x)", "FIRST_VALUE(x)", "LAST_VALUE(x)", "LAST_VALUE(x IGNORE NULLS)", "FIRST_VALUE(y IGNORE NULLS)",
    "NTH_VALUE(y, 2)", "MODE(x)", "BIT_XOR(x)", "COVAR_POP(x, y)", "ARRAY_AGG(x)", "STRING_AGG(x, '-')",
    "ARG_MAX(y, x)",
)  # fmt: skip
SEEDS = 300 if NIGHTLY else 24


def rows(random: Random, most: int) -> list[tuple[Any, ...]]:
    at, made = datetime(1970, 1, 1), []
    for _ in range(random.choice([1, most // 2, most])):
        at += timedelta(seconds=random.choice([0, 0, 1, 1, 2, 5]))
        row = random.choice([None, 1, 2]), random.choice([None, 1, 2, 3, 7]), random.choice([None, 0.5, 2.0])
        made.append((at, *row))
    return made


def frame(random: Random, by_time: bool) -> str:
    """Nothing, or a frame whose bounds are in order; mostly one that ends at the row."""
    bounds = list(TIMES if by_time else NUMBERS)
    own = next(i for i, bound in enumerate(bounds) if bound.endswith("FOLLOWING"))
    bounds = ["UNBOUNDED PRECEDING", *bounds[:own], "CURRENT ROW", *bounds[own:], "UNBOUNDED FOLLOWING"]
    if random.random() < 0.15:
        return ""
    first, last = sorted(random.sample(range(len(bounds) - 1), 2)) if random.random() < 0.6 else (1, own + 1)
    unit = "GROUPS" if not by_time and random.random() < 0.4 else "RANGE"
    return f"{unit} BETWEEN {bounds[first]} AND {bounds[last]}"


def query(random: Random) -> str:
    by_time = random.random() < 0.6
    parts = random.choice(["", "PARTITION BY k ", "PARTITION BY k, x "])
    ways = ("", "", "", " DESC") if by_time else ("", " DESC", " NULLS FIRST", " DESC NULLS FIRST")
    order = random.choice(["ts"] if by_time else ["x", "k"]) + random.choice(ways)
    over = f"OVER ({parts}ORDER BY {order} {frame(random, by_time)})"
    calls = ", ".join(f"{call} {over} AS c{i}" for i, call in enumerate(random.sample(CALLS, 2)))
    window, where = random.choice(["", "", " [RANGE 4 SECONDS]", " [ROWS 5]"]), random.choice(["", " WHERE x > 1"])
    made = f"SELECT ts, k, x, {calls} FROM a{window}{where}"
    above = random.random()
    if above < 0.15:
        return f"SELECT v.k, v.c0, b.x FROM ({made}) v JOIN b [RANGE 3 SECONDS] ON v.k = b.k;"
    if above < 0.3:
        return f"SELECT k, MAX(c0) AS most FROM ({made}) GROUP BY k;"
    return f"ISTREAM({made});" if above < 0.45 else f"{made};"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_frames(seed: int) -> None:
    random = Random(seed)
    text = query(random)
    planned, catalogue = bound(DECLARED, "ab", text)
    inputs = {"a": rows(random, 12), "b": rows(random, 4)}
    expected = evaluate(planned, catalogue, inputs)
    runtime = random.choice([name for name in RUNTIMES if name != "reference"])
    assert difference(expected, RUNTIMES[runtime](planned, catalogue, inputs)) is None, (text, runtime)
