"""EXPLAIN of a planned statement: its text, and the tree that a notebook shows of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transom.planner.explain import Measured, explain_json, explain_text
from transom.program.notebook import plans_html, text_html
from transom.program.planned import Planned

Measure = Callable[[Planned, str], list[Measured]]
"""Runs a query whose rows would be written in this form, and tells what each operator did."""


class Explained(str):
    """The text of EXPLAIN, which a notebook shows as a tree."""

    plans: tuple[dict[str, Any], ...] = ()

    @staticmethod
    def of(text: str, plans: Sequence[dict[str, Any]]) -> Explained:
        explained = Explained(text)
        explained.plans = tuple(plans)
        return explained

    def _repr_html_(self) -> str:
        return plans_html(self.plans) if self.plans else text_html(self)


def explained(planned: Planned, measure: Measure | None) -> Explained:
    """How the query would run, as a tree; with `measure` it is run, and measured."""
    assert planned.root is not None
    emit = "changes" if planned.sink is None else planned.sink.emit
    measured = None if measure is None else measure(planned, emit)
    plan = {"statement": planned.statement.text, **explain_json(planned.root, measured)}
    return Explained.of(explain_text(planned.root, measured), [plan])


def explained_all(planned: Sequence[Planned], measure: Measure | None) -> Explained:
    """The same of several, one below the other."""
    parts = [explained(one, measure) for one in planned]
    return Explained.of("\n\n".join(parts), [plan for part in parts for plan in part.plans])
