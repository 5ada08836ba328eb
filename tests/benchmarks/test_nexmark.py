"""NEXMark in a small size: the events, every query against DuckDB, contestants in their processes, and the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import harness
from benchmarks.harness import Figures, Outcome
from benchmarks.nexmark import benchmark as nexmark
from benchmarks.nexmark import contestants as kinds
from benchmarks.nexmark import flink as nexmark_flink
from benchmarks.nexmark.answers import Arbiter
from benchmarks.nexmark.data import AUCTION, BID, COLUMNS, PERSON, SIDE, STREAMS, Size, write_events
from benchmarks.nexmark.queries import QUERIES, UNWRITTEN
from benchmarks.nexmark.spark_own import _ANSWERS, UNSUPPORTED
from tests.benchmarks.running import is_chart, quick
from tests.profile import NIGHTLY, first_of
from transom.core.errors import OptionError, SourceError

TINY = Size(6_000, step=40_000)
"""Four minutes: 24 windows of ten seconds, and bidders who come back after a session."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    write_events(TINY, folder)
    return folder


def events(folder: Path, stream: str) -> pa.Table:
    return pq.read_table(sorted((folder / stream).glob("*.parquet")))


# --- events ----------------------------------------------------------------------------------------------------------


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(tmp_path: Path) -> None:
    assert write_events(Size(10_020), tmp_path) == {PERSON: 201, AUCTION: 603, BID: 9_216}
    tables = {stream: events(tmp_path, stream) for stream in STREAMS}
    times = np.concatenate([rows["date_time"].cast(pa.int64()).to_numpy() for rows in tables.values()])
    assert (np.diff(np.sort(times)) == 100).all() and (times % 1_000 != 0).all()
    for stream, rows in tables.items():
        assert rows.column_names == list(COLUMNS[stream])
        assert (np.diff(rows["date_time"].cast(pa.int64()).to_numpy()) > 0).all(), "files are in the order of time"
        if stream != BID:
            assert rows["id"].to_pylist() == list(range(1_000, 1_000 + len(rows)))


def test_some_are_hot(tmp_path: Path) -> None:
    write_events(Size(50_000), tmp_path)
    bids, auctions = events(tmp_path, BID), events(tmp_path, AUCTION)
    assert np.mean(bids["bidder"].to_numpy() % 100 == 1) == pytest.approx(0.75, abs=0.02)
    assert np.mean(bids["auction"].to_numpy() % 100 == 0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(auctions["seller"].to_numpy() % 100 == 0) == pytest.approx(0.75, abs=0.03)
    assert 60 < pc.mean(pc.utf8_length(bids["extra"])).as_py() < 75
    assert set(auctions["category"].to_pylist()) == set(range(10, 15))
    assert (auctions["expires"].to_numpy() > auctions["date_time"].to_numpy()).all()


def test_events_are_the_same_for_the_same_seed(source: Path, tmp_path: Path) -> None:
    write_events(TINY, tmp_path / "again")
    write_events(Size(6_000, step=40_000, seed=8), tmp_path / "other")
    for stream in STREAMS:
        assert len(list((source / stream).glob("*.parquet"))) == TINY.files == 4
        assert events(tmp_path / "again", stream) == events(source, stream)
        assert events(tmp_path / "other", stream) != events(source, stream)


# --- answers ---------------------------------------------------------------------------------------------------------


def test_every_query_is_written_or_has_a_reason() -> None:
    assert sorted(QUERIES.keys() | UNWRITTEN.keys(), key=lambda name: int(name[1:])) == [f"q{i}" for i in range(23)]
    assert not QUERIES.keys() & UNWRITTEN.keys()
    assert _ANSWERS.keys() | UNSUPPORTED.keys() == QUERIES.keys() == nexmark_flink.QUERIES.keys()


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_is_that_of_duckdb(name: str, source: Path, tmp_path: Path) -> None:
    query = QUERIES[name]
    kinds.KINDS[kinds.LOCAL]({"emit": "changes"})(query, source, tmp_path)
    with Arbiter(source) as arbiter:
        assert arbiter.differences(query, kinds.LOCAL, "changes", tmp_path) == 0
        digest = arbiter.digest(query)
        assert arbiter.digest_of(query, kinds.LOCAL, "changes", tmp_path) == digest
        assert digest.rows > 0 and arbiter.rows(query) == sum(len(events(source, name)) for name in query.streams)
    columns = nexmark_flink.QUERIES[name][0]
    assert all(f"{column} " in columns.replace("`", "") for column in query.columns)
    assert nexmark_flink.QUERIES[name][2] == bool(query.keys)


def test_the_latest_answer_is_that_of_duckdb_too(source: Path, tmp_path: Path) -> None:
    kinds.KINDS[kinds.LOCAL]({"emit": "latest", "batch_rows": "1000"})(QUERIES["q17"], source, tmp_path)
    with Arbiter(source) as arbiter:
        assert arbiter.differences(QUERIES["q17"], kinds.LOCAL, "latest", tmp_path) == 0


@pytest.mark.parametrize("name", first_of(*(name for name, query in QUERIES.items() if query.keys)))
def test_net_changes_lead_to_the_answer_of_duckdb(name: str, source: Path, tmp_path: Path) -> None:
    """A key is reported several times, in one file each."""
    query = QUERIES[name]
    kinds.KINDS[kinds.LOCAL]({"emit": "net", "batch_rows": "100"})(query, source, tmp_path)
    parts = [pq.read_table(path) for path in (tmp_path / "out").glob("*.parquet")]
    with Arbiter(source) as arbiter:
        assert arbiter.differences(query, kinds.LOCAL, "net", tmp_path) == 0
        assert sum(map(len, parts)) > arbiter.digest(query).rows and len(parts) > 2


def test_a_wrong_answer_is_found(source: Path, tmp_path: Path) -> None:
    """A row too few, a change too many, a value that differs; and no answer at all."""
    kinds.KINDS[kinds.LOCAL]({"emit": "changes"})(QUERIES["q17"], source, tmp_path)
    (path,) = (tmp_path / "out").glob("*.parquet")
    right = pq.read_table(path)
    price = right.column_names.index("max_price")
    for wrong in (
        right.slice(0, len(right) - 1),
        pa.concat_tables([right, right.slice(0, 1)]),
        right.set_column(price, "max_price", pc.add(right["max_price"], 1)),
    ):
        pq.write_table(wrong, path)
        with Arbiter(source) as arbiter:
            assert arbiter.differences(QUERIES["q17"], kinds.LOCAL, "changes", tmp_path) > 0
            digest = arbiter.digest_of(QUERIES["q17"], kinds.LOCAL, "changes", tmp_path)
            assert digest != arbiter.digest(QUERIES["q17"])
    path.unlink()
    with Arbiter(source) as arbiter:
        rows = arbiter.digest(QUERIES["q17"]).rows
        assert arbiter.differences(QUERIES["q17"], kinds.LOCAL, "changes", tmp_path) == rows


def test_updates_count_by_the_last_of_a_key(source: Path, tmp_path: Path) -> None:
    """What Spark's own streaming writes: every batch the rows that it has changed."""
    query, out = QUERIES["q18"], tmp_path / "out"
    out.mkdir()
    for batch, path in enumerate(sorted((source / BID).glob("*.parquet"))):
        bids = pq.read_table(path).append_column("batch", pa.array([batch] * pq.read_metadata(path).num_rows))
        last = bids.to_pandas().drop_duplicates(["bidder", "auction"], keep="last")
        pq.write_table(pa.Table.from_pandas(last, preserve_index=False), out / f"{batch}.parquet")
    with Arbiter(source) as arbiter:
        assert arbiter.differences(query, kinds.OWN, "", tmp_path) == 0


def test_changes_of_flink_are_netted(source: Path, tmp_path: Path) -> None:
    query = QUERIES["q18"]
    kinds.KINDS[kinds.LOCAL]({"emit": "changes"})(query, source, tmp_path)
    (path,) = (tmp_path / "out").glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    path.unlink()
    with (tmp_path / "out" / "part-0").open("w", encoding="utf-8") as lines:
        for row in rows:
            values = {name: str(row[name]) if name == "date_time" else row[name] for name in query.columns}
            came = row["change"] == "+"
            reported = {
                "before": None if came else values,
                "after": values if came else None,
                "op": "c" if came else "d",
            }
            lines.write(json.dumps(reported) + "\n")
    with Arbiter(source) as arbiter:
        assert arbiter.differences(query, kinds.FLINK, "", tmp_path) == 0


# --- contestants -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events far enough apart for windows to end."""
    monkeypatch.setattr(nexmark, "Size", lambda events: Size(events, step=40_000))
    monkeypatch.setattr(nexmark, "QUICK_EVENTS", 8_000)
    monkeypatch.setattr(nexmark, "QUICK_FEW_EVENTS", 6_000)


@pytest.mark.nightly
def test_all_ends_in_a_summary(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "nexmark.svg"
    names = [nexmark.LOCAL_2]  # in a process of its own
    queries = ["q2", "q5", "q17"]
    arguments = ["--query", *queries, "--contestant", *names, "--plot", str(chart), "--runs", "2"]
    reported = quick(capsys, "nexmark", *arguments, "--set", "batch_rows=2000")
    assert [cell["query"] for cell in reported["cells"]] == queries
    for cell in reported["cells"]:
        for name in names:
            figures = cell["contestants"][name]
            assert (
                figures["right"] and figures["output_rows"] > 0 and len(figures["wall_s"]) == len(figures["cpu_s"]) == 2
            )
            assert reported["summary"]["rows_per_s"][cell["query"]][name] == figures["rows_per_s"] > 0
    assert reported["cells"][1]["input_rows"] == 8_000 * 46 // 50
    assert reported["summary"]["right"] and reported["summary"]["spark_over_own_min"] is None
    assert reported["settings"]["contestants"][names[0]]["batch_rows"] == "2000"
    assert is_chart(chart)


@pytest.mark.skipif(not NIGHTLY, reason="a real Spark for each contestant; at night")
def test_spark_answers_alike(tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["spark_own", "transom_spark"]
    reported = quick(capsys, "nexmark", "--query", *QUERIES, "--contestant", *names)
    assert reported["summary"]["right"] and reported["summary"]["spark_over_own_min"] is not None
    (q4,) = (cell for cell in reported["cells"] if cell["query"] == "q4")
    assert "unsupported" in q4["contestants"]["spark_own"]
    assert reported["summary"]["rows_per_s"]["q17"].keys() == set(names)


def test_what_is_not_there_is_said_before_anything_runs() -> None:
    for wrong in (["--query", "q6"], ["--contestant", "storm"], ["--set", "batches=1"]):
        with pytest.raises(OptionError):
            harness.main(["nexmark", *wrong])


def test_an_interpreter_without_flink_says_so() -> None:
    with (
        pytest.raises(SourceError, match="ended with status 1") as failure,
        kinds.started(kinds.FLINK, {}, sys.executable),
    ):
        pass
    assert "No module named 'pyflink'" in str(failure.value)


def test_flink_gets_the_same_rows_in_the_order_of_time(source: Path, tmp_path: Path) -> None:
    nexmark.write_for_flink(source, tmp_path)
    for stream in STREAMS:
        files = sorted((tmp_path / stream).glob("*.parquet"))
        assert len(files) == nexmark.FLINK_FILES
        parts = [pq.read_table(path) for path in files if pq.read_metadata(path).num_rows]
        for part in parts:
            assert pc.all(pc.less(part["date_time"][:-1], part["date_time"][1:])).as_py()
        read_back = pa.concat_tables(parts).sort_by("date_time")
        assert read_back["extra"].to_pylist() == events(source, stream)["extra"].to_pylist()
    assert list((tmp_path / SIDE).glob("*.parquet"))


# --- report ----------------------------------------------------------------------------------------------------------


def ran(wall: float) -> Figures:
    return {"rows_per_s": round(1_000 / wall), "rows_per_cpu_s": round(500 / wall), "output_rows": 5, "right": True}


WRONG = {"output_rows": 3, "right": False, "wrong": "1 rows differ"}
FOUND: dict[str, dict[str, Figures]] = {
    "q0": {"transom_local": ran(2), "transom_spark": ran(4), "spark_own": ran(8), "flink": ran(1)},
    "q5": {
        "transom_local": ran(2),
        "transom_local_2": ran(1),
        "transom_spark": ran(3),
        "spark_own": ran(6),
        "flink": ran(3),
    },
    "q12": {"transom_local": ran(1), "transom_spark": ran(4), "spark_own": WRONG},
    "q15": {"spark_own": {"unsupported": "it cannot"}},
}
OUTCOMES = [Outcome({"query": query}, contestants) for query, contestants in FOUND.items()]


def test_the_summary_compares_medians_of_right_answers() -> None:
    reported = nexmark.summary(OUTCOMES)
    assert reported["rows_per_s"]["q0"] == {
        "transom_local": 500,
        "transom_spark": 250,
        "spark_own": 125,
        "flink": 1_000,
    }
    assert reported["rows_per_cpu_s"]["q5"]["transom_spark"] == 167
    assert reported["spark_over_own"] == {"q0": 2.0, "q5": 1.994} and reported["spark_over_own_min"] == 1.994
    assert reported["local_over_spark_cpu_max"] == 4.0, "q12; that of q5 is 1.5"
    assert reported["spark_over_flink_min"] == 0.25 and reported["local_over_flink_min"] == 0.5
    assert reported["right"] is False and nexmark.fails(OUTCOMES) and not nexmark.fails(OUTCOMES[:2])


def test_tables_are_for_people() -> None:
    lines = str(*nexmark.tables(OUTCOMES)).splitlines()
    assert "| contestant | q0 | q5 | q12 | q15 |" in lines
    assert "| spark_own | 0 (0) | 0 (0) | WRONG | - |" in lines
    (drawn,) = nexmark.panels(OUTCOMES)
    assert drawn.groups == ["q0", "q5", "q12"] and drawn.bars["Flink"] == [0.001, 0.000333, None]
