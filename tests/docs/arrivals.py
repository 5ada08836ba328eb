"""A table of what happens as rows arrive one by one: whether they are admitted, how far time is, what comes out."""

from __future__ import annotations

from typing import Any

from tests.docs.timeline import label, seconds
from tests.run_locally import Push, batch_of
from transom.core.time import BEGINNING, FOREVER, from_datetime
from transom.pipeline.driver import Pipeline, StepOutput
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.planner.plan import plan

Rows = dict[str, list[tuple[Any, ...]]]


def arrivals(query: Node, catalogue: Catalogue, rows: Rows, order: list[str]) -> str:
    """The table of a run in which rows arrive in the order of the names, and then all inputs end."""
    pipeline = Pipeline(plan(query, catalogue), catalogue)
    left = {name: list(rows[name]) for name in pipeline.inputs}
    pushes = [Push(name, [left[name].pop(0)]) for name in order] if order else []
    pushes += [Push(name, [row]) for name, rest in left.items() for row in rest]
    pushes += [Push(name, [], end=True) for name in pipeline.inputs]
    stream = isinstance(query, Stream)
    lines = [["arrives", "is", *_heads(pipeline), "progress", "comes out"]]
    for push in pushes:
        reported = _push(pipeline, catalogue, push)
        output, _ = pipeline.advance()
        marks = [_time(pipeline.watermark(name)) for name in pipeline.inputs]
        marks = marks if len(marks) > 1 else []
        lines.append([_arrival(push, catalogue), reported, *marks, _time(pipeline.progress), _out(output, stream)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["─" * width for width in widths])
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _heads(pipeline: Pipeline) -> list[str]:
    names = list(pipeline.inputs)
    return [f"watermark of {name}" for name in names] if len(names) > 1 else []


def _push(pipeline: Pipeline, catalogue: Catalogue, push: Push) -> str:
    """Push it, and say what became of it."""
    if push.end:
        pipeline.end(push.name)
        return ""
    before = pipeline.ledger(push.name)
    late, rejected = before.late, before.rejected
    pipeline.push(push.name, batch_of(_definition(catalogue, push.name).columns, push.rows))
    after = pipeline.ledger(push.name)
    return "late" if after.late > late else "rejected" if after.rejected > rejected else "in time"


def _definition(catalogue: Catalogue, name: str) -> StreamDefinition | TableDefinition:
    definition = catalogue.relations[name.lower()]
    assert isinstance(definition, StreamDefinition | TableDefinition)
    return definition


def _arrival(push: Push, catalogue: Catalogue) -> str:
    if push.end:
        return f"the end of {push.name}"
    definition = _definition(catalogue, push.name)
    assert definition.time is not None
    names = definition.columns.names
    (row,) = push.rows
    at = names.index(definition.time.column)
    return f"{push.name}  {label([row[at], *row[:at], *row[at + 1 :]])}"


def _time(t: int) -> str:
    return "none yet" if t <= BEGINNING else "forever" if t >= FOREVER else seconds(t)


def _out(output: StepOutput | None, stream: bool) -> str:
    if output is None:
        return ""
    rows = zip(*(column.to_pylist() for column in output.rows.columns), strict=True)
    if stream:
        return ", ".join(f"{seconds(from_datetime(at))} {label(row)}" for at, *row in rows)
    return ", ".join(f"{seconds(from_datetime(at))} {sign} {label(row)}" for sign, at, *row in rows)
