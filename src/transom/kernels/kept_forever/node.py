"""The node that the planner puts above a join whose inputs it has bounded."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.schema import Schema
from transom.plan.algebra import OfRelation, Relation


@dataclass(frozen=True)
class KeptForever(OfRelation, Relation):
    """Every row of the input from its beginning on, whenever it ends there."""

    input: Relation

    @property
    def schema(self) -> Schema:
        return self.input.schema
