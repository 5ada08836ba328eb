"""Patterns of regular expressions (RE2): which are taken, with which options, and their groups."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_FLAGS: Final = {"c": "", "i": "(?i)", "s": "(?s)", "g": ""}


def flagged(pattern: str, options: str) -> str:
    """The pattern with its options in front.

    >>> flagged("a.b", "gi")
    '(?i)a.b'
    """
    return "".join(_FLAGS[option] for option in options) + pattern


def objection(pattern: str, options: str = "", replacement: str | None = None) -> str | None:
    """Why a pattern is not taken, None when it is.

    Classes of Unicode are left out, and small and capital letters beyond ASCII: they depend on the version of the
    library, which is not the same everywhere.

    >>> objection("(a"), objection("[a-z]+")
    ('missing ): (a', None)
    """
    if re.search(r"(?<!\\)(?:\\\\)*\\[pPC]", pattern):
        return r"\p, \P and \C are not supported; write the characters, as in [a-z]"
    if "(?<" in pattern or "(?P<" in pattern:
        return "groups have no names; count them from 1"
    if ("i" in options or "(?i" in pattern or re.search(r"\(\?[a-z]*i", pattern)) and not pattern.isascii():
        return "small and capital letters are alike in ASCII alone"
    try:
        pc.match_substring_regex(pa.array([""]), flagged(pattern, options))
        if replacement is not None:
            pc.replace_substring_regex(pa.array([""]), flagged(pattern, options), replacement)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None


def with_named_groups(pattern: str) -> tuple[str, int]:
    """The pattern as group 0 of itself, every group with a name, as Arrow wants it; and how many groups there are.

    >>> with_named_groups("(a)(?:b)[(]")
    ('(?P<g0>(?P<g1>a)(?:b)[(])', 1)
    """
    pattern_with_names, groups, at = "", 0, 0
    for token in re.finditer(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]])*\]|\((?!\?)", pattern, re.DOTALL):
        if token[0] == "(":
            groups += 1
            pattern_with_names += pattern[at : token.start()] + f"(?P<g{groups}>"
            at = token.end()
    return f"(?P<g0>{pattern_with_names}{pattern[at:]})", groups
