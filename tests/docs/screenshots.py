"""The pictures of docs/console.md, taken of a real page: `python -m tests.docs.screenshots` takes them anew.

`make docs` does so where the page has changed since. Without a browser they stay as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.browser import why_not
from tests.console.browser import browser, page
from tests.console.building import Building

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT: Final = Path(__file__).parents[2]
FIGURES: Final = ROOT / "docs" / "figures"
TAKEN_OF: Final = Path(__file__).with_name("screenshots_taken_of.txt")
_WRONG: Final = "SELECT room, MAX(celsus) AS hottest\nFROM readings [RANGE 1 MINUTE]\nGROUP BY room"


def take_where_changed() -> str:
    """What came of it, for people."""
    if TAKEN_OF.is_file() and TAKEN_OF.read_text(encoding="utf-8").strip() == fingerprint():
        return "pictures are left as they are: the page has not changed"
    return take()


def fingerprint() -> str:
    """Of all that the pictures show but the moment."""
    found = hashlib.sha256()
    for path in _made_of():
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _made_of() -> Iterator[Path]:
    yield from sorted((ROOT / "src" / "transom" / "console" / "static").rglob("*.*"))
    yield ROOT / "tests" / "console" / "building.py"
    yield Path(__file__)


def take() -> str:
    """What came of it, for people."""
    if (missing := why_not()) is not None:
        return f"pictures are left as they are: {missing}"
    building = Building()
    try:
        building.start()
        console = building.session.console("127.0.0.1:0", allow_changes=True)
        with browser() as opened:
            for name, (address, theme, width, height) in _PICTURES.items():
                with page(opened, width, height, theme) as (shown, _):
                    shown.goto(console.url)
                    shown.wait_for_selector(READY["queries"], timeout=_MOST)
                    shown.goto(f"{console.url.partition('#')[0]}#/{address}")
                    shown.wait_for_selector(READY[name], timeout=_MOST)
                    shown.wait_for_timeout(6_000)
                    _prepare(name, shown)
                    shown.mouse.move(0, 0)
                    shown.screenshot(path=FIGURES / f"console_{name}.png")
    finally:
        building.close()
    TAKEN_OF.write_text(fingerprint() + "\n", encoding="utf-8")
    return f"{len(_PICTURES)} pictures are new"


_PICTURES: Final = {
    "queries": ("queries", "light", 1280, 320),
    "answer": ("query/hot%20rooms/answer", "light", 1280, 860),
    "plan": ("query/alarms/plan", "dark", 1280, 1200),
    "inputs": ("query/hot%20rooms/inputs", "light", 1280, 640),
    "editor": ("editor", "light", 1280, 520),
}


READY: Final = {
    "queries": "tbody tr >> nth=2",
    "answer": "circle.begin",
    "plan": "g.node.busy",
    "inputs": "table[aria-label='Dead letters'] tbody tr",
    "editor": "textarea",
}
"""What is seen first when there is something to show."""

_MOST: Final = 120_000


def _prepare(name: str, shown: Page) -> None:
    if name == "plan":
        shown.locator("g.node.busy").first.click()
    if name == "editor":
        shown.get_by_label("Query text").fill(_WRONG)
        shown.wait_for_timeout(1_500)


if __name__ == "__main__":
    print(take())
