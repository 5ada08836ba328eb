"""The node that the planner puts above a join whose inputs it has bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transom.core.schema import Schema
from transom.plan.algebra import Node, Relation, a_relation


@dataclass(frozen=True)
class KeptForever(Relation):
    """Every row of the input from its beginning on, whenever it ends there."""

    input: Relation

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, input=a_relation(inputs[0]))
