from __future__ import annotations

import pytest

from transom.cql.statements import bind_query, parse_statements
from transom.kernels.multiway.statistics import Machine
from transom.plan.catalogue import Catalogue
from transom.plan.expression import columns_of
from transom.planner.fragments import ANSWER, Fragment, fragments
from transom.planner.plan import plan
from transom.planner.statistics import DeclaredStatistics

KNOWN = Catalogue()
parse_statements(
    """
    CREATE STREAM S (ts TIMESTAMP, k INTEGER, a INTEGER, b INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM T (ts TIMESTAMP, k INTEGER, c INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM U (ts TIMESTAMP, c INTEGER, d INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM Wide (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts);
    CREATE TABLE Names (id INTEGER, label VARCHAR);
    CREATE TABLE Prices (ts TIMESTAMP, id INTEGER, price INTEGER, WATERMARK FOR ts AS ts, PRIMARY KEY (id));
    CREATE TABLE Stock (ts TIMESTAMP, op VARCHAR, id INTEGER, n INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
    """,
    KNOWN,
)


def cut(text: str) -> list[Fragment]:
    return fragments(plan(bind_query(text, KNOWN), KNOWN, DeclaredStatistics(KNOWN, Machine(partitions=4))))


def shape(text: str) -> list[tuple[str, list[str]]]:
    """For each fragment how it is spread, and what comes in: from which source or fragment, spread how."""
    return [
        (
            str(part.partitioning),
            [f"{exchange.source or exchange.fragment} {exchange.partitioning}" for exchange in part.exchanges],
        )
        for part in cut(text)
    ]


def kinds(part: Fragment) -> list[str]:
    return [operator.kind for operator in part.operators if "Project" not in operator.kind]


def prefixes(text: str) -> list[str]:
    """Every exchange: from where, through what, into what."""
    paths = []
    for part in cut(text):
        for exchange in part.exchanges:
            stations = [*exchange.prefix, exchange.into]
            paths.append(" -> ".join([str(exchange.source or exchange.fragment), *(o.kind for o in stations)]))
    return paths


JOINED = "S [RANGE 1 MINUTE] JOIN T [RANGE 1 MINUTE] ON S.k = T.k"


def test_a_window_and_a_grouping_are_one_fragment_by_the_key_with_a_filter_on_the_way_to_it() -> None:
    text = "SELECT k, COUNT(*) AS n FROM S [RANGE 1 MINUTE] WHERE a > 1 GROUP BY k"
    assert shape(text) == [("by (k)", ["S by (k)"])]
    assert kinds(cut(text)[0]) == ["Window", "Aggregate"]
    assert prefixes(text) == ["S -> StreamFilter -> StreamProject -> Window"]


@pytest.mark.parametrize("key", ["S.k", "T.k"])
def test_a_join_and_a_grouping_on_the_same_key_are_one_fragment_whichever_side_names_it(key: str) -> None:
    assert shape(f"SELECT {key}, COUNT(*) AS n FROM {JOINED} GROUP BY {key}") == [("by (k)", ["S by (k)", "T by (k)"])]


def test_a_grouping_on_another_column_than_the_join_moves_the_rows() -> None:
    text = f"SELECT a, COUNT(*) AS n FROM {JOINED} GROUP BY a"
    assert shape(text) == [("by (k)", ["S by (k)", "T by (k)"]), ("by (a)", ["1 by (a)"])]
    assert [kinds(part) for part in cut(text)] == [["Window", "Window", "JoinAggregate"], ["MergeAggregate"]]


def test_a_global_aggregate_is_a_single_partition_fed_by_many() -> None:
    text = "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE] WHERE a > 1"
    assert shape(text) == [("any", ["S any"]), ("single", ["1 single"])]
    assert [kinds(part) for part in cut(text)] == [["Window"], ["Aggregate"]]
    assert prefixes(text) == ["S -> StreamFilter -> StreamProject -> Window", "1 -> Aggregate"]


def test_a_row_count_window_is_a_single_partition_and_what_has_a_key_above_it_is_spread_again() -> None:
    assert [part.partitioning.kind for part in cut("SELECT * FROM S [ROWS 10]")] == ["single"]
    assert shape("SELECT * FROM S [ROWS 10]") == [("single", ["S single"])]
    parts = cut("SELECT k, COUNT(*) AS n FROM S [ROWS 10] GROUP BY k")
    assert [part.partitioning.kind for part in parts] == ["single", "keys"]
    assert [kinds(part) for part in parts] == [["Window"], ["Aggregate"]]


def test_a_window_by_partition_is_spread_by_it() -> None:
    assert shape("SELECT k, COUNT(*) AS n FROM S [PARTITION BY k, a ROWS 3] GROUP BY k") == [("by (k)", ["S by (k)"])]
    assert [spread for spread, _ in shape("SELECT b, COUNT(*) AS n FROM S [PARTITION BY k ROWS 3] GROUP BY b")] == [
        "by (k)",
        "by (b)",
    ]


def test_joins_on_one_key_stay_together_and_joins_on_different_keys_do_not() -> None:
    one_key = "SELECT S.a FROM S [NOW], T [NOW], U [NOW] WHERE S.k = T.k AND T.k = U.c"
    assert shape(one_key) == [("by (k)", ["S by (k)", "T by (k)", "U by (c)"])]
    two = "SELECT S.a FROM S [NOW], T [NOW], U [NOW] WHERE S.k = T.k AND T.c = U.c"
    assert shape(two) == [("by (k)", ["S by (k)", "T by (k)"]), ("by (c)", ["U by (c)", "1 by (c)"])]
    assert kinds(cut(two)[1]) == ["Window", "Join"]


def test_a_fragment_is_spread_by_the_keys_that_suit_all_of_it() -> None:
    both = "S [NOW] JOIN T [NOW] ON S.k = T.k AND S.a = T.c"
    assert shape(f"SELECT S.b FROM {both}") == [("by (k, a)", ["S by (k, a)", "T by (k, c)"])]
    assert shape(f"SELECT a, COUNT(*) AS n FROM {both} GROUP BY a") == [("by (a)", ["S by (a)", "T by (c)"])]
    assert shape("SELECT k, a, COUNT(*) AS n FROM S [NOW] GROUP BY k, a") == [("by (k, a)", ["S by (k, a)"])]
    grouped_twice = "SELECT k, SUM(n) AS m FROM (SELECT k, a, COUNT(*) AS n FROM S [NOW] GROUP BY k, a) AS g GROUP BY k"
    assert shape(grouped_twice) == [("by (k)", ["S by (k)"])]


def test_a_key_is_followed_through_renaming_and_swapped_columns() -> None:
    renamed = "SELECT x, COUNT(*) AS n FROM (SELECT a AS k, k AS x FROM S [NOW]) AS v GROUP BY x"
    assert shape(renamed) == [("by (k)", ["S by (k)"])]
    misleading = """
        SELECT v.k, COUNT(*) AS n
        FROM (SELECT S.a AS k FROM S [NOW] JOIN T [NOW] ON S.k = T.k) AS v GROUP BY v.k
    """
    assert [spread for spread, _ in shape(misleading)] == ["by (k)", "by (k)"]  # k is another column by then


def test_a_computed_key_is_the_same_key_only_if_it_is_computed_alike() -> None:
    text = "SELECT S.k + 1 AS x, COUNT(*) AS n FROM S [NOW] JOIN T [NOW] ON S.k {0} 1 = T.k GROUP BY S.k + 1"
    assert len(cut(text.format("+"))) == 1
    assert len(cut(text.format("-"))) == 2


def test_a_computed_key_does_not_pass_a_filter_that_may_guard_it() -> None:
    text = "SELECT x, COUNT(*) AS n FROM (SELECT 10 / {1} AS x FROM {0} WHERE {1} <> 0) AS v GROUP BY x"
    assert [spread for spread, _ in shape(text.format("Names", "id"))] == ["any", "by (x)"]
    assert [spread for spread, _ in shape(text.format("Stock", "n"))] == ["by (id, n)", "by (x)"]


def test_a_computed_key_is_made_of_what_a_filter_on_the_way_lets_through() -> None:
    text = "SELECT x, COUNT(*) AS n FROM (SELECT 10 / a AS x FROM S [NOW] WHERE a <> 0) AS v GROUP BY x"
    (part,) = cut(text)
    assert prefixes(text) == ["S -> StreamFilter -> StreamProject -> Window"]
    (key,) = part.exchanges[0].partitioning.keys
    assert columns_of(key) == {0}, "a is the first column behind the way"


def test_a_wider_integer_is_the_same_key() -> None:
    parts = shape("SELECT S.k, COUNT(*) AS n FROM S [NOW] JOIN Wide [NOW] ON S.k = Wide.k GROUP BY S.k")
    assert len(parts) == 1


def test_one_stream_may_be_spread_in_two_ways_but_one_operator_may_not() -> None:
    two_windows = "SELECT x.b FROM S [RANGE 1 MINUTE] AS x, S [RANGE 2 MINUTES] AS y WHERE x.k = y.a"
    assert shape(two_windows) == [("by (k)", ["S by (k)", "S by (a)"])]
    shared = """
        SELECT x.n FROM (SELECT k, a, COUNT(*) AS n FROM S [NOW] GROUP BY k, a) AS x,
                        (SELECT k, a, COUNT(*) AS n FROM S [NOW] GROUP BY k, a) AS y WHERE x.k = y.a
    """
    assert shape(shared) == [("by (k, a)", ["S by (k, a)"]), ("by (k)", ["1 by (k)", "1 by (a)"])]


def test_no_fragment_feeds_itself_by_way_of_another() -> None:
    """The join could be spread as its left input is; but its right input is made from that one, spread otherwise."""
    text = """
        SELECT x.n FROM (SELECT k, COUNT(*) AS n FROM S [NOW] GROUP BY k) AS x,
                        (SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM S [NOW] GROUP BY k) AS z
                         GROUP BY n) AS y
        WHERE x.k = y.m
    """
    parts = cut(text)
    for part in parts:
        assert all(exchange.fragment is None or exchange.fragment < part.number for exchange in part.exchanges)
    assert [str(part.partitioning) for part in parts] == ["by (k)", "by (n)", "by (CAST(k AS BIGINT))"]


def test_unions_join_fragments_that_are_spread_alike() -> None:
    assert shape("SELECT k FROM S [NOW] UNION ALL SELECT c FROM U [NOW]") == [("any", ["S any", "U any"])]
    assert shape("SELECT k FROM S [NOW] UNION SELECT c FROM U [NOW]") == [("by (k)", ["S by (k)", "U by (c)"])]
    grouped = "SELECT k, COUNT(*) AS n FROM S [NOW] GROUP BY k"
    alike = f"SELECT k, SUM(n) AS m FROM ({grouped} UNION ALL SELECT c, d FROM U [NOW]) AS v GROUP BY k"
    assert shape(alike) == [("by (k)", ["S by (k)", "U by (c)"])]
    otherwise = f"{grouped} UNION ALL SELECT MAX(c) AS c, COUNT(*) AS n FROM U [NOW]"
    assert [spread for spread, _ in shape(otherwise)] == ["by (k)", "any", "single", "any"]


@pytest.mark.parametrize("operation", ["INTERSECT", "EXCEPT ALL"])
def test_set_operations_are_spread_by_their_columns(operation: str) -> None:
    assert shape(f"SELECT k, a FROM S [NOW] {operation} SELECT c, d FROM U [NOW]") == [
        ("by (k, a)", ["S by (k, a)", "U by (c, d)"])
    ]


def test_streams_of_changes() -> None:
    grouped = "SELECT k, COUNT(*) AS n FROM S [NOW] GROUP BY k"
    assert shape(f"ISTREAM({grouped})") == [("by (k)", ["S by (k)"])]
    assert [spread for spread, _ in shape(f"RSTREAM({grouped})")] == ["by (k)", "single"]


def test_a_changing_table_is_spread_by_what_identifies_a_row() -> None:
    joined = "SELECT S.a FROM S [NOW], {0} AS t WHERE S.k = t.{1}"
    assert shape(joined.format("Prices", "id")) == [("by (k)", ["S by (k)", "Prices by (id)"])]
    assert shape(joined.format("Prices", "price")) == [
        ("by (id)", ["Prices by (id)"]),
        ("by (k)", ["S by (k)", "1 by (price)"]),
    ]
    assert shape(joined.format("Stock", "n")) == [("by (k)", ["S by (k)", "Stock by (n)"])]


def test_static_tables_are_sources() -> None:
    assert shape("SELECT S.a, Names.label FROM S [NOW], Names WHERE S.k = Names.id") == [
        ("by (k)", ["S by (k)", "Names by (id)"])
    ]
    assert shape("SELECT * FROM Names") == [("any", ["Names any"])]


def test_pairs_without_a_key_meet_in_a_single_partition() -> None:
    assert [spread for spread, _ in shape("SELECT S.a FROM S [NOW], T [NOW] WHERE S.k < T.k")] == [
        "any",
        "any",
        "single",
    ]


# --- on the way ------------------------------------------------------------------------------------------------------

COUNTED = "ISTREAM(SELECT k, COUNT(*) AS n FROM S [RANGE 1 MINUTE] GROUP BY k)"


def test_what_is_read_of_a_stream_of_another_fragment_is_on_the_way_and_runs_nowhere_else() -> None:
    text = f"SELECT MAX(k) AS m FROM {COUNTED} [ROWS 3]"
    assert prefixes(text) == ["S -> StreamProject -> Window", "1 -> StreamProject -> Window"]
    assert [[operator.kind for operator in part.operators] for part in cut(text)] == [
        ["Window", "Aggregate", "Project", "ToStream"],
        ["Window", "Aggregate", "Project"],
    ]


def test_what_the_same_fragment_reads_as_well_stays_in_it() -> None:
    text = f"""
        SELECT x.k FROM (SELECT k FROM {COUNTED} [RANGE 1 MINUTE]) AS x, (SELECT k FROM {COUNTED} [ROWS 3]) AS y
        WHERE x.k = y.k
    """
    first, second, third = cut(text)
    assert prefixes(text) == ["S -> StreamProject -> Window", "1 -> StreamProject -> Window", "1 -> Join", "2 -> Join"]
    (shared,) = second.exchanges[0].prefix
    assert any(operator is shared for operator in first.operators)
    assert kinds(first).count("Window") == 2 and kinds(second) == ["Window"] and kinds(third) == ["Join"]


def test_a_stream_and_a_filter_within_a_fragment_are_in_it() -> None:
    text = f"SELECT k FROM {COUNTED} [RANGE 1 MINUTE] WHERE n > 1"
    assert prefixes(text) == ["S -> StreamProject -> Window"]
    assert kinds(cut(text)[0]) == ["Window", "Aggregate", "ToStream", "StreamFilter", "Window"]


def test_two_that_read_one_filtered_stream_have_it_on_the_way_each() -> None:
    text = """
        SELECT x.b, y.k FROM S [RANGE 1 MINUTE] AS x, S [ROWS 5] AS y WHERE x.k = y.k AND x.a > 1
        UNION ALL SELECT b, k FROM S [RANGE 2 MINUTES] WHERE a > 1
    """
    assert prefixes(text).count("S -> StreamFilter -> StreamProject -> Window") == 2
    assert prefixes(text).count("S -> StreamProject -> Window") == 1
    filters = [
        o for part in cut(text) for exchange in part.exchanges for o in exchange.prefix if o.kind == "StreamFilter"
    ]
    assert len(filters) == 2 and filters[0].node == filters[1].node
    assert not any("Stream" in kind for part in cut(text) for kind in kinds(part))


# --- who reports the answer
# --------------------------------------------------------------------------------------------


def reported_by(text: str) -> tuple[int, Fragment]:
    """How many fragments more there are where equal rows have to meet, and the last."""
    root = plan(bind_query(text, KNOWN), KNOWN)
    cut_apart = fragments(root, tuple(range(len(root.schema))))
    return len(cut_apart) - len(fragments(root)), cut_apart[-1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, COUNT(*) AS n FROM S [NOW] GROUP BY k",
        f"SELECT S.k, c FROM {JOINED}",
        "SELECT COUNT(*) AS n FROM S [NOW]",
        "SELECT a FROM S [ROWS 3]",
        "SELECT DISTINCT a FROM S [NOW]",
        "SELECT price FROM (SELECT MAX(price) AS price FROM Prices) AS v",
    ],
)
def test_an_answer_that_is_spread_by_its_columns_is_reported_where_it_is(text: str) -> None:
    more, last = reported_by(text)
    assert more == 0 and last.operators


@pytest.mark.parametrize(
    ("text", "spread"),
    [
        ("SELECT a, b FROM S [NOW]", "by (a, b)"),
        (f"SELECT a FROM {JOINED}", "by (a)"),
        ("SELECT S.a FROM S [NOW] JOIN T [NOW] ON S.k = T.k AND S.a = T.c", "by (a)"),
        ("SELECT COUNT(*) AS n FROM S [NOW] GROUP BY k", "by (n)"),
        ("SELECT k FROM S [NOW] UNION ALL SELECT c FROM U [NOW]", "by (k)"),
        ("SELECT k + 1 AS x FROM S [NOW]", "by (x)"),
        ("SELECT price FROM Prices", "by (price)"),
    ],
)
def test_equal_rows_of_an_answer_meet_where_it_is_reported(text: str, spread: str) -> None:
    more, last = reported_by(text)
    (exchange,) = last.exchanges
    assert (more, last.operators, str(last.partitioning)) == (1, (), spread)
    assert (exchange.index, exchange.fragment, exchange.prefix) == (ANSWER, last.number - 1, ())
    assert exchange.into.schema.names == plan(bind_query(text, KNOWN), KNOWN).schema.names
