"""EXPLAIN of a planned statement: its text, and the tree that a notebook shows of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from transom.core.text import visible_lines
from transom.kernels.operator import Operator, scanned
from transom.pipeline.answer import output_form, output_key
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import partitions_of
from transom.planner.explain import Measured, explain_json, explain_text
from transom.planner.fragments import kept_together
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing import Request, consumer, shared_subplan
from transom.planner.sharing_shape import Sharable
from transom.planner.statistics import Where
from transom.program.notebook import plans_html, text_html
from transom.program.planned import Planned
from transom.program.sharing import Sharing, sharing_of
from transom.program.status import OperatorStatus

Measure = Callable[[Planned, str], list[Measured]]
"""Runs a query whose rows would be written in this form, and says what each operator did."""

Reader = Callable[[StreamDefinition | TableDefinition], str | None]
"""Who reads an input, where that is not a matter of course."""


_MOST_NAMED: Final = 8


def measured(operators: Sequence[OperatorStatus], most_bytes: Sequence[int]) -> list[Measured]:
    """What operators did in a run that is over, with the most that each kept."""
    return [
        Measured(
            operator.rows_in,
            operator.rows_out,
            operator.ends,
            most,
            operator.seconds,
            (*(operator.slides.lines() if operator.slides else ()), *operator.changes),
        )
        for operator, most in zip(operators, most_bytes, strict=True)
    ]


class Explained(str):
    """The text of EXPLAIN, which a notebook shows as a tree."""

    plans: tuple[dict[str, object], ...] = ()

    @staticmethod
    def of(text: str, plans: Sequence[dict[str, object]]) -> Explained:
        """A text and the plans that it shows."""
        explained = Explained(visible_lines(text))
        explained.plans = tuple(plans)
        return explained

    def _repr_html_(self) -> str:
        return plans_html(self.plans) if self.plans else text_html(self)


def _as_ever(definition: StreamDefinition | TableDefinition) -> str | None:
    return None


def explained(planned: Planned, measure: Measure | None, where: Where, reader: Reader = _as_ever) -> Explained:
    """How the query would run, as a tree; with `measure` it is run, and measured."""
    alone = _with_readers(_with_partitions(_alone(planned, measure), planned, where), planned, reader)
    return _with_growth(alone, planned)


def explained_all(
    planned: Sequence[Planned], measure: Measure | None, where: Where, reader: Reader = _as_ever
) -> Explained:
    """The plans of several queries, one below the other, as they would run together; each is measured alone."""
    if measure is not None or len(planned) < 2:
        parts = [explained(query, measure, where, reader) for query in planned]
    else:
        sharing = sharing_of(planned)
        together = [_explained_with_others(planned, index, sharing, where) for index in range(len(planned))]
        read = [_with_readers(part, query, reader) for part, query in zip(together, planned, strict=True)]
        parts = [_with_growth(part, query) for part, query in zip(read, planned, strict=True)]
    return Explained.of("\n\n".join(parts), [plan for part in parts for plan in part.plans])


def _alone(planned: Planned, measure: Measure | None) -> Explained:
    assert planned.root is not None
    emit = "changes" if planned.sink is None else planned.sink.emit
    measured = None if measure is None else measure(planned, emit)
    plan = {"statement": planned.statement.text, **explain_json(planned.root, measured, planned.statement)}
    return _with_key(Explained.of(explain_text(planned.root, measured), [plan]), planned.root, planned)


def _explained_with_others(planned: Sequence[Planned], index: int, sharing: Sharing, where: Where) -> Explained:
    """A query of several: the plan that it shares, and who shares it; or why it shares none."""
    query = planned[index]
    group = sharing.group_of(index)
    if not group:
        alone = _with_partitions(_alone(query, None), query, where)
        assert query.root is not None
        joins = any("Join" in operator.kind for operator in query.root.walk())
        if joins:
            reason = sharing.unsupported[index]
            plan = {**alone.plans[0], "not shared": reason}
            alone = Explained.of(f"{alone}\njoin not shared: {reason}", [plan])
        if joins and query.catalogue.options.get("schedule", "off") != "off":
            return _with_schedule(alone, "join ", "a join that is not shared is made at once")
        return alone
    request = sharing.requests[index]
    subplan = shared_subplan([sharing.requests[i] for i in group], query.catalogue)
    root = consumer(request, query.catalogue, subplan)
    number = 1 + next(i for i, operator in enumerate(root.walk()) if operator is subplan)
    others = [i for i in group if i != index]
    what = "join" if isinstance(request, Sharable) else "plan"
    text = [f"query {i + 1}{_windows(sharing.requests[i])}" for i in others[:_MOST_NAMED]]
    text += [f"{len(others) - _MOST_NAMED} more"] if len(others) > _MOST_NAMED else []
    plan = {
        "statement": query.statement.text,
        **explain_json(root, None, query.statement),
        "shared with": [i + 1 for i in others],
    }
    saved = f"made and kept once instead of {len(group)} times"
    shown = f"{explain_text(root)}\n{what} #{number} shared with {', '.join(text)}: {saved}"
    together = Explained.of(shown, [plan])
    together = _with_key(together, root, query)
    together = _with_partitions(together, query, where, shared=f"queries that share a {what} run in one place")
    if not isinstance(request, Sharable) or query.catalogue.options.get("schedule", "off") == "off":
        return together
    schedule = schedule_of(request, query.catalogue, batches=not where().one_by_one)
    by_key = bool(request.keys.left) and query.catalogue.options.get("join") != "nested_loop"
    return together if schedule is None else _with_schedule(together, f"join #{number} ", schedule, by_key)


def _with_key(explained: Explained, root: Operator, planned: Planned) -> Explained:
    """The plan with a line about the columns by which net changes are emitted, where an answer is written so."""
    if planned.sink is None or output_form(root, planned.sink.emit) != "net":
        return explained
    key = output_key(root, "net")
    text = "as a bag: the plan proves no key" if key is None else f"by ({', '.join(key)})" if key else "of one row"
    plans = [{**plan, "key": None if key is None else list(key)} for plan in explained.plans]
    return Explained.of(f"{explained}\nnet changes {text}", plans)


def _with_schedule(explained: Explained, of: str, schedule: Schedule | str, by_key: bool = False) -> Explained:
    """The plan with a line about the order of the work, or why it has none."""
    if isinstance(schedule, Schedule):
        text = f"{schedule}{'; partners of a key in the order of their age' * by_key}"
    else:
        text = f"not scheduled: {schedule}"
    return Explained.of(f"{explained}\n{of}{text}", [{**plan, "schedule": text} for plan in explained.plans])


def _with_partitions(explained: Explained, planned: Planned, where: Where, shared: str | None = None) -> Explained:
    """The plan with a line about the partitions, where a query of this process asks for several."""
    wanted = partitions_of(planned.catalogue)
    if wanted == 1 or where().partitions > 1:
        return explained
    assert planned.root is not None
    reason = shared or kept_together(planned.root)
    text = f"{wanted} partitions" if reason is None else f"one partition, not {wanted}: {reason}"
    number = wanted if reason is None else 1
    return Explained.of(f"{explained}\n{text}", [{**plan, "partitions": number} for plan in explained.plans])


def _with_readers(explained: Explained, planned: Planned, reader: Reader) -> Explained:
    """The plan with a line for each input that is read in a way of its own."""
    assert planned.root is not None
    names = dict.fromkeys(scanned(operator) for operator in planned.root.walk() if not operator.inputs)
    readers: dict[str, str] = {}
    for name in names:
        definition = planned.catalogue.relations.get(name)
        if isinstance(definition, StreamDefinition | TableDefinition) and (who := reader(definition)) is not None:
            readers[definition.name] = who
    if not readers:
        return explained
    lines = [f"{name} is read by {who}" for name, who in readers.items()]
    return Explained.of("\n".join([explained, *lines]), [{**plan, "read by": readers} for plan in explained.plans])


def _with_growth(explained: Explained, planned: Planned) -> Explained:
    """The plan with a line for all that grows for as long as input comes, if anything does."""
    growing = planned.growing
    if not growing:
        return explained
    text = [{"what": growth.what, "streams": list(growth.streams)} for growth in growing]
    return Explained.of(
        "\n".join([explained, *map(str, growing)]), [{**plan, "grows": text} for plan in explained.plans]
    )


def _windows(request: Request) -> str:
    """The windows of a query, in brackets, where it narrows what it shares."""
    if not isinstance(request, Sharable):
        return ""
    sides = zip(request.scans, request.windows, strict=True)
    return f" ({', '.join(f'{scan.name} {spec}' for scan, spec in sides)})"
