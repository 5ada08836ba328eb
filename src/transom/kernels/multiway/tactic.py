"""Tactics of joins of many inputs that are one operator for all of them.

| tactic | takes | keeps |
| --- | --- | --- |
| parallel_tree | anything, if lifetimes are direct | the rows alive of all inputs, and tuples of most of them |
| mjoin | anything, if lifetimes are direct | the rows alive of all inputs |
| parallel_mjoin | anything, if lifetimes are direct | the rows alive of all inputs |
| adaptive | anything, if lifetimes are direct | as the one in force of: trees of joins of two, mjoin |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from transom.kernels import description
from transom.kernels.changing import WATCH
from transom.kernels.join.tactic import side_by_side
from transom.kernels.kernel import Kernel
from transom.kernels.multiway.adaptive import AdaptiveJoinKernel, AdaptiveJoinState
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.join_tree import Tree
from transom.kernels.multiway.mjoin import MJoinKernel, MJoinState
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.parallel_mjoin import ParallelMJoinKernel, ParallelMJoinState
from transom.kernels.multiway.parallel_tree import ParallelTreeKernel, ParallelTreeState
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.plan.expression import Expression, columns_of, remap
from transom.plan.same_key import same_key


class MultiwayTactic(Tactic):
    nodes = (MultiwayJoin,)
    title = "join "

    work: ClassVar[str]
    """What a row costs, given how many other inputs there are."""

    also_keeps: ClassVar[str] = ""

    @abstractmethod
    def kernel(self, graph: JoinGraph, schema: pa.Schema, operator: Operator) -> Kernel: ...

    @classmethod
    def chosen(cls, node: MultiwayJoin, inputs: Sequence[Operator]) -> MultiwayTactic:
        """For the join of these inputs."""
        open_ends = any(below.open_ends for below in inputs)
        tuples = ", and a list node per open tuple and input" if open_ends else ""
        tables = max(len({key for other in node.keys if (key := _shared(own, other))}) for own in node.keys)
        hashed = "a hash table each" if tables < 2 else f"up to {tables} hash tables each"
        keeps = f"the rows alive of all {len(inputs)} inputs once, in {hashed}{cls.also_keeps}{tuples}"
        expire = "O(1)" if all(below.ends_grow for below in inputs) else "O(log n)"
        costs = f"{cls.work.format(len(inputs) - 1)}; {expire} to expire"
        if not node.common_keys:
            costs += "; all in one partition, as there is no key of all inputs"
        return cls(keeps, costs)

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        sources = [description.origin(child) for child in operator.inputs]
        parts = []
        for members in zip(*node.keys, strict=True):
            equal = [
                description.of_origin(k, source) for k, source in zip(members, sources, strict=True) if k is not None
            ]
            parts.append(" = ".join(equal))
        parts += [str(part) for part in node.residual]
        if node.last is not None:
            parts.append(str(node.last))
        return " AND ".join(parts) or "all combinations"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        types = tuple(tuple(relation.schema.held().types) for relation in node.relations)
        growing = tuple(child.ends_grow for child in operator.inputs)
        graph = JoinGraph(types, node.keys, node.residual, node.last, growing)
        return (self.kernel(graph, operator.schema.held(), operator),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """A key of one input that all inputs are joined on is the key of all of them."""
        relations = _node(operator).relations
        for need in zip(*(need.keys for need in operator.needs), strict=True):
            width = 0
            for own, relation in zip(need, relations, strict=True):
                if same_key(key, remap(own, {column: column + width for column in columns_of(own)})):
                    return need
                width += len(relation.schema)
        return None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return side_by_side(operator, below)

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return Alive.joined(below)


class ParallelTreeTactic(MultiwayTactic):
    name = "parallel_tree"
    states = (ParallelTreeState,)
    work = "a probe a row to its answer, in threads a tuple kept per partial match"
    also_keeps = ", and tuples of positions of most of them"

    def kernel(self, graph: JoinGraph, schema: pa.Schema, operator: Operator) -> Kernel:
        return ParallelTreeKernel(graph, schema)


class MJoinTactic(MultiwayTactic):
    name = "mjoin"
    states = (MJoinState,)
    work = "{} probes a row, one more per partial match"

    def kernel(self, graph: JoinGraph, schema: pa.Schema, operator: Operator) -> Kernel:
        return MJoinKernel(graph, schema)


class ParallelMJoinTactic(MultiwayTactic):
    name = "parallel_mjoin"
    states = (ParallelMJoinState,)
    work = "{} probes a row at once, in threads"

    def kernel(self, graph: JoinGraph, schema: pa.Schema, operator: Operator) -> Kernel:
        return ParallelMJoinKernel(graph, schema)


@dataclass(frozen=True)
class AdaptiveJoinTactic(MultiwayTactic):
    """Changes between trees and mjoin while it runs. `first` is in force at first; `watch` is SET adapt."""

    name = "adaptive"
    states = (AdaptiveJoinState,)
    work = "as mjoin ({} probes a row, one more per partial match) or a tree (O(1 + matches) a join), may change"
    also_keeps = ", or in a tree of joins of two with what they give each other"

    trees: tuple[Tree, ...] = ()
    first: str = "tree"
    watch: str = WATCH

    def kernel(self, graph: JoinGraph, schema: pa.Schema, operator: Operator) -> Kernel:
        open_ends = any(below.open_ends for below in operator.inputs)
        return AdaptiveJoinKernel(_node(operator), graph, schema, self.trees, self.first, self.watch, open_ends)


def _node(operator: Operator) -> MultiwayJoin:
    assert isinstance(operator.node, MultiwayJoin)
    return operator.node


def _shared(left: tuple[Expression | None, ...], right: tuple[Expression | None, ...]) -> tuple[int, ...]:
    """The classes of keys that two inputs are both in."""
    if left is right:
        return ()
    return tuple(c for c, (a, b) in enumerate(zip(left, right, strict=True)) if a is not None and b is not None)
