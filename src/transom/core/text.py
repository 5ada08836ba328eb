"""Text that can be written down: a `str` of Python may hold halves of characters, which no file and no column takes."""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def lone_surrogate(text: str) -> int | None:
    """Where the first half of a character stands in a text; None in proper text.

    >>> lone_surrogate("a" + chr(0xD800)), lone_surrogate("a")
    (1, None)
    """
    found = _SURROGATE.search(text)
    return None if found is None else found.start()


def visible(text: str) -> str:
    """The text with halves of characters as their escapes, so that it can be shown.

    >>> visible("a" + chr(0xD800))
    'a\\\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
