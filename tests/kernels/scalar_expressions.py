"""Random scalar expressions over a column of every type, and random columns with the values that break things."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from transom.core.errors import QueryError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    arrow_type,
    is_array,
    is_nested,
)
from transom.plan.expression import Cast, ColumnRef, Expression, Literal, columns_of, walk
from transom.plan.functions import NULL, case, cast, resolve, settled
from transom.plan.intervals import interval
from transom.plan.signatures import TRUNCATED_PARTS

SMALL_DECIMAL, WIDE_DECIMAL = pa.decimal128(4, 1), pa.decimal128(18, 3)
ARRAYS, STRUCTS = pa.list_(INTEGER), pa.struct([("p", INTEGER), ("q", pa.list_(VARCHAR))])
TYPES = [
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, SMALL_DECIMAL, WIDE_DECIMAL, HUGEINT, VARCHAR, DATE,
    TIMESTAMP, TIMESTAMPTZ, JSON, ARRAYS, STRUCTS,
]  # fmt: skip
PLAIN_TYPES = [type_ for type_ in TYPES if not is_nested(type_) and type_ != JSON]
WORDS = [
    "", "a", "A", "abc", "aBc", " a ", "é", "É", "ß", "İ", "👍", "e\u0301", "a%b", "a_b", "a!b", "%", "_", "日本語",
    "1", "-7", "2.5", " 12 ", "128", "true", "f", "2020-02-29", "2019-02-29", "1969-12-31 23:59:59.5",
    "2024-03-31 01:30:00+02", "2024-03-31T01:30:00.123456-09:30", "0001-01-01 00:00:00+05", "2024-03-31 01:30Z",
    "x" * 40, "a,b,,c", ",", "aa", "aaa", "\u2003t", "a\nb",
]  # fmt: skip


JSONS = [
    "null", "true", "0", "-0", "42", "300", "42.5", "1e5", "0.00000012", "1e400", "18446744073709551616", '"a"', '"7"',
    '"2024-03-31"', '""', "[]", "{}", ' {"a" : 1.50, "b": [1, {"c": "x"}]}', '{"a": {"b": [5, null]}, "a": 2}',
    '"\\u00e9\\n\\u001f\\/ é"', "[1, [2, 3], -1]", '{"": 1, "a.b": 2, "0": 3, "a b": true}',
]  # fmt: skip


def integers(type_: pa.DataType) -> st.SearchStrategy[int]:
    bound = 1 << type_.bit_width - 1
    near = [-bound, -bound + 1, -1, 0, 1, 2, 10, bound - 1]
    return st.one_of(st.sampled_from(near), st.integers(-12, 12), st.integers(-bound, bound - 1))


def floats(width: int) -> st.SearchStrategy[float]:
    near = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e10, -1e18, math.inf, -math.inf, math.nan]
    # Not those between our greatest HUGEINT and DuckDB's.
    any_float = st.floats(width=32 if width == 32 else 64).filter(lambda x: not 1e38 <= abs(x) < 2e38)
    return st.one_of(st.sampled_from(near), st.integers(-1000, 1000).map(lambda n: n / 8), any_float)


def decimals(type_: pa.DataType) -> st.SearchStrategy[Decimal]:
    bound = 10**type_.precision - 1
    near = st.sampled_from([-bound, bound, 0, 5, -5, 15, 25])
    # Made of digits: arithmetic on a Decimal would round it to the 28 digits of Python's context.
    return st.one_of(near, st.integers(-200, 200), st.integers(-bound, bound)).map(
        lambda n: Decimal((n < 0, tuple(int(digit) for digit in str(abs(n))), -type_.scale))
    )


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if is_array(type_):
        return st.lists(st.one_of(st.none(), values_of(type_.value_type)), max_size=3)
    if is_nested(type_):
        return st.fixed_dictionaries({field.name: st.one_of(st.none(), values_of(field.type)) for field in type_})
    if type_ == BOOLEAN:
        return st.booleans()
    if pa.types.is_integer(type_):
        return integers(type_)
    if type_ in (REAL, DOUBLE):
        return floats(32 if type_ == REAL else 64)
    if pa.types.is_decimal(type_):
        return decimals(type_)
    if type_ == JSON:
        return st.sampled_from(JSONS)
    if type_ == VARCHAR:
        letters = st.characters(exclude_categories=["Cs", "Nd"])
        return st.one_of(st.sampled_from(WORDS), st.text(letters, max_size=6))
    days = st.one_of(
        st.sampled_from([date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2020, 2, 29), date(1970, 1, 1)]),
        st.dates(),
    )
    if type_ == DATE:
        return days
    micros = st.one_of(st.sampled_from([0, 1, 500_000, 86_399_999_999]), st.integers(0, 86_399_999_999))
    return st.builds(lambda d, m: datetime(d.year, d.month, d.day) + timedelta(microseconds=m), days, micros)


@st.composite
def batches(draw: st.DrawFn, used: frozenset[int]) -> pa.RecordBatch:
    """A column of every type, NULL where nobody reads it; sometimes a slice of a longer one, sometimes empty."""
    rows = draw(st.sampled_from([0, 1, 3, 8, 8, 8]))
    spare = draw(st.sampled_from([0, 0, 3]))
    arrays = []
    for index, type_ in enumerate(TYPES):
        some = st.one_of(st.none(), values_of(type_), values_of(type_), values_of(type_))
        items = st.lists(some if index in used else st.none(), min_size=rows + spare, max_size=rows + spare)
        arrays.append(pa.array(draw(items), arrow_type(type_)))
    return pa.record_batch(arrays, names=[f"c{i}" for i in range(len(TYPES))]).slice(spare)


NUMBERS = [TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, SMALL_DECIMAL, WIDE_DECIMAL, HUGEINT]
KINDS: dict[str, list[pa.DataType]] = {
    "number": NUMBERS,
    "whole": [TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT],
    "int": [TINYINT, SMALLINT, INTEGER],
    "small": [TINYINT, SMALLINT, INTEGER, BIGINT],
    "text": [VARCHAR],
    "bool": [BOOLEAN],
    "date": [DATE],
    "moment": [DATE, TIMESTAMP, TIMESTAMPTZ],
    "array": [ARRAYS],
    "struct": [STRUCTS],
    "json": [JSON],
    "any": TYPES,
}
TAKES: dict[str, list[tuple[str, ...]]] = {
    "+": [("number", "number"), ("date", "int")],
    "-": [("number", "number"), ("date", "date"), ("date", "int")],
    "*": [("number", "number")],
    "/": [("number", "number")],
    "//": [("whole", "whole")],
    "%": [("number", "number")],
    "negate": [("number",)],
    **{name: [("small", "small"), ("int", "int")] for name in ("&", "|", "xor")},
    "~": [("small",)],
    "<<": [("small", "index"), ("int", "int")],
    ">>": [("small", "index"), ("int", "int")],
    **{name: [("number", "number"), ("same", "same"), ("moment", "moment"), ("any", "any")] for name in
       ("=", "<>", "<", "<=", ">", ">=", "is_not_distinct", "nullif")},
    "in": [("number", "number", "number"), ("same", "constant", "constant", "constant"), ("same", "same")],
    "and": [("bool", "bool"), ("bool", "bool", "number")],
    "or": [("bool", "bool"), ("bool", "number", "bool")],
    "not": [("bool",)],
    "is_null": [("any",)],
    "like": [("text", "pattern"), ("text", "pattern", "escape"), ("text", "text")],
    "ilike": [("text", "pattern"), ("text", "pattern", "escape")],
    "||": [("text", "text"), ("any", "any")],
    "coalesce": [("same", "same"), ("number", "number", "number")],
    "if": [("bool", "same", "same"), ("bool", "number", "number"), ("bool", "any")],
    "add_interval": [("moment", "micros")],
    "add_months": [("moment", "months"), ("moment", "months", "micros"), ("moment", "int", "micros")],
    "abs": [("number",)],
    "sign": [("number",)],
    "round": [("number",), ("number", "places")],
    "floor": [("number",)],
    "ceil": [("number",)],
    **{name: [("number",)] for name in ("sqrt", "exp", "ln", "log10", "log2")},
    "power": [("number", "number")],
    "greatest": [("same", "same"), ("number", "number", "number"), ("moment", "moment")],
    "least": [("same", "same"), ("number", "number", "number")],
    **{name: [("text",)] for name in ("upper", "lower", "ascii")},
    "length": [("text",), ("array",)],
    "substring": [("text", "index"), ("text", "index", "index"), ("text", "int", "int")],
    "left": [("text", "index"), ("text", "int")],
    "right": [("text", "index"), ("text", "int")],
    **{name: [("text",), ("text", "characters"), ("text", "text")] for name in ("trim", "ltrim", "rtrim")},
    "replace": [("text", "characters", "characters"), ("text", "text", "text")],
    "concat": [("any",), ("any", "text", "any")],
    **{name: [("text", "characters"), ("text", "text")] for name in
       ("starts_with", "ends_with", "contains", "position")},
    **{name: [("text", "index", "characters"), ("text", "index", "text")] for name in ("lpad", "rpad")},
    "repeat": [("text", "index")],
    **{name: [("text", "characters", "index"), ("text", "text", "index")] for name in ("split_part", "split_index")},
    **{name: [("moment",)] for name in ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "hour",
                                         "minute", "second", "epoch")},
    **{name: [("moment",)] for name in ("millisecond", "microsecond", "isodow", "isoyear", "decade", "century",
                                         "epoch_us", "last_day", "dayname", "monthname")},
    "epoch_ms": [("moment",), ("int",)],
    "make_timestamp": [("int",), ("micros",)],
    "make_date": [("index", "index", "index"), ("int", "index", "index")],
    "time_bucket": [("width", "moment"), ("width", "moment", "moment"), ("width", "moment", "offset")],
    "timezone": [("zone", "instant"), ("zone", "moment")],
    "strftime": [("moment", "written")],
    "strptime": [("text", "read"), ("stamp", "read")],
    "try_strptime": [("text", "read"), ("stamp", "read")],
    "to_char": [("moment", "postgres")],
    **{name: [("text", "postgres_read"), ("stamp", "postgres_read")] for name in ("to_timestamp", "to_date")},
    "date_format": [("moment", "java")],
    "regexp_matches": [("text", "regexp"), ("text", "regexp", "flags")],
    "regexp_full_match": [("text", "regexp"), ("text", "regexp", "flags")],
    "regexp_replace": [("text", "regexp", "new"), ("text", "regexp", "new", "global")],
    "regexp_extract": [("text", "regexp"), ("text", "regexp", "group")],
    "concat_ws": [("characters", "any"), ("text", "any", "text"), ("characters", "text", "any", "text")],
    **{name: [("text",)] for name in ("md5", "sha1", "sha256")},
    **{name: [("number",)] for name in ("trunc", "isnan", "isinf", "isfinite", "sin", "cos", "tan", "asin", "acos",
                                         "atan", "radians", "degrees")},
    "atan2": [("number", "number")],
    "pi": [(), (), ()],
    "date_trunc": [("part", "moment")],
    "date_diff": [("part", "moment", "moment")],
    **{name: [("json", "path"), ("json_text", "path"), ("json", "index")] for name in
       ("json_extract", "json_extract_string", "json_value")},
    **{name: [("json",), ("json", "path"), ("json_text", "path")] for name in ("json_array_length", "json_type")},
    "list_value": [("same", "same"), ("number", "number", "number"), ("array", "array")],
    "struct_pack": [("field", "any"), ("field", "any", "other_field", "any")],
    **{name: [("index",), ("index", "index"), ("index", "index", "index"), ("index", "months")] for name in
       ("range", "generate_series")},
    "list_slice": [("array", "index", "index"), ("array", "int", "index")],
    "list_concat": [("array", "array"), ("array", "array", "array")],
    **{name: [("array",)] for name in ("list_sort", "list_distinct", "list_reverse", "list_min", "list_max")},
    "list_append": [("array", "int"), ("array", "number")],
    "list_prepend": [("int", "array")],
    "strlen": [("text",)],
    "translate": [("text", "characters", "characters"), ("text", "text", "text")],
    "list_extract": [("array", "index"), ("array", "int")],
    "struct_extract": [("struct", "field"), ("struct", "other_field")],
    "array_length": [("array",)],
    "list_contains": [("array", "int"), ("array", "number")],
    "list_position": [("array", "int"), ("array", "number")],
    "string_split": [("text", "characters"), ("text", "text")],
    "array_to_string": [("array", "characters")],
}  # fmt: skip


WIDTHS = [
    (0, 1), (0, 1_000_000), (0, 25_200_000_000), (0, 86_400_000_000), (0, 604_800_000_000), (1, 0), (5, 0), (12, 0),
]  # fmt: skip
SAMPLES: dict[str, list[str]] = {
    "path": ["$", "$.a", "$.a.b[0]", "$.b[1].c", "$[-1]", "$[1][#-1]", "a", "a b", '$."a.b"', "/a/b/0", "/", "/0",
             "$.x", ""],
    "json_text": [*JSONS, "x", "", "[1", '{"a"}', "1 2"],
    "field": ["p"],
    "other_field": ["q"],
    "written": ["%Y-%m-%d %H:%M:%S.%f", "%d.%-m.%y", "%a %A %b %B", "%j|%-j|%u|%w", "%G-W%V %U %W", "%I:%M %p %-I", "x",
                "100%% %g", "%-d %-H %-M %-S"],
    "read": ["%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d", "%d.%m.%y", "%Y%m%d", "%b %d %Y", "%d %B %Y", "%I:%M %p", "%H%M%S",
             "a%%%Y"],
    "stamp": ["2020-02-29", "2020-02-30", "2020-1-2", " 2020-01-02 ", "2020-01-02 10:11:12.5",
              "2020-01-02\t10:11:12.123",
              "2020-01-02 10:11:12.1234567", "1.2.69", "31.4.68", "20240102", "2024012", "20241", "jan 5 2024",
              "5 JANUARY 2024", "12:30 am", "12:30 PM", "13:30 am", "0:30 pm", "101112", "10111", "240000", "a%2024",
              "0000-01-01", "99999-01-01", "2020-13-01", ""],
    "postgres_read": ["YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD", "DD.MM.YY", "HH24MISS"],
    "postgres": ["YYYY-MM-DD HH24:MI:SS", "HH12 AM", "Mon FMDD"],
    "java": ["yyyy-MM-dd HH:mm:ss.SSS", "EEE d MMMM", "h a"],
    "regexp": ["a", "b*", "^a", "a$", "(a)(b)?", "[a-z]+", "a|(b)", "(?:a)(.)", "\\d+", "\\W", ".", "", "é", "[^a]",
               "((a)b)c", "x{2,3}", "[[:alpha:](]+", "\\Q(\\E"],
    "flags": ["i", "c", "s", "is"],
    "zone": ["UTC", "Europe/Berlin", "america/new_york", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"],
    "global": ["g", "gi", "s"],
    "new": ["", "x", "<\\0>", "\\\\"],
}  # fmt: skip


def constants(kind: str) -> st.SearchStrategy[Expression]:
    if kind == "pattern":
        letters = st.lists(st.sampled_from(["%", "_", "a", "b", "!", "é", "👍", ".", "A", "c"]), max_size=5)
        return letters.map(lambda found: Literal("".join(found), VARCHAR))
    if kind == "escape":
        return st.just(Literal("!", VARCHAR))
    if kind == "characters":
        return st.sampled_from(["", "a", "ab", "é", ",", "aa", "👍"]).map(lambda found: Literal(found, VARCHAR))
    if kind == "places":
        return st.integers(-21, 21).map(lambda n: Literal(n, INTEGER))
    if kind == "index":
        return st.integers(-12, 12).map(lambda n: Literal(n, INTEGER))
    if kind == "part":
        return st.sampled_from(TRUNCATED_PARTS).map(lambda part: Literal(part, VARCHAR))
    if kind in SAMPLES:
        return st.sampled_from(SAMPLES[kind]).map(lambda found: Literal(found, VARCHAR))
    if kind == "instant":
        at = TYPES.index(TIMESTAMP)
        return constants("zone").map(lambda zone: resolve("timezone", (zone, ColumnRef(at, TIMESTAMP, f"c{at}"))))
    if kind == "group":
        return st.integers(0, 3).map(lambda n: Literal(n, INTEGER))
    if kind == "width":
        return st.sampled_from(WIDTHS).map(lambda width: interval(*width))
    if kind == "offset":
        return st.sampled_from([(0, 0), (0, 90_000_000), (0, -1)]).map(lambda width: interval(*width))
    if kind == "months":
        return st.sampled_from([0, 1, -1, 12, -13, 1200, 10**6]).map(lambda n: Literal(n, INTEGER))
    assert kind == "micros"
    return st.sampled_from([0, 1, -1, 10**6, -86_400_000_000, 10**12]).map(lambda n: Literal(n, BIGINT))


DEPTH = 3


def leaf(draw: st.DrawFn, type_: pa.DataType, constant: bool) -> Expression:
    if not constant or is_nested(type_):
        index = TYPES.index(type_)
        return ColumnRef(index, type_, f"c{index}")
    if draw(st.integers(0, 9)) == 0:
        return Literal(None, NULL)
    return Literal(draw(values_of(type_)), type_)


@st.composite
def expressions(draw: st.DrawFn, kind: str = "any", depth: int = DEPTH) -> Expression:
    if kind not in KINDS:
        return draw(constants(kind))
    types = KINDS[kind]
    if depth == 0 or (depth < DEPTH and draw(st.integers(0, 3)) == 0):
        return leaf(draw, draw(st.sampled_from(types)), draw(st.integers(0, 4)) == 0)
    if draw(st.integers(0, 5)) == 0:
        target = draw(st.sampled_from(types))
        operand = draw(expressions("any", depth - 1))
        return try_or_leaf(draw, types, lambda: cast(operand, target, safe=draw(st.booleans())))
    if draw(st.integers(0, 7)) == 0:
        condition, some, other = (draw(expressions(k, depth - 1)) for k in ("bool", kind, kind))
        return try_or_leaf(draw, types, lambda: case((condition,), (some,), other))
    for _ in range(4):
        made = draw(calls(depth))
        if made is not None and (made.type in types or kind == "any" or is_other_decimal(kind, made)):
            return made
    return leaf(draw, draw(st.sampled_from(types)), False)


def is_other_decimal(kind: str, made: Expression) -> bool:
    return kind == "number" and bool(pa.types.is_decimal(made.type))


def try_or_leaf(draw: st.DrawFn, types: list[pa.DataType], make: Any) -> Expression:
    try:
        made: Expression = make()
    except QueryError:
        return leaf(draw, draw(st.sampled_from(types)), False)
    return made if made.type in types else leaf(draw, draw(st.sampled_from(types)), False)


@st.composite
def calls(draw: st.DrawFn, depth: int) -> Expression | None:
    """A call of some function with arguments that probably fit it; None when they did not."""
    name = draw(st.sampled_from(sorted(TAKES)))
    same = draw(st.sampled_from(TYPES))
    arguments: list[Expression] = []
    for kind in draw(st.sampled_from(TAKES[name])):
        if kind == "same":
            arguments.append(leaf(draw, same, draw(st.booleans()) and bool(arguments)))
        elif kind == "constant":
            arguments.append(leaf(draw, same, True))
        else:
            arguments.append(draw(expressions(kind, depth - 1)))
    try:
        return resolve(name, tuple(arguments))
    except QueryError:
        return None


@st.composite
def cases(draw: st.DrawFn, kind: str = "any") -> tuple[Expression, pa.RecordBatch]:
    """An expression and a batch for it."""
    expression = draw(expressions(kind).filter(lambda e: e.type == settled(e.type) and not reads_written_numbers(e)))
    return expression, draw(batches(columns_of(expression)))


def reads_written_numbers(expression: Expression) -> bool:
    """Whether texts made from numbers may be read as decimals or dates, where 1e+16 and inf are rejected on purpose."""
    return any(
        isinstance(node, Cast)
        and node.operand.type == VARCHAR
        and not isinstance(node.operand, ColumnRef | Literal)
        and (pa.types.is_decimal(node.target) or pa.types.is_temporal(node.target))
        for node in walk(expression)
    )
