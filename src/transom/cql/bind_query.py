"""Queries: WITH, set operations, ISTREAM and its sisters, and the query blocks within them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from transom.core.excerpt import Excerpt
from transom.core.schema import sql_name
from transom.cql import syntax
from transom.cql.bind_expression import ExpressionBinder
from transom.cql.bind_order import order_whole
from transom.cql.bind_select import bind_select, project
from transom.cql.bind_table_function import has_window_table
from transom.cql.context import Context
from transom.cql.limits import check_plan
from transom.cql.query_text import QueryText
from transom.cql.scope import Scope
from transom.plan import functions
from transom.plan.algebra import Change, Node, Project, Relation, SetOperation, Stream, ToStream
from transom.plan.catalogue import Catalogue
from transom.plan.expression import ColumnRef, Expression, Literal
from transom.plan.no_from import scan_one_row

_MOST_ROWS: Final = 256


def bind_query_node(node: exp.Expr, source: QueryText, catalogue: Catalogue) -> Node:
    """The plan of a parsed query: a stream or a relation."""
    bound = _bind(node, Context(source, catalogue, _bind), None)
    check_plan(bound, node, source)
    return bound


def _bind(node: exp.Expr, context: Context, outer: Scope | None) -> Node:
    match node:
        case syntax.Bracketed():
            return _bind(node.this, context, outer)
        case syntax.WithQuery():
            return _bind_with(node, context, outer)
        case syntax.StreamOf():
            return _bind_stream(node, context, outer)
        case syntax.Ordered():
            return _bind_ordered(node, context, outer)
        case exp.Select():
            return bind_select(node, context, outer)
        case syntax.Values():
            return _bind_values(node, context, outer)
        case exp.SetOperation():
            return _bind_set_operation(node, context, outer)
        case _:
            raise context.source.error("this is no query", node, "write SELECT .. FROM ..")


def _bind_with(node: syntax.WithQuery, context: Context, outer: Scope | None) -> Node:
    """Named queries see those before them; a name hides a stream or view of the same name.

    They do not see the columns of a query around: a name may be used at any depth, and a column of a row around is
    counted from where it is used.
    """
    named_here: set[str] = set()
    for named in node.expressions:
        name = named.args["alias"]
        if name.name.lower() in named_here:
            remedy = "give one of them another name"
            raise context.source.error(f"there are two queries '{name.name}' in WITH", name, remedy)
        named_here.add(name.name.lower())
        bound = renamed(_bind(named.this, context, None), named.args.get("columns"), context.source)
        context = replace(context, named={**context.named, name.name.lower(): bound})
    return _bind(node.this, context, outer)


def _bind_ordered(node: syntax.Ordered, context: Context, outer: Scope | None) -> Node:
    bound = _bind(node.this, context, outer)
    if isinstance(bound, Relation):
        return order_whole(node, bound, context)
    ordering = node.args["ordering"]
    if (counted := ordering.args.get("limit") or ordering.args.get("offset")) is not None:
        remedy = "write it within: ISTREAM(SELECT .. ORDER BY .. LIMIT 10)"
        raise context.source.error("LIMIT takes a relation, and this is a stream", counted, remedy)
    return bound


def _bind_stream(node: syntax.StreamOf, context: Context, outer: Scope | None) -> Stream:
    change = node.args["change"]
    bound = _bind(node.this, context, outer)
    if isinstance(bound, Stream):
        remedy = f"leave one of the two out, or write {change.upper()}(SELECT * FROM .. [window])"
        raise context.source.error(f"{change.upper()} takes a relation, and this is a stream", node.this, remedy)
    assert isinstance(bound, Relation)
    if change == "rstream" and has_window_table(bound):
        remedy = "write ISTREAM: each row comes once, when its window is over"
        raise context.source.error("RSTREAM would repeat all windows that were, ever more of them", node, remedy)
    excerpt = context.source.excerpt(node)
    word = None if excerpt is None else replace(excerpt, stop=excerpt.start + len(change))
    return ToStream(bound, Change(change), excerpt=None if node.args.get("word") else word)


def renamed(bound: Node, columns: list[exp.Identifier] | None, source: QueryText) -> Node:
    """The same rows under other column names, as in CREATE VIEW v (a, b) AS .."""
    if columns is None:
        return bound
    schema = bound.schema
    if len(columns) != len(schema):
        what = f"there are {len(columns)} names for {len(schema)} columns"
        raise source.error(what, columns[0], "name each column once")
    relation = bound.input if isinstance(bound, ToStream) else bound
    assert isinstance(relation, Relation)
    refs: tuple[Expression, ...] = tuple(ColumnRef(i, c.type, c.name) for i, c in enumerate(schema))
    names = tuple(column.name for column in columns)
    under_names = project(relation, refs, names)
    return ToStream(under_names, bound.change, excerpt=bound.excerpt) if isinstance(bound, ToStream) else under_names


def _bind_values(node: syntax.Values, context: Context, outer: Scope | None) -> Relation:
    """VALUES (1, 'a'), (2, 'b'): the rows of as many queries of one row, with the columns col0, col1, .."""
    rows = node.expressions
    if len(rows) > _MOST_ROWS:
        raise context.source.error(
            f"VALUES has more than {_MOST_ROWS} rows", node, "put them into a file and CREATE TABLE"
        )
    width = len(rows[0].expressions)
    for row in rows:
        if len(row.expressions) != width:
            what = f"the rows of VALUES have {width} and {len(row.expressions)} columns"
            raise context.source.error(what, row, "write as many values in every row")
    names = tuple(f"col{i}" for i in range(width))
    binder = ExpressionBinder(context, Scope((), outer), "VALUES", sub_queries=False)
    bound = [[binder.bind(value) for value in row.expressions] for row in rows]
    types = []
    for i in range(width):
        met = functions.meeting_type([row[i] for row in bound])
        if met is None:
            raise context.source.error(
                f"column {i + 1} of VALUES has types that do not mix", node, "cast them to one type"
            )
        types.append(functions.settled(met))
    one_row = scan_one_row(context.catalogue)
    parts: list[Relation] = []
    for row, values in zip(rows, bound, strict=True):
        with context.at(row):
            cast = (functions.settle(functions.coerce(value, t)) for value, t in zip(values, types, strict=True))
            parts.append(Project(one_row, tuple(cast), names))
    while len(parts) > 1:  # a tree that is nowhere deep
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [SetOperation("union", True, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


# --- set operations --------------------------------------------------------------------------------------------------


def _bind_set_operation(node: exp.SetOperation, context: Context, outer: Scope | None) -> Relation:
    kind: OneOf["union", "intersect", "except"]
    kind = "union" if isinstance(node, exp.Union) else "except" if isinstance(node, exp.Except) else "intersect"
    word = kind.upper()
    sides = [context.bind_relation(side, outer, word) for side in (node.this, node.args["expression"])]
    if node.args.get("by_name"):
        sides = _by_name(sides, node, context)
    if (named := node.args.get("corresponding")) is not None:
        sides = _corresponding(sides, named, node, context)
    widths = [len(side.schema) for side in sides]
    if widths[0] != widths[1]:
        what = f"the sides of {word} have {widths[0]} and {widths[1]} columns"
        raise context.source.error(what, node.args["expression"], "select as many columns on both sides")
    types: list[pa.DataType] = []
    for position in range(widths[0]):
        pair = [_type_of(side, position) for side in sides]
        met = functions.common_type(pair)
        if met is None:
            names = " and ".join(sql_name(side.schema[position].type) for side in sides)
            what = f"column {position + 1} of the sides of {word} has the types {names}, which do not mix"
            raise context.source.error(what, node.args["expression"], "cast one side: CAST(column AS type)")
        types.append(sides[0].schema[position].type if met == functions.NULL else met)
    left, right = (_cast_columns(side, types) for side in sides)
    return SetOperation(kind, not node.args["distinct"], left, right, excerpt=_between(node, context))


def _between(node: exp.SetOperation, context: Context) -> Excerpt | None:
    """The words between the sides of a set operation."""
    left, right = (context.source.excerpt(side) for side in (node.this, node.args["expression"]))
    if left is None or right is None:
        return None
    written = context.source.text[left.stop : right.start]
    start = left.stop + len(written) - len(written.lstrip(" \t\n)"))
    return Excerpt(context.source.text, start, start + len(written.strip(" \t\n()")))


def _corresponding(
    sides: list[Relation], named: list[exp.Identifier], node: exp.Expr, context: Context
) -> list[Relation]:
    """Of both sides the columns that are named, or else those of names that both have, in the order of the left."""
    left, right = ([name.lower() for name in side.schema.names] for side in sides)
    for name in named:
        if name.name.lower() not in left or name.name.lower() not in right:
            remedy = "name columns of both sides, or leave BY (..) out"
            raise context.source.error(f"one side has no column '{name.name}'", name, remedy)
    wanted = [name.name.lower() for name in named] or [name for name in left if name in right]
    if not wanted:
        remedy = "leave CORRESPONDING out: columns are matched by position then"
        raise context.source.error("the sides have no column in common", node.args["expression"], remedy)
    projected: list[Relation] = []
    for side, names in zip(sides, (left, right), strict=True):
        columns = [side.schema[names.index(name)] for name in wanted]
        refs = tuple(ColumnRef(names.index(name), c.type, c.name) for name, c in zip(wanted, columns, strict=True))
        projected.append(project(side, refs, tuple(column.name for column in columns)))
    return projected


def _by_name(sides: list[Relation], node: exp.SetOperation, context: Context) -> list[Relation]:
    """Of both sides the columns that either has, those of the left first, with NULL where a side has it not."""
    if not isinstance(node, exp.Union):
        remedy = "write CORRESPONDING: of both sides the columns that both have"
        raise context.source.error("BY NAME is for UNION", node, remedy)
    names = {name.lower(): name for side in reversed(sides) for name in side.schema.names}
    wanted = dict.fromkeys(name.lower() for side in sides for name in side.schema.names)
    projected: list[Relation] = []
    for side in sides:
        own = {column.name.lower(): ColumnRef(i, column.type, column.name) for i, column in enumerate(side.schema)}
        if len(own) < len(side.schema):
            raise context.source.error("two columns of one side have one name", node, "name them with AS")
        values: list[Expression] = [own.get(name) or Literal(None, functions.NULL) for name in wanted]
        projected.append(project(side, tuple(values), tuple(names[name] for name in wanted)))
    return projected


def _type_of(relation: Relation, position: int) -> pa.DataType:
    """The type of a column; that of a selected NULL is still open."""
    if isinstance(relation, Project):
        value = relation.expressions[position]
        if isinstance(value, Literal) and value.value is None:
            return functions.NULL
    return relation.schema[position].type


def _cast_columns(relation: Relation, types: list[pa.DataType]) -> Relation:
    if relation.schema.types == types:
        return relation
    if isinstance(relation, Project) and any(isinstance(e, Literal) for e in relation.expressions):
        values = [
            functions.coerce(e, t) if isinstance(e, Literal) and e.value is None else e
            for e, t in zip(relation.expressions, types, strict=True)
        ]
        relation = replace(relation, expressions=tuple(values))
    columns = list(relation.schema)
    refs = [ColumnRef(i, c.type, c.name) for i, c in enumerate(columns)]
    casts = tuple(functions.coerce(ref, type_) for ref, type_ in zip(refs, types, strict=True))
    return project(relation, casts, tuple(c.name for c in columns))
