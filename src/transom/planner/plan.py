"""The planner: a rewritten query becomes a tree of operators, or is refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from transom.core.errors import RefusedError
from transom.plan.algebra import (
    Aggregate,
    Change,
    Distinct,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    SetOperation,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    ToStream,
    Window,
    a_relation,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.expression import ColumnRef, Exists, Expression, InQuery, conjuncts, walk
from transom.plan.options import OPTIONS
from transom.plan.rewrites import rewrite
from transom.planner import join as joins
from transom.planner import joinagg, multiway
from transom.planner import window as windows
from transom.planner.joinagg_shape import shape_of
from transom.planner.lifetimes import method_of, with_negative_tuples
from transom.planner.operator import ANY, SINGLE, Operator, Partitioning, Tactic, column


def plan(query: Node, catalogue: Catalogue) -> Operator:
    """The physical plan of a bound query."""
    planner = Planner(catalogue)
    root = planner.plan(rewrite(query))
    _check_clocks(root, catalogue)
    return with_negative_tuples(root) if planner.negative else root


class Planner:
    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.made: dict[Operator, Operator] = {}
        self.negative = method_of(self.option("lifetimes")).name == "negative"

    def option(self, name: str) -> Any:
        return self.catalogue.options.get(name, OPTIONS[name].default)

    def plan(self, node: Node) -> Operator:
        """The operator for a node; equal nodes give the very same operator."""
        operator = self._plan(node)
        return self.made.setdefault(operator, operator)

    def _plan(self, node: Node) -> Operator:
        if isinstance(node, StreamScan):
            return Operator(node, Tactic("scan", "rows waiting for progress"), needs=(ANY,))
        if isinstance(node, TableScan):
            return self._table(node)
        if isinstance(node, OuterJoin):
            raise RefusedError(
                f"{node.side.upper()} JOIN cannot run yet on this runtime",
                remedy="use an inner join; rows without a partner: all EXCEPT ALL those joined with DISTINCT keys",
            )
        for expression in _expressions(node):
            if any(isinstance(part, Exists | InQuery) for part in walk(expression)):
                raise RefusedError(
                    "EXISTS and IN (sub-query) cannot run yet on this runtime",
                    remedy="write a join with a SELECT DISTINCT sub-query; for NOT EXISTS and NOT IN write EXCEPT ALL",
                )
        if isinstance(node, Join):
            return self._join(node)
        choice = None
        if isinstance(node, Aggregate) and (shape := shape_of(node)) is not None:
            below = tuple(self.plan(relation) for relation in shape.relations)
            choice = joinagg.choose(shape, below, self.negative, self.option("joinagg"))
            if choice.name != "pc":
                return joinagg.operators(node, shape, below, choice, lambda made: self.made.setdefault(made, made))
        inputs = tuple(self.plan(child) for child in node.inputs)
        if isinstance(node, Window):
            chosen = windows.choose(node.spec, node.schema, self.negative)
            return Operator(
                node, chosen.tactic, inputs, None, (chosen.needs,), chosen.ends_grow, open_ends=chosen.open_ends
            )
        first = inputs[0]
        if isinstance(node, Filter | Project | StreamFilter | StreamProject):
            name = "filter" if isinstance(node, Filter | StreamFilter) else "project"
            tactic = Tactic(name, "nothing")
            return Operator(node, tactic, inputs, None, (ANY,), first.ends_grow, open_ends=first.open_ends)
        if isinstance(node, ToStream):
            kept = "each distinct row alive once, two numbers per row alive"
            # RSTREAM tells the whole snapshot whenever any of it changes, so whoever makes it must see all of it.
            needs = SINGLE if node.change is Change.RSTREAM else _all(first)
            return Operator(node, Tactic(node.change.value, kept, "a hash look-up a row"), inputs, None, (needs,))
        if isinstance(node, Aggregate):
            needs = Partitioning("keys", node.keys) if node.grouped else SINGLE
            heaps = any(call.function in ("min", "max") for call in node.calls)
            costs = "O(log rows alive) a row" if heaps else "O(1) a row"
            refused = () if choice is None else choice.refused
            kept = f"16 bytes per argument and {'row of the join' if choice else 'row'} alive, totals per group"
            return Operator(node, Tactic("sliding", kept, costs, refused), inputs, None, (needs,), open_ends=True)
        kept = "each distinct row alive once, two numbers per row alive"
        tactic = Tactic("counting", kept, "a hash look-up a row")
        if isinstance(node, Distinct):
            return Operator(node, tactic, inputs, None, (_all(first),), open_ends=True)
        assert isinstance(node, SetOperation)
        if node.kind == "union":
            both = Operator(
                SetOperation("union", True, node.left, node.right),
                Tactic("concatenation", "nothing"),
                inputs,
                None,
                (ANY, ANY),
                open_ends=any(i.open_ends for i in inputs),
            )
            if node.all:
                return both
            both = self.made.setdefault(both, both)
            return Operator(
                Distinct(a_relation(both.node)),
                tactic,
                (both,),
                None,
                (_all(both),),
                open_ends=True,
            )
        return Operator(node, tactic, inputs, None, tuple(_all(i) for i in inputs), open_ends=True)

    def _table(self, node: TableScan) -> Operator:
        definition = self.catalogue.relations[node.name.lower()]
        assert isinstance(definition, TableDefinition)
        if definition.time is None:
            return Operator(node, Tactic("static_table", "nothing"), needs=(ANY,), ends_grow=True)
        name = "upsert_table" if definition.primary_key else "changes_table"
        identity = {key.lower() for key in definition.primary_key}
        if not identity:
            identity = {n.lower() for n in node.schema.names} - {definition.time.column.lower()}
        places = [i for i, known in enumerate(node.schema.names) if known.lower() in identity]
        keys = Partitioning("keys", tuple(column(node.schema, i) for i in places)) if places else SINGLE
        tactic = Tactic(name, "each row alive once", "a hash look-up a row")
        return Operator(node, tactic, needs=(keys,), open_ends=True)

    def _join(self, node: Join) -> Operator:
        """One operator for all inputs, or a left-deep tree of joins of two and the columns back in their order."""
        choice = multiway.choose(self.option("multiway"), self.negative)
        if choice.name != "tree":
            return multiway.operator(node, tuple(self.plan(relation) for relation in node.relations), choice)
        order = joins.join_order(node)
        ordered, positions = joins.reordered(node, order)
        parts = list(conjuncts(ordered.predicate))
        left = self.plan(ordered.relations[0])
        forced = self.option("join")
        for at, relation in enumerate(ordered.relations[1:], 2):
            right = self.plan(relation)
            width = len(left.schema) + len(right.schema)
            ready = tuple(p for p in parts if all(i < width for i in _columns(p)))
            parts = [p for p in parts if p not in ready]
            keys = joins.split_keys(ready, len(left.schema))
            tactic = joins.choose(left, right, keys, forced)
            if at == len(order) > 2:  # the root of the tree tells why the join is one
                tactic = replace(tactic, refused=(*tactic.refused, *choice.refused))
            joined = Join((a_relation(left.node), a_relation(right.node)), None)
            left = Operator(
                joined,
                tactic,
                (left, right),
                keys,
                joins.partitioning(keys, tactic.name),
                open_ends=left.open_ends or right.open_ends,
            )
            left = self.made.setdefault(left, left)
        if positions == list(range(len(positions))):
            return left
        schema = left.schema
        back = tuple(column(schema, i) for i in positions)
        project = Project(a_relation(left.node), back, tuple(schema[i].name for i in positions))
        return Operator(project, Tactic("project", "nothing"), (left,), None, (ANY,), open_ends=left.open_ends)


def _check_clocks(root: Operator, catalogue: Catalogue) -> None:
    """Streams that are stamped on arrival share one clock, which says nothing about the times of other inputs."""
    names = [o.node.name for o in root.walk() if isinstance(o.node, StreamScan | TableScan)]
    definitions = [catalogue.relations[name.lower()] for name in names]
    stamped = [d for d in definitions if isinstance(d, StreamDefinition) and d.arrival_time]
    for definition in definitions:
        assert isinstance(definition, StreamDefinition | TableDefinition)
        if stamped and definition.time is not None and definition not in stamped:
            raise RefusedError(
                f"the query mixes streams with time = 'arrival' and '{definition.name}', which has times of its own",
                remedy="declare all streams of the query with time = 'arrival', or none",
            )


def _columns(expression: Expression) -> Iterator[int]:
    return (part.index for part in walk(expression) if isinstance(part, ColumnRef))


def _all(operator: Operator) -> Partitioning:
    schema = operator.schema
    return Partitioning("keys", tuple(column(schema, i) for i in range(len(schema))))


def _expressions(node: Node) -> Iterator[Expression]:
    if isinstance(node, Filter | StreamFilter):
        yield node.predicate
    elif isinstance(node, Project | StreamProject):
        yield from node.expressions
    elif isinstance(node, Join):
        yield from conjuncts(node.predicate)
    elif isinstance(node, Aggregate):
        yield from node.keys
        yield from (call.argument for call in node.calls if call.argument is not None)
