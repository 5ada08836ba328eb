from __future__ import annotations

import json

import pytest

from transom.core.errors import UnsupportedError
from transom.cql.statements import bind_query, parse_statements
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.planner.explain import Measured, explain_json, explain_text
from transom.planner.plan import plan

KNOWN = Catalogue()
parse_statements(
    """
    CREATE STREAM S (ts TIMESTAMP, k INTEGER, a INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM T (ts TIMESTAMP, k INTEGER, c INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM Now (a INTEGER) WITH (time = 'arrival');
    SET joinagg = 'pc';
    """,
    KNOWN,
)

JOIN = """
    SELECT S.k, COUNT(*) AS n FROM S [RANGE 1 MINUTE], T [PARTITION BY k ROWS 3]
    WHERE S.k = T.k AND S.a < T.c GROUP BY S.k
"""


def planned(text: str) -> Operator:
    return plan(bind_query(text, KNOWN), KNOWN)


def test_the_tree_of_a_join() -> None:
    assert explain_text(planned(JOIN)).splitlines() == [
        "#9 project: k, count(*) AS n",
        "│  keeps nothing; O(1) a row; fragment 1",
        "└─ #8 aggregate sliding: count(*) by k",
        "   │  keeps 16 bytes per argument and row of the join alive, totals per group; O(1) a row; fragment 1",
        "   │  not factorised: (a < c) is a predicate between inputs that is not an equality of all of them",
        "   │  not tc: rows of input 2 may match before it is known when they end",
        "   │  not adaptive: factorised, which it changes to, cannot run it",
        "   │  not ic: not requested",
        "   └─ #7 join lazy_hash: S.k = T.k AND (a < c)",
        "      │  keeps the rows alive of both sides, and a list node per open pair; "
        "O(1 + matches) a row, O(log n) to expire; fragment 1",
        "      │  not ring_hash: rows of the right input do not end in the order in which they came",
        "      │  not nested_loop: lazy_hash does it with less work",
        "      ├─ #3 window range: [RANGE 1 MINUTE]",
        "      │  │  keeps nothing; O(1) a row; fragment 1",
        "      │  └─ #2 project: k, a",
        "      │     │  keeps nothing; O(1) a row; on the way",
        "      │     └─ #1 scan: stream S",
        "      │           keeps rows waiting for progress; O(1) a row; source",
        "      └─ #6 window partition_rows: [PARTITION BY k ROWS 3]",
        "         │  keeps four numbers for each of 3 rows of every partition, and the partitions; "
        "O(1) a row; fragment 1",
        "         └─ #5 project: k, c",
        "            │  keeps nothing; O(1) a row; on the way",
        "            └─ #4 scan: stream T",
        "                  keeps rows waiting for progress; O(1) a row; source",
        "fragment 1, by (k): S by (k) through #2 into #3; T by (k) through #5 into #6",
        "lifetimes direct: a row passes every operator once; an open end is an open row id of 8 bytes",
        "   not negative: a row would pass every operator twice",
    ]


def test_a_shared_operator_is_described_once() -> None:
    lines = explain_text(planned("SELECT x.a FROM S [NOW] AS x, S [NOW] AS y WHERE x.a = y.a")).splitlines()
    windows = [line.strip("├└─ │") for line in lines if "#3 window" in line]
    assert windows == ["#3 window range: [NOW] (shared)", "#3 window range: shared, see above"]
    assert sum("scan" in line for line in lines) == 1
    plan_json = explain_json(planned("SELECT x.a FROM S [NOW] AS x, S [NOW] AS y WHERE x.a = y.a"))
    assert [operator["number"] for operator in plan_json["operators"] if operator["shared"]] == [3]
    assert next(operator for operator in plan_json["operators"] if operator["operator"] == "Join")["inputs"] == [3, 3]


def test_what_was_measured_stands_at_its_operator() -> None:
    root = planned("SELECT k FROM S [NOW]")
    measured = [Measured(i, i + 1, i + 2, 1000 * i, i / 1000) for i in range(len(list(root.walk())))]
    text = explain_text(root, measured)
    assert (
        text.index("#2 project") < text.index("1 rows in, 2 out, 3 ends, 1,000 bytes kept, 1.0 ms") < text.index("#1")
    )
    assert explain_json(root, measured)["operators"][1]["measured"] == {
        "rows_in": 1, "rows_out": 2, "ends": 3, "state_bytes": 1000, "seconds": 0.001,
    }  # fmt: skip


def test_json_tells_all_that_the_tree_tells() -> None:
    plan_json = json.loads(json.dumps(explain_json(planned(JOIN))))
    assert plan_json["root"] == 9
    assert plan_json["columns"] == [{"name": "k", "type": "INTEGER"}, {"name": "n", "type": "BIGINT"}]
    assert [operator["number"] for operator in plan_json["operators"]] == list(range(1, 10))
    join = plan_json["operators"][6]
    assert join["tactic"] == "lazy_hash"
    assert join["inputs"] == [3, 6]
    assert [tactic["tactic"] for tactic in join["not_taken"]] == ["ring_hash", "nested_loop"]
    assert join["needs"] == ["by (k)", "by (k)"]
    assert "measured" not in join
    assert [operator["fragment"] for operator in plan_json["operators"]] == [None, None, 1, None, None, 1, 1, 1, 1]
    assert plan_json["fragments"] == [
        {
            "number": 1,
            "partitioning": "by (k)",
            "operators": [3, 6, 7, 8, 9],
            "exchanges": [
                {"source": "S", "fragment": None, "into": 3, "input": 0, "partitioning": "by (k)", "prefix": [2]},
                {"source": "T", "fragment": None, "into": 6, "input": 0, "partitioning": "by (k)", "prefix": [5]},
            ],
        }
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a FROM S [ROWS 2]",
        "SELECT a FROM S [NOW] UNION SELECT c FROM T [NOW]",
        "SELECT a FROM S [NOW] EXCEPT ALL SELECT c FROM T [NOW]",
        "ISTREAM(SELECT MAX(a) AS m FROM S [RANGE 1 MINUTE SLIDE 10 SECONDS])",
        "SELECT S.a FROM S [NOW], T [NOW]",
        "SELECT k FROM S [NOW] WHERE a > 1 GROUP BY k",
        "SELECT a FROM Now [ROWS 3]",
    ],
)
def test_every_operator_can_be_explained(text: str) -> None:
    root = planned(text)
    lines = explain_text(root).splitlines()
    assert sum(line.lstrip("├└─ │").startswith("#") for line in lines) == len(list(root.walk()))
    assert not any(line.endswith(": ") for line in lines)


def test_streams_stamped_on_arrival_do_not_mix_with_others() -> None:
    with pytest.raises(UnsupportedError, match="mixes streams with time = 'arrival' and 'S'"):
        planned("SELECT S.a FROM S [NOW], Now [NOW] AS n WHERE S.a = n.a")
