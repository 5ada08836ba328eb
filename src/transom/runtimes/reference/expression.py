"""Scalar expressions as DuckDB SQL. Identifiers are generated, literals typed, functions from a closed list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from transom.core.schema import (
    BOOLEAN,
    DURATION,
    HUGEINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    is_array,
    is_struct,
    sql_name,
)
from transom.core.time import from_datetime
from transom.plan.algebra import Relation
from transom.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    Expression,
    InQuery,
    Literal,
    OuterColumn,
    ScalarQuery,
)
from transom.plan.python_function import PythonCall, PythonFunction

Columns = Sequence[str]

_INFIX: Final = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "||",
    "&",
    "|",
    "<<",
    ">>",
)

# Where DuckDB spells it otherwise, or parses the name in a way of its own.
_TEMPLATES: Final = {
    "not": "(NOT {0})",
    "negate": "(- {0})",
    "~": "(~ {0})",
    "is_null": "({0} IS NULL)",
    "is_not_distinct": "({0} IS NOT DISTINCT FROM {1})",
    "add_interval": "({0} + to_microseconds({1}))",
    "add_months": "({0} + (to_months(CAST({1} AS INTEGER)) + to_microseconds({2})))",
    "position": "strpos({0}, {1})",
    "array_length": "len({0})",
    "list_distinct": "list_sort(list_distinct({0}))",
    "split_index": "CASE WHEN {1} IS NOT NULL AND {2} BETWEEN 0 AND 2147483647"
    " THEN list_extract(string_split({0}, {1}), {2} + 1) END",
    "change_zone": "timezone({2}, timezone({1}, {0}))",
}


@dataclass(frozen=True)
class SqlScope:
    """What the columns of a row are called, and those of the rows around a sub-query, the nearest last."""

    columns: Columns
    outer: tuple[Columns, ...] = ()

    def inside(self) -> tuple[Columns, ...]:
        return (*self.outer, self.columns)


SubQuery = Callable[[Relation, tuple[Columns, ...]], str]


def type_sql(type_: pa.DataType) -> str:
    """DuckDB's name of a type; the widest decimal without places is its HUGEINT."""
    if pa.types.is_null(type_):
        return "INTEGER"
    if is_array(type_):
        return f"{type_sql(type_.value_type)}[]"
    if is_struct(type_):
        return f"STRUCT({', '.join(f'{_quoted(field.name)} {type_sql(field.type)}' for field in type_)})"
    return "HUGEINT" if type_ == HUGEINT else sql_name(type_)


def python_name(function: PythonFunction) -> str:
    """What a function of a program is called in DuckDB."""
    return f"python_{function.registered}"


def literal_sql(value: Any, type_: pa.DataType) -> str:
    """A typed constant.

    >>> literal_sql("it's", pa.string()), literal_sql(None, BOOLEAN)
    ("CAST('it''s' AS VARCHAR)", 'CAST(NULL AS BOOLEAN)')
    """
    if value is None:
        text = "NULL"
    elif type_ == TIMESTAMP:
        return f"make_timestamp(CAST({from_datetime(value)} AS BIGINT))"
    elif type_ == TIMESTAMPTZ:
        return f"make_timestamptz(CAST({from_datetime(value)} AS BIGINT))"
    elif type_ == BOOLEAN:
        return "TRUE" if value else "FALSE"
    else:
        # Without an exponent: DuckDB reads '5E-9' as another decimal.
        plain = f"{value:f}" if isinstance(value, Decimal) else str(value)
        text = "'" + plain.replace("'", "''") + "'"
    return f"CAST({text} AS {type_sql(type_)})"


def expression_sql(expression: Expression, scope: SqlScope, sub_query: SubQuery) -> str:
    """The expression over a row of the scope; `sub_query` writes the SELECT of a plan, given the rows around it."""

    def sql(node: Expression) -> str:
        match node:
            case ColumnRef():
                return scope.columns[node.index]
            case OuterColumn():
                return scope.outer[-node.depth][node.index]
            case Literal():
                return literal_sql(node.value, node.type)
            case Call():
                return _call(node, [sql(argument) for argument in node.arguments])
            case PythonCall():
                types = zip(node.arguments, node.function.arguments, strict=True)
                given = ", ".join(f"CAST({sql(argument)} AS {sql_name(type_)})" for argument, type_ in types)
                return f"CAST({python_name(node.function)}({given}) AS {type_sql(node.type)})"
            case Case():
                arms = zip(node.conditions, node.results, strict=True)
                written = " ".join(f"WHEN {sql(condition)} THEN {sql(result)}" for condition, result in arms)
                return f"CASE {written} ELSE {sql(node.otherwise)} END"
            case Cast() if node.target == DURATION:
                return f"to_microseconds({sql(node.operand)})"
            case Cast() if node.operand.type == DURATION:
                return f"epoch_us({sql(node.operand)})"
            case Cast():
                written = f"{'TRY_CAST' if node.safe else 'CAST'}({sql(node.operand)} AS {type_sql(node.target)})"
                if node.target == VARCHAR and pa.types.is_floating(node.operand.type):
                    return f"replace({written}, '-nan', 'nan')"  # the sign of NaN has no meaning
                return written
            case Exists():
                return f"EXISTS ({sub_query(node.query, scope.inside())})"
            case ScalarQuery():
                return f"({sub_query(node.query, scope.inside())})"
            case InQuery():
                return f"({sql(node.operand)} IN ({sub_query(node.query, scope.inside())}))"
        raise TypeError(f"an expression without a meaning: {node!r}")

    return sql(expression)


def _call(call: Call, arguments: list[str]) -> str:
    name = call.function
    if name in _INFIX:
        written = "(" + f" {name.upper()} ".join(arguments) + ")"
    elif name in _TEMPLATES:
        written = _TEMPLATES[name].format(*arguments)
    elif name == "time_bucket":
        written = _interval_around(call, arguments)
    elif name in ("list_value", "struct_pack"):
        written = _put_together(call, arguments)
    elif name == "in":
        written = f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    elif name in ("like", "ilike"):
        escape = f" ESCAPE {arguments[2]}" if len(arguments) > 2 else ""
        written = f"({arguments[0]} {name.upper()} {arguments[1]}{escape})"
    else:
        assert name.replace("_", "").isalnum(), name
        written = f"{name}({', '.join(arguments)})"
    # The type is part of the meaning (where an addition overflows); DuckDB's own is nearly always the same.
    return written if call.type == BOOLEAN else f"CAST({written} AS {type_sql(call.type)})"


def _put_together(call: Call, arguments: list[str]) -> str:
    """An array or a struct; within those there is one zero."""
    parts = [
        f"({written} + 0.0)" if pa.types.is_floating(argument.type) else written
        for argument, written in zip(call.arguments, arguments, strict=True)
    ]
    if call.function == "list_value":
        return f"[{', '.join(parts)}]"
    named = zip(call.type.names, parts, strict=True)
    return f"struct_pack({', '.join(f'{_quoted(name)} := {part}' for name, part in named)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _interval_around(call: Call, arguments: list[str]) -> str:
    """The bucket of a moment, by months or by microseconds, of which the other is 0."""
    moment, months, micros, *origin = arguments
    in_months = isinstance(call.arguments[1], Literal) and call.arguments[1].value != 0
    width = f"to_months(CAST({months} AS INTEGER))" if in_months else f"to_microseconds({micros})"
    return f"time_bucket({', '.join([width, moment, *origin])})"
