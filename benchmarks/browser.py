"""A real browser, where there is one: for what is measured of the console, and for its tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def why_not() -> str | None:
    """What is missing for a browser here."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "no playwright is installed"
    return None if _chromium() else "there is no chromium (on Debian: apt-get install chromium)"


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=_chromium(), args=["--no-sandbox", "--js-flags=--expose-gc"])
        try:
            yield opened
        finally:
            opened.close()


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
