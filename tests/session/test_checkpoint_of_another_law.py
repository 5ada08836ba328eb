"""A checkpoint is gone on from by the queries that wrote it, over the same streams; others are rejected by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from transom import CheckpointError, Session
from transom.program.checkpoint_manifest import FORMAT
from transom.session import workspace_of

STREAM = (
    "CREATE STREAM trades (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) "
    "WITH (connector = 'files', path = '{folder}/in', format = 'csv', late = 'drop', idle = '1 HOUR');"
)
TEXT = (
    "SET tick = '1 SECOND';"
    + STREAM
    + "CREATE TABLE names (k INTEGER, name VARCHAR) WITH (connector = 'files', path = '{folder}/names.csv');"
    "CREATE SINK out WITH (connector = 'files', path = '{folder}/out.csv', emit = 'lifetimes');"
    "INSERT INTO out SELECT t.k, n.name FROM trades [RANGE 5 SECONDS] AS t JOIN names AS n USING (k)"
)

CHANGES = {
    "bound": ("'2' SECOND", "'5' SECOND", "with WATERMARK bound 2 SECOND for stream 'trades', and it is 5 SECOND now"),
    "late": ("late = 'drop'", "late = 'dead_letter'", "late 'drop' for stream 'trades', and it is 'dead_letter' now"),
    "idle": ("idle = '1 HOUR'", "idle = '2 HOURS'", "with idle 1 HOUR for stream 'trades', and it is 2 HOUR now"),
    "no idle": (", idle = '1 HOUR'", "", "with idle 1 HOUR for stream 'trades', and it has none now"),
    "heartbeat": (", idle", ", heartbeat = '1 S', idle", "with no heartbeat for stream 'trades', and it is 1 SEC"),
    "ahead": (", idle", ", ahead = '1 DAY', idle", "with no ahead for stream 'trades', and it is 1 DAY"),
    "columns": ("k INTEGER, WATERMARK", "k BIGINT, WATERMARK", "with columns ts TIMESTAMP, k INTEGER for stream"),
    "source": ("{folder}/in'", "{folder}/other'", "with path '{folder}/in' for stream 'trades', and it is '{folder}"),
    "format": ("format = 'csv'", "format = 'jsonl'", "with format 'csv' for stream 'trades', and it is 'jsonl' now"),
    "table": ("names.csv", "others.csv", "with path '{folder}/names.csv' for table 'names', and it is"),
    "sink": ("out.csv", "elsewhere.csv", "with path '{folder}/out.csv' for sink 'out', and it is '{folder}/elsewhere"),
    "emit": ("emit = 'lifetimes'", "emit = 'changes'", "with emit 'lifetimes' for query 'out', and it is 'changes'"),
    "tick": ("tick = '1 SECOND'", "tick = '1 MILLISECOND'", "with SET tick 1 SECOND for query 'out', and it is 1 MI"),
    "query": ("RANGE 5", "RANGE 6", "was written by another query 'out': INSERT INTO out SELECT t.k"),
    "name": ("SINK out", "SINK into_out", "was written by other queries: 'out' is not there now"),
}  # fmt: skip


def write(folder: Path) -> None:
    (folder / "in").mkdir()
    rows = "".join(f"2024-05-01 10:00:{i:02},{i % 3}\n" for i in range(20))
    (folder / "in" / "1.csv").write_text("ts,k\n" + rows)
    (folder / "names.csv").write_text("k,name\n0,a\n1,b\n2,c\n")
    shutil.copytree(folder / "in", folder / "other")
    shutil.copy(folder / "names.csv", folder / "others.csv")


def assemble(folder: Path, text: str = TEXT, **options: Any) -> Any:
    session = Session(**options)
    return workspace_of(session).assemble(
        workspace_of(session).prepare(text.format(folder=folder)), checkpoint=str(folder / "kept")
    )


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    write(folder)
    assemble(folder).run()
    return folder


@pytest.mark.parametrize("what", CHANGES)
def test_what_would_change_the_answer_is_rejected_by_name(begun: Path, what: str) -> None:
    old, new, reported = CHANGES[what]
    text = TEXT.replace(old, new).replace("INTO out", "INTO into_out" if what == "name" else "INTO out")
    assert text != TEXT
    with pytest.raises(CheckpointError) as raised:
        assemble(begun, text)
    assert reported.format(folder=begun) in raised.value.what
    assert raised.value.remedy is not None and "empty checkpoint folder" in raised.value.remedy
    assert not (begun / "elsewhere.csv").exists()


def test_what_changes_no_answer_may_change(begun: Path) -> None:
    text = TEXT.replace("late = 'drop'", "rate = 7, late = 'drop'").replace("FROM trades", "from  trades")
    assemble(begun, text, batch_rows=3).run()


def test_a_side_folder_belongs_to_a_checkpoint(tmp_path: Path) -> None:
    write(tmp_path)

    def started(dead_letters: str | None) -> Any:
        session = Session()
        planned = workspace_of(session).prepare(TEXT.format(folder=tmp_path))
        return workspace_of(session).assemble(planned, checkpoint=str(tmp_path / "kept"), dead_letters=dead_letters)

    started(str(tmp_path / "side")).run()
    with pytest.raises(
        CheckpointError, match=r"with a folder of rejected rows '.*/side/out/' for query 'out', and it ha"
    ):
        started(None)


def test_a_checkpoint_that_has_not_begun_may_become_another_one(tmp_path: Path) -> None:
    write(tmp_path)
    assemble(tmp_path, TEXT.replace("in'", "nowhere'")).abort()
    assemble(tmp_path).run()


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ({"format": 7}, f"has format 7, and this version of Transom reads format {FORMAT}"),
        ({}, "cannot be read"),
        ([], "cannot be read"),
        (None, "was written before checkpoints had a format number"),
    ],
)
def test_another_format_is_rejected_by_name(tmp_path: Path, written: Any, reported: str) -> None:
    write(tmp_path)
    assemble(tmp_path).run()
    manifest = tmp_path / "kept" / "manifest.json"
    if written is None:
        manifest.unlink()
    else:
        manifest.write_text(json.dumps(written))
    with pytest.raises(CheckpointError, match=reported):
        assemble(tmp_path)


def test_a_manifest_is_for_people_too(begun: Path) -> None:
    manifest = json.loads((begun / "kept" / "manifest.json").read_text())
    assert (manifest["format"], manifest["runtime"]) == (FORMAT, "local")
    assert manifest["queries"]["out"]["stream 'trades'"]["WATERMARK bound"] == "2 SECOND"
