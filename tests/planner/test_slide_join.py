"""Which queries run slide by slide, what the others are reported, and what EXPLAIN says."""

from __future__ import annotations

import pytest

from transom.core.errors import OptionError, UnsupportedError
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.kernels.slide_join.node import SlideJoin
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.plan.options import read_option
from transom.planner.explain import explain_text
from transom.planner.plan import plan

STREAM = "CREATE STREAM {} (ts TIMESTAMP, k INTEGER, g VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);"
SLIDING = "[RANGE 4 SECONDS SLIDE 1 SECOND]"
JOIN = f"RSTREAM(SELECT a.x FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k)"


def planned(query: str, **options: str) -> Operator:
    catalogue = Catalogue()
    text = "".join(STREAM.format(name) for name in "abc") + "CREATE TABLE t (k INTEGER, n INTEGER);"
    statement = parse_statements(text + query, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    catalogue.options.update({name: read_option(name, value) for name, value in options.items()})
    return plan(statement.query, catalogue)


def test_auto_runs_slide_by_slide_where_there_is_a_budget() -> None:
    assert planned(JOIN).kind == "ToStream"
    markers = planned(JOIN, memory="64 MB")
    (root,) = markers.inputs
    assert markers.kind == "SlideMarks" and [need.kind for need in markers.needs] == ["single"]
    assert (root.kind, root.tactic.name) == ("SlideJoin", "hybrid")
    assert isinstance(root.node, SlideJoin) and root.node.memory == 64 << 20
    assert root.schema.names == ["attempt", "status", "x"]
    assert [need.kind for need in root.needs] == ["keys", "keys"]


@pytest.mark.parametrize("tactic", ["incremental", "full", "hybrid"])
def test_a_forced_tactic_needs_no_budget_and_tells_plain_rows(tactic: str) -> None:
    root = planned(JOIN, slide_join=tactic)
    assert (root.kind, root.tactic.name) == ("SlideJoin", tactic)
    assert root.schema.names == ["x"] and [need.kind for need in root.needs] == ["keys", "keys"]


def test_selections_projections_and_other_windows_are_part_of_it() -> None:
    root = planned(
        f"""RSTREAM(SELECT d.x + c.x AS s FROM (SELECT k + 1 AS k, x FROM a {SLIDING} WHERE x > 1) AS d,
        b [RANGE 7 SECONDS SLIDE 3 SECONDS], c {SLIDING} WHERE d.k = b.k AND c.k = b.k AND d.x <> b.x)""",
        slide_join="hybrid",
    )
    assert isinstance(root.node, SlideJoin) and len(root.inputs) == 3
    assert root.node.sources[0].predicate is not None and root.node.joins[0].residual is not None
    assert [need.kind for need in root.needs] == ["single"] * 3, "k + 1 may overflow on a row that the selection hides"


VIEW = f"CREATE VIEW v AS SELECT a.k, a.x, b.x AS y FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k; "
SLIDES = f"CREATE VIEW v AS RSTREAM(SELECT a.k, a.x, b.x AS y FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k); "


@pytest.mark.parametrize(
    ("query", "inputs"),
    [
        (f"{VIEW} RSTREAM(SELECT x + y AS s FROM v WHERE x > 1)", 2),
        (f"{VIEW} RSTREAM(SELECT v.x + c.x AS s FROM v JOIN c {SLIDING} ON c.k = v.k WHERE v.y > 1)", 3),
        (f"{VIEW} RSTREAM(SELECT one.x + other.y AS s FROM v AS one, v AS other WHERE one.k = other.k)", 4),
        (f"{SLIDES} RSTREAM(SELECT x + y AS s FROM v [NOW] WHERE x > 1)", 2),
        (f"{SLIDES} ISTREAM(SELECT x + y AS s FROM v [NOW] WHERE x > 1)", 2),
        (f"{SLIDES} ISTREAM(SELECT s FROM (ISTREAM(SELECT x + y AS s FROM v [NOW] WHERE x > 1)) [NOW] WHERE s > 1)", 2),
    ],
)
def test_what_is_above_a_join_or_its_slides_is_part_of_it(query: str, inputs: int) -> None:
    (root,) = planned(query, memory="64 MB", put_off="1 SECOND").inputs
    assert isinstance(root.node, SlideJoin) and root.node.schema.names == ["attempt", "status", "s"]
    assert len(root.inputs) == inputs and all(child.kind.startswith("Stream") for child in root.inputs)


def test_slides_a_tick_apart_are_not_taken_through_now() -> None:
    """Under [NOW] rows of one are alive until the next begins, and equal ones would cancel."""
    query = f"{SLIDES} ISTREAM(SELECT x FROM v [NOW])"
    with pytest.raises(UnsupportedError, match="a tick apart"):
        planned(query, memory="64 MB", tick="1 SECOND")
    assert planned(query, memory="64 MB", tick="500 MILLISECONDS").kind == "SlideMarks"


GROUPED = f"(SELECT a.k, a.g FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k)"
ON_TWO = f"FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k AND a.x = b.x"


@pytest.mark.parametrize(
    ("query", "agree"),
    [
        (f"{VIEW} RSTREAM(SELECT k, COUNT(*) AS n FROM v GROUP BY k)", ["k"]),
        (f"{VIEW} RSTREAM(SELECT x, SUM(y) AS n FROM v GROUP BY x HAVING COUNT(*) > 1)", []),
        (f"{VIEW} RSTREAM(SELECT n FROM (SELECT k, COUNT(*) AS n FROM v GROUP BY k) WHERE n > 1)", ["k"]),
        (f"RSTREAM(SELECT b.x, a.g, AVG(b.k) AS n {ON_TWO} GROUP BY b.x, a.g)", ["x"]),
        (f"RSTREAM(SELECT a.k, a.x, MAX(b.x) AS n {ON_TWO} GROUP BY a.k, a.x)", ["k", "x"]),
        (f"RSTREAM(SELECT DISTINCT a.k AS n FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k)", ["k"]),
        (f"{SLIDES} ISTREAM(SELECT k, COUNT(DISTINCT x) AS n FROM v [NOW] WHERE y > 1 GROUP BY k)", ["k"]),
        (f"CREATE VIEW v AS RSTREAM(SELECT a.k, COUNT(*) AS n {ON_TWO} GROUP BY a.k); "
         "RSTREAM(SELECT n + 1 AS n FROM v [NOW] WHERE n > 1)", ["k"]),
    ],
)  # fmt: skip
def test_groups_are_made_of_results_as_they_come(query: str, agree: list[str]) -> None:
    """Rows are spread by those join keys on which all of a group agree."""
    (root,) = planned(query, memory="64 MB").inputs
    assert isinstance(root.node, SlideJoin) and root.node.groups is not None
    assert root.schema.names[-1] == "n" and "n" not in root.schema.names[:-1]
    kinds = {need.kind for need in root.needs}
    assert kinds == ({"keys"} if agree else {"single"})
    if agree:
        assert [str(key) for key in root.needs[0].keys] == agree


ON_G = f"SELECT c.x, b.g FROM c {SLIDING}, b {SLIDING} WHERE c.g = b.g"
OTHER = (
    "RSTREAM(SELECT a.x FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS], b [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k)"
)


@pytest.mark.parametrize(
    ("query", "joins", "keys"),
    [
        (f"{VIEW} RSTREAM(SELECT COUNT(*) AS n, MIN(x) AS low FROM v)", 1, []),
        (f"{VIEW} RSTREAM(SELECT k, MIN(g) AS n FROM {GROUPED} GROUP BY k)", 1, ["k"] * 2),
        (f"RSTREAM(SELECT a.x, b.g FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k UNION ALL {ON_G})", 2,
         ["k", "k", "g", "g"]),
        (f"RSTREAM(SELECT a.x, b.g FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k UNION {ON_G})", 2, []),
        (f"RSTREAM(SELECT a.x, b.g {ON_TWO} UNION SELECT b.x, a.g {ON_TWO})", 2, ["x"] * 4),
        (f"{VIEW} RSTREAM(SELECT k, COUNT(*) AS n FROM (SELECT k, x FROM v UNION ALL SELECT a.k, b.x {ON_TWO})"
         " GROUP BY k)", 2, ["k"] * 4),
        (f"{VIEW} RSTREAM((SELECT k FROM v UNION SELECT a.x {ON_TWO}) UNION SELECT DISTINCT x FROM v WHERE y > 1)", 3,
         []),
        (f"{SLIDES} ISTREAM(SELECT x FROM v [NOW] UNION ALL SELECT y FROM v [NOW] WHERE y > 1)", 2, ["k"] * 4),
    ],
)  # fmt: skip
def test_one_row_of_all_and_unions_are_part_of_it(query: str, joins: int, keys: list[str]) -> None:
    """Rows are spread by what all joins agree on: any of their keys, or those of the groups."""
    (root,) = planned(query, memory="64 MB").inputs
    assert isinstance(root.node, SlideJoin) and len(root.node.joins) == joins
    assert [str(key) for need in root.needs for key in need.keys] == keys
    assert {need.kind for need in root.needs} == {"keys" if keys else "single"}


NOT_SO = {
    f"{SLIDES} DSTREAM(SELECT x FROM v [NOW])": "no RSTREAM over a join: .NOW. keeps rows",
    f"{SLIDES} ISTREAM(SELECT x FROM v [RANGE 4 SECONDS])": "RANGE 4 SECOND. keeps rows of slides",
    f"{SLIDES} SELECT x FROM v [NOW]": "its rows live on",
    f"{SLIDES} RSTREAM(SELECT COUNT(*) AS n FROM v [NOW])": "without GROUP BY over .NOW. has a row between slides",
    f"{SLIDES} RSTREAM(SELECT x FROM v [NOW] UNION ALL SELECT x FROM ({OTHER}) [NOW])": "has other slides",
    f"{SLIDES} RSTREAM(SELECT x FROM v [NOW] UNION ALL SELECT a.k {ON_TWO})": "some was taken through .NOW.",
    f"{VIEW} RSTREAM(SELECT x FROM v UNION ALL SELECT x FROM c {SLIDING})": "no RSTREAM over a join",
    f"{VIEW} RSTREAM(SELECT k, x FROM v UNION ALL SELECT k, COUNT(*) FROM v GROUP BY k)": "groups of groups",
    f"{VIEW} RSTREAM((SELECT k FROM v UNION SELECT x FROM v) UNION ALL SELECT y FROM v)": "groups of groups",
    f"{VIEW} RSTREAM(SELECT k, ARRAY_AGG(x) AS n FROM v GROUP BY k)": "array_agg keeps the rows of a slide",
    f"{VIEW} RSTREAM(SELECT k, STRING_AGG(g, ',') AS n FROM {GROUPED} GROUP BY k)": "keeps the rows of a slide",
    f"{VIEW} RSTREAM(SELECT n FROM (SELECT k, COUNT(*) AS n FROM v GROUP BY k) GROUP BY n)": "groups of groups",
    f"{VIEW} ISTREAM(SELECT k, COUNT(*) AS n FROM v GROUP BY k)": "ISTREAM compares a slide with the one before it",
    f"{VIEW} RSTREAM(SELECT x FROM v EXCEPT SELECT y FROM v)": "EXCEPT takes slides as a whole",
    f"{VIEW} ISTREAM(SELECT x FROM v)": "ISTREAM compares a slide with the one before it",
    f"SELECT a.x FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k": "no RSTREAM over a join",
    f"ISTREAM(SELECT a.x FROM a {SLIDING}, b {SLIDING} WHERE a.k = b.k)": "no RSTREAM over a join",
    f"RSTREAM(SELECT x FROM a {SLIDING})": "no RSTREAM over a join",
    f"RSTREAM(SELECT a.x FROM a {SLIDING}, b [RANGE 4 SECONDS] WHERE a.k = b.k)": "does not slide by time",
    f"RSTREAM(SELECT a.x FROM a {SLIDING}, b [ROWS 4 SLIDE 2] WHERE a.k = b.k)": "does not slide by time",
    f"RSTREAM(SELECT a.x FROM a {SLIDING}, t WHERE a.k = t.k)": "no window over a stream",
    f"RSTREAM(SELECT a.x FROM a {SLIDING}, b {SLIDING} WHERE a.k < b.k)": "no equality that all inputs",
    f"RSTREAM(SELECT a.x FROM a {SLIDING}, b {SLIDING}, c {SLIDING} WHERE a.k = b.k AND b.x = c.x)": "no equality",
}


@pytest.mark.parametrize("query", NOT_SO)
def test_what_cannot_run_so_is_reported_why(query: str) -> None:
    assert planned(query).kind != "SlideJoin"
    for options in ({"slide_join": "full"}, {"memory": "64 MB"}):
        with pytest.raises(UnsupportedError, match=NOT_SO[query]) as not_taken:
            planned(query, **options)
        assert not_taken.value.remedy is not None and "RSTREAM(SELECT" in not_taken.value.remedy


def test_a_budget_concerns_nobody_who_keeps_nothing() -> None:
    assert planned("SELECT x FROM a [RANGE 4 SECONDS] WHERE x > 1", memory="64 MB").kind == "Project"


def test_budgets_that_cannot_be() -> None:
    with pytest.raises(UnsupportedError, match="too small") as small:
        planned(JOIN, memory="1 MB")
    assert "4 MB" in str(small.value)
    with pytest.raises(UnsupportedError, match="'off'"):
        planned(JOIN, memory="64 MB", slide_join="off")
    for wrong in ("much", "0 MB", "-3", ""):
        with pytest.raises(OptionError, match="memory"):
            read_option("memory", wrong)


def test_a_budget_is_divided_among_partitions() -> None:
    root = planned(JOIN, memory="64 MB")
    catalogue = Catalogue()
    assert Layout(root, catalogue, "changes", 16).partitions == 16
    with pytest.raises(UnsupportedError, match="divided among 17 partitions") as not_taken:
        Layout(root, catalogue, "changes", 17)
    assert "68 MB" in str(not_taken.value)


def test_explain_tells_the_tactic_and_why_not_the_others() -> None:
    text = explain_text(planned(JOIN, memory="64 MB"))
    assert text.startswith("#6 slide markers: a marker a slide, attempt, status, x")
    assert "#5 slide join hybrid: a.k = b.k over [RANGE 4 SECOND SLIDE 1 SECOND]" in text
    assert "within 67,108,864 bytes, the rest on disk" in text
    assert "not incremental: results that do not fit" in text and "not full: joins what it has joined before" in text
