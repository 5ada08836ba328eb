"""The join on Spark in a small size: the arbiter, the rivals in their own processes, and what is reported of them."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import transom
from tests.profile import NIGHTLY
from transom.benchmarks import spark_join
from transom.benchmarks.spark_join_contestant import Job, in_own_process
from transom.benchmarks.spark_join_data import (
    COLUMNS,
    Cell,
    Digest,
    Measured,
    digest,
    exact_answer,
    files_of,
    write_cell,
    written_answer,
)
from transom.benchmarks.spark_join_report import Outcome, bars, best, report, summary, table
from transom.benchmarks.spark_join_transom import question, streams
from transom.core.errors import SparkError

TINY = Cell("short", 100, 30, 20, batches=3)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cell")
    write_cell(TINY, folder)
    return folder


def all_pairs(folder: Path, batches: int) -> pa.Table:
    """Row by row."""
    files = files_of(folder, batches)
    a, b = (pq.read_table(files[side]).set_column(0, "ts", _micros(files[side])).to_pylist() for side in ("a", "b"))
    window = TINY.window_ms * 1_000
    found = [
        (x["ts"], y["ts"], x["k"], x["v"], y["v"], x["s"], y["s"])
        for x in a
        for y in b
        if x["k"] == y["k"] and abs(x["ts"] - y["ts"]) < window
    ]
    columns = [pa.array(column) for column in zip(*found, strict=True)]
    columns[:2] = [column.cast(pa.timestamp("us")) for column in columns[:2]]
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _micros(files: list[Path]) -> pa.ChunkedArray:
    return pq.read_table(files)["ts"].cast(pa.int64())


# --- data and arbiter ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 3])
def test_the_arbiter_finds_what_a_join_row_by_row_finds(source: Path, batches: int) -> None:
    pairs = all_pairs(source, batches)
    assert 20 * batches < len(pairs)
    assert exact_answer(TINY, source, batches) == digest(pairs)


def test_a_digest_knows_rows_by_their_content_not_by_their_order(source: Path, tmp_path: Path) -> None:
    pairs = all_pairs(source, 3)
    pq.write_table(pairs.slice(50), tmp_path / "x.parquet")
    pq.write_table(pairs.slice(0, 50), tmp_path / "y.parquet")
    assert written_answer(tmp_path) == digest(pairs)
    swapped = pairs.set_column(0, "a_ts", pairs["b_ts"]).set_column(1, "b_ts", pairs["a_ts"])
    texts = pa.concat_arrays([pairs["a_s"].chunk(0).slice(1), pairs["a_s"].chunk(0).slice(0, 1)])
    turned = pairs.set_column(5, "a_s", texts)
    for wrong in (swapped, turned, pairs.slice(1), pa.concat_tables([pairs, pairs.slice(0, 1)])):
        assert digest(wrong) != digest(pairs)
    assert written_answer(tmp_path / "nowhere") == Digest(0, 0, 0)


def test_the_files_are_the_same_every_time(source: Path, tmp_path: Path) -> None:
    write_cell(TINY, tmp_path)
    for side, files in files_of(tmp_path, 3).items():
        assert [path.name for path in files] == ["batch-0000.parquet", "batch-0001.parquet", "batch-0002.parquet"]
        assert pq.read_table(files) == pq.read_table(files_of(source, 3)[side])
        ages = [path.stat().st_mtime for path in files]
        assert ages == sorted(set(ages))


def test_the_question_means_the_same_in_transom(source: Path, tmp_path: Path) -> None:
    transom.Session().execute(streams(source) + question(TINY, tmp_path))
    assert written_answer(tmp_path / "out") == exact_answer(TINY, source, 3)


# --- contestants -----------------------------------------------------------------------------------------------------


def test_rivals_give_the_right_answer_and_end_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark with RocksDB, which has all settings of the default and some more; the default itself at night."""
    monkeypatch.setattr(spark_join, "SLOW_BATCHES", 2)
    batches = {"spark_rocksdb": 2, "spark_default": 3} if NIGHTLY else {"spark_rocksdb": 2}
    rivals = [replace(one, cells=("short",)) for one in spark_join.contestants((2,)) if one.name in batches]
    monkeypatch.setattr(spark_join, "contestants", lambda partitions: rivals)
    monkeypatch.setattr(spark_join, "QUICK_CELLS", (TINY,))
    chart = tmp_path / "join.svg"
    assert spark_join.main(argparse.Namespace(json=True, quick=True, plot=str(chart))) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told)[-1] == "summary"
    found = told["cells"]["short"]["contestants"]
    assert found.keys() == batches.keys()
    for name, one in found.items():
        assert one["right"] and one["output_rows"] == one["expected_rows"] > 20 * batches[name]
        assert len(one["batches_s"]) == batches[name]
        assert ("RocksDB" in str(one["settings"])) == (name == "spark_rocksdb")
        assert told["summary"][name] == one["rows_per_s"] > 0
    assert chart.read_text(encoding="utf-8").startswith("<?xml")


def test_a_contestant_that_fails_says_why(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="'nobody' ended with status 1") as failure:
        in_own_process("nobody", {}, [Job(TINY, source, tmp_path)], tmp_path / "run")
    assert "KeyError: 'nobody'" in str(failure.value)


# --- report ----------------------------------------------------------------------------------------------------------


def outcome(contestant: str, cell: str, seconds: list[float], partitions: int = 2, wrong: bool = False) -> Outcome:
    n = len(seconds)
    return Outcome(
        contestant,
        Cell(cell, 500, 10, 10, n),
        Measured(
            {"spark.sql.shuffle.partitions": str(partitions)},
            1.0,
            tuple(seconds),
            (1_000,) * n,
            tuple(int(100 * s) for s in seconds),
        ),
        Digest(3 if wrong else 4, 5, 6),
        Digest(4, 5, 6),
    )


OUTCOMES = [
    outcome("spark_default", "short", [9, 5, 4, 6]),
    outcome("spark_default", "short", [9, 2, 2, 2], partitions=4),
    outcome("spark_rocksdb", "short", [9, 10, 10, 10]),
    outcome("transom_files", "short", [3, 0.5, 0.25, 0.1]),
    outcome("transom_dataframe", "short", [3, 1, 1, 1]),
    outcome("spark_default", "long", [9, 4, 4, 4]),
    outcome("transom_files", "long", [9, 1, 1, 1]),
    outcome("transom_files", "growth_1", [9, 1, 1, 1]),
    outcome("transom_files", "growth_10", [9, 1.25, 1.25, 1.25]),
]


def test_the_summary_takes_the_best_run_and_leaves_the_first_batch_out() -> None:
    assert summary(best(OUTCOMES)) == {
        "spark_default": 500,
        "spark_rocksdb": 100,
        "transom_files": 4_000,
        "transom_dataframe": 1_000,
        "ratio_default": 8.0,
        "ratio_rocksdb": 40.0,
        "ratio_default_long": 4.0,
        "ratio_default_small": None,
        "ratio_dataframe_default": 2.0,
        "first_batch_s": 3,
        "growth_time": 1.25,
        "growth_bytes": 1.25,
    }


def test_the_report_names_all_that_was_tried() -> None:
    default = report(OUTCOMES)["cells"]["short"]["contestants"]["spark_default"]
    assert default["settings"] == {"spark.sql.shuffle.partitions": "4"}
    assert [trial["rows_per_s"] for trial in default["tried"]] == [200, 500]
    assert default["batches_s"] == [9, 2, 2, 2]


def test_batches_before_the_window_is_full_do_not_count() -> None:
    early = outcome("spark_default", "long", [1, 1, 1, 4, 4])
    filling = replace(early, cell=replace(early.cell, window_rows=1_001))
    assert (early.rows_per_s, filling.rows_per_s) == (625, 250)
    settling = replace(early, cell=replace(early.cell, settling=4))
    assert settling.steady_batch_s == 4


def test_a_wrong_answer_is_seen_in_the_table() -> None:
    lines = table([*OUTCOMES, outcome("transom_files", "small", [1, 1, 1], wrong=True)]).splitlines()
    assert [line.split()[0] for line in lines if " NO " in line] == ["small"]
    assert "ratio_default            8.0" in lines
    assert "  spark.sql.shuffle.partitions = 4 (short)" in lines


def test_the_chart_has_a_gap_where_a_contestant_did_not_run() -> None:
    cells, rates = bars(best(OUTCOMES))
    assert cells == ["short", "long"]
    assert rates["spark_rocksdb"] == [pytest.approx(0.0001), None]
