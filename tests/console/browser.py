"""A real browser for tests and for the figures of the docs; there is none everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import benchmarks.browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)  # a busy machine is no reason to fail
    with benchmarks.browser.browser() as opened:
        yield opened


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


def held_by(shown: Page) -> tuple[int, int, int]:
    """Bytes of the heap, nodes and listeners that a page holds once its garbage is collected."""
    tools = shown.context.new_cdp_session(shown)
    try:
        tools.send("HeapProfiler.collectGarbage")
        heap: Any = tools.send("Runtime.getHeapUsage")
        counters: Any = tools.send("Memory.getDOMCounters")
        return int(heap["usedSize"]), counters["nodes"], counters["jsEventListeners"]
    finally:
        tools.detach()
