"""What a query asks of a join that other queries may ask for as well: the streams, the keys, and its own windows.

The selections of the query are lifted above the join again: RANGE, NOW and UNBOUNDED windows let them pass either way,
and below a window that counts rows there are none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from transom.core.schema import Schema
from transom.kernels.joinagg.shape import may_fail, shape_of
from transom.kernels.operator import JoinKeys, column
from transom.kernels.shared_join.node import Narrow
from transom.plan.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Relation,
    StreamFilter,
    StreamProject,
    StreamScan,
    Window,
    WindowSpec,
    a_relation,
)
from transom.plan.catalogue import Catalogue
from transom.plan.expression import Expression, columns_of, conjunction, conjuncts, remap, shifted, substitute
from transom.plan.options import OPTIONS
from transom.plan.rewrites import rewrite
from transom.planner.join import reordered, split_keys
from transom.planner.time_bounds import bound_joins

_SCHEDULING: tuple[str, ...] = ("schedule", "overload", "buffer", "step_budget")

_SAME: tuple[str, ...] = ("tick", "origin", "join", "batch_rows", "batch_files", "latency", "tasks", *_SCHEDULING)
"""Options in which queries that share a join must agree."""


@dataclass(frozen=True)
class Sharable:
    """A query over the join of two streams. `query` has a `Narrow` in the place of the join.

    The keys are over the columns of either stream; where there are none, their residual is over both side by side. So
    are the places in `read`.
    """

    scans: tuple[StreamScan, StreamScan]
    keys: JoinKeys
    windows: tuple[WindowSpec, WindowSpec]
    read: tuple[int, ...]
    query: Node
    options: tuple[Any, ...]

    @cached_property
    def join(self) -> tuple[object, ...]:
        """What queries must have in common to share a join."""
        return tuple(scan.name.lower() for scan in self.scans), self.keys, self.options

    def since(self, begin: int | None) -> Node:
        """The query over rows from an instant on."""
        return replaced(self.query, Narrow, lambda node: replace(node, begin=begin))


class NotSharedError(Exception):
    """Why a query cannot share its join."""


def sharable(query: Node, catalogue: Catalogue) -> Sharable | str:
    """What the query asks of a shared join, or why it can have none."""
    try:
        return _sharable(rewrite(query), catalogue)
    except NotSharedError as reason:
        return str(reason)


def _sharable(query: Node, catalogue: Catalogue) -> Sharable:
    join = the_join(query)
    if len(join.relations) != 2:
        raise NotSharedError(f"its join has {len(join.relations)} inputs, and only joins of two are shared")
    _check_options(query, catalogue)
    tick: int = catalogue.options.get("tick", OPTIONS["tick"].default)
    if bound_joins(join, catalogue, tick)[1]:
        raise NotSharedError("the times of its streams say what it keeps, and a shared join keeps what its windows say")
    # The streams in the order of their names; of one with itself, so that the keys are the same in all queries.
    option = [_in_this_order(query, join, order, catalogue) for order in ([0, 1], [1, 0])]
    return min(option, key=lambda shape: ([scan.name.lower() for scan in shape.scans], repr(shape.keys)))


def _in_this_order(query: Node, join: Join, order: list[int], catalogue: Catalogue) -> Sharable:
    ordered, positions = reordered(join, order)
    left, right = (side_of(relation) for relation in ordered.relations)
    width = len(left.scan.schema)
    outputs = (*left.outputs, *(shifted(e, width) for e in right.outputs))
    parts = tuple(substitute(part, outputs) for part in conjuncts(ordered.predicate))
    # What may be an error must not be asked of rows that another query has no use for.
    keys = _in_order(split_keys(tuple(part for part in parts if not may_fail(part)), width))
    above = (*left.predicates, *(shifted(e, width) for e in right.predicates))
    if keys.left:  # otherwise all that pairs must satisfy is common to the queries
        above += conjuncts(keys.residual)
        keys = replace(keys, residual=None)
    above += tuple(part for part in parts if may_fail(part))
    back = tuple(outputs[i] for i in positions)
    read = tuple(sorted({i for e in (*back, *above) for i in columns_of(e)}))
    both = Schema((*left.scan.schema.columns, *right.scan.schema.columns))
    windows = (left.window, right.window)
    made: Relation = Narrow(Schema(tuple(both[i] for i in read)), read, windows)
    at = {index: i for i, index in enumerate(read)}
    predicate = conjunction(above)
    if predicate is not None:
        made = Filter(made, remap(predicate, at))
    made = Project(made, tuple(remap(e, at) for e in back), tuple(join.schema.names))
    options = tuple(catalogue.options.get(name, OPTIONS[name].default) for name in _SAME)
    if catalogue.options.get("schedule", "off") != "off":  # work that is put in order knows no rows that are counted
        options += (any(window.rows is not None for window in windows),)
    whole = _as_one(replaced(query, Join, lambda node: made))
    return Sharable((left.scan, right.scan), keys, windows, read, whole, options)


def the_join(node: Node) -> Join:
    """The one join that a query is made of."""
    while not isinstance(node, Join):
        if len(node.inputs) != 1:
            raise NotSharedError("it is not made of one join of two streams")
        (node,) = node.inputs
    return node


def _check_options(query: Node, catalogue: Catalogue) -> None:
    def option(name: str) -> Any:
        return catalogue.options.get(name, OPTIONS[name].default)

    if option("lifetimes") == "negative":
        raise NotSharedError("lifetimes are sent as negative tuples")
    if option("multiway") not in ("auto", "tree"):
        raise NotSharedError(f"SET multiway asks for '{option('multiway')}'")
    if option("memory") is not None or option("slide_join") not in ("auto", "off"):
        raise NotSharedError("its join is made slide by slide")
    if option("joinagg") not in ("auto", "pc"):
        node = query
        while node.inputs:
            if isinstance(node, Aggregate) and shape_of(node) is not None:
                raise NotSharedError(f"SET joinagg asks for '{option('joinagg')}'")
            node = node.inputs[0]


@dataclass(frozen=True)
class StreamSide:
    """An input of the join as its columns and selections, over the columns of the stream."""

    scan: StreamScan
    window: WindowSpec
    outputs: tuple[Expression, ...]
    predicates: tuple[Expression, ...] = ()


def side_of(node: Node, slides: bool = False) -> StreamSide:
    """What an input of a join is made of. Windows may slide where `slides` says so."""
    match node:
        case StreamScan():
            schema = node.schema
            return StreamSide(node, WindowSpec(), tuple(column(schema, i) for i in range(len(schema))))
        case Filter() | StreamFilter():
            below = side_of(node.input, slides)
            parts = tuple(substitute(part, below.outputs) for part in conjuncts(node.predicate))
            return replace(below, predicates=(*below.predicates, *parts))
        case Project() | StreamProject():
            below = side_of(node.input, slides)
            return replace(below, outputs=tuple(substitute(e, below.outputs) for e in node.expressions))
        case Window():
            below = side_of(node.input, slides)
            spec = node.spec
            if spec.partition is not None:
                raise NotSharedError("a window counts rows by partition")
            if spec.session is not None:
                raise NotSharedError("a window is a session")
            if spec.slide is not None and not slides:
                raise NotSharedError("a window slides")
            assert spec.rows is None or not below.predicates, "a selection below a window that counts rows"
            return replace(below, window=spec)
    raise NotSharedError("an input of its join is no window over a stream")


def _in_order(keys: JoinKeys) -> JoinKeys:
    """The same equalities whatever the order in which they are written."""
    pairs = sorted(dict.fromkeys(zip(keys.left, keys.right, strict=True)), key=repr)
    left, right = (tuple(pair[i] for pair in pairs) for i in (0, 1))
    if left:
        return JoinKeys(left, right, keys.residual)
    return JoinKeys((), (), conjunction(tuple(sorted(dict.fromkeys(conjuncts(keys.residual)), key=repr))))


def _as_one(node: Node) -> Node:
    """With one projection where there are two, one right upon the other."""
    if isinstance(node, Project) and isinstance(node.input, Project):
        expressions = tuple(substitute(e, node.input.expressions) for e in node.expressions)
        return Project(node.input.input, expressions, node.names)
    return node.with_inputs(tuple(map(_as_one, node.inputs)))


def replaced(node: Node, kind: type[Any], by: Any) -> Node:
    """The query with the one node of a kind that it has replaced."""
    if isinstance(node, kind):
        return a_relation(by(node))
    return node.with_inputs(tuple(replaced(child, kind, by) for child in node.inputs))
