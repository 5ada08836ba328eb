"""Text that others wrote, as a person may safely see it: names, values and messages can hold anything.

A terminal obeys what it is sent: an escape sequence in a file name can hide lines, change the title or write others'
words. So whatever is not printable is written out, as Python writes it.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def visible(text: str, keep: str = "") -> str:
    """The text with line ends, control characters and what turns the direction of writing written out.

    Characters of `keep` are left as they are.

    >>> print(visible("a\\nb \\x1b[31mred"), visible("a\\nb", keep="\\n"))
    a\\nb \\x1b[31mred a
    b
    """
    rest = text
    for character in keep:
        rest = rest.replace(character, "")
    if rest.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def visible_lines(text: str) -> str:
    """The same of a text that is made of lines."""
    return visible(text, keep="\n")


def size_text(size: int) -> str:
    """
    >>> size_text(0), size_text(1_234), size_text(56_789_000)
    ('0 B', '1.2 kB', '56.8 MB')
    """
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{size} B"


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """
    >>> "né😀".encode("ascii", ESCAPED)
    b'n\\\\u00e9\\\\ud83d\\\\ude00'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end


ESCAPED: Final = "transom.escaped"
"""How a stream writes what its encoding has no letter for: as JSON does, so that JSON stays JSON."""

codecs.register_error(ESCAPED, _escaped)


def lone_surrogate(text: str) -> int | None:
    """Where the first half of a character stands in a text, which no file and no column takes; None in proper text.

    >>> lone_surrogate("a" + chr(0xD800)), lone_surrogate("a")
    (1, None)
    """
    half = _SURROGATE.search(text)
    return None if half is None else half.start()
