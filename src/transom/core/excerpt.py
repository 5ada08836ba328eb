"""The piece of a text that something was made of, for whoever shows the two side by side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Excerpt:
    """text[start:stop], of the whole text that was read.

    >>> str(Excerpt("SELECT a FROM s", 7, 8))
    'a'
    """

    text: str
    start: int
    stop: int

    def __str__(self) -> str:
        return self.text[self.start : self.stop]
