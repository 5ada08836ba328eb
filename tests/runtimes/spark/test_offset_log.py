"""Offsets stay short however many files have been read, and none of them is read twice or left out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.runtimes.spark.checkpoint_place import place
from transom.connectors.open import source_opener
from transom.core.location import is_remote
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue
from transom.program.checkpoint_folder import names_in, put
from transom.program.planned import read_program
from transom.runtimes.spark import offset_log
from transom.runtimes.spark.checkpoint import CheckpointProgress, QueryCheckpoint
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.message_source import MessageReader
from transom.runtimes.spark.offset_log import IN_LOG, LEAST, OffsetLog
from transom.runtimes.spark.task_split import TaskReading
from transom.runtimes.spark.worker_errors import ReportedToDriver

__all__ = ["place"]

Offset = dict[str, Any]

CONF = '{"conf": {"spark.sql.shuffle.partitions": "3"}}'


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
        TaskReading(
            layout, ("s",), openers, 2, 50, None, LocalShuffle(), frozenset({"s"}), checkpoint=kept, feedback=kept
        )
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
    names = os.listdir(tmp_path / "kept" / "read" / "s")
    path = tmp_path / "kept" / "read" / "s" / next(name for name in names if name.startswith("0-"))
    data = path.read_bytes()
    for spoilt in (data[:-1], data.replace(b"0001", b"0002"), b"[" * len(data), b"\xff" * len(data)):
        path.write_bytes(spoilt)
        with pytest.raises(ReportedToDriver, match="what has been read of 's'"):
            next_offset(reader(tmp_path), offset)
    path.unlink()
    with pytest.raises(ReportedToDriver, match="what has been read of 's'"):
        next_offset(reader(tmp_path), offset)


def test_a_long_log_has_few_files_and_every_position_that_may_be_asked_for(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files come, change and go; whoever starts from an offset of the last batches finds its position."""
    monkeypatch.setattr(offset_log, "LONGEST", 10)
    monkeypatch.setattr(offset_log, "KEPT", 20)
    random = Random(5)
    log = OffsetLog(place)
    files: dict[str, Any] = {str(i): [i] for i in range(LEAST)}
    offsets: list[Offset] = []
    positions: list[Offset] = []
    offset: Offset = {}
    for batch in range(80):
        files[f"{batch} more"] = [batch]
        for name in random.sample(sorted(files), 2 if batch < 60 else 60):
            files[name] = [batch, batch]
        del files[random.choice(sorted(files))]
        offset = log.brief("s", offset, {"files": files})
        offsets.append(offset)
        positions.append({"files": dict(files)})
        if batch % 17 == 0:
            log = OffsetLog(place)
    assert 20 <= len(names_in(f"{place}/read/s")) <= 30
    for batch in range(len(offsets) - 10, len(offsets)):
        assert OffsetLog(place).whole("s", offsets[batch]) == positions[batch], batch


def test_what_is_removed_from_a_position_is_removed(place: str) -> None:
    log = OffsetLog(place)
    many = {str(i): [i] for i in range(LEAST)}
    first = log.brief("a/b", {}, {"files": many, "current": "7"})
    assert first["current"] == "7" and "files" not in first
    fewer = {name: at for name, at in many.items() if name != "5"}
    second = log.brief("a/b", first, {"files": fewer})
    for known in (log, OffsetLog(place)):
        assert known.whole("a/b", second) == {"files": fewer}
    assert log.brief("a/b", second, {"files": fewer}) == second, "nothing to write"
    assert OffsetLog(place).whole("a/b", first) == {"files": many, "current": "7"}
    assert log.whole("other", {"rows": 5}) == log.brief("other", {}, {"rows": 5}) == {"rows": 5}


def test_a_checkpoint_tells_the_whole_position(place: str) -> None:
    files = {str(i): [i] for i in range(LEAST)}
    at = OffsetLog(place).brief("s", {}, {"files": files})
    reported = {"batch": 1, "at": {"s": at}, "ended": []}
    if not is_remote(place):
        Path(place, "spark", "offsets").mkdir(parents=True)
    put(f"{place}/spark/offsets/0", f"v1\n{CONF}\n{json.dumps(reported)}".encode())
    put(f"{place}/spark/offsets/.1.tmp", b"which Spark has not finished")
    checkpoint = QueryCheckpoint(place)
    assert checkpoint.offset(0)["at"] == {"s": {"files": files}}
    assert checkpoint.reached() == CheckpointProgress(0, 1, 3)
