"""Spark's value is the engine's wherever an expression is pushed: on nasty values, in both modes, with and without code
generation, in a zone with summer time, and through a source that skips what cannot match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tests.kernels.scalar_expressions import PLAIN_TYPES as TYPES
from tests.profile import examples, first_of
from tests.runtimes.spark.catalyst_expressions import (
    COLUMNS,
    NASTY,
    Chance,
    column,
    comparisons_with_constants,
    every_call,
    nasty_batch,
    written,
)
from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, VARCHAR
from transom.kernels.nested import held_rows, shown
from transom.kernels.scalar import compile_expression, evaluate, keep
from transom.plan.algebra import TableScan
from transom.plan.expression import Call, Exists, Expression, Literal, OuterColumn, conjunction, conjuncts
from transom.plan.functions import FUNCTIONS, cast, resolve
from transom.runtimes.spark.catalyst import pushable_filter, to_column
from transom.runtimes.spark.catalyst_calls import AS_CASE, CALLS, UNSUPPORTED
from transom.runtimes.spark.types import declared_columns, to_spark

AT_ONCE = 120
CALLS_OF_EACH = examples(by_day=6, at_night=12)
AT_RANDOM = examples(by_day=240, at_night=600)
BATCH = nasty_batch(1)
HELD = held_rows(BATCH)
MODES = first_of(("true", "true"), ("false", "true"), ("true", "false"))


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {"ansi": "spark.sql.ansi.enabled", "codegen": "spark.sql.codegen.wholeStage",
             "zone": "spark.sql.session.timeZone", "factory": "spark.sql.codegen.factoryMode"}  # fmt: skip
    before = {names[name]: spark.conf.get(names[name], None) for name in values}
    for name, value in values.items():
        spark.conf.set(names[name], value)
    try:
        yield
    finally:
        for full, old in before.items():
            if old is None:
                spark.conf.unset(full)
            else:
                spark.conf.set(full, old)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The batch in a parquet file with a row group for every few rows, so that the reader may skip some."""
    compile_expression.cache_clear()  # other tests may have left a -0.0 there
    path = tmp_path_factory.mktemp("nasty") / "rows.parquet"
    pq.write_table(pa.Table.from_batches([BATCH]), path, row_group_size=2)
    schema = T.StructType([T.StructField(c.name, to_spark(c.type)) for c in COLUMNS])
    return spark.read.schema(schema).parquet(str(path))


def check(frame: DataFrame, expressions: Sequence[Expression]) -> int:
    """Compare those that are pushed, many in a job; how many these were."""
    columns = declared_columns(frame, COLUMNS)
    pushed = [(e, made) for e in expressions if (made := to_column(e, columns)) is not None]
    for start in range(0, len(pushed), AT_ONCE):
        some = pushed[start : start + AT_ONCE]
        result = frame.select(*(made.alias(f"e{i}") for i, (_, made) in enumerate(some)))
        table = result.toArrow()
        for i, (expression, _) in enumerate(some):
            assert result.schema.fields[i].dataType == to_spark(expression.type), str(expression)
            found = table.column(i).combine_chunks().cast(expression.type)
            assert_same(expression, found, shown(evaluate(expression, HELD), expression.type))
    return len(pushed)


def assert_same(expression: Expression, found: pa.Array, expected: pa.Array) -> None:
    for row, (spark, ours) in enumerate(zip(exact(found), exact(expected), strict=True)):
        if spark != ours:
            read = {name: BATCH.column(name)[row].as_py() for name in BATCH.schema.names if name in str(expression)}
            raise AssertionError(f"{expression}: Spark {found[row]}, ours {expected[row]} for {read}")


def exact(values: pa.Array) -> list[Any]:
    """Values that tell -0.0 from 0.0; a NaN is a NaN, whatever its bits."""
    if not pa.types.is_floating(values.type):
        return list(values.to_pylist())
    return [None if v is None else "nan" if v != v else (v, bool(np.signbit(v))) for v in values.to_pylist()]


# --- the closed list -------------------------------------------------------------------------------------------------


def test_every_function_is_pushed_or_rejected_on_purpose() -> None:
    known = [*CALLS, *UNSUPPORTED, *AS_CASE]
    assert len(known) == len(set(known))
    assert set(known) == {function.name for function in FUNCTIONS}


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_what_is_rejected_is_never_pushed(frame: DataFrame, name: str) -> None:
    columns = declared_columns(frame, COLUMNS)
    calls = list(every_call(name, 20))
    assert calls
    assert all(to_column(call, columns) is None for call in calls)


@pytest.mark.parametrize(("ansi", "codegen"), MODES)
def test_every_function_on_every_type(spark: SparkSession, frame: DataFrame, ansi: str, codegen: str) -> None:
    columns = declared_columns(frame, COLUMNS)
    with settings(spark, ansi=ansi, zone="America/New_York", codegen=codegen,
                  factory="FALLBACK" if codegen == "true" else "NO_CODEGEN"):  # fmt: skip
        calls = {name: list(every_call(name, CALLS_OF_EACH)) for name in sorted(CALLS)}
        never = [name for name in CALLS if all(to_column(call, columns) is None for call in calls[name])]
        assert never == []
        assert check(frame, [call for made in calls.values() for call in made]) > 250


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_cast(spark: SparkSession, frame: DataFrame, ansi: str) -> None:
    casts = []
    for source, target, safe in ((s, t, f) for s in range(len(TYPES)) for t in TYPES for f in (False, True)):
        try:
            casts.append(cast(column(source), target, safe))
        except QueryError:
            continue
    with settings(spark, ansi=ansi, zone="America/New_York"):
        assert check(frame, casts) > 80


@pytest.mark.parametrize(("seed", "ansi"), first_of((1, "true"), (2, "false")))
def test_expressions_at_random(spark: SparkSession, frame: DataFrame, seed: int, ansi: str) -> None:
    chance = Chance(seed, [*CALLS, "if", "nullif"])
    with settings(spark, ansi=ansi, zone="America/New_York"):
        assert check(frame, [chance.expression() for _ in range(AT_RANDOM)]) > AT_RANDOM // 4


# --- leaves and limits -----------------------------------------------------------------------------------------------


def test_constants_of_every_type(frame: DataFrame) -> None:
    assert check(frame, [Literal(written(value), type_) for type_ in TYPES for value in NASTY[type_]]) > 80


@pytest.mark.parametrize("ansi", first_of("true", "false"))
def test_numbers_beside_constants_of_other_types(spark: SparkSession, frame: DataFrame, ansi: str) -> None:
    with settings(spark, ansi=ansi):
        assert check(frame, comparisons_with_constants(400)) > 200


def test_sub_queries_and_columns_that_cannot_be_read_are_not_pushed(frame: DataFrame) -> None:
    columns = declared_columns(frame, COLUMNS)
    assert to_column(Exists(TableScan("t", COLUMNS)), columns) is None
    assert to_column(OuterColumn(0, BOOLEAN, "b"), columns) is None
    unread = [None, *columns[1:]]
    assert to_column(column(0), unread) is None
    assert to_column(resolve("or", (column(0), resolve("is_null", (column(3),)))), unread) is None
    assert to_column(resolve("is_null", (column(3),)), unread) is not None


@pytest.mark.nightly
def test_long_and_deep_expressions(frame: DataFrame) -> None:
    """Long chains of OR are no deep trees; deep ones, and very long lists, are left to the fragment."""
    number = column(TYPES.index(INTEGER))
    equal = [resolve("=", (number, Literal(n, INTEGER))) for n in range(400)]
    chain = equal[0]
    for part in equal[1:]:
        chain = resolve("or", (chain, part))
    consumers = tuple(Literal(n, INTEGER) for n in range(300))
    assert check(frame, [chain, resolve("in", (number, *consumers)), resolve("not", (chain,))]) == 3
    columns = declared_columns(frame, COLUMNS)
    assert to_column(resolve("in", (number, *consumers * 4)), columns) is None
    deep: Expression = column(0)
    for _ in range(60):
        deep = resolve("not", (deep,))
    assert to_column(deep, columns) is None


# --- filters ---------------------------------------------------------------------------------------------------------


def kept(frame: DataFrame, predicate: Expression) -> list[Any]:
    """What passes in Spark and then in the engine, of a column that tells rows apart well enough."""
    condition, rest = pushable_filter(predicate, declared_columns(frame, COLUMNS))
    rows = frame if condition is None else frame.where(condition)
    batch = rows.toArrow().cast(COLUMNS.arrow()).combine_chunks().to_batches()
    if not batch:
        return []
    positions = None if rest is None else keep(rest, batch[0])
    return exact(batch[0].column(WITNESS) if positions is None else batch[0].column(WITNESS).take(positions))


WITNESS = TYPES.index(BIGINT)
A, B = TYPES.index(DOUBLE), TYPES.index(VARCHAR)
ZERO, FIVE = Literal(0.0, DOUBLE), Literal(5.0, DOUBLE)


@pytest.mark.parametrize(
    "predicate",
    [
        resolve(">", (column(A), FIVE)),
        resolve("=", (column(A), ZERO)),
        resolve(">=", (column(TYPES.index(REAL)), ZERO)),
        resolve("=", (column(A), Literal(float("nan"), DOUBLE))),
        resolve("in", (column(A), ZERO, *(Literal(float(n), DOUBLE) for n in range(1, 30)))),
        resolve("and", (resolve("<=", (column(A), FIVE)), resolve("like", (column(B), Literal("a%", VARCHAR))))),
        resolve("and", (resolve("ilike", (column(B), Literal("a%", VARCHAR))), resolve("<", (column(A), FIVE)))),
    ],
    ids=str,
)
def test_a_filter_keeps_what_the_engine_keeps_though_the_source_skips(frame: DataFrame, predicate: Expression) -> None:
    """Row groups of two rows: a reader that trusts the bounds beside them would lose NaN and -0.0."""
    positions = keep(predicate, HELD)
    assert positions is not None and len(positions) > 0
    assert sorted(kept(frame, predicate), key=str) == sorted(exact(BATCH.column(WITNESS).take(positions)), key=str)


def test_the_parts_that_cannot_be_pushed_stay_in_order(frame: DataFrame) -> None:
    columns = declared_columns(frame, COLUMNS)
    simple, other = resolve("<", (column(A), FIVE)), resolve("is_null", (column(B),))
    first, second = (resolve("ilike", (column(B), Literal(text, VARCHAR))) for text in ("a", "b"))
    whole = conjunction((first, simple, second, other))
    assert whole is not None
    condition, rest = pushable_filter(whole, columns)
    assert condition is not None and conjuncts(rest) == (first, second)
    assert pushable_filter(first, columns) == (None, first)
    assert pushable_filter(simple, columns)[1] is None


def test_nothing_is_taken_before_a_part_that_may_fail(frame: DataFrame) -> None:
    """k + 1 > 0 fails for the greatest k; were `is_null` done first, the failure would depend on the other column."""
    columns = declared_columns(frame, COLUMNS)
    number = column(TYPES.index(INTEGER))
    fails = resolve(">", (resolve("+", (number, Literal(1, INTEGER))), Literal(0, INTEGER)))
    null = resolve("is_null", (column(B),))
    assert pushable_filter(Call("and", (fails, null), BOOLEAN), columns) == (None, Call("and", (fails, null), BOOLEAN))
    condition, rest = pushable_filter(Call("and", (null, fails), BOOLEAN), columns)
    assert condition is not None and rest == fails
