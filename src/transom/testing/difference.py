"""How two answers differ, for people."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from transom.testing.instant_text import Times
from transom.testing.written import Row, show_row

if TYPE_CHECKING:
    from transom.testing.answer import Answer

_MOST_ROWS: Final = 40
_MOST_INSTANTS: Final = 8


def difference(expected: Answer, given: Answer, *, digits: int | None = None) -> str | None:
    """None when two answers mean the same; otherwise the first instant at which they do not, and how.

    Relations are compared by their snapshots at every instant, streams by the rows of every instant. With `digits`,
    floating numbers are compared to so many significant digits.

    >>> from transom.testing import run_query
    >>> stream = "CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
    >>> rows = {"s": "1 5 \\n 2 7 \\n 3 7"}
    >>> one = run_query(stream + "SELECT DISTINCT a FROM s [RANGE 2 SECONDS]", rows)
    >>> other = run_query(stream + "SELECT a FROM s [RANGE 2 SECONDS] GROUP BY a", rows)
    >>> print(difference(one, other))
    None
    >>> print(difference(one, run_query(stream + "SELECT a FROM s [RANGE 2 SECONDS]", rows)))
    the answer is not as expected at 3:
        7
      + 7  (there, not expected)
    the answer is
      1 + 5
      2 + 7
      3 - 5
      3 + 7
      4 - 7
      5 - 7
    """
    if expected.stream != given.stream:
        kinds = {True: "a stream", False: "a relation"}
        return f"the answer is {kinds[given.stream]}, and {kinds[expected.stream]} is expected"
    if len(expected.schema) != len(given.schema):
        return f"the answer has the columns {', '.join(given.columns)}, and {', '.join(expected.columns)} are expected"
    wrong = _wrong_instants(expected, given, digits)
    if not wrong:
        return None
    first, *later = wrong
    differs = compare_snapshot(first, expected.bag(first), given.bag(first), given.times, digits)
    lines = [f"the answer is not as expected{differs}"]
    if later:
        shown = ", ".join(given.times.show(instant) for instant in later[:_MOST_INSTANTS])
        more = ", .." if len(later) > _MOST_INSTANTS else ""
        lines.append(f"and at {len(later)} later instant{'s' * (len(later) > 1)}: {shown}{more}")
    return "\n".join(lines + _whole(given))


def compare_snapshot(
    instant: int, expected: Counter[Row], given: Counter[Row], times: Times, digits: int | None
) -> str | None:
    """The rows that both have, those that are missing (-) and those that are too many (+); None if there are none."""
    ours, theirs = rounded(expected, digits), rounded(given, digits)
    if ours == theirs:
        return None
    lines = [
        *((f"    {text}", "") for text in _texts(ours & theirs, times)),
        *((f"  - {text}", "(expected, not there)") for text in _texts(ours - theirs, times)),
        *((f"  + {text}", "(there, not expected)") for text in _texts(theirs - ours, times)),
    ]
    width = max(len(text) for text, _ in lines)
    return "\n".join([f" at {times.show(instant)}:", *(f"{text:{width}}  {note}".rstrip() for text, note in lines)])


def rounded(bag: Counter[Row], digits: int | None) -> Counter[Row]:
    """
    >>> rounded(Counter({(1.23456, "a"): 2, (1.2341, "a"): 1}), 3)
    Counter({(1.23, 'a'): 3})
    """
    if digits is None:
        return bag
    equal: Counter[Row] = Counter()
    for row, n in bag.items():
        equal[tuple(_rounded_value(value, digits) for value in row)] += n
    return Counter({row: n for row, n in equal.items() if n})


def _rounded_value(value: object, digits: int) -> object:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{digits - 1}e}") + 0.0
    return value


def _wrong_instants(expected: Answer, given: Answer, digits: int | None) -> list[int]:
    """Snapshots are equal as long as what every instant adds and takes away is."""
    wrong = []
    apart: Counter[Row] = Counter()
    for instant in sorted({*expected.net, *given.net}):
        if expected.stream:
            apart = Counter()
        apart.update(rounded(expected.net.get(instant, Counter()), digits))
        apart.subtract(rounded(given.net.get(instant, Counter()), digits))
        if any(apart.values()):
            wrong.append(instant)
    return wrong


def _texts(bag: Counter[Row], times: Times) -> list[str]:
    shown = [show_row(row, times) or "(a row without columns)" for row in bag.elements()]
    more = len(shown) - _MOST_ROWS
    return shown if more <= 0 else [*shown[:_MOST_ROWS], f".. and {more} more"]


def _whole(given: Answer) -> list[str]:
    lines = str(given).splitlines()
    if not lines:
        return ["the answer is empty"]
    more = len(lines) - _MOST_ROWS
    shown = [f"  {line}" for line in lines[:_MOST_ROWS]]
    return ["the answer is", *shown] if more <= 0 else ["the answer begins with", *shown, f"  .. and {more} more lines"]
