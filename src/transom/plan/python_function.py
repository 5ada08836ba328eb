"""Functions that a program brings: from Arrow arrays to an Arrow array of the same length.

It promises that a function is deterministic: rows are computed in any order, in arrays of any length, on any worker,
perhaps more than once and by several threads, and have to have the same value every time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Final
from typing import Literal as OneOf

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import EvaluationError, QueryError
from transom.core.schema import BOOLEAN, DATE, TIMESTAMP, TIMESTAMPTZ, sql_name
from transom.core.time import BEGINNING, FOREVER
from transom.plan.expression import Expression, Literal
from transom.plan.typing_rules import NULL, coerce, common_type, fits, is_integer, type_name

Nulls = OneOf["propagate", "called"]

_DAY: Final = 86_400_000_000


@dataclass(frozen=True)
class PythonFunction:
    """A function by its name. `nulls`: "propagate", a row with a NULL among its arguments is NULL, and `body` does not
    see it; "called", it sees all rows.

    What it computes nobody can compare: `registered` tells one that was brought from another of the same name, and
    `version` is what its author calls it, which checkpoints know.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    nulls: Nulls
    version: str = field(repr=False)
    body: Callable[..., object] = field(repr=False, compare=False)
    registered: str = field(repr=False, default_factory=lambda: uuid.uuid4().hex)

    @property
    def usage(self) -> str:
        return f"{self.name}({', '.join(map(sql_name, self.arguments))})"

    def __str__(self) -> str:
        return f"{self.usage} {sql_name(self.returns)}, version '{self.version}'"

    def apply(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Its values, checked; raises EvaluationError where it fails or does not give what it declares."""
        if self.nulls == "called" or not any(column.null_count for column in columns):
            return self._called(columns)
        whole = columns[0].is_valid()
        for column in columns[1:]:
            whole = pc.and_(whole, column.is_valid())
        if not whole.true_count:
            return pa.nulls(len(whole), self.returns)
        values = self._called([column.filter(whole) for column in columns])
        indexes = pc.subtract(pc.cumulative_sum(whole.cast(pa.int64())), pa.scalar(1, pa.int64()))
        return values.take(pc.if_else(whole, indexes, pa.scalar(None, pa.int64())))

    def _called(self, columns: Sequence[pa.Array]) -> pa.Array:
        try:
            values = self.body(*columns)
        except Exception as error:  # of a function that is not ours
            raise EvaluationError(
                f"the Python function '{self.name}' failed: {type(error).__name__}: {error}",
                remedy="correct it, or filter the rows out that it cannot take",
            ) from error
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            raise self._wrong(f"a {type(values).__name__} where an Arrow array is expected", "return a pyarrow.Array")
        if values.type == NULL:
            values = pa.nulls(len(values), self.returns)
        if values.type != self.returns:
            raise self._wrong(
                f"values of type {values.type}, and declares {sql_name(self.returns)}",
                f"cast them: values.cast(pa.{self.returns}), or declare what it gives",
            )
        if len(values) != len(columns[0]):
            raise self._wrong(f"{len(values)} values for {len(columns[0])} rows", "return a value for each row")
        self._check_values(values)
        return values

    def _check_values(self, values: pa.Array) -> None:
        """A moment beyond the years 1 to 9999, too many digits or half a character would be found far from here."""
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._wrong(f"what is no {sql_name(self.returns)}: {error}", "return values of that type") from None
        if self.returns in (DATE, TIMESTAMP, TIMESTAMPTZ):
            unit = _DAY if self.returns == DATE else 1
            bounds = pc.min_max(values.cast(pa.int32() if self.returns == DATE else pa.int64())).as_py()
            if bounds["min"] is not None and not BEGINNING <= bounds["min"] * unit <= bounds["max"] * unit <= FOREVER:
                raise self._wrong(f"a {sql_name(self.returns)} beyond the years 1 to 9999", "return others, or NULL")

    def _wrong(self, what: str, remedy: str) -> EvaluationError:
        return EvaluationError(f"the Python function '{self.name}' gave {what}", remedy=remedy)


@dataclass(frozen=True)
class PythonCall(Expression):
    """A call of it, arguments already cast as it needs."""

    function: PythonFunction
    arguments: tuple[Expression, ...]

    @property
    def type(self) -> pa.DataType:
        return self.function.returns

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, arguments=children)

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.arguments))})"


def python_call(function: PythonFunction, arguments: tuple[Expression, ...]) -> PythonCall:
    """The typed call, with implicit casts to wider types; raises QueryError when it does not fit."""
    if len(arguments) != len(function.arguments):
        number = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
        raise QueryError(f"'{function.name}' does not take {number}", remedy=f"write {function.usage}")
    for argument, type_ in zip(arguments, function.arguments, strict=True):
        if not _becomes(argument, type_):
            given = ", ".join(type_name(each.type) for each in arguments)
            remedy = f"write {function.usage}, with CAST(value AS {sql_name(type_)}) where it is another type"
            raise QueryError(f"'{function.name}' cannot take {given}", remedy=remedy)
    pairs = zip(arguments, function.arguments, strict=True)
    return PythonCall(function, tuple(coerce(argument, type_) for argument, type_ in pairs))


def _becomes(argument: Expression, type_: pa.DataType) -> bool:
    """Whether an argument becomes a parameter's type without being asked to: nothing may be lost by it."""
    if argument.type in (type_, NULL):
        return True
    if isinstance(argument, Literal) and is_integer(argument.type) and is_integer(type_):
        return fits(argument, type_)
    return bool(argument.type != BOOLEAN and common_type([argument.type, type_]) == type_)


def functions_in(plan: object) -> list[PythonFunction]:
    """The functions that a plan calls, wherever in it, by their names."""
    by_name: dict[str, PythonFunction] = {}
    for call in _calls(plan, set()):
        by_name.setdefault(call.function.name, call.function)
    return [by_name[name] for name in sorted(by_name)]


def _calls(part: Any, seen: set[int]) -> Iterator[PythonCall]:
    if isinstance(part, tuple):
        for each in part:
            yield from _calls(each, seen)
    elif is_dataclass(part) and id(part) not in seen:
        seen.add(id(part))
        if isinstance(part, PythonCall):
            yield part
        for value in vars(part).values():
            yield from _calls(value, seen)
