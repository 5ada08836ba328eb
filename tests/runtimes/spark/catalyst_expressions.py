"""Random expressions over two columns of every type, and a batch of the values that break things."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.kernels.scalar_expressions import KINDS as ALL_KINDS
from tests.kernels.scalar_expressions import PLAIN_TYPES as TYPES
from tests.kernels.scalar_expressions import SAMPLES, SMALL_DECIMAL, TAKES, WIDE_DECIMAL
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
    TINYINT,
    VARCHAR,
    Schema,
)
from transom.plan.expression import ColumnRef, Expression, Literal
from transom.plan.functions import NULL, case, cast, resolve
from transom.plan.intervals import interval
from transom.plan.nested_functions import struct_of

# Constants are never -0.0, which no query can write (it is the negative of 0.0): it equals 0.0, and the engine may take
# either for a constant that it has seen before.
NASTY: dict[pa.DataType, list[Any]] = {
    BOOLEAN: [None, True, False],
    **{t: [None, -(1 << t.bit_width - 1), -7, -1, 0, 1, 2, 15, (1 << t.bit_width - 1) - 1] for t in
       (TINYINT, SMALLINT, INTEGER)},
    BIGINT: [None, -(2**63), -(2**53) - 1, -7, 0, 1, 2, 2**53 + 1, 2**62 + 3, 2**63 - 1],
    REAL: [None, -math.inf, -2.5, -0.0, 0.0, 0.1, 1.5, 16777217.0, 1e-45, 3.4e38, math.inf, math.nan],
    DOUBLE: [None, -math.inf, -2.5, -0.0, 0.0, 0.1, 1.5, 2.0**53, 5e-324, 1.7e308, math.inf, math.nan],
    SMALL_DECIMAL: [None, Decimal("-999.9"), Decimal("-0.5"), Decimal(0), Decimal("2.5"), Decimal("999.9")],
    WIDE_DECIMAL: [None, Decimal("-999999999999999.999"), Decimal(0), Decimal("0.005"), Decimal("999999999999999.999"),
                   Decimal("9007199254740.993")],
    HUGEINT: [None, 1 - 10**38, -(10**19), -1, 0, 3, 10**18, 2**64 - 1, 10**38 - 1],
    VARCHAR: [None, "", "a", "A", "ab", "aba", " aB\t", "ÀßİΣ", "e\u0301👍", "👍", "👍👍", "\uffff", "日本語", "1",
              "-2.5", "a%_b", "a\\b", "a\nb", "a\x00b", "true", "x" * 40],
    DATE: [None, date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29),
           date(2021, 3, 14), date(9999, 12, 31)],
    **{t: [None, datetime(1, 1, 1), datetime(1582, 10, 10, 3), datetime(1969, 12, 31, 23, 59, 59, 999_999),
           datetime(2020, 2, 29, 12, 30), datetime(2021, 3, 14, 2, 30, 0, 1), datetime(2021, 11, 7, 1, 30),
           datetime(9999, 12, 31, 23, 59, 59, 999_999)] for t in (TIMESTAMP, TIMESTAMPTZ)},
}  # fmt: skip
CONSTANTS: dict[str, list[Any]] = {
    "pattern": [
        "",
        "%",
        "%%",
        "_",
        "a",
        "a%",
        "%b",
        "%a%",
        "ab%ba",
        "a%a",
        "a_%b",
        "👍%👍",
        "👍_",
        "a!%%",
        "!_",
        "a\\%",
    ],
    "escape": ["!"],
    "characters": ["", "a", "ab", "é", "aa", "👍", "%"],
    "places": [-1, 0, 2],
    "index": [-3, -1, 0, 1, 2, 3, 2**31],
    "part": ["day", "hour", "week"],
    "micros": [0, 1, 86_400_000_000],
    "months": [-1, 0, 13],
    **SAMPLES,
    "group": [0, 1],
    "width": [interval(0, 60_000_000), interval(1, 0)],
    "offset": [interval(0, 1)],
    "divisor": [3, -7, -1, 1, 0, 2**40, 2.5, -math.inf, math.nan],
}
BY_CONSTANT: dict[str, list[tuple[str, ...]]] = {"/": [("number", "divisor")], "%": [("number", "divisor")]}
ROWS = 150
KINDS = {kind: [type_ for type_ in types if type_ in TYPES] for kind, types in ALL_KINDS.items()}
"""Arrays and structs never go to Spark's expressions."""
COLUMNS = Schema.of(*((f"c{i}", type_) for i, type_ in enumerate(TYPES * 2)))


def nasty_batch(seed: int) -> pa.RecordBatch:
    """Two columns of every type; each pair of nasty values of a type is in some row if there are rows enough."""
    chance = random.Random(seed)
    first, second = [], []
    for type_ in TYPES:
        pairs = list(itertools.product(NASTY[type_], repeat=2))
        chance.shuffle(pairs)
        pairs = (pairs * (ROWS // len(pairs) + 1))[:ROWS]
        first.append(pa.array([a for a, _ in pairs], type_))
        second.append(pa.array([b for _, b in pairs], type_))
    return pa.record_batch([*first, *second], schema=COLUMNS.arrow())


def column(index: int) -> ColumnRef:
    return ColumnRef(index, COLUMNS[index].type, COLUMNS[index].name)


def written(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def constant(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, str | float):
        return Literal(value, VARCHAR if isinstance(value, str) else DOUBLE)
    return Literal(value, BIGINT if abs(value) >= 2**31 else INTEGER)


def every_call(name: str, most: int) -> Iterator[Expression]:
    """Calls of a function with columns of the types that fit, and with constants where they are usual."""
    for kinds in [*TAKES[name], *BY_CONSTANT.get(name, [])]:
        pools: list[list[Any]] = [_pool(kind) for kind in kinds]
        if "same" in kinds:
            choices: Iterator[tuple[Any, ...]] = (
                tuple(_same(kind, type_, index) for index, kind in enumerate(kinds)) for type_ in TYPES
            )
        else:
            step = math.prod(len(pool) for pool in pools) // most + 1
            choices = itertools.islice(itertools.product(*pools), 0, None, step)
        for choice in choices:
            try:
                yield resolve(name, choice)
            except QueryError:
                continue


def _pool(kind: str) -> list[Expression]:
    if kind in CONSTANTS:
        return [constant(value) for value in CONSTANTS[kind]]
    if kind in ("array", "struct"):
        left, right = column(TYPES.index(INTEGER)), column(TYPES.index(INTEGER) + len(TYPES))
        return [resolve("list_value", (left, right)) if kind == "array" else struct_of(("p",), (left,))]
    return [column(TYPES.index(type_) + shift) for shift in (0, len(TYPES)) for type_ in KINDS.get(kind, TYPES)]


def _same(kind: str, type_: pa.DataType, index: int) -> Expression:
    if kind == "bool":
        return column(0)
    if kind == "constant":
        return Literal(written(NASTY[type_][index % len(NASTY[type_])]), type_)
    return column(TYPES.index(type_) + len(TYPES) * (index % 2))


def comparisons_with_constants(most: int) -> list[Expression]:
    """Numbers beside constants of other types: Catalyst moves the cast from the column to the constant."""
    numbers = KINDS["number"]
    literals = [Literal(written(value), type_) for type_ in numbers for value in NASTY[type_] if value is not None]
    choices = list(itertools.product(("=", "<", ">=", "is_not_distinct"), numbers, literals))
    return [
        resolve(name, (column(TYPES.index(type_)), literal))
        for name, type_, literal in choices[:: len(choices) // most]
    ]


class Chance:
    """Expressions at random, from a seed."""

    def __init__(self, seed: int, names: list[str]) -> None:
        self.random = random.Random(seed)
        self.names = names

    def expression(self, kind: str = "any", depth: int = 3) -> Expression:
        if kind in CONSTANTS:
            return constant(self.random.choice(CONSTANTS[kind]))
        types = KINDS[kind]
        if depth and self.random.random() < 0.8:
            for _ in range(5):
                made = self._node(kind, types, depth)
                if made is not None and made.type in types:
                    return made
        return self.leaf(self.random.choice(types))

    def leaf(self, type_: pa.DataType) -> Expression:
        if self.random.random() < 0.3:
            value = written(self.random.choice(NASTY[type_]))
            return Literal(value, NULL if value is None else type_)
        return column(TYPES.index(type_) + self.random.choice((0, len(TYPES))))

    def _node(self, kind: str, types: list[pa.DataType], depth: int) -> Expression | None:
        try:
            draw = self.random.random()
            if draw < 0.15:
                return cast(self.expression("any", depth - 1), self.random.choice(types), self.random.random() < 0.3)
            if draw < 0.3:
                arms = [self.expression(part, depth - 1) for part in ("bool", kind, kind)]
                return case((arms[0],), (arms[1],), arms[2])
            return self._call(depth)
        except QueryError:
            return None

    def _call(self, depth: int) -> Expression:
        name = self.random.choice(self.names)
        same = self.random.choice(TYPES)
        kinds = self.random.choice([each for each in BY_CONSTANT.get(name, TAKES[name]) if "array" not in each])
        return resolve(
            name,
            tuple(
                self.leaf(same) if kind in ("same", "constant") else self.expression(kind, depth - 1) for kind in kinds
            ),
        )
