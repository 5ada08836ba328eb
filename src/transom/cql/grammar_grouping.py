"""GROUP BY: keys, or the sets of them that ROLLUP, CUBE and GROUPING SETS stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations, product
from math import prod
from typing import Final, NoReturn

from sqlglot import exp

from transom.cql.reader import Reader, Word

_MOST_SETS: Final = 64
_MOST_IN_CUBE: Final = 6
"""So many keys have as many sets."""
_MOST_KEYS: Final = 1_000
"""Of all sets together: a text names each once, and they are written out."""

Keys = list[exp.Expr]


def read_group(reader: Reader) -> exp.Group:
    """What stands behind GROUP BY: `expressions` are the keys, or else `sets` the keys of each grouping."""
    if reader.take("ALL"):
        return exp.Group(expressions=[], all=True)
    start = reader.word()
    elements = reader.listed(lambda: _read_element(reader))
    for name, sets_of in _SHORTHANDS.items():
        if reader.take("WITH", name):
            elements = [sets_of(reader, [keys for sets in elements for keys in sets])]
    count = prod(map(len, elements))
    if count > _MOST_SETS:
        _reject_size(reader, f"there are more than {_MOST_SETS} groupings", start)
    if count > 1 and count * sum(max(map(len, sets)) for sets in elements) > _MOST_KEYS:
        _reject_size(reader, f"the groupings have more than {_MOST_KEYS:,} keys together", start)
    sets = [list(chain.from_iterable(chosen)) for chosen in product(*elements)]
    if len(sets) == 1 and sets[0]:
        return exp.Group(expressions=sets[0])
    return exp.Group(expressions=[], sets=[exp.Tuple(expressions=[key.copy() for key in keys]) for keys in sets])


def _reject_size(reader: Reader, what: str, start: Word | None = None) -> NoReturn:
    reader.reject(what, "write those that are needed: GROUPING SETS ((a, b), (a), ())", start)


def _read_element(reader: Reader) -> list[Keys]:
    """One element of GROUP BY or of GROUPING SETS: the sets that it stands for."""
    for name, sets_of in _SHORTHANDS.items():
        if reader.at(name) and reader.word(1).text == "(":
            reader.skip()
            return sets_of(reader, reader.wrapped(lambda: reader.listed(lambda: _read_keys(reader))))
    if reader.take("GROUPING", "SETS"):
        return list(chain.from_iterable(reader.wrapped(lambda: reader.listed(lambda: _read_element(reader)))))
    return [_read_keys(reader)]


def _read_keys(reader: Reader) -> Keys:
    """A key, or several in parentheses, or none."""
    if reader.at("(") and reader.word(1).text == ")":
        reader.skip(2)
        return []
    value = reader.value()
    return list(value.expressions) if isinstance(value, exp.Tuple) else [value]


def _rolled_up(reader: Reader, parts: Sequence[Keys]) -> list[Keys]:
    if len(parts) >= _MOST_SETS:
        _reject_size(reader, f"there are more than {_MOST_SETS} groupings")
    return [list(chain.from_iterable(parts[:count])) for count in range(len(parts), -1, -1)]


def _cube(reader: Reader, parts: Sequence[Keys]) -> list[Keys]:
    if len(parts) > _MOST_IN_CUBE:
        _reject_size(reader, f"CUBE of more than {_MOST_IN_CUBE} keys has too many groupings")
    return [
        list(chain.from_iterable(chosen))
        for count in range(len(parts), -1, -1)
        for chosen in combinations(parts, count)
    ]


_SHORTHANDS: Final[dict[str, Callable[[Reader, Sequence[Keys]], list[Keys]]]] = {"ROLLUP": _rolled_up, "CUBE": _cube}
