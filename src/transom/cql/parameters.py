"""Parameters: `$name` in a text stands for a value, which is read as a constant of its type and as nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from transom.core.errors import QueryError
from transom.core.text import lone_surrogate
from transom.core.values import Value


def constant(name: str, value: Value) -> str:
    """How a value is written in the language.

    >>> [constant("p", value) for value in ("it's", 3, -3, None, True, Decimal("1.50"), 0.5)]
    ["'it''s'", '3', '(-3)', 'NULL', 'TRUE', "CAST('1.50' AS DECIMAL(3, 2))", "CAST('0.5' AS DOUBLE)"]
    >>> constant("p", [1, {"a": "x"}])
    "[1, {'a': 'x'}]"
    >>> constant("p", datetime(2024, 5, 1)), constant("p", date(2024, 5, 1))
    ("TIMESTAMP '2024-05-01 00:00:00'", "DATE '2024-05-01'")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value) if value >= 0 else f"({value})"
        case str() if lone_surrogate(value) is None:
            return "'" + value.replace("'", "''") + "'"
        case float() if math.isfinite(value):
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return _decimal(name, value)
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime():
            return f"TIMESTAMPTZ '{value.astimezone(UTC).isoformat(' ')}'"
        case date() if not isinstance(value, datetime):
            return f"DATE '{value.isoformat()}'"
        case list():
            return f"[{', '.join(constant(name, each) for each in value)}]"
        case dict() if value:
            fields = (f"{constant(name, str(field))}: {constant(name, each)}" for field, each in value.items())
            return f"{{{', '.join(fields)}}}"
    raise QueryError(
        f"the parameter '{name}' cannot be {value!r}",
        remedy="give a text, a finite number, True, False, None, a date, a datetime, or a list or dictionary of these",
    )


def _decimal(name: str, value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > 38:
        raise QueryError(f"the parameter '{name}' has {precision} digits", remedy="a DECIMAL has 38 at most")
    return f"CAST('{value:f}' AS DECIMAL({max(precision, 1)}, {scale}))"


def reject_unused(parameters: Mapping[str, Value], used: set[str]) -> None:
    for name in parameters:
        if name not in used:
            raise QueryError(f"the text has no parameter '${name}'", remedy=f"leave '{name}' out, or write ${name}")
