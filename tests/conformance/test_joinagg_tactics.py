"""Every case of an aggregate over a join by every tactic that runs it, restarted after every row and in partitions."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.conformance import Case, disagreement, inputs, load
from tests.profile import NIGHTLY, in_turn
from tests.runtimes_under_test import RUNTIMES
from transom.core.errors import UnsupportedError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.joinagg import TACTICS
from transom.planner.plan import plan

CASES = [case for case in load() if case.file.startswith("joinagg")]


def bound(case: Case, tactic: str) -> tuple[QueryStatement, Catalogue] | None:
    """The query planned by a tactic, if it is one for it."""
    catalogue = Catalogue()
    statement = parse_statements(case.cql, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    catalogue.options["joinagg"] = tactic
    try:
        plan(statement.query, catalogue)
    except UnsupportedError:
        return None
    return statement, catalogue


def test_every_tactic_has_cases() -> None:
    can = Counter(tactic for case in CASES for tactic in TACTICS if bound(case, tactic) is not None)
    assert can["pc"] == len(CASES) >= 20
    assert can["factorised"] >= 12 and can["tc"] >= 10 and can["ic"] >= 7


RUNS = [
    (case, tactic)
    for number, case in enumerate(CASES)
    for turn, tactic in enumerate(TACTICS)
    if NIGHTLY or (number + turn) % 2 == 0
]
"""By day every other tactic of a case, and those between them of the next."""


@pytest.mark.parametrize(("case", "tactic"), RUNS, ids=[f"{case.title}-{tactic}" for case, tactic in RUNS])
def test_conformance_by_tactic(case: Case, tactic: str) -> None:
    found = bound(case, tactic)
    if found is None:
        return  # what says no is looked at in tests/planner
    statement, catalogue = found
    for runtime in in_turn(("local_restarted", "partitions"), CASES.index(case) // 2):
        answer = RUNTIMES[runtime](statement.query, catalogue, inputs(case, catalogue))
        reported = disagreement(case, statement.query.schema, answer)
        assert reported is None, f"{case.cql}\n(first: expected, second: {tactic}, {runtime})\n{reported}"
