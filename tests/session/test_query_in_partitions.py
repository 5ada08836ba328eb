"""What `fragments` promises: one fragment, run in several partitions on rows spread by its keys, gives the answer."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from transom import Session
from transom.plan.expression import Cast, ColumnRef, Expression
from transom.planner.fragments import fragments
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
PARTITIONS = 3

Rows = list[dict[str, Any]]


def made_up(seed: int) -> dict[str, Rows]:
    chance = random.Random(seed)

    def stream(*names: str) -> Rows:
        times = sorted(NOON + timedelta(seconds=chance.randrange(40)) for _ in range(60))
        return [{"ts": ts, **{name: chance.choice([None, 0, 1, 2, 3, 4]) for name in names}} for ts in times]

    return {"S": stream("k", "a", "b"), "T": stream("k", "c"), "P": stream("id", "price")}


def session(inputs: dict[str, Rows]) -> Session:
    opened = Session()
    opened.execute("""
        CREATE STREAM S (ts TIMESTAMP, k INTEGER, a INTEGER, b INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'memory');
        CREATE STREAM T (ts TIMESTAMP, k BIGINT, c INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
        CREATE TABLE P (ts TIMESTAMP, id INTEGER, price INTEGER, WATERMARK FOR ts AS ts, PRIMARY KEY (id))
            WITH (connector = 'memory');
    """)
    for name, rows in inputs.items():
        if rows:
            opened.append(name, rows)
    return opened


def value(key: Expression, row: dict[str, Any]) -> Any:
    while isinstance(key, Cast):
        key = key.operand
    assert isinstance(key, ColumnRef)
    return row[key.name]


def changes(opened: Session, text: str) -> Counter[tuple[Any, ...]]:
    """How often a row comes or goes at an instant, net."""
    net: Counter[tuple[Any, ...]] = Counter()
    for row in opened.run(text).to_arrow().to_pylist():
        sign = {"+": 1, "-": -1}[row.pop("change", "+")]
        net[tuple(row.items())] += sign
    return Counter({row: count for row, count in net.items() if count})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, COUNT(*) AS n, SUM(b) AS s FROM S [RANGE 5 SECONDS] WHERE a > 1 GROUP BY k",
        "SELECT S.k, COUNT(*) AS n FROM S [RANGE 5 SECONDS], T [RANGE 9 SECONDS] WHERE S.k = T.k GROUP BY S.k",
        "SELECT c, COUNT(*) AS n FROM S [NOW], T [RANGE 9 SECONDS] WHERE S.k = T.k AND S.a = T.c GROUP BY c",
        "SELECT x, COUNT(*) AS n FROM (SELECT a AS k, k AS x FROM S [PARTITION BY k, b ROWS 2]) AS v GROUP BY x",
        "SELECT k, SUM(n) m FROM (SELECT k, a, COUNT(*) n FROM S [RANGE 3 SECONDS] GROUP BY k, a) AS g GROUP BY k",
        "SELECT k, a FROM S [RANGE 4 SECONDS] EXCEPT SELECT k, c FROM T [RANGE 5 SECONDS]",
        "SELECT a, k FROM S [RANGE 4 SECONDS] UNION SELECT c, k FROM T [RANGE 5 SECONDS]",
        "ISTREAM(SELECT DISTINCT k FROM S [RANGE 4 SECONDS SLIDE 3 SECONDS])",
        "SELECT S.a, P.price FROM S [RANGE 4 SECONDS], P WHERE S.k = P.id",
        "SELECT k, a FROM S [RANGE 4 SECONDS] UNION ALL SELECT k, c FROM T [NOW]",
    ],
)
def test_partitions_together_give_the_answer_of_the_whole(text: str, seed: int) -> None:
    inputs = made_up(seed)
    whole = session(inputs)
    (planned,) = workspace_of(whole).prepare(text)
    assert planned.root is not None
    (fragment,) = fragments(planned.root)
    spread: list[dict[str, Rows]] = [{name: [] for name in inputs} for _ in range(PARTITIONS)]
    for exchange in fragment.exchanges:
        assert exchange.source is not None
        for i, row in enumerate(inputs[exchange.source]):
            keys = tuple(value(key, row) for key in exchange.partitioning.keys)
            partition = hash(keys) % PARTITIONS if keys else i % PARTITIONS
            spread[partition][exchange.source].append(row)
    assert sum(any(part.values()) for part in spread) > 1
    answer = changes(whole, text)
    assert len(answer) >= 10
    together: Counter[tuple[Any, ...]] = Counter()
    for part in spread:
        for change, count in changes(session(part), text).items():
            together[change] += count
    assert {change: count for change, count in together.items() if count} == dict(answer)
