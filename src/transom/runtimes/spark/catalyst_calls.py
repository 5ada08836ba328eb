"""The closed table of functions that Spark computes as we do, and the list of those it does not, with the reason.

An entry gets the call and its arguments as columns, of the Spark types of their types, and gives a column of the Spark
type of the call's type; or None, where Spark agrees for some arguments only and these are others. None of them raises
in ANSI mode, nor gives another value out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, and_, eq, ge, gt, le, lt, mod, mul, ne, neg, or_, sub, truediv
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.core.schema import BIGINT, DATE, DOUBLE
from transom.kernels.scalar.like import parse
from transom.plan.expression import Call, Cast, Expression, Literal
from transom.plan.typing_rules import is_float, is_integer
from transom.runtimes.spark.types import to_spark

Entry = Callable[[Call, list[Column]], Column | None]

_LONGEST: Final = 2**31 - 1
"""Spark counts characters in 32 bits."""


def connected(call: Call) -> tuple[Expression, ...]:
    """The arguments; of AND and OR those of all calls nested on the left, of which there may be many.

    >>> from transom.core.schema import BOOLEAN
    >>> a, b, c = (Literal(value, BOOLEAN) for value in (True, False, None))
    >>> [str(part) for part in connected(Call("or", (Call("or", (a, b), BOOLEAN), c), BOOLEAN))]
    ['TRUE', 'FALSE', 'NULL']
    """
    if call.function not in ("and", "or"):
        return call.arguments
    parts: list[Expression] = []
    node: Expression = call
    while isinstance(node, Call) and node.function == call.function:
        parts.extend(reversed(node.arguments[1:]))
        node = node.arguments[0]
    return (node, *reversed(parts))


def balanced(connective: str, parts: Sequence[Column]) -> Column:
    """AND or OR of many conditions, as a tree that is nowhere deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    join = and_ if connective == "and" else or_
    whole: Column = join(balanced(connective, parts[:half]), balanced(connective, parts[half:]))
    return whole


def _always(function: Callable[..., Column]) -> Entry:
    """Agrees for all arguments."""
    return lambda call, arguments: function(*arguments)


def _counted(function: Callable[..., Column]) -> Entry:
    """Agrees for all arguments, and counts in 32 bits what we count in 64."""
    return lambda call, arguments: function(*arguments).cast(to_spark(call.type))


# --- numbers ---------------------------------------------------------------------------------------------------------


def _of_floats(function: Callable[..., Column]) -> Entry:
    """IEEE arithmetic is the same everywhere. Integers may overflow; Spark rounds decimals, even their negatives."""
    return lambda call, arguments: function(*arguments) if is_float(call.type) else None


def _difference(call: Call, arguments: list[Column]) -> Column | None:
    if all(argument.type == DATE for argument in call.arguments):
        return F.datediff(*arguments).cast(to_spark(BIGINT))
    return sub(*arguments) if is_float(call.type) else None


def _quotient(call: Call, arguments: list[Column]) -> Column | None:
    """Division by a constant: by zero Spark gives NULL or fails. Of DOUBLE alone: of REAL it gives a DOUBLE."""
    return truediv(*arguments) if call.type == DOUBLE and _constant(call.arguments[1]) else None


def _remainder(call: Call, arguments: list[Column]) -> Column | None:
    """The remainder by a constant: by zero Spark gives NULL or fails, and we NaN or an error of ours."""
    divisor = _constant(call.arguments[1])
    # The least integer divided by -1 has no quotient, and for us no remainder.
    agrees = is_float(call.type) or (is_integer(call.type) and divisor != -1)
    return mod(*arguments) if divisor and agrees else None


def _constant(expression: Expression) -> Any:
    """A constant's value, None when it is none (or NULL); also below the cast that `x / 2` puts around the 2."""
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression.value if isinstance(expression, Literal) else None


# --- choice ----------------------------------------------------------------------------------------------------------


def _among(call: Call, arguments: list[Column]) -> Column:
    """IN. Of long lists Spark makes a hash set, which tells -0.0 from 0.0; so floats are compared one by one."""
    operand, *consumers = arguments
    if is_float(call.arguments[0].type):
        return balanced("or", [operand == consumer for consumer in consumers])
    return operand.isin(*consumers)


def _extreme(function: Callable[..., Column]) -> Entry:
    return lambda call, arguments: function(*arguments) if len(arguments) > 1 else arguments[0]


# --- texts -----------------------------------------------------------------------------------------------------------


def _like(call: Call, arguments: list[Column]) -> Column | None:
    """A constant pattern with texts and % alone, of which no text is in the middle."""
    pattern = call.arguments[1]
    escape = call.arguments[2].value if len(call.arguments) > 2 and isinstance(call.arguments[2], Literal) else None
    if not isinstance(pattern, Literal) or pattern.value is None:
        return None
    text = arguments[0]
    match parse(pattern.value, escape):
        case []:
            return text == F.lit("")
        case [None]:
            return text == text
        case [str(whole)]:
            return text == F.lit(whole)
        case [str(start), None]:
            return text.startswith(F.lit(start))
        case [None, str(end)]:
            return text.endswith(F.lit(end))
        case [None, str(middle), None]:
            return text.contains(F.lit(middle))
        case [str(start), None, str(end)]:
            least = len(start.encode()) + len(end.encode())  # in `aba`, the a of `ab` is not the a of `ba`
            return text.startswith(F.lit(start)) & text.endswith(F.lit(end)) & (F.octet_length(text) >= F.lit(least))
        case _:
            return None


def _cut(call: Call, arguments: list[Column]) -> Column | None:
    """substring and left, from a constant place on; what 0 and negative places mean, each has its own idea of."""
    numbers = [_constant(argument) for argument in call.arguments[1:]]
    if call.function == "left":
        numbers = [1, *numbers]
    start, count = numbers if len(numbers) == 2 else (numbers[0], _LONGEST)
    if start is None or count is None or not (1 <= start <= _LONGEST and 0 <= count <= _LONGEST):
        return None
    return F.substring(arguments[0], start, count)


def _ending(call: Call, arguments: list[Column]) -> Column | None:
    count = _constant(call.arguments[1])
    return F.right(arguments[0], F.lit(count)) if count is not None and 1 <= count <= _LONGEST else None


def _days_between(call: Call, arguments: list[Column]) -> Column | None:
    """date_diff('day', ..): of other parts Spark counts those that passed, and not the boundaries between."""
    _, start, end = arguments
    if _constant(call.arguments[0]) != "day":
        return None
    day = to_spark(DATE)
    return F.datediff(end.cast(day), start.cast(day)).cast(to_spark(BIGINT))


CALLS: Final[dict[str, Entry]] = {
    "=": _always(eq),
    "<>": _always(ne),
    "<": _always(lt),
    "<=": _always(le),
    ">": _always(gt),
    ">=": _always(ge),
    "is_not_distinct": _always(Column.eqNullSafe),
    "in": _among,
    "and": lambda call, arguments: balanced("and", arguments),
    "or": lambda call, arguments: balanced("or", arguments),
    "not": _always(lambda condition: ~condition),
    "is_null": _always(Column.isNull),
    "coalesce": _always(F.coalesce),
    "greatest": _extreme(F.greatest),
    "least": _extreme(F.least),
    "+": _of_floats(add),
    "-": _difference,
    "*": _of_floats(mul),
    "/": _quotient,
    "%": _remainder,
    "negate": _of_floats(neg),
    "abs": _of_floats(F.abs),
    "sqrt": _always(F.sqrt),
    # Whole numbers are what they are without it; of others Spark has no such function.
    "trunc": lambda call, arguments: None,
    "like": _like,
    "starts_with": _always(Column.startswith),
    "ends_with": _always(Column.endswith),
    "contains": _always(Column.contains),
    "length": _counted(F.char_length),
    "substring": _cut,
    "left": _cut,
    "right": _ending,
    "replace": _always(F.replace),
    "position": _counted(F.instr),
    "||": _always(F.concat),
    "concat": _always(lambda *texts: F.concat_ws("", *texts)),
    "year": _counted(F.year),
    "quarter": _counted(F.quarter),
    "month": _counted(F.month),
    "week": _counted(F.weekofyear),
    "day": _counted(F.dayofmonth),
    "dayofweek": _counted(lambda moment: F.dayofweek(moment) - F.lit(1)),
    "dayofyear": _counted(F.dayofyear),
    "hour": _counted(F.hour),
    "minute": _counted(F.minute),
    "second": _counted(F.second),
    "date_diff": _days_between,
}

_RARE: Final = "it is seldom written, and was not compared with Spark's"
_TRIGONOMETRY: Final = "the last digit depends on the library"
_FORMATS: Final = "Spark has formats of its own"
_PATTERNS: Final = "Spark follows Java's regular expressions"
_LETTERS: Final = "Java and DuckDB follow different versions of Unicode"
_LOGARITHMS: Final = "the last digit depends on the library; outside the domain Spark gives NULL"
_NESTED: Final = "within arrays and structs Spark compares NULL, and counts elements, in its own way"
_JSON: Final = "Spark reads other texts as JSON, and writes numbers in another way"
_SPACE: Final = "it may fail for want of space, and Spark has other limits"

UNSUPPORTED: Final[dict[str, str]] = {
    **dict.fromkeys(("json_extract", "json_extract_string", "json_value"), _JSON),
    **dict.fromkeys(("json_array_length", "json_type"), _JSON),
    "//": "by zero, and of the least integer by -1, it fails; Spark's columns have no division of integers",
    "ilike": _LETTERS,
    "upper": _LETTERS,
    "lower": _LETTERS,
    "add_interval": "it fails outside the years 1 to 9999, and Spark does not",
    "add_months": "it fails outside the years 1 to 9999, and Spark does not",
    **dict.fromkeys(("isnan", "isinf", "isfinite", "radians", "degrees"), _RARE),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "atan2"), _TRIGONOMETRY),
    **dict.fromkeys(("concat_ws", "md5", "sha1", "sha256"), _RARE),
    **dict.fromkeys(("regexp_matches", "regexp_full_match", "regexp_replace", "regexp_extract"), _PATTERNS),
    **dict.fromkeys(
        ("strftime", "strptime", "try_strptime", "to_char", "date_format", "to_timestamp", "to_date"), _FORMATS
    ),
    **dict.fromkeys(("dayname", "monthname", "last_day", "make_date", "make_timestamp"), _RARE),
    **dict.fromkeys(("isodow", "isoyear", "decade", "century", "millisecond", "microsecond"), _RARE),
    **dict.fromkeys(("epoch_ms", "epoch_us", "time_bucket"), _RARE),
    **dict.fromkeys(
        ("list_value", "struct_pack", "list_extract", "struct_extract", "array_length", "list_contains"), _NESTED
    ),
    "list_position": _NESTED,
    **dict.fromkeys(("string_split", "array_to_string", "range", "generate_series"), _NESTED),
    **dict.fromkeys(("list_slice", "list_concat", "list_append", "list_prepend", "list_sort"), _NESTED),
    **dict.fromkeys(("list_distinct", "list_reverse", "list_min", "list_max"), _NESTED),
    **dict.fromkeys(("strlen", "translate"), _RARE),
    **dict.fromkeys(("&", "|", "xor", "~", "<<", ">>"), _RARE),
    "timezone": "Java has a database of time zones of its own",
    "sign": "of NaN it is 0, in Spark NaN",
    "round": "Spark rounds the shortest decimal text of a float, not the float",
    "floor": "Spark makes a BIGINT of a float, which cannot hold all of them",
    "ceil": "Spark makes a BIGINT of a float, which cannot hold all of them",
    "exp": _LOGARITHMS,
    "ln": _LOGARITHMS,
    "log10": _LOGARITHMS,
    "log2": _LOGARITHMS,
    "power": _LOGARITHMS,
    "trim": "Spark takes the space off, and no other blank of Unicode",
    "ltrim": "Spark takes the space off, and no other blank of Unicode",
    "rtrim": "Spark takes the space off, and no other blank of Unicode",
    "repeat": _SPACE,
    "lpad": _SPACE,
    "rpad": _SPACE,
    "split_part": "Spark fails at index 0, and has its own idea of an empty separator",
    "split_index": _RARE,
    "ascii": _RARE,
    "epoch": "Spark has no such function of a timestamp without a zone",
    "date_trunc": "Spark truncates in the time zone of the session",
}
"""Functions that are never pushed."""


AS_CASE: Final = frozenset({"if", "nullif", "pi"})
"""Functions that the algebra knows as CASE or as a constant, so that there are no calls of them."""
