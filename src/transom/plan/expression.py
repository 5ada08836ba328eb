"""Scalar expressions: typed trees over the columns of one row.

Names of operators and functions are those of `plan/functions.py`, a closed list. Columns are positions, so that
self-joins and repeated names need no care. `OuterColumn` appears only inside the plan of a sub-query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from transom.core.excerpt import Excerpt
from transom.core.schema import BOOLEAN, sql_name
from transom.core.structural import Structural

if TYPE_CHECKING:
    from transom.plan.algebra import Relation


@dataclass(frozen=True)
class Expression(Structural, ABC):
    """A value computed from one row. Every kind has a `type`; `excerpt` is what of a query says so, if known."""

    excerpt: Excerpt | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    @abstractmethod
    def type(self) -> pa.DataType: ...

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return self


@dataclass(frozen=True)
class ColumnRef(Expression):
    index: int
    column_type: pa.DataType
    name: str

    @property
    def type(self) -> pa.DataType:
        return self.column_type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OuterColumn(Expression):
    """A column of the row around a sub-query; `depth` 1 is the nearest enclosing query."""

    index: int
    column_type: pa.DataType
    name: str
    depth: int = 1

    @property
    def type(self) -> pa.DataType:
        return self.column_type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Expression):
    """A constant: None, bool, int, float, Decimal, str, date or (naive, UTC) datetime, of the given type."""

    value: Any
    literal_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.literal_type

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        return str(self.value)


@dataclass(frozen=True)
class Call(Expression):
    """An operator or function of the closed list in `plan/functions.py`, arguments already cast as it needs."""

    function: str
    arguments: tuple[Expression, ...]
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, arguments=children)

    def __str__(self) -> str:
        arguments = [str(argument) for argument in self.arguments]
        if len(arguments) == 2 and not self.function[0].isalpha():
            return f"({arguments[0]} {self.function} {arguments[1]})"
        if self.function in ("and", "or"):
            return "(" + f" {self.function.upper()} ".join(arguments) + ")"
        if self.function == "in":
            return f"{arguments[0]} IN ({', '.join(arguments[1:])})"
        return f"{self.function}({', '.join(arguments)})"


@dataclass(frozen=True)
class Case(Expression):
    """CASE WHEN conditions[i] THEN results[i] .. ELSE otherwise END; a branch is evaluated only where it is taken."""

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression

    @property
    def type(self) -> pa.DataType:
        return self.otherwise.type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (*self.conditions, *self.results, self.otherwise)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        n = len(self.conditions)
        return Case(children[:n], children[n : 2 * n], children[2 * n])

    def __str__(self) -> str:
        arms = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(self.conditions, self.results, strict=True))
        return f"CASE {arms} ELSE {self.otherwise} END"


@dataclass(frozen=True)
class Cast(Expression):
    """CAST; with `safe` (TRY_CAST) what cannot be cast is NULL, otherwise it is an EvaluationError."""

    operand: Expression
    target: pa.DataType
    safe: bool = False

    @property
    def type(self) -> pa.DataType:
        return self.target

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{'TRY_CAST' if self.safe else 'CAST'}({self.operand} AS {sql_name(self.target)})"


class SubQuery(Expression):
    """What holds the plan of a sub-query."""

    query: Relation

    def with_query(self, query: Relation) -> Expression:
        return replace(self, query=query)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Exists(SubQuery):
    """[NOT] EXISTS (sub-query)."""

    query: Relation

    @property
    def type(self) -> pa.DataType:
        return BOOLEAN

    def __str__(self) -> str:
        return "EXISTS (..)"


@dataclass(frozen=True)
class InQuery(SubQuery):
    """operand IN (sub-query of one column), with SQL's three-valued answer."""

    operand: Expression
    query: Relation

    @property
    def type(self) -> pa.DataType:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{self.operand} IN (..)"


@dataclass(frozen=True)
class ScalarQuery(SubQuery):
    """The value of a sub-query of one column that has at most one row; NULL if it has none."""

    query: Relation

    @property
    def type(self) -> pa.DataType:
        return self.query.schema[0].type

    def __str__(self) -> str:
        return "(..)"


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first; does not enter the plans of sub-queries.

    What stands in it more than once comes once.
    """
    seen: set[int] = set()
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.children))


def transform(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A copy with `change` applied to every node, children first; to what stands in it more than once, once."""
    made: dict[int, Expression] = {}

    def changed(node: Expression) -> Expression:
        changed_node = made.get(id(node))
        if changed_node is None:
            children = tuple([changed(child) for child in node.children])
            same = all(new is old for new, old in zip(children, node.children, strict=True))
            changed_node = made[id(node)] = change(node if same else node.with_children(children))
        return changed_node

    return changed(expression)


def columns_of(expression: Expression) -> frozenset[int]:
    """Positions of the columns that the expression reads."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, ColumnRef))


def remap(expression: Expression, positions: dict[int, int]) -> Expression:
    """The same expression over a row whose columns moved: old position -> new position."""

    def move(node: Expression) -> Expression:
        return replace(node, index=positions[node.index]) if isinstance(node, ColumnRef) else node

    return transform(expression, move)


def shifted(expression: Expression, by: int) -> Expression:
    """The same expression over a row in which all its columns stand so many places later."""
    return remap(expression, {column: column + by for column in columns_of(expression)})


def substitute(expression: Expression, values: tuple[Expression, ...]) -> Expression:
    """The expression with column i replaced by values[i]."""

    def fill(node: Expression) -> Expression:
        return values[node.index] if isinstance(node, ColumnRef) else node

    return transform(expression, fill)


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """The parts of an AND, in order; nothing for None."""
    if predicate is None:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for argument in predicate.arguments for part in conjuncts(argument))
    return (predicate,)


def conjunction(parts: tuple[Expression, ...]) -> Expression | None:
    """One AND of the parts, however many: a chain would be as deep as it is long. None for none."""
    return Call("and", parts, BOOLEAN) if len(parts) > 1 else next(iter(parts), None)
