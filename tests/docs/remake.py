"""`python -m tests.docs.remake`: writes every figure and every made table of the pages anew, from real runs."""

from __future__ import annotations

import sys

from tests.docs import drawings, screenshots
from tests.docs.pages import ROOT, Page, PageError, made_parts, pages, with_made
from tests.docs.tables import PARTS
from tests.docs.world import run_page
from transom.core.errors import TransomError


def remade(page: Page) -> str:
    """The text of the page as it should be."""
    figures: dict[int, str] = {}
    run_page(page, lambda block, text: figures.__setitem__(block.line, text))
    return with_made(page, figures, {name: PARTS[name]() for name, _ in made_parts(page)})


def main() -> int:
    wrong = 0
    for page in pages():
        try:
            text = remade(page)
        except (PageError, TransomError) as error:
            print(f"{page.name} is left as it is:\n{error}")
            wrong = 1
            continue
        if text != page.text:
            (ROOT / page.name).write_text(text, encoding="utf-8")
            print(f"{page.name} is new")
    drawings.write()
    print(screenshots.take_where_changed())
    return wrong


if __name__ == "__main__":
    sys.exit(main())
