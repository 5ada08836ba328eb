"""A join of many inputs as one node, which the planner alone makes."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.schema import Schema
from transom.plan.algebra import OfSeveral, Relation
from transom.plan.expression import Expression


@dataclass(frozen=True)
class MultiwayJoin(OfSeveral, Relation):
    """The columns of all relations side by side, of every tuple of rows that satisfies the predicates.

    keys[i][c], over the columns of relation i, equals keys[j][c] for all relations that have one; None where a relation
    is not in class c, and every class is on several. The other predicates are over all columns: the residual ones may
    be asked of any rows that have them, the last one only of tuples that satisfy all others, because it can fail.
    """

    relations: tuple[Relation, ...]
    keys: tuple[tuple[Expression | None, ...], ...]
    residual: tuple[Expression, ...] = ()
    last: Expression | None = None

    def __post_init__(self) -> None:
        assert len(self.relations) == len(self.keys) >= 2

    @property
    def schema(self) -> Schema:
        return Schema(tuple(column for relation in self.relations for column in relation.schema))

    @property
    def common_keys(self) -> tuple[int, ...]:
        """The classes that all relations are in."""
        return tuple(c for c in range(len(self.keys[0])) if all(own[c] is not None for own in self.keys))
