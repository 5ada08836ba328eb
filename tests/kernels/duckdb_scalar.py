"""DuckDB's answer to a scalar expression, and the comparison with the engine's."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from transom.core.errors import EvaluationError
from transom.core.schema import HUGEINT, JSON, VARCHAR, arrow_type, is_array, is_nested, sql_name
from transom.kernels.nested import held_rows, shown
from transom.kernels.scalar import evaluate
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal

OPERATORS = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "||", "&", "|", "<<", ">>"}


def sql(expression: Expression) -> str:
    """SQL with every cast and type spelled out, so that DuckDB has nothing left to infer."""
    if isinstance(expression, ColumnRef):
        name = f"c{expression.index}"
        return f"CAST({name} AS {type_sql(expression.type)})" if expression.type in (HUGEINT, JSON) else name
    if isinstance(expression, Literal):
        return f"CAST({sql_literal(expression.value)} AS {type_sql(expression.type)})"
    if isinstance(expression, Cast):
        kind = "TRY_CAST" if expression.safe else "CAST"
        whole = f"{kind}({sql(expression.operand)} AS {type_sql(expression.target)})"
        # The sign of a NaN is not a part of its value, though DuckDB writes it.
        written = expression.target == VARCHAR and pa.types.is_floating(expression.operand.type)
        return f"replace({whole}, '-nan', 'nan')" if written else whole
    if isinstance(expression, Case):
        arms = zip(expression.conditions, expression.results, strict=True)
        whens = " ".join(f"WHEN {sql(condition)} THEN {sql(result)}" for condition, result in arms)
        return f"(CASE {whens} ELSE {sql(expression.otherwise)} END)"
    assert isinstance(expression, Call)
    return sql_call(expression.function, [sql(a) for a in expression.arguments], expression)


def type_sql(type_: pa.DataType) -> str:
    if is_array(type_):
        return f"{type_sql(type_.value_type)}[]"
    if is_nested(type_):
        return f"STRUCT({', '.join(f'{field.name} {type_sql(field.type)}' for field in type_)})"
    return "HUGEINT" if type_ == HUGEINT else sql_name(type_)


def sql_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return "'" + text.replace("'", "''") + "'"


def sql_call(name: str, arguments: list[str], call: Call) -> str:
    if name in OPERATORS:
        return f"({arguments[0]} {name} {arguments[1]})"
    if name in ("and", "or"):
        # DuckDB does not promise an order; ours is from left to right, and CASE says so.
        settled, whole = "FALSE" if name == "and" else "TRUE", arguments[0]
        for argument in arguments[1:]:
            whole = f"(CASE WHEN {whole} IS {settled} THEN {settled} ELSE ({whole} {name.upper()} {argument}) END)"
        return whole
    if name == "not":
        return f"(NOT {arguments[0]})"
    if name == "~":
        return f"(~{arguments[0]})"
    if name == "negate":
        return f"(-({arguments[0]}))"
    if name == "is_null":
        return f"({arguments[0]} IS NULL)"
    if name == "is_not_distinct":
        return f"({arguments[0]} IS NOT DISTINCT FROM {arguments[1]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if name in ("list_value", "struct_pack"):
        floats = [pa.types.is_floating(argument.type) for argument in call.arguments]
        arguments = [f"({a} + 0.0)" if floating else a for a, floating in zip(arguments, floats, strict=True)]
        if name == "struct_pack":
            arguments = [f"{field} := {a}" for field, a in zip(call.type.names, arguments, strict=True)]
        return f"{name}({', '.join(arguments)})"
    if name == "list_distinct":
        return f"list_sort(list_distinct({arguments[0]}))"
    if name == "array_length":
        return f"len({arguments[0]})"
    if name in ("like", "ilike"):
        escape = f" ESCAPE {sql_literal(call.arguments[2].value)}" if len(arguments) == 3 else ""  # type: ignore[attr-defined]
        return f"({arguments[0]} {name.upper()} {arguments[1]}{escape})"
    if name == "add_interval":
        return f"({arguments[0]} + to_microseconds({arguments[1]}))"
    if name == "add_months":
        return f"({arguments[0]} + (to_months(CAST({arguments[1]} AS INTEGER)) + to_microseconds({arguments[2]})))"
    if name == "change_zone":
        return f"timezone({arguments[2]}, timezone({arguments[1]}, {arguments[0]}))"
    if name == "time_bucket":
        moment, months, micros, *origin = arguments
        by_months = call.arguments[1].value != 0  # type: ignore[attr-defined]
        width = f"to_months(CAST({months} AS INTEGER))" if by_months else f"to_microseconds({micros})"
        return f"time_bucket({', '.join([width, moment, *origin])})"
    if name == "split_index":
        text, separator, at = arguments
        some = f"{at} >= 0 AND {at} < len(string_split({text}, {separator})) AND {separator} IS NOT NULL"
        return f"(CASE WHEN {some} THEN split_part({text}, {separator}, {at} + 1) END)"
    if name == "json_array_length":
        return f"CAST({name}({', '.join(arguments)}) AS BIGINT)"
    if name in ("date_trunc", "date_diff"):
        arguments = [sql_literal(call.arguments[0].value), *arguments[1:]]  # type: ignore[attr-defined]
    return f"{'strpos' if name == 'position' else name}({', '.join(arguments)})"


def open_duckdb() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute("SET threads = 1")
    opened.execute("SET timezone = 'UTC'")
    return opened


def evaluate_in_duckdb(
    connection: duckdb.DuckDBPyConnection, expression: Expression, batch: pa.RecordBatch
) -> pa.Array | None:
    """DuckDB's answer, None when it fails."""
    connection.register("batch", pa.table(batch))
    try:
        answer = connection.sql(f"SELECT {sql(expression)} AS result FROM batch").to_arrow_table()
        result = answer["result"].combine_chunks()
        return result.storage if isinstance(result.type, pa.JsonType) else result
    except (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException):
        return None
    except duckdb.Error as error:
        raise AssertionError(f"{sql(expression)}: {error}") from error


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return list(mine) == list(theirs) and all(map(same, mine.values(), theirs.values()))
    if isinstance(mine, float) and isinstance(theirs, float) and math.isnan(mine) and math.isnan(theirs):
        return True
    return type(mine) is type(theirs) and bool(mine == theirs)


LIMITS = ("outside the years", "more than 38 digits", "it is no DECIMAL(38, 0)")
"""Our own limits, behind which DuckDB goes on for a while; everything else fails in both or in none."""


def check(connection: duckdb.DuckDBPyConnection, expression: Expression, batch: pa.RecordBatch) -> None:
    theirs = evaluate_in_duckdb(connection, expression, batch)
    try:
        mine = evaluate(expression, held_rows(batch))
        mine = shown(mine, expression.type)
    except EvaluationError as error:
        assert theirs is None or any(limit in str(error) for limit in LIMITS), (sql(expression), str(error), theirs)
        return
    if batch.num_rows == 0 and theirs is None:
        return  # a constant that fails, which DuckDB computes though no row requests it
    assert theirs is not None, (sql(expression), mine)
    assert isinstance(mine, pa.Array)
    assert len(mine) == batch.num_rows
    mine.validate(full=True)
    assert mine.type == arrow_type(expression.type)
    assert mine.type == theirs.type, (sql(expression), mine.type, theirs.type)
    pairs = zip(mine.to_pylist(), theirs.to_pylist(), strict=True)
    wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if not same(a, b)]
    assert not wrong, (sql(expression), wrong, batch.slice(wrong[0][0], 1).to_pylist())
