"""`python -m tests.docs.remake`: writes every figure and every made table of the pages anew, from real runs."""

from __future__ import annotations

import sys

from tests.docs.pages import ROOT, Page, made_parts, pages, with_made
from tests.docs.tables import PARTS
from tests.docs.world import run_page


def remade(page: Page) -> str:
    """The text of the page as it should be."""
    figures: dict[int, str] = {}
    run_page(page, lambda block, text: figures.__setitem__(block.line, text))
    return with_made(page, figures, {name: PARTS[name]() for name, _ in made_parts(page)})


def main() -> int:
    for page in pages():
        text = remade(page)
        if text != page.text:
            (ROOT / page.name).write_text(text, encoding="utf-8")
            print(f"{page.name} is new")
    return 0


if __name__ == "__main__":
    sys.exit(main())
