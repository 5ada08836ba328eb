"""Selections move towards the sources, but never past a window that counts the rows they would hide."""

from __future__ import annotations

import pytest

from tests.plan.rewrites.outline import bound, drawn, outline
from transom.plan.algebra import StreamFilter
from transom.plan.rewrites.push_filters import push_filters

PASSES = {
    "[RANGE 9 SECONDS]": "a > 1",
    "[NOW]": "a > 1",
    "[RANGE UNBOUNDED]": "a > 1",
    "": "a > 1",
    "[PARTITION BY a ROWS 3]": "a > 1",
    "[PARTITION BY a, b ROWS 3]": "a > b",
    "[PARTITION BY b, a ROWS 3 RANGE 9 SECONDS]": "a > 1",
}
STAYS = {
    "[ROWS 3]": "a > 1",
    "[ROWS 3 RANGE 9 SECONDS]": "a > 1",
    "[ROWS 3 SLIDE 2]": "a > 1",
    "[RANGE 9 SECONDS SLIDE 2 SECONDS]": "a > 1",
    "[PARTITION BY b ROWS 3]": "a > 1",
    "[PARTITION BY a ROWS 3]": "a > b",
    "[PARTITION BY a ROWS 3 RANGE 9 SECONDS]": "c = 'x'",
}


@pytest.mark.parametrize(("window", "predicate"), PASSES.items())
def test_a_filter_passes_a_window_whose_rows_it_does_not_miscount(window: str, predicate: str) -> None:
    lines = outline(push_filters(bound(f"SELECT a FROM s {window} WHERE {predicate}")[0])).splitlines()
    assert lines[1].strip().startswith("[") and lines[2].strip().startswith("stream filter") and lines[3].strip() == "s"


@pytest.mark.parametrize(("window", "predicate"), STAYS.items())
def test_a_filter_stays_above_a_window_that_counts(window: str, predicate: str) -> None:
    query, _ = bound(f"SELECT a FROM s {window} WHERE {predicate}")
    assert push_filters(query) == query


def test_parts_of_a_filter_go_as_far_as_each_may() -> None:
    query, _ = bound("SELECT a FROM s [PARTITION BY a ROWS 2] WHERE b > 1 AND a > 2 AND a + b < 9 AND a < 5")
    assert outline(push_filters(query)) == drawn("""
        project a
          filter ((b > 1) AND ((a + b) < 9))
            [PARTITION BY #1 ROWS 2]
              stream filter ((a > 2) AND (a < 5))
                s
    """)


def test_a_filter_goes_into_the_inputs_of_a_join_and_what_speaks_of_both_becomes_its_predicate() -> None:
    text = "SELECT s.a FROM s [NOW], t [ROWS 2] WHERE s.a = t.a AND s.b > 1 AND t.d > 2 AND 1 = 1"
    assert outline(push_filters(bound(text)[0])) == drawn("""
        project a
          join ((a = a) AND (1 = 1))
            [NOW]
              stream filter (b > 1)
                s
            filter (d > 2)
              [ROWS 2]
                t
    """)


def test_a_filter_passes_a_projection_by_what_its_columns_are() -> None:
    query, _ = bound("SELECT x FROM (SELECT a + b AS x FROM s [NOW]) WHERE x > 3")
    assert outline(push_filters(query)) == drawn("""
        project (a + b)
          [NOW]
            stream filter ((a + b) > 3)
              s
    """)


@pytest.mark.parametrize("operation", ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_a_filter_goes_into_both_sides_of_a_set_operation(operation: str) -> None:
    query, _ = bound(f"SELECT a FROM (SELECT a FROM s [NOW] {operation} SELECT a FROM t [ROWS 1]) WHERE a > 1")
    assert outline(push_filters(query)) == drawn(f"""
        {operation.lower()}
          project a
            [NOW]
              stream filter (a > 1)
                s
          project a
            filter (a > 1)
              [ROWS 1]
                t
    """)


def test_a_filter_passes_distinct_but_not_an_aggregate() -> None:
    query, _ = bound("SELECT a FROM (SELECT DISTINCT a FROM s [NOW]) WHERE a > 1")
    assert outline(push_filters(query)) == drawn("""
        distinct
          project a
            [NOW]
              stream filter (a > 1)
                s
    """)
    grouped, _ = bound("SELECT a FROM (SELECT a, COUNT(*) AS n FROM s [NOW] GROUP BY a) WHERE n > 1")
    assert outline(push_filters(grouped)) == drawn("""
        project a
          project a, count(*)
            filter (count(*) > 1)
              aggregate a, count(*)
                [NOW]
                  s
    """)


def test_a_filter_above_a_stream_operator_stays_in_the_relation_above_it() -> None:
    query, _ = bound("SELECT a FROM ISTREAM(SELECT a FROM s [ROWS 2] WHERE a > 1) [NOW] WHERE a < 5")
    assert outline(push_filters(query)) == drawn("""
        [NOW]
          stream filter (a < 5)
            istream
              project a
                filter (a > 1)
                  [ROWS 2]
                    s
    """)


def test_a_sub_query_in_a_filter_stays_where_it_is() -> None:
    query, _ = bound("SELECT a FROM s [NOW] WHERE a IN (SELECT a FROM r) AND b > 1")
    rewritten = push_filters(query)
    lines = [line.strip() for line in outline(rewritten).splitlines()]
    assert lines[1] == "filter a IN (..)" and lines[3] == "stream filter (b > 1)"


def test_filters_of_filters_become_one() -> None:
    query, _ = bound("SELECT a FROM (SELECT * FROM (SELECT * FROM s [NOW] WHERE a > 1) WHERE b > 2) WHERE c = 'x'")
    pushed = push_filters(query)
    filters = []
    pending = [pushed]
    while pending:
        node = pending.pop()
        pending.extend(node.inputs)
        if isinstance(node, StreamFilter):
            filters.append(str(node.predicate))
    assert filters == ["((a > 1) AND (b > 2) AND (c = 'x'))"]
