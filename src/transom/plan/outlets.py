"""The answers of several queries as one stream, for a runtime that takes one answer out of a plan.

Only the planner makes these nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from transom.core.schema import INTEGER, Column, Schema
from transom.plan.algebra import Node, Stream, a_stream

_ANSWERS: Final = Schema((Column("outlet", INTEGER), Column("rows", pa.binary())))


@dataclass(frozen=True)
class Outlet(Stream):
    """The answer of the query `name` in its form, packed: a row for what a step has brought."""

    input: Node
    name: str
    number: int
    emit: str

    @property
    def schema(self) -> Schema:
        return _ANSWERS

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Outlets(Stream):
    """All of them."""

    outlets: tuple[Stream, ...]

    @property
    def schema(self) -> Schema:
        return _ANSWERS

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.outlets

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, outlets=tuple(a_stream(node) for node in inputs))
