"""Each rule alone, and all of them, leave every answer as the reference has it for the query as it was written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from tests.plan.rewrites.outline import bound
from tests.plan.rewrites.test_push_filters import PASSES, STAYS
from tests.run_locally import Answer, Rows, batch_of
from transom.core.time import to_datetime
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.rewrites import RULES, rewrite
from transom.planner.plan import Planner
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference

QUERIES = [
    "SELECT a FROM (SELECT DISTINCT a, b, CAST(b AS DOUBLE) AS f FROM s [ROWS 4]) WHERE abs(f) > 0 AND 10 // b > 1",
    "SELECT a FROM (SELECT a, b FROM s [PARTITION BY a ROWS 2]) WHERE b > 0 AND a <> 0 AND 10 // a > 1",
    *(f"SELECT a, b FROM s {window} WHERE {predicate}" for window, predicate in {**PASSES, **STAYS}.items()),
    "SELECT s.b, t.d FROM s [ROWS 4], t [RANGE 5 SECONDS], r WHERE s.a = t.a AND t.a = r.a AND s.b > 0 AND t.d < 3",
    "SELECT x FROM (SELECT a + b AS x, c FROM s [ROWS 5] WHERE c = 'x') WHERE x > 1",
    "SELECT a FROM (SELECT a, b FROM s [ROWS 3] EXCEPT ALL SELECT a, d FROM t [RANGE 4 SECONDS]) WHERE b > 0",
    "SELECT n FROM (SELECT a, COUNT(*) AS n FROM s [ROWS 4] GROUP BY a) WHERE n > 1",
    "SELECT COUNT(*) FROM s [ROWS 3], t [PARTITION BY a ROWS 2 RANGE 3 SECONDS], r WHERE d > 0",
    "SELECT b FROM ISTREAM(SELECT a, b FROM s [ROWS 2] WHERE a > 0) [ROWS 2] WHERE b > 0",
    "RSTREAM(SELECT a FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE b > 0)",
]


def rows() -> dict[str, Rows]:
    random = Random(9)
    made: dict[str, Rows] = {"s": [], "t": [], "r": [(0, 1), (1, 2), (2, 0), (None, 0)]}
    for second in range(30):
        at = to_datetime(0) + timedelta(seconds=second // 2)
        made["s"].append((at, random.choice([0, 1, 2, None]), random.randrange(4), random.choice(["x", "y", None])))
        made["t"].append((at, random.choice([0, 1, 2, None]), random.randrange(4)))
    return made


INPUTS = rows()


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("rule", [*dict.fromkeys(RULES), rewrite], ids=lambda rule: rule.__name__)
def test_the_answer_stays(text: str, rule: Callable[[Node], Node]) -> None:
    query, catalogue = bound(text)
    expected = evaluate(query, catalogue, INPUTS)
    assert len(expected.instants) > 3, "too quiet to report anything"
    pipeline = Pipeline(Planner(catalogue).plan(rule(query)), catalogue)
    answer = Answer(isinstance(query, Stream), "changes")
    for name in pipeline.names:
        definition = catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        pipeline.push(name, batch_of(definition.columns, INPUTS[name]))
        pipeline.end(name)
    output, _ = pipeline.advance()
    assert output is not None
    answer.add(output.rows)
    assert difference(expected, answer.history()) is None
