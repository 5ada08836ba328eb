"""Every conformance case, written and asked as a user would: the two readers and comparisons must agree."""

from __future__ import annotations

import re

import pytest

from tests.conformance.conformance import Case, load
from tests.profile import NIGHTLY
from transom.testing import run_query

CASES = [case for case in load() if case.only is None or "local" in case.only]
BY_TURNS = CASES if NIGHTLY else CASES[::5]
"""By day every fifth."""


def with_connectors(cql: str) -> str:
    """Declarations as files have them: they say where the rows are."""
    statements = []
    for statement in cql.split(";"):
        if re.search(r"CREATE (STREAM|TABLE)", statement):
            if "WITH (" in statement:
                statement = statement.replace("WITH (", "WITH (connector = 'memory', ")
            else:
                statement += " WITH (connector = 'memory')"
        statements.append(statement)
    return ";".join(statements)


@pytest.mark.parametrize("case", BY_TURNS, ids=[f"{case.file}: {case.title}" for case in BY_TURNS])
def test_conformance_as_a_user_writes_it(case: Case) -> None:
    inputs = {block.argument: block.text for block in case.of("stream") + case.of("table")}
    answer = run_query(with_connectors(case.cql), inputs, seed=len(case.title), restart=True)
    for block in case.of("expect"):
        if block.argument == "snapshots":
            answer.expect_at(block.text)
        elif block.argument == "ledger":
            late = sum(int(line[2]) for line in block.lines)
            assert sum(("(late" in row or "(idle" in row) for row in answer.rejected) == late
            assert len(answer.rejected) - late == sum(int(line[4]) for line in block.lines)
        else:
            answer.expect(block.text)
