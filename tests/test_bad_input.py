"""Bad and strange input ends in the right answer or in a clear error, and every row is accounted for."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.files_through_the_engine import FORMATS, Ran, run, write
from tests.run_locally import Rows
from transom.core.errors import EvaluationError, QueryError, SourceError, TransomError
from transom.core.schema import DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Column, Schema
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import RelationHistory, difference

COLUMNS = Schema.of(("ts", TIMESTAMP), ("k", DOUBLE), ("v", VARCHAR))
START = datetime(2024, 5, 1)
NAN = math.nan


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def stream(path: Path, name: str = "s", bound: int = 0) -> str:
    watermark = f"WATERMARK FOR ts AS ts - INTERVAL '{bound}' SECOND"
    return (
        f"CREATE STREAM {name} (ts TIMESTAMP INVISIBLE, k DOUBLE, v VARCHAR, {watermark}) "
        f"WITH (connector = 'files', path = '{path}');\n"
    )


def matches_the_reference(ran: Ran, inputs: dict[str, Rows]) -> RelationHistory:
    expected = evaluate(ran.query, ran.catalogue, inputs)
    assert difference(expected, ran.history) is None
    for name in inputs:
        assert ran.ledgers[name].late == expected.late[name]
        assert ran.ledgers[name].rejected == expected.rejected[name]
        assert ran.ledgers[name].waiting == 0
    assert isinstance(expected, RelationHistory)
    return expected


# --- keys ------------------------------------------------------------------------------------------------------------

ODD: Rows = [
    (at(0), NAN, "a"), (at(1), None, "a"), (at(2), 0.0, None), (at(2), -0.0, ""), (at(3), NAN, None),
    (at(4), None, "a"), (at(5), math.inf, ""), (at(6), -math.inf, "b"), (at(7), NAN, "b"),
]  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, a.v, b.v AS w FROM s [RANGE 4 SECONDS] AS a, s [ROWS 5] AS b WHERE a.k = b.k",
        "SELECT a.v FROM s [ROWS 4] AS a, s [ROWS 5] AS b WHERE a.k = b.k AND a.v = b.v",
        "SELECT k, COUNT(*) AS n, COUNT(v) AS m, MIN(v) AS least FROM s [RANGE 5 SECONDS] GROUP BY k",
        "SELECT MIN(k) AS least, MAX(k) AS most, SUM(k) AS total, COUNT(DISTINCT k) AS n FROM s [ROWS 3]",
        "SELECT DISTINCT k, v FROM s [ROWS 6]",
        "SELECT k, v FROM s [PARTITION BY k ROWS 1]",
        "SELECT k FROM s [ROWS 5] EXCEPT ALL SELECT k FROM s [RANGE 2 SECONDS]",
    ],
)
def test_null_and_nan_keys(tmp_path: Path, file_format: str, query: str) -> None:
    path = tmp_path / f"s.{file_format}"
    write(path, COLUMNS, ODD)
    expected = matches_the_reference(run(stream(path) + query, batch_rows=2), {"s": ODD})
    assert len(expected.points) > 4


# --- files that are not as they should be ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["empty.csv", "empty.jsonl", "header.csv", "no_rows.parquet"])
def test_empty_files_are_streams_without_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.startswith("empty"):
        path.write_bytes(b"")
    else:
        write(path, COLUMNS, [])
    ran = run(stream(path) + "SELECT COUNT(*) AS n FROM s [ROWS 3]")
    assert ran.history.instants == () and ran.ledgers["s"].rows_in == 0


def test_an_empty_file_in_a_folder_changes_nothing(tmp_path: Path) -> None:
    for name, rows in (("a.csv", ODD[:4]), ("b.csv", []), ("d.csv", ODD[4:])):
        write(tmp_path / name, COLUMNS, rows)
    (tmp_path / "c.csv").write_bytes(b"")
    ran = run(stream(tmp_path) + "SELECT k, v FROM s [ROWS 3]", batch_rows=3)
    matches_the_reference(ran, {"s": ODD})


def test_an_empty_stream_beside_another_holds_nothing_back(tmp_path: Path) -> None:
    write(tmp_path / "s.csv", COLUMNS, ODD)
    write(tmp_path / "t.csv", COLUMNS, [])
    text = stream(tmp_path / "s.csv") + stream(tmp_path / "t.csv", "t")
    union = "SELECT v FROM s [ROWS 2] UNION ALL SELECT v FROM t [ROWS 2]"
    matches_the_reference(run(text + union, batch_rows=2), {"s": ODD, "t": []})
    matches_the_reference(run(text + "SELECT s.v FROM s, t WHERE s.k = t.k", batch_rows=2), {"s": ODD, "t": []})


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_missing_column_is_named_with_the_file(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / f"s.{file_format}"
    write(path, Schema.of(("ts", TIMESTAMP), ("k", DOUBLE)), [(at(0), 1.0)])
    with pytest.raises(SourceError) as caught:
        run(stream(path) + "SELECT k FROM s")
    assert "'v'" in str(caught.value) and f"s.{file_format}" in str(caught.value) and caught.value.remedy


def test_json_lines_may_leave_columns_out_but_not_the_time(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"ts": "2024-05-01 00:00:00"}\n{"k": 1}\n{"ts": "2024-05-01 00:00:01", "k": 2, "v": "x", "w": 9}\n'
    )
    ran = run(stream(path) + "SELECT k, v FROM s")
    assert ran.ledgers["s"].used == 2 and ran.ledgers["s"].rejected == 1 and len(ran.reasons["s"]) == 1
    assert isinstance(ran.history, RelationHistory)
    assert ran.history.points[-1][1] == Counter({(None, None): 1, (2.0, "x"): 1})


def test_rows_that_cannot_be_read_are_counted_with_their_reasons(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    lines = [
        "ts,k,v",
        "2024-05-01 00:00:00,1,a",
        "yesterday,1,a",
        "2024-05-01 00:00:01,one,a",
        ",1,a",
        "2024-05-01 00:00:02,1",
        "2024-05-01 00:00:03,1,a,b,c",
        "10000-01-01 00:00:00,1,a",
        "2024-05-01 00:00:02,2,ok",
        "2024-04-30 23:59:59,1,late",
    ]
    path.write_text("\n".join(lines) + "\n")
    ran = run(stream(path) + "SELECT v FROM s", batch_rows=2)
    ledger = ran.ledgers["s"]
    assert (ledger.rows_in, ledger.used, ledger.late, ledger.rejected) == (9, 2, 1, 6)
    assert isinstance(ran.history, RelationHistory) and ran.history.points[-1][1] == Counter({("a",): 1, ("ok",): 1})


# --- time ------------------------------------------------------------------------------------------------------------

WINDOWS = [
    "[RANGE 3 SECONDS]", "[ROWS 2]", "[ROWS 3 RANGE 2 SECONDS]", "[PARTITION BY v ROWS 1]", "[NOW]", "",
    "[RANGE 4 SECONDS SLIDE 2 SECONDS]", "[ROWS 3 SLIDE 2]",
]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
def test_equal_timestamps_only(tmp_path: Path, window: str) -> None:
    rows: Rows = [(at(0), float(i % 3), "xyz"[i % 2]) for i in range(9)]
    write(tmp_path / "s.csv", COLUMNS, rows)
    text = stream(tmp_path / "s.csv")
    matches_the_reference(run(text + f"SELECT k, v FROM s {window}", batch_rows=2), {"s": rows})
    counted = run(text + f"SELECT v, COUNT(*) AS n FROM s {window} GROUP BY v", batch_rows=4)
    matches_the_reference(counted, {"s": rows})


FAR: Rows = [
    (datetime(1, 1, 1), 1.0, "first"),
    (datetime(1, 1, 1, 0, 0, 1), 2.0, "first"),
    (datetime(1969, 12, 31, 23, 59, 59, 999_999), 3.0, "before"),
    (datetime(1970, 1, 1), 4.0, "epoch"),
    (datetime(9999, 12, 31, 23, 59, 58), 5.0, "last"),
    (datetime(9999, 12, 31, 23, 59, 59, 999_998), 6.0, "last"),
    (datetime(9999, 12, 31, 23, 59, 59, 999_999), 7.0, "forever is no instant"),
]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    "window", [*WINDOWS, "[RANGE 3000000 DAYS]", "[ROWS 2 RANGE 3650000 DAYS]", "[RANGE 9 DAYS SLIDE 7 DAYS]"]
)
def test_the_first_and_the_last_instants_of_time(tmp_path: Path, file_format: str, window: str) -> None:
    path = tmp_path / f"s.{file_format}"
    write(path, COLUMNS, FAR)
    for emit in ("changes", "lifetimes"):
        ran = run(stream(path) + f"SELECT k, v FROM s {window}", batch_rows=2, emit=emit)
        matches_the_reference(ran, {"s": FAR})
        assert ran.ledgers["s"].rejected == 1


def test_a_leap_through_the_ages_costs_nothing_where_nothing_is(tmp_path: Path) -> None:
    write(tmp_path / "s.csv", COLUMNS, FAR)
    text = stream(tmp_path / "s.csv") + "RSTREAM(SELECT k FROM s [RANGE 2 SECONDS SLIDE 1 SECOND])"
    ran = run(text)
    assert difference(evaluate(ran.query, ran.catalogue, {"s": FAR}), ran.history) is None
    with pytest.raises(EvaluationError, match="RSTREAM"):
        run(stream(tmp_path / "s.csv") + "RSTREAM(SELECT k FROM s [RANGE 9000000 DAYS SLIDE 1 SECOND])")


def test_disorder_and_a_bound_longer_than_time(tmp_path: Path) -> None:
    rows = FAR[::-1]
    write(tmp_path / "s.csv", COLUMNS, rows)
    for bound in (0, 10**9, 4 * 10**12):
        ran = run(stream(tmp_path / "s.csv", bound=bound) + "SELECT k FROM s [ROWS 2]", batch_rows=1)
        matches_the_reference(ran, {"s": rows})
        assert ran.ledgers["s"].rows_in == 7
    with pytest.raises(QueryError, match="too far behind"):
        run(stream(tmp_path / "s.csv", bound=10**13) + "SELECT k FROM s")


# --- windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window", ["[RANGE 0 SECONDS]", "[ROWS 0]", "[RANGE 5 SECONDS SLIDE 0 SECONDS]", "[ROWS 5 SLIDE 0]"]
)
def test_windows_of_no_length_are_rejected(tmp_path: Path, window: str) -> None:
    with pytest.raises(QueryError) as caught:
        run(stream(tmp_path / "s.csv") + f"SELECT k FROM s {window}")
    assert caught.value.remedy and caught.value.span is not None


HUGE = [
    "[ROWS 1000000000]", "[ROWS 9223372036854775807]", "[PARTITION BY v ROWS 9223372036854775807]",
    "[ROWS 9223372036854775807 SLIDE 2]", "[ROWS 2 SLIDE 9223372036854775807]",
    "[ROWS 9223372036854775807 SLIDE 9223372036854775807]", "[ROWS 1000000000 RANGE 999999999999 DAYS]",
    "[RANGE 99999999999999999999 DAYS]", "[RANGE 99999999999999999999 DAYS SLIDE 3 SECONDS]",
    "[RANGE 5 SECONDS SLIDE 99999999999999999999 DAYS]",
]  # fmt: skip


@pytest.mark.parametrize("window", HUGE)
def test_windows_longer_than_time_and_any_stream(tmp_path: Path, window: str) -> None:
    write(tmp_path / "s.csv", COLUMNS, ODD)
    text = stream(tmp_path / "s.csv")
    matches_the_reference(run(text + f"SELECT k, v FROM s {window}", batch_rows=2), {"s": ODD})
    joined = f"SELECT a.k FROM s {window} AS a, s [ROWS 2] AS b WHERE a.v = b.v"
    matches_the_reference(run(text + joined, batch_rows=2), {"s": ODD})


@pytest.mark.parametrize(
    "window", ["[ROWS 9223372036854775808]", "[ROWS -1]", "[ROWS 1.5]", "[RANGE -1 SECONDS]", "[RANGE 1e400 DAYS]"]
)
def test_windows_that_are_no_numbers_are_rejected(tmp_path: Path, window: str) -> None:
    with pytest.raises(QueryError):
        run(stream(tmp_path / "s.csv") + f"SELECT k FROM s {window}")


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.nightly
def test_texts_of_megabytes(tmp_path: Path, file_format: str) -> None:
    large = ["x" * 3_000_000 + end for end in ("b", "a", "c")] + ["y" * 2_000_000]
    rows: Rows = [(at(i), float(i), text) for i, text in enumerate([*large, large[0], None])]
    path = tmp_path / f"s.{file_format}"
    write(path, COLUMNS, rows)
    text = stream(path)
    least = run(text + "SELECT MIN(v) AS m, MAX(v) AS n, COUNT(DISTINCT v) AS d FROM s [ROWS 3]", batch_rows=2)
    assert isinstance(least.history, RelationHistory)
    expected = [
        (large[0], large[0], 1), (large[1], large[0], 2), (large[1], large[2], 3), (large[1], large[3], 3),
        (large[0], large[3], 3), (large[0], large[3], 2),
    ]  # fmt: skip
    assert [list(bag) for _, bag in least.history.points] == [[row] for row in expected]
    joined = run(text + "SELECT a.k, b.k AS l, a.v FROM s AS a, s [ROWS 2] AS b WHERE a.v = b.v", batch_rows=2)
    pairs = {row[:2] for _, bag in _points(joined) for row in bag}
    assert pairs == {(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0), (0.0, 4.0)}
    assert all(row[2] == rows[int(row[0])][2] for _, bag in _points(joined) for row in bag)


def _points(ran: Ran) -> Any:
    assert isinstance(ran.history, RelationHistory)
    return ran.history.points


@pytest.mark.nightly
def test_three_hundred_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(299)]
    columns = Schema(
        (Column("ts", TIMESTAMP), *(Column(name, INTEGER if i % 2 else VARCHAR) for i, name in enumerate(names)))
    )
    rows: Rows = [(at(s), *(i * s if i % 2 else f"{i % 5}" for i in range(299))) for s in range(6)]
    write(tmp_path / "s.csv", columns, rows)
    typed = ", ".join(f"{name} {'INTEGER' if i % 2 else 'VARCHAR'}" for i, name in enumerate(names))
    text = (
        f"CREATE STREAM s (ts TIMESTAMP, {typed}, WATERMARK FOR ts AS ts) "
        f"WITH (connector = 'files', path = '{tmp_path / 's.csv'}');"
    )
    for query in (
        "SELECT * FROM s [ROWS 2]",
        "SELECT a.c298, b.c1 FROM s [ROWS 2] AS a, s [ROWS 3] AS b WHERE "
        + " AND ".join(f"a.{n} = b.{n}" for n in names[:40]),
        f"SELECT {', '.join(f'SUM({n}) AS s_{n}' for n in names[1::2])} FROM s [ROWS 3]",
        f"SELECT COUNT(*) AS n, {', '.join(names[::2])} FROM s [ROWS 4] GROUP BY {', '.join(names[::2])}",
    ):
        matches_the_reference(run(text + query, batch_rows=2), {"s": rows})


# --- views -----------------------------------------------------------------------------------------------------------


def test_a_long_chain_of_views(tmp_path: Path) -> None:
    write(tmp_path / "s.csv", COLUMNS, ODD)
    views = ["CREATE VIEW v0 AS SELECT k, v FROM s [ROWS 3];"]
    for i in range(1, 40):
        step = f"SELECT k, v FROM v{i - 1} WHERE v <> '{i}'" if i % 3 else f"SELECT DISTINCT k, v FROM v{i - 1}"
        views.append(f"CREATE VIEW v{i} AS {step};")
    ran = run(stream(tmp_path / "s.csv") + "\n".join(views) + "SELECT k, v FROM v39", batch_rows=2)
    matches_the_reference(ran, {"s": ODD})


def test_views_that_double_and_chains_without_end_are_rejected() -> None:
    known = (
        "CREATE STREAM s (ts TIMESTAMP INVISIBLE, k DOUBLE, WATERMARK FOR ts AS ts); CREATE VIEW v0 AS SELECT k FROM s;"
    )
    doubling = [
        f"CREATE VIEW v{i} AS SELECT a.k FROM v{i - 1} AS a, v{i - 1} AS b WHERE a.k = b.k;" for i in range(1, 60)
    ]
    chained = [f"CREATE VIEW v{i} AS SELECT DISTINCT k + 1 AS k FROM v{i - 1} WHERE k > {i};" for i in range(1, 400)]
    for views in (doubling, chained):
        with pytest.raises(QueryError, match="nested too deeply"):
            parse_statements(known + "\n".join(views), Catalogue())


def test_views_that_double_within_bounds_run(tmp_path: Path) -> None:
    write(tmp_path / "s.csv", COLUMNS, ODD)
    views = ["CREATE VIEW v0 AS SELECT DISTINCT v FROM s [ROWS 3];"]
    views += [f"CREATE VIEW v{i} AS SELECT a.v FROM v{i - 1} AS a, v{i - 1} AS b WHERE a.v = b.v;" for i in range(1, 6)]
    ran = run(stream(tmp_path / "s.csv") + "\n".join(views) + "SELECT v FROM v5", batch_rows=2)
    matches_the_reference(ran, {"s": ODD})


def test_values_that_no_result_can_hold_are_an_error_of_ours(tmp_path: Path) -> None:
    rows: Rows = [(at(0), 1e308, "9223372036854775807"), (at(1), 1e308, "no number")]
    write(tmp_path / "s.csv", COLUMNS, rows)
    text = stream(tmp_path / "s.csv")
    for query in (
        "SELECT CAST(v AS BIGINT) + 1 AS x FROM s [ROWS 2]",
        "SELECT CAST(v AS INTEGER) AS x FROM s [ROWS 2]",
        "SELECT SUM(CAST(k AS DECIMAL(38, 0))) AS x FROM s [ROWS 2]",
    ):
        with pytest.raises(TransomError) as caught:
            run(text + query)
        assert isinstance(caught.value, EvaluationError) and caught.value.remedy
    matches_the_reference(run(text + "SELECT SUM(k) AS x, AVG(k) AS y FROM s [ROWS 2]"), {"s": rows})
