"""Frames that end at the row itself, in the order of the time of a stream that never ends.

When such a row comes, all that its frame will ever hold has come: rows of the same instant, and those before them. So
what is said of it is said once. The rows of [NOW] meet the aggregates of their partition, over all rows so far or over
those of a [RANGE ..], and the pairs stay. That costs what a GROUP BY costs, where numbering all rows and joining them
to their frames keeps them all.

It takes the finest tick: rows of one instant of a coarser one have several times, and each sees those up to its own.
"""

from __future__ import annotations

from dataclasses import replace

from transom.plan.algebra import (
    Aggregate,
    Filter,
    KeptForever,
    Node,
    Over,
    Project,
    Relation,
    Window,
    WindowSpec,
    a_relation,
)
from transom.plan.catalogue import Catalogue
from transom.plan.expression import ColumnRef
from transom.plan.rewrites.join_frames import group_names, ordered_by, with_groups
from transom.plan.rewrites.per_row import columns
from transom.planner.time_bounds import time_columns


def bound_frames(query: Node, catalogue: Catalogue, tick: int) -> Node:
    """The query with such frames as joins over windows."""
    made: dict[Node, Node] = {}

    def bound(node: Node) -> Node:
        rebuilt = made.get(node)
        if rebuilt is None:
            rebuilt = node.over(tuple(bound(child) for child in node.inputs))
            if isinstance(rebuilt, Over) and _ends_with_the_row(rebuilt, catalogue):
                rebuilt = _as_it_comes(rebuilt)
            made[node] = rebuilt
        return rebuilt

    return bound(query) if tick == 1 else query


def frame_windows(query: Node) -> dict[Node, str]:
    """Of each window that `bound_frames` has put in, why the rows need not stay longer."""
    reasons: dict[Node, str] = {}
    seen: set[tuple[Node, bool]] = set()

    def look(node: Node, below: bool) -> None:
        below = below or isinstance(node, KeptForever)
        if below and isinstance(node, Window) and not node.spec.unbounded:
            reasons[node] = "what OVER says of a row is said when it comes, and stays"
        if (node, below) not in seen:
            seen.add((node, below))
            for child in node.inputs:
                look(child, below)

    look(query, False)
    return reasons


def _ends_with_the_row(node: Over, catalogue: Catalogue) -> bool:
    frame = node.frame
    if frame is None or not frame.peers or frame.end != 0 or len(node.order) != 1:
        return False
    if frame.start is not None and frame.distance is None:  # so many instants before, which may be any time ago
        return False
    (key,) = node.order
    return not key.descending and key.column in _times(node.input, catalogue)


def _times(relation: Relation, catalogue: Catalogue) -> tuple[int, ...]:
    """Where the time of an endless stream is among the columns of what is computed of its rows one by one."""
    if isinstance(relation, Filter):
        return _times(relation.input, catalogue)
    if isinstance(relation, Project):
        below = _times(relation.input, catalogue)
        return tuple(
            i for i, value in enumerate(relation.expressions) if isinstance(value, ColumnRef) and value.index in below
        )
    return time_columns(relation, catalogue) or ()


def _as_it_comes(node: Over) -> Relation:
    assert node.frame is not None
    rows = _over_window(node.input, WindowSpec(now=True))
    reach = node.frame.start
    frame = node.input if reach is None else _over_window(node.input, WindowSpec(range=1 - reach))
    keys = tuple(columns(frame)[i] for i in node.partition)
    time = columns(frame)[node.order[0].column]
    calls = tuple(ordered_by(call, time) for call in node.calls)
    groups = Aggregate(frame, keys, calls, group_names(keys, node), bool(keys), excerpt=node.excerpt)
    return KeptForever(with_groups(node, rows, node.partition, groups), excerpt=node.excerpt)


def _over_window(relation: Relation, spec: WindowSpec) -> Relation:
    if isinstance(relation, Window):
        return replace(relation, spec=spec)
    return a_relation(relation.over((_over_window(a_relation(relation.inputs[0]), spec),)))
