"""The engine gives DuckDB's values and types, and fails where DuckDB fails: at random, at the edges, and for texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tests.kernels.duckdb_scalar import check, evaluate_in_duckdb, open_duckdb, type_sql
from tests.kernels.scalar_expressions import (
    ARRAYS,
    JSONS,
    KINDS,
    SAMPLES,
    SMALL_DECIMAL,
    STRUCTS,
    TAKES,
    TYPES,
    WIDE_DECIMAL,
    WIDTHS,
    cases,
)
from tests.profile import examples
from transom.core.errors import EvaluationError, QueryError
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
)
from transom.kernels.nested import held_rows
from transom.kernels.scalar import evaluate, keep
from transom.plan.expression import ColumnRef, Expression, Literal
from transom.plan.functions import FUNCTIONS, cast, resolve
from transom.plan.intervals import interval
from transom.plan.signatures import TRUNCATED_PARTS

EXAMPLES = examples(by_day=40, at_night=2_000)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = open_duckdb()
    yield opened
    opened.close()


def test_every_function_is_tried() -> None:
    assert set(TAKES) == {function.name for function in FUNCTIONS}


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(found=cases())
def test_values_and_failures_are_duckdbs(
    connection: duckdb.DuckDBPyConnection, found: tuple[Expression, pa.RecordBatch]
) -> None:
    check(connection, *found)


@settings(max_examples=examples(by_day=20, at_night=400), suppress_health_check=list(HealthCheck))
@given(found=cases("bool"))
def test_keep_is_evaluate_where_true(found: tuple[Expression, pa.RecordBatch]) -> None:
    predicate, batch = found[0], held_rows(found[1])
    try:
        values = evaluate(predicate, batch)
    except EvaluationError:
        return
    kept = keep(predicate, batch)
    expected = [row for row, value in enumerate(values.to_pylist()) if value is True]
    assert (list(range(batch.num_rows)) if kept is None else kept.to_pylist()) == expected


# --- every function on every type, at the edges -----------------------------------------------------------------------

EDGES: dict[pa.DataType, list[Any]] = {
    JSON: [None, *JSONS],
    ARRAYS: [None, [], [None], [0], [1, None], [1, 2], [-1, 3, 3]],
    STRUCTS: [None, *({"p": p, "q": q} for p, q in ((None, None), (1, ["", None, "a"]), (1, ["a\0b"]), (-2, [])))],
    BOOLEAN: [None, True, False],
    **{t: [None, -(1 << t.bit_width - 1), -7, -1, 0, 1, 2, 15, (1 << t.bit_width - 1) - 1] for t in
       (TINYINT, SMALLINT, INTEGER, BIGINT)},
    **{t: [None, -math.inf, -2.5, -0.0, 0.0, 0.5, 1.5, 1e10, math.inf, math.nan] for t in (REAL, DOUBLE)},
    SMALL_DECIMAL: [None, Decimal("-999.9"), Decimal("-0.5"), Decimal(0), Decimal("2.5"), Decimal("999.9")],
    WIDE_DECIMAL: [None, Decimal("-999999999999999.999"), Decimal(0), Decimal("0.005"), Decimal("999999999999999.999")],
    HUGEINT: [None, -10**37, -10**19, -1, 0, 3, 10**18],
    VARCHAR: [None, "", "a", " aB\t", "ÀßİΣ", "e\u0301👍", "1", "-2.5", "a%_b"],
    DATE: [None, date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date(9999, 12, 31)],
    **{t: [None, datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2020, 2, 29, 12, 30),
           datetime(9999, 12, 31, 23, 59, 59, 999_999)] for t in (TIMESTAMP, TIMESTAMPTZ)},
}  # fmt: skip
JUST_OUTSIDE = {type_: [127.5, -128.5, 128.0, 32768.0, -(2.0**31) - 256, 2.0**63, 1e20] for type_ in (REAL, DOUBLE)}
"""What the integer types cannot hold, or only just."""
ARGUMENTS: dict[str, list[Any]] = {
    "pattern": ["%", "_", "%a%", "a_%b", "À%"],
    "escape": ["!"],
    "characters": ["", "a", "👍"],
    "places": [-1, 0, 2],
    "index": [-2, 0, 1, 3],
    "micros": [-1, 86_400_000_000],
    **SAMPLES,
    "group": [0, 1, 2],
    "width": [interval(*width) for width in WIDTHS],
    "offset": [interval(0, 90_000_000)],
    "months": [-13, -1, 0, 1, 12],
    "part": list(TRUNCATED_PARTS),
    "instant": [
        resolve("timezone", (Literal(zone, VARCHAR), Literal(moment, TIMESTAMP)))
        for zone in SAMPLES["zone"]
        for moment in (
            datetime(2024, 3, 31, 2, 30),
            datetime(2024, 10, 27, 2, 30),
            datetime(1800, 1, 1),
            datetime(2500, 7, 1),
        )
    ],
}
CHOICES = examples(by_day=6, at_night=25)
"""Combinations of types that are tried for each way to write a function."""


def edge_calls(name: str) -> Iterator[tuple[Expression, pa.RecordBatch]]:
    """Calls with columns of the types that fit; the columns hold all combinations of the edges of their types."""
    for kinds in TAKES[name]:
        pools = [ARGUMENTS[kind] if kind in ARGUMENTS else KINDS.get(kind, TYPES) for kind in kinds]
        step = math.prod(len(pool) for pool in pools) // CHOICES + 1
        for choice in itertools.islice(itertools.product(*pools), 0, None, step):
            types = [item for item in choice if isinstance(item, pa.DataType)]
            rows = list(itertools.product(*(EDGES[type_] for type_ in types)))[:200] or [()]
            columns = [pa.array([row[i] for row in rows], arrow_type(type_)) for i, type_ in enumerate(types)]
            batch = pa.record_batch(columns or [pa.array([1])], [f"c{i}" for i in range(len(types) or 1)])
            references = iter([ColumnRef(i, type_, f"c{i}") for i, type_ in enumerate(types)])
            arguments = [next(references) if isinstance(item, pa.DataType) else constant(item) for item in choice]
            try:
                yield resolve(name, tuple(arguments)), batch
            except QueryError:
                continue


def constant(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    return Literal(value, VARCHAR if isinstance(value, str) else BIGINT if abs(value) > 2**31 else INTEGER)


@pytest.mark.parametrize("name", sorted(TAKES))
def test_edges_of_every_type(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    tried = 0
    for expression, batch in edge_calls(name):
        if evaluate_in_duckdb(connection, expression, batch) is not None:
            check(connection, expression, batch)
            tried += batch.num_rows
        else:  # some row fails: see which ones do, and that the others are right
            for row in range(0, batch.num_rows, 5):
                check(connection, expression, batch.slice(row, 1))
                tried += 1
    assert tried >= 3


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_edges_of_every_cast(connection: duckdb.DuckDBPyConnection, source: pa.DataType) -> None:
    edges = [*EDGES[source], *JUST_OUTSIDE.get(source, [])]
    batch = pa.record_batch([pa.array(edges, arrow_type(source))], names=["c0"])
    for target, safe in itertools.product(TYPES, (False, True)):
        try:
            expression = cast(ColumnRef(0, source, "c0"), target, safe)
        except QueryError:
            continue
        for row in range(batch.num_rows):
            check(connection, expression, batch.slice(row, 1))


# --- texts -----------------------------------------------------------------------------------------------------------

READ = [
    "", " ", "0", "-0", "+5", " 12\t", "007", "12.5", "-12.5", "13.5", "0.49", ".5", "1.", ".", "1e3", "1E-1", "15e-1",
    "1e", "12a", "- 1", "--1", "127", "128", "-128.4", "-128.5", "2147483647.5", "9223372036854775807",
    "9223372036854775808", "9223372036854775807.5", "1e400", "-1e400", "1e-400", "inf", "-Infinity", "NaN", "infx",
    "true", "TRUE", "t", "yes", "no", "on", " true", "2020-02-29", "2019-02-29", "2020-1-2", "2020/01/02", "2020-01/02",
    " 2020-01-02 ", "2020-13-01", "2020-01-02 10:00:00", "2020-01-02T10:00:00.5", "2020-01-02 10:00",
    "2020-01-02 1:2:3", "2020-01-02 23:60:00", "2020-01-02 10:00:00Z", "2020-01-02 10:00:00.1234567", "2020-01-02 10",
    "2020-01-02 10:00:00.5+02", "2020-01-02T10:00-0930", "2020-01-02 10:00:00+05:45 ", "2020-01-02 10:00:00+1",
    "2020-01-02+02", "0001-01-01 00:00:00-05", "2020-01-02 10:00:00+02:3",
    "1-1-1", "99999999999999.9995",
    "99999999999999999999999999999999999999", "999.95", "-999.95", "\u0661",
    "1\u00a0", "x" * 300,
]  # fmt: skip
UNSUPPORTED = {
    ("1e3", "DECIMAL"), ("1E-1", "DECIMAL"), ("15e-1", "DECIMAL"), ("1e-400", "DECIMAL"), ("inf", "DATE"),
    ("inf", "TIMESTAMP"), ("-Infinity", "DATE"), ("-Infinity", "TIMESTAMP"), ("1_000", "INTEGER"), ("0x10", "BIGINT"),
    ("2020-01-02 10:00:00+02", "TIMESTAMP"), ("2020-01-02 24:00:00", "TIMESTAMP"), ("10000-01-01", "DATE"),
    ("0000-01-01", "DATE"), ("inf", "TIMESTAMP WITH TIME ZONE"), ("-Infinity", "TIMESTAMP WITH TIME ZONE"),
    ("inf", "JSON"), ("-Infinity", "JSON"), ("NaN", "JSON"), ("[1,]", "JSON"),
    ("2020-01-02 10:00:00 Europe/Berlin", "TIMESTAMP WITH TIME ZONE"),
    *itertools.product(("2020-01-02 10:00:00.5+02", "2020-01-02T10:00-0930", "2020-01-02 10:00:00+05:45 ",
                        "0001-01-01 00:00:00-05"), ("DATE", "TIMESTAMP")),
}  # fmt: skip
"""What DuckDB would read and the engine rejects on purpose."""


def test_casts_of_arrays_and_structs(connection: duckdb.DuckDBPyConnection) -> None:
    elements = (TINYINT, BIGINT, DOUBLE, SMALL_DECIMAL, VARCHAR, DATE, pa.list_(VARCHAR), pa.list_(INTEGER))
    values: dict[pa.DataType, list[Any]] = {
        VARCHAR: [[], None, ["7", None], ["x", "1"], ["300"], ["2020-02-29"]],
        BIGINT: [[1, None], [], None, [300], [-1, 10**12]],
        DATE: [[date(2020, 2, 29)], [None]],
        pa.list_(VARCHAR): [[["1"], None, []], [["x"]], [[None, "2"]]],
    }
    tried = 0
    for source, target, safe in itertools.product(values, elements, (False, True)):
        for wrap in (pa.list_, lambda element: pa.struct([("p", pa.list_(element))])):
            try:
                expression = cast(ColumnRef(0, wrap(source), "c0"), wrap(target), safe)
            except QueryError:
                continue
            for value in values[source]:
                rows = [value if wrap is pa.list_ else {"p": value}]
                check(connection, expression, pa.record_batch([pa.array(rows, wrap(source))], names=["c0"]))
                tried += 1
    assert tried > 100


@pytest.mark.parametrize("target", [type_ for type_ in TYPES if type_ not in (VARCHAR, ARRAYS, STRUCTS)], ids=str)
def test_texts_are_read_as_duckdb_reads_them(connection: duckdb.DuckDBPyConnection, target: pa.DataType) -> None:
    for text in READ:
        if (text, type_sql(target).partition("(")[0]) not in UNSUPPORTED:
            batch = pa.record_batch([pa.array([text], VARCHAR)], names=["c0"])
            check(connection, cast(ColumnRef(0, VARCHAR, "c0"), target), batch)
            check(connection, cast(ColumnRef(0, VARCHAR, "c0"), target, safe=True), batch)


@pytest.mark.parametrize(("text", "name"), sorted(UNSUPPORTED))
def test_texts_that_are_rejected(text: str, name: str) -> None:
    types = (JSON, WIDE_DECIMAL, DATE, TIMESTAMP, TIMESTAMPTZ, INTEGER, BIGINT)
    target = next(type_ for type_ in types if type_sql(type_).partition("(")[0] == name)
    batch = pa.record_batch([pa.array(["", text], VARCHAR).slice(1)], names=["c0"])
    with pytest.raises(EvaluationError, match="it is no"):
        evaluate(cast(ColumnRef(0, VARCHAR, "c0"), target), batch)
    assert evaluate(cast(ColumnRef(0, VARCHAR, "c0"), target, safe=True), batch).to_pylist() == [None]


def test_letters_of_all_alphabets(connection: duckdb.DuckDBPyConnection) -> None:
    ranges = ((1, 0x3400), (0xA000, 0xAC00), (0xF900, 0x12000), (0x16000, 0x17000), (0x1D000, 0x1F000))
    letters = [chr(code) for start, end in ranges for code in range(start, end)]
    batch = pa.record_batch([pa.array(letters, VARCHAR)], names=["c0"])
    column = ColumnRef(0, VARCHAR, "c0")
    for name in ("upper", "lower", "length", "trim"):
        check(connection, resolve(name, (column,)), batch)
    check(connection, resolve("ilike", (column, Literal("K", VARCHAR))), batch)
