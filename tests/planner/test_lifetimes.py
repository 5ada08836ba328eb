"""The choice between direct lifetimes and negative tuples, and what EXPLAIN says of it."""

from __future__ import annotations

import pytest

from transom.core.errors import OptionError
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.explain import explain_json, explain_text
from transom.planner.fingerprint import fingerprint
from transom.planner.plan import plan

DECLARATION = "CREATE STREAM s (ts TIMESTAMP, k INTEGER, v INTEGER, WATERMARK FOR ts AS ts);"
PAIRS = "SELECT a.v, b.v FROM s [ROWS 5] AS a, s [RANGE 1 MINUTE] AS b WHERE a.k = b.k"


def planned(query: str, lifetimes: str | None = None) -> Operator:
    catalogue = Catalogue()
    requested = "" if lifetimes is None else f"SET lifetimes = '{lifetimes}';"
    statement = parse_statements(f"{DECLARATION} {requested} {query}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return plan(statement.query, catalogue)


@pytest.mark.parametrize("requested", [None, "auto", "direct"])
def test_direct_unless_asked_otherwise(requested: str | None) -> None:
    root = planned(PAIRS, requested)
    assert not any(operator.negative for operator in root.walk())
    assert explain_text(root).splitlines()[-2:] == [
        "lifetimes direct: a row passes every operator once; an open end is an open row id of 8 bytes",
        "   not negative: a row would pass every operator twice",
    ]


def test_negative_tuples_when_asked() -> None:
    root = planned(PAIRS, "negative")
    assert all(operator.negative for operator in root.walk())
    text = explain_text(root)
    assert text.splitlines()[-2:] == [
        "lifetimes negative: a row passes every operator twice, when it arrives and when it departs; "
        "windows keep whole rows",
        "   not direct: not requested",
    ]
    assert text.count("keeps the rows of the window, whole") == 2
    assert explain_json(root)["lifetimes"]["method"] == "negative"


def test_the_tactics_of_a_join_are_the_same_either_way() -> None:
    tactics = [[(o.tactic.name, o.kind) for o in planned(PAIRS, way).walk()] for way in ("direct", "negative")]
    assert tactics[0] == tactics[1]


def test_a_slide_that_cuts_the_range_unevenly_does_not_keep_its_order_when_reported_twice() -> None:
    query = "SELECT a.v FROM s [RANGE 5 SECONDS SLIDE 2 SECONDS] AS a, s [NOW] AS b WHERE a.k = b.k"
    assert any(o.tactic.name == "ring_hash" for o in planned(query, "direct").walk())
    assert any(o.tactic.name == "lazy_hash" for o in planned(query, "negative").walk())


def test_a_checkpoint_of_one_method_is_not_one_of_the_other() -> None:
    prints = {fingerprint(list(planned(PAIRS, way).walk())) for way in ("auto", "direct", "negative")}
    assert len(prints) == 2


def test_other_words_are_rejected() -> None:
    with pytest.raises(OptionError, match="option 'lifetimes' cannot be 'both'"):
        planned(PAIRS, "both")
