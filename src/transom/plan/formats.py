"""Formats of moments: strftime's, and those of to_char and date_format as strftime's."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

WRITTEN: Final = frozenset([*"YmdHMSfgjaAbBpIyuwGVUW", *(f"-{letter}" for letter in "dmHIMSj")])
"""The parts that strftime writes, without their %."""

READ: Final = frozenset("YmdHMSfbBIpy")
"""The parts that strptime reads."""


class Piece(NamedTuple):
    """A text that stands for itself, or a part of the moment."""

    text: str
    is_part: bool


def split_format(text: str) -> list[Piece]:
    """The pieces of a format in their order.

    >>> [piece.text for piece in split_format("%d. %B 100%%")]
    ['d', '. ', 'B', ' 100%']
    """
    pieces: list[Piece] = []
    for token in re.finditer(r"%(?P<part>-?.|$)|(?P<plain>[^%]+)", text, re.DOTALL):
        part, plain = token["part"], token["plain"] or "%"
        if part is not None and part != "%":  # a last % has an empty part, which is none
            pieces.append(Piece(part, True))
        elif pieces and not pieces[-1].is_part:
            pieces[-1] = Piece(pieces[-1].text + plain, False)
        else:
            pieces.append(Piece(plain, False))
    return pieces


_TO_CHAR: Final = {
    "YYYY": "Y", "YY": "y", "MM": "m", "DD": "d", "DDD": "j", "HH24": "H", "HH12": "I", "HH": "I", "MI": "M", "SS": "S",
    "MS": "g", "US": "f", "AM": "p", "PM": "p", "FMMM": "-m", "FMDD": "-d", "FMHH24": "-H", "FMMI": "-M", "FMSS": "-S",
    "IYYY": "G", "IW": "V", "ID": "u", "Mon": "b", "Dy": "a", "FMMonth": "B", "FMDay": "A",
    "yyyy": "Y", "yy": "y", "mm": "m", "dd": "d", "hh24": "H", "hh12": "I", "hh": "I", "mi": "M", "ss": "S", "ms": "g",
    "us": "f",
}  # fmt: skip
_DATE_FORMAT: Final = {
    "yyyy": "Y", "yy": "y", "MM": "m", "M": "-m", "dd": "d", "d": "-d", "DDD": "j", "HH": "H", "H": "-H", "hh": "I",
    "h": "-I", "mm": "M", "m": "-M", "ss": "S", "s": "-S", "SSS": "g", "SSSSSS": "f", "a": "p", "EEE": "a", "EEEE": "A",
    "MMM": "b", "MMMM": "B",
}  # fmt: skip


def from_to_char(text: str) -> str | None:
    """to_char's format as strftime's; None when it has a word that is not known here.

    Names are written as they are spelt (mon, Mon, MON), and without FM filled up with blanks: only Mon is strftime's.

    >>> from_to_char("YYYY-MM-DD HH24:MI"), from_to_char("Month")
    ('%Y-%m-%d %H:%M', None)
    """
    words = "|".join(sorted(_TO_CHAR, key=len, reverse=True))
    return _translated(rf'"(?P<quoted>[^"]*)"|(?P<word>{words})|(?P<other>[^A-Za-z"])', text, _TO_CHAR)


def from_date_format(text: str) -> str | None:
    """The format of Flink's and Spark's date_format as strftime's; None when it has letters that are not known here.

    >>> from_date_format("yyyy-MM-dd'T'HH:mm"), from_date_format("QQ")
    ('%Y-%m-%dT%H:%M', None)
    """
    return _translated(
        r"'(?P<quoted>[^']+)'|(?P<word>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>[^A-Za-z'])", text, _DATE_FORMAT
    )


def _translated(pattern: str, text: str, parts: dict[str, str]) -> str | None:
    translated, at = "", 0
    while at < len(text):
        match = re.compile(pattern, re.DOTALL).match(text, at)
        if match is None or (match["word"] and match["word"] not in parts):
            return None
        plain = match["quoted"] or match["other"] or ""
        translated += f"%{parts[match['word']]}" if match["word"] else plain.replace("%", "%%")
        at = match.end()
    return translated
