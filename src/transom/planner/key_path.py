"""The path of a key through a plan: for the rows of an operator to be spread by a key, how must its inputs be?"""

from __future__ import annotations

from transom.kernels.operator import Operator
from transom.plan.expression import Expression


def keys_below(operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
    """Keys over the columns of each input, so that the output is spread by `key`; None when the operator forbids it.

    It does so where it needs rows together that the key would separate, and where the key would be computed for rows
    for which it was never meant to be: the ones that a filter takes away.
    """
    if any(need.kind == "single" for need in operator.needs):
        return None
    return operator.tactic.keys_below(operator, key)
