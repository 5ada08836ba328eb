"""The planner: a rewritten query becomes a tree of operators, or an UnsupportedError before anything starts.

It imports many modules, since every kind of node has its branch here; how a tactic is chosen for one is said there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from transom.core.errors import UnsupportedError
from transom.kernels.aggregate.tactic import RunningTactic, SlidingTactic
from transom.kernels.deduplicate.tactic import deduplicate_operator
from transom.kernels.joinagg.shape import Shape, shape_of
from transom.kernels.kept_forever.tactic import KeptForeverTactic
from transom.kernels.multiway.join_tree import left_deep
from transom.kernels.operator import ANY, SINGLE, Operator, Partitioning, Tactic, all_columns, column, scanned
from transom.kernels.scan.tactic import ChangesTableTactic, ScanTactic, StaticTableTactic, UpsertTableTactic
from transom.kernels.select.tactic import ConcatenationTactic, FilterTactic, ProjectTactic
from transom.kernels.set_operation.tactic import COSTS, KEEPS, DistinctTactic, SetOperationTactic
from transom.kernels.to_stream import tactic as to_streams
from transom.kernels.top_n.tactic import BestTactic, OrderedTactic
from transom.kernels.unnest.tactic import UnnestTactic
from transom.kernels.window import tactic as windows
from transom.kernels.window_table import tactic as window_tables
from transom.kernels.window_table.tactic import WindowAggregateTactic
from transom.plan.algebra import (
    Aggregate,
    AntiJoin,
    Deduplicate,
    Distinct,
    Filter,
    Join,
    KeptForever,
    Node,
    OuterJoin,
    Project,
    SemiJoin,
    SetOperation,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    TopN,
    ToStream,
    Unnest,
    Window,
    WindowTable,
    a_relation,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.expression import conjunction, conjuncts
from transom.plan.options import OPTIONS
from transom.plan.rewrites import rewrite
from transom.planner import join as joins
from transom.planner import joinagg, multiway, slide_join
from transom.planner.join_operators import JoinOperators
from transom.planner.lifetimes import method_of, with_negative_tuples
from transom.planner.multiway_choice import ONE_OPERATOR, Chooser, MultiwayChoice, MultiwayDecision
from transom.planner.running_frames import bound_frames, frame_windows
from transom.planner.sealed import seal, sealed_columns
from transom.planner.statistics import DeclaredStatistics, Statistics
from transom.planner.time_bounds import bound_joins
from transom.planner.unending import lasting

MAX_OPERATORS: Final = 2_000
"""Of one plan, each counted once. Selections that differ keep the two uses of a view from being one."""

_MEETS_AT_ONCE: Final = "joins of two remember nothing of windows that are over"


def plan(query: Node, catalogue: Catalogue, statistics: Statistics | None = None, is_part: bool = False) -> Operator:
    """The physical plan of a bound query, or of a part that several queries read."""
    return plan_and_decisions(query, catalogue, statistics, is_part=is_part)[0]


def plan_and_decisions(
    query: Node,
    catalogue: Catalogue,
    statistics: Statistics | None = None,
    decided: tuple[MultiwayDecision, ...] = (),
    is_part: bool = False,
) -> tuple[Operator, tuple[MultiwayDecision, ...]]:
    """The plan, and what was decided by estimates; what is `decided` already is done so, whatever they are now."""
    planner = Planner(catalogue, statistics, decided)
    rewritten = planner.rewritten(query, is_part)
    root = planner.plan_slides(rewritten) or planner.plan(rewritten)
    _check_clocks(root, catalogue)
    slide_join.check_memory(root, rewritten, planner.option("memory"), planner.option("tick"))
    return with_negative_tuples(root) if planner.negative else root, planner.decisions


class Planner:
    def __init__(
        self, catalogue: Catalogue, statistics: Statistics | None = None, decided: tuple[MultiwayDecision, ...] = ()
    ) -> None:
        self.catalogue = catalogue
        self.planned: dict[Node, Operator] = {}
        self.made: dict[Operator, Operator] = {}
        self.bounded: dict[Node, str] = {}
        self.in_order: frozenset[Node] = frozenset()
        self.choices: dict[Join, MultiwayChoice] = {}
        self.decided = [choice.tactic for choice in decided if choice.tactic in joinagg.TACTICS]
        self.joinaggs: list[MultiwayDecision] = []
        self.negative = method_of(self.option("lifetimes")).name == "negative"
        forced, pairs = self.option("multiway"), self.option("join")
        given = statistics or DeclaredStatistics(catalogue)
        self.chooser = Chooser(forced, pairs, self.negative, given, decided, self.option("adapt"))

    @property
    def decisions(self) -> tuple[MultiwayDecision, ...]:
        """Of the joins of many inputs, then of the aggregates over joins, in the order in which they were met."""
        joins = [choice.decision for node, choice in self.choices.items() if len(node.relations) > 2]
        return (*joins, *self.joinaggs)

    def option(self, name: str) -> Any:
        return self.catalogue.options.get(name, OPTIONS[name].default)

    def rewritten(self, query: Node, is_part: bool = False) -> Node:
        """The query as it is planned, which the planner looks at as a whole first."""
        partners = not self.negative and not is_part
        tick = self.option("tick")
        framed = rewrite(bound_frames(query, self.catalogue, tick))
        rewritten, self.bounded = bound_joins(framed, self.catalogue, tick, partners)
        self.bounded |= frame_windows(framed)
        self.in_order = _read_in_order(rewritten)
        return rewritten

    def plan_slides(self, query: Node) -> Operator | None:
        """The whole query as a join that is emitted slide by slide, if it is one and is to run so."""
        forced = self.option("slide_join")
        memory, put_off, tick = self.option("memory"), self.option("put_off"), self.option("tick")
        node = slide_join.choose(query, forced, memory, put_off, tick)
        return None if node is None else slide_join.operator(node, tuple(map(self.plan, node.inputs)), forced)

    def plan(self, node: Node) -> Operator:
        """The operator for a node; equal nodes give the very same operator."""
        operator = self.planned.get(node)
        if operator is None:
            fresh = self._plan(node)
            if len(self.made) >= MAX_OPERATORS:
                raise UnsupportedError(
                    f"the query has more than {MAX_OPERATORS:,} operators once its views are put in",
                    remedy="insert a part of it into a sink, and read that as a stream",
                )
            operator = self.planned[node] = self._once(fresh)
        return operator

    def _once(self, operator: Operator) -> Operator:
        """Equal operators are the same one; what may forget all that it saw does so."""
        return self.made.setdefault(operator, seal(operator, self.option("tick")))

    def _plan(self, node: Node) -> Operator:
        if isinstance(node, StreamScan):
            return Operator(node, ScanTactic("rows waiting for progress"), needs=(ANY,))
        if isinstance(node, TableScan):
            return self._table(node)
        if isinstance(node, OuterJoin | SemiJoin):
            return self._join_of_partners(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Aggregate) and WindowAggregateTactic.runs(node):
            return window_tables.aggregate_operator(node, self.plan(node.input.inputs[0]))
        choice = None
        if isinstance(node, Aggregate) and (shape := shape_of(node)) is not None:
            below = tuple(self.plan(relation) for relation in shape.relations)
            if not any(self._sealed(below)):
                choice = self._join_aggregate(shape, below)
            if choice is not None and choice.name != "pc":
                return joinagg.operators(node, shape, below, choice, self._once)
        inputs = tuple(self.plan(child) for child in node.inputs)
        if isinstance(node, Window):
            chosen = windows.choose(node.spec, node.schema, self.negative)
            window = chosen.tactic
            if node in self.bounded:
                window = replace(window, not_taken=(*window.not_taken, ("unbounded", self.bounded[node])))
            return Operator(node, window, inputs, None, (chosen.needs,), chosen.ends_grow, open_ends=chosen.open_ends)
        if isinstance(node, Deduplicate):
            return deduplicate_operator(node, inputs[0], node in self.in_order)
        if isinstance(node, WindowTable):
            return window_tables.table_operator(node, inputs[0])
        first = inputs[0]
        if isinstance(node, Filter | Project | StreamFilter | StreamProject):
            passing = FilterTactic if isinstance(node, Filter | StreamFilter) else ProjectTactic
            return Operator(node, passing("nothing"), inputs, None, (ANY,), first.ends_grow, open_ends=first.open_ends)
        if isinstance(node, Unnest):
            return Operator(node, UnnestTactic("nothing"), inputs, None, (ANY,), open_ends=first.open_ends)
        if isinstance(node, KeptForever):
            return Operator(node, KeptForeverTactic("nothing", "nothing a row"), inputs, None, (ANY,), ends_grow=True)
        if isinstance(node, ToStream):
            to_stream, spread = to_streams.choose(node, inputs)
            return Operator(node, to_stream, inputs, None, (spread,))
        if isinstance(node, Aggregate):
            needs = Partitioning("keys", node.keys) if node.grouped else SINGLE
            not_taken = () if choice is None else choice.not_taken
            tactic: Tactic = SlidingTactic.chosen(node, not_taken, over_join=choice is not None)
            if not self.negative and RunningTactic.runs(node, lasting(first)):
                tactic = RunningTactic.chosen(node, not_taken)
            return Operator(node, tactic, inputs, None, (needs,), open_ends=True)
        if isinstance(node, Distinct):
            return _distinct(node, first)
        if isinstance(node, TopN):
            keys = tuple(column(node.input.schema, i) for i in node.partition)
            best = not self.negative and BestTactic.runs(node, lasting(first))
            placed = BestTactic.chosen(node) if best else OrderedTactic.chosen(node)
            needs = Partitioning("keys", keys) if keys else SINGLE
            return Operator(node, placed, inputs, None, (needs,), open_ends=True)
        assert isinstance(node, SetOperation)
        if node.kind == "union":
            both = Operator(
                SetOperation("union", True, node.left, node.right, excerpt=node.excerpt),
                ConcatenationTactic("nothing"),
                inputs,
                None,
                (ANY, ANY),
                open_ends=any(i.open_ends for i in inputs),
            )
            if node.all:
                return both
            both = self._once(both)
            return _distinct(Distinct(a_relation(both.node), excerpt=node.excerpt), both)
        counting = SetOperationTactic(KEEPS, COSTS)
        return Operator(node, counting, inputs, None, tuple(map(all_columns, inputs)), open_ends=True)

    def _table(self, node: TableScan) -> Operator:
        definition = self.catalogue.relations[node.name.lower()]
        assert isinstance(definition, TableDefinition)
        if definition.time is None:
            return Operator(node, StaticTableTactic("nothing"), needs=(ANY,), ends_grow=True)
        table = UpsertTableTactic if definition.primary_key else ChangesTableTactic
        identity = {key.lower() for key in definition.primary_key}
        if not identity:
            identity = {n.lower() for n in node.schema.names} - {definition.time.column.lower()}
        indexes = [i for i, name in enumerate(node.schema.names) if name.lower() in identity]
        keys = Partitioning("keys", tuple(column(node.schema, i) for i in indexes)) if indexes else SINGLE
        tactic = table("each row alive once", "a hash look-up a row")
        return Operator(node, tactic, needs=(keys,), open_ends=True)

    def _join(self, node: Join) -> Operator:
        """One operator for all inputs, or a tree of joins of two."""
        inputs = tuple(self.plan(relation) for relation in node.relations)
        whole = multiway.multiway_join(node, inputs)
        written = left_deep(joins.join_order(node))
        choice = self.choices.get(node)
        if choice is None:
            number = sum(1 for choice in self.choices if len(choice.relations) > 2)
            sealed = self._sealed(inputs)
            choice = self.chooser.choose(whole, written, number, self._stamped(inputs), sum(sealed))
            if choice.name in ONE_OPERATOR and self.option("multiway") == "auto" and all(sealed):
                choice = MultiwayChoice(MultiwayDecision("tree", written), ((choice.name, _MEETS_AT_ONCE),))
            self.choices[node] = choice
        if choice.name in ONE_OPERATOR:
            return multiway.operator(whole, inputs, choice)
        assert choice.decision.tree is not None
        made = JoinOperators(node, inputs, self.option("join"), self._once, choice.onto)
        return made.of(choice.decision.tree)

    def _join_of_partners(self, node: OuterJoin | SemiJoin) -> Operator:
        """A join that knows which rows have a partner: by the tactics of an inner join."""
        left, right = self.plan(node.left), self.plan(node.right)
        keys = joins.split_keys(conjuncts(node.predicate), len(left.schema))
        chosen = joins.choose(left, right, keys, self.option("join"), type(node))
        needs = chosen.needs(keys)
        if node.stays and not isinstance(node, OuterJoin | AntiJoin):
            return Operator(node, chosen, (left, right), keys, needs, ends_grow=True)
        return Operator(node, chosen, (left, right), keys, needs, open_ends=True)

    def _sealed(self, inputs: tuple[Operator, ...]) -> list[bool]:
        return [bool(sealed_columns(each, self.option("tick"))) for each in inputs]

    def _join_aggregate(self, shape: Shape, inputs: tuple[Operator, ...]) -> joinagg.JoinAggregateChoice:
        """What was decided by estimates is remembered."""

        def matches() -> float | None:
            whole = multiway.multiway_join(Join(shape.relations, conjunction(shape.predicates)), inputs)
            statistics = self.chooser.statistics.join(whole)
            counted = statistics.keys and all(keys is not None for keys in statistics.keys)
            return statistics.births(statistics.all) / statistics.rate if counted and statistics.rate else None

        number, forced = len(self.joinaggs), self.option("joinagg")
        decided = self.decided[number] if number < len(self.decided) else None
        choice = joinagg.choose(shape, inputs, self.negative, forced, decided, matches, self.option("adapt"))
        if forced == "auto" and choice.name in ("factorised", "pc", joinagg.ADAPTIVE):
            self.joinaggs.append(MultiwayDecision(choice.name))
        return choice

    def _stamped(self, inputs: tuple[Operator, ...]) -> bool:
        """Whether all streams of a join are stamped on arrival, and there is one."""
        names = {scanned(o) for relation in inputs for o in relation.walk() if isinstance(o.node, StreamScan)}
        definitions = [self.catalogue.relations[name] for name in names]
        return bool(names) and all(isinstance(d, StreamDefinition) and d.arrival_time for d in definitions)


def _read_in_order(query: Node) -> frozenset[Node]:
    """The streams without repeats whose rows of one instant somebody wants in the order in which they arrived."""
    streams: set[Node] = set()
    seen: set[Node] = set()
    pending = [query]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending.extend(node.inputs)
        if isinstance(node, Deduplicate) or (isinstance(node, Window) and node.spec.rows is not None):
            below: Node = node.input
            while isinstance(below, StreamFilter | StreamProject):
                below = below.input
            if isinstance(below, Deduplicate):
                streams.add(below)
    return frozenset(streams)


def _check_clocks(root: Operator, catalogue: Catalogue) -> None:
    """Streams that are stamped on arrival share one clock, which says nothing about the times of other inputs."""
    names = [o.node.name for o in root.walk() if isinstance(o.node, StreamScan | TableScan)]
    definitions = [catalogue.relations[name.lower()] for name in names]
    stamped = [d for d in definitions if isinstance(d, StreamDefinition) and d.arrival_time]
    for definition in definitions:
        assert isinstance(definition, StreamDefinition | TableDefinition)
        if stamped and definition.time is not None and definition not in stamped:
            raise UnsupportedError(
                f"the query mixes streams with time = 'arrival' and '{definition.name}', which has times of its own",
                remedy="declare all streams of the query with time = 'arrival', or none",
            )


def _distinct(node: Distinct, below: Operator) -> Operator:
    return Operator(node, DistinctTactic(KEEPS, COSTS), (below,), None, (all_columns(below),), open_ends=True)
