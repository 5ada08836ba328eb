"""Scalar expressions: constants, operators, functions, and how they are typed and printed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.cql.queries import bind, rejected
from transom.core.schema import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, INTEGER, TIMESTAMP, VARCHAR
from transom.plan.algebra import Project
from transom.plan.expression import Call, Case, Cast, Expression, Literal


def value(text: str) -> Expression:
    bound = bind(f"SELECT {text} AS x FROM Events")
    assert isinstance(bound, Project)
    (expression,) = bound.expressions
    return expression


@pytest.mark.parametrize(
    ("text", "constant", "type_"),
    [
        ("1", 1, INTEGER),
        ("2147483647", 2147483647, INTEGER),
        ("2147483648", 2147483648, BIGINT),
        ("9223372036854775808", Decimal(9223372036854775808), HUGEINT),
        ("1_000", 1000, INTEGER),
        ("-5", -5, INTEGER),
        ("1.50", Decimal("1.50"), pa.decimal128(3, 2)),
        ("0.5", Decimal("0.5"), pa.decimal128(2, 1)),
        (".5", Decimal("0.5"), pa.decimal128(1, 1)),
        ("1e3", 1000.0, DOUBLE),
        ("1.5E-2", 0.015, DOUBLE),
        ("1." + "0" * 50, 1.0, DOUBLE),
        ("TRUE", True, BOOLEAN),
        ("false", False, BOOLEAN),
        ("'it''s'", "it's", VARCHAR),
        ("DATE '2024-02-29'", date(2024, 2, 29), DATE),
        ("date '2024-2-9'", date(2024, 2, 9), DATE),
        ("TIMESTAMP '2024-02-29'", datetime(2024, 2, 29), TIMESTAMP),
        ("TIMESTAMP '2024-02-29 10:20:30.5'", datetime(2024, 2, 29, 10, 20, 30, 500_000), TIMESTAMP),
        ("timestamp '2024-02-29T10:20'", datetime(2024, 2, 29, 10, 20), TIMESTAMP),
    ],
)
def test_constants(text: str, constant: object, type_: pa.DataType) -> None:
    assert value(text) == Literal(constant, type_)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("rate + 1 * 2", "(rate + CAST((1 * 2) AS DOUBLE))"),
        ("(big + 1) * 2", "((big + 1) * 2)"),
        ("big // 2 % 3", "((big // 2) % 3)"),
        ("- big", "negate(big)"),
        ("+ big", "big"),
        ("name || 'x' || name", "((name || 'x') || name)"),
        ("big = 1 AND ok OR NOT ok", "(((big = 1) AND ok) OR not(ok))"),
        ("big <> 1", "(big <> 1)"),
        ("big != 1", "(big <> 1)"),
        ("big BETWEEN 1 AND 2 AND ok", "(((big >= 1) AND (big <= 2)) AND ok)"),
        ("big NOT BETWEEN 1 AND 2", "not(((big >= 1) AND (big <= 2)))"),
        ("big IN (1, 2)", "big IN (1, 2)"),
        ("big NOT IN (1, 2)", "not(big IN (1, 2))"),
        ("name LIKE 'a%'", "like(name, 'a%')"),
        ("name NOT LIKE 'a!%' ESCAPE '!'", "not(like(name, 'a!%', '!'))"),
        ("name ILIKE 'a%'", "ilike(name, 'a%')"),
        ("name IS NULL", "is_null(name)"),
        ("name IS NOT NULL", "not(is_null(name))"),
        ("big = 1 IS NULL", "is_null((big = 1))"),
        ("ok IS TRUE", "is_not_distinct(ok, TRUE)"),
        ("ok IS NOT FALSE", "not(is_not_distinct(ok, FALSE))"),
        ("big IS DISTINCT FROM 1", "not(is_not_distinct(big, 1))"),
        ("big IS NOT DISTINCT FROM NULL", "is_not_distinct(big, NULL)"),
        ("CASE WHEN ok THEN 1 WHEN NOT ok THEN 2 END", "CASE WHEN ok THEN 1 WHEN not(ok) THEN 2 ELSE NULL END"),
        ("CASE big WHEN 1 THEN 'a' ELSE 'b' END", "CASE WHEN (big = 1) THEN 'a' ELSE 'b' END"),
        ("CAST(big AS VARCHAR)", "CAST(big AS VARCHAR)"),
        ("TRY_CAST(name AS INTEGER)", "TRY_CAST(name AS INTEGER)"),
        ("name::DOUBLE::BIGINT", "CAST(CAST(name AS DOUBLE) AS BIGINT)"),
        ("-1::BIGINT", "negate(CAST(1 AS BIGINT))"),
        ("COALESCE(name, 'x')", "coalesce(name, 'x')"),
        ("UPPER(name)", "upper(name)"),
        ("left(name, 2)", "left(name, 2)"),
        ("SUBSTRING(name FROM 2 FOR 3)", "substring(name, 2, 3)"),
        ("substring(name, 2)", "substring(name, 2)"),
        ("TRIM(name)", "trim(name)"),
        ("TRIM(LEADING 'x' FROM name)", "ltrim(name, 'x')"),
        ("TRIM(BOTH FROM name)", "trim(name)"),
        ("POSITION('x' IN name)", "position(name, 'x')"),
        ("EXTRACT(YEAR FROM ts)", "year(ts)"),
        ("date_part('dow', ts)", "dayofweek(ts)"),
        ("DATE_TRUNC('hour', ts)", "date_trunc('hour', ts)"),
        ("ts + INTERVAL '1' HOUR", "add_interval(ts, 3600000000)"),
        ("ts + INTERVAL '1' YEAR", "add_months(ts, 12, 0)"),
        ("ts - INTERVAL '1 month 2 days'", "add_months(ts, -1, -172800000000)"),
        ("ts + INTERVAL '1-6' YEAR TO MONTH", "add_months(ts, 18, 0)"),
        ("ts - INTERVAL '1 12:30' DAY TO MINUTE", "add_interval(ts, -131400000000)"),
        ("ts + '2 hours'::INTERVAL", "add_interval(ts, 7200000000)"),
        ("ts - ts < INTERVAL '1' HOUR", "(date_diff('microsecond', ts, ts) < 3600000000)"),
        ("ts - INTERVAL '90 minutes'", "add_interval(ts, -5400000000)"),
        ("INTERVAL 2 SECONDS + ts", "add_interval(ts, 2000000)"),
        ("(ts - (INTERVAL '1' DAY)) < ts", "(add_interval(ts, -86400000000) < ts)"),
        ("born + 1", "(born + 1)"),
    ],
)
def test_expressions(text: str, printed: str) -> None:
    assert str(value(text)) == printed


def test_types_of_results() -> None:
    assert value("price * 2").type == pa.decimal128(18, 2)
    assert value("big / 2").type == DOUBLE
    assert value("CASE WHEN ok THEN 1 ELSE 2.5 END").type == pa.decimal128(11, 1)
    assert value("NULLIF(big, 1)").type == BIGINT
    assert isinstance(value("NULLIF(big, 1)"), Case)
    assert isinstance(value("CAST('2024-01-01' AS DATE)"), Cast)


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_long_chains_are_one_call(word: str) -> None:
    chain = value(f" {word} ".join(f"big = {i}" for i in range(1000)))
    assert isinstance(chain, Call) and len(chain.arguments) == 1000
    assert str(chain.arguments[0]) == "(big = 0)"


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("now()", "wall clock", "time column"),
        ("CURRENT_TIMESTAMP", "wall clock", "time column"),
        ("current_date", "wall clock", "time column"),
        ("today()", "wall clock", "time column"),
        ("random()", "chance", "same answer"),
        ("uuid()", "chance", "same answer"),
        ("uper(name)", "no function 'uper'", "upper"),
        ("upper(name, name)", "does not take 2 arguments", "upper(text)"),
        ("upper(big)", "does not take (BIGINT)", "upper(text)"),
        ("name + 1", "does not take", "CAST"),
        ("ok + ts", "'+'", "INTERVAL"),
        ("ok = ts", "cannot mix", "CAST"),
        ("NOT ts", "no condition", "compare"),
        ("upper(DISTINCT name)", "DISTINCT is for those", "leave DISTINCT out"),
        ("sum(*)", "sum(*)", "sum(column)"),
        ("sum(big, 1)", "one argument", "SUM(a)"),
        ("sum(sum(big))", "an aggregate cannot hold", "sub-query"),
        ("upper(name) OVER ()", "UPPER with OVER", "LAG, LEAD"),
        ("sum(big) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)", "ends before it begins", "PRECEDING"),
        ("sum(big) OVER (ORDER BY ts ROWS BETWEEN -1 PRECEDING AND 1 FOLLOWING)", "a number of rows", "PRECEDING"),
        ("sum(big) OVER (ROWS 2 PRECEDING EXCLUDE TIES)", "EXCLUDE", "leave it out"),
        ("sum(big) OVER (ROWS 2 BEFORE)", "PRECEDING is missing", "PRECEDING"),
        ("sum(big) OVER (RANGE 2 PRECEDING)", "takes one value in ORDER BY", "ORDER BY ts RANGE"),
        ("sum(big) OVER (ORDER BY name RANGE 2 PRECEDING)", "does not go by VARCHAR", "a time or a whole number"),
        ("sum(big) OVER (ORDER BY ts RANGE 2 PRECEDING)", "an interval of days and less", "INTERVAL '1' HOUR"),
        ("sum(big) OVER (ORDER BY ts RANGE INTERVAL '1' MONTH PRECEDING)", "of days and less", "INTERVAL '1' HOUR"),
        ("sum(big) OVER (ORDER BY big RANGE INTERVAL '1' HOUR PRECEDING)", "whole and constant", "10 PRECEDING"),
        ("sum(big) OVER (ORDER BY big RANGE BETWEEN 1 FOLLOWING AND 2 PRECEDING)", "ends before", "PRECEDING"),
        ("lag(big, big) OVER ()", "a constant number of rows", "LAG(value, 2)"),
        ("lag(big, 1, name) OVER ()", "the default of LAG", "CAST"),
        ("lag(big, 1, 2, 3) OVER ()", "LAG does not take this", "(value[, rows[, default]])"),
        ("first_value(big) FILTER (WHERE ok) OVER ()", "neither FILTER nor ORDER BY", "CASE WHEN"),
        ("sum(sum(big) OVER ()) OVER ()", "OVER cannot hold SUM with OVER", "sub-query"),
        ("sum(big) FILTER (ok)", "FILTER takes a condition", "FILTER (WHERE condition)"),
        ("sum(big) FILTER (WHERE sum(big) > 1)", "an aggregate cannot hold", "sub-query"),
        ("upper(name) FILTER (WHERE ok)", "'upper' is no aggregate", "CASE WHEN"),
        ("bool_and(ts)", "no condition", "compare"),
        ("first(big)", "FIRST has no order", "ORDER BY"),
        ("sum(big ORDER BY ts)", "does not depend on an order", "leave ORDER BY out"),
        ("upper(name ORDER BY ts)", "'upper' is no aggregate", "leave it out"),
        ("quantile_cont(big, 2)", "from 0 to 1", "0.95"),
        ("quantile_disc(big, 0.0000000001)", "from 0 to 1", "9 digits"),
        ("median(name)", "nothing between values of type VARCHAR", "QUANTILE_DISC"),
        ("arg_min(big)", "ARG_MIN takes 2 arguments", "ARG_MIN(a, b)"),
        ("percentile_disc(0.5)", "needs its value in WITHIN GROUP", "WITHIN GROUP (ORDER BY a)"),
        ("approx_percentile(big, 0.5)", "needs its value in WITHIN GROUP", "or QUANTILE_CONT(a, 0.95)"),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY big DESC)", "one value, in ascending order", "WITHIN GROUP"),
        ("first(big ORDER BY ts NULLS)", "NULLS is not followed", "NULLS FIRST"),
        ("string_agg(name, name)", "constant text", "STRING_AGG(a, ', ' ORDER BY b)"),
        ("string_agg(DISTINCT name ORDER BY ts)", "nothing but themselves", "leave DISTINCT out"),
        ("stddev(name)", "takes numbers", "CAST"),
        ("(SELECT 1 FROM S)", "may have more than one row", "MAX(..)"),
        ("(SELECT MIN(A), MAX(A) FROM S)", "has 2 columns", "one column"),
        ("(big, ts - ts)", "no INTERVAL within arrays and structs", "epoch(later - earlier)"),
        ("big[1]", "is no array", "FROM S [ROWS 10]"),
        ("big[ROWS 10]", "a window can only follow", "FROM S [ROWS 10]"),
        ("[1, DATE '2024-05-01']", "cannot mix INTEGER and DATE", "CAST"),
        ("{'a': 1, 'A': 2}", "one field", "different names"),
        ("{'a': 1}.b", "no field 'b'", "the fields are a"),
        ("[1] || 'x'", "cannot be cast to VARCHAR", "arrays to arrays"),
        ("CAST([1] AS STRUCT(a INTEGER))", "cannot be cast", "arrays to arrays"),
        ("[1] + 1", "does not take (INTEGER[], INTEGER)", "numbers"),
        ("INTERVAL '1' MONTH", "an INTERVAL of months cannot be a column", "write days"),
        ("MAX(big * INTERVAL '1' MONTH)", "an INTERVAL of months cannot be a column", "write days"),
        ("coalesce(ts - ts, INTERVAL '1' MONTH)", "an INTERVAL of months cannot be a column", "write days"),
        ("AVG(ts - ts)", "avg takes numbers, not INTERVAL", "avg(epoch(value))"),
        ("[ts - ts]", "no INTERVAL within arrays", "epoch(later - earlier)"),
        ("ARRAY_AGG(ts - ts)", "no INTERVAL within arrays", "epoch(later - earlier)"),
        ("(ts - ts) || 'x'", "an INTERVAL cannot be cast to VARCHAR", "epoch(interval)"),
        ("CAST(big AS INTERVAL)", "a BIGINT cannot be cast to INTERVAL", "n * INTERVAL '1' SECOND"),
        ("ts + INTERVAL '1.5' MONTH", "no interval", "INTERVAL '10' SECOND"),
        ("ts + INTERVAL '1' DAY TO YEAR", "no interval", "INTERVAL '10' SECOND"),
        ("ts + INTERVAL '999999999999' YEAR", "too long", "shorter"),
        ("CAST(name AS INTERVAL)", "a VARCHAR cannot be cast to INTERVAL", "n * INTERVAL '1' SECOND"),
        ("regexp_matches(name, '(')", "does not take this pattern: missing )", "regexp_matches(text"),
        ("regexp_matches(name, name)", "does not take", "a constant pattern"),
        ("strftime(ts, '%Q')", "does not take", "'%Q' is not known"),
        ("to_char(ts, 'Month')", "does not take", "it knows only usual parts"),
        ("time_bucket(INTERVAL '1 month 1 day', ts)", "does not take", "a constant above 0"),
        ("ts + INTERVAL big DAY", "is a constant", "INTERVAL '10' SECOND"),
        ("ts + INTERVAL '" + "9" * 20 + "' DAY", "too long", "shorter"),
        ("DATE '2024-02-30'", "no date", "DATE '2024-05-01'"),
        ("TIMESTAMP '10:00'", "no timestamp", "TIMESTAMP '2024-05-01 10:00:00'"),
        ("CAST(ok AS DATE)", "cannot be cast", "cast between"),
        ("CAST(ok AS THING)", "no type 'THING'", "VARCHAR"),
        ("CAST(ok)", "AS is missing", "write AS"),
        ("CASE WHEN ok THEN 1", "END is missing", "write END"),
        ("CASE WHEN ok 1 END", "THEN is missing", "write THEN"),
        ("CASE END", "a value is missing", "column"),
        ("CASE WHEN ok THEN 1 ELSE name END", "cannot mix", "CAST"),
        ("big BETWEEN 1 OR 2", "AND is missing", "write AND"),
        ("1 < big < 5", "cannot be chained", "a < b AND b < c"),
        ("big IN 5", "IN takes a list", "IN (1, 2, 3)"),
        ("big IN ()", "a value is missing", "column"),
        ("ok IS 5", "IS cannot be followed", "IS NULL"),
        ("EXTRACT(millennium FROM ts)", "no such part", "year"),
        ("name AT TIME ZONE 'utc'", "'timezone' does not take (VARCHAR, VARCHAR)", "AT TIME ZONE"),
        ("$1", "missing before '$'", "column"),
        ("? + 1", "missing before '?'", "column"),
        ("1 +", "missing before 'AS'", "column"),
        ("* + 1", "* is no value", "COUNT(*)"),
        ("1e999", "too great", "1.8e308"),
        ("0x1F", "'0x1F' is no name", "digits"),
        ("a.b.c.d", "there is no input 'a'", "the inputs are"),
        ("'a' 'b'", "''", "double quotes"),
    ],
)
def test_rejected_expressions(text: str, what: str, remedy: str) -> None:
    error = rejected(f"SELECT {text} AS x FROM Events")
    if what != "''":
        assert what in error.what
    assert error.remedy is not None and remedy in error.remedy
