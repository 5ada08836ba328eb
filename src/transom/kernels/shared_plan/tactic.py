"""Tactics of what a query reads of a plan that several queries share."""

from __future__ import annotations

from collections.abc import Sequence

from transom.kernels.kernel import Kernel
from transom.kernels.operator import Key, Operator, Site, Tactic, column
from transom.kernels.shared_plan.node import SharedPlan, WindowedPlan
from transom.kernels.shared_plan.windowed import WindowedKernel, WindowedState
from transom.plan.expression import Expression, substitute


class SharedPlanTactic(Tactic):
    """Rows come in under open row ids of the query's own, which whoever hosts it gives them."""

    name = "shared"
    nodes = (SharedPlan,)
    cheap = True
    stays_spread = True

    @classmethod
    def chosen(cls) -> SharedPlanTactic:
        return cls("a number for each open row")

    def describe(self, operator: Operator) -> str:
        return "as every query reads it that shares it"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return ()

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        return (key,)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return below[0]

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below

    def grows_by(self, operator: Operator) -> str | None:
        return None


class WindowedTactic(Tactic):
    """A query's own windows over a join that others share with others."""

    name = "windowed"
    nodes = (WindowedPlan,)
    states = (WindowedState,)

    @classmethod
    def chosen(cls, node: WindowedPlan) -> WindowedTactic:
        slides = any(member.slide is not None for member in node.members)
        return cls("what waits for its first slide" if slides else "nothing", "O(inputs) a row of the shared join")

    def describe(self, operator: Operator) -> str:
        return ", ".join(map(str, _windowed(operator).members))

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _windowed(operator)
        return (WindowedKernel(node.read, node.members, site.tick, operator.schema.held()),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        below = operator.inputs[0].schema
        return (substitute(key, tuple(column(below, at) for at in _windowed(operator).read)),)

    def grows_by(self, operator: Operator) -> str | None:
        return None


def _windowed(operator: Operator) -> WindowedPlan:
    assert isinstance(operator.node, WindowedPlan)
    return operator.node
