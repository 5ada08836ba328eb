"""JSON texts: read with their numbers as they are written and their objects as pairs; written as DuckDB writes them.

>>> found = read('{"a": [1, 2.50, "x\\u00e9"], "a": null}')
>>> written(found)
'{"a":[1,2.5,"xé"],"a":null}'
"""

from __future__ import annotations

import json
import math
from typing import Any, Final


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs: a name may come twice."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def read(text: str) -> Any:
    """Pairs, list, str, Number, bool or None; raises ValueError for what is no JSON, RecursionError for what is deep.

    DuckDB takes a little more, which is no JSON: NaN and Infinity, and a comma behind the last element.
    """
    value = _DECODER.decode(text)
    if "\\u" in text:
        written(value).encode("utf-8")  # raises where one is half a character
    return value


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_number
)


def is_json(text: str) -> bool:
    try:
        read(text)
    except (ValueError, RecursionError):
        return False
    return True


def written(value: Any) -> str:
    """The value as a text without blanks."""
    if isinstance(value, Number):
        return number_text(value)
    if isinstance(value, str):
        return '"' + value.translate(_ESCAPES) + '"'
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{written(name)}:{written(each)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value]


_ESCAPES: Final = {
    **{code: f"\\u{code:04X}" for code in range(0x20)},
    **{ord(character): "\\" + letter for character, letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}


def is_whole(number: Number) -> bool:
    """Whether it is written without a fraction and an exponent."""
    return not any(character in number for character in ".eE")


def in_64_bits(number: Number) -> bool:
    """Whether 64 bits hold it; what they do not hold stays as it is written."""
    return -(1 << 63) <= int(number) < 1 << 64 if is_whole(number) else not math.isinf(float(number))


def number_text(number: Number) -> str:
    if not in_64_bits(number):
        return str(number)
    return str(int(number)) if is_whole(number) else float_text(float(number))


def float_text(number: float) -> str:
    """The shortest digits that give the number back, with an exponent as JavaScript has one.

    >>> [float_text(x) for x in (1e5, -2.5, 1e21, 1e-7, 0.0)]
    ['100000.0', '-2.5', '1e21', '1e-7', '0.0']
    """
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, _, power = repr(abs(number)).partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    point = len(before) + int(power or 0) - (len(before + after) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if not -6 < point <= 21:
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    whole = digits[:point].ljust(point, "0")
    return f"{sign}{whole}.{digits[point:] or '0'}"
