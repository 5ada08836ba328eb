"""EXPLAIN ANALYZE proves which tactic of a join of many inputs ran, and what it keeps: no intermediate results."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from transom.session import Session

NOON = datetime(2024, 5, 1, 12)
STREAMS = ("a", "b", "c", "d")


def measured(tactic: str) -> list[dict[str, Any]]:
    """What the joins did; 300 rows of each stream, with two matches a probe."""
    session = Session()
    for name in STREAMS:
        session.stream(name, [{"ts": NOON + timedelta(seconds=i), "k": i // 2} for i in range(300)], time="ts")
    inputs = ", ".join(f"{name} [1 HOUR]" for name in STREAMS)
    *_, result = session.execute(f"""
        SET multiway = '{tactic}';
        EXPLAIN ANALYZE JSON SELECT a.k FROM {inputs} WHERE a.k = b.k AND b.k = c.k AND c.k = d.k
    """)
    assert result.text is not None
    return [
        operator
        for operator in json.loads(result.text)["operators"]
        if operator["operator"] in ("Join", "MultiwayJoin")
    ]


@pytest.mark.parametrize("tactic", ["mjoin", "parallel_mjoin"])
def test_one_join_of_all_makes_the_answer_and_nothing_else(tactic: str) -> None:
    (whole,) = measured(tactic)
    tree = measured("tree")
    assert whole["operator"] == "MultiwayJoin" and whole["tactic"] == tactic
    assert whole["measured"]["rows_in"] == 4 * 300
    assert [operator["measured"]["rows_out"] for operator in tree] == [600, 1200, 2400]
    assert whole["measured"]["rows_out"] == 2400
    assert whole["measured"]["state_bytes"] < sum(operator["measured"]["state_bytes"] for operator in tree)


def test_it_tells_when_the_tactic_changed_and_why() -> None:
    """Readings find forty alarms of one kind and none of the other; then both alarms come together, and no readings."""
    session = Session()
    rows: dict[str, tuple[int, Callable[[int], int]]] = {
        "a": (6, lambda i: i % 6),
        "b": (6, lambda i: 6 + i % 6),
        "c": (900, lambda i: i % 12),
    }
    storm: dict[str, tuple[int, Callable[[int], int]]] = {
        "a": (300, lambda i: 100 + i % 50),
        "b": (300, lambda i: 100 + i % 50),
        "c": (300, lambda i: 500 + i % 90),
    }
    for name in ("a", "b", "c"):
        given = []
        for second in range(120):
            count, key = (rows if second < 60 else storm)[name]
            given += [
                {"ts": NOON + timedelta(seconds=second, microseconds=i), "k": key(i), "v": i} for i in range(count)
            ]
        session.stream(name, given, time="ts")
    *_, result = session.execute("""
        SET batch_rows = 1000;
        EXPLAIN ANALYZE SELECT a.v FROM a [RANGE 40 SECONDS], b [RANGE 40 SECONDS], c [RANGE 40 SECONDS]
        WHERE a.k = b.k AND b.k = c.k
    """)
    assert result.text is not None
    lines = [line.lstrip("├└─ │") for line in result.text.splitlines()]
    (at,) = [i for i, line in enumerate(lines) if line == "mjoin now, changed 1 time"]
    assert lines[at + 1].startswith("from tree ((1, 2), 3) to mjoin at 2024-05-01 12:01:")
    assert " tuples a row, " in lines[at + 1] and lines[at + 1].endswith(" ms lost")
