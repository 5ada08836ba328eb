"""EXPLAIN ANALYZE proves which tactic of a join of many inputs ran, and what it keeps: no intermediate results."""

from __future__ import annotations

import json
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
