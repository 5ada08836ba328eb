"""Every scalar function of the closed list has a meaning in DuckDB, and the type that the plan says."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import duckdb
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
    TIMESTAMPTZ,
    VARCHAR,
)
from transom.plan.expression import Call, Case, Cast, Expression, Literal
from transom.plan.functions import FUNCTIONS, Function, resolve
from transom.plan.intervals import interval
from transom.plan.json_functions import JSON_FUNCTIONS
from transom.plan.nested_functions import NESTED_FUNCTIONS, struct_of
from transom.runtimes.reference.expression import SqlScope, expression_sql, literal_sql, type_sql

SAMPLES = (
    Literal(3, INTEGER),
    Literal(2, BIGINT),
    Literal(0.5, DOUBLE),
    Literal(Decimal("1.25"), pa.decimal128(5, 2)),
    Literal(True, BOOLEAN),
    Literal("it's", VARCHAR),
    Literal("day", VARCHAR),
    Literal("%", VARCHAR),
    Literal(date(2024, 2, 29), DATE),
    Literal(datetime(2024, 2, 29, 12, 30), TIMESTAMP),
)
ARRAY = resolve("list_value", (Literal(3, INTEGER), Literal(4, INTEGER)))
STRUCT = struct_of(("p",), (Literal(3, INTEGER),))
OWN_SAMPLES: dict[str, tuple[Expression, ...]] = {
    **{name: (Literal("i", VARCHAR),) for name in ("regexp_matches", "regexp_full_match")},
    **{name: (Literal("%d.%m.%Y", VARCHAR),) for name in ("strptime", "try_strptime")},
    **{name: (Literal("DD.MM.YYYY", VARCHAR),) for name in ("to_timestamp", "to_date")},
    **{function.name: (ARRAY, STRUCT, Literal("p", VARCHAR)) for function in NESTED_FUNCTIONS},
    "time_bucket": (interval(0, 300_000_000),),
    "timezone": (Literal("UTC", VARCHAR), Literal(datetime(2024, 3, 31, 2, 30), TIMESTAMPTZ)),
    **{function.name: (Literal('{"day": [1]}', VARCHAR),) for function in JSON_FUNCTIONS},
}
"""What only these functions take."""
NUMBERS = {"list_value": (1, 2, 3), "struct_pack": (2,)}
"""How many arguments these take here: of [] DuckDB says no type, and a struct has a name for each value."""


def sql(expression: Expression) -> str:
    def no_sub_query(*_: Any) -> str:
        raise AssertionError("there is no sub-query here")

    return expression_sql(expression, SqlScope(()), no_sub_query)


def calls(function: Function) -> list[Expression]:
    """Some calls that the plan accepts, at least one for each number of arguments up to three."""
    found = []
    most = 3 if function.most is None else min(function.most, 3)
    for n in NUMBERS.get(function.name, range(function.least, most + 1)):
        accepted = []
        for arguments in product((*SAMPLES, *OWN_SAMPLES.get(function.name, ())), repeat=n):
            try:
                call = resolve(function.name, arguments)
            except QueryError:
                continue
            accepted.append(call)
            if len(accepted) == 5:
                break
        assert accepted, f"no call of {function.usage} with {n} arguments was accepted"
        found += accepted
    return found


def without_cast(expression: Expression) -> str:
    """The text without the cast around a call, so that DuckDB reports the type by itself."""
    text, type_ = sql(expression), type_sql(expression.type)
    cast = isinstance(expression, Call) and expression.type != BOOLEAN
    return text.removeprefix("CAST").removesuffix(f" AS {type_})") + ")" if cast else text


@pytest.mark.parametrize("function", FUNCTIONS, ids=[function.name for function in FUNCTIONS])
def test_every_function_runs_and_has_its_type(function: Function) -> None:
    with duckdb.connect(":memory:") as connection:
        for expression in calls(function):
            text = without_cast(expression)
            ((given,),) = connection.execute(f"SELECT typeof({text})").fetchall()
            given = given.replace(" ", "").replace("FLOAT", "REAL").replace("UBIGINT", "BIGINT")
            assert given == type_sql(expression.type).replace(" ", ""), text


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, VARCHAR),
        (True, BOOLEAN),
        (-(2**63), BIGINT),
        (-32768, SMALLINT),
        (10**38 - 1, HUGEINT),
        (0.1, DOUBLE),
        (5e-324, DOUBLE),
        (float("inf"), DOUBLE),
        (0.5, REAL),
        (Decimal("-0.05"), pa.decimal128(4, 2)),
        ("", VARCHAR),
        ('it\'s \\ "quoted" $1 ? \n ü \x00 end', VARCHAR),
        (date(1, 1, 1), DATE),
        (date(9999, 12, 31), DATE),
        (datetime(1, 1, 1), TIMESTAMP),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), TIMESTAMP),
    ],
)
def test_literals_come_back_as_they_were(value: Any, type_: pa.DataType) -> None:
    with duckdb.connect(":memory:") as connection:
        assert connection.execute(f"SELECT {literal_sql(value, type_)}").fetchall() == [(value,)]


def test_casts_and_case() -> None:
    number = Cast(Literal("12", VARCHAR), INTEGER)
    none = Cast(Literal("no", VARCHAR), INTEGER, safe=True)
    chosen = Case((Literal(False, BOOLEAN),), (Literal(1, INTEGER),), Literal(2, INTEGER))
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(f"SELECT {sql(number)}, {sql(none)}, {sql(chosen)}").fetchall()
    assert found == [(12, None, 2)]
