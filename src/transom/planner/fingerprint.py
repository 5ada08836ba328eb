"""The name of a plan, by which state knows the plan that made it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from transom.core.errors import CheckpointError
from transom.kernels.operator import Operator
from transom.plan.algebra import Node


def fingerprint(operators: Sequence[Operator], *settings: object) -> str:
    """A short name for a plan: the same query planned the same way has the same one."""
    names: dict[int, str] = {}
    parts = [_name(operator, names) for operator in operators]
    parts += ["negative"] if any(operator.negative for operator in operators) else []
    return hashlib.sha256("\n".join([*parts, repr(settings)]).encode()).hexdigest()[:16]


def of_another_plan() -> CheckpointError:
    """State is rejected by a plan that did not make it."""
    return CheckpointError(
        "the checkpoint was written by another query, for another number of partitions, or by a version of Transom "
        "that "
        "plans it otherwise",
        remedy="go on with the query and the version that wrote it, or start with an empty checkpoint folder",
    )


def _name(operator: Operator, name_of: dict[int, str]) -> str:
    """The name of an operator and all below it. What is below is given by its name alone, however often it is
    used."""
    name = name_of.get(id(operator))
    if name is None:
        node = operator.node
        below = [child.node for child in operator.inputs]
        own = [(field.name, _own(getattr(node, field.name), below)) for field in fields(node) if field.compare]
        names = [_name(child, name_of) for child in operator.inputs]
        facts = repr((type(node).__name__, own, operator.tactic.name, operator.keys, names))
        facts += "sealed" * operator.sealed
        name = name_of[id(operator)] = hashlib.sha256(facts.encode()).hexdigest()
    return name


def _own(value: Any, below: list[Node]) -> Any:
    """The value of a field, in which inputs that are operators of their own are given by their number."""
    if isinstance(value, tuple):
        return tuple([_own(item, below) for item in value]) if any(isinstance(item, Node) for item in value) else value
    return below.index(value) if isinstance(value, Node) and value in below else value
