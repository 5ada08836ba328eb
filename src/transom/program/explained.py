"""EXPLAIN of a planned statement: its text, and the tree that a notebook shows of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from transom.planner.explain import Measured, explain_json, explain_text
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing import share
from transom.program.notebook import plans_html, text_html
from transom.program.planned import Planned
from transom.program.sharing import Sharing, sharing_of

Measure = Callable[[Planned, str], list[Measured]]
"""Runs a query whose rows would be written in this form, and tells what each operator did."""


_MOST_NAMED: Final = 8


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
    """The same of several, one below the other, as they would run together; each is measured alone."""
    sharing = sharing_of(planned) if measure is None and len(planned) > 1 else None
    parts = [
        explained(one, measure) if sharing is None else _explained_with_others(planned, place, sharing)
        for place, one in enumerate(planned)
    ]
    return Explained.of("\n\n".join(parts), [plan for part in parts for plan in part.plans])


def _explained_with_others(planned: Sequence[Planned], place: int, sharing: Sharing) -> Explained:
    """A query of several: the plan that it shares, and who shares it; or why it shares none."""
    one = planned[place]
    group = sharing.group_of(place)
    if not group:
        alone = explained(one, None)
        if not any("Join" in operator["operator"] for plan in alone.plans for operator in plan["operators"]):
            return alone
        reason = sharing.refused[place]
        plan = {**alone.plans[0], "not shared": reason}
        lines = [str(alone), f"join not shared: {reason}"]
        if one.catalogue.options.get("schedule", "off") != "off":
            plan["schedule"] = _scheduled("a join that is not shared is made at once")
            lines.append(f"join {plan['schedule']}")
        return Explained.of("\n".join(lines), [plan])
    shared = share([sharing.asked[i] for i in group], one.catalogue, [None] * len(group))
    root = shared.roots[group.index(place)]
    number = 1 + next(i for i, operator in enumerate(root.walk()) if operator is shared.trunk)
    others = [i for i in group if i != place]
    told = [f"query {i + 1} ({_windows(sharing, i)})" for i in others[:_MOST_NAMED]]
    told += [f"{len(others) - _MOST_NAMED} more"] if len(others) > _MOST_NAMED else []
    plan = {"statement": one.statement.text, **explain_json(root), "shared with": [i + 1 for i in others]}
    lines = [explain_text(root), f"join #{number} shared with {', '.join(told)}"]
    schedule = schedule_of(sharing.asked[place], one.catalogue)
    if schedule is not None:
        plan["schedule"] = _scheduled(schedule)
        lines.append(f"join #{number} {plan['schedule']}")
    return Explained.of("\n".join(lines), [plan])


def _scheduled(schedule: Schedule | str) -> str:
    return str(schedule) if isinstance(schedule, Schedule) else f"not scheduled: {schedule}"


def _windows(sharing: Sharing, place: int) -> str:
    asked = sharing.asked[place]
    return ", ".join(f"{scan.name} {spec}" for scan, spec in zip(asked.scans, asked.windows, strict=True))
