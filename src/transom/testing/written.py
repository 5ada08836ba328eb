"""Rows as text: words on lines, read by the types of their columns. Errors point to the word that is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from transom.connectors.fit import fit
from transom.connectors.row_text import value_text
from transom.core.errors import SourceError, Span
from transom.core.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    JSON,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Column,
    Schema,
    is_nested,
    sql_name,
)
from transom.core.time import from_datetime, to_datetime
from transom.testing.instant_text import EXAMPLES, Times

Row = tuple[Any, ...]

NAN: Final = float("nan")
"""The one NaN of all rows: tuples look at identity before equality, so rows with this very object are equal."""

_WORD: Final = re.compile(
    r"(?P<quoted>'(?:[^']|'')*')(?=[\s;]|\Z)|(?P<end>\n)|#[^\n]*|(?P<bare>;|[^\s;']+)|(?P<wrong>')"
)
_BARE: Final = re.compile(r"[^\s;'#][^\s;']*")
_NO_VALUE: Final = "NULL"


@dataclass(frozen=True)
class WrittenWord:
    text: str
    span: Span
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        return self.text == _NO_VALUE and not self.quoted

    @property
    def value(self) -> str:
        return self.text[1:-1].replace("''", "'") if self.quoted else self.text


@dataclass(frozen=True)
class WrittenRows:
    """A text of rows; `whose` says in messages what it is."""

    text: str
    whose: str
    times: Times

    def lines(self) -> Iterator[list[WrittenWord]]:
        """The words of each line that has some.

        >>> [[word.text for word in line] for line in WrittenRows("1 a 'b c'; # remark\\n\\n2 d", "", Times()).lines()]
        [['1', 'a', "'b c'", ';'], ['2', 'd']]
        """
        line: list[WrittenWord] = []
        for word_match in _WORD.finditer(self.text):
            if word_match["end"]:
                if line:
                    yield line
                line = []
            elif word_match["wrong"]:
                raise self.wrong(
                    WrittenWord("'", self._span(word_match.start(), 1)),
                    "this quote has no partner",
                    "write 'it''s' for it's",
                )
            elif word_match["quoted"] or word_match["bare"]:
                word = WrittenWord(
                    word_match[0], self._span(word_match.start(), len(word_match[0])), word_match["quoted"] is not None
                )
                line.append(word)
        if line:
            yield line

    def wrong(self, word: WrittenWord, what: str, remedy: str) -> SourceError:
        return SourceError(f"{what}, in {self.whose}", remedy=remedy, span=word.span, text=self.text)

    def instant(self, word: WrittenWord) -> int:
        instant = None if word.quoted else self.times.read(word.text)
        if instant is None:
            raise self.wrong(word, f"{word.text} is no time", EXAMPLES)
        return instant

    def sign(self, line: list[WrittenWord], at: int) -> int:
        if len(line) <= at or line[at].quoted or line[at].text not in ("+", "-"):
            word = line[min(at, len(line) - 1)]
            raise self.wrong(word, "a change has a '+' or a '-' behind its time", "write: time + row, or time - row")
        return 1 if line[at].text == "+" else -1

    def row(self, line: list[WrittenWord], words: list[WrittenWord], schema: Schema) -> Row:
        """Values for these columns. `words` is the part of the line that they stand in."""
        if len(words) != len(schema):
            columns = ", ".join(schema.names) or "nothing"
            last = words[-1] if words else line[-1]
            what = f"{len(words)} value{'s' * (len(words) != 1)} where {len(schema)} should be"
            raise self.wrong(last, what, f"write a value for each of: {columns}")
        return tuple(self.value(word, column) for word, column in zip(words, schema, strict=True))

    def value(self, word: WrittenWord, column: Column) -> Any:
        if word.is_null:
            return None
        try:
            return frozen(pa.scalar(self._parsed(word, column.type), column.type).as_py())
        except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
            raise self.wrong(
                word, f"{word.text} is no {sql_name(column.type)} for '{column.name}'", _remedy(column.type)
            ) from None

    def _parsed(self, word: WrittenWord, type_: pa.DataType) -> Any:
        """
        >>> text = WrittenRows("", "a text", Times())
        >>> text.value(WrittenWord("1.50", Span(1, 1)), Column("price", pa.decimal128(5, 2)))
        Decimal('1.50')
        >>> text.value(WrittenWord("1", Span(1, 1)), Column("open", pa.bool_()))
        Traceback (most recent call last):
        transom.core.errors.SourceError: line 1, column 1: 1 is no BOOLEAN for 'open', in a text
          write true, false or NULL
        """
        if type_ in (VARCHAR, JSON):
            return word.value
        if is_nested(type_):
            fitted = fit(pa.array([word.value]), type_)
            if fitted.bad:
                raise ValueError
            return fitted.values[0].as_py()
        if type_ == DURATION:
            fitted = fit(pa.array([word.value]), type_)
            if fitted.bad:
                raise ValueError
            return fitted.values[0].as_py()
        if word.quoted:
            raise ValueError
        if type_ == BOOLEAN:
            if word.text.lower() not in ("true", "false"):
                raise ValueError
            return word.text.lower() == "true"
        if type_ in (TIMESTAMP, TIMESTAMPTZ):
            instant = self.times.read(word.text)
            if instant is None:
                raise ValueError
            return to_datetime(instant) if type_ == TIMESTAMP else to_datetime(instant).replace(tzinfo=UTC)
        if type_ == DATE:
            return date.fromisoformat(word.text)
        if pa.types.is_floating(type_):
            return float(word.text)
        return Decimal(word.text) if pa.types.is_decimal(type_) else int(word.text)

    def _span(self, offset: int, length: int) -> Span:
        line = self.text.count("\n", 0, offset) + 1
        return Span(line, offset - self.text.rfind("\n", 0, offset), length)


class FrozenStruct(dict[str, Any]):
    """The fields of a struct; rows are counted, so that they must have a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def frozen(value: Any) -> Any:
    """The value as rows hold it: the one NaN, arrays as tuples."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return FrozenStruct({name: frozen(each) for name, each in value.items()})
    return NAN if isinstance(value, float) and math.isnan(value) else value


def show_row(row: Row, times: Times) -> str:
    """A row as it would be read.

    >>> show_row((1, None, "a b", "", 2.5, True, Decimal("1.50"), date(2024, 5, 1)), Times())
    "1 NULL 'a b' '' 2.5 true 1.50 2024-05-01"
    """
    return " ".join(_show_value(value, times) for value in row)


def _show_value(value: Any, times: Times) -> str:
    match value:
        case None:
            return _NO_VALUE
        case tuple() | dict():
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
            return text if _BARE.fullmatch(text) else "'" + text.replace("'", "''") + "'"
        case bool():
            return "true" if value else "false"
        case str():
            bare = _BARE.fullmatch(value) and value != _NO_VALUE
            return value if bare else "'" + value.replace("'", "''") + "'"
        case datetime():
            return times.show(from_datetime(value))
        case timedelta():
            text = str(value_text(pa.array([value], DURATION))[0])
            return text if _BARE.fullmatch(text) else f"'{text}'"
        case Decimal():
            return f"{value:f}"
    return str(value)


def _remedy(type_: pa.DataType) -> str:
    if type_ == BOOLEAN:
        return "write true, false or NULL"
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        return EXAMPLES
    if is_nested(type_):
        return "write it as JSON without spaces, or in 'quotes': [1,null] or {\"a\":1}"
    if type_ == DURATION:
        return "write an interval such as 01:30:00 or '2 days', or NULL"
    if type_ == DATE:
        return "write a date such as 2024-05-01, or NULL"
    return "write a number that fits, or NULL" if type_ != VARCHAR else "write a text, or NULL"
