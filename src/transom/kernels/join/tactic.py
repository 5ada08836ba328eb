"""Tactics of joins of two.

| tactic | takes | keeps |
| --- | --- | --- |
| ring_hash | an equality, and ends that grow with arrival on both sides | the rows alive, in rings |
| lazy_hash | an equality | the rows alive, ends in a lazily sorted set |
| nested_loop | anything | the rows alive |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from transom.core.schema import BOOLEAN
from transom.kernels import description
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.kernel import Kernel
from transom.kernels.negative.join import NegativeJoinKernel, NegativeJoinState
from transom.kernels.operator import SINGLE, Alive, JoinKeys, Key, Operator, Partitioning, Site, Tactic
from transom.plan.algebra import Join, Node
from transom.plan.expression import Call, ColumnRef, Expression, columns_of, conjunction, conjuncts, remap
from transom.plan.same_key import same_key, without_widening


class JoinTactic(Tactic):
    nodes: ClassVar[tuple[type[Node], ...]] = (Join,)
    title = "join "
    states: ClassVar[tuple[type, ...]] = (JoinState, NegativeJoinState)

    work: ClassVar[str]
    """What a row costs."""

    @classmethod
    @abstractmethod
    def unsupported(cls, left: Operator, right: Operator, keys: JoinKeys) -> str | None:
        """Why it cannot run a join; None where it can."""

    @classmethod
    def chosen(cls, left: Operator, right: Operator, not_taken: tuple[tuple[str, str], ...]) -> JoinTactic:
        """For the join of these inputs."""
        pairs = ", and a list node per open pair" if left.open_ends or right.open_ends else ""
        return cls(f"the rows alive of both sides{pairs}", cls.work, not_taken)

    def needs(self, keys: JoinKeys) -> tuple[Partitioning, Partitioning]:
        """How the rows of both sides may be spread."""
        if not keys.left:
            return SINGLE, SINGLE
        return Partitioning("keys", keys.left), Partitioning("keys", keys.right)

    def predicate(self, operator: Operator) -> JoinKeys:
        """What its kernel looks up, and what it asks of the pairs that it finds."""
        return _keys(operator)

    def describe(self, operator: Operator) -> str:
        keys = _keys(operator)
        left, right = (description.origin(side) for side in operator.inputs)
        parts = [
            f"{description.of_origin(a, left)} = {description.of_origin(b, right)}"
            for a, b in zip(keys.left, keys.right, strict=True)
        ]
        if keys.residual is not None:
            parts.append(str(keys.residual))
        return " AND ".join(parts) or "all pairs"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        kernel = NegativeJoinKernel if operator.negative else JoinKernel
        keys, width = self.predicate(operator), len(operator.inputs[0].schema)
        return (kernel(self.name, keys.left, keys.right, keys.residual, operator.schema.held(), width),)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="each distinct row alive of both sides once, with its count")

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """A key of one side is the key of the other side as well."""
        keys = _keys(operator)
        for left, right in zip(keys.left, keys.right, strict=True):
            if same_key(key, left) or same_key(key, moved_right(right, operator)):
                return left, right
        return None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        """A side that is joined on its whole key adds no row to those of the other."""
        keys, width = _keys(operator), len(operator.inputs[0].schema)
        left, right = below
        if left is not None and _names(right, keys.right):
            return left
        if right is not None and _names(left, keys.left):
            return tuple(width + at for at in right)
        return side_by_side(operator, below)

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return Alive.joined(below)


class RingHashTactic(JoinTactic):
    name = "ring_hash"
    work = "O(1 + matches) a row"

    @classmethod
    def unsupported(cls, left: Operator, right: Operator, keys: JoinKeys) -> str | None:
        if not keys.left:
            return "there is no equality between the sides"
        growing = left.ends_grow and right.ends_grow
        side = "right" if left.ends_grow else "left"
        return None if growing else f"rows of the {side} input do not end in the order in which they came"

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="the rows alive of both sides")


class LazyHashTactic(JoinTactic):
    name = "lazy_hash"
    work = "O(1 + matches) a row, O(log n) to expire"

    @classmethod
    def unsupported(cls, left: Operator, right: Operator, keys: JoinKeys) -> str | None:
        return None if keys.left else "there is no equality between the sides"


class NestedLoopTactic(JoinTactic):
    name = "nested_loop"
    work = "O(rows alive on the other side) a row"

    @classmethod
    def unsupported(cls, left: Operator, right: Operator, keys: JoinKeys) -> str | None:
        return None

    def needs(self, keys: JoinKeys) -> tuple[Partitioning, Partitioning]:
        return SINGLE, SINGLE

    def predicate(self, operator: Operator) -> JoinKeys:
        """The predicate without keys: nothing is looked up, equalities are asked of all pairs."""
        keys = _keys(operator)
        parts: list[Expression] = []
        for left, right in zip(keys.left, keys.right, strict=True):
            parts.append(Call("=", (left, moved_right(right, operator)), BOOLEAN))
        return JoinKeys((), (), conjunction((*parts, *conjuncts(keys.residual))))


def side_by_side(operator: Operator, below: Sequence[Key | None]) -> Key | None:
    """The keys of all inputs of a join."""
    columns: list[int] = []
    width = 0
    for key, child in zip(below, operator.inputs, strict=True):
        if key is None:
            return None
        columns += [width + at for at in key]
        width += len(child.schema)
    return tuple(columns)


def _keys(operator: Operator) -> JoinKeys:
    assert operator.keys is not None
    return operator.keys


def moved_right(right: Expression, operator: Operator) -> Expression:
    """A key of the right side over the columns of both."""
    width = len(operator.inputs[0].schema)
    return remap(right, {column: column + width for column in columns_of(right)})


def _names(key: Key | None, joined_on: Sequence[Expression]) -> bool:
    """Whether equal values of these expressions name a row."""
    plain = [without_widening(each) for each in joined_on]
    columns = {each.index for each in plain if isinstance(each, ColumnRef)}
    return key is not None and columns.issuperset(key)
