"""The comparison with certified answers forgives what differs on purpose, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.certified import Case, disagreement, in_our_words, inputs, statements
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.runtimes.reference.evaluate import evaluate

# One row of (7, 3), alive in the seconds 2 and 3.
ROWS = {"S": [[2, 7, 3]]}


def reported(cql: str, net: list[Any], **more: Any) -> str | None:
    case = Case("made up", cql, more.get("views", ()), more.get("inputs", ROWS), net, more.get("end", 10))
    catalogue = Catalogue()
    statement = parse_statements(statements(case), catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return disagreement(case, statement.query, evaluate(statement.query, catalogue, inputs(case)))


RELATION = "select A, B from S [Range 2 Seconds]"


def test_a_relation_is_compared_at_every_second_before_the_end() -> None:
    right = [[2, [[[7, 3], 1]]], [4, [[[7, 3], -1]]]]
    assert reported(RELATION, right) is None
    assert reported(RELATION, right[:1]) is not None
    assert reported(RELATION, right[:1], end=4) is None
    assert reported(RELATION, [[2, [[[7, 3], 2]]], [4, [[[7, 3], -2]]]]) is not None
    assert reported(RELATION, [[2, [[[7, 4], 1]]], [4, [[[7, 4], -1]]]]) is not None
    assert reported(RELATION, [[3, [[[7, 3], 1]]], [4, [[[7, 3], -1]]]]) is not None


@pytest.mark.parametrize(("word", "second"), [("Istream", 2), ("Dstream", 4)])
def test_a_stream_is_compared_by_its_rows(word: str, second: int) -> None:
    assert reported(f"{word}({RELATION})", [[second, [[[7, 3], 1]]]]) is None
    assert reported(f"{word}({RELATION})", []) is not None
    assert reported(f"{word}({RELATION})", [[second, [[[7, 3], 2]]]]) is not None
    assert reported(f"{word}({RELATION})", [[second, [[[7, 3], 1]]], [8, [[[7, 3], 1]]]]) is not None


def test_rstream_speaks_at_every_second_there_and_at_changes_here() -> None:
    assert reported(f"Rstream({RELATION})", [[2, [[[7, 3], 1]]], [3, [[[7, 3], 1]]]]) is None
    assert reported(f"Rstream({RELATION})", [[2, [[[7, 3], 1]]]]) is None, "one second more is nobody's change"
    assert reported(f"Rstream({RELATION})", [[3, [[[7, 3], 1]]]]) is not None
    assert reported(f"Rstream({RELATION})", [[2, [[[7, 3], 1]]], [3, [[[7, 4], 1]]]]) is not None


AGGREGATE = "select Sum(B), Count(*) from S [Range 2 Seconds]"


def test_a_global_aggregate_may_have_a_row_over_nothing() -> None:
    right = [[2, [[[3, 1], 1]]], [4, [[[3, 1], -1]]]]
    assert reported(AGGREGATE, right) is None
    assert reported(AGGREGATE, [[0, [[[None, 0], 1]]], [2, [[[3, 1], 1], [[None, 0], -1]]]], end=4) is None
    assert reported(AGGREGATE, right[:1]) is not None
    assert reported(AGGREGATE, [[2, [[[3, 1], 1]]], [3, [[[3, 1], -1]]]]) is not None
    assert reported(f"Istream({AGGREGATE})", [[2, [[[3, 1], 1]]]]) is None
    assert reported(f"Istream({AGGREGATE})", [[2, [[[3, 2], 1]]]]) is not None


def test_averages_are_rounded() -> None:
    given = {"S": [[2, 1, 1], [2, 1, 1], [2, 1, 2]]}
    assert reported("select Avg(B) from S [Range Unbounded] group by A", [[2, [[[1.333333], 1]]]], inputs=given) is None
    assert (
        reported("select Avg(B) from S [Range Unbounded] group by A", [[2, [[[1.333334], 1]]]], inputs=given)
        is not None
    )


def test_names_and_views_of_other_cases() -> None:
    views = (("relation V1 (A integer, B integer)", "select A, price from S [Range 2 Seconds]"),)
    net = [[2, [[[7, 3], 1]]], [4, [[[7, 3], -1]]]]
    assert reported("V1", net, views=views) is None
    assert reported("select S.A, S.F from S [Range 2 Seconds]", net) is None
    assert reported("V1 Except R", [], views=views, inputs=ROWS | {"R": [[1, "+", 7, 3]]}) is None
    assert in_our_words("V1 Union V2 union R", ["V1", "V2", "R"]) == (
        "SELECT * FROM V1 UNION ALL SELECT * FROM V2 UNION ALL SELECT * FROM R"
    )
    assert (
        in_our_words("select A from V1 union select A from R", ["V1", "R"]) == "select A from V1 union select A from R"
    )
