"""What the third column of an input is called: B in S, C in T, D in U, E in R, unless a query says otherwise."""

from __future__ import annotations

import re
from typing import Final

USUAL: Final = {"S": "B", "T": "C", "U": "D", "R": "E"}

_WORDS_OF_SQL: Final = frozenset(
    """
    all and any as asc avg between by case cast coalesce count cross day days desc distinct dstream else end except
    exists false from full group having hour hours in inner intersect interval is istream join left like max
    microsecond microseconds millisecond milliseconds min minus minute minutes natural not now null on or order outer
    partition range right rows rstream second seconds select slide sum then true unbounded union using when where with
    """.split()
)


def third_columns(texts: list[str]) -> dict[str, str]:
    """Input -> the name of its third column, as the texts of a case use it.

    >>> third_columns(["select S.A, X.F from S [Now], T [Rows 2] as X where S.A = X.A"])["T"]
    'F'
    >>> third_columns(["select A, price from S [Now] where A > 1"])["S"]
    'price'
    """
    return {name: _qualified(name, texts) or _alone(name, texts) or USUAL[name] for name in USUAL}


def _qualified(name: str, texts: list[str]) -> str | None:
    """A name behind a dot that is neither A nor the usual one."""
    for text in texts:
        sources = re.findall(rf"(?<![\w.]){name}\b\s*(?:\[[^\]]*\])?\s*(?:\bas\s+)?(\w+)?", text, flags=re.IGNORECASE)
        aliases = {alias for alias in sources if alias and alias.lower() not in _WORDS_OF_SQL}
        for owner in {name, *aliases}:
            for column in re.findall(rf"(?<![\w.]){owner}\.(\w+)", text, flags=re.IGNORECASE):
                if column.upper() not in ("A", USUAL[name]):
                    return str(column)
    return None


def _alone(name: str, texts: list[str]) -> str | None:
    """The one unknown name in a text that reads nothing but this input."""
    for text in texts:
        outside = re.sub(r"'[^']*'|\[[^\]]*\]", " ", text)
        read = {word.upper() for word in re.findall(r"(?<![\w.])\w+", outside)} & set(USUAL)
        made = {word.lower() for word in re.findall(r"\bas\s+(\w+)", outside, flags=re.IGNORECASE)}
        words = re.findall(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[(.])", outside)
        unknown = {
            word
            for word in words
            if word.lower() not in _WORDS_OF_SQL | made and word.upper() not in {"A", *USUAL, *USUAL.values()}
        }
        if read == {name} and len(unknown) == 1:
            return str(unknown.pop())
    return None
