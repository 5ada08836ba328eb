"""Every case of a join, of two inputs or more, by each tactic for many, restarted after every row and in partitions."""

from __future__ import annotations

import pytest

from tests.conformance.conformance import Case, disagreement, inputs, load
from tests.profile import NIGHTLY, in_turn
from tests.runtimes_under_test import RUNTIMES
from transom.cql.statements import parse_statements
from transom.kernels.multiway.cost import TACTICS
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan

CASES = [case for case in load() if case.file in ("multiway", "join") and case.only is None]


def bound(case: Case, tactic: str) -> tuple[QueryStatement, Catalogue]:
    catalogue = Catalogue()
    statement = parse_statements(case.cql, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    catalogue.options["multiway"] = tactic
    return statement, catalogue


def test_every_tactic_runs_the_cases_of_many_inputs() -> None:
    many = [case for case in CASES if case.file == "multiway"]
    assert len(many) >= 12 and len(CASES) > len(many)
    for case in many:
        for tactic in TACTICS:
            statement, catalogue = bound(case, tactic)
            joins = {
                operator.tactic.name if operator.kind == "MultiwayJoin" else "tree"
                for operator in plan(statement.query, catalogue).walk()
                if operator.kind in ("Join", "MultiwayJoin")
            }
            assert joins == {tactic}


RUNS = [
    (case, tactic)
    for number, case in enumerate(CASES)
    for turn, tactic in enumerate(TACTICS)
    if NIGHTLY or (number + turn) % 2 == 0
]
"""By day every other tactic of a case, and those between them of the next."""


@pytest.mark.parametrize(("case", "tactic"), RUNS, ids=[f"{case.title}-{tactic}" for case, tactic in RUNS])
def test_conformance_by_tactic(case: Case, tactic: str) -> None:
    statement, catalogue = bound(case, tactic)
    for runtime in in_turn(("local_restarted", "partitions"), CASES.index(case) // 2):
        answer = RUNTIMES[runtime](statement.query, catalogue, inputs(case, catalogue))
        reported = disagreement(case, statement.query.schema, answer)
        assert reported is None, f"{case.cql}\n(first: expected, second: {tactic}, {runtime})\n{reported}"
