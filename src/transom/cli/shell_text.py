"""What is typed into the shell, cut into statements at each ; that is neither quoted nor in a comment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SHOWN: Final = ("STREAMS", "TABLES", "VIEWS", "SINKS", "QUERIES", "FUNCTIONS", "OPTIONS")

_PART: Final = re.compile(
    r"(?P<blank>\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)"
    r"|(?P<open>/\*.*|'(?:[^']|'')*$|\"(?:[^\"]|\"\")*$)"
    r"|(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<end>;)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_COMMAND: Final = re.compile(r"\s*(help|quit|exit|show|stop)\b\s*([^\s;]*)\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Command:
    """A word of the shell itself, in upper case, and what stands behind it."""

    word: str
    what: str


def read_command(text: str) -> Command | None:
    """The command that a text is, if it is one; it needs no ; at its end.

    >>> read_command("show streams"), read_command("SELECT a FROM show")
    (Command(word='SHOW', what='streams'), None)
    """
    match = _COMMAND.fullmatch(text)
    return None if match is None else Command(match[1].upper(), match[2])


def split(text: str) -> tuple[list[str], str]:
    """The statements that have ended, and the text after them.

    Before each statement stand as many blank lines as there are lines before it, so that errors name its true place.

    >>> split("SELECT ';' FROM s; -- one; two\\nSELECT")
    (["SELECT ';' FROM s"], '\\nSELECT')
    >>> split("a;\\n;\\nb;")
    (['a', '\\n\\nb'], '\\n\\n')
    """
    statements: list[str] = []
    start, said = 0, False
    for part in _PART.finditer(text):
        if part.lastgroup == "end":
            if said:
                statements.append(_placed(text, start, part.start()))
            start, said = part.end(), False
        elif part.lastgroup != "blank":
            said = True
    rest = _placed(text, start, len(text))
    return statements, rest if said else "\n" * text.count("\n")


def is_whole(text: str) -> bool:
    """Whether nothing more is expected: all statements have ended, or it is a command of the shell.

    >>> [is_whole(text) for text in ("SELECT a", "SELECT a;", "SELECT ';", "SELECT a; help", " ")]
    [False, True, False, True, True]
    """
    rest = split(text)[1]
    return not rest.strip() or read_command(rest) is not None


def _placed(text: str, start: int, stop: int) -> str:
    """Part of a text with what comes before it as blank lines; without comments and blanks at its beginning."""
    while (blank := _PART.match(text, start, stop)) is not None and blank.lastgroup == "blank":
        start = blank.end()
    return "\n" * text.count("\n", 0, start) + text[start:stop]
