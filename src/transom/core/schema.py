"""Columns and the closed list of value types, which are Arrow's own.

| SQL | Arrow |
| --- | --- |
| BOOLEAN | bool |
| TINYINT, SMALLINT, INTEGER, BIGINT | int8, int16, int32, int64 |
| REAL, DOUBLE | float32, float64 |
| DECIMAL(p, s) | decimal128(p, s); SUM of integers is decimal128(38, 0) |
| VARCHAR | string |
| DATE, TIMESTAMP | date32, timestamp[us] |
| TIMESTAMP WITH TIME ZONE, TIMESTAMPTZ | timestamp[us, UTC] |
| JSON | string: a text that is known to be valid JSON |
| INTERVAL | duration[us] |
| T[], ARRAY(T) | list<T> |
| STRUCT(a T, ..), ROW(a T, ..) | struct<a: T, ..> |

`Schema.arrow` are the columns as they come in and go out, `Schema.held` those that move between operators. There a
nested value, one of the last two, is a byte string (`kernels/nested.py`), an instant with a zone one without, and an
INTERVAL the number of its microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

BOOLEAN: Final = pa.bool_()
TINYINT: Final = pa.int8()
SMALLINT: Final = pa.int16()
INTEGER: Final = pa.int32()
BIGINT: Final = pa.int64()
REAL: Final = pa.float32()
DOUBLE: Final = pa.float64()
VARCHAR: Final = pa.string()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us")
TIMESTAMPTZ: Final = pa.timestamp("us", "UTC")
"""An instant: a TIMESTAMP whose clock is known to be that of UTC."""
JSON: Final = pa.json_()
"""What is known of a column while a query is planned; in files, batches and between operators it is a VARCHAR."""
DURATION: Final = pa.duration("us")
"""INTERVAL, as a column has it: without months, whose length is not known."""
HUGEINT: Final = pa.decimal128(38, 0)

SQL_NAMES: Final[dict[pa.DataType, str]] = {
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INTEGER: "INTEGER",
    BIGINT: "BIGINT",
    REAL: "REAL",
    DOUBLE: "DOUBLE",
    VARCHAR: "VARCHAR",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    JSON: "JSON",
    DURATION: "INTERVAL",
}


def sql_name(type_: pa.DataType) -> str:
    """The SQL spelling of a type.

    >>> sql_name(pa.decimal128(10, 2))
    'DECIMAL(10, 2)'
    """
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"{sql_name(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        return f"STRUCT({', '.join(f'{_name(field.name)} {sql_name(field.type)}' for field in type_)})"
    return SQL_NAMES[type_]


def _name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'


def is_array(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_))


def is_struct(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_))


def is_nested(type_: pa.DataType) -> bool:
    """Whether it is an ARRAY or a STRUCT."""
    return type_.id in _NESTED


_NESTED: Final = frozenset((pa.list_(pa.null()).id, pa.struct([]).id))


def held_type(type_: pa.DataType) -> pa.DataType:
    """How a value is held between operators and in state."""
    if is_nested(type_):
        return pa.binary()
    return _HELD.get(type_) or arrow_type(type_)


_HELD: Final = {TIMESTAMPTZ: TIMESTAMP, DURATION: BIGINT}


def arrow_type(type_: pa.DataType) -> pa.DataType:
    """How a value comes in and goes out."""
    return VARCHAR if type_ == JSON else type_


def is_held_otherwise(type_: pa.DataType) -> bool:
    """Whether it comes in and goes out as another type than it is between operators."""
    return is_nested(type_) or type_ in _HELD


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Schema:
    """Columns in order. Names may repeat (a join's `SELECT *`); positions identify a column."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, index: int) -> Column:
        return self.columns[index]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def types(self) -> list[pa.DataType]:
        return [column.type for column in self.columns]

    def arrow(self) -> pa.Schema:
        """The columns as they come in and go out."""
        return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self.columns])

    def held(self) -> pa.Schema:
        """The columns as operators have them."""
        return pa.schema([pa.field(column.name, held_type(column.type)) for column in self.columns])

    @staticmethod
    def of(*columns: tuple[str, pa.DataType]) -> Schema:
        return Schema(tuple(Column(name, type_) for name, type_ in columns))


def unique_names(names: list[str]) -> list[str]:
    """The same names made distinct, for files and frames that need it.

    >>> unique_names(["a", "b", "a"])
    ['a', 'b', 'a_1']
    """
    seen: set[str] = set()
    out = []
    for name in names:
        fresh, n = name, 0
        while fresh.lower() in seen or (n and fresh in names):
            n += 1
            fresh = f"{name}_{n}"
        seen.add(fresh.lower())
        out.append(fresh)
    return out


CHANGE_COLUMN: Final = pa.field("change", pa.string(), nullable=False)
"""Says of a row whether it came (+) or left (-)."""
