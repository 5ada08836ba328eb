"""The test module on the page is run by pytest, as a reader would run it; the rest of the page by tests/docs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import environment
from tests.docs.pages import DOCS, read_page

PAGE = read_page("docs/testing.md", (DOCS / "testing.md").read_text(encoding="utf-8"))


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_alarms.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )


@pytest.mark.nightly
def test_the_module_of_the_page_passes_and_can_fail(tmp_path: Path) -> None:
    files = {block.arguments[0]: block.text for block in PAGE.blocks if block.kind == "file"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = pytest_in(tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "7 passed" in ended.stdout
    (tmp_path / "alarms.cql").write_text(files["alarms.cql"].replace("> 50", "> 48"), encoding="utf-8")
    ended = pytest_in(tmp_path)
    assert "FAILED test_alarms.py::test_two_hot_rooms_of_a_floor_are_an_alarm" in ended.stdout
    assert "not as expected at 10:00:20:" in ended.stdout


def test_every_public_name_is_on_the_page() -> None:
    import transom.testing

    for name in transom.testing.__all__:
        assert f"`{name}" in PAGE.text, name
