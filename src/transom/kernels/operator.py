"""The physical plan: a tree of operators, each with its tactic, its bounds and what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

from transom.core.schema import Schema
from transom.core.structural import Structural
from transom.plan.algebra import Change, Node, StreamScan, TableScan, ToStream
from transom.plan.expression import ColumnRef, Expression


@dataclass(frozen=True)
class Tactic:
    """The way an operator runs, what it keeps and costs, and why the others do not.

    Where it was chosen by `estimates`, microseconds a row of each tactic, they rest on what is named there.
    """

    name: str
    keeps: str
    costs: str = "O(1) a row"
    refused: tuple[tuple[str, str], ...] = ()
    estimates: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    rests_on: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class JoinKeys:
    """left[i] = right[i] (over the columns of their side), and what else must hold of a pair."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    residual: Expression | None


@dataclass(frozen=True)
class Partitioning:
    """How the rows of an input may be spread over buckets: in any way, by keys over the columns of that input, or not.

    Rows that agree on all keys must meet; so rows spread by some of the keys, or by one of them, meet as well. The
    inputs of one operator have equally many keys, and the keys at one place stand for the same value.
    """

    kind: OneOf["any", "keys", "single"]
    keys: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"by ({', '.join(str(key) for key in self.keys)})" if self.kind == "keys" else self.kind


def column(schema: Schema, index: int) -> ColumnRef:
    return ColumnRef(index, schema[index].type, schema[index].name)


ANY = Partitioning("any")
SINGLE = Partitioning("single")


@dataclass(frozen=True)
class Operator(Structural):
    """A node of the algebra with the tactic that runs it. Equal operators are the same operator and run once.

    `needs` says how the rows of each input may be spread; a scan has one, for the rows of its source. `negative`: rows
    come twice, as negative tuples, instead of once with a lifetime.
    """

    node: Node
    tactic: Tactic
    inputs: tuple[Operator, ...] = ()
    keys: JoinKeys | None = None
    needs: tuple[Partitioning, ...] = field(default=(), compare=False)
    ends_grow: bool = field(default=False, compare=False)
    open_ends: bool = field(default=False, compare=False)
    negative: bool = field(default=False, compare=False)

    @property
    def schema(self) -> Schema:
        return self.node.schema

    @property
    def kind(self) -> str:
        return type(self.node).__name__

    @property
    def ends_known(self) -> bool:
        """Whether every row tells its end when it comes."""
        return not self.open_ends and not self.negative

    def walk(self) -> Iterator[Operator]:
        """The operator and all below it, each once, children before parents."""
        seen: set[int] = set()
        order: list[Operator] = []

        def visit(operator: Operator) -> None:
            if id(operator) in seen:
                return
            seen.add(id(operator))
            for child in operator.inputs:
                visit(child)
            order.append(operator)

        visit(self)
        return iter(order)


def told_directly(node: Node, inputs: Sequence[Operator]) -> bool:
    """Whether it is an ISTREAM or DSTREAM that need not count: all rows tell their end when they come."""
    return isinstance(node, ToStream) and node.change is not Change.RSTREAM and inputs[0].ends_known


def scanned(operator: Operator) -> str:
    """The name of the stream or table that a scan reads."""
    assert isinstance(operator.node, StreamScan | TableScan)
    return operator.node.name.lower()
