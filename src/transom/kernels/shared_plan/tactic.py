"""The tactic of what a query reads of a plan that several queries share."""

from __future__ import annotations

from collections.abc import Sequence

from transom.kernels.kernel import Kernel
from transom.kernels.operator import Key, Operator, Site, Tactic
from transom.kernels.shared_plan.node import SharedPlan
from transom.plan.expression import Expression


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
