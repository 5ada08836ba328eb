"""The name of a plan, by which a checkpoint knows the query that wrote it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from transom.planner.operator import Operator


def fingerprint(operators: Sequence[Operator], *settings: object) -> str:
    """A short name for a plan: the same query planned the same way has the same one."""
    parts = [repr((operator.node, operator.tactic.name, operator.keys)) for operator in operators]
    parts += ["negative"] if any(operator.negative for operator in operators) else []
    return hashlib.sha256("\n".join([*parts, repr(settings)]).encode()).hexdigest()[:16]
