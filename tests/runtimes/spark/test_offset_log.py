"""Offsets stay short however many files have been read, and none of them is read twice or left out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from transom.connectors.open import source_opener
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.message_source import MessageReader
from transom.runtimes.spark.offset_log import IN_LOG, LEAST, OffsetLog
from transom.runtimes.spark.task_split import TaskReading
from transom.runtimes.spark.worker_errors import ReportedToDriver

Offset = dict[str, Any]


def reader(folder: Path) -> MessageReader:
    """As in a process that Spark has just started."""
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{folder}/in', format = 'csv');
        SELECT a FROM s;
    """
    (one,) = [one for one in read_program(text, Catalogue()) if one.standing]
    assert one.root is not None
    layout = Layout(one.root, one.catalogue, "changes", 2)
    openers = {"s": source_opener(layout.sources["s"])}
    kept = str(folder / "kept")
    return MessageReader(
        TaskReading(layout, ("s",), openers, 2, 50, None, LocalShuffle(), frozenset({"s"}), feedback=kept)
    )


def write(folder: Path, *names: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    for name in names:
        (folder / "in" / f"{name}.csv").write_text(f"ts,a\n2024-05-01 10:00:00,{len(name)}\n")
        os.utime(folder / "in" / f"{name}.csv", (1_000, 1_000))  # nothing goes by their times


def next_offset(source: MessageReader, start: Offset) -> Offset:
    return source.latestOffset(start, source.getDefaultReadLimit())


def read_in(offset: Offset) -> list[str]:
    return [split[0] for split in offset.get("splits", {}).get("s", [])]


@pytest.mark.parametrize("restart", [False, True])
def test_offsets_do_not_grow_with_the_files_that_have_been_read(tmp_path: Path, restart: bool) -> None:
    random = Random(7)
    (tmp_path / "kept").mkdir()
    source = reader(tmp_path)
    offset, read, sizes = source.initialOffset(), [], []
    for batch in range(12):
        write(tmp_path, *(f"{random.randint(0, 10**9):09}-{batch}" for _ in range(40)))
        while (after := next_offset(source, offset)) != offset:
            offset = json.loads(json.dumps(after))
            read += read_in(offset)
            if restart:
                source = reader(tmp_path)
        sizes.append(len(json.dumps(offset["at"])))
    assert sorted(read) == sorted(os.listdir(tmp_path / "in")) and len(read) == 480, "each once"
    assert max(sizes[4:]) < 120 < sizes[1]
    assert next_offset(reader(tmp_path), offset) == offset, "there is nothing more"


def test_a_batch_that_was_not_logged_is_planned_again(tmp_path: Path) -> None:
    """What it had appended does not count: its offset is not in the log of Spark."""
    (tmp_path / "kept").mkdir()
    write(tmp_path, *(f"{i:04}" for i in range(2 * LEAST)))
    source = reader(tmp_path)
    offset = source.initialOffset()
    for _ in range(3):
        offset = next_offset(source, offset)
    assert IN_LOG in offset["at"]["s"]
    lost = next_offset(source, offset)
    write(tmp_path, "0000-between")
    for again in (source, reader(tmp_path)):
        assert read_in(next_offset(again, offset)) == ["0000-between.csv", *read_in(lost)[:-1]]


def test_a_log_that_the_offset_does_not_belong_to_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    write(tmp_path, *(f"{i:04}" for i in range(2 * LEAST)))
    source = reader(tmp_path)
    offset = source.initialOffset()
    for _ in range(4):
        offset = next_offset(source, offset)
    path = tmp_path / "kept" / "read" / "s"
    data = path.read_bytes()
    for spoilt in (data[:-1], data.replace(b"0001", b"0002"), b"[" * len(data), b"\xff" * len(data)):
        path.write_bytes(spoilt)
        with pytest.raises(ReportedToDriver, match="what has been read of 's'"):
            next_offset(reader(tmp_path), offset)
    path.unlink()
    with pytest.raises(ReportedToDriver, match="what has been read of 's'"):
        next_offset(reader(tmp_path), offset)


def test_what_is_removed_from_a_position_is_removed(tmp_path: Path) -> None:
    log = OffsetLog(str(tmp_path))
    many = {str(i): [i] for i in range(LEAST)}
    first = log.brief("a/b", {}, {"files": many, "current": "7"})
    assert first["current"] == "7" and "files" not in first
    fewer = {name: at for name, at in many.items() if name != "5"}
    second = log.brief("a/b", first, {"files": fewer})
    for known in (log, OffsetLog(str(tmp_path))):
        assert known.whole("a/b", second) == {"files": fewer}
    assert log.brief("a/b", second, {"files": fewer}) == second, "nothing to write"
    assert OffsetLog(str(tmp_path)).whole("a/b", first) == {"files": many, "current": "7"}
    assert log.whole("other", {"rows": 5}) == log.brief("other", {}, {"rows": 5}) == {"rows": 5}


def test_a_checkpoint_tells_the_whole_position(tmp_path: Path) -> None:
    files = {str(i): [i] for i in range(LEAST)}
    at = OffsetLog(str(tmp_path)).brief("s", {}, {"files": files})
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    reported = {"batch": 1, "at": {"s": at}, "ended": []}
    (tmp_path / "spark" / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(reported)}")
    assert QueryCheckpoint(str(tmp_path)).offset(0)["at"] == {"s": {"files": files}}
