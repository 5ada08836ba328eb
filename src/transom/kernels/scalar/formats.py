"""Moments written and read by a format that is known beforehand: each part of it is one pass over the column."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, TIMESTAMP, VARCHAR
from transom.kernels.scalar.dates import DAY, DAY_NAMES, MONTH_NAMES, beyond_time, named
from transom.kernels.scalar.values import Kernel, Value, as_arrays, failure, first_true, nulled, reject_rows, whole
from transom.plan.expression import Call, Literal
from transom.plan.formats import Piece, split_format

Numbers = npt.NDArray[np.int64]


def _constant(call: Call, position: int) -> str:
    argument = call.arguments[position]
    assert isinstance(argument, Literal)
    return str(argument.value)


# --- written ---------------------------------------------------------------------------------------------------------


def _digits(part: Callable[[pa.Array], pa.Array], width: int) -> Callable[[pa.Array], pa.Array]:
    return lambda moments: pc.utf8_lpad(part(moments).cast(VARCHAR), width, "0")


def _twelve(moments: pa.Array) -> pa.Array:
    hours = pc.hour(moments)
    return pc.add(_remainder(pc.add(hours, whole(11)), 12), whole(1))


def _remainder(numbers: pa.Array, size: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, whole(size)), whole(size)))


def _week_from(first_day: int) -> Callable[[pa.Array], pa.Array]:
    """Number of the week, those before the first Sunday (7) or Monday (1) being in week 0."""
    return lambda moments: pc.divide(
        pc.subtract(pc.add(pc.day_of_year(moments), whole(6)), pc.day_of_week(moments, week_start=first_day)), whole(7)
    )


def _micros(moments: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(pc.millisecond(moments), whole(1000)), pc.microsecond(moments))


_NUMBERS: Final[dict[str, tuple[Callable[[pa.Array], pa.Array], int]]] = {
    "Y": (pc.year, 4),
    "m": (pc.month, 2),
    "d": (pc.day, 2),
    "H": (pc.hour, 2),
    "M": (pc.minute, 2),
    "S": (pc.second, 2),
    "f": (_micros, 6),
    "g": (pc.millisecond, 3),
    "j": (pc.day_of_year, 3),
    "I": (_twelve, 2),
    "y": (lambda moments: _remainder(pc.year(moments), 100), 2),
    "u": (lambda moments: pc.day_of_week(moments, count_from_zero=False), 1),
    "w": (lambda moments: pc.day_of_week(moments, week_start=7), 1),
    "G": (pc.iso_year, 4),
    "V": (pc.iso_week, 2),
    "U": (_week_from(7), 2),
    "W": (_week_from(1), 2),
}
_TEXTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "a": lambda moments: pc.utf8_slice_codeunits(named(DAY_NAMES, pc.day_of_week(moments)), 0, 3),
    "A": lambda moments: named(DAY_NAMES, pc.day_of_week(moments)),
    "b": lambda moments: pc.utf8_slice_codeunits(named(MONTH_NAMES, pc.subtract(pc.month(moments), whole(1))), 0, 3),
    "B": lambda moments: named(MONTH_NAMES, pc.subtract(pc.month(moments), whole(1))),
    "p": lambda moments: pc.if_else(pc.less(pc.hour(moments), whole(12)), pa.scalar("AM"), pa.scalar("PM")),
}


def strftime(call: Call) -> Kernel:
    """strftime(moment, format): the pieces side by side."""
    pieces = [_writer(piece) for piece in split_format(_constant(call, 1))]

    def run(moment: Value, _: Value) -> Value:
        (moments,) = as_arrays((moment,))
        # A format of texts alone is NULL too where the moment is.
        there = pc.if_else(moments.is_valid(), pa.scalar(""), pa.scalar(None, VARCHAR))
        return pc.binary_join_element_wise(there, *(piece(moments) for piece in pieces), "")

    return run


def _writer(piece: Piece) -> Callable[[pa.Array], Value]:
    if not piece.is_part:
        constant = pa.scalar(piece.text, VARCHAR)
        return lambda moments: constant
    if piece.text in _TEXTS:
        return _TEXTS[piece.text]
    part, width = _NUMBERS[piece.text.removeprefix("-")]
    return _digits(part, 1 if piece.text.startswith("-") else width)


# --- read ------------------------------------------------------------------------------------------------------------

_SPACE: Final = r"[ \t\n\v\f\r]"
_WIDTHS: Final = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6}
_BOUNDS: Final = {"m": (1, 12), "d": (1, 31), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59)}


def strptime(call: Call) -> Kernel:
    """strptime(text, format): a regular expression takes the text apart, and the numbers make the moment."""
    pieces = split_format(_constant(call, 1))
    pattern = _pattern(pieces)
    parts = [piece.text for piece in pieces if piece.is_part]
    safe = call.function == "try_strptime"

    def run(text: Value, _: Value) -> Value:
        (texts,) = as_arrays((text,))
        taken = pc.extract_regex(texts, pattern)
        unread = pc.and_(texts.is_valid(), taken.is_null())
        numbers = {part: _number(part, pc.struct_field(taken, [i + 1])) for i, part in enumerate(parts)}
        micros, good = _moment(numbers, len(texts))
        bad = pc.or_(unread, pc.and_(taken.is_valid(), pa.array(~good)))
        if not safe and (row := first_true(bad)) is not None:
            raise failure(call, "it is not written so", (texts,), row)
        moments = pa.array(micros, mask=~np.asarray(taken.is_valid().to_numpy(zero_copy_only=False), bool) | ~good)
        beyond = pc.fill_null(beyond_time(moments, TIMESTAMP), False)
        reject_rows(call, "the result is outside the years 1 to 9999", (texts,), beyond)
        return nulled(moments, beyond).cast(TIMESTAMP)

    return run


def _pattern(pieces: list[Piece]) -> str:
    """Runs of blanks match runs of blanks. A number that another follows at once has all of its digits."""
    pattern = f"(?P<_>^{_SPACE}*"
    for i, piece in enumerate(pieces):
        follower = pieces[i + 1] if i + 1 < len(pieces) else Piece(" ", False)
        glued = follower.text in _WIDTHS if follower.is_part else follower.text[0].isdigit()
        if not piece.is_part:
            pattern += "".join(f"{_SPACE}+" if p.isspace() else re.escape(p) for p in re.findall(r"\s+|\S", piece.text))
        elif piece.text in _WIDTHS:
            width = _WIDTHS[piece.text]
            pattern += f"(?P<p{i}>[0-9]{{{width if glued else 1},{width}}})"
        else:
            names = {"b": [name[:3] for name in MONTH_NAMES], "B": MONTH_NAMES, "p": ("AM", "PM")}[piece.text]
            pattern += f"(?P<p{i}>{'|'.join(map(_any_case, names))})"
    return f"{pattern}{_SPACE}*$)"


def _any_case(name: str) -> str:
    """A pattern for a name in either case; not by (?i), which takes some letters beyond ASCII for the same."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" for letter in name)


def _number(part: str, texts: pa.Array) -> Numbers:
    if part in ("b", "B", "p"):
        first = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, 1 if part == "p" else 3))
        names = pa.array(["a", "p"] if part == "p" else [name[:3].lower() for name in MONTH_NAMES])
        numbers = pc.add(pc.index_in(first, names).cast(BIGINT), whole(0 if part == "p" else 1))
    else:
        filled = pc.utf8_rpad(texts, 6, "0") if part == "f" else texts
        numbers = pc.coalesce(filled, pa.scalar("1")).cast(BIGINT)
    return np.asarray(pc.fill_null(numbers, whole(1)).to_numpy(zero_copy_only=False), np.int64)


def _moment(numbers: dict[str, Numbers], rows: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Microseconds since 1970, and which rows have numbers that are a moment. What is not said is 1900-01-01 00:00."""

    def said(default: int, *names: str) -> Numbers:
        return next((numbers[name] for name in names if name in numbers), np.full(rows, default, np.int64))

    good = np.ones(rows, bool)
    for name, (least, most) in _BOUNDS.items():
        if name in numbers:
            good &= (numbers[name] >= least) & (numbers[name] <= most)
    year = numbers["y"] + np.where(numbers["y"] >= 69, 1900, 2000) if "y" in numbers else said(1900, "Y")
    month, day = np.clip(said(1, "m", "b", "B"), 1, 12), said(1, "d")
    hour = numbers["I"] % 12 + 12 * said(0, "p") if "I" in numbers else said(0, "H")
    months = (year - 1970) * 12 + month - 1
    start = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - start
    good &= day <= length
    seconds = (start + day - 1) * 86_400 + hour * 3600 + said(0, "M") * 60 + said(0, "S")
    return seconds * (DAY // 86_400) + said(0, "f"), good
