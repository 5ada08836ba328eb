"""Pages cut into sections and blocks.

A block is what stands between two fences: the words behind the first one, and its text. What stands above the first
`##` heading holds for every section of the page, and every section stands for itself. A made part, between
`<!-- made: name -->` and `<!-- /made -->`, is a table that a command writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
RESULTS: Final = ROOT / "benchmarks" / "results"
FENCE: Final = "```"

_MADE: Final = re.compile(r"<!-- made: (\w+) -->")
_END_OF_MADE: Final = "<!-- /made -->"


@dataclass(frozen=True)
class Block:
    """`line` is the number of its first fence; `words` are what stands behind it."""

    words: tuple[str, ...]
    text: str
    line: int

    @property
    def kind(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it; the part above the first heading has the title ''."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    name: str
    text: str
    sections: tuple[Section, ...]

    @property
    def preamble(self) -> Section:
        return self.sections[0]

    @property
    def blocks(self) -> list[Block]:
        return [block for section in self.sections for block in section.blocks]


class PageError(AssertionError):
    """A page is not written by the rules."""


def pages() -> list[Page]:
    """The pages of the documentation and of results; decisions are described, not shown, and have no blocks to run."""
    paths = [path for path in sorted(DOCS.rglob("*.md")) if "decisions" not in path.parts]
    paths.append(RESULTS / "README.md")
    return [read_page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def read_page(name: str, text: str) -> Page:
    """
    >>> page = read_page("a.md", "# A\\n\\n## One\\n\\n```cql\\nSELECT\\n```\\n")
    >>> [section.title for section in page.sections], page.blocks[0].text
    (['', 'One'], 'SELECT\\n')
    """
    sections: list[tuple[str, list[Block]]] = [("", [])]
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("## "):
            sections.append((line[3:].strip(), []))
        elif line.startswith(FENCE):
            block = _read_block(name, lines, at)
            sections[-1][1].append(block)
            at += block.text.count("\n") + 1
        elif FENCE in line:
            raise PageError(f"{name}:{at + 1}: a fence stands at the start of its line")
        at += 1
    titles = [title for title, _ in sections]
    if len(set(titles)) != len(titles):
        raise PageError(f"{name}: two sections have the same title")
    return Page(name, text, tuple(Section(title, tuple(blocks)) for title, blocks in sections))


def _read_block(name: str, lines: list[str], start: int) -> Block:
    words = tuple(lines[start].removeprefix(FENCE).split())
    if not words:
        raise PageError(f"{name}:{start + 1}: the block does not say what it is")
    for end in range(start + 1, len(lines)):
        if lines[end] == FENCE:
            return Block(words, "".join(line + "\n" for line in lines[start + 1 : end]), start + 1)
    raise PageError(f"{name}:{start + 1}: the block is not closed")


def made_parts(page: Page) -> Iterator[tuple[str, str]]:
    """The names of the made parts and what stands in them."""
    for opening in _MADE.finditer(page.text):
        end = page.text.find(_END_OF_MADE, opening.end())
        if end < 0:
            raise PageError(f"{page.name}: the made part '{opening[1]}' is not closed")
        yield opening[1], page.text[opening.end() : end].strip("\n")


def with_made(page: Page, blocks: Mapping[int, str], parts: Mapping[str, str]) -> str:
    """The text of the page with other texts in blocks, by their line, and in made parts, by their name."""
    lines = page.text.splitlines()
    for block in sorted(page.blocks, key=lambda block: -block.line):
        if block.line in blocks:
            lines[block.line : block.line + block.text.count("\n")] = blocks[block.line].splitlines()
    text = "\n".join(lines) + "\n"
    for name, part in parts.items():
        opening = f"<!-- made: {name} -->"
        before, mark, rest = text.partition(opening)
        if mark:
            text = f"{before}{opening}\n{part}\n{rest[rest.index(_END_OF_MADE) :]}"
    return text
