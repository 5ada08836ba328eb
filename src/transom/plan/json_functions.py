"""JSON and paths into it. A JSON value is a text that is known to be valid, and compares as such, as in DuckDB.

A path is a constant: '$.a.b[0]', where [-1] and [#-1] count from the end; a JSON pointer, '/a/b/0'; or else one name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, JSON, VARCHAR
from transom.plan.expression import Call, Expression, Literal
from transom.plan.scalar_operators import Arguments, Function, misfit
from transom.plan.typing_rules import NULL, coerce, is_integer

Step = str | int | tuple[str]
"""The name of a field, the index of an element (below 0: from the end), or what may be either (of a pointer)."""

_STEP: Final = re.compile(r'\.(?:"([^"\\]+)"|([^."\[*]+))|\[(?:(-?)|(#-))(\d{1,18})\]')


def steps(path: str) -> tuple[Step, ...]:
    """
    >>> steps('$.a."b.c"[0][#-1]'), steps("/a~1b/0"), steps("a b")
    (('a', 'b.c', 0, -1), (('a/b',), ('0',)), ('a b',))
    """
    if path.startswith("/"):
        parts = path[1:].split("/")
        return tuple((part.replace("~1", "/").replace("~0", "~"),) for part in parts)
    if not path.startswith("$"):
        return (path,) if path else ()
    path_steps: list[Step] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            what = "has a wildcard" if path[at:].startswith((".*", "[*", "..")) else f"cannot be read at '{path[at:]}'"
            remedy = "write '$.a.b[0]' for one value; a name with other letters stands in \"quotes\": '$.\"a.b\"'"
            raise QueryError(f"the path '{path}' {what}", remedy=remedy)
        name = step[1] or step[2]
        path_steps.append(name if name is not None else (-1 if step[3] or step[4] else 1) * int(step[5]))
        at = step.end()
    return tuple(path_steps)


def _path(function: Function, arguments: Arguments) -> Literal:
    """The constant path; an index alone is one into the array."""
    path = arguments[1]
    if isinstance(path, Literal) and is_integer(path.type) and path.value is not None:
        return Literal(f"$[{path.value}]", VARCHAR)
    if not isinstance(path, Literal) or not isinstance(path.value, str):
        raise misfit(function, arguments, f"write {function.usage}, with a constant path")
    steps(path.value)
    return path


def _of_json(gives: pa.DataType) -> Callable[[Function, Arguments], Expression]:
    def rule(function: Function, arguments: Arguments) -> Expression:
        value, *rest = arguments
        if value.type not in (JSON, VARCHAR, NULL):
            raise misfit(function, arguments)
        if value.type == NULL or any(each.type == NULL for each in rest):
            return Literal(None, gives)
        text = coerce(value, VARCHAR) if isinstance(value, Literal) else value
        return Call(function.name, (text, *([_path(function, arguments)] if rest else [])), gives)

    return rule


JSON_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("json_extract", "json -> '$.a[0]'", "the value at a path, as JSON; NULL where there is none", 2, 2,
             _of_json(JSON), ("json_extract_path", "json_query")),
    Function("json_extract_string", "json ->> '$.a'", "the same as a text: of a text its characters; of null NULL", 2,
             2,
             _of_json(VARCHAR), ("json_extract_path_text", "get_json_object")),
    Function("json_value", "json_value(json, '$.a')", "the same, but NULL for objects and arrays; with RETURNING type"
             " as a value of that", 2, 2, _of_json(VARCHAR)),
    Function("json_array_length", "json_array_length(json[, '$.a'])", "number of elements, 0 of what is no array", 1, 2,
             _of_json(BIGINT), ("jsonb_array_length",)),
    Function("json_type", "json_type(json[, '$.a'])", "OBJECT, ARRAY, VARCHAR, BOOLEAN, BIGINT, UBIGINT, DOUBLE or"
             " NULL", 1, 2, _of_json(VARCHAR)),
)  # fmt: skip
