"""Random expressions over random columns: the engine gives DuckDB's values and types, and fails where DuckDB fails."""

from __future__ import annotations

import math
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from transom.core.errors import EvaluationError, QueryError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    sql_name,
)
from transom.kernels.scalar import evaluate, keep
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal, walk
from transom.plan.functions import FUNCTIONS, NULL, case, cast, resolve
from transom.plan.signatures import TRUNCATED_PARTS

# --- DuckDB's spelling of an expression -------------------------------------------------------------------------------

OPERATORS = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||"}


def sql(expression: Expression) -> str:
    """SQL with every cast and type spelled out, so that DuckDB has nothing left to infer."""
    if isinstance(expression, ColumnRef):
        return f"c{expression.index}"
    if isinstance(expression, Literal):
        return f"CAST({sql_literal(expression.value)} AS {sql_name(expression.type)})"
    if isinstance(expression, Cast):
        kind = "TRY_CAST" if expression.safe else "CAST"
        return f"{kind}({sql(expression.operand)} AS {sql_name(expression.target)})"
    if isinstance(expression, Case):
        arms = zip(expression.conditions, expression.results, strict=True)
        whens = " ".join(f"WHEN {sql(condition)} THEN {sql(result)}" for condition, result in arms)
        return f"(CASE {whens} ELSE {sql(expression.otherwise)} END)"
    assert isinstance(expression, Call)
    return sql_call(expression.function, [sql(a) for a in expression.arguments], expression)


def sql_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return "'" + text.replace("'", "''") + "'"


def sql_call(name: str, arguments: list[str], call: Call) -> str:
    if name in OPERATORS:
        return f"({arguments[0]} {name} {arguments[1]})"
    if name == "//":
        if call.type != HUGEINT:
            return f"({arguments[0]} // {arguments[1]})"
        return f"CAST(CAST({arguments[0]} AS HUGEINT) // CAST({arguments[1]} AS HUGEINT) AS DECIMAL(38, 0))"
    if name in ("and", "or"):
        # DuckDB does not promise an order; ours is from left to right, and CASE says so.
        settled, whole = "FALSE" if name == "and" else "TRUE", arguments[0]
        for argument in arguments[1:]:
            whole = f"(CASE WHEN {whole} IS {settled} THEN {settled} ELSE ({whole} {name.upper()} {argument}) END)"
        return whole
    if name == "not":
        return f"(NOT {arguments[0]})"
    if name == "negate":
        return f"(-({arguments[0]}))"
    if name == "is_null":
        return f"({arguments[0]} IS NULL)"
    if name == "is_not_distinct":
        return f"({arguments[0]} IS NOT DISTINCT FROM {arguments[1]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if name in ("like", "ilike"):
        escape = f" ESCAPE {sql_literal(call.arguments[2].value)}" if len(arguments) == 3 else ""  # type: ignore[attr-defined]
        return f"({arguments[0]} {name.upper()} {arguments[1]}{escape})"
    if name == "add_interval":
        return f"({arguments[0]} + to_microseconds({arguments[1]}))"
    if name in ("date_trunc", "date_diff"):
        arguments = [sql_literal(call.arguments[0].value), *arguments[1:]]  # type: ignore[attr-defined]
    return f"{'strpos' if name == 'position' else name}({', '.join(arguments)})"


# --- columns and values ----------------------------------------------------------------------------------------------

SMALL_DECIMAL, WIDE_DECIMAL = pa.decimal128(4, 1), pa.decimal128(18, 3)
TYPES = [
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, SMALL_DECIMAL, WIDE_DECIMAL, HUGEINT, VARCHAR, DATE,
    TIMESTAMP,
]  # fmt: skip
WORDS = [
    "", "a", "A", "abc", "aBc", " a ", "é", "É", "ß", "İ", "👍", "e\u0301", "a%b", "a_b", "a!b", "%", "_", "日本語", "1",
    "-7", "2.5", " 12 ", "128", "true", "f", "2020-02-29", "2019-02-29", "1969-12-31 23:59:59.5",
    "x" * 40, "a,b,,c", ",", "aa", "aaa", "\u2003t", "a\nb",
]  # fmt: skip


def integers(type_: pa.DataType) -> st.SearchStrategy[int]:
    bound = 1 << type_.bit_width - 1
    near = [-bound, -bound + 1, -1, 0, 1, 2, 10, bound - 1]
    return st.one_of(st.sampled_from(near), st.integers(-12, 12), st.integers(-bound, bound - 1))


def floats(width: int) -> st.SearchStrategy[float]:
    near = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e10, -1e18, math.inf, -math.inf, math.nan]
    return st.one_of(st.sampled_from(near), st.integers(-1000, 1000).map(lambda n: n / 8), st.floats(width=width))  # type: ignore[arg-type]


def decimals(type_: pa.DataType) -> st.SearchStrategy[Decimal]:
    bound = 10**type_.precision - 1
    numbers = st.one_of(
        st.sampled_from([-bound, bound, 0, 5, -5, 15, 25]), st.integers(-200, 200), st.integers(-bound, bound)
    )
    return numbers.map(lambda n: Decimal(n).scaleb(-type_.scale) if type_.scale else Decimal(n))


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if type_ == BOOLEAN:
        return st.booleans()
    if pa.types.is_integer(type_):
        return integers(type_)
    if type_ == REAL or type_ == DOUBLE:
        return floats(32 if type_ == REAL else 64)
    if pa.types.is_decimal(type_):
        return decimals(type_)
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


def columns_of(type_: pa.DataType, rows: int) -> st.SearchStrategy[pa.Array]:
    items = st.one_of(st.none(), values_of(type_), values_of(type_), values_of(type_))
    return st.lists(items, min_size=rows, max_size=rows).map(lambda values: column(values, type_))


def column(values: list[Any], type_: pa.DataType) -> pa.Array:
    # A DECIMAL of 38 digits does not survive Python's default context of 28.
    return pa.array([None if v is None else +v if isinstance(v, float) else v for v in values], type_)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """A column of every type, sometimes a slice of a longer one, sometimes empty."""
    rows = draw(st.sampled_from([0, 1, 3, 8]))
    spare = draw(st.sampled_from([0, 0, 3]))
    arrays = [draw(columns_of(type_, rows + spare)) for type_ in TYPES]
    batch = pa.record_batch(arrays, names=[f"c{i}" for i in range(len(TYPES))])
    return batch.slice(spare)


# --- expressions -----------------------------------------------------------------------------------------------------

NUMBERS = [
    type_ for type_ in TYPES if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
]
KINDS: dict[str, list[pa.DataType]] = {
    "number": NUMBERS,
    "whole": [TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT],
    "int": [TINYINT, SMALLINT, INTEGER],
    "text": [VARCHAR],
    "bool": [BOOLEAN],
    "date": [DATE],
    "moment": [DATE, TIMESTAMP],
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
    "abs": [("number",)],
    "sign": [("number",)],
    "round": [("number",), ("number", "places")],
    "floor": [("number",)],
    "ceil": [("number",)],
    **{name: [("number",)] for name in ("sqrt", "exp", "ln", "log10", "log2")},
    "power": [("number", "number")],
    "greatest": [("same", "same"), ("number", "number", "number"), ("moment", "moment")],
    "least": [("same", "same"), ("number", "number", "number")],
    **{name: [("text",)] for name in ("upper", "lower", "length")},
    "substring": [("text", "index"), ("text", "index", "index"), ("text", "int", "int")],
    "left": [("text", "index"), ("text", "int")],
    "right": [("text", "index"), ("text", "int")],
    **{name: [("text",), ("text", "characters"), ("text", "text")] for name in ("trim", "ltrim", "rtrim")},
    "replace": [("text", "characters", "characters"), ("text", "text", "text")],
    "concat": [("any",), ("any", "text", "any")],
    **{name: [("text", "characters"), ("text", "text")] for name in ("starts_with", "ends_with", "contains", "position")},
    **{name: [("text", "index", "characters"), ("text", "index", "text")] for name in ("lpad", "rpad")},
    "repeat": [("text", "index")],
    "split_part": [("text", "characters", "index"), ("text", "text", "index")],
    **{name: [("moment",)] for name in ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "hour",
                                         "minute", "second", "epoch")},
    "date_trunc": [("part", "moment")],
    "date_diff": [("part", "moment", "moment")],
}  # fmt: skip


def test_every_function_is_tried() -> None:
    assert set(TAKES) == {function.name for function in FUNCTIONS}


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
    assert kind == "micros"
    return st.sampled_from([0, 1, -1, 10**6, -86_400_000_000, 10**12]).map(lambda n: Literal(n, BIGINT))


def leaf(draw: st.DrawFn, type_: pa.DataType, constant: bool) -> Expression:
    if not constant:
        index = TYPES.index(type_)
        return ColumnRef(index, type_, f"c{index}")
    if draw(st.integers(0, 9)) == 0:
        return Literal(None, NULL)
    return Literal(draw(values_of(type_)), type_)


@st.composite
def expressions(draw: st.DrawFn, kind: str = "any", depth: int = 3) -> Expression:
    if kind not in KINDS:
        return draw(constants(kind))
    types = KINDS[kind]
    if depth == 0 or draw(st.integers(0, 3)) == 0:
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
        if made is not None and (made.type in types or kind in ("any", "number")):
            if kind != "number" or made.type in NUMBERS or pa.types.is_decimal(made.type):
                return made
    return leaf(draw, draw(st.sampled_from(types)), False)


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


# --- the comparison --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute("SET threads = 1")
    opened.execute("SET TimeZone = 'UTC'")
    return opened


def ask_duckdb(connection: duckdb.DuckDBPyConnection, expression: Expression, batch: pa.RecordBatch) -> pa.Array | None:
    """DuckDB's answer, None when it fails."""
    connection.register("batch", pa.table(batch))
    try:
        return (
            connection.sql(f"SELECT {sql(expression)} AS result FROM batch").to_arrow_table()["result"].combine_chunks()
        )
    except (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException):
        return None
    except duckdb.Error as error:
        raise AssertionError(f"{sql(expression)}: {error}") from error


def reads_written_numbers(expression: Expression) -> bool:
    """Whether texts made from numbers may be read as decimals or dates, where 1e+16 and inf are refused on purpose."""
    return any(
        isinstance(node, Cast)
        and node.operand.type == VARCHAR
        and not isinstance(node.operand, ColumnRef | Literal)
        and (pa.types.is_decimal(node.target) or pa.types.is_temporal(node.target))
        for node in walk(expression)
    )


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float) and math.isnan(mine) and math.isnan(theirs):
        return True
    return type(mine) is type(theirs) and bool(mine == theirs)


def check(connection: duckdb.DuckDBPyConnection, expression: Expression, batch: pa.RecordBatch) -> None:
    theirs = ask_duckdb(connection, expression, batch)
    try:
        mine = evaluate(expression, batch)
    except EvaluationError as error:
        # Dates beyond the year 9999 are ours to refuse; everything else fails in both or in none.
        assert theirs is None or "outside the years" in str(error), (sql(expression), str(error), theirs)
        return
    assert theirs is not None, (sql(expression), mine)
    assert isinstance(mine, pa.Array)
    assert len(mine) == batch.num_rows
    mine.validate(full=True)
    assert mine.type == expression.type
    assert mine.type == theirs.type, (sql(expression), mine.type, theirs.type)
    pairs = zip(mine.to_pylist(), theirs.to_pylist(), strict=True)
    wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if not same(a, b)]
    assert not wrong, (sql(expression), wrong, batch.slice(wrong[0][0], 1).to_pylist())


@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(expression=expressions(), batch=batches())
def test_values_and_failures_are_duckdbs(
    connection: duckdb.DuckDBPyConnection, expression: Expression, batch: pa.RecordBatch
) -> None:
    assume(expression.type != NULL and not reads_written_numbers(expression))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(connection, expression, batch)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(predicate=expressions("bool"), batch=batches())
def test_keep_is_evaluate_where_true(predicate: Expression, batch: pa.RecordBatch) -> None:
    assume(predicate.type == BOOLEAN)
    try:
        values = evaluate(predicate, batch)
    except EvaluationError:
        return
    kept = keep(predicate, batch)
    expected = [row for row, value in enumerate(values.to_pylist()) if value is True]
    assert (list(range(batch.num_rows)) if kept is None else kept.to_pylist()) == expected
