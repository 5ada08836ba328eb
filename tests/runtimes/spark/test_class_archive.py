"""The archive of classes: made once from the list of a run that had a query, used from then on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from transom.runtimes.spark import class_archive
from transom.runtimes.spark.class_archive import STATEFUL_STAGE, archive_options, make
from transom.runtimes.spark.java import Java

ENDED = 2**22 + 1
"""No process has this number."""

FAKE_JAVA = """#!/bin/sh
for argument do
    case "$argument" in -XX:SharedArchiveFile=*) echo made > "${argument#*=}";; esac
done
exit $(cat "$(dirname "$0")/status")
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """Makes an archive of one line, and then fails if it is reported to."""
    monkeypatch.setattr(class_archive, "cache_folder", lambda name: tmp_path)
    monkeypatch.setattr(os, "nice", lambda increment: increment)
    executable = tmp_path / "java"
    executable.write_text(FAKE_JAVA)
    executable.chmod(0o755)
    (tmp_path / "status").write_text("0")
    (tmp_path / "jars").mkdir()
    return Java(executable, 17)


def options(java: Java) -> tuple[str, Path]:
    (option,) = archive_options(java, java.executable.parent / "jars", "4.3.0")
    name, _, path = option.partition("=")
    return name, Path(path)


def test_a_list_becomes_the_archive_that_is_used_next(java: Java) -> None:
    name, written = options(java)
    assert name == "-XX:DumpLoadedClassList"
    written.write_text(f"java/lang/Object\norg/x/{STATEFUL_STAGE}\n")
    assert make(ENDED, str(java.executable), written, "jars/*")
    name, archive = options(java)
    assert name == "-XX:SharedArchiveFile" and archive.read_text() == "made\n" and not written.exists()


def test_a_program_that_was_reported_to_end_leaves_no_process_for_it(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, written = options(java)
    written.write_text(f"org/x/{STATEFUL_STAGE}\n")
    started: list[object] = []
    monkeypatch.setattr(class_archive, "ending", lambda: True)
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **options: started.append(arguments))
    class_archive._begin([str(ENDED), str(java.executable), str(written), "jars/*"])
    assert not started and not written.exists()


@pytest.mark.parametrize(("classes", "status"), [("java/lang/Object\n", "0"), (f"org/x/{STATEFUL_STAGE}\n", "1")])
def test_without_a_query_or_without_success_there_is_none(java: Java, classes: str, status: str) -> None:
    folder = java.executable.parent
    (folder / "status").write_text(status)
    _, written = options(java)
    written.write_text(classes)
    assert not make(ENDED, str(java.executable), written, "jars/*")
    assert options(java)[0] == "-XX:DumpLoadedClassList"
    assert not list(folder.glob("*.new")) and not list(folder.glob("*.classes"))


def test_archives_of_versions_that_are_gone_are_removed(java: Java) -> None:
    old = java.executable.parent / "0123.jsa"
    old.touch()
    os.utime(old, (0, 0))
    _, written = options(java)
    written.write_text(STATEFUL_STAGE)
    assert make(ENDED, str(java.executable), written, "jars/*") and not old.exists()
