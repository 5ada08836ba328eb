"""What an aggregate over a join asks for: the inputs, the keys that all of them are joined on, and everything else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import pyarrow as pa

from transom.core.schema import BIGINT, BOOLEAN
from transom.plan.algebra import Aggregate, AggregateCall, Filter, Join, Project, Relation
from transom.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SubQuery,
    columns_of,
    conjuncts,
    remap,
    substitute,
    transform,
    walk,
)
from transom.plan.same_key import without_widening

KeyMember = tuple[int, Expression]
"""An expression over the columns of one input."""


@dataclass(frozen=True)
class Shape:
    """An aggregate over a join. Keys, arguments and predicates are over the columns of all inputs side by side."""

    relations: tuple[Relation, ...]
    predicates: tuple[Expression, ...]
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]

    @cached_property
    def bounds(self) -> list[int]:
        bounds = [0]
        for relation in self.relations:
            bounds.append(bounds[-1] + len(relation.schema))
        return bounds

    @cached_property
    def classes(self) -> list[list[KeyMember]]:
        """Expressions that equalities, and what follows from them, hold equal; each class on several inputs."""
        classes: dict[int, list[KeyMember]] = {}  # the later a class was added to, the greater its number
        class_of: dict[KeyMember, int] = {}
        for number, part in enumerate(self.predicates):
            sides = self.equality(part)
            if sides is None:
                continue
            merged: list[KeyMember] = []
            for old in sorted({class_of[side] for side in sides if side in class_of}):
                merged += classes.pop(old)
            merged += [side for side in dict.fromkeys(sides) if side not in class_of]
            classes[number] = merged
            class_of.update(dict.fromkeys(merged, number))
        return list(classes.values())

    @cached_property
    def join_keys(self) -> list[list[KeyMember]]:
        """The classes that all inputs take part in, in the order in which they are written."""
        return [members for members in self.classes if {i for i, _ in members} == set(range(len(self.relations)))]

    @cached_property
    def residual(self) -> tuple[Expression, ...]:
        """The predicates that do not follow from the join keys."""
        covered = {member for members in self.join_keys for member in members}
        return tuple(
            part for part in self.predicates if (sides := self.equality(part)) is None or sides[0] not in covered
        )

    @cached_property
    def _equalities(self) -> dict[Expression, tuple[KeyMember, KeyMember] | None]:
        return {}

    def equality(self, part: Expression) -> tuple[KeyMember, KeyMember] | None:
        """The sides of an equality between two inputs."""
        equalities = self._equalities
        if part not in equalities:
            equalities[part] = self._equality(part)
        return equalities[part]

    def _equality(self, part: Expression) -> tuple[KeyMember, KeyMember] | None:
        if not isinstance(part, Call) or part.function != "=":
            return None
        first, second = (self.member(without_widening(side)) for side in part.arguments)
        return None if first is None or second is None or first[0] == second[0] else (first, second)

    def own(self, expression: Expression) -> KeyMember | None:
        """As `member`; what reads nothing at all may be computed on the first input."""
        return self.member(expression) if columns_of(expression) else (0, expression)

    def member(self, expression: Expression) -> KeyMember | None:
        """The one input that an expression reads, and the expression over its columns; None if there is none such."""
        used = columns_of(expression)
        for i in range(len(self.relations)):
            if used and self.bounds[i] <= min(used) and max(used) < self.bounds[i + 1]:
                local = remap(expression, {column: column - self.bounds[i] for column in used})
                return i, named(local, self.relations[i])
        return None

    @cached_property
    def grouped_inputs(self) -> set[int]:
        """The inputs whose columns it is grouped by, but for join keys, which all inputs have."""
        joined = [member for members in self.join_keys for member in members]
        own_keys = (self.own(key) for key in self.keys)
        return {each[0] for each in own_keys if each is not None and each not in joined}

    def same_on_one_input(self, i: int) -> list[Expression]:
        """Where a join key is several expressions of one input: that these are equal."""
        equalities: list[Expression] = []
        for members in self.join_keys:
            first, *others = [expression for at, expression in members if at == i]
            equalities += [equal(first, other) for other in others]
        return equalities


def shape_of(node: Aggregate) -> Shape | None:
    """The aggregate and the join below it as one, looking through projections; None where there is no join."""
    keys, calls = node.keys, node.calls
    below: Relation = node.input
    parts: tuple[Expression, ...] = ()
    while isinstance(below, Project | Filter):
        if isinstance(below, Filter):
            parts += conjuncts(below.predicate)
        else:
            inner = below.expressions
            keys = tuple(substitute(key, inner) for key in keys)
            calls = tuple(call.over(partial(substitute, values=inner)) for call in calls)
            parts = tuple(substitute(part, inner) for part in parts)
        below = below.input
    if not isinstance(below, Join):
        return None
    shape = Shape(below.relations, (*conjuncts(below.predicate), *parts), keys, calls)
    arguments = (each for call in calls for each in call.expressions)
    if any(isinstance(part, SubQuery) for e in (*shape.predicates, *keys, *arguments) for part in walk(e)):
        return None  # whoever plans the join says what is wrong with it
    return shape


def equal(left: Expression, right: Expression) -> Expression:
    """The condition that two expressions are equal, which equalities hold to be."""
    if left.type != right.type:  # integers of different width
        left, right = Cast(left, BIGINT), Cast(right, BIGINT)
    return Call("=", (left, right), BOOLEAN)


def named(expression: Expression, relation: Relation) -> Expression:
    """The expression with the names that the columns have in the relation, so that equal expressions are equal."""
    schema = relation.schema

    def rename(part: Expression) -> Expression:
        if not isinstance(part, ColumnRef):
            return part
        column = schema[part.index]
        return ColumnRef(part.index, column.type, column.name)

    return transform(expression, rename)


_NEVER_FAIL: Final = frozenset(
    (
        "=", "<>", "<", "<=", ">", ">=", "is_not_distinct", "in", "and", "or", "not", "is_null", "like", "ilike", "||",
        "coalesce", "nullif", "if", "greatest", "least", "upper", "lower", "length", "left", "right", "trim", "ltrim",
        "rtrim", "starts_with", "ends_with", "contains", "year", "quarter", "month", "week", "day", "dayofweek",
        "dayofyear", "hour", "minute", "second",
    )
)  # fmt: skip
_FLOATING: Final = frozenset(("+", "-", "*", "/", "negate", "abs"))


def may_fail(expression: Expression) -> bool:
    """Whether some value could make the expression an error: it must not be computed where it was not meant to be."""
    return any(_may_fail(part) for part in walk(expression))


def _may_fail(part: Expression) -> bool:
    if isinstance(part, ColumnRef | Literal | Case):
        return False
    if isinstance(part, Cast):
        return not part.safe and not _widens(part.operand.type, part.target)
    if isinstance(part, Call):
        floating = part.function in _FLOATING and pa.types.is_floating(part.type)
        return not floating and part.function not in _NEVER_FAIL
    return True


def _widens(type_: pa.DataType, wider: pa.DataType) -> bool:
    if pa.types.is_string(wider) or type_ == wider:
        return True
    if pa.types.is_integer(type_):
        return bool(pa.types.is_float64(wider)) or (pa.types.is_integer(wider) and wider.bit_width >= type_.bit_width)
    return bool((pa.types.is_floating(type_) or pa.types.is_decimal(type_)) and pa.types.is_float64(wider))
