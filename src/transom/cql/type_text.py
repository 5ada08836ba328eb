"""A type that a program or a checkpoint names by its text."""

from __future__ import annotations

import pyarrow as pa

from transom.cql.dialect import parse_type
from transom.cql.literals import bind_type
from transom.cql.query_text import QueryText


def type_of_name(text: str) -> pa.DataType:
    """The type that is written so.

    >>> type_of_name("int"), type_of_name("decimal(10, 2)"), type_of_name("VARCHAR[]")
    (DataType(int32), Decimal128Type(decimal128(10, 2)), ListType(list<item: string>))
    """
    return bind_type(parse_type(text), QueryText(text))
