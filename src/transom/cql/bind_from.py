"""FROM: names become scans, streams get their windows, inner joins become one join of many inputs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import cast

from sqlglot import exp

from transom.core.schema import is_array
from transom.cql import syntax
from transom.cql.bind_as_of import bind_stream_as_of, pairs_as_of
from transom.cql.bind_closest import at_least, closest
from transom.cql.bind_expression import ExpressionBinder
from transom.cql.bind_file import bind_file, stem
from transom.cql.bind_table_function import HIDDEN, bind_deduplication, bind_window_function, own_time
from transom.cql.bind_window import bind_window
from transom.cql.context import Context
from transom.cql.nesting import MAX_CHAIN
from transom.cql.scope import Input, Scope, ScopeColumn, columns_of_row, move
from transom.plan import functions
from transom.plan.algebra import (
    AntiJoin,
    Filter,
    Join,
    Lateral,
    Node,
    OuterJoin,
    Relation,
    SemiJoin,
    Stream,
    StreamScan,
    TableScan,
    Unnest,
    Window,
)
from transom.plan.catalogue import StreamDefinition, TableDefinition, ViewDefinition
from transom.plan.expression import ColumnRef, Expression, conjunction, conjuncts
from transom.plan.no_from import ONE_ROW, scan_one_row
from transom.plan.rewrites.outer_columns import has_query, outer_columns

_FUNCTIONS = (syntax.WindowFunction, syntax.Deduplication)


@dataclass(frozen=True)
class Joined:
    """Relations to be joined, side by side, with the conditions between them and the names of their columns."""

    relations: tuple[Relation, ...]
    conditions: tuple[Expression, ...]
    inputs: tuple[Input, ...]

    @property
    def width(self) -> int:
        return sum(len(relation.schema) for relation in self.relations)

    @property
    def relation(self) -> Relation:
        if len(self.relations) == 1:
            return self.relations[0]
        return Join(self.relations, conjunction(self.conditions))

    def beside(self, right: Joined) -> Joined:
        by = self.width
        return Joined(
            self.relations + right.relations,
            self.conditions + tuple(move(condition, by) for condition in right.conditions),
            self.inputs + tuple(item.moved(by) for item in right.inputs),
        )


def bind_from(node: exp.From, context: Context, outer: Scope | None) -> tuple[Relation, Scope]:
    """The relation that FROM gives and the names in it."""
    first, *rest = node.this.expressions
    if len(rest) >= MAX_CHAIN:
        raise context.source.error(f"FROM has more than {MAX_CHAIN} inputs", node, "join some of them in a sub-query")
    joined = (
        _bind_unnest(first, _one_row(context), context, outer)
        if isinstance(first, syntax.UnnestItem)
        else _bind_joined(first, context, outer)
    )
    for part in rest:
        if isinstance(part, syntax.UnnestItem):
            joined = _bind_unnest(part, joined, context, outer)
            continue
        if part.args.get("lateral"):
            joined = _bind_lateral(part, joined, context, outer)
            continue
        if isinstance(part, syntax.JoinedSources) and part.this.args.get("lateral"):
            joined = _bind_joins(part, _bind_lateral(part.this, joined, context, outer), context, outer, behind=True)
            continue
        right = _bind_joined(part, context, outer)
        _reject_same_alias(joined, right, part, context)
        joined = joined.beside(right)
    return joined.relation, Scope(joined.inputs, outer)


def _one_row(context: Context) -> Joined:
    """What an UNNEST that stands first takes its constant array of."""
    return Joined((scan_one_row(context.catalogue),), (), ())


def _bind_joined(node: exp.Expr, context: Context, outer: Scope | None) -> Joined:
    if not isinstance(node, syntax.JoinedSources):
        return _bind_source(node, context, outer)
    joined = (
        _bind_unnest(node.this, _one_row(context), context, outer)
        if isinstance(node.this, syntax.UnnestItem)
        else _bind_source(node.this, context, outer)
    )
    return _bind_joins(node, joined, context, outer)


def _bind_joins(node: exp.Expr, joined: Joined, context: Context, outer: Scope | None, behind: bool = False) -> Joined:
    """The first of the inputs, or what stands before a LATERAL as well, with the others `behind` it."""
    for join in node.args["joins"]:
        if behind and join.args["kind"] in ("right", "full"):
            remedy = "join before the LATERAL, or put the LATERAL and its inputs into a sub-query"
            raise context.source.error(f"{join.args['kind'].upper()} JOIN does not go with a LATERAL", join, remedy)
        if isinstance(join.this, syntax.UnnestItem):
            joined = _bind_unnest(join.this, joined, context, outer, join)
            continue
        if join.this.args.get("lateral"):
            joined = _bind_lateral(join.this, joined, context, outer, join)
            continue
        right = _bind_source(join.this, context, outer, joined=True)
        _reject_same_alias(joined, right, join.this, context)
        joined = _bind_join(join, joined, right, context, outer)
    return joined


def _bind_join(join: exp.Join, left: Joined, right: Joined, context: Context, outer: Scope | None) -> Joined:
    both = left.beside(right)
    kind = join.args["kind"]
    conditions: tuple[Expression, ...] = ()
    inputs = both.inputs
    using = _common(join, left, right, context) if join.args.get("natural") else join.args.get("using")
    if using is not None:
        conditions, inputs = _bind_using(using, kind, both.inputs, len(left.inputs), context)
    elif (on := join.args.get("on")) is not None:
        asks = kind == "inner" and join.this.args.get("as_of") is None and not join.args.get("closest")
        binder = ExpressionBinder(context, Scope(both.inputs, outer), "ON", sub_queries=asks)
        conditions = conjuncts(binder.condition(on))
    if (time := join.this.args.get("as_of")) is not None:
        stream, spec = bind_stream_as_of(time, left.relations, Scope(left.inputs), context)
        pairs = pairs_as_of(stream, spec, right.relation, kind, conjunction(conditions), join, context)
        return Joined((pairs,), (), inputs)
    if join.args.get("closest"):
        if using is not None:
            conditions = (*conditions[:-1], at_least(conditions[-1]))
        outer_join = kind == "left"
        return Joined((closest(left.relation, right.relation, conditions, outer_join, join, context),), (), inputs)
    if kind in ("inner", "cross"):
        plain = tuple(each for each in conditions if not has_query(each))
        joined_rows = Joined(both.relations, both.conditions + plain, inputs)
        with_queries = conjunction(tuple(each for each in conditions if has_query(each)))
        if with_queries is None:
            return joined_rows
        return Joined((Filter(joined_rows.relation, with_queries),), (), inputs)
    predicate = conjunction(conditions)
    assert predicate is not None  # the grammar takes no such join without a condition
    if kind in ("semi", "anti"):
        joined = (SemiJoin if kind == "semi" else AntiJoin)(left.relation, right.relation, predicate)
        return Joined((joined,), (), left.inputs)
    side = cast(OneOf["left", "right", "full"], kind)
    return Joined((OuterJoin(left.relation, right.relation, side, predicate),), (), inputs)


def _bind_unnest(
    node: syntax.UnnestItem, left: Joined, context: Context, outer: Scope | None, join: exp.Join | None = None
) -> Joined:
    """The rows so far, each once for every element; what is read of the array are their columns."""
    kind = "cross" if join is None else join.args["kind"]
    on = None if join is None else join.args.get("on")
    always = isinstance(on, exp.Boolean) and bool(on.this)
    if kind not in ("cross", "inner", "left") or (kind == "left" and not always) or (join and join.args.get("using")):
        remedy = "write CROSS JOIN UNNEST(..), or LEFT JOIN UNNEST(..) ON TRUE, and conditions in WHERE"
        raise context.source.error("UNNEST cannot be joined like this", node, remedy)
    array = unnested_array(node.this, ExpressionBinder(context, Scope(left.inputs, outer), "UNNEST", sub_queries=False))
    alias, columns = node.args.get("alias"), node.args.get("columns")
    called = alias.name if alias is not None else "unnest"
    names = ["unnest" if alias is None else alias.name, *(["ordinality"] * bool(node.args["numbered"]))]
    if columns is not None:
        if len(columns) > len(names):
            what = f"there are {len(columns)} names for {len(names)} columns"
            raise context.source.error(what, columns[0], "name each column once; WITH ORDINALITY adds one")
        names[: len(columns)] = [column.name for column in columns]
    excerpt = context.source.excerpt(node)
    relation: Relation = Unnest(left.relation, array, tuple(names), outer=kind == "left", excerpt=excerpt)
    added = list(relation.schema)[left.width :]
    values: list[Expression] = [ColumnRef(left.width + i, c.type, c.name) for i, c in enumerate(added)]
    made = Joined((relation,), (), (Input(called, columns_of_row(names, values, frozenset())),))
    _reject_same_alias(left, made, node, context)
    made = replace(made, inputs=left.inputs + made.inputs)
    if on is None or always:
        return made
    condition = ExpressionBinder(context, Scope(made.inputs, outer), "ON", sub_queries=False).condition(on)
    return replace(made, relations=(Filter(relation, condition),))


def _bind_lateral(
    node: exp.Expr, left: Joined, context: Context, outer: Scope | None, join: exp.Join | None = None
) -> Joined:
    """The rows so far beside those of a query that reads them."""
    kind = "cross" if join is None else join.args["kind"]
    if kind not in ("cross", "inner", "left") or (join and (join.args.get("using") or join.args.get("natural"))):
        remedy = "write CROSS JOIN LATERAL (..), or LEFT JOIN LATERAL (..) AS b ON condition"
        raise context.source.error("LATERAL cannot be joined like this", node, remedy)
    if (window := node.args.get("window")) is not None:
        raise context.source.error("LATERAL is a relation, and windows are for streams", window, "leave it out")
    relation = context.bind_relation(node.this, Scope(left.inputs, outer), "LATERAL")
    read, alias = outer_columns(relation), node.args.get("alias")
    if any(column.depth > 1 for column in read):
        remedy = "read it in the query that has it, and put that into FROM"
        raise context.source.error("LATERAL takes no column of the query around", node.this, remedy)
    named = _input(node, None if alias is None else alias.name, relation, frozenset(), context)
    right = Joined((relation,), (), (named,))
    _reject_same_alias(left, right, node, context)
    both = left.beside(right)
    on = None if join is None else join.args.get("on")
    binder = ExpressionBinder(context, Scope(both.inputs, outer), "ON", sub_queries=False)
    conditions = () if on is None else conjuncts(binder.condition(on))
    if not read and kind != "left":
        return replace(both, conditions=both.conditions + conditions)
    predicate = conjunction(conditions)
    if read:
        excerpt = context.source.excerpt(node)
        made: Relation = Lateral(left.relation, relation, predicate, kind == "left", excerpt=excerpt)
    else:
        assert predicate is not None  # the grammar takes no LEFT JOIN without a condition
        made = OuterJoin(left.relation, relation, "left", predicate)
    return Joined((made,), (), both.inputs)


def unnested_array(node: exp.Expr, binder: ExpressionBinder) -> Expression:
    """What stands in UNNEST(..): an array of the rows at hand."""
    context = binder.context
    with context.at(node):
        array = functions.settle(binder.bind(node))
    if not is_array(array.type):
        raise context.source.error(f"UNNEST takes an array, not '{array}'", node, "write UNNEST(array)")
    return array


def _common(join: exp.Join, left: Joined, right: Joined, context: Context) -> list[exp.Identifier]:
    """The columns that both sides of a NATURAL JOIN have, in the order of the left."""

    def names(side: Joined) -> dict[str, str]:
        shown = (column for item in side.inputs for column in item.columns if column.shown and column.bare is not None)
        return {column.name.lower(): column.name for column in shown}

    others = names(right)
    names_in_both = [name for low, name in names(left).items() if low in others]
    if not names_in_both:
        raise context.source.error("the sides of the NATURAL JOIN have no column in common", join, "write JOIN .. ON")
    made = [exp.to_identifier(name) for name in names_in_both]
    for each in made:
        each.meta.update(join.meta)
    return made


def _bind_using(
    names: list[exp.Identifier], kind: str, inputs: tuple[Input, ...], split: int, context: Context
) -> tuple[tuple[Expression, ...], tuple[Input, ...]]:
    """USING (a, b): the columns of both sides are equal, and become one column for `*` and for the bare name."""
    conditions = []
    merged: dict[Expression, Expression | None] = {}  # what the names alone mean from now on
    scopes = {"left": Scope(inputs[:split]), "right": Scope(inputs[split:])}
    for name in names:
        sides = []
        for side, scope in scopes.items():
            values = [value for value in scope.find(name.name, None) if merged.get(value, value) is not None]
            if len(values) != 1:
                what = f"the {side} side of the join has {'several columns' if values else 'no column'} '{name.name}'"
                raise context.source.error(what, name, f"write ON condition; {scope.remedy(name.name, None)}")
            sides.append(values[0])
        with context.at(name):
            conditions.append(functions.resolve("=", (sides[0], sides[1])))
            merged_value = (
                functions.resolve("coalesce", (sides[0], sides[1])) if kind == "full" else sides[kind == "right"]
            )
        merged[sides[0]], merged[sides[1]] = merged_value, None
    return tuple(conditions), tuple(_merged(item, merged) for item in inputs)


def _merged(item: Input, merged: dict[Expression, Expression | None]) -> Input:
    def change(column: ScopeColumn) -> ScopeColumn:
        return column if column.bare is None or column.bare not in merged else replace(column, bare=merged[column.bare])

    return replace(item, columns=tuple(change(column) for column in item.columns))


def _reject_same_alias(left: Joined, right: Joined, node: exp.Expr, context: Context) -> None:
    taken = {item.alias.lower() for item in left.inputs if item.alias is not None}
    for item in right.inputs:
        if item.alias is not None and item.alias.lower() in taken:
            remedy = f"give one of them another name, as in {item.alias} AS {item.alias}2"
            raise context.source.error(f"there are two inputs '{item.alias}' in FROM", node, remedy)


# --- one input -------------------------------------------------------------------------------------------------------


def _bind_source(node: exp.Expr, context: Context, outer: Scope | None, joined: bool = False) -> Joined:
    """One input; `joined`: on the right of a JOIN, where it may be looked at as of the time of a row."""
    if isinstance(node, syntax.UnnestItem):
        remedy = "write FROM s [..], UNNEST(s.array) AS u(x)"
        raise context.source.error("UNNEST stands behind the input whose arrays it takes", node, remedy)
    this, window, alias = node.this, node.args.get("window"), node.args.get("alias")
    if node.args.get("lateral"):
        remedy = "write the input that it reads before it: FROM s [..], LATERAL (SELECT ..) AS b"
        raise context.source.error("LATERAL stands behind the input that it reads", node, remedy)
    if not joined and (time := node.args.get("as_of")) is not None:
        remedy = "write FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
        raise context.source.error("FOR SYSTEM_TIME AS OF stands behind the table of a JOIN", time, remedy)
    if isinstance(this, (syntax.JoinedSources, syntax.FromItem)):
        return _bind_bracketed(node, context, outer)
    hidden: frozenset[str] = frozenset()
    own_name: list[str] = []
    if isinstance(this, exp.Identifier):
        bound, hidden = look_up(this, context)
        bound = _written(bound, this, context)
        own_name = [this.name]
    elif isinstance(this, syntax.FileName):
        bound = _scan(bind_file(this, context.source, context.catalogue, windowed=window is not None), context)
        bound = _written(bound, this, context)
        own_name = [stem(this.name)]
    elif isinstance(this, _FUNCTIONS):
        bound, hidden, own_name = _bind_function(this, context, outer)
    else:
        bound = context.bind_query(this, context, outer)
    called = alias.name if alias is not None else own_name[0] if own_name else None
    if isinstance(bound, Stream):
        qualifiers = ([alias.name] if alias is not None else []) + own_name
        excerpt = context.source.excerpt(window if window is not None else this)
        relation: Relation = Window(bound, bind_window(window, bound, qualifiers, context), excerpt=excerpt)
    else:
        assert isinstance(bound, Relation)
        if window is not None:
            what = f"'{called}'" if called is not None else "the sub-query"
            remedy = "leave it out, or window its changes: " + (
                f"ISTREAM(SELECT * FROM {own_name[0]}) [..]" if own_name else "ISTREAM(SELECT ..) [..]"
            )
            raise context.source.error(f"{what} is a relation, and windows are for streams", window, remedy)
        relation = bound
    return Joined((relation,), (), (_input(node, called, relation, hidden, context),))


def _written(bound: Node, name: exp.Expr, context: Context) -> Node:
    """What is read by its name; views and named queries have texts of their own."""
    return replace(bound, excerpt=context.source.excerpt(name)) if isinstance(bound, StreamScan | TableScan) else bound


def _bind_function(
    node: syntax.WindowFunction | syntax.Deduplication, context: Context, outer: Scope | None
) -> tuple[Node, frozenset[str], list[str]]:
    """A table function over what stands in it, what `*` leaves out of it, and the name of its stream: it goes by it."""
    hidden: frozenset[str] = frozenset()
    name: list[str] = []
    if isinstance(node.this, exp.Identifier):
        bound, hidden = look_up(node.this, context)
        bound = _written(bound, node.this, context)
        name = [node.this.name]
    elif isinstance(node.this, _FUNCTIONS):
        bound, hidden, name = _bind_function(node.this, context, outer)
    else:
        bound = context.bind_query(node.this, context, outer)
    if isinstance(node, syntax.Deduplication):
        made: Node = bind_deduplication(node, bound, name, context)
    else:
        made, hidden = bind_window_function(node, bound, name, context), hidden | HIDDEN
    return replace(made, excerpt=context.source.excerpt(node)), hidden, name


def _bind_bracketed(node: exp.Expr, context: Context, outer: Scope | None) -> Joined:
    """Inputs in parentheses; they keep their own names."""
    window, alias = node.args.get("window"), node.args.get("alias")
    if window is not None:
        raise context.source.error("a window belongs to one stream", window, "write it behind the name of the stream")
    if alias is not None:
        remedy = f"leave '{alias.name}' out, or write (SELECT * FROM ..) AS {alias.name}"
        raise context.source.error("joined inputs have no common name", alias, remedy)
    return _bind_joined(node.this, context, outer)


def _input(node: exp.Expr, alias: str | None, relation: Relation, hidden: frozenset[str], context: Context) -> Input:
    schema = relation.schema
    names = schema.names
    if (columns := node.args.get("columns")) is not None:
        shown = [i for i, name in enumerate(names) if name not in hidden]
        if len(columns) != len(shown):
            what = f"there are {len(columns)} names for {len(shown)} columns"
            raise context.source.error(what, columns[0], "name each column once")
        for position, column in zip(shown, columns, strict=True):
            names[position] = column.name
    values: list[Expression] = [ColumnRef(i, c.type, n) for i, (c, n) in enumerate(zip(schema, names, strict=True))]
    return Input(alias, columns_of_row(names, values, hidden), own_time(relation, context))


def _scan(key: str, context: Context) -> Node:
    definition = context.catalogue.relations[key]
    if isinstance(definition, StreamDefinition):
        return StreamScan(definition.name, definition.columns)
    if isinstance(definition, TableDefinition):
        return TableScan(definition.name, definition.relation_columns)
    return definition.query


def look_up(node: exp.Identifier, context: Context) -> tuple[Node, frozenset[str]]:
    """What a name in FROM stands for, and which of its columns `*` leaves out."""
    key = node.name.lower()
    if key in context.named:
        return context.named[key], frozenset()
    definition = context.catalogue.relations.get(key)
    if definition is not None:
        return _scan(key, context), frozenset() if isinstance(definition, ViewDefinition) else definition.invisible
    if key in context.catalogue.sinks:
        raise context.source.error(f"'{node.name}' is a sink, it cannot be read", node, "read what is inserted into it")
    written_names = {
        **{d.name.lower(): d.name for d in context.catalogue.relations.values()},
        **{n: n for n in context.named},
    }
    written_names.pop(ONE_ROW, None)
    close = difflib.get_close_matches(key, written_names, n=3, cutoff=0.5)
    choices = [written_names[low] for low in close] or sorted(written_names.values())[:8]
    remedy = f"did you mean {' or '.join(choices)}?" if choices else "declare it first with CREATE STREAM or TABLE"
    raise context.source.error(f"there is no stream, table or view '{node.name}'", node, remedy)
