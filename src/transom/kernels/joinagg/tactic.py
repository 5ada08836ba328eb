"""Tactics of aggregates over joins, which never make the join, and of the merge of their partial results.

| tactic | takes | keeps |
| --- | --- | --- |
| adaptive | what factorised takes, of two inputs | as factorised or pc, whichever is better for what comes |
| factorised | inputs that are all on one set of keys, no other predicate | the rows alive, totals per key |
| ic | two inputs, any predicate; COUNT, SUM, AVG, also of expressions over both | the rows alive |
| tc | two inputs, or more on one key; any predicate; ends known at the match; groups of one input | and their credits |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from transom.core.schema import held_type
from transom.kernels import description
from transom.kernels.changing import WATCH
from transom.kernels.joinagg.adaptive import AdaptiveKernel, AdaptiveState
from transom.kernels.joinagg.credit import CreditKernel, CreditState
from transom.kernels.joinagg.factorised import FactorisedKernel, FactorisedState
from transom.kernels.joinagg.incremental import IncrementalKernel, IncrementalState
from transom.kernels.joinagg.merge import MergeAggregateKernel, MergeAggregateState, MergeCall
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.joinagg.shape import Shape
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic, column
from transom.plan.algebra import AggregateCall
from transom.plan.expression import ColumnRef, Expression
from transom.plan.same_key import plain

_ROWS: Final = "of the rows alive of all inputs the keys and 16 bytes per argument"


class JoinAggregateTactic(Tactic):
    nodes = (JoinAggregate,)
    title = "join-aggregate "

    @abstractmethod
    def kernel(self, spec: JoinAggregateSpec) -> Kernel: ...

    @classmethod
    @abstractmethod
    def unsupported(cls, shape: Shape, inputs: Sequence[Operator]) -> str | None:
        """Why it cannot run an aggregate over a join; None where it can."""

    @classmethod
    @abstractmethod
    def chosen(cls, shape: Shape, not_taken: tuple[tuple[str, str], ...]) -> JoinAggregateTactic:
        """The tactic for an aggregate over a join that it can run."""

    def describe(self, operator: Operator) -> str:
        """The calls, and what they are over: `partial` where other partitions have more of the same group."""
        node = _node(operator)
        calls = description.calls_by(node.calls, node.names, [str(key) for key in node.keys])
        sides = []
        for child, columns in zip(operator.inputs, node.join_keys, strict=True):
            source = description.origin(child)
            sides.append([description.of_origin(column(child.schema, at), source) for at in columns])
        parts = [" = ".join(equal) for equal in zip(*sides, strict=True)]
        if node.residual is not None:
            parts.append(str(node.residual))
        return f"{'partial ' * node.partial}{calls} over {' AND '.join(parts) or 'all combinations'}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (self.kernel(_spec(_node(operator), operator.schema.held())),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """A column to group by that is a join key of one input is that of all of them."""
        node, ref = _node(operator), plain(key)
        if not isinstance(ref, ColumnRef) or ref.index >= len(node.keys):
            return None
        n = node.same_keys[ref.index]
        if n is None:
            return None
        return tuple(column(child.schema, at[n]) for child, at in zip(operator.inputs, node.join_keys, strict=True))

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        node = _node(operator)
        return None if node.partial else tuple(range(len(node.keys)))

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return Alive.joined(below) if _node(operator).keys else Alive()  # the one row


class FactorisedTactic(JoinAggregateTactic):
    name = "factorised"
    states = (FactorisedState,)

    def kernel(self, spec: JoinAggregateSpec) -> Kernel:
        return FactorisedKernel(spec)

    @classmethod
    def unsupported(cls, shape: Shape, inputs: Sequence[Operator]) -> str | None:
        if not shape.classes:
            return "there is no equality between the inputs"
        if not shape.join_keys:
            return "the inputs are not all joined on one key"
        if shape.residual:
            return f"{shape.residual[0]} is a predicate between inputs that is not an equality of all of them"
        return _of_several(shape)

    @classmethod
    def chosen(cls, shape: Shape, not_taken: tuple[tuple[str, str], ...]) -> JoinAggregateTactic:
        heaps = _heaps(shape)
        joined = [member for members in shape.join_keys for member in members]
        times = " for each group under its key" if any(shape.own(key) not in joined for key in shape.keys) else ""
        keeps = f"{_ROWS}; totals per key, input and group{', a heap entry per key and group' * heaps}"
        once = "O(log rows alive)" if heaps else "O(1)"
        return cls(keeps, f"{once} a row{times}, whatever its matches", not_taken)


class IncrementalTactic(JoinAggregateTactic):
    name = "ic"
    states = (IncrementalState,)

    def kernel(self, spec: JoinAggregateSpec) -> Kernel:
        return IncrementalKernel(spec)

    @classmethod
    def unsupported(cls, shape: Shape, inputs: Sequence[Operator]) -> str | None:
        if len(shape.relations) > 2:
            return f"there are {len(shape.relations)} inputs"
        for call in shape.calls:
            if call.function in ("min", "max"):
                return f"{call} cannot be computed from what it was and what leaves"
        return None

    @classmethod
    def chosen(cls, shape: Shape, not_taken: tuple[tuple[str, str], ...]) -> JoinAggregateTactic:
        costs = "O(1 + matches) a row when it comes and when it ends"
        return cls(f"{_ROWS}; totals per group", costs, not_taken)


class CreditTactic(JoinAggregateTactic):
    name = "tc"
    states = (CreditState,)

    def kernel(self, spec: JoinAggregateSpec) -> Kernel:
        return CreditKernel(spec)

    @classmethod
    def unsupported(cls, shape: Shape, inputs: Sequence[Operator]) -> str | None:
        if len(shape.relations) > 2 and not shape.join_keys:
            return "the inputs are not all joined on one key"
        for i, operator in enumerate(inputs):
            if operator.open_ends:
                return f"rows of input {i + 1} may match before it is known when they end"
        if len(shape.grouped_inputs) > 1:
            return "it is grouped by columns of several inputs: a row would keep a credit for each group that it meets"
        return _of_several(shape)

    @classmethod
    def chosen(cls, shape: Shape, not_taken: tuple[tuple[str, str], ...]) -> JoinAggregateTactic:
        matched = "O(matches log rows alive)" if _heaps(shape) else "O(1 + matches)"
        costs = f"{matched} a row when it comes, O(1) when it ends"
        each = ", for each group that they meet" if shape.grouped_inputs else ""
        return cls(f"{_ROWS}, and their credits{each}; totals per group", costs, not_taken)


@dataclass(frozen=True)
class AdaptiveTactic(JoinAggregateTactic):
    """Changes between factorised and pc while it runs. `first` is in force at first; `watch` is SET adapt."""

    name = "adaptive"
    states = (AdaptiveState,)

    first: str = "factorised"
    watch: str = WATCH

    def kernel(self, spec: JoinAggregateSpec) -> Kernel:
        raise NotImplementedError  # it depends on the inputs

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        spec = _spec(_node(operator), operator.schema.held())
        join = "ring_hash" if all(child.ends_grow for child in operator.inputs) else "lazy_hash"
        return (AdaptiveKernel(spec, join, self.first, self.watch, bool(site.shown_as)),)

    @classmethod
    def unsupported(cls, shape: Shape, inputs: Sequence[Operator]) -> str | None:
        if len(shape.relations) > 2:
            return f"there are {len(shape.relations)} inputs"
        why = FactorisedTactic.unsupported(shape, inputs)
        return None if why is None else "factorised, which it changes to, cannot run it"

    @classmethod
    def chosen(cls, shape: Shape, not_taken: tuple[tuple[str, str], ...]) -> JoinAggregateTactic:
        keeps = f"{_ROWS} and their columns, and totals per key, input and group; or the rows and pairs alive"
        factorised = FactorisedTactic.chosen(shape, ())
        return cls(keeps, f"as factorised ({factorised.costs}) or pc (O(1 + matches) a row), may change", not_taken)


class MergeTactic(Tactic):
    name = "merge"
    nodes = (MergeAggregate,)
    title = "join-aggregate "
    states = (MergeAggregateState,)

    @classmethod
    def chosen(cls) -> MergeTactic:
        return cls("the partial results alive, totals per group", "O(1) a partial result")

    def describe(self, operator: Operator) -> str:
        node = _merge(operator)
        return description.calls_by(node.calls, node.names, node.names[: node.key_count])

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node, schema = _merge(operator), operator.schema.held()
        calls = tuple(
            MergeCall(call.function, None if call.argument is None else held_type(call.argument.type))
            for call in node.calls
        )
        return (MergeAggregateKernel(tuple(schema.types[: node.key_count]), calls, schema),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        ref = plain(key)
        return (key,) if isinstance(ref, ColumnRef) and ref.index < _merge(operator).key_count else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return tuple(range(_merge(operator).key_count))

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return super().alive(operator, below) if _merge(operator).key_count else Alive()  # the one row


def _node(operator: Operator) -> JoinAggregate:
    assert isinstance(operator.node, JoinAggregate)
    return operator.node


def _merge(operator: Operator) -> MergeAggregate:
    assert isinstance(operator.node, MergeAggregate)
    return operator.node


def _of_several(shape: Shape) -> str | None:
    """Why values that are only known once rows have met cannot be had."""
    for call in shape.calls:
        if call.argument is not None and shape.own(call.argument) is None:
            return f"{call.argument} reads columns of several inputs"
    return None


def _heaps(shape: Shape) -> bool:
    return any(call.function in ("min", "max") for call in shape.calls)


def _spec(node: JoinAggregate, schema: pa.Schema) -> JoinAggregateSpec:
    """Columns of all relations side by side become columns of one input."""
    owners = [(i, at) for i, relation in enumerate(node.relations) for at in range(len(relation.schema))]

    def owner(expression: Expression) -> tuple[int, int]:
        assert isinstance(expression, ColumnRef)
        return owners[expression.index]

    def call_of(call: AggregateCall) -> JoinCall:
        if call.argument is None:
            return JoinCall(call.function)
        if not isinstance(call.argument, ColumnRef):
            return JoinCall(call.function, over=call.argument)
        return JoinCall(call.function, *owner(call.argument))

    calls = tuple(map(call_of, node.calls))
    types = tuple(tuple(relation.schema.held().types) for relation in node.relations)
    group = tuple(owner(key) for key in node.keys)
    return JoinAggregateSpec(types, node.join_keys, node.residual, group, calls, schema, node.partial)
