"""Functions of a program for its queries: how they are declared."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import pyarrow as pa

from transom.core.errors import OptionError, QueryError, TransomError
from transom.core.schema import JSON, SQL_NAMES, is_nested
from transom.cql.bind_expression import CHANCE, WALL_CLOCK
from transom.cql.type_text import type_of_name
from transom.plan.catalogue import Catalogue
from transom.plan.functions import AGGREGATES, is_function
from transom.plan.python_function import Nulls, PythonFunction
from transom.program.arguments import require_text

SqlType: TypeAlias = str | pa.DataType
"""A type by its SQL name, or as Arrow has it."""


def declared_function(
    given_body: object,
    types: Sequence[SqlType],
    returns: SqlType | None,
    name: str | None,
    nulls: Nulls,
    version: str,
) -> PythonFunction:
    """What is not said is in the annotations: `Annotated[pa.Array, "DOUBLE"]`."""
    body, called = _named(given_body, name)
    if nulls not in ("propagate", "called"):
        raise OptionError(f"nulls cannot be '{nulls}'", remedy="write nulls='propagate' or 'called'")
    require_text(version, f"the version of the function '{called}'")
    given, gives = list(types), returns
    if not given or gives is None:
        noted, result = _annotated(body, called)
        given, gives = given or noted, result if gives is None else gives
    if not given or gives is None:
        raise OptionError(
            f"nothing says which types the function '{called}' takes and gives",
            remedy="write @session.function('DOUBLE', returns='DOUBLE'), or annotate it: Annotated[pa.Array, 'DOUBLE']",
        )
    arguments = tuple(_type(each, called) for each in given)
    return PythonFunction(called, arguments, _type(gives, called), nulls, version, body)


def add_function(catalogue: Catalogue, function: PythonFunction, replace: bool) -> None:
    """The catalogue knows it from now on; queries that are planned already keep the one that they have."""
    if is_function(function.name) or function.name in AGGREGATES or function.name in WALL_CLOCK | CHANCE:
        raise QueryError(f"'{function.name}' is a function of the language", remedy="give it another name: name='..'")
    if function.name in catalogue.functions and not replace:
        raise QueryError(
            f"there is a function '{function.name}' already", remedy="choose another name, or write replace=True"
        )
    catalogue.functions[function.name] = function


def _named(body: object, name: str | None) -> tuple[Callable[..., object], str]:
    if not callable(body):
        raise OptionError(f"a function is expected, not {type(body).__name__}", remedy="write it below the decorator")
    called = getattr(body, "__name__", "") if name is None else name
    require_text(called, "the name of a function")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", called):
        raise OptionError(f"a function cannot be called '{called}'", remedy="give it a name of letters: name='..'")
    return body, str(called).lower()


def _annotated(body: Callable[..., object], name: str) -> tuple[list[SqlType], SqlType | None]:
    try:
        hints = get_type_hints(body, include_extras=True)
        parameters = list(inspect.signature(body).parameters)
    except (TypeError, NameError, ValueError) as error:
        raise OptionError(
            f"the annotations of the function '{name}' cannot be read: {error}", remedy="give the types: 'DOUBLE', .."
        ) from None
    noted = [_noted(hints.get(parameter)) for parameter in parameters]
    return [each for each in noted if each is not None] if None not in noted else [], _noted(hints.get("return"))


def _noted(hint: Any) -> SqlType | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, str | pa.DataType)), None)


def _is_sql(type_: pa.DataType) -> bool:
    if is_nested(type_):
        return all(_is_sql(type_.field(i).type) for i in range(type_.num_fields))
    if type_ == JSON:
        return False
    return type_ in SQL_NAMES or (pa.types.is_decimal128(type_) and 0 <= type_.scale <= type_.precision)


def _type(given: SqlType, function: str) -> pa.DataType:
    if isinstance(given, pa.DataType):
        if _is_sql(given):
            return given
        raise OptionError(
            f"the function '{function}' has the type {given}, which no SQL type is", remedy="name an SQL type: 'DOUBLE'"
        )
    require_text(given, f"a type of the function '{function}'")
    try:
        type_ = type_of_name(given)
    except TransomError as error:
        raise OptionError(f"the function '{function}': {error.what}", remedy=error.remedy) from None
    if type_ == JSON:
        raise OptionError(f"the function '{function}' has JSON, which is text to Python", remedy="name 'VARCHAR'")
    return type_
