"""A real browser for tests and for the figures of the docs; there is none everywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def why_not() -> str | None:
    """What is missing for a browser here."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "no playwright is installed"
    return None if _chromium() else "there is no chromium (on Debian: apt-get install chromium)"


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # a busy machine is no reason to fail
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=_chromium(), args=["--no-sandbox", "--js-flags=--expose-gc"])
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def page(
    opened: Browser, width: int = 1280, height: int = 860, theme: str = "light"
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what it complains of."""
    context = opened.new_context(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    shown = context.new_page()
    complaints: list[str] = []
    shown.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield shown, complaints
    finally:
        context.close()


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
