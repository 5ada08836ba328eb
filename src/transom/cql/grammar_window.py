"""The grammar of windows and durations: what stands in the brackets behind a stream."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from transom.core.time import months_of, unit_of
from transom.cql import syntax
from transom.cql.reader import Reader, Word

WINDOWS: Final = (
    "write [RANGE 10 SECONDS], [ROWS 10], [PARTITION BY column ROWS 10], [PARTITION BY column SESSION 10 SECONDS], "
    "[NOW] or [RANGE UNBOUNDED]; "
    "RANGE and ROWS may be followed by SLIDE"
)
_DURATIONS: Final = "write a number and a unit, as in 10 SECONDS or INTERVAL '10' SECOND"


def read_window(reader: Reader) -> syntax.WindowClause:
    start = reader.word()
    reader.need("[")
    parts: dict[str, Any] = {}
    while not reader.take("]"):
        word = reader.word()
        key, value = _read_part(reader)
        if key in parts:
            reader.reject(f"the window says {key.upper()} twice", "say it once", word)
        parts[key] = value
        if reader.take(",") and reader.at("]"):
            reader.reject("the window ends with a comma", "remove it, or write SLIDE behind it")
    if not parts:
        reader.reject("the window is empty", WINDOWS, start)
    return reader.spanned(syntax.WindowClause(**parts), start)


def _read_part(reader: Reader) -> tuple[str, Any]:
    if reader.take("PARTITION"):
        reader.need("BY")
        return "partition", reader.listed(lambda: read_column(reader))
    if reader.take("ROWS"):
        return "rows", reader.literal("number", "a number of rows", "write ROWS 10")
    if reader.take("NOW"):
        return "now", True
    if reader.take("SESSION"):
        return "session", read_duration(reader)
    if reader.take("SLIDE"):
        return "slide", read_duration(reader, unit_needed=False)
    if reader.take("UNBOUNDED") or reader.take("RANGE", "UNBOUNDED"):
        return "unbounded", True
    if reader.take("RANGE") or reader.word().kind == "number" or reader.at("INTERVAL"):
        return "range", read_duration(reader)
    reader.reject(f"a window cannot contain {reader.word()}", WINDOWS)


def read_column(reader: Reader) -> exp.Expr:
    first = reader.name("a column name")
    if reader.take("."):
        return exp.Column(this=reader.name("a column name"), table=first)
    return exp.Column(this=first)


def read_duration(reader: Reader, unit_needed: bool = True) -> exp.Expr:
    """`10 SECONDS`, `1.5 min`, or an INTERVAL; without a unit only where a number of rows may stand too."""
    if reader.at("INTERVAL"):
        return read_interval(reader)
    start = reader.word()
    if start.kind == "text" and any(c.isalpha() for c in start.text):  # '10 minutes', perhaps with a sign before it
        reader.skip()
        text = exp.Literal(this=start.text.strip().removeprefix("+"), is_string=True)
        return reader.spanned(syntax.Duration(this=reader.spanned(text, start)), start)
    number = reader.literal("number", "a duration", _DURATIONS)
    unit = _read_unit(reader)
    if unit is None and (unit_needed or reader.word().kind == "name"):
        reader.reject(f"a unit of time is expected, not {reader.word()}", _DURATIONS)
    return reader.spanned(syntax.Duration(this=number, unit=unit), start)


def read_interval(reader: Reader) -> exp.Expr:
    """INTERVAL '10' SECOND, INTERVAL 10 SECOND, INTERVAL '10 seconds'."""
    start = reader.word()
    reader.need("INTERVAL")
    word = reader.word()
    if word.kind not in ("text", "number"):
        reader.reject("an interval is a constant", "write INTERVAL '10' SECOND", start)
    reader.skip()
    amount = reader.spanned(exp.Literal(this=word.text, is_string=word.kind == "text"), word)
    unit = None if any(c.isalpha() for c in word.text) else _read_unit(reader)
    last = _read_unit(reader) if unit is not None and reader.take("TO") else None
    return reader.spanned(syntax.Duration(this=amount, unit=unit, last=last), start)


def read_interval_value(reader: Reader) -> exp.Expr:
    """An interval in an expression: a constant, or INTERVAL (expression) unit."""
    start = reader.word()
    if reader.word(1).text != "(":
        return read_interval(reader)
    reader.need("INTERVAL")
    amount = reader.wrapped(reader.value)
    unit = _read_unit(reader)
    if unit is None:
        reader.reject(f"a unit of time is expected, not {reader.word()}", "write INTERVAL (n) DAY")
    return reader.spanned(syntax.IntervalOf(this=amount, unit=unit), start)


def _read_unit(reader: Reader) -> exp.Identifier | None:
    word: Word = reader.word()
    if word.kind != "name" or (unit_of(word.text) is None and months_of(word.text) is None):
        return None
    return reader.name("a unit")
