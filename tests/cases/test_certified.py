"""Every certified case on every runtime.

By day half of them run, and the runtimes take turns; at night all cases run on each.
"""

from __future__ import annotations

import pytest

from tests.cases.certified import Case, disagreement, inputs, load, statements
from tests.runtimes_under_test import RUNTIMES, runs
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement

CASES = load()
RUNS = runs("tests/cases/test_certified.py::test_certified", {case.id: case for case in CASES}, by_day=1, every=2)


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 173


@pytest.mark.parametrize(("case", "runtime"), RUNS, ids=[f"{case.id}-{runtime}" for case, runtime in RUNS])
def test_certified(case: Case, runtime: str) -> None:
    catalogue = Catalogue()
    statement = parse_statements(statements(case), catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    answer = RUNTIMES[runtime](statement.query, catalogue, inputs(case))
    reported = disagreement(case, statement.query, answer)
    assert reported is None, f"{case.cql}\n(first: certified, second: {runtime})\n{reported}"
