"""DuckDB, asked for the answer on the snapshot of each instant."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

from transom.core.errors import EvaluationError
from transom.core.schema import Schema, arrow_type, sql_name
from transom.core.time import FOREVER, format_instant
from transom.plan.python_function import PythonFunction
from transom.runtimes.reference import exact
from transom.runtimes.reference.admission import Lifetime
from transom.runtimes.reference.expression import python_name, type_sql
from transom.runtimes.reference.history import Row
from transom.runtimes.reference.sql import SnapshotQuery, snapshot_name


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One database for all evaluations of this process.

    Its optimiser is off but for the one rule without which a join by comma is a cross product: fewer things to trust,
    and planning is faster than optimising for inputs of a few rows.
    """
    connection = duckdb.connect(":memory:", config={"threads": 1})
    rules = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    off = ",".join(rule for rule in rules if rule != "filter_pushdown")
    connection.execute(f"SET disabled_optimizers = '{off}'")
    connection.execute("SET timezone = 'UTC'")
    # As columns of Arrow: for a plain Python function DuckDB takes NaN for NULL.
    for name, function, type_, result in (
        ("exact_sums", exact.sums, "DOUBLE[]", "DOUBLE"),
        ("exact_totals", exact.totals, "VARCHAR[]", "VARCHAR"),
        ("exact_averages", exact.averages, "DOUBLE[]", "DOUBLE"),
        ("exact_quotients", exact.quotients, "VARCHAR[]", "DOUBLE"),
        ("exact_var_pop_of_floats", exact.variances(sample=False), "DOUBLE[]", "DOUBLE"),
        ("exact_var_samp_of_floats", exact.variances(sample=True), "DOUBLE[]", "DOUBLE"),
        ("exact_var_pop_of_texts", exact.variances(sample=False), "VARCHAR[]", "DOUBLE"),
        ("exact_var_samp_of_texts", exact.variances(sample=True), "VARCHAR[]", "DOUBLE"),
        ("exact_covar_pop_of_floats", exact.covariances(sample=False), "DOUBLE[][]", "DOUBLE"),
        ("exact_covar_samp_of_floats", exact.covariances(sample=True), "DOUBLE[][]", "DOUBLE"),
        ("exact_covar_pop_of_texts", exact.covariances(sample=False), "VARCHAR[][]", "DOUBLE"),
        ("exact_covar_samp_of_texts", exact.covariances(sample=True), "VARCHAR[][]", "DOUBLE"),
    ):
        connection.create_function(name, function, [type_], result, type=ARROW, null_handling=SPECIAL)
    connection.create_function(
        "exact_quantiles",
        exact.quantiles,
        ["DOUBLE[]", "BIGINT", "BIGINT"],
        "DOUBLE",
        type=ARROW,
        null_handling=SPECIAL,
    )
    atexit.register(connection.close)
    return connection


def answers(query: SnapshotQuery, leaves: Sequence[Sequence[Lifetime]], instants: Sequence[int]) -> list[list[Row]]:
    """The rows of the query at each instant, given the lifetimes of its leaves."""
    connection = _connection()
    for function in query.functions:
        _bring(connection, function)
    for i, (leaf, lifetimes) in enumerate(zip(query.leaves, leaves, strict=True)):
        _load(connection, f"leaf{i}", leaf.schema, lifetimes)
    snapshots = ", ".join(
        f"{snapshot_name(i)} AS MATERIALIZED (SELECT * EXCLUDE (ta, te) FROM leaf{i} "
        "WHERE ta <= CAST($1 AS BIGINT) AND CAST($1 AS BIGINT) < te)"
        for i in range(len(leaves))
    )
    connection.execute(f"PREPARE answer AS WITH {snapshots} {query.sql}")
    rows_of: dict[tuple[tuple[int, ...], ...], list[Row]] = {}
    answers = []
    for instant in instants:
        alive = tuple(_alive(lifetimes, instant) for lifetimes in leaves)
        if alive not in rows_of:
            rows_of[alive] = _execute(connection, instant)
        answers.append(rows_of[alive])
    return answers


def _bring(connection: duckdb.DuckDBPyConnection, function: PythonFunction) -> None:
    """Let DuckDB know a function of the program, if it does not yet."""
    name = python_name(function)
    if connection.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = $1", [name]).fetchall():
        return

    def run(*columns: pa.ChunkedArray) -> pa.Array:
        typed = zip(columns, function.arguments, strict=True)
        return function.apply([column.combine_chunks().cast(type_) for column, type_ in typed])

    # DuckDB counts the parameters.
    names = [Parameter(f"a{i}", Parameter.POSITIONAL_ONLY) for i in range(len(function.arguments))]
    run.__signature__ = Signature(names)  # type: ignore[attr-defined]
    types: list[Any] = [sql_name(type_) for type_ in function.arguments]
    connection.create_function(name, run, types, sql_name(function.returns), type=ARROW, null_handling=SPECIAL)


def _load(connection: duckdb.DuckDBPyConnection, name: str, schema: Schema, lifetimes: Sequence[Lifetime]) -> None:
    columns = {
        f"c{i}": pa.array([life.values[i] for life in lifetimes], arrow_type(c.type)) for i, c in enumerate(schema)
    }
    columns["ta"] = pa.array([life.ta for life in lifetimes], pa.int64())
    columns["te"] = pa.array([FOREVER if life.te is None else life.te for life in lifetimes], pa.int64())
    typed = ", ".join(f"CAST(c{i} AS {type_sql(c.type)}) AS c{i}" for i, c in enumerate(schema))
    connection.register("loading", pa.table(columns))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {typed}, ta, te FROM loading")
    connection.unregister("loading")


def _alive(lifetimes: Sequence[Lifetime], instant: int) -> tuple[int, ...]:
    return tuple(i for i, life in enumerate(lifetimes) if life.ta <= instant and (life.te is None or instant < life.te))


def _execute(connection: duckdb.DuckDBPyConnection, instant: int) -> list[Row]:
    try:
        return connection.execute(f"EXECUTE answer({instant})").fetchall()
    except (duckdb.DataError, duckdb.InvalidInputException) as failure:
        what = str(failure).splitlines()[0]
        raise EvaluationError(
            f"an expression failed at {format_instant(instant)}: {what}",
            remedy="guard it with CASE, or use TRY_CAST where a text may be no number",
        ) from failure
