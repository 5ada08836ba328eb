"""Folders of a process: gone when it is, whatever became of it; and nobody else's is touched."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from transom.state.scratch import Scratch, sweep

OWNER = """
import os, sys
from transom.state.scratch import Scratch
held = Scratch("test", sys.argv[1])
open(os.path.join(held.path, "file"), "w").close()
print(held.path, flush=True)
if len(sys.argv) > 2:
    sys.stdin.read()
"""


def owner(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """It ends with our end of its standard input at the latest."""
    return subprocess.Popen(
        [sys.executable, "-c", OWNER, folder, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_folder_goes_with_its_work_or_its_process(tmp_path: Path) -> None:
    with Scratch("test", str(tmp_path)) as held:
        assert os.stat(held.path).st_mode & 0o777 == 0o700
    with owner(tmp_path) as process:
        assert process.wait() == 0
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    with owner(tmp_path, "wait") as process:
        assert process.stdout is not None
        path = process.stdout.readline().strip()
        scratch = Scratch("test", str(tmp_path))
        assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (path, scratch.path)))
        process.send_signal(signal.SIGKILL)
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == [os.path.basename(scratch.path)]
    scratch.remove()
    scratch.remove()
    assert os.listdir(tmp_path) == []


def test_others_folders_stay(tmp_path: Path) -> None:
    (tmp_path / "transom-project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (tmp_path / "transom-test-0123456789ab").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "transom-test-ba9876543210").touch()
    before = sorted(os.listdir(tmp_path))
    sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == before and os.listdir(tmp_path / "elsewhere") == ["file"]


def test_a_folder_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "transom-test-0123456789ab").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == ["transom-test-0123456789ab"]


def test_one_that_is_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = fcntl.flock
    swept: list[str] = []

    def flock(file: int, how: int) -> None:
        if not swept:
            swept.append(os.readlink(f"/proc/self/fd/{file}"))
            sweep(str(tmp_path))
        locked(file, how)

    monkeypatch.setattr("transom.state.scratch.fcntl.flock", flock)
    made = Scratch("test", str(tmp_path))
    assert swept and swept[0] != made.path and os.listdir(tmp_path) == [os.path.basename(made.path)]


FORKING = """
import os, signal, sys
from transom.state.scratch import Scratch
held = Scratch("test", sys.argv[1])
if os.fork():
    os.kill(os.getpid(), signal.SIGKILL)
held.remove()
print(flush=True)
sys.stdin.read()
"""


def test_a_forked_process_neither_removes_a_folder_nor_keeps_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert len(os.listdir(tmp_path)) == 1
        sweep(str(tmp_path))
        assert os.listdir(tmp_path) == []
