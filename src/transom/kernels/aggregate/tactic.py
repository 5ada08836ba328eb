"""Tactics of aggregates: over rows that leave, and over rows that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from transom.core.schema import held_type
from transom.kernels import description
from transom.kernels.aggregate.aggregate import ORDERED, AggregateKernel, AggregateSpec, AggregateState
from transom.kernels.kernel import Kernel
from transom.kernels.negative.aggregate import NegativeAggregateKernel, NegativeAggregateState
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.kernels.scalar.sort_key import sort_key_of
from transom.kernels.select.select import ProjectKernel
from transom.plan.algebra import Aggregate, AggregateCall
from transom.plan.expression import Call, Case, ColumnRef, Expression, Literal
from transom.plan.same_key import plain


class AggregateTactic(Tactic):
    nodes = (Aggregate,)
    title = "aggregate "
    cheap = True

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        return description.calls_by(node.calls, node.names, [str(key) for key in node.keys])

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        keys, column = _node(operator).keys, plain(key)
        return (keys[column.index],) if isinstance(column, ColumnRef) and column.index < len(keys) else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return tuple(range(len(_node(operator).keys)))

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return super().alive(operator, below) if _node(operator).keys else Alive()  # the one row


class SlidingTactic(AggregateTactic):
    name = "sliding"
    states = (AggregateState, NegativeAggregateState)

    @classmethod
    def chosen(cls, node: Aggregate, not_taken: tuple[tuple[str, str], ...], over_join: bool) -> SlidingTactic:
        heaps = any(call.function in ORDERED for call in node.calls)
        kept = f"16 bytes per argument and {'row of the join' if over_join else 'row'} alive, totals per group"
        return cls(kept, "O(log rows alive) a row" if heaps else "O(1) a row", not_taken)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        if operator.negative:
            return _after_projection(operator, NegativeAggregateKernel)
        return _after_projection(operator, partial(AggregateKernel, final=bool(site.shown_as)))

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="totals per group; for MIN, MAX and the like the arguments of each row alive")


class RunningTactic(AggregateTactic):
    """Over rows that never leave."""

    name = "running"
    states = (AggregateState,)

    @staticmethod
    def runs(node: Aggregate, lasting: bool) -> bool:
        """Whether the rows that were taken are not needed again."""
        return lasting and not any(
            call.function in ORDERED and call.function not in ("min", "max") for call in node.calls
        )

    @classmethod
    def chosen(cls, node: Aggregate, not_taken: tuple[tuple[str, str], ...]) -> RunningTactic:
        once = ", and each value that is counted once" if _counts_once(node) else ""
        return cls(f"totals per group{once}", not_taken=not_taken)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return _after_projection(operator, partial(AggregateKernel, running=True, final=bool(site.shown_as)))

    def grows_by(self, operator: Operator) -> str | None:
        node = _node(operator)
        return "distinct values" if _counts_once(node) else "groups" if node.grouped else None


def _counts_once(node: Aggregate) -> bool:
    """Whether a call has to know which values it has counted; of MIN and MAX, DISTINCT changes nothing."""
    return any(call.distinct and call.function not in ("min", "max") for call in node.calls)


def _after_projection(
    operator: Operator, kernel: Callable[..., AggregateKernel | NegativeAggregateKernel]
) -> tuple[Kernel, ...]:
    """A projection to the keys and arguments, then the aggregate."""
    node = _node(operator)
    inner: dict[Expression, int] = {}

    def index(expression: Expression) -> int:
        return inner.setdefault(expression, len(inner))

    keys = tuple(index(key) for key in node.keys)
    calls = tuple(_spec(call, index) for call in node.calls)
    if not inner:
        index(ColumnRef(0, node.input.schema[0].type, "any"))
    types = tuple(held_type(expression.type) for expression in inner)
    project = ProjectKernel(tuple(inner), pa.schema([(str(i), type_) for i, type_ in enumerate(types)]))
    return project, kernel(keys, calls, operator.schema.held(), types)


def _spec(call: AggregateCall, index: Callable[[Expression], int]) -> AggregateSpec:
    value = call.argument
    if value is not None and call.function == "array_agg":
        value = Call("array_element", (value,), pa.binary())
    argument = None if value is None else index(value)
    if not call.order:
        fraction = (0, 1) if call.fraction is None else call.fraction.as_integer_ratio()
        other = None if call.other is None else index(call.other)
        return AggregateSpec(call.function, argument, call.distinct, fraction=fraction, other=other)
    key = sort_key_of(call.order)
    if call.condition is not None:
        key = Case((call.condition,), (key,), Literal(None, key.type))
    return AggregateSpec(call.function, argument, call.distinct, index(key), separator=call.separator)


def _node(operator: Operator) -> Aggregate:
    assert isinstance(operator.node, Aggregate)
    return operator.node
