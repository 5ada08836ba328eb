"""Tactics of outer joins, and of semi and anti joins: those of the inner join, which knows the partners of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from transom.kernels.join.tactic import JoinTactic, LazyHashTactic, NestedLoopTactic, RingHashTactic, moved_right
from transom.kernels.kernel import Kernel
from transom.kernels.negative.join import NegativeJoinKernel
from transom.kernels.negative.outer_join import NegativeOuterJoinKernel, NegativeOuterJoinState
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.kernels.outer_join.outer_join import OuterJoinKernel, OuterJoinState
from transom.plan.algebra import AntiJoin, Node, OuterJoin, SemiJoin, StreamScan
from transom.plan.expression import Expression
from transom.plan.same_key import same_key


class PartnerTactic(JoinTactic):
    """What is asked of each row of a side is whether it has a partner."""

    states: ClassVar[tuple[type, ...]] = (OuterJoinState, NegativeOuterJoinState)

    @classmethod
    def chosen(cls, left: Operator, right: Operator, not_taken: tuple[tuple[str, str], ...]) -> JoinTactic:
        pairs = ", and a list node per open pair" if left.open_ends or right.open_ends else ""
        return cls(f"the rows alive of both sides, and whether they have a partner{pairs}", cls.work, not_taken)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        keys, (left, right) = self.predicate(operator), operator.inputs
        both = pa.schema([*left.schema.held(), *right.schema.held()])
        kind, answer = kind_of(operator), operator.schema.held()
        predicate = (self.name, keys.left, keys.right, keys.residual, both, len(left.schema))
        if operator.negative:
            return (NegativeOuterJoinKernel(kind, NegativeJoinKernel(*predicate), answer),)
        over, twice = site.shown_as == "lifetimes", site.shown_as == "changes"
        return (OuterJoinKernel(*predicate, kind, answer, over, _stays(operator), twice),)

    def describe(self, operator: Operator) -> str:
        return super().describe(operator) + (": stays so when a row's time is over" if _stays(operator) else "")

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        inner = super().with_negative_tuples(operator)
        return replace(
            self, keeps=f"{inner.keeps}, and of those that may be alone each distinct one with its pairs counted"
        )

    def lasts(self, operator: Operator, below: bool) -> bool:
        """A row that has found a partner keeps it, where none ever leaves; one without a partner may find one."""
        return kind_of(operator) == "semi" and (below or _stays(operator))


class OuterJoinTactic(PartnerTactic):
    nodes: ClassVar[tuple[type[Node], ...]] = (OuterJoin,)
    title = "outer join "

    def describe(self, operator: Operator) -> str:
        return f"{kind_of(operator)} join on {super().describe(operator)}"

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """The key of the other side is NULL where a row is alone."""
        keys = super().keys_below(operator, key)
        kind = kind_of(operator)
        if keys is None or kind == "full":
            return None
        own = keys[0] if kind == "left" else moved_right(keys[1], operator)
        return keys if same_key(key, own) else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        """At an instant a row is alone or in pairs, never both. Rows of both sides that are alone may look alike."""
        return None if kind_of(operator) == "full" else self._key_of_pairs(operator, below)

    def _key_of_pairs(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        of_pairs = super().answer_key(operator, below)
        if of_pairs is None:
            return None
        left, right = below
        width = len(operator.inputs[0].schema)
        kind = kind_of(operator)
        if kind == "left" and left is not None and set(left) <= set(of_pairs):
            return of_pairs
        if kind == "right" and right is not None and {width + at for at in right} <= set(of_pairs):
            return of_pairs
        return None

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        if _stays(operator):
            return _named(operator)
        sides = {"left": below[:1], "right": below[1:], "full": below}[kind_of(operator)]
        return Alive.united([Alive.joined(below), *sides])


class SemiJoinTactic(PartnerTactic):
    nodes: ClassVar[tuple[type[Node], ...]] = (SemiJoin,)
    title = "semi join "

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """The columns of the left, and they alone, are those of the answer."""
        assert operator.keys is not None
        for left, right in zip(operator.keys.left, operator.keys.right, strict=True):
            if same_key(key, left):
                return left, right
        return None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return below[0]

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return _named(operator.inputs[0]) if _stays(operator) else Alive.joined(below)


class AntiJoinTactic(SemiJoinTactic):
    nodes: ClassVar[tuple[type[Node], ...]] = (AntiJoin,)
    title = "anti join "

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return _named(operator.inputs[0]) if _stays(operator) else below[0]


class OuterRingHashTactic(OuterJoinTactic, RingHashTactic):
    pass


class OuterLazyHashTactic(OuterJoinTactic, LazyHashTactic):
    pass


class OuterNestedLoopTactic(OuterJoinTactic, NestedLoopTactic):
    pass


class SemiRingHashTactic(SemiJoinTactic, RingHashTactic):
    pass


class SemiLazyHashTactic(SemiJoinTactic, LazyHashTactic):
    pass


class SemiNestedLoopTactic(SemiJoinTactic, NestedLoopTactic):
    pass


class AntiRingHashTactic(AntiJoinTactic, RingHashTactic):
    pass


class AntiLazyHashTactic(AntiJoinTactic, LazyHashTactic):
    pass


class AntiNestedLoopTactic(AntiJoinTactic, NestedLoopTactic):
    pass


def kind_of(operator: Operator) -> str:
    """Left, right, full, semi or anti."""
    node = operator.node
    if isinstance(node, OuterJoin):
        return node.side
    return "anti" if isinstance(node, AntiJoin) else "semi"


def _stays(operator: Operator) -> bool:
    assert isinstance(operator.node, OuterJoin | SemiJoin)
    return operator.node.stays


def _named(operator: Operator) -> Alive:
    """Rows of these streams that never end, though what is below forgets them."""
    return Alive(tuple(dict.fromkeys(o.node.name for o in operator.walk() if isinstance(o.node, StreamScan))))
