"""Move selections towards the sources.

A selection passes projections, unions, DISTINCT and inner joins; what speaks of several inputs of a join becomes its
predicate. Of windows it passes RANGE, NOW and UNBOUNDED, whose rows live independently of each other, and PARTITION BY
.. ROWS if it reads partition keys only; of TUMBLE and HOP it passes what does not read the bounds of a window, and of
SESSION, a table or not, what reads partition keys only, as of DEDUPLICATE; never another row-count window, which must
count the rows that the selection would hide (semantics.md, "windows"). It stays above a SLIDE, too: RSTREAM over slides
goes on until the last row of the window ends, also if a selection hides that row. And where rows are taken for one
because they are equal, a selection that may tell -0.0 from 0.0 stays above: below it would see rows of which above
there is one.

Of rows with a number a selection of whole partitions goes below, and one that compares the number with a constant is
what the operator itself does: it need not keep what is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from transom.plan.algebra import (
    Deduplicate,
    Distinct,
    Filter,
    Join,
    KeptForever,
    Node,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    SetOperation,
    Stream,
    StreamFilter,
    TopN,
    Unnest,
    Window,
    WindowSpec,
    WindowTable,
    a_relation,
    a_stream,
)
from transom.plan.expression import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SubQuery,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    shifted,
    substitute,
    walk,
)
from transom.plan.python_function import PythonCall

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "in", "is_null", "is_not_distinct")

_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def push_filters(query: Node) -> Node:
    return _Pusher().push_filters(query)


class _Pusher:
    """Moves selections in one query. What is done to a node with the same selections is done once."""

    def __init__(self) -> None:
        self._pushed: dict[tuple[Relation, tuple[Expression, ...]], Relation] = {}
        self._done: dict[Node, Node] = {}

    def push_filters(self, node: Node) -> Node:
        pushed = self._done.get(node)
        if pushed is None:
            if isinstance(node, Filter):
                pushed = self._push(node.input, conjuncts(node.predicate))
            elif isinstance(node, SemiJoin | OuterJoin):
                pushed = self._push(node, ())
            else:
                pushed = node.over(tuple(self.push_filters(child) for child in node.inputs))
            self._done[node] = pushed
        return pushed

    def _push(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        """The node with the selection of all parts as far down as they may go."""
        pushed = self._pushed.get((node, parts))
        if pushed is None:
            movable = tuple(part for part in parts if not _has_query(part))
            fixed = tuple(part for part in parts if _has_query(part))
            pushed = self._pushed[node, parts] = _filtered(self._push_movable(node, movable), fixed)
        return pushed

    def _push_movable(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        if isinstance(node, Filter):
            return self._push(node.input, (*conjuncts(node.predicate), *parts))
        if isinstance(node, Project):
            if any(_has_query(expression) for expression in node.expressions):
                return self._stay(node, parts)
            inner = tuple(substitute(part, node.expressions) for part in parts)
            return replace(node, input=self._push(node.input, inner))
        if isinstance(node, KeptForever):
            return replace(node, input=self._push(node.input, parts))
        if isinstance(node, Unnest):
            width = len(node.input.schema)
            below, above = _parted(parts, lambda part: _only_below(part, width))
            return _filtered(replace(node, input=self._push(node.input, below)), above)
        if isinstance(node, Join):
            return self._push_into_join(node, parts)
        if isinstance(node, SemiJoin):
            return self._push_into_semi_join(node, parts)
        if isinstance(node, OuterJoin):
            return self._push_into_outer_join(node, parts)
        if isinstance(node, SetOperation) and node.kind == "union" and node.all:
            return replace(node, left=self._push(node.left, parts), right=self._push(node.right, parts))
        if isinstance(node, Distinct | SetOperation):
            below, above = _parted(parts, lambda part: not tells_zeros_apart(part))
            inputs = tuple(self._push(a_relation(child), below) for child in node.inputs)
            return _filtered(a_relation(node.with_inputs(inputs)), above)
        if isinstance(node, TopN):
            return self._push_into_top_n(node, parts)
        if isinstance(node, Window):
            below, above = _parted(parts, lambda part: passes(part, node.spec))
            return _filtered(replace(node, input=self._selected(node.input, below)), above)
        if isinstance(node, WindowTable):
            return self._push_into_windows(node, parts)
        return self._stay(node, parts)

    def _push_into_top_n(self, node: TopN, parts: tuple[Expression, ...]) -> Relation:
        """Numbers are those of all rows of a partition, so that nothing but whole partitions may be taken away."""
        partition = set(node.partition)
        below, rest = _parted(parts, lambda part: columns_of(part) <= partition and not tells_zeros_apart(part))
        least, most, above = node.least, node.most, []
        for part in rest:
            bounds = _bounds(part, len(node.input.schema)) if node.number is not None else None
            if bounds is None:
                above.append(part)
                continue
            least = max(least, bounds[0])
            most = most if bounds[1] is None else bounds[1] if most is None else min(most, bounds[1])
        return _filtered(replace(node, input=self._push(node.input, below), least=least, most=most), tuple(above))

    def _push_into_windows(self, node: WindowTable, parts: tuple[Expression, ...]) -> Relation:
        """What speaks of the rows alone; of a session, which other rows may prolong, only what speaks of its keys."""
        partition, slide = node.spec.partition, node.spec.slide
        if slide is not None and slide > node.spec.size:  # a row that is in no window is not to be looked at
            return self._stay(node, parts)
        own = frozenset(range(len(node.input.schema)) if partition is None else partition)

        def passing(part: Expression) -> bool:
            return columns_of(part) <= own and (partition is None or not tells_zeros_apart(part))

        below, above = _parted(parts, passing)
        return _filtered(replace(node, input=self._selected(node.input, below)), above)

    def _selected(self, stream: Stream, parts: tuple[Expression, ...]) -> Stream:
        """The rows of a stream; which of a key pass DEDUPLICATE is not changed by taking away whole keys."""
        if isinstance(stream, Deduplicate):
            keys = set(stream.partition)
            below, parts = _parted(parts, lambda part: columns_of(part) <= keys and not tells_zeros_apart(part))
            selected: Stream = replace(stream, input=self._selected(stream.input, below))
        else:
            selected = a_stream(self.push_filters(stream))
        predicate = conjunction(parts)
        return selected if predicate is None else StreamFilter(selected, predicate)

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

    def _push_into_semi_join(self, join: SemiJoin, parts: tuple[Expression, ...]) -> Relation:
        """It gives rows of the left as they are. A partner must satisfy what the predicate says of the right alone."""
        width = len(join.left.schema)
        of_right, between = _parted(conjuncts(join.predicate), lambda part: _only_from(part, width))
        if type(join) is SemiJoin:
            of_left, between = _parted(between, lambda part: _only_below(part, width))
            parts = (*parts, *of_left)
        right = self._push(join.right, tuple(shifted(part, -width) for part in of_right))
        return replace(join, left=self._push(join.left, parts), right=right, predicate=conjunction(between))

    def _push_into_outer_join(self, join: OuterJoin, parts: tuple[Expression, ...]) -> Relation:
        """A selection of the side that is kept passes; and of the other side, what the predicate says of it alone."""
        width = len(join.left.schema)
        if join.side == "full":
            return self._stay(join, parts)
        kept, other = (_only_below, _only_from) if join.side == "left" else (_only_from, _only_below)
        below, above = _parted(parts, lambda part: kept(part, width))
        partners, between = _parted(conjuncts(join.predicate), lambda part: other(part, width))
        if not between:  # an outer join has a predicate
            partners, between = (), partners
        left, right = (below, partners) if join.side == "left" else (partners, below)
        made = OuterJoin(
            self._push(join.left, left),
            self._push(join.right, tuple(shifted(part, -width) for part in right)),
            join.side,
            _all_of(between),
        )
        return _filtered(made, above)

    def _stay(self, node: Relation, parts: tuple[Expression, ...]) -> Relation:
        return _filtered(a_relation(node.over(tuple(self.push_filters(child) for child in node.inputs))), parts)


def passes(predicate: Expression, window: WindowSpec) -> bool:
    """Whether a selection may be done before the window instead of after it."""
    if window.rows is None and window.session is None:
        return window.slide is None
    if tells_zeros_apart(predicate):
        return False
    return window.partition is not None and columns_of(predicate) <= set(window.partition)


def _only_below(part: Expression, width: int) -> bool:
    """Whether it reads columns of the left alone, and some."""
    used = columns_of(part)
    return bool(used) and max(used) < width


def _only_from(part: Expression, width: int) -> bool:
    used = columns_of(part)
    return bool(used) and min(used) >= width


def _all_of(parts: tuple[Expression, ...]) -> Expression:
    predicate = conjunction(parts)
    assert predicate is not None
    return predicate


def _bounds(part: Expression, number: int) -> tuple[int, int | None] | None:
    """The least and the greatest number that a comparison of it with a constant lets pass; None: it is none."""
    if not isinstance(part, Call) or part.function not in _MIRRORED or len(part.arguments) != 2:
        return None
    function, (left, right) = part.function, tuple(map(_bare, part.arguments))
    if isinstance(left, Literal):
        function, left, right = _MIRRORED[function], right, left
    if not (isinstance(left, ColumnRef) and left.index == number and isinstance(right, Literal)):
        return None
    if type(right.value) is not int:
        return None
    value = right.value
    least = value if function in ("=", ">=") else value + 1 if function == ">" else 1
    most = value if function in ("=", "<=") else value - 1 if function == "<" else None
    return max(least, 1), None if most is None else max(most, 0)


def _bare(value: Expression) -> Expression:
    """A whole number that was made a wider one, as it is written."""
    while isinstance(value, Cast) and isinstance(value.operand, Literal | Cast) and pa.types.is_integer(value.target):
        value = value.operand
    return value


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
    return not isinstance(expression, PythonCall) and all(_never_fails(child) for child in expression.children)


def tells_zeros_apart(expression: Expression) -> bool:
    """Whether it may have another value for -0.0 than for 0.0. Comparisons have not; what else there is, may."""
    if isinstance(expression, ColumnRef):
        return bool(pa.types.is_floating(expression.type))
    children = expression.children
    if isinstance(expression, Call) and expression.function in _COMPARISONS:
        children = tuple(child for child in children if not isinstance(child, ColumnRef))
    return any(tells_zeros_apart(child) for child in children)


def _filtered(node: Relation, parts: tuple[Expression, ...]) -> Relation:
    predicate = conjunction(parts)
    return node if predicate is None else Filter(node, predicate)


def _has_query(expression: Expression) -> bool:
    return any(isinstance(node, SubQuery) for node in walk(expression))
