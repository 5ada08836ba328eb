"""A bound on nesting, counted on the words of a text before anything recursive sees them.

The parser and everything behind it walk trees by recursion. The bounds leave room for that within Python's default
limit; what slips past them is caught as a RecursionError where statements are bound, with the same message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from transom.core.errors import QueryError, Span

MAX_NESTING: Final = 30
"""Brackets, CASE and prefix operators within each other."""

MAX_CHAIN: Final = 100
"""Operators in a row (a + b + c ..), set operations of one query, joins of one FROM."""

_OPEN: Final = frozenset({"(", "[", "{", "CASE"})
_CLOSE: Final = frozenset({")", "]", "}", "END"})
_PREFIX: Final = frozenset({"NOT", "-", "+"})
_OPERATOR: Final = frozenset("+ - * / // % || :: . = == <> != < <= > >= IS LIKE ILIKE BETWEEN IN".split())
_CLAUSE: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "JOIN"})
_FRESH: Final = frozenset(", AND OR WHEN THEN ELSE SELECT FROM WHERE ON HAVING ;".split())


def first_too_deep(words: Iterable[str]) -> int | None:
    """The position of the first word (in capitals) at which a bound is passed, or None.

    Each open bracket keeps how many prefixes stand before it, how many operators are in a row around it, and how many
    clauses are chained around it.

    >>> first_too_deep(["("] * 40)
    30
    """
    levels: list[tuple[int, int, int]] = []
    weight = prefixes = row = clauses = 0
    for position, word in enumerate(words):
        if word in _OPEN:
            levels.append((prefixes + 1, row, clauses))
            weight += prefixes + 1
            prefixes = row = clauses = 0
        elif word in _CLOSE and levels:
            added, row, clauses = levels.pop()
            weight -= added
            prefixes = 0
        elif word in _FRESH:
            row = prefixes = 0
            if word == ";":
                levels, weight, clauses = [], 0, 0
        else:
            prefixes = prefixes + 1 if word in _PREFIX else 0
            row += word in _OPERATOR
            clauses += word in _CLAUSE
        if weight + prefixes > MAX_NESTING or row > MAX_CHAIN or clauses > MAX_CHAIN:
            return position
    return None


def too_deep(span: Span, text: str) -> QueryError:
    return QueryError(
        "the query is nested too deeply",
        remedy=f"keep to {MAX_NESTING} levels of nesting and {MAX_CHAIN} operators in a row; give parts a name "
        "with WITH or CREATE VIEW",
        span=span,
        text=text,
    )
