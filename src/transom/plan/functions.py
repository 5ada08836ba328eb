"""The closed list of scalar operators and functions, and how each is typed.

`resolve` is the only way in: it finds a function by its name, inserts the casts that DuckDB would insert, and gives a
typed expression. Whatever is in the list has the value that DuckDB gives it; a function that cannot be made to agree
on every input (text beyond ASCII, years before 1) is left out rather than offered almost right.
"""

from __future__ import annotations

import difflib
from typing import Final

from transom.core.errors import QueryError
from transom.plan.aggregate_functions import (
    AGGREGATES,
    AGGREGATES_OF_NULLS,
    AggregateFunction,
    WrittenAggregate,
    aggregate_call,
    constant_number,
    resolve_aggregate,
)
from transom.plan.algebra import OrderedBy
from transom.plan.expression import Expression
from transom.plan.intervals import INTERVALS_TAKEN, as_interval, with_intervals
from transom.plan.json_functions import JSON_FUNCTIONS
from transom.plan.nested_functions import NESTED_FUNCTIONS, field_of, struct_of
from transom.plan.scalar_operators import OPERATORS, Function, case, misfit, truth
from transom.plan.signatures import DATE_FUNCTIONS, NUMBER_FUNCTIONS, TEXT_FUNCTIONS
from transom.plan.typing_rules import INTERVAL, NULL, cast, coerce, common_type, meeting_type, settle, settled

FUNCTIONS: Final[tuple[Function, ...]] = (
    *OPERATORS,
    *NUMBER_FUNCTIONS,
    *TEXT_FUNCTIONS,
    *DATE_FUNCTIONS,
    *NESTED_FUNCTIONS,
    *JSON_FUNCTIONS,
)

_BY_NAME: Final[dict[str, Function]] = {name: f for f in FUNCTIONS for name in (f.name, *f.aliases)}


def resolve(function: str, arguments: tuple[Expression, ...]) -> Expression:
    """The typed call of a function or operator, with implicit casts; raises QueryError when it does not fit.

    >>> from transom.plan.expression import ColumnRef, Literal
    >>> from transom.core.schema import INTEGER
    >>> call = resolve("/", (ColumnRef(0, INTEGER, "a"), Literal(2, INTEGER)))
    >>> str(call), str(call.type)
    ('(CAST(a AS DOUBLE) / CAST(2 AS DOUBLE))', 'double')
    """
    definition = _BY_NAME.get(function.lower())
    if definition is None:
        close = suggest(function)
        remedy = (
            f"did you mean {' or '.join(close)}?" if close else "see SHOW FUNCTIONS, or bring it: @session.function(..)"
        )
        raise QueryError(f"there is no function '{function}'", remedy=remedy)
    if len(arguments) < definition.least or (definition.most is not None and len(arguments) > definition.most):
        raise QueryError(
            f"'{definition.name}' does not take {len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
            remedy=f"write {definition.usage}",
        )
    if definition.name not in INTERVALS_TAKEN:
        arguments = tuple(settle(each) if each.type == INTERVAL else each for each in arguments)
        return definition.rule(definition, arguments)
    if definition.name != "time_bucket":
        arguments = tuple(map(as_interval, arguments))
    if definition.name == "time_bucket" or all(argument.type != INTERVAL for argument in arguments):
        return definition.rule(definition, arguments)
    made = with_intervals(definition.name, arguments)
    if made is None:
        raise misfit(
            definition, arguments, "write timestamp + INTERVAL '10' MINUTE, or compare it with another interval"
        )
    return made


def is_function(name: str) -> bool:
    """Whether `resolve` knows the name."""
    return name.lower() in _BY_NAME


def suggest(function: str) -> list[str]:
    """Up to three names that were perhaps meant.

    >>> suggest("lenght")
    ['length', 'len']
    """
    words = sorted(name for name in (*_BY_NAME, *AGGREGATES) if name[0].isalpha())
    return difflib.get_close_matches(function.lower(), words, n=3, cutoff=0.65)


__all__ = [
    "AGGREGATES",
    "AGGREGATES_OF_NULLS",
    "FUNCTIONS",
    "NULL",
    "AggregateFunction",
    "Function",
    "OrderedBy",
    "WrittenAggregate",
    "aggregate_call",
    "case",
    "cast",
    "coerce",
    "common_type",
    "constant_number",
    "field_of",
    "is_function",
    "meeting_type",
    "resolve",
    "resolve_aggregate",
    "settle",
    "settled",
    "struct_of",
    "suggest",
    "truth",
]
