"""The pictures of docs/console.md, taken of a real page; where there is no browser they stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.browser import why_not
from tests.console.browser import browser, page
from tests.console.building import Building

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIGURES: Final = Path(__file__).parents[2] / "docs" / "figures"
_WRONG: Final = "SELECT room, MAX(celsus) AS hottest\nFROM readings [RANGE 1 MINUTE]\nGROUP BY room"


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
                    shown.wait_for_timeout(2_000)
                    shown.goto(f"{console.url.partition('#')[0]}#/{address}")
                    shown.wait_for_timeout(6_000)
                    _prepare(name, shown)
                    shown.mouse.move(0, 0)
                    shown.screenshot(path=FIGURES / f"console_{name}.png")
    finally:
        building.close()
    return f"{len(_PICTURES)} pictures are new"


_PICTURES: Final = {
    "queries": ("queries", "light", 1280, 320),
    "answer": ("query/hot%20rooms/answer", "light", 1280, 860),
    "plan": ("query/alarms/plan", "dark", 1280, 1200),
    "inputs": ("query/hot%20rooms/inputs", "light", 1280, 640),
    "editor": ("editor", "light", 1280, 520),
}


def _prepare(name: str, shown: Page) -> None:
    if name == "plan":
        shown.locator("g.node.busy").first.click()
    if name == "editor":
        shown.get_by_label("Query text").fill(_WRONG)
        shown.wait_for_timeout(1_500)


if __name__ == "__main__":
    print(take())
