"""Files of batches: whole or not at all, removed when nobody needs them, and kept for as long as a checkpoint does."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.commands import environment
from transom.core.errors import CheckpointError, SpillError
from transom.state.spill import SpillFile, SpillStore


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int64())})


def test_a_batch_comes_back_and_its_file_goes(tmp_path: Path) -> None:
    store = SpillStore(str(tmp_path))
    file = store.write([batch(1, 2), batch(), batch(3)])
    assert file.rows == [2, 0, 1] and store.read(file, 2).equals(batch(3)) and store.read(file, 0).equals(batch(1, 2))
    path = Path(store.folder, file.name)
    assert path.stat().st_size == file.bytes == store.written
    store.give_up(file)
    assert not path.exists()
    with pytest.raises(SpillError, match="cannot be read"):
        store.read(file, 0)
    store.close()
    assert not list(tmp_path.iterdir())


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    SpillStore(str(tmp_path)).close()
    SpillStore(home=str(tmp_path / "home")).close()
    assert not list(tmp_path.iterdir())


def test_a_forgotten_store_leaves_nothing(tmp_path: Path) -> None:
    store = SpillStore(str(tmp_path))
    store.write([batch(1)])
    assert list(tmp_path.iterdir())
    del store
    assert not list(tmp_path.iterdir())


def test_a_declared_disk_takes_its_time() -> None:
    slept: list[float] = []
    store = SpillStore(speed=1_000, sleep=slept.append)
    file = store.write([batch(*range(1_000))])
    store.read(file, 0)
    store.close()
    assert slept[0] > 6 and slept[1] > 6


def test_short_waits_are_made_together() -> None:
    slept: list[float] = []
    store = SpillStore(speed=100_000_000, sleep=slept.append)
    file = store.write([batch(*range(10_000))])  # 80,000 bytes: 0.8 ms
    for _ in range(100):
        store.read(file, 0)
    store.close()
    assert store.read_seconds > 0.0799
    assert len(slept) < 20 and min(slept) >= 0.005


def test_what_a_checkpoint_refers_to_stays_until_another_one_is_in_its_place(tmp_path: Path) -> None:
    store = SpillStore(home=str(tmp_path))
    first, second = store.write([batch(1)]), store.write([batch(2)])
    store.hold()  # a checkpoint with both
    store.give_up(first)
    store.release()
    assert len(list(tmp_path.iterdir())) == 2
    store.hold()  # one with the second alone
    assert len(list(tmp_path.iterdir())) == 2
    store.release()
    assert [path.name for path in tmp_path.iterdir()] == [second.name]
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [second.name]


def test_going_on_from_a_checkpoint_removes_what_it_does_not_know(tmp_path: Path) -> None:
    store = SpillStore(home=str(tmp_path))
    referred, left = store.write([batch(1)]), store.write([batch(2)])
    after = SpillStore(home=str(tmp_path))
    after.adopt([referred])
    assert [path.name for path in tmp_path.iterdir()] == [referred.name] != [left.name]
    assert after.read(referred, 0).equals(batch(1))


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_file_of_a_checkpoint_is_rejected(tmp_path: Path, damage: str) -> None:
    file = SpillStore(home=str(tmp_path)).write([batch(1)])
    path = tmp_path / file.name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes(data) if damage == "flipped" else path.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="missing or damaged"):
        SpillStore(home=str(tmp_path)).adopt([file])


DIES = """
import sys, os, signal, pyarrow as pa
from transom.state.spill import SpillStore
store = SpillStore(sys.argv[1])
store.write([pa.record_batch({"a": [1]})])
print(store.folder, flush=True)
if sys.argv[2] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def process(folder: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DIES, str(folder), how],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_what_a_dead_run_left_is_removed_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    with process(tmp_path, "dies") as dead, process(tmp_path, "lives") as living:
        assert dead.stdout is not None and living.stdout is not None
        left, kept = dead.stdout.readline().strip(), living.stdout.readline().strip()
        assert dead.wait() == -signal.SIGKILL and os.path.isdir(kept)
        store = SpillStore(str(tmp_path))
        store.write([batch(1)])
        assert not os.path.exists(left) and os.path.isdir(kept) and os.path.isdir(store.folder)
        store.close()
        living.communicate("")
    assert os.listdir(tmp_path) == []


FULL = """
import resource, signal, sys, pyarrow as pa
from transom.core.errors import SpillError
from transom.state.spill import SpillStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SpillStore(sys.argv[1])
small = store.write([pa.record_batch({"a": [1]})])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.write([pa.record_batch({"a": list(range(100_000))})])
except SpillError as error:
    print(error.what, "|", error.remedy)
import os
print(os.listdir(store.folder) == [small.name], store.read(small, 0).to_pylist())
store.close()
"""


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE is not None
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], env=environment(), capture_output=True, text=True, check=True
    )
    reported, rest = ended.stdout.splitlines()
    assert "cannot be written to" in reported and "SET spill" in reported and "SET memory" in reported
    assert rest == "True [{'a': 1}]"


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SpillStore(str(tmp_path / "file"))
    with pytest.raises(SpillError, match="cannot be written"):
        store.write([batch(1)])
    assert SpillFile("a", 1, "b", [1]) == SpillFile("a", 1, "b", [1])
