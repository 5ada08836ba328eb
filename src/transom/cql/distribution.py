"""Where a row stands in its partition: NTILE, PERCENT_RANK and CUME_DIST, made of ranks and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, DOUBLE
from transom.cql.bind_order import RankFunction
from transom.plan import functions
from transom.plan.expression import Expression, Literal

DISTRIBUTIONS: Final = ("ntile", "percent_rank", "cume_dist")
_MOST_TILES: Final = 10**9


def distribution(
    name: str,
    arguments: list[Expression],
    rank: Callable[[RankFunction], Expression],
    count: Callable[[bool], Expression],
) -> Expression:
    """`count` gives the rows of the partition, or of those up to the row and its peers."""
    if name == "ntile":
        return _tile(arguments, rank("row_number"), count(False))
    if arguments:
        raise QueryError(f"{name.upper()} takes no argument", remedy=f"write {name.upper()}() OVER (ORDER BY ..)")
    rows = count(False)
    if name == "cume_dist":
        return functions.resolve("/", (count(True), rows))
    above = functions.resolve("-", (rank("rank"), _number(1)))
    others = functions.resolve("-", (rows, _number(1)))
    alone = functions.resolve("=", (rows, _number(1)))
    return functions.case((alone,), (Literal(0.0, DOUBLE),), functions.resolve("/", (above, others)))


def _tile(arguments: list[Expression], place: Expression, rows: Expression) -> Expression:
    """Which of so many parts, of which the first have a row more where they cannot be equal."""
    tiles = arguments[0] if len(arguments) == 1 else None
    if not isinstance(tiles, Literal) or type(tiles.value) is not int or not 0 < tiles.value <= _MOST_TILES:
        raise QueryError("NTILE takes a constant number of parts", remedy="write NTILE(4) OVER (ORDER BY ..)")
    each = functions.resolve("//", (rows, _number(tiles.value)))
    longer = functions.resolve("%", (rows, _number(tiles.value)))
    before = functions.resolve("-", (place, _number(1)))
    long = functions.resolve("+", (each, _number(1)))
    in_longer = functions.resolve("*", (longer, long))
    first = functions.resolve("//", (before, long))
    behind = functions.resolve("//", (functions.resolve("-", (before, in_longer)), each))
    within = functions.resolve("<", (before, in_longer))  # always, where there are fewer rows than parts
    part = functions.case((within,), (first,), functions.resolve("+", (longer, behind)))
    return functions.resolve("+", (part, _number(1)))


def _number(value: int) -> Expression:
    return Literal(value, BIGINT)
