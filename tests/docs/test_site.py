"""The manual as a site: nothing is left out of it, and it builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import transom
import transom.testing
from tests.docs.pages import DOCS


def test_every_page_is_in_the_contents() -> None:
    trees = {path: path.read_text(encoding="utf-8") for path in [DOCS / "index.rst", *(DOCS / "site").glob("*.rst")]}
    listed: set[Path] = set()
    for path, text in trees.items():
        for name in re.findall(r"^   ([\w./*-]+)$", text, flags=re.MULTILINE):
            pages = [*path.parent.glob(f"{name}.md"), *path.parent.glob(f"{name}.rst")]
            assert pages, f"{path.name} lists {name}, which is not there"
            listed.update(file.resolve() for file in pages)
    assert set(DOCS.rglob("*.md")) - listed == set()


def test_every_public_name_is_in_the_reference() -> None:
    for page, module in (("python", transom), ("testing", transom.testing)):
        text = (DOCS / "site" / f"{page}.rst").read_text(encoding="utf-8")
        assert set(re.findall(r"^\.\. auto\w+:: (\w+)$", text, flags=re.MULTILINE)) == set(module.__all__)


@pytest.mark.nightly
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """A dead link is a warning, and so is an example that is not as docstrings are written."""
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", "html"]
    done = subprocess.run([*command, str(DOCS), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lifetime" in (tmp_path / "semantics.html").read_text(encoding="utf-8")
    assert "proven in production" in (tmp_path / "site" / "why.html").read_text(encoding="utf-8")
    cookbook = (tmp_path / "cookbook.html").read_text(encoding="utf-8")
    for caption in ("input: stream clicks", "answer: instant, row", "in Flink SQL"):
        assert caption in cookbook, "a reader of the site has to see what a block is"
