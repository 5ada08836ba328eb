"""The closed list of functions: what each call is typed as, which casts it gets, and what a misfit is reported."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from transom.core.errors import QueryError
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
)
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal
from transom.plan.functions import (
    FUNCTIONS,
    NULL,
    aggregate_call,
    case,
    cast,
    coerce,
    common_type,
    is_function,
    resolve,
    settle,
    suggest,
)


def column(type_: pa.DataType) -> ColumnRef:
    return ColumnRef(0, type_, "c")


def decimal(digits: int, scale: int) -> pa.DataType:
    return pa.decimal128(digits, scale)


ONE = Literal(1, INTEGER)
NOTHING = Literal(None, NULL)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([TINYINT, BIGINT], BIGINT),
        ([INTEGER, REAL], REAL),
        ([REAL, DOUBLE], DOUBLE),
        ([BIGINT, decimal(4, 1)], decimal(20, 1)),
        ([decimal(10, 2), decimal(18, 18)], decimal(26, 18)),
        ([decimal(38, 3), decimal(18, 18)], decimal(38, 3)),
        ([HUGEINT, decimal(10, 2)], decimal(38, 2)),
        ([decimal(38, 10), DOUBLE], DOUBLE),
        ([DATE, TIMESTAMP], TIMESTAMP),
        ([BOOLEAN, INTEGER], INTEGER),
        ([NULL, VARCHAR], VARCHAR),
        ([NULL, NULL], NULL),
        ([], NULL),
        ([VARCHAR, INTEGER], None),
        ([DATE, INTEGER], None),
        ([BOOLEAN, DOUBLE], None),
    ],
)
def test_common_type(types: list[pa.DataType], expected: pa.DataType | None) -> None:
    assert common_type(types) == expected
    assert common_type(types[::-1]) == expected


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("+", INTEGER, BIGINT, BIGINT),
        ("+", decimal(10, 2), INTEGER, decimal(13, 2)),
        ("+", decimal(38, 3), decimal(10, 2), decimal(38, 3)),
        ("*", decimal(10, 2), decimal(10, 2), decimal(18, 4)),
        ("*", decimal(18, 18), decimal(10, 2), decimal(28, 20)),
        ("*", BIGINT, decimal(10, 2), decimal(29, 2)),
        ("*", HUGEINT, BIGINT, HUGEINT),
        ("/", INTEGER, INTEGER, DOUBLE),
        ("/", REAL, INTEGER, REAL),
        ("//", SMALLINT, INTEGER, INTEGER),
        ("//", HUGEINT, INTEGER, HUGEINT),
        ("%", decimal(10, 2), INTEGER, decimal(12, 2)),
        ("-", DATE, DATE, BIGINT),
        ("-", DATE, INTEGER, DATE),
        ("+", SMALLINT, DATE, DATE),
        ("=", DATE, TIMESTAMP, BOOLEAN),
        ("<", VARCHAR, INTEGER, BOOLEAN),
        ("=", BOOLEAN, DOUBLE, BOOLEAN),
        ("||", INTEGER, DATE, VARCHAR),
        ("greatest", DATE, TIMESTAMP, TIMESTAMP),
        ("power", INTEGER, decimal(4, 1), DOUBLE),
        ("nullif", TINYINT, DOUBLE, TINYINT),
    ],
)
def test_types_of_two_columns(function: str, left: pa.DataType, right: pa.DataType, expected: pa.DataType) -> None:
    assert resolve(function, (column(left), column(right))).type == expected


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("negate", SMALLINT, SMALLINT),
        ("abs", decimal(4, 1), decimal(4, 1)),
        ("sign", DOUBLE, TINYINT),
        ("floor", INTEGER, DOUBLE),
        ("ceil", decimal(10, 2), decimal(10, 0)),
        ("round", decimal(10, 2), decimal(10, 0)),
        ("round", REAL, REAL),
        ("sqrt", INTEGER, DOUBLE),
        ("length", VARCHAR, BIGINT),
        ("year", DATE, BIGINT),
        ("epoch", TIMESTAMP, DOUBLE),
        ("is_null", BOOLEAN, BOOLEAN),
    ],
)
def test_types_of_one_column(function: str, argument: pa.DataType, expected: pa.DataType) -> None:
    assert resolve(function, (column(argument),)).type == expected


def test_integer_literals_take_the_type_of_the_column() -> None:
    assert resolve("+", (column(TINYINT), ONE)) == Call("+", (column(TINYINT), Literal(1, TINYINT)), TINYINT)
    assert resolve("+", (column(TINYINT), Literal(200, INTEGER))).type == INTEGER
    assert resolve("coalesce", (column(SMALLINT), ONE)).type == SMALLINT
    # A cast is no literal: it says which type is meant.
    assert resolve("+", (column(TINYINT), Cast(Literal(1, BIGINT), INTEGER))).type == INTEGER


def test_text_literals_take_the_type_of_the_column() -> None:
    assert resolve("=", (column(DATE), Literal("2020-01-01", VARCHAR))) == Call(
        "=", (column(DATE), Cast(Literal("2020-01-01", VARCHAR), DATE)), BOOLEAN
    )
    assert resolve("coalesce", (column(INTEGER), Literal("5", VARCHAR))).type == INTEGER
    with pytest.raises(QueryError, match="cannot mix INTEGER and VARCHAR"):
        resolve("coalesce", (column(INTEGER), column(VARCHAR)))


def test_in_finds_one_type_for_all() -> None:
    call = resolve("in", (column(INTEGER), ONE, Literal(Decimal("1.5"), decimal(2, 1))))
    assert {argument.type for argument in call.children} == {decimal(11, 1)}


def test_null_takes_any_type() -> None:
    assert resolve("+", (NOTHING, column(INTEGER))).children[0] == Literal(None, INTEGER)
    assert resolve("upper", (NOTHING,)) == Call("upper", (Literal(None, VARCHAR),), VARCHAR)
    assert resolve("coalesce", (NOTHING, NOTHING)).type == INTEGER
    assert resolve("+", (NOTHING, NOTHING)).type == BIGINT
    assert settle(NOTHING) == Literal(None, INTEGER)
    assert settle(ONE) is ONE
    assert coerce(NOTHING, DATE) == Literal(None, DATE)


def test_case_and_if_are_one_type() -> None:
    condition = resolve(">", (column(INTEGER), ONE))
    assert case((condition,), (ONE,), Literal(Decimal("2.5"), decimal(2, 1))).type == decimal(11, 1)
    assert case((condition,), (column(DATE),)) == Case((condition,), (column(DATE),), Literal(None, DATE))
    assert resolve("if", (condition, column(TINYINT), ONE)).type == TINYINT
    with pytest.raises(QueryError, match="CASE cannot mix"):
        case((condition,), (column(DATE),), column(INTEGER))
    with pytest.raises(QueryError, match="is no condition"):
        case((column(DATE),), (ONE,))


def test_negative_literals() -> None:
    assert resolve("negate", (ONE,)) == Literal(-1, INTEGER)
    assert resolve("negate", (Literal(1 << 63, HUGEINT),)) == Literal(-(1 << 63), BIGINT)
    assert resolve("negate", (Literal(-128, TINYINT),)) == Literal(128, SMALLINT)
    assert isinstance(resolve("negate", (Literal(0.0, DOUBLE),)), Call)


def test_arithmetic_of_decimals_keeps_the_scales_of_both_sides() -> None:
    call = resolve("+", (column(decimal(10, 2)), column(INTEGER)))
    assert call.children == (column(decimal(10, 2)), Cast(column(INTEGER), decimal(10, 0)))


@pytest.mark.parametrize(
    ("function", "arguments", "what", "remedy"),
    [
        ("lenght", (column(VARCHAR),), "no function 'lenght'", "did you mean length"),
        ("zzzzzz", (), "no function 'zzzzzz'", "SHOW FUNCTIONS"),
        ("substring", (column(VARCHAR),), "does not take 1 argument", "substring(text, start[, count])"),
        ("upper", (column(INTEGER),), "does not take (INTEGER)", "upper(text)"),
        ("+", (column(VARCHAR), ONE), "does not take (VARCHAR, INTEGER)", "CAST"),
        ("+", (column(TIMESTAMP), ONE), "does not take", "INTERVAL '1' DAY"),
        ("//", (column(DOUBLE), ONE), "does not take", "floor(a / b)"),
        ("*", (column(decimal(38, 20)), column(decimal(38, 19))), "more than 38 places", "DOUBLE"),
        ("=", (column(DATE), column(INTEGER)), "cannot mix DATE and INTEGER", "CAST"),
        ("like", (column(INTEGER), Literal("a", VARCHAR)), "does not take", "LIKE"),
        ("like", (column(VARCHAR), Literal("a!", VARCHAR), Literal("!", VARCHAR)), "does not take", "behind the last"),
        ("like", (column(VARCHAR), column(VARCHAR), Literal("!", VARCHAR)), "does not take", "constant pattern"),
        ("like", (column(VARCHAR), column(VARCHAR), Literal("!!", VARCHAR)), "does not take", "one character"),
        ("round", (column(DOUBLE), column(INTEGER)), "does not take", "constant"),
        ("round", (column(decimal(4, 1)), Literal(-4, INTEGER)), "does not take", "from -3"),
        ("date_trunc", (Literal("fortnight", VARCHAR), column(DATE)), "does not take", "'hour'"),
        ("date_trunc", (column(VARCHAR), column(DATE)), "does not take", "'hour'"),
        ("year", (column(VARCHAR),), "does not take (VARCHAR)", "CAST(value AS TIMESTAMP)"),
        ("and", (column(DATE), column(BOOLEAN)), "a DATE is no condition", "compare"),
        ("add_interval", (column(INTEGER), ONE), "does not take", "INTERVAL"),
    ],
)
def test_misfits_say_what_to_write(function: str, arguments: tuple[Expression, ...], what: str, remedy: str) -> None:
    with pytest.raises(QueryError) as raised:
        resolve(function, arguments)
    assert what in raised.value.what
    assert raised.value.remedy is not None
    assert remedy in raised.value.remedy


@pytest.mark.parametrize(
    ("source", "target"),
    [(INTEGER, DATE), (TIMESTAMP, BIGINT), (DATE, BOOLEAN), (BOOLEAN, decimal(2, 2)), (REAL, VARCHAR)],
)
def test_there_are_casts_that_do_not_exist(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(QueryError, match="cannot be cast"):
        cast(column(source), target)


def test_casts_to_the_same_type_are_nothing() -> None:
    assert cast(column(DATE), DATE) == column(DATE)
    assert cast(NOTHING, DATE) == Literal(None, DATE)
    assert cast(column(VARCHAR), DATE, safe=True) == Cast(column(VARCHAR), DATE, safe=True)


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("count", VARCHAR, BIGINT),
        ("sum", TINYINT, HUGEINT),
        ("sum", decimal(10, 2), decimal(38, 2)),
        ("sum", REAL, DOUBLE),
        ("AVG", decimal(10, 2), DOUBLE),
        ("min", VARCHAR, VARCHAR),
        ("max", BOOLEAN, BOOLEAN),
        ("min", TIMESTAMP, TIMESTAMP),
    ],
)
def test_types_of_aggregates(function: str, argument: pa.DataType, expected: pa.DataType) -> None:
    call = aggregate_call(function, column(argument), distinct=True)
    assert (call.function, call.result_type, call.distinct) == (function.lower(), expected, True)


def test_count_of_rows_and_of_null() -> None:
    assert aggregate_call("count", None).argument is None
    assert aggregate_call("max", NOTHING).result_type == INTEGER


@pytest.mark.parametrize(("function", "argument"), [("sum", VARCHAR), ("avg", DATE), ("sum", BOOLEAN)])
def test_sums_of_no_numbers(function: str, argument: pa.DataType) -> None:
    with pytest.raises(QueryError, match="takes numbers"):
        aggregate_call(function, column(argument))


def test_unknown_aggregates() -> None:
    with pytest.raises(QueryError) as raised:
        aggregate_call("summe", column(INTEGER))
    assert "sum" in str(raised.value.remedy)
    with pytest.raises(QueryError, match="has no meaning"):
        aggregate_call("sum", None)


def test_names() -> None:
    assert resolve("CHAR_LENGTH", (column(VARCHAR),)) == resolve("length", (column(VARCHAR),))
    assert resolve("datediff", (Literal("DAYS", VARCHAR), column(DATE), column(DATE))).children[0] == Literal(
        "day", VARCHAR
    )
    assert is_function("Upper")
    assert not is_function("reverse")
    assert "substring" in suggest("substrin")
    names = [name for function in FUNCTIONS for name in (function.name, *function.aliases)]
    assert len(names) == len(set(names))
