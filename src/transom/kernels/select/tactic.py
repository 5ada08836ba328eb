"""Tactics of selections, projections and UNION ALL."""

from __future__ import annotations

from collections.abc import Sequence

from transom.kernels import description
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Key, Operator, Site, Tactic
from transom.kernels.select.select import FilterKernel, NegativeUnionKernel, ProjectKernel, UnionKernel
from transom.plan.algebra import Filter, Project, SetOperation, StreamFilter, StreamProject
from transom.plan.expression import ColumnRef, Expression, substitute
from transom.plan.same_key import plain, without_widening


class FilterTactic(Tactic):
    name = "filter"
    nodes = (Filter, StreamFilter)
    cheap = True

    def describe(self, operator: Operator) -> str:
        return str(_filter(operator).predicate)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (FilterKernel(_filter(operator).predicate),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """The key must not be computed for rows for which it was never meant to be: those that are taken away."""
        return (key,) if isinstance(plain(key), ColumnRef) else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return below[0]

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below


class ProjectTactic(Tactic):
    name = "project"
    nodes = (Project, StreamProject)
    cheap = True

    def describe(self, operator: Operator) -> str:
        node = _project(operator)
        return ", ".join(description.named(e, name) for e, name in zip(node.expressions, node.names, strict=True))

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (ProjectKernel(_project(operator).expressions, operator.schema.held()),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        return (substitute(key, _project(operator).expressions),)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        """Where the columns of a key are behind a projection that keeps all of them."""
        if below[0] is None:
            return None
        plain = [without_widening(each) for each in _project(operator).expressions]
        indexes = [
            next((i for i, e in enumerate(plain) if isinstance(e, ColumnRef) and e.index == at), None)
            for at in below[0]
        ]
        key = tuple(index for index in indexes if index is not None)
        return key if len(key) == len(below[0]) else None

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below


class ConcatenationTactic(Tactic):
    name = "concatenation"
    nodes = (SetOperation,)

    def describe(self, operator: Operator) -> str:
        return f"union all of {description.columns(operator.schema)}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        schema = operator.schema.held()
        return (NegativeUnionKernel(schema) if operator.negative else UnionKernel(schema),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        return key, key

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below


def _filter(operator: Operator) -> Filter | StreamFilter:
    assert isinstance(operator.node, Filter | StreamFilter)
    return operator.node


def _project(operator: Operator) -> Project | StreamProject:
    assert isinstance(operator.node, Project | StreamProject)
    return operator.node
