"""Every runtime that must give the same answers: name -> function(query, catalogue, inputs) -> History."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History

Inputs = dict[str, list[tuple[Any, ...]]]

RUNTIMES: dict[str, Callable[[Node, Catalogue, Inputs], History]] = {
    "reference": evaluate,
}
