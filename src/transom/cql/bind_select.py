"""SELECT .. FROM .. WHERE .. GROUP BY .. HAVING: the plan of one query block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, DURATION, is_struct
from transom.cql import syntax
from transom.cql.bind_expression import AggregateRef, ExpressionBinder, GroupingRef
from transom.cql.bind_from import bind_from, unnested_array
from transom.cql.bind_order import BlockOrder, BoundOver, OrderedRows, RankCall, RankRef, SortValue, bounds_of
from transom.cql.context import Context
from transom.cql.group_windows import with_windows_in_from
from transom.cql.limits import MAX_COLUMNS
from transom.cql.scope import Input, Scope, ScopeColumn
from transom.plan import functions
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    SetOperation,
    TopN,
    Unnest,
)
from transom.plan.expression import Cast, ColumnRef, Expression, Literal, SubQuery, columns_of, conjuncts, walk
from transom.plan.no_from import scan_one_row
from transom.plan.rewrites.outer_columns import around_other_rows, outer_columns


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result before it has its place: the node it came from, its name and its value."""

    node: exp.Expr
    name: str
    value: Expression


def bind_select(node: exp.Select, context: Context, outer: Scope | None) -> Relation:
    node = with_windows_in_from(node)
    from_ = node.args.get("from_")
    relation: Relation
    if from_ is None:
        relation, scope = scan_one_row(context.catalogue), Scope((), outer)
    else:
        relation, scope = bind_from(from_, context, outer)
    relation, scope = _unnested_in_list(node, relation, scope, context)
    if (where := node.args.get("where")) is not None:
        relation = Filter(
            relation, ExpressionBinder(context, scope, "WHERE", aliases=_aliases(node)).condition(where.this)
        )
    return _QueryBlock(node, context, scope).bind(relation)


_ELEMENT: Final = " element"
"""No name that anybody can write."""


def _unnested_in_list(node: exp.Select, relation: Relation, scope: Scope, context: Context) -> tuple[Relation, Scope]:
    """SELECT unnest(a): the elements are a column of the rows that the list is computed of."""
    items = [item for item in node.expressions if _is_unnest(item.this)]
    if not items:
        return relation, scope
    ranked = node.args.get("qualify") is not None or any(item.find(syntax.Ranked) for item in node.expressions)
    if len(items) > 1 or node.args.get("group") is not None or ranked:
        remedy = "write FROM s [..], UNNEST(s.a) AS u(x), and use the columns of u"
        what = "the SELECT list holds one unnest, and none beside GROUP BY, OVER and QUALIFY"
        raise context.source.error(what, items[-1].this, remedy)
    (item,) = items
    binder = ExpressionBinder(context, scope, "UNNEST", sub_queries=False)
    array = unnested_array(item.this.expressions[0], binder)
    made = Unnest(relation, array, ("unnest",))
    value = ColumnRef(len(relation.schema), array.type.value_type, "unnest")
    called = exp.Column(this=exp.Identifier(this=_ELEMENT, quoted=True))
    called.meta.update(item.this.meta)
    if item.args.get("alias") is None:
        item.set("alias", exp.Identifier(this=item.args["text"], quoted=True))
    item.set("this", called)
    return made, replace(scope, inputs=(*scope.inputs, Input(None, (ScopeColumn(_ELEMENT, value, value, False),))))


def _aliases(node: exp.Select) -> dict[str, exp.Expr]:
    """What the SELECT list calls its values: names where FROM has no such column."""
    aliases: dict[str, exp.Expr] = {}
    for item in node.expressions:
        if item.args.get("alias") is not None:
            aliases.setdefault(item.args["alias"].name.lower(), item.this)
    return aliases


def _is_unnest(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "unnest" and len(node.expressions) == 1


def project(relation: Relation, values: tuple[Expression, ...], names: tuple[str, ...]) -> Relation:
    """The projection, unless it changes nothing."""
    columns = list(relation.schema)
    same = len(columns) == len(values) and all(
        isinstance(value, ColumnRef) and value.index == i and columns[i].name == name
        for i, (value, name) in enumerate(zip(values, names, strict=True))
    )
    return relation if same else Project(relation, values, names)


@dataclass
class _QueryBlock:
    """One query block, from FROM (and WHERE) up to its projection."""

    node: exp.Select
    context: Context
    scope: Scope

    def bind(self, relation: Relation) -> Relation:
        calls: dict[AggregateCall, int] = {}
        ranks: dict[RankCall | BoundOver, int] = {}
        binder = ExpressionBinder(self.context, self.scope, "the SELECT list", calls, ranks=ranks)
        outputs = self._outputs(binder)
        keys, sets = self._keys(outputs)
        having = self._having(calls, binder)
        order = self._order(binder, outputs)
        if not calls and not keys and not sets and having is None:
            self._reject_groupings(outputs, order)
            return self._result(relation, outputs, order, self._mentioned(relation, outputs, order))
        if not calls and (not keys or sets):
            # HAVING alone makes the whole input one group, as does the empty set; a group must have a column.
            calls[functions.aggregate_call("count", None, False)] = 0
        named = {output.value: output.name for output in reversed(outputs)}
        names = tuple(named.get(key) or str(key) or f"key_{i}" for i, key in enumerate(keys)) + tuple(map(str, calls))
        whole = Aggregate(relation, keys, tuple(calls), names, bool(keys))
        grouped: Relation = _grouped_by_each(whole, sets) if sets else whole
        place_of = {key: i for i, key in enumerate(keys)}
        over = _OverGroups(self.context, place_of, binder, len(names) if sets else None)
        if having is not None:
            grouped = Filter(grouped, over.rewrite(having, self.node.args["having"].this))
        shown = [replace(output, value=over.rewrite(output.value, output.node)) for output in outputs]
        # Keys tell groups apart; their columns say which comes first.
        columns = sorted(range(len(keys)), key=lambda i: sorted(columns_of(keys[i])))
        columns += range(len(keys), len(grouped.schema))
        return self._result(grouped, shown, order.mapped(lambda value: over.rewrite(value, self.node)), columns)

    def _result(
        self, relation: Relation, outputs: list[OutputColumn], order: BlockOrder, columns: Sequence[int]
    ) -> Relation:
        distinct = self.node.args.get("distinct") is not None and order.on is None
        return (self._distinct_rows if distinct else self._shown)(relation, outputs, order, columns)

    def _shown(
        self, relation: Relation, outputs: list[OutputColumn], order: BlockOrder, columns: Sequence[int]
    ) -> Relation:
        """The rows that are asked for, of those that FROM or GROUP BY gives, with the columns of the result.

        `columns` are those that the block mentions, in the order in which they break ties.
        """
        names = tuple(output.name for output in outputs)
        if order.simple:
            return self._listed(project(relation, tuple(functions.settle(o.value) for o in outputs), names), relation)
        self._reject_queries(outputs)
        rows, placed = order.rows(relation, columns)
        values = [placed(output.value) for output in outputs]
        if order.bounds is not None:
            keys = [replace(key, value=placed(key.value)) for key in order.order]
            rows.limit((), keys, order.bounds)
        ordered = self._ordered(rows.relation)
        return self._listed(project(ordered, tuple(map(functions.settle, values)), names), ordered)

    def _listed(self, relation: Relation, below: Relation) -> Relation:
        """A projection is what the SELECT list says."""
        if relation is below:
            return relation
        items = self.node.expressions
        return replace(relation, excerpt=self.context.source.excerpt(items[0], items[-1]))

    def _ordered(self, relation: Relation) -> Relation:
        """The best rows are what ORDER BY and LIMIT say."""
        ordering = self.node.args.get("ordering")
        if ordering is None or not isinstance(relation, TopN):
            return relation
        return replace(relation, excerpt=self.context.source.excerpt(ordering))

    def _distinct_rows(
        self, relation: Relation, outputs: list[OutputColumn], order: BlockOrder, columns: Sequence[int]
    ) -> Relation:
        """SELECT DISTINCT: what is ordered are the rows of the result, by what is selected."""
        items = self.node.expressions
        result = Distinct(
            self._shown(relation, outputs, replace(order, bounds=None), columns),
            excerpt=self.context.source.excerpt(items[0], items[-1]),
        )
        if order.bounds is None:
            return result
        index_of = {functions.settle(output.value): i for i, output in reversed(list(enumerate(outputs)))}
        ordering = self.node.args["ordering"]
        for key, item in zip(order.order, ordering.args["keys"], strict=True):
            if key.value not in index_of:
                remedy = "select it, or leave DISTINCT out"
                raise self.context.source.error("SELECT DISTINCT is ordered by what is selected", item, remedy)
        at = sorted(range(len(outputs)), key=lambda i: sorted(columns_of(outputs[i].value)))
        refs = [ColumnRef(i, c.type, c.name) for i, c in enumerate(result.schema)]
        rows = OrderedRows(project(result, tuple(refs[i] for i in at), tuple(refs[i].name for i in at)))
        keys = [
            replace(key, value=replace(refs[i], index=at.index(i)))
            for key in order.order
            for i in [index_of[key.value]]
        ]
        rows.limit((), keys, order.bounds)
        back = tuple(replace(ref, index=at.index(ref.index)) for ref in refs)
        return project(self._ordered(rows.relation), back, tuple(ref.name for ref in refs))

    def _mentioned(self, relation: Relation, outputs: list[OutputColumn], order: BlockOrder) -> list[int]:
        """The columns of FROM that the block mentions, in their order: conditions of WHERE and ON count as well."""
        conditions: list[Expression] = []
        if self.node.args.get("where") is not None:
            assert isinstance(relation, Filter)
            conditions.append(relation.predicate)
            relation = relation.input
        said = self.node.args.get("from_")
        from_ = said.this.expressions if said is not None else ()
        joined = len(from_) > 1 or any(isinstance(each, syntax.JoinedSources) for each in from_)
        if joined and isinstance(relation, Join | OuterJoin):
            conditions += conjuncts(relation.predicate)
        values = [*(output.value for output in outputs), *order.values(), *conditions]
        return sorted(frozenset().union(*map(columns_of, values)))

    def _order(self, select: ExpressionBinder, outputs: list[OutputColumn]) -> BlockOrder:
        """QUALIFY, DISTINCT ON, ORDER BY and LIMIT, and the ranks of all of them and of the SELECT list."""
        assert select.ranks is not None

        def binder(clause: str) -> ExpressionBinder:
            return replace(select, clause=clause, aliases=_aliases(self.node), sub_queries=False)

        qualify, ordering = self.node.args.get("qualify"), self.node.args.get("ordering")
        condition = None if qualify is None else binder("QUALIFY").condition(qualify.this)
        distinct = self.node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        order = []
        for item in () if ordering is None else ordering.args["keys"]:
            value = self._output(item.this, outputs)
            bound = binder("ORDER BY").bind(item.this) if value is None else value
            order.append(SortValue(functions.settle(bound), item.args["descending"], item.args["nulls_first"]))
        values = (
            None
            if on is None
            else [self._output(node, outputs) or binder("DISTINCT ON").bind(node) for node in on.expressions]
        )
        return BlockOrder(
            tuple(select.ranks),
            condition,
            None if values is None else tuple(map(functions.settle, values)),
            tuple(order),
            bounds_of(ordering, self.context.source),
        )

    def _output(self, node: exp.Expr, outputs: list[OutputColumn]) -> Expression | None:
        """What ORDER BY 2 and ORDER BY name mean, where the result has such a column."""
        if isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier):
            named = dict.fromkeys(o.value for o in outputs if o.name.lower() == node.name.lower())
            return next(iter(named)) if len(named) == 1 else None
        return self._ordinal(node, outputs)

    def _reject_queries(self, outputs: list[OutputColumn]) -> None:
        for output in outputs:
            if any(isinstance(part, SubQuery) for part in walk(output.value)):
                remedy = "compute it in a sub-query in FROM"
                raise self.context.source.error("a query with ranks or LIMIT selects no sub-query", output.node, remedy)

    def _outputs(self, binder: ExpressionBinder) -> list[OutputColumn]:
        outputs: list[OutputColumn] = []
        for item in self.node.expressions:
            value, alias = item.this, item.args.get("alias")
            if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
                if alias is not None:
                    raise self.context.source.error("* cannot be renamed", alias, "name the columns one by one")
                outputs += self._replaced(value, self._all_columns(value), binder)
                continue
            bound = binder.bind(value)
            with self.context.at(value):
                functions.settle(bound)
            name = alias.name if alias is not None else _own_name(bound, value) or item.args["text"]
            if alias is not None:
                binder.aliases.setdefault(alias.name.lower(), value)
            outputs.append(OutputColumn(value, name, bound))
        if len(outputs) > MAX_COLUMNS:
            remedy = "select the columns that are needed"
            raise self.context.source.error(f"the result has more than {MAX_COLUMNS} columns", self.node, remedy)
        return outputs

    def _all_columns(self, node: exp.Expr) -> list[OutputColumn]:
        inputs: tuple[Input, ...] = self.scope.inputs
        table = node.args.get("table")
        if table is not None:
            inputs = tuple(i for i in inputs if i.alias is not None and i.alias.lower() == table.name.lower())
            if not inputs and (fields := self._fields(node, table.name)):
                return fields
            if not inputs or node.args.get("db") is not None:
                remedy = f"the inputs are {', '.join(self.scope.aliases())}"
                raise self.context.source.error(f"there is no input '{table.name}' in FROM", node, remedy)
        outputs = [
            OutputColumn(node, column.name, value)
            for item in inputs
            for column in item.columns
            if column.shown and (value := column.bare if table is None else column.value) is not None
        ]
        for name in node.args.get("left_out") or ():
            kept = [column for column in outputs if column.name.lower() != name.name.lower()]
            if len(kept) == len(outputs):
                remedy = self.scope.remedy(name.name, None)
                raise self.context.source.error(f"there is no column '{name.name}' to leave out", name, remedy)
            outputs = kept
        if not outputs:
            raise self.context.source.error("* stands for no column here", node, "name the columns one by one")
        return outputs

    def _fields(self, node: exp.Expr, name: str) -> list[OutputColumn]:
        """column.*: the fields of a STRUCT."""
        columns = self.scope.find(name, None)
        if node.args.get("db") is not None or len(columns) != 1 or not is_struct(columns[0].type):
            return []
        (column,) = columns
        return [OutputColumn(node, field.name, functions.field_of(column, field.name)) for field in column.type]

    def _replaced(self, node: exp.Expr, columns: list[OutputColumn], binder: ExpressionBinder) -> list[OutputColumn]:
        """* REPLACE (value AS column): other values in the places of some columns."""
        for item in node.args.get("replaced") or ():
            name, bound = item.args["alias"].name, binder.bind(item.this)
            with self.context.at(item.this):
                functions.settle(bound)
            at = [i for i, column in enumerate(columns) if column.name.lower() == name.lower()]
            if not at:
                remedy = self.scope.remedy(name, None)
                raise self.context.source.error(f"there is no column '{name}' to replace", item.args["alias"], remedy)
            for i in at:
                columns[i] = OutputColumn(item.this, columns[i].name, bound)
        return columns

    def _keys(self, outputs: list[OutputColumn]) -> tuple[tuple[Expression, ...], list[list[int]]]:
        """The keys, and which of them each grouping has where there are several."""
        group = self.node.args.get("group")
        keys: dict[Expression, None] = {}
        binder = ExpressionBinder(self.context, self.scope, "GROUP BY", aliases=_aliases(self.node), sub_queries=False)
        if group is not None and group.args.get("all"):  # what is selected and is no aggregate
            for output in outputs:
                if not any(isinstance(part, AggregateRef | RankRef) for part in walk(output.value)):
                    self._reject_in_key(output.value, output.node)
                    keys.setdefault(functions.settle(output.value))

        def bind(node: exp.Expr) -> Expression:
            key = self._ordinal(node, outputs)
            if key is None:
                key = binder.bind(node)
            self._reject_in_key(key, node)
            with self.context.at(node):
                key = functions.settle(key)
            keys.setdefault(key)
            return key

        for node in group.expressions if group is not None else ():
            bind(node)
        written = group.args.get("sets") or () if group is not None else ()
        sets = [[bind(node) for node in each.expressions] for each in written]
        place_of = {key: i for i, key in enumerate(keys)}
        return tuple(keys), [sorted({place_of[key] for key in each}) for each in sets]

    def _reject_groupings(self, outputs: list[OutputColumn], order: BlockOrder) -> None:
        written = [(output.value, output.node) for output in outputs] + [(value, self.node) for value in order.values()]
        for value, node in written:
            if any(isinstance(part, GroupingRef) for part in walk(value)):
                raise self.context.source.error("GROUPING needs GROUP BY", node, "write GROUP BY ROLLUP (a, b)")

    def _ordinal(self, node: exp.Expr, outputs: list[OutputColumn]) -> Expression | None:
        """GROUP BY 2 means the second column of the result."""
        if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
            return None
        position = int(node.name) if len(node.name) < 9 else 0
        if not 1 <= position <= len(outputs):
            remedy = f"write a number from 1 to {len(outputs)}, or the column itself"
            raise self.context.source.error(f"there is no column {node.name} in the SELECT list", node, remedy)
        return outputs[position - 1].value

    def _reject_in_key(self, key: Expression, node: exp.Expr) -> None:
        for part in walk(key):
            if isinstance(part, RankRef):
                remedy = "compute it in a sub-query in FROM and group by its column"
                raise self.context.source.error(f"GROUP BY cannot hold {str(part).upper()}", node, remedy)
            if isinstance(part, AggregateRef):
                remedy = "group by columns, and filter groups with HAVING"
                raise self.context.source.error("GROUP BY cannot hold an aggregate", node, remedy)
            if isinstance(part, SubQuery):
                remedy = "compute it in a sub-query in FROM and group by its column"
                raise self.context.source.error("GROUP BY cannot hold a sub-query", node, remedy)

    def _having(self, calls: dict[AggregateCall, int], select: ExpressionBinder) -> Expression | None:
        having = self.node.args.get("having")
        if having is None:
            return None
        binder = ExpressionBinder(
            self.context, self.scope, "HAVING", calls, _aliases(self.node), written=select.written
        )
        return binder.condition(having.this)


_LEFT_OUT: Final = "left out"


def _grouped_by_each(whole: Aggregate, sets: list[list[int]]) -> Relation:
    """The groups of each grouping, one after the other. Keys that it has not are NULL, and a last column says which."""
    grouped: Relation | None = None
    for places in sets:
        keys = tuple(whole.keys[place] for place in places)
        names = tuple(whole.names[place] for place in places) + whole.names[len(whole.keys) :]
        one = replace(whole, keys=keys, names=names, grouped=bool(keys))
        column_of = [ColumnRef(i, column.type, column.name) for i, column in enumerate(one.schema)]
        values: list[Expression] = [
            column_of[places.index(i)] if i in places else Literal(None, key.type) for i, key in enumerate(whole.keys)
        ]
        left_out = sum(2**i for i in range(len(whole.keys)) if i not in places)
        values += [*column_of[len(places) :], Literal(left_out, BIGINT)]
        shown = Project(one, tuple(values), (*whole.names, _LEFT_OUT))
        grouped = shown if grouped is None else SetOperation("union", True, grouped, shown)
    assert grouped is not None
    return grouped


@dataclass(frozen=True)
class _OverGroups:
    """Rewrites expressions over the rows of FROM into expressions over the groups: keys first, then aggregates."""

    context: Context
    keys: dict[Expression, int]
    binder: ExpressionBinder
    left_out: int | None = None
    """Where it is said which keys a row has not, a bit for each."""

    def rewrite(self, expression: Expression, node: exp.Expr) -> Expression:
        position = self.keys.get(expression)
        if position is not None:
            return ColumnRef(position, expression.type, str(expression))
        if expression.type == BIGINT:  # of an interval, perhaps, that is grouped by
            position = self.keys.get(Cast(expression, DURATION))
            if position is not None:
                return Cast(ColumnRef(position, DURATION, str(expression)), BIGINT)
        if isinstance(expression, AggregateRef):
            return ColumnRef(len(self.keys) + expression.index, expression.type, str(expression.call))
        if isinstance(expression, GroupingRef):
            return self._grouping(expression, node)
        if isinstance(expression, RankRef):
            return expression  # what it is computed of is rewritten for itself
        if isinstance(expression, ColumnRef):
            raise self._not_grouped(expression, node)
        if isinstance(expression, SubQuery) and any(column.depth == 1 for column in outer_columns(expression.query)):
            expression = self._seeing_groups(expression, node)
        children = tuple(self.rewrite(child, node) for child in expression.children)
        return expression.with_children(children) if children else expression

    def _grouping(self, expression: GroupingRef, node: exp.Expr) -> Expression:
        """A bit for each key, that of the last one 1, which is set where the row is not grouped by it."""
        bits = []
        for key in expression.keys:
            place = self.keys.get(key)
            if place is None:
                raise self.context.source.error(f"GROUPING({key}) is of no key", node, "name a key of GROUP BY")
            bits.append(place)
        total: Expression = Literal(0, BIGINT)
        for place in bits if self.left_out is not None else ():
            assert self.left_out is not None
            shifted = functions.resolve("//", (ColumnRef(self.left_out, BIGINT, _LEFT_OUT), Literal(2**place, BIGINT)))
            bit = functions.resolve("%", (shifted, Literal(2, BIGINT)))
            total = functions.resolve("+", (functions.resolve("*", (total, Literal(2, BIGINT))), bit))
        return total

    def _seeing_groups(self, sub_query: SubQuery, node: exp.Expr) -> Expression:
        """It reads the rows around it by what they are grouped by."""
        read = outer_columns(sub_query.query)
        if any(column.depth > 1 for column in read):
            remedy = "put the grouped query into FROM and test its rows in WHERE"
            raise self.context.source.error("a sub-query cannot see groups and the rows around them", node, remedy)
        key_of = {
            key.index: ColumnRef(at, key.type, key.name) for key, at in self.keys.items() if isinstance(key, ColumnRef)
        }
        for column in sorted(read, key=lambda column: column.index):
            if column.index not in key_of:
                remedy = "add it to GROUP BY, or put the grouped query into FROM and test its rows in WHERE"
                what = f"the sub-query reads '{column.name}', which is not grouped"
                raise self.context.source.error(what, node, remedy)
        return sub_query.with_query(around_other_rows(sub_query.query, key_of.__getitem__))

    def _not_grouped(self, column: ColumnRef, node: exp.Expr) -> QueryError:
        """Points at the column itself where it was written as such, else at the whole expression."""
        span = next((at for value, at in self.binder.written if value is column), node)
        name = column.name
        verb = "add it to GROUP BY" if self.keys else "write GROUP BY with it"
        remedy = f"{verb}, or put it into an aggregate such as MIN({name})"
        return self.context.source.error(f"'{name}' is neither grouped nor aggregated", span, remedy)


def _own_name(value: Expression, node: exp.Expr) -> str | None:
    """The name of a column that is selected as it is, in the spelling of its declaration."""
    if not isinstance(node, exp.Column):
        return None
    return value.name if isinstance(value, ColumnRef) else node.name
