"""The join on Spark in a small size: the arbiter, the rivals in their own processes, and what is reported of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import transom
from benchmarks.harness import Outcome
from benchmarks.spark_join import benchmark as spark_join
from benchmarks.spark_join.benchmark import Run, outcomes_of
from benchmarks.spark_join.contestants import question, streams
from benchmarks.spark_join.data import (
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
from tests.benchmarks.running import is_chart, quick
from tests.profile import NIGHTLY

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
    pairs = [
        (x["ts"], y["ts"], x["k"], x["v"], y["v"], x["s"], y["s"])
        for x in a
        for y in b
        if x["k"] == y["k"] and abs(x["ts"] - y["ts"]) < window
    ]
    columns = [pa.array(column) for column in zip(*pairs, strict=True)]
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


@pytest.mark.nightly
def test_rivals_give_the_right_answer_and_end_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark with RocksDB, which has all settings of the default and some more; the default itself at night."""
    monkeypatch.setattr(spark_join, "SLOW_BATCHES", 2)
    batches = {"spark_rocksdb": 2, "spark_default": 3} if NIGHTLY else {"spark_rocksdb": 2}
    rivals = [replace(rival, cells=("short",)) for rival in spark_join.contestants((2,)) if rival.name in batches]
    monkeypatch.setattr(spark_join, "contestants", lambda partitions: rivals)
    monkeypatch.setattr(spark_join, "QUICK_CELLS", (TINY,))
    chart = tmp_path / "join.svg"
    reported = quick(capsys, "spark-join", "--plot", str(chart))
    (short,) = reported["cells"]
    contestants = short["contestants"]
    assert contestants.keys() == batches.keys()
    for name, figures in contestants.items():
        assert figures["right"] and figures["output_rows"] == figures["expected_rows"] > 20 * batches[name]
        assert len(figures["batches_s"]) == batches[name]
        assert ("RocksDB" in str(figures["settings"])) == (name == "spark_rocksdb")
        assert reported["summary"][name] == figures["rows_per_s"] > 0
    assert is_chart(chart)


# --- report ----------------------------------------------------------------------------------------------------------


def run(cell: str, seconds: list[float], partitions: int = 2, wrong: bool = False) -> Run:
    n = len(seconds)
    return Run(
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


RUNS = {
    "spark_default": [
        run("short", [9, 5, 4, 6]),
        run("short", [9, 2, 2, 2], partitions=4),
        run("long", [9, 4, 4, 4]),
    ],
    "spark_rocksdb": [run("short", [9, 10, 10, 10])],
    "transom_files": [
        run("short", [3, 0.5, 0.25, 0.1]),
        run("long", [9, 1, 1, 1]),
        run("growth_1", [9, 1, 1, 1]),
        run("growth_10", [9, 1.25, 1.25, 1.25]),
    ],
    "transom_dataframe": [run("short", [3, 1, 1, 1])],
}


def together(runs: dict[str, list[Run]]) -> list[Outcome]:
    """As the harness puts them."""
    by_cell: dict[str, Outcome] = {}
    for name, some in runs.items():
        for outcome in outcomes_of(name, some):
            before = by_cell.get(outcome.cell["cell"])
            contestants = {} if before is None else before.contestants
            by_cell[outcome.cell["cell"]] = Outcome(outcome.cell, {**contestants, **outcome.contestants})
    return list(by_cell.values())


def test_the_summary_takes_the_best_run_and_leaves_the_first_batch_out() -> None:
    assert spark_join.summary(together(RUNS)) == {
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


def test_the_figures_name_all_that_was_tried() -> None:
    default = together(RUNS)[0]["spark_default"]
    assert default["settings"] == {"spark.sql.shuffle.partitions": "4"}
    assert [trial["rows_per_s"] for trial in default["tried"]] == [200, 500]
    assert default["batches_s"] == [9, 2, 2, 2]


def test_batches_before_the_window_is_full_do_not_count() -> None:
    early = run("long", [1, 1, 1, 4, 4])
    filling = replace(early, cell=replace(early.cell, window_rows=1_001))
    assert (early.rows_per_s, filling.rows_per_s) == (625, 250)
    settling = replace(early, cell=replace(early.cell, settling=4))
    assert settling.batch_s == 4


def test_a_wrong_answer_is_seen_in_the_table() -> None:
    assert not spark_join.fails(together(RUNS))
    wrong = together({**RUNS, "transom_dataframe": [run("small", [1, 1, 1], wrong=True)]})
    assert spark_join.fails(wrong)
    first, *settings = spark_join.tables(wrong)
    assert [line[0] for line in first.body if "NO" in line] == ["small"]
    assert ["spark.sql.shuffle.partitions", "4", "short"] in settings[0].body


def test_the_chart_has_a_gap_where_a_contestant_did_not_run() -> None:
    (drawn,) = spark_join.panels(together(RUNS))
    assert drawn.groups == ["short", "long"]
    assert drawn.bars["spark_rocksdb"] == [pytest.approx(0.0001), None]
