"""Rows that a program holds, as Arrow batches, and the columns that they declare."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from transom.connectors.conform import fold
from transom.connectors.fit import CannotFit, fit
from transom.core.errors import SourceError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    HUGEINT,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    Column,
    Schema,
)

_SAME: Final = (
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, DURATION,
)  # fmt: skip
_NEVER_INSIDE: Final = (None, DURATION)
"""What an array or a struct cannot hold."""
_WIDER: Final = {
    pa.uint8(): SMALLINT,
    pa.uint16(): INTEGER,
    pa.uint32(): BIGINT,
    pa.uint64(): HUGEINT,
    pa.float16(): REAL,
    pa.date64(): DATE,
    pa.large_string(): VARCHAR,
    pa.string_view(): VARCHAR,
    pa.null(): VARCHAR,
}


def batches_of(data: Any, columns: Schema | None = None) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """Batches of an Arrow table, batch or reader, of a data frame, or of an iterable of batches or dictionaries.

    Where the `columns` are declared already, a value that is none of its column spoils its own row, when it is read.

    >>> schema, batches = batches_of([{"a": 1}, {"a": None}])
    >>> schema.names, [len(batch) for batch in batches]
    (['a'], [2])
    """
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    try:
        if type(data).__name__ == "LazyFrame":  # of Polars, which nobody has to import to know it
            data = data.collect()
        if hasattr(data, "__arrow_c_stream__"):
            table = pa.table(data)
        else:
            items = list(data) if isinstance(data, Iterable) and not isinstance(data, Mapping | str | bytes) else [data]
            if items and all(isinstance(item, pa.RecordBatch) for item in items):
                table = pa.Table.from_batches(items)
            else:
                table = table_of(items, columns)
    except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError) as error:
        raise SourceError(
            f"the rows cannot be read as a table: {error}",
            remedy="give an Arrow table, record batches, a data frame, or dictionaries with the same keys",
        ) from None
    return table.schema, table.to_batches()


def table_of(rows: Sequence[Mapping[str, Any]], columns: Schema | None = None) -> pa.Table:
    """Dictionaries as a table with the keys of the first one; of `columns` it is known what they should be."""
    declared = {} if columns is None else {fold(column.name): column for column in columns}
    names = list(rows[0]) if rows else []
    arrays = []
    for name in names:
        values, column = [row.get(name) for row in rows], declared.get(fold(name))
        arrays.append(_inferred(values) if column is None else values_of(values, column))
    return pa.Table.from_arrays(arrays, names)


def _inferred(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:  # whole numbers beyond 64 bits
        return pa.array(values, HUGEINT)


def values_of(values: list[Any], column: Column) -> pa.Array:
    """Values as Arrow takes them; a mixture that it does not take, as text, which any type can be read from.

    Half a character makes bytes that are no text, so that its row is found when the column is read.
    """
    try:
        array = pa.array(values)
        fit(array.slice(0, 0), column.type, None)
        return array
    except (pa.ArrowException, CannotFit, OverflowError, TypeError, ValueError):
        texts = [None if value is None else _written(value).encode("utf-8", "surrogatepass") for value in values]
        return pa.array(texts, pa.binary())


def _written(value: Any) -> str:
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    # Python itself does not write whole numbers of thousands of digits.
    return str(Decimal(value)) if isinstance(value, int) and value.bit_length() > 10_000 else str(value)


def is_batches(data: Any) -> bool:
    """Whether it is rows that Arrow holds already."""
    return isinstance(data, pa.RecordBatch | pa.Table)


def columns_of(schema: pa.Schema, owner: str) -> Schema:
    """The SQL types that hold the values of Arrow columns."""
    return Schema(tuple(Column(field.name, _declared(field, owner)) for field in schema))


def readable(schema: pa.Schema) -> pa.Schema:
    """The columns that some SQL type can hold; all, if there is none."""
    fields = [field for field in schema if _sql_type(field) is not None]
    return pa.schema(fields) if fields else schema


def _declared(field: pa.Field, owner: str) -> pa.DataType:
    type_ = _sql_type(field)
    if type_ is None:
        raise SourceError(
            f"column '{field.name}' of '{owner}' is {field.type}, which no SQL type can hold",
            remedy="leave the column out, or turn it into numbers, text, dates or timestamps",
        )
    return type_


def _sql_type(field: pa.Field) -> pa.DataType | None:
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_struct(type_):
        fields = [(each.name, _sql_type(each)) for each in type_]
        folded = {fold(name) for name, _ in fields}
        is_taken = fields and len(folded) == len(fields) and all(t not in _NEVER_INSIDE for _, t in fields)
        return pa.struct(fields) if is_taken else None
    if hasattr(type_, "value_field") and not pa.types.is_map(type_) and not pa.types.is_run_end_encoded(type_):
        element = _sql_type(type_.value_field)
        return None if element in _NEVER_INSIDE else pa.list_(element)
    if isinstance(type_, pa.JsonType):
        return JSON
    if type_ in _SAME:
        return type_
    if type_ in _WIDER:
        return _WIDER[type_]
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz is None else TIMESTAMPTZ
    if pa.types.is_duration(type_):
        return DURATION
    if pa.types.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return pa.decimal128(type_.precision, type_.scale)
    return None
