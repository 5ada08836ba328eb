"""Comparison and choice among values: = < .. IN, IS NOT DISTINCT FROM, greatest and least.

Numbers are in one total order, as in DuckDB: NaN equals NaN and is greater than everything else, and -0.0 equals 0.0.
Arrow follows IEEE, where NaN compares with nothing, so floats get a correction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import isnan
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import held_type
from transom.kernels.scalar.values import TRUE, UNKNOWN, Kernel, Value, is_true, valid_like
from transom.plan.expression import Call, Literal
from transom.plan.typing_rules import is_float

_PLAIN: Final[dict[str, Kernel]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def comparison(call: Call) -> Kernel:
    """The kernel of a comparison; floats are corrected only on the sides that may hold NaN."""
    if not is_float(call.arguments[0].type):
        return _PLAIN[call.function]
    return _float_comparison(call.function)


def _float_comparison(name: str) -> Kernel:
    plain = _PLAIN["=" if name == "<>" else name]

    def run(a: Value, b: Value) -> Value:
        result = plain(a, b)
        a_nan, b_nan = nans(a), nans(b)
        if a_nan is not None or b_nan is not None:
            result = _correct(name, result, a_nan, b_nan)
        return pc.invert(result) if name == "<>" else result

    return run


def nans(value: Value) -> Value | None:
    """Which values are NaN, None when none is."""
    if isinstance(value, pa.Scalar):
        number = value.as_py()
        return TRUE if number is not None and isnan(number) else None
    flags = pc.is_nan(value)
    return flags if flags.true_count else None


def _correct(name: str, plain: Value, a_nan: Value | None, b_nan: Value | None) -> Value:
    """With NaN on a side, IEEE says false (`plain`); add the pairs that are true in the total order."""
    if name in ("=", "<>"):
        return plain if a_nan is None or b_nan is None else pc.or_(plain, pc.and_(a_nan, b_nan))
    greater = name in (">", ">=")
    high, low = (a_nan, b_nan) if greater else (b_nan, a_nan)
    if high is None:
        return plain
    if name in ("<", ">") and low is not None:
        high = pc.and_not(high, low)
    return pc.or_(plain, high)


def is_not_distinct(call: Call) -> Kernel:
    equal = comparison(Call("=", call.arguments, call.type))

    def run(a: Value, b: Value) -> Value:
        both_null = pc.and_(pc.is_null(a), pc.is_null(b))
        return pc.or_(is_true(equal(a, b)), both_null)

    return run


def is_in(call: Call) -> Kernel:
    """IN: true for a match; NULL where nothing matches but something is NULL.

    A list of constants is one look-up, except for floats, of which Arrow's tables tell -0.0 from 0.0.
    """
    operand, *members = call.arguments
    if is_float(operand.type) or not all(isinstance(member, Literal) for member in members):
        equal = comparison(Call("=", call.arguments[:2], call.type))
        return lambda value, *others: reduce(pc.or_kleene, [equal(value, other) for other in others])
    items = [member.value for member in members if isinstance(member, Literal)]
    candidates = pa.array([item for item in items if item is not None], held_type(operand.type))
    has_null = len(candidates) < len(items)

    def run(value: Value, *_: Value) -> Value:
        matches = pc.is_in(value, value_set=candidates)
        if has_null:
            return pc.if_else(matches, TRUE, UNKNOWN)
        return valid_like(matches, value) if isinstance(value, pa.Array) else matches

    return run


def extreme(call: Call) -> Kernel:
    """greatest and least, which skip NULLs."""
    better = comparison(Call(">" if call.function == "greatest" else "<", call.arguments[:1] * 2, pa.bool_()))

    def choose(best: Value, other: Value) -> Value:
        takes = is_true(better(other, best))
        return pc.coalesce(pc.if_else(takes, other, best), other)

    return lambda *values: reduce(choose, values)


LOGIC: Final[dict[str, Callable[..., Value]]] = {"and": pc.and_kleene, "or": pc.or_kleene}
