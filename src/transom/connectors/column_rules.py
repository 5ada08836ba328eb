"""How a generated column is filled: a rule in words, and the values of any rows by their numbers.

| rule | values | for |
| --- | --- | --- |
| `sequence [first [step]]` | `first`, `first + step`, ..; by default 0, 1, .. | numbers |
| `uniform a b` | evenly from a to b; whole numbers with both ends, others without b | numbers |
| `normal mean deviation` | around the mean, in a bell; decimals and whole numbers are rounded | numbers |
| `choice x y z` | one of these, evenly; one with blanks in it is quoted: `choice "New York" Rome` | all but times |
| `text n` | n lower-case letters | VARCHAR |
| `instant` | the instant of the row, without disorder | TIMESTAMP, DATE |

Behind any rule `null 0.1` makes one value in ten NULL. A column without a rule has `uniform 0 100` (whole numbers),
`uniform 0 1` (other numbers), `choice true false`, `text 8` or `instant`, by its type.

A value depends on the seed, the name of the column and the number of the row alone: so rows can be made from any
number on, in pieces of any size, and are always the same. (Doubles of `normal` may differ in their last digit between
machines, whose logarithms do.)
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.fit import fit
from transom.core.delta import Int64s
from transom.core.errors import OptionError, SourceError
from transom.core.schema import BOOLEAN, DATE, DOUBLE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Column, sql_name

Bits = npt.NDArray[np.uint64]
Fill = Callable[[Int64s, Int64s, int], pa.Array]
"""fill(row numbers, instants, salt): the values of these rows."""

_RULES: Final = "sequence, uniform a b, normal mean deviation, choice x y z, text n or instant"
_LONGEST_TEXT: Final = 10_000
_LETTERS_OF_A_WORD: Final = 13  # 26 to the 13th is below 2 to the 64th


@dataclass(frozen=True)
class ColumnRule:
    """A column and how it is filled; `null` is the share of NULLs."""

    column: Column
    fill: Fill
    null: float = 0.0

    def values(self, rows: Int64s, instants: Int64s, seed: int) -> pa.Array:
        salt = _salt(seed, self.column.name.lower())
        try:
            made = self.fill(rows, instants, salt).cast(self.column.type)
        except pa.ArrowInvalid:
            raise SourceError(
                f"column '{self.column.name}' is {sql_name(self.column.type)} and cannot hold what its rule makes"
                f" of rows {int(rows[0]) + 1} to {int(rows[-1]) + 1}",
                remedy="declare a wider type, or generate fewer rows",
            ) from None
        if not self.null:
            return made
        return pc.if_else(pa.array(_shares(rows, _salt(salt, "null")) < self.null), pa.scalar(None, made.type), made)


def read_rule(column: Column, text: str | None) -> ColumnRule:
    """The rule of a column, or OptionError with what to write instead; None: the rule of its type.

    >>> from transom.core.schema import INTEGER
    >>> rule = read_rule(Column("n", INTEGER), "sequence 10 5")
    >>> rule.values(np.arange(3), np.zeros(3, np.int64), seed=1).to_pylist()
    [10, 15, 20]
    """
    words = _words(column, text if text is not None else _usual(column.type))
    null = 0.0
    if len(words) > 2 and words[-2].lower() == "null":
        null = float(_number(column, words[-1]))
        if not 0 <= null <= 1:
            raise _wrong(column, f"a share of NULLs cannot be {words[-1]}", "write a share from 0 to 1: null 0.1")
        words = words[:-2]
    kind, given = words[0].lower(), words[1:]
    makers = {
        "sequence": _sequence, "uniform": _uniform, "normal": _normal, "choice": _choice, "text": _text,
        "instant": _instant,
    }  # fmt: skip
    if kind not in makers:
        raise _wrong(column, f"there is no rule '{words[0]}'", f"write {_RULES}")
    return ColumnRule(column, makers[kind](column, given), null)


# --- randomness that can be had at any place -------------------------------------------------------------------------


def _salt(seed: int, word: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed} {word}".encode(), digest_size=8).digest())


def random_bits(rows: Int64s, salt: int) -> Bits:
    """64 bits for each row number: SplitMix64 (Steele, Lea, Flood 2014), which has no state but its counter."""
    with np.errstate(over="ignore"):
        z = np.uint64(salt) + (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _shares(rows: Int64s, salt: int) -> npt.NDArray[np.float64]:
    """Numbers from 0 up to 1, without 1."""
    return (random_bits(rows, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def random_below(rows: Int64s, salt: int, bound: int) -> Int64s:
    """Whole numbers from 0 up to `bound`, without it."""
    return (random_bits(rows, salt) % np.uint64(bound)).astype(np.int64)


# --- the rules -------------------------------------------------------------------------------------------------------


_MOMENTS: Final = (TIMESTAMP, TIMESTAMPTZ, DATE)


def _usual(type_: pa.DataType) -> str:
    if type_ in _MOMENTS:
        return "instant"
    if type_ == VARCHAR:
        return "text 8"
    if type_ == BOOLEAN:
        return "choice true false"
    if pa.types.is_integer(type_):
        return "uniform 0 100"
    return "uniform 0 1"


def _sequence(column: Column, words: Sequence[str]) -> Fill:
    _need_number(column, "sequence")
    if len(words) > 2:
        raise _wrong(column, "sequence takes a first number and a step", "write sequence 0 1")
    first, step = (_whole(column, word) for word in [*words, *("0", "1")[len(words) :]])

    def fill(rows: Int64s, instants: Int64s, salt: int) -> pa.Array:
        ends = (first + step * int(rows[0]), first + step * int(rows[-1])) if len(rows) else (0, 0)
        if not all(-(1 << 63) <= end < 1 << 63 for end in ends):
            raise pa.ArrowInvalid("beyond 64 bits")
        return _as_type(pa.array(first + step * rows, pa.int64()), column.type)

    return fill


def _uniform(column: Column, words: Sequence[str]) -> Fill:
    _need_number(column, "uniform")
    if len(words) != 2:
        raise _wrong(column, "uniform takes two numbers", "write uniform 0 100")
    low, high = (_number(column, word) for word in words)
    if low > high:
        raise _wrong(column, f"uniform {words[0]} {words[1]} has no numbers in it", f"write uniform {high} {low}")
    if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        scale = column.type.scale if pa.types.is_decimal(column.type) else 0
        first, last = math.ceil(low * 10**scale), math.floor(high * 10**scale) - bool(scale)
        if not -(1 << 62) <= first <= last < 1 << 62:
            raise _wrong(column, f"uniform {words[0]} {words[1]} has no {sql_name(column.type)} in it", "widen it")
        return lambda rows, instants, salt: _unscaled(first + random_below(rows, salt, last - first + 1), column.type)
    return lambda rows, instants, salt: pa.array(float(low) + _shares(rows, salt) * float(high - low), DOUBLE)


def _normal(column: Column, words: Sequence[str]) -> Fill:
    _need_number(column, "normal")
    if len(words) != 2 or _number(column, words[1]) < 0:
        raise _wrong(column, "normal takes a mean and a deviation from 0 on", "write normal 20 2.5")
    mean, deviation = (float(_number(column, word)) for word in words)

    def fill(rows: Int64s, instants: Int64s, salt: int) -> pa.Array:
        # Box and Muller (1958): two even draws make one of a bell.
        distance = np.sqrt(-2.0 * np.log(1.0 - _shares(rows, salt)))
        drawn = mean + deviation * distance * np.cos(2.0 * np.pi * _shares(rows, _salt(salt, "angle")))
        if pa.types.is_floating(column.type):
            return pa.array(drawn, DOUBLE)
        scale = column.type.scale if pa.types.is_decimal(column.type) else 0
        return _unscaled(np.rint(drawn * 10**scale).astype(np.int64), column.type)

    return fill


def _choice(column: Column, words: Sequence[str]) -> Fill:
    if not words:
        raise _wrong(column, "choice takes the values to choose from", "write choice red green blue")
    fitted = fit(pa.array(words, VARCHAR), column.type)
    if fitted.bad:
        raise _wrong(
            column, f"choice has a value that is no {sql_name(column.type)}", f"write {sql_name(column.type)} values"
        )
    values = fitted.values
    return lambda rows, instants, salt: values.take(pa.array(random_below(rows, salt, len(values))))


def _text(column: Column, words: Sequence[str]) -> Fill:
    if column.type != VARCHAR:
        raise _wrong(column, f"text is no {sql_name(column.type)}", f"write {_RULES}")
    length = _whole(column, words[0]) if len(words) == 1 else 0
    if not 0 < length <= _LONGEST_TEXT:
        raise _wrong(column, f"text takes a length from 1 to {_LONGEST_TEXT}", "write text 8")

    def fill(rows: Int64s, instants: Int64s, salt: int) -> pa.Array:
        letters = np.empty((len(rows), length), np.uint8)
        for at in range(length):
            if at % _LETTERS_OF_A_WORD == 0:
                left = random_bits(rows, _salt(salt, f"letters {at}"))
            letters[:, at] = ord("a") + (left % np.uint64(26)).astype(np.uint8)
            left = left // np.uint64(26)
        ends = pa.array(np.arange(len(rows) + 1, dtype=np.int64) * length, pa.int64())
        whole = [None, ends.buffers()[1], pa.py_buffer(letters.tobytes())]
        return pa.Array.from_buffers(pa.large_string(), len(rows), whole)

    return fill


def _instant(column: Column, words: Sequence[str]) -> Fill:
    if column.type not in _MOMENTS or words:
        raise _wrong(column, "instant stands alone, for a TIMESTAMP or a DATE", f"write {_RULES}")
    day = 86_400_000_000
    if column.type == DATE:
        return lambda rows, instants, salt: pa.array((instants // day).astype(np.int32), pa.int32())
    return lambda rows, instants, salt: pa.array(instants, pa.int64())


def _as_type(whole: pa.Array, type_: pa.DataType) -> pa.Array:
    """Whole numbers in a type of which they may be too great: it is checked, and a floating type takes the nearest."""
    return whole.cast(pa.decimal128(19, 0)) if pa.types.is_decimal(type_) else pc.cast(whole, type_, safe=_safe(type_))


def _safe(type_: pa.DataType) -> bool:
    return not pa.types.is_floating(type_)


def _unscaled(numbers: Int64s, type_: pa.DataType) -> pa.Array:
    """Whole numbers as they are, or as the digits of a DECIMAL."""
    if not pa.types.is_decimal(type_):
        return pa.array(numbers, pa.int64())
    words = np.empty((len(numbers), 2), np.int64)  # 128 bits: the low word, then the sign carried on
    words[:, 0], words[:, 1] = numbers, numbers >> 63
    limit = 10**type_.precision
    if len(numbers) and max(abs(int(numbers.min())), abs(int(numbers.max()))) >= limit:
        raise pa.ArrowInvalid("beyond the precision")
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(words.tobytes())])


# --- words -----------------------------------------------------------------------------------------------------------


def _words(column: Column, text: str) -> list[str]:
    try:
        words = shlex.split(text, posix=True)
    except ValueError:
        words = []
    if not words:
        raise _wrong(column, f"'{text}' is no rule", f"write {_RULES}")
    return words


def _need_number(column: Column, rule: str) -> None:
    type_ = column.type
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)):
        raise _wrong(column, f"{rule} makes numbers, and the column is {sql_name(type_)}", f"write {_RULES}")


def _number(column: Column, word: str) -> Fraction:
    try:
        value = Decimal(word)
        if value.is_finite() and abs(value) < Decimal(10) ** 30 and len(value.as_tuple().digits) < 40:
            return Fraction(value)
    except InvalidOperation:
        pass
    raise _wrong(column, f"'{word}' is no number", "write it as 10 or 0.5")


def _whole(column: Column, word: str) -> int:
    value = _number(column, word)
    if value.denominator != 1 or abs(value) >= 1 << 62:
        raise _wrong(column, f"'{word}' is no whole number", "write it as 10")
    return int(value)


def _wrong(column: Column, what: str, remedy: str) -> Any:
    return OptionError(f"the rule of column '{column.name}' is wrong: {what}", remedy=remedy)
