"""Expressions as people write them: DuckDB, which has to infer all types by itself, finds ours, and our values.

`test_scalar_against_duckdb.py` spells out every cast, and so does not see what we infer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.duckdb_scalar import LIMITS, open_duckdb
from tests.kernels.scalar_expressions import SAMPLES, TAKES
from tests.profile import examples
from transom.core.errors import EvaluationError, QueryError
from transom.core.schema import DURATION, INTEGER
from transom.cql.statements import parse_statements
from transom.kernels.nested import held_rows, shown
from transom.kernels.scalar import evaluate
from transom.plan.algebra import Project
from transom.plan.catalogue import Catalogue, QueryStatement, TableDefinition
from transom.plan.json_functions import JSON_FUNCTIONS
from transom.plan.nested_functions import NESTED_FUNCTIONS

EXAMPLES = examples(by_day=80, at_night=5_000)

TABLE = """CREATE TABLE rows (b BOOLEAN, t TINYINT, s SMALLINT, i INTEGER, n BIGINT, h HUGEINT, e DECIMAL(4, 1),
  w DECIMAL(18, 3), d DECIMAL(38, 4), x DECIMAL(38, 38), f DOUBLE, v VARCHAR, da DATE, ts TIMESTAMP, tz TIMESTAMPTZ,
  iv INTERVAL);"""
ROWS = [
    "TRUE, 1, 2, 3, 4, 5, 7.5, 8.125, 6.5, '0.5', 9.5, 'abc', '2020-01-01', "
    "'2020-01-01 00:00:00', '2020-01-01 00:00:00+02', '1 hour'",
    ", ".join(["NULL"] * 16),
    "FALSE, -128, -32768, -2147483648, -9223372036854775808, -10000000000000000000000000000000000000, -999.9, "
    "-999999999999999.999, -9999999999999999999999999999999999.9999, '-0.99999999999999999999999999999999999999', "
    "'-inf', '', '0001-01-01', '0001-01-01 00:00:00', '0001-01-01 00:00:00+00', "
    "'-1 microsecond'",
    "FALSE, 0, 0, 0, 0, 0, 0, 0, 0, 0, '-0.0', '1', '1970-01-01', '1970-01-01 00:00:00', "
    "'1970-01-01 00:00:00-01', '0 days'",
    "TRUE, 127, 32767, 2147483647, 9223372036854775807, 99999999999999999999999999999999999999, 999.9, "
    "999999999999999.999, 9999999999999999999999999999999999.9999, '0.99999999999999999999999999999999999999', "
    "'nan', 'ÀßİΣ👍', '9999-12-31', '9999-12-31 23:59:59.999999', "
    "'9999-12-31 23:59:59.999999+00', '20000 days 23:59:59.999999'",
]  # fmt: skip
CASES = [
    "h % d", "d % h", "h % 2.5", "x % n", "n % x", "w % h", "d % d", "d % n", "0.1 - NULL", "NULL * e", "e % NULL",
    "h + NULL", "NULL + 1", "IF(FALSE, 0.1 - NULL, 10000000000000000000000000000000000000)",
    "COALESCE(0.1 - NULL, 'a')", "NULL || v", "1 || NULL", "NULLIF(NULL, 0.5) % d", "ROUND(e, NULL)",
    "SUBSTRING(v, 1099511627776, 2)", "SUBSTRING(NULL, 1099511627776, 2)", "SUBSTRING(v, 3, -1099511627776)",
    "SUBSTRING(v, n)", "SUBSTRING(v, n, n)", "LEFT(v, 4294967295)", "LEFT(v, 4294967296)", "LEFT(v, n)", "RIGHT(v, n)",
    "RIGHT(v, -9223372036854775808)", "-12345678901234567890123456789012345678",
    "-0.1234567890123456789012345678901234567",
    "ts + INTERVAL '1' MONTH", "da - INTERVAL '1 year 1 day'", "ts + INTERVAL (t) DAY", "ts + t * INTERVAL '1' MONTH",
    "ts + to_hours(t)", "ts - INTERVAL '1 month -2 days 03:04:05.5'",
    "INTERVAL '1' DAY + da", "- INTERVAL '2' DAY + ts",
    "ts + (INTERVAL '1' DAY - INTERVAL '1' MONTH)", "ts - da > INTERVAL '1 month'",
    "epoch(ts - TIMESTAMP '2000-01-01')",
    "ts - TIMESTAMP '2000-01-01' BETWEEN INTERVAL '0' SECOND AND 9999 * INTERVAL '1' DAY", "(ts - da) IS NULL",
    "INTERVAL '1 month' = INTERVAL '30 days'", "ts - NULL < INTERVAL '1' DAY", "EXTRACT(epoch FROM da - ts)",
    "da + '1 year'::INTERVAL", "time_bucket(INTERVAL '7 hours', da)", "strftime('%Y', da)", "regexp_matches(v, NULL)",
    "tz AT TIME ZONE 'Europe/Berlin'", "ts AT TIME ZONE 'Asia/Tokyo'",
    "tz AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo'",
    "tz::VARCHAR", "tz IN (TIMESTAMPTZ '2020-01-01 00:00:00+02', TIMESTAMPTZ '1970-01-01 00:00:00+00')",
    "tz::DATE", "tz::TIMESTAMP", "da::TIMESTAMPTZ", "tz = ts", "tz - ts > INTERVAL '1' HOUR",
    "tz BETWEEN '2020-01-01 00:00:00-03' AND TIMESTAMPTZ '2020-01-02 00:00:00+02'",
    "v::TIMESTAMPTZ", "tz::INTEGER",
    "COALESCE(tz, da)", "CASE WHEN b THEN tz ELSE ts END", "tz + INTERVAL '1 month -2 days 03:04:05.5'",
    "(TIMESTAMP WITH TIME ZONE '2020-01-01 00:00:00.5-0930')::VARCHAR",
    "'{\"a\": [1.50]}'::JSON -> '$.a[0]'", "'{\"a\": [1.50]}' ->> 'a'", "('[7, 8]'::JSON -> -1)::INTEGER", "v::JSON",
    "json_type('[1]', '$[0]')", "upper('{\"a\": 1}'::JSON)", "'[1]'::JSON = '[1]'",
    "json_value('{\"a\": \"x\"}', '$.a')",
    "COALESCE(CAST(NULL AS JSON), '1')", "'1'::JSON || v",
    "x = e", "x <> s", "GREATEST(e, x, s)", "CASE WHEN b THEN x ELSE s END", "e BETWEEN x AND d",
]  # fmt: skip


INTERVALS = [
    "({0} - {1})", "(iv * t)", "(t * iv)", "(- iv)", "(iv + INTERVAL '1' DAY)", "(iv - ({0} - {1}))", "({0} + iv)",
    "({0} - iv)",
    "(iv < {0} - {1})", "(iv >= INTERVAL '1 month')", "(iv = iv * t)", "(iv IS NOT DISTINCT FROM NULL)", "(iv IS NULL)",
    "COALESCE(iv, INTERVAL '1' DAY)", "GREATEST(iv, INTERVAL '1' MINUTE, NULL)", "LEAST(iv, {0} - {1})",
    "NULLIF(iv, INTERVAL '60 minutes')", "CASE WHEN b THEN iv ELSE {0} - {1} END", "IF(b, iv, NULL)",
    "(iv IN (INTERVAL '0' DAY, {0} - {1}))", "epoch(iv)", "(iv BETWEEN INTERVAL '0' DAY AND {0} - {1})",
]  # fmt: skip
"""What is made of the column of intervals and of two moments."""


def as_ours(found: pa.Array, type_: pa.DataType) -> pa.Array:
    if found.type != pa.month_day_nano_interval():
        return found.cast(type_)
    parts = [each.as_py() for each in found]
    assert all(each is None or each.months == 0 for each in parts)
    micros = [None if each is None else each.days * 86_400_000_000 + each.nanoseconds // 1000 for each in parts]
    return pa.array(micros, pa.int64()).view(type_)


class Written:
    """The table in DuckDB and in the engine."""

    def __init__(self) -> None:
        self.duckdb = open_duckdb()
        self.duckdb.execute(TABLE)
        for row in ROWS:
            self.duckdb.execute(f"INSERT INTO rows VALUES ({row})")
        catalogue = Catalogue()
        parse_statements(TABLE, catalogue)
        table = catalogue.relations["rows"]
        assert isinstance(table, TableDefinition)
        given = self.duckdb.sql("SELECT * FROM rows").to_arrow_table().combine_chunks()
        arrays = [as_ours(given.column(i).combine_chunks(), column.type) for i, column in enumerate(table.columns)]
        self.batch = held_rows(pa.record_batch(arrays, table.columns.names))

    def check(self, text: str) -> None:
        """Row by row: one that fails must not hide the others. What we reject to plan is ours to reject."""
        try:
            statement = parse_statements(f"{TABLE} SELECT {text} AS z FROM rows;", Catalogue())[-1]
        except QueryError:
            return
        assert isinstance(statement, QueryStatement) and isinstance(statement.query, Project)
        (expression,) = statement.query.expressions
        for row in range(len(ROWS)):
            theirs = self.ask(text, row)
            if theirs == "refused":
                return
            try:
                mine = shown(evaluate(expression, self.batch.slice(row, 1)), expression.type)
            except EvaluationError as error:
                assert theirs is None or any(limit in str(error) for limit in LIMITS), (text, row, str(error), theirs)
                continue
            assert isinstance(theirs, pa.Array), (text, row, mine)
            assert mine.type == (INTEGER if theirs.type == pa.null() else theirs.type), (text, mine.type, theirs.type)
            assert same(mine[0].as_py(), theirs[0].as_py()), (text, row, mine, theirs)

    def ask(self, text: str, row: int) -> Any:
        """DuckDB's answer; None where it fails, "rejected" where it does not take the types."""
        try:
            answer = self.duckdb.sql(f"SELECT {text} AS z FROM rows WHERE rowid = {row}").to_arrow_table()
            found = answer["z"].combine_chunks()
            if found.type == pa.month_day_nano_interval():
                return as_ours(found, DURATION)
            return found.storage if isinstance(found.type, pa.JsonType) else found
        except (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException):
            return None
        except duckdb.BinderException:
            return "refused"


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float) and (math.isnan(mine) or math.isnan(theirs)):
        return math.isnan(mine) and math.isnan(theirs)
    signs = [math.copysign(1, value) for value in (mine, theirs) if isinstance(value, float)]
    return type(mine) is type(theirs) and bool(mine == theirs) and len(set(signs)) <= 1


@pytest.fixture(scope="module")
def written() -> Iterator[Written]:
    found = Written()
    yield found
    found.duckdb.close()


@pytest.mark.parametrize("text", CASES)
def test_types_and_values_are_those_that_duckdb_infers(written: Written, text: str) -> None:
    written.check(text)


COLUMNS: dict[str, Sequence[str]] = {
    "number": "tsinhewdxf", "whole": "tsinh", "int": "tsi", "small": "tsin", "text": "v", "bool": "b", "date": ("da",),
    "moment": ("da", "ts", "tz"), "any": (*"btinhewdxfv", "da", "ts", "tz"),
}  # fmt: skip
WHOLE = ("0", "1", "-1", "7", "NULL", "10000000000000000000000000000000000000")
CONSTANTS: dict[str, tuple[str, ...]] = {
    "number": (*WHOLE, "0.1", "2.5", "1e3", "1e308", "9223372036854775808", "99999999999999999999.5",
               "0.0000000000000000000000000000000000001", "-99999999999999999999999999999999999999"),
    "whole": WHOLE, "int": WHOLE[:5],
    "small": WHOLE[:5], "text": ("''", "'a'", "'1'", "'À'", "NULL"), "bool": ("TRUE", "NULL"),
    "date": ("DATE '2020-02-29'", "NULL"), "moment": ("TIMESTAMP '1969-12-31 23:59:59.5'", "NULL"),
    "pattern": ("'%a%'", "'_'", "NULL"), "escape": ("'!'",), "characters": ("''", "'a'", "'👍'", "NULL"),
    "places": ("0", "-1", "2", "30", "NULL"), "part": ("'day'", "'hour'"), "micros": ("1",),
    "months": ("1",),
    **{kind: tuple("'" + one.replace("'", "''") + "'" for one in found) for kind, found in SAMPLES.items()},
    "group": ("0", "1", "2"),
    "instant": ("tz", "ts"),
    "width": ("INTERVAL '5' MINUTE", "INTERVAL '1 day'", "INTERVAL '2 months'"),
    "offset": ("INTERVAL '90' SECOND",),
    "index": ("0", "1", "-1", "3", "NULL", "1099511627776", "-1099511627776", "9223372036854775807"),
}  # fmt: skip
INFIX = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "||", "&", "|", "<<", ">>"}
TEMPLATES = {
    "~": "(~ {0})", "negate": "(- {0})", "not": "(NOT {0})", "is_null": "({0} IS NULL)", "position": "strpos({0}, {1})",
    "is_not_distinct": "({0} IS NOT DISTINCT FROM {1})", "add_interval": "({0} + INTERVAL '1' DAY)",
    "add_months": "({0} + INTERVAL '1' MONTH)",
}  # fmt: skip
# DuckDB has no to_char, date_format, to_date, split_index, and no to_timestamp of texts; it does not promise the order
# of AND and OR, and repeat(NULL, n) is a BLOB there; NULL AT TIME ZONE is a TIME.
LEFT_OUT = {
    *("timezone", "to_char", "date_format", "to_date", "to_timestamp", "split_index"),
    *("and", "or", "repeat", "like", "ilike", "concat"),
    *(function.name for function in NESTED_FUNCTIONS),  # nested.md has them as they are written
    *(function.name for function in JSON_FUNCTIONS),
}


def argument(random: Random, kind: str, depth: int) -> str:
    if kind in ("same", "constant"):
        kind = random.choice(("number", "text", "moment"))
    if depth and kind in COLUMNS and random.random() < 0.4:
        return call(random, depth - 1)
    if kind in COLUMNS and (kind == "any" or random.random() < 0.55):
        return random.choice(COLUMNS[kind])
    return random.choice(CONSTANTS[kind])


def call(random: Random, depth: int) -> str:
    name = random.choice(sorted(set(TAKES) - LEFT_OUT))
    takes = random.choice([kinds for kinds in TAKES[name] if "array" not in kinds])
    arguments = [argument(random, kind, depth) for kind in takes]
    if name in INFIX:
        return f"({arguments[0]} {name} {arguments[1]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if name in TEMPLATES:
        return TEMPLATES[name].format(*arguments)
    return f"{name}({', '.join(arguments)})"


@pytest.mark.parametrize("template", INTERVALS)
def test_intervals_are_those_that_duckdb_infers(written: Written, template: str) -> None:
    for one in ("da", "ts", "tz", "TIMESTAMP '1969-12-31 23:59:59.5'", "NULL::TIMESTAMP"):
        for other in ("ts", "DATE '2020-02-29'"):
            if not (one == "da" and other.startswith("DATE")):  # which is a number of days
                text = template.format(one, other)
                parse_statements(f"{TABLE} SELECT {text} AS z FROM rows;", Catalogue())
                written.check(text)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**48))
def test_any_call_is_typed_as_duckdb_types_it(written: Written, seed: int) -> None:
    written.check(call(Random(seed), 0))
