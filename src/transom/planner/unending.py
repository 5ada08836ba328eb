"""Rows that never end: an aggregate over them needs their totals, and not them."""

from __future__ import annotations

from transom.kernels.operator import Operator


def lasting(operator: Operator) -> bool:
    """Whether no row of a relation that has come ever leaves it."""
    lasting_by_id: dict[int, bool] = {}
    for each in operator.walk():
        lasting_by_id[id(each)] = each.sealed or each.tactic.lasts(
            each, all(lasting_by_id[id(child)] for child in each.inputs)
        )
    return lasting_by_id[id(operator)]
