"""The name of a plan, by which state knows the plan that made it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from transom.core.errors import CheckpointError
from transom.planner.operator import Operator


def fingerprint(operators: Sequence[Operator], *settings: object) -> str:
    """A short name for a plan: the same query planned the same way has the same one."""
    parts = [repr((operator.node, operator.tactic.name, operator.keys)) for operator in operators]
    parts += ["negative"] if any(operator.negative for operator in operators) else []
    return hashlib.sha256("\n".join([*parts, repr(settings)]).encode()).hexdigest()[:16]


def of_another_plan() -> CheckpointError:
    """State is refused by a plan that did not make it."""
    return CheckpointError(
        "the checkpoint was written by another query, for another number of buckets, or by a version of Transom that "
        "plans it otherwise",
        remedy="go on with the query and the version that wrote it, or start with an empty checkpoint folder",
    )
