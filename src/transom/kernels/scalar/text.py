"""Functions of texts. Characters are code points throughout, as in DuckDB.

Most are one Arrow kernel when the arguments beside the text are constants, as they nearly always are; the others go
the slow road of `by_row`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, BOOLEAN, INTEGER, VARCHAR
from transom.kernels.scalar.values import (
    FALSE,
    Kernel,
    Value,
    as_array,
    as_arrays,
    by_row,
    failure,
    is_true,
    reject_rows,
    whole,
)
from transom.plan.expression import Call, Literal

MOST_BYTES: Final = 2**31 - 1
"""What the texts of one batch may come to: Arrow's offsets are 32 bits wide."""

EMPTY: Final = pa.scalar("")

_CUT: Final = 2**32
"""DuckDB's limit for where substring starts and how many characters it takes."""

SPACES: Final = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What trim removes: the space separators of Unicode; tabs and line ends stay."""

# Letters that Unicode 16 and 17 gave another case: Arrow knows it already, DuckDB does not yet and leaves them alone.
_UNCASED: Final = (
    "([\u019b\u0264\u0277\u027c\u1c89\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dd\ua7e2\uab4b\uab4c\uab6c\uab6d"
    "\U00010d50-\U00010d65\U00010d70-\U00010d85\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3\U0001df40-\U0001df7f])"
)


def upper(text: Value) -> Value:
    return _change_case(text, pc.utf8_upper)


def lower(text: Value) -> Value:
    return _change_case(text, pc.utf8_lower)


def _change_case(text: Value, change: Callable[[Value], Value]) -> Value:
    plain = change(text)
    column = as_array(text, 1)
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        return plain
    uncased = pc.match_substring_regex(column, _UNCASED)
    if uncased.true_count == 0:
        return plain

    def piecewise(value: str) -> str:
        pieces = re.split(_UNCASED, value)
        pieces[::2] = change(pa.array(pieces[::2], VARCHAR)).to_pylist()
        return "".join(pieces)

    if isinstance(text, pa.Scalar):
        return pa.scalar(piecewise(text.as_py()), VARCHAR)
    return pc.if_else(is_true(uncased), by_row(piecewise, (text,), VARCHAR), plain)


def ascii(text: Value) -> Value:
    return by_row(lambda t: ord(t[0]) if t else 0, (text,), INTEGER)


def length(text: Value) -> Value:
    return pc.utf8_length(text).cast(BIGINT)


def bytes_of(text: Value) -> Value:
    """Number of bytes in UTF-8."""
    return pc.binary_length(text).cast(BIGINT)


def translate(text: Value, letters: Value, others: Value) -> Value:
    """Each of the letters becomes that at its place among the others, or nothing where there is none."""
    return by_row(_translated, (text, letters, others), VARCHAR)


def _translated(text: str, letters: str, others: str) -> str:
    places = {letter: at for at, letter in reversed(list(enumerate(letters)))}
    return "".join(letter if letter not in places else others[places[letter] :][:1] for letter in text)


# --- parts of a text -------------------------------------------------------------------------------------------------


def substring(call: Call) -> Kernel:
    checked = not cut_is_safe(call)

    def run(text: Value, start: Value, count: Value | None = None) -> Value:
        if checked:
            _check_cut(call, (text, start) if count is None else (text, start, count))
        if isinstance(start, pa.Scalar) and isinstance(count, pa.Scalar | None):
            first, many = start.as_py(), None if count is None else count.as_py()
            if first is None or (count is not None and many is None):
                return pa.scalar(None, VARCHAR)
            if many is None or many >= 0:
                return _slice_from(text, first, many)
        values = (text, start) if count is None else (text, start, count)
        return by_row(_substring, values, VARCHAR)

    return run


def cut_is_safe(call: Call) -> bool:
    """Whether the start and the count of substring or left are constants within DuckDB's limit."""
    return all(
        isinstance(number, Literal) and (number.value is None or -_CUT <= number.value < _CUT)
        for number in call.arguments[1:]
    )


def _check_cut(call: Call, values: tuple[Value, ...], least: int = -_CUT) -> None:
    """Fail where a text cannot be cut at a number; of a text that is NULL nothing is cut, so nothing fails."""
    text, *numbers = as_arrays(values)
    there = reduce(pc.and_, [pc.is_valid(column) for column in (text, *numbers)])
    for column in numbers:
        bad = pc.or_(pc.greater_equal(column, whole(_CUT)), pc.less(column, whole(least)))
        reject_rows(call, "a start or count is beyond 4294967295", (column,), pc.and_(bad, there))


def _slice_from(text: Value, first: int, many: int | None) -> Value:
    if first >= 0:
        # Position 0 is the one before the first character: it counts, and is empty.
        end = None if many is None else max(first - 1 + many, 0)
        return _slice(text, max(first - 1, 0), end)
    return _slice(text, first, None if many is None or first + many >= 0 else first + many)


def _slice(text: Value, start: int, stop: int | None) -> Value:
    bounds = [max(min(bound, MOST_BYTES), -MOST_BYTES) for bound in (start, stop) if bound is not None]
    return pc.utf8_slice_codeunits(text, *bounds)


def _substring(text: str, start: int, count: int | None = None) -> str:
    begin = start - 1 if start >= 0 else len(text) + start
    if count is None:
        return text[max(begin, 0) :]
    begin, end = (begin, begin + count) if count >= 0 else (begin + count, begin)
    return text[max(begin, 0) : max(end, 0)]


def left(call: Call) -> Kernel:
    checked = not cut_is_safe(call)

    def run(text: Value, count: Value) -> Value:
        if checked:
            _check_cut(call, (text, count), least=-(2**63))
        if isinstance(count, pa.Scalar) and count.is_valid:
            return _slice(text, 0, count.as_py())
        return by_row(lambda t, n: t[:n], (text, count), VARCHAR)

    return run


def right(text: Value, count: Value) -> Value:
    if isinstance(count, pa.Scalar) and count.is_valid:
        return _slice(text, -count.as_py(), None) if count.as_py() else _slice(text, 0, 0)
    return by_row(lambda t, n: t[-n:] if n else "", (text, count), VARCHAR)


def split_part(text: Value, separator: Value, index: Value) -> Value:
    if isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar) and separator.as_py():
        at = index.as_py()
        if at is not None and 0 < at < 2**31 - 1:
            pieces = pc.split_pattern(text, separator.as_py())
            return pc.binary_join(pc.list_slice(pieces, at - 1, at), "")
    return by_row(_split_part, (text, separator, index), VARCHAR)


def _split_part(text: str, separator: str, index: int) -> str:
    pieces = text.split(separator) if separator else list(text)
    at = index - 1 if index > 0 else len(pieces) + index
    return pieces[at] if index and 0 <= at < len(pieces) else ""


def split_index(text: Value, separator: Value, index: Value) -> Value:
    """A part of a text, as in Flink: counted from 0, and NULL where there is no such part."""
    if isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar) and separator.as_py():
        at = index.as_py()
        if at is not None and 0 <= at < 2**31 - 1:
            pieces = pc.split_pattern(text, separator.as_py())
            part = pc.binary_join(pc.list_slice(pieces, at, at + 1), "")
            return pc.if_else(pc.greater(pc.list_value_length(pieces), at), part, pa.scalar(None, VARCHAR))
    return by_row(_split_index, (text, separator, index), VARCHAR)


def _split_index(text: str, separator: str, index: int) -> str | None:
    parts = pieces(text, separator)
    return parts[index] if 0 <= index < len(parts) else None


def pieces(text: str, separator: str | None) -> list[str]:
    """What is between separators; nothing separates where it is NULL, and all characters where it is empty."""
    if separator is None:
        return [text]
    return text.split(separator) if separator else list(text) or [text]


# --- changed texts ---------------------------------------------------------------------------------------------------


def trim(call: Call) -> Kernel:
    kernel, strip = {
        "trim": (pc.utf8_trim, str.strip),
        "ltrim": (pc.utf8_ltrim, str.lstrip),
        "rtrim": (pc.utf8_rtrim, str.rstrip),
    }[call.function]

    def run(text: Value, characters: Value | None = None) -> Value:
        if characters is None:
            return kernel(text, SPACES)
        if isinstance(characters, pa.Scalar) and characters.as_py():
            return kernel(text, characters.as_py())
        return by_row(lambda t, c: strip(t, c) if c else t, (text, characters), VARCHAR)

    return run


def replace(text: Value, old: Value, new: Value) -> Value:
    if isinstance(old, pa.Scalar) and isinstance(new, pa.Scalar) and old.as_py() and new.is_valid:
        return pc.replace_substring(text, old.as_py(), new.as_py())
    return by_row(lambda t, o, n: t.replace(o, n) if o else t, (text, old, new), VARCHAR)


def concat(call: Call) -> Kernel:
    """|| is NULL when one part is; concat() leaves NULLs out."""
    if call.function == "||":
        return lambda *values: pc.binary_join_element_wise(*values, "")
    # Not null_handling="skip", which loses the rows that have nothing but NULLs.
    return lambda *values: pc.binary_join_element_wise(*(pc.coalesce(value, EMPTY) for value in values), "")


def concat_ws(separator: Value, *values: Value) -> Value:
    """NULLs are left out, with their separators; without a separator it is NULL."""
    glue, *columns = as_arrays((separator, *values))
    text = pc.if_else(glue.is_valid(), EMPTY, pa.scalar(None, VARCHAR))
    begun = pa.repeat(FALSE, len(glue))
    for column in columns:
        there = column.is_valid()
        before = pc.if_else(pc.and_(begun, there), glue, pc.if_else(glue.is_valid(), EMPTY, glue))
        text = pc.binary_join_element_wise(text, before, pc.coalesce(column, EMPTY), "")
        begun = pc.or_(begun, there)
    return text


def digest(call: Call) -> Kernel:
    """md5, sha1 and sha256 of the UTF-8 bytes, in small hexadecimal digits."""
    name = call.function

    def run(text: Value) -> Value:
        return by_row(lambda t: hashlib.new(name, t.encode(), usedforsecurity=False).hexdigest(), (text,), VARCHAR)

    return run


def repeat(call: Call) -> Kernel:
    def run(text: Value, count: Value) -> Value:
        texts, counts = as_arrays((text, count))
        times = pc.max_element_wise(counts, whole(0), skip_nulls=False)
        bytes_ = pc.binary_length(texts).cast(pa.float64())
        size = pc.multiply(bytes_, times.cast(pa.float64(), safe=False))
        if (pc.sum(size).as_py() or 0) > MOST_BYTES:
            row = pc.index(size, pc.max(size)).as_py()
            raise failure(call, "the result is longer than 2 GiB", (count,), row)
        return pc.binary_repeat(texts, pc.if_else(pc.equal(bytes_, pa.scalar(0.0)), whole(0), times))

    return run


def pad(call: Call) -> Kernel:
    at_start = call.function == "lpad"

    def run(text: Value, width: Value, fill: Value) -> Value:
        texts, widths, fills = as_arrays((text, width, fill))
        short = pc.less(pc.utf8_length(texts), widths)
        empty = pc.and_(short, pc.equal(fills, EMPTY))
        reject_rows(call, "there is nothing to fill it with", (text, width, fill), empty)
        wide = pc.sum(pc.if_else(short, widths.cast(BIGINT), whole(0))).as_py() or 0
        if wide > MOST_BYTES // 4:
            raise failure(call, "the result is too long", (width,), pc.index(widths, pc.max(widths)).as_py())
        return by_row(padded, (text, width, fill), VARCHAR)

    def padded(text: str, width: int, fill: str) -> str:
        missing = width - len(text)
        if missing <= 0:
            return text[: max(width, 0)]
        filling = (fill * (missing // len(fill) + 1))[:missing]
        return filling + text if at_start else text + filling

    return run


# --- finding ---------------------------------------------------------------------------------------------------------


def position(text: Value, sought: Value) -> Value:
    """Where a part begins, from 1; Arrow counts bytes, which is the same for ASCII only."""
    if isinstance(sought, pa.Scalar) and sought.is_valid and pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return pc.add(pc.find_substring(text, sought.as_py()).cast(BIGINT), whole(1))
    return by_row(lambda t, s: t.find(s) + 1, (text, sought), BIGINT)


def contains(call: Call) -> Kernel:
    kernel, find = {
        "contains": (pc.match_substring, lambda text, part: part in text),
        "starts_with": (pc.starts_with, str.startswith),
        "ends_with": (pc.ends_with, str.endswith),
    }[call.function]

    def run(text: Value, part: Value) -> Value:
        if isinstance(part, pa.Scalar) and part.is_valid:
            return kernel(text, part.as_py())
        return by_row(find, (text, part), BOOLEAN)

    return run
