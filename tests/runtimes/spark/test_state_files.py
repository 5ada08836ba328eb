"""Large values of state in files: those that the committed state names are there, whatever is given up or run again."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.connectors.memory_storage import memory_storage
from tests.memory_log import MemoryCache, MemoryLog
from tests.pipeline.test_state_backend import LAYOUT, messages, reported
from transom.core.errors import CheckpointError, SparkError
from transom.pipeline import state_backend
from transom.pipeline.fragment_partition import FragmentPartition
from transom.runtimes.spark import spark_log, state_files
from transom.runtimes.spark.log_names import HEADER
from transom.runtimes.spark.spark_log import SparkLog
from transom.runtimes.spark.state_files import StateFiles


class Entries:
    """A variable of Spark's state, as it is within a batch."""

    def __init__(self, known: dict[Any, tuple[bytes]]) -> None:
        self.known = dict(known)

    def getValue(self, key: Any) -> tuple[bytes] | None:
        return self.known.get(key)

    def updateValue(self, key: Any, value: tuple[bytes]) -> None:
        self.known[key] = value

    def removeKey(self, key: Any) -> None:
        del self.known[key]


def test_what_is_large_is_in_a_file_and_comes_back(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path / "1-0"), least=10)
    (plain,), size = files.kept([b"12345", b"6789"], 3)
    assert size == 9 and files.value(plain) == b"123456789" and not (tmp_path / "1-0").exists()
    (named,), size = files.kept([b"12345", memoryview(b"67890"), b"", b"abc"], 3)
    assert size == 13 and len(named) < 60 and files.value(named) == b"1234567890abc"
    (name,) = os.listdir(tmp_path / "1-0")
    assert name.startswith("3-") and state_files.name_of(named) == name and state_files.name_of(plain) is None


def test_state_on_a_storage_comes_back_and_goes() -> None:
    with memory_storage() as (uri, storage):
        files = StateFiles(f"{uri}/check/state/1-0", least=10)
        (old,), _ = files.kept([b"what a task has left"], 3)
        (kept,), size = files.kept([b"12345", memoryview(b"67890")], 200)
        assert size == 10 and files.value(kept) == b"1234567890" and len(storage.files) == 2
        name = state_files.name_of(kept)
        assert name is not None
        files.tidy({name}, 200)
        assert list(storage.files) == [f"{uri}/check/state/1-0/{name}"]
        with pytest.raises(CheckpointError, match="cannot be read"):
            files.value(old)
        files.remove([name])
        assert not storage.files


def test_without_a_folder_it_is_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "PART_BYTES", 4)
    files = StateFiles(None, least=1)
    kept, size = files.kept([b"123", b"4567", b"89"], 0)
    assert size == 9 and [files.value(part) for part in kept] == [b"1234", b"5678", b"9"]


@pytest.mark.parametrize("how", ["gone", "shorter", "another"])
def test_a_file_that_is_not_what_was_written_is_damage(tmp_path: Path, how: str) -> None:
    files = StateFiles(str(tmp_path), least=1)
    (kept,), _ = files.kept([b"state"], 0)
    (path,) = tmp_path.iterdir()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(b"stat" if how == "shorter" else b"State")
    with pytest.raises(CheckpointError, match="cannot be read"):
        files.value(kept)


def test_a_disk_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SparkError, match="state cannot be written"):
        StateFiles(str(tmp_path / "file" / "1-0"), least=1).kept([b"state"], 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_may_be_run_again_from_the_state_before(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are given up, and workers change; in the end there are no files but those that the state names."""
    random = Random(seed)
    monkeypatch.setattr(state_backend, "LEAST_BYTES", random.choice([1, 2_000, 1 << 16]))
    files = StateFiles(str(tmp_path), least=random.choice([1, 500]))
    sure, sure_log, sure_cached = FragmentPartition(LAYOUT, 1, 0), MemoryLog(), MemoryCache()
    partition, warm = FragmentPartition(LAYOUT, 1, 0), MemoryCache()
    committed: dict[Any, tuple[bytes]] = {}
    for batch in range(12):
        monkeypatch.setattr(spark_log, "batch_number", lambda batch=batch: batch)
        came = messages(batch, random.choice([1, 50]))
        expected = reported(state_backend.step(sure, sure_log, sure_cached, came).messages)
        while True:
            entries = Entries(committed)
            log = SparkLog(entries, files)
            if random.random() < 0.4:  # another worker, which knows nothing
                partition, warm = FragmentPartition(LAYOUT, 1, 0), MemoryCache()
                known = log.header()
                if known is not None:
                    log.tidy(state_backend.Header.of(known).entries())
            found = reported(state_backend.step(partition, log, warm, came).messages)
            assert found == expected
            if random.random() < 0.7:
                break
        committed = entries.known
    later = 12 + state_files.KEPT_BATCHES
    (tmp_path / "of-somebody-else").touch()
    monkeypatch.setattr(spark_log, "batch_number", lambda: later)
    log = SparkLog(Entries(committed), files)
    header = log.header()
    assert header is not None
    log.tidy(state_backend.Header.of(header).entries())
    named = {state_files.name_of(kept) for key, (kept,) in committed.items() if key != HEADER}
    assert set(os.listdir(tmp_path)) == named - {None} | {"of-somebody-else"}
