"""The types of Spark's columns and ours: which of ours holds a column's values, and the column as a value of that type.

| Spark | Transom |
| --- | --- |
| boolean, byte, short, integer, long | BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT |
| float, double, decimal(p, s) | REAL, DOUBLE, DECIMAL(p, s) |
| string (of any collation), char, varchar, binary, void | VARCHAR |
| date, timestamp_ntz, timestamp | DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE |
| interval day to second | INTERVAL |
| array<T>, struct<a: T, ..> | T[], STRUCT(a T, ..) |

Instants. Our TIMESTAMP counts microseconds since 1970 in UTC and has no zone, which is Spark's `timestamp_ntz` read as
UTC. Spark's `timestamp` is an instant, a TIMESTAMP WITH TIME ZONE: it is taken as the same count of microseconds, also
where a TIMESTAMP is declared, and never by way of the text or the wall clock that `spark.sql.session.timeZone` would
make of it. So a query has one answer in all zones.

Bytes are taken as text where they are valid UTF-8, as in files; a row where they are not is rejected.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from transom.connectors.conform import fold
from transom.core.errors import SourceError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    Schema,
    is_array,
    is_struct,
)

_SAME: Final[dict[pa.DataType, T.DataType]] = {
    BOOLEAN: T.BooleanType(),
    TINYINT: T.ByteType(),
    SMALLINT: T.ShortType(),
    INTEGER: T.IntegerType(),
    BIGINT: T.LongType(),
    REAL: T.FloatType(),
    DOUBLE: T.DoubleType(),
    VARCHAR: T.StringType(),
    DATE: T.DateType(),
    TIMESTAMP: T.TimestampNTZType(),
    TIMESTAMPTZ: T.TimestampType(),
    JSON: T.StringType(),
    DURATION: T.DayTimeIntervalType(),
}
_OURS: Final = {type(spark): ours for ours, spark in _SAME.items() if ours != JSON} | {
    T.CharType: VARCHAR,
    T.VarcharType: VARCHAR,
    T.BinaryType: VARCHAR,
    T.NullType: VARCHAR,
}
_NEVER_INSIDE: Final = (None, DURATION)
"""What an array or a struct cannot hold."""
_WIDENED: Final = {
    TINYINT: (SMALLINT, INTEGER, BIGINT, DOUBLE),
    SMALLINT: (INTEGER, BIGINT, DOUBLE),
    INTEGER: (BIGINT, DOUBLE),
    REAL: (DOUBLE,),
}
"""What holds every value of a type exactly, so that no row can be rejected on the way."""

EPOCH: Final = "1970-01-01 00:00:00"


def to_spark(type_: pa.DataType) -> T.DataType:
    """The Spark type whose values are exactly those of a type of ours (a TIMESTAMP's are a little more).

    >>> to_spark(pa.decimal128(10, 2)), to_spark(TIMESTAMP)
    (DecimalType(10,2), TimestampNTZType())
    """
    if pa.types.is_decimal(type_):
        return T.DecimalType(type_.precision, type_.scale)
    if is_array(type_):
        return T.ArrayType(to_spark(type_.value_type))
    if is_struct(type_):
        return T.StructType([T.StructField(field.name, to_spark(field.type)) for field in type_])
    return _SAME[type_]


def spark_schema(schema: pa.Schema) -> T.StructType:
    """The columns of an answer, which have a type of ours each, as those of a DataFrame."""
    return T.StructType([T.StructField(field.name, to_spark(field.type)) for field in schema])


def schema_of(frame: DataFrame, name: str = "the DataFrame") -> pa.Schema:
    """The columns of a DataFrame in our types; raises SourceError, naming the column, where no type can hold it."""
    seen: set[str] = set()
    fields = []
    for field in frame.schema.fields:
        if field.name.lower() in seen:
            raise SourceError(
                f"{name} has more than one column '{field.name}'",
                remedy="give them different names: df.withColumnsRenamed({..}), or df.toDF(..)",
            )
        seen.add(field.name.lower())
        fields.append(pa.field(field.name, _ours(field, name)))
    return pa.schema(fields)


def readable(frame: DataFrame) -> DataFrame:
    """The frame without the columns that no type of ours can hold, if there are others."""
    odd = [field.name for field in frame.schema.fields if _held_by(field.dataType) is None]
    return frame if len(odd) == len(frame.schema.fields) else frame.drop(*odd)


def _held_by(given: T.DataType) -> pa.DataType | None:
    if isinstance(given, T.DecimalType) and given.scale >= 0:
        return pa.decimal128(given.precision, given.scale)
    if isinstance(given, T.ArrayType):
        element = _held_by(given.elementType)
        return None if element in _NEVER_INSIDE else pa.list_(element)
    if isinstance(given, T.StructType):
        fields = [(field.name, _held_by(field.dataType)) for field in given.fields]
        once = len({fold(name) for name, _ in fields}) == len(fields) > 0
        return pa.struct(fields) if once and all(type_ not in _NEVER_INSIDE for _, type_ in fields) else None
    return _OURS.get(type(given))


def _ours(field: T.StructField, name: str) -> pa.DataType:
    given = field.dataType
    ours = _held_by(given)
    if ours is None:
        remedy = f'leave it out with df.drop("{field.name}"), or make text of it: to_json(col("{field.name}"))'
        if isinstance(given, T.StructType):
            remedy = f'select its parts: df.select("*", "{field.name}.*").drop("{field.name}")'
        raise SourceError(
            f"column '{field.name}' of {name} is {given.simpleString()[:80]}, which no SQL type can hold",
            remedy=remedy,
        )
    return ours


def declared_columns(frame: DataFrame, declared: Schema, name: str = "the DataFrame") -> list[Column | None]:
    """For each declared column the one of the DataFrame, as the Spark type of its declared type.

    None where a value might not fit, or might be another one in Spark than it is for us: a narrower type, text to be
    read, a collation, padding. Such a column is conformed, and rows rejected, after the scan; until then no
    expression may read it. The columns are for filters and projections that run in Catalyst.
    """
    fields = {fold(field.name): field for field in frame.schema.fields}
    as_declared = []
    for column in declared:
        field = fields.get(fold(column.name))
        if field is None:
            raise SourceError(
                f"{name} has no column '{column.name}'", remedy=f"it has {', '.join(frame.columns)}; name one of these"
            )
        as_declared.append(_as_type(reference(field.name), field.dataType, column.type))
    return as_declared


def reference(name: str) -> Column:
    """The column of a name, whatever characters are in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def _as_type(column: Column, given: T.DataType, wanted: pa.DataType) -> Column | None:
    exact = to_spark(wanted)
    if wanted == JSON:  # a text is yet to be looked at
        return None
    if given == exact:
        return column
    if wanted == TIMESTAMP and isinstance(given, T.TimestampType):
        return instant(column)
    ours = _OURS.get(type(given))
    if ours in _WIDENED and wanted in _WIDENED[ours]:
        return column.cast(exact)
    return None


def instant(column: Column) -> Column:
    """A column of Spark's `timestamp` as our TIMESTAMP.

    A cast would go by the wall clock of the session's zone, where an hour of every autumn is there twice.
    """
    epoch = F.lit(EPOCH).cast(T.TimestampNTZType())
    return F.timestamp_add("MICROSECOND", F.unix_micros(column), epoch)


__all__ = ["declared_columns", "instant", "reference", "schema_of", "spark_schema", "to_spark"]
