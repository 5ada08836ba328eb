"""Every conformance case on every runtime; by day the runtimes take turns."""

from __future__ import annotations

import pytest

from tests.conformance.conformance import Case, disagreement, inputs, load
from tests.runtimes_under_test import RUNTIMES, runs
from transom.core.errors import UnsupportedError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement

CASES = load()
NAMES = {f"{case.file}: {case.title}": case for case in CASES}
RUNS = runs("tests/conformance/test_conformance.py::test_conformance", NAMES, by_day=1)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [(case.file, case.title) for case in CASES]
    assert len(set(names)) == len(names) >= 70


@pytest.mark.parametrize(
    ("case", "runtime"), RUNS, ids=[f"{case.file}: {case.title}-{runtime}" for case, runtime in RUNS]
)
def test_conformance(case: Case, runtime: str) -> None:
    catalogue = Catalogue()
    statement = parse_statements(case.cql, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    given = inputs(case, catalogue)
    assert any(block.argument != "ledger" for block in case.of("expect")), "the case expects nothing"
    if case.only is not None and runtime not in case.only:
        with pytest.raises(UnsupportedError):
            RUNTIMES[runtime](statement.query, catalogue, given)
        return
    answer = RUNTIMES[runtime](statement.query, catalogue, given)
    reported = disagreement(case, statement.query.schema, answer)
    assert reported is None, f"{case.cql}\n(first: expected, second: {runtime})\n{reported}"
