"""Move selections towards the sources.

A selection passes projections, unions, DISTINCT and inner joins; what speaks of several inputs of a join becomes its
predicate. Of windows it passes RANGE, NOW and UNBOUNDED, whose rows live independently of each other, and PARTITION BY
.. ROWS if it reads partition keys only; of TUMBLE and HOP it passes what does not read the bounds of a window, and of
SESSION, a table or not, what reads partition keys only; never another row-count window, which must count the rows that
the selection would hide (semantics.md, "windows"). It stays above a SLIDE, too: RSTREAM over slides goes on until the
last row of the window ends, also if a selection hides that row. And where rows are taken for one because they are
equal, a selection that may tell -0.0 from 0.0 stays above: below it would see rows of which above there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from transom.plan.algebra import (
    Distinct,
    Filter,
    Join,
    Node,
    Project,
    Relation,
    SetOperation,
    StreamFilter,
    Window,
    WindowSpec,
    WindowTable,
    a_relation,
    a_stream,
)
from transom.plan.expression import (
    Call,
    ColumnRef,
    Exists,
    Expression,
    InQuery,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    substitute,
    walk,
)

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "in", "is_null", "is_not_distinct")


def push_filters(query: Node) -> Node:
    return _Pusher().push_filters(query)


class _Pusher:
    """Moves selections in one query. What is done to a node with the same selections is done once."""

    def __init__(self) -> None:
        self._pushed: dict[tuple[Relation, tuple[Expression, ...]], Relation] = {}
        self._done: dict[Node, Node] = {}

    def push_filters(self, node: Node) -> Node:
        found = self._done.get(node)
        if found is None:
            if isinstance(node, Filter):
                found = self._push(node.input, conjuncts(node.predicate))
            else:
                found = node.over(tuple(self.push_filters(child) for child in node.inputs))
            self._done[node] = found
        return found

    def _push(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        """The node with the selection of all parts as far down as they may go."""
        found = self._pushed.get((node, parts))
        if found is None:
            movable = tuple(part for part in parts if not _has_query(part))
            fixed = tuple(part for part in parts if _has_query(part))
            found = self._pushed[node, parts] = _filtered(self._push_movable(node, movable), fixed)
        return found

    def _push_movable(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        if isinstance(node, Filter):
            return self._push(node.input, (*conjuncts(node.predicate), *parts))
        if isinstance(node, Project):
            if any(_has_query(expression) for expression in node.expressions):
                return self._stay(node, parts)
            inner = tuple(substitute(part, node.expressions) for part in parts)
            return replace(node, input=self._push(node.input, inner))
        if isinstance(node, Join):
            return self._push_into_join(node, parts)
        if isinstance(node, SetOperation) and node.kind == "union" and node.all:
            return replace(node, left=self._push(node.left, parts), right=self._push(node.right, parts))
        if isinstance(node, Distinct | SetOperation):
            below, above = _parted(parts, lambda part: not _tells_zeros_apart(part))
            inputs = tuple(self._push(a_relation(child), below) for child in node.inputs)
            return _filtered(a_relation(node.with_inputs(inputs)), above)
        if isinstance(node, Window):
            below, above = _parted(parts, lambda part: passes(part, node.spec))
            stream = self.push_filters(node.input)
            predicate = conjunction(below)
            if predicate is not None:
                stream = StreamFilter(a_stream(stream), predicate)
            return _filtered(replace(node, input=a_stream(stream)), above)
        if isinstance(node, WindowTable):
            return self._push_into_windows(node, parts)
        return self._stay(node, parts)

    def _push_into_windows(self, node: WindowTable, parts: tuple[Expression, ...]) -> Relation:
        """What speaks of the rows alone; of a session, which other rows may prolong, only what speaks of its keys."""
        partition, slide = node.spec.partition, node.spec.slide
        if slide is not None and slide > node.spec.size:  # a row that is in no window is not to be looked at
            return self._stay(node, parts)
        own = frozenset(range(len(node.input.schema)) if partition is None else partition)

        def passing(part: Expression) -> bool:
            return columns_of(part) <= own and (partition is None or not _tells_zeros_apart(part))

        below, above = _parted(parts, passing)
        stream, predicate = self.push_filters(node.input), conjunction(below)
        if predicate is not None:
            stream = StreamFilter(a_stream(stream), predicate)
        return _filtered(replace(node, input=a_stream(stream)), above)

    def _push_into_join(self, join: Join, parts: tuple[Expression, ...]) -> Relation:
        bounds = [0]
        for relation in join.relations:
            bounds.append(bounds[-1] + len(relation.schema))
        own: list[list[Expression]] = [[] for _ in join.relations]
        between: list[Expression] = []
        for part in (*conjuncts(join.predicate), *parts):
            used = columns_of(part)
            for i in range(len(join.relations)):
                if used and not _has_query(part) and bounds[i] <= min(used) and max(used) < bounds[i + 1]:
                    own[i].append(remap(part, {column: column - bounds[i] for column in used}))
                    break
            else:
                between.append(part)
        relations = tuple(self._push(relation, tuple(own[i])) for i, relation in enumerate(join.relations))
        return Join(relations, conjunction(tuple(between)))

    def _stay(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        return _filtered(a_relation(node.over(tuple(self.push_filters(child) for child in node.inputs))), parts)


def passes(predicate: Expression, window: WindowSpec) -> bool:
    """Whether a selection may be done before the window instead of after it."""
    if window.rows is None and window.session is None:
        return window.slide is None
    if _tells_zeros_apart(predicate):
        return False
    return window.partition is not None and columns_of(predicate) <= set(window.partition)


def _parted(
    parts: tuple[Expression, ...], may_pass: Callable[[Expression], bool]
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Those that go below, and those that stay; behind one that stays also what may fail, since it may be the guard."""
    below: list[Expression] = []
    above: list[Expression] = []
    for part in parts:
        goes = may_pass(part) and (not above or _never_fails(part))
        (below if goes else above).append(part)
    return tuple(below), tuple(above)


def _never_fails(expression: Expression) -> bool:
    """Comparisons of columns and constants; what else there is may overflow, divide by zero, or be no number."""
    if isinstance(expression, Call) and expression.function not in (*_COMPARISONS, "and", "or", "not"):
        return False
    return all(_never_fails(child) for child in expression.children)


def _tells_zeros_apart(expression: Expression) -> bool:
    """Whether it may have another value for -0.0 than for 0.0. Comparisons have not; what else there is, may."""
    if isinstance(expression, ColumnRef):
        return bool(pa.types.is_floating(expression.type))
    children = expression.children
    if isinstance(expression, Call) and expression.function in _COMPARISONS:
        children = tuple(child for child in children if not isinstance(child, ColumnRef))
    return any(_tells_zeros_apart(child) for child in children)


def _filtered(node: Relation, parts: tuple[Expression, ...]) -> Relation:
    predicate = conjunction(parts)
    return node if predicate is None else Filter(node, predicate)


def _has_query(expression: Expression) -> bool:
    return any(isinstance(node, Exists | InQuery) for node in walk(expression))
