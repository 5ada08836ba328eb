"""Only the columns that somebody above reads are carried; whoever reads whole rows gets whole rows."""

from __future__ import annotations

import pytest

from tests.plan.rewrites.outline import bound, drawn, outline
from transom.plan.rewrites.prune_columns import prune_columns


def pruned(text: str) -> str:
    query, _ = bound(text)
    rewritten = prune_columns(query)
    assert rewritten.schema == query.schema
    return outline(rewritten)


def test_a_window_carries_what_is_asked_for() -> None:
    assert pruned("SELECT c FROM s [ROWS 3]") == drawn("""
        project c
          [ROWS 3]
            stream project c
              s
    """)


def test_a_window_keeps_what_it_partitions_by() -> None:
    assert pruned("SELECT c FROM s [PARTITION BY b, a ROWS 3]") == drawn("""
        project c
          [PARTITION BY #1, #0 ROWS 3]
            stream project a, b, c
              s
    """)


def test_filters_keep_what_they_read_until_they_have_read_it() -> None:
    assert pruned("SELECT a FROM s [ROWS 3] WHERE b > 1") == drawn("""
        project a
          filter (b > 1)
            [ROWS 3]
              stream project a, b
                s
    """)


def test_a_join_carries_its_predicate_and_what_leaves_it() -> None:
    assert pruned("SELECT t.d FROM s [NOW] JOIN t [NOW] ON s.a = t.a JOIN r ON s.b = r.e") == drawn("""
        project d
          join ((a = a) AND (b = e))
            [NOW]
              stream project a, b
                s
            [NOW]
              stream project a, d
                t
            project e
              r
    """)


def test_a_row_that_only_has_to_be_there_keeps_one_column() -> None:
    assert pruned("SELECT COUNT(*) FROM s [NOW], r") == drawn("""
        aggregate count(*)
          join
            [NOW]
              stream project ts
                s
            project a
              r
    """)


def test_an_aggregate_reads_keys_and_arguments() -> None:
    assert pruned("SELECT MAX(b) AS m FROM s [NOW] GROUP BY a") == drawn("""
        project max(b)
          aggregate a, max(b)
            [NOW]
              stream project a, b
                s
    """)


def test_both_sides_of_union_all_are_cut_alike_by_position() -> None:
    assert pruned("SELECT y FROM (SELECT a AS x, b AS y FROM s [NOW] UNION ALL SELECT d, a FROM t [NOW])") == drawn("""
        project y
          union all
            project b
              [NOW]
                stream project b
                  s
            project a
              [NOW]
                stream project a
                  t
    """)


@pytest.mark.parametrize("operation", ["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_set_operations_read_whole_rows(operation: str) -> None:
    tree = pruned(f"SELECT x FROM (SELECT a AS x, b FROM s [NOW] {operation} SELECT d, a FROM t [NOW])")
    assert "project a, b" in tree and "project d, a" in tree


def test_distinct_and_stream_operators_read_whole_rows() -> None:
    assert "project a, b" in pruned("SELECT a FROM (SELECT DISTINCT a, b FROM s [NOW])")
    tree = pruned("SELECT a FROM ISTREAM(SELECT a, b FROM s [NOW]) [ROWS 2]")
    assert tree.splitlines()[2:5] == ["    stream project a", "      istream", "        project a, b"]


def test_a_query_that_needs_all_stays_as_it_is() -> None:
    for text in ("SELECT ts, a, b, c FROM s [ROWS 2]", "SELECT * FROM r", "ISTREAM(SELECT ts, a, d FROM t [NOW])"):
        query, _ = bound(text)
        assert prune_columns(query) == query


def test_sub_queries_keep_the_columns_that_they_may_read() -> None:
    tree = pruned("SELECT a FROM s [NOW] WHERE a IN (SELECT a FROM r)")
    assert "stream project" not in tree
