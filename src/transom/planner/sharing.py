"""Several queries on one join (paper 2): the join keeps the widest windows once, each query narrows what it gives.

Everything below the join, and the join itself, is the **shared sub-plan**; everything from a query's `Narrow` on is its
own. Any other part that queries have in common (`sharing_plan.py`) is a shared sub-plan that each reads as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from transom.core.time import UNBOUNDED
from transom.kernels.operator import ANY, SINGLE, JoinKeys, Operator, column
from transom.kernels.shared_join.node import CountedWindow, Narrow, SharedJoin
from transom.kernels.shared_join.tactic import CountedTactic, NarrowRowsTactic, NarrowTactic
from transom.plan.algebra import Node, StreamProject, Window, WindowSpec, a_relation
from transom.plan.catalogue import Catalogue
from transom.plan.expression import columns_of, remap
from transom.plan.options import time_settings
from transom.planner import join as joins
from transom.planner.plan import Planner
from transom.planner.sharing_plan import SharablePlan, plan_reader, shared_plan
from transom.planner.sharing_shape import Sharable

Sides = tuple[bool, bool]

NOT_COUNTED: Final[Sides] = (False, False)


def shared_join(request: Sequence[Sharable], catalogue: Catalogue, counted: Sides = NOT_COUNTED) -> Operator:
    """The shared sub-plan of queries on the same join.

    Rows of a side that is `counted` are numbered whether or not a query counts them.
    """
    first = request[0]
    assert request[-1].join == first.join  # the last one to come; the others were there
    planner = Planner(catalogue)
    for scan in first.scans:
        planner.plan(scan)
    widths = [len(scan.schema) for scan in first.scans]
    windows = tuple(_widest([spec.windows[side] for spec in request], catalogue, counted[side]) for side in (0, 1))
    read = {index for spec in request for index in spec.read}
    kept: list[tuple[int, ...]] = []
    below: list[Operator] = []
    for side in (0, 1):
        start = side * widths[0]
        needed = {index - start for index in read | _residual(first) if start <= index < start + widths[side]}
        needed |= {i for key in (first.keys.left, first.keys.right)[side] for i in columns_of(key)}
        columns = tuple(sorted(needed)) or (0,)
        kept.append(columns)
        below.append(_window(planner, first, side, columns, windows[side]))
    return _subplan(planner, first, (below[0], below[1]), (kept[0], kept[1]), len(request))


Request = Sharable | SharablePlan
"""What a query shares with others: a join that it narrows, or a part of it that it reads as it is."""


def shared_subplan(request: Sequence[Request], catalogue: Catalogue, counted: Sides = NOT_COUNTED) -> Operator:
    """The shared sub-plan of queries that have it in common."""
    first = request[0]
    if isinstance(first, SharablePlan):
        return shared_plan(first, catalogue)
    return shared_join([spec for spec in request if isinstance(spec, Sharable)], catalogue, counted)


def consumer(request: Request, catalogue: Catalogue, subplan: Operator, begin: int | None = None) -> Operator:
    """What one query does with a shared sub-plan that has what it asks for, over the rows from its beginning on."""
    if isinstance(request, SharablePlan):
        assert begin is None, "nobody comes to a part that has rows from before"
        return plan_reader(request, catalogue, subplan)
    return _Consumer(catalogue, subplan).plan(request.since(begin))


@dataclass(frozen=True)
class _Widest:
    """Rows are kept for so long and for so many rows more; they are numbered if somebody counts them."""

    length: int
    rows: int
    counted: bool


def length_of(window: WindowSpec, tick: int = 1) -> int:
    """How long a row lives by time."""
    if window.now:
        return tick
    return UNBOUNDED if window.range is None else min(window.range, UNBOUNDED)


def _widest(windows: Sequence[WindowSpec], catalogue: Catalogue, counted: bool) -> _Widest:
    tick = time_settings(catalogue).tick
    by_time = [length_of(window, tick) for window in windows if window.rows is None]
    by_count = [window.rows for window in windows if window.rows is not None]
    return _Widest(max(by_time, default=0), max(by_count, default=0), counted or bool(by_count))


def _residual(request: Sharable) -> frozenset[int]:
    return frozenset() if request.keys.residual is None else columns_of(request.keys.residual)


def _window(planner: Planner, request: Sharable, side: int, columns: tuple[int, ...], widest: _Widest) -> Operator:
    scan = request.scans[side]
    schema = scan.schema
    stream = StreamProject(scan, tuple(column(schema, i) for i in columns), tuple(schema[i].name for i in columns))
    # In a join of a stream with itself the sides are two nevertheless: they may come to differ.
    apart = Planner(planner.catalogue)
    apart.made.update(planner.made)
    if not widest.counted:
        spec = WindowSpec() if widest.length == UNBOUNDED else WindowSpec(range=widest.length)
        return apart.plan(Window(stream, spec))
    node = CountedWindow(stream, widest.length, widest.rows)
    below = apart.plan(stream)
    return Operator(node, CountedTactic.chosen(node), (below,), None, (SINGLE,), ends_grow=True, open_ends=True)


def _subplan(
    planner: Planner,
    request: Sharable,
    below: tuple[Operator, Operator],
    kept: tuple[tuple[int, ...], tuple[int, ...]],
    queries: int,
) -> Operator:
    at = tuple({index: i for i, index in enumerate(columns)} for columns in kept)
    left, right = (
        tuple(remap(key, at[side]) for key in keys) for side, keys in enumerate((request.keys.left, request.keys.right))
    )
    width = len(request.scans[0].schema)
    residual = request.keys.residual
    if residual is not None:
        both = {**at[0], **{index + width: len(below[0].schema) + i for index, i in at[1].items()}}
        residual = remap(residual, both)
    keys = JoinKeys(left, right, residual)
    tactic = joins.choose(below[0], below[1], keys, planner.option("join"), SharedJoin)
    many = f"{queries} queries" if queries > 1 else "1 query"
    text = f"the rows alive of both sides in the widest windows, once for {many}"
    indexes = (*kept[0], *(index + width for index in kept[1]))
    node = SharedJoin(a_relation(below[0].node), a_relation(below[1].node), indexes)
    return Operator(node, replace(tactic, keeps=text), below, keys, tactic.needs(keys))


class _Consumer(Planner):
    """The planner of one query, which finds the shared join where the query narrows it."""

    def __init__(self, catalogue: Catalogue, subplan: Operator) -> None:
        super().__init__(catalogue)
        self._subplan = subplan

    def _plan(self, node: Node) -> Operator:
        if not isinstance(node, Narrow):
            return super()._plan(node)
        if not node.counts:
            return Operator(node, NarrowTactic.chosen(), (self._subplan,), None, (ANY,))
        # Of the streams whose rows it counts it has to see all of them, in their order.
        sides = zip(self._subplan.inputs, node.windows, strict=True)
        inputs = (self._subplan, *(child for child, window in sides if window.rows is not None))
        needs = (SINGLE,) * len(inputs)
        return Operator(node, NarrowRowsTactic.chosen(), inputs, None, needs, open_ends=True)
