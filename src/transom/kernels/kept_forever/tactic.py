"""The tactic of rows that stay once they have begun."""

from __future__ import annotations

from collections.abc import Sequence

from transom.kernels.kept_forever.kept_forever import KeptForeverKernel
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Alive, Operator, Site, Tactic
from transom.plan.algebra import KeptForever, StreamScan
from transom.plan.expression import Expression


class KeptForeverTactic(Tactic):
    name = "forever"
    nodes = (KeptForever,)
    cheap = True

    def describe(self, operator: Operator) -> str:
        return "what has begun stays"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return (KeptForeverKernel(),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        return (key,)

    def lasts(self, operator: Operator, below: bool) -> bool:
        return True

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        names = (o.node.name for o in operator.walk() if isinstance(o.node, StreamScan))
        return Alive(tuple(dict.fromkeys(names)))
