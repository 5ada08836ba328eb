"""Every case of a join reported slide by slide: by every tactic, restarted after every row, in partitions, within
budgets."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.conformance import Case, disagreement, inputs, load
from tests.emitted_slides import run_within_budget, slide_state
from tests.profile import in_turn
from tests.run_locally import row_by_row
from tests.runtimes_under_test import RUNTIMES
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner import slide_join
from transom.planner.plan import plan
from transom.planner.slide_join import TACTICS

CASES = [case for case in load() if case.file == "slide_join"]
BUDGETS = (600, 3_000, 40_000)


def bound(case: Case, tactic: str) -> tuple[QueryStatement, Catalogue]:
    catalogue = Catalogue()
    statement = parse_statements(case.cql, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    catalogue.options["slide_join"] = tactic
    return statement, catalogue


def test_there_are_cases_and_every_tactic_runs_them_all() -> None:
    assert len(CASES) >= 12
    for case in CASES:
        for tactic in TACTICS:
            statement, catalogue = bound(case, tactic)
            root = plan(statement.query, catalogue)
            assert (root.kind, root.tactic.name) == ("SlideJoin", tactic), case.title


@pytest.mark.parametrize("tactic", TACTICS)
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_conformance_by_slide_join_tactic(case: Case, tactic: str) -> None:
    statement, catalogue = bound(case, tactic)
    for runtime in in_turn(("local", "buckets_restarted"), CASES.index(case)):
        answer = RUNTIMES[runtime](statement.query, catalogue, inputs(case, catalogue))
        reported = disagreement(case, statement.query.schema, answer)
        assert reported is None, f"{case.cql}\n(first: expected, second: {tactic}, {runtime})\n{reported}"


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_conformance_within_a_budget(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    ways: Counter[str] = Counter()
    for tactic in in_turn(TACTICS, CASES.index(case)):
        statement, catalogue = bound(case, tactic)
        rows = inputs(case, catalogue)
        for budget in BUDGETS:
            catalogue.options["memory"] = budget
            slides, pipeline = run_within_budget(statement.query, catalogue, row_by_row(rows), lambda i: i % 2 == 0)
            assert not slides.unfinished and not slides.voided
            reported = disagreement(case, statement.query.schema, slides.history())
            assert reported is None, f"{case.cql}\n(first: expected, second: {tactic}, {budget} bytes)\n{reported}"
            state = slide_state(pipeline)
            assert not state.windows and not state.stored
            ways.update(state.report.tactics)
    assert any("two-pass" in way for way in ways), ways
