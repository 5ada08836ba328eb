"""Where the operators of queries on one join run, and what they are called whoever else is there."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.run_in_partitions import Cluster
from tests.run_locally import Push
from transom.core.time import SECOND
from transom.cql.statements import parse_statements
from transom.pipeline.consumer import Consumer, ConsumerSpec
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.sharing import shared_join
from transom.planner.sharing_shape import Sharable, sharable

CATALOGUE = Catalogue()
parse_statements(
    "CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);"
    "CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);",
    CATALOGUE,
)
FROM = "FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k AND s.g = t.g"
ROWS = "FROM s [ROWS 5], t [RANGE 5 SECONDS] WHERE s.k = t.k AND s.g = t.g"


def consumer(name: str, query: str, emit: str = "lifetimes", catalogue: Catalogue = CATALOGUE) -> Consumer:
    (statement,) = parse_statements(query, catalogue)
    assert isinstance(statement, QueryStatement)
    requested = sharable(statement.query, catalogue)
    assert isinstance(requested, Sharable)
    return Consumer(ConsumerSpec(name, requested, emit), catalogue)


def layout(*consumers: Consumer, partitions: int = 3, catalogue: Catalogue = CATALOGUE) -> Layout:
    subplan = shared_join([each.spec.of_join for each in consumers], catalogue)
    return Layout(subplan, catalogue, "changes", partitions, open=True, consumers=consumers)


PAIRS = ["Narrow", "Project"]
GROUPS = ["Aggregate", "Project"]


@pytest.mark.parametrize(
    ("select", "emit", "beside", "above"),
    [
        ("SELECT s.x {}", "lifetimes", PAIRS, []),
        ("SELECT s.x {}", "changes", PAIRS, [([], "keys", 3)]),
        ("SELECT s.k, s.g, t.x {}", "changes", PAIRS, []),
        ("SELECT s.g, t.k, COUNT(*) AS n {} GROUP BY s.g, t.k", "changes", [*PAIRS, *GROUPS], []),
        ("SELECT s.k, COUNT(*) AS n {} GROUP BY s.k", "changes", PAIRS, [(GROUPS, "keys", 3)]),
        ("SELECT COUNT(*) AS n {}", "changes", PAIRS, [(GROUPS, "single", 1)]),
        ("SELECT s.k {0}".replace("{0}", ROWS), "lifetimes", [], [(PAIRS, "single", 1)]),
    ],
)
def test_what_needs_no_rows_of_others_runs_beside_the_join(
    select: str, emit: str, beside: list[str], above: list[tuple[list[str], str, int]]
) -> None:
    one = consumer("q", select.format(FROM), emit)
    assert [operator.kind for operator in one.beside(3)] == beside
    found = layout(one, consumer("other", f"SELECT t.x {FROM}"))
    own = [each for each in found.fragments if found.consumer_of(each.number) is one]
    assert [
        ([o.kind for o in each.operators], each.partitioning.kind, found.partitions_of(each.number)) for each in own
    ] == above


def test_fragments_channels_and_operators_are_called_alike_whoever_is_there() -> None:
    first = consumer("first", f"SELECT COUNT(*) AS n {FROM}")
    one = consumer("one", f"SELECT s.k, MAX(t.x) AS x {FROM} GROUP BY s.k")
    alone, together = layout(one), layout(first, one)
    numbers = [each.numbers["one", one.above(3)[0].number] for each in (alone, together)]
    assert numbers[0] < numbers[1]
    partitions = [FragmentPartition(each, number, 0) for each, number in zip((alone, together), numbers, strict=True)]
    assert (
        partitions[0].inputs.channels.keys() == partitions[1].inputs.channels.keys()
        and partitions[0].numbers == partitions[1].numbers
    )
    assert alone.fingerprint != together.fingerprint != layout(first, consumer("one", f"SELECT t.x {FROM}")).fingerprint


def test_a_query_reads_its_own_columns_of_the_join() -> None:
    one, other = consumer("one", f"SELECT t.x {FROM}"), consumer("other", f"SELECT s.x {ROWS}")
    found = layout(one, other)
    names = found.root.schema.names
    assert [names[i] for i in one.columns_in(found.root)["pairs"]] == ["k", "g", "k", "g", "x", "age"]
    assert [names[i] for i in other.columns_in(found.root)["left"]] == ["k", "g", "x", "number"]


def test_a_query_beside_the_join_is_heard_of_in_silence() -> None:
    """Its pair ends long before the join, which is there for others, has anything to do."""
    catalogue = Catalogue()
    declared = "CREATE STREAM {} (k INTEGER) WITH (connector = 'memory', time = 'arrival');"
    parse_statements("".join(map(declared.format, "ab")), catalogue)
    text = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k"
    short, long = (consumer(name, text.format(n), "changes", catalogue) for name, n in (("q", 5), ("other", 60)))
    found = layout(short, long, catalogue=catalogue, partitions=1)
    with closing(Cluster(found)) as cluster:
        first = cluster.answers([[Push("a", [(1, None)]), Push("b", [(1, None)])]], now=10 * SECOND, at_end=["a", "b"])
        assert sum(map(len, first["q"])) == 1
        assert cluster.statuses[1, 0]["wake"] == 15 * SECOND + 1
        later = cluster.answers([[Push("a", []), Push("b", [])]], now=16 * SECOND, at_end=["a", "b"])
        assert [rows.column("change").to_pylist() for rows in later["q"]] == [["-"]]
        assert "other" not in later and cluster.statuses[1, 0]["wake"] == 70 * SECOND + 1
