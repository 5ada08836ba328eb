"""From text to statements: what other rooms call of this one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from transom.core.errors import QueryError, TransomError
from transom.core.values import Value
from transom.cql import syntax
from transom.cql.bind_definition import bind_input, bind_sink, counted_twice
from transom.cql.bind_file import bind_file
from transom.cql.bind_order import order_shown, rows_looked_at, without_effect
from transom.cql.bind_query import bind_query_node, renamed
from transom.cql.dialect import parse
from transom.cql.nesting import too_deep
from transom.cql.query_text import QueryText, span_of
from transom.plan.algebra import Node
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    DropStatement,
    ExplainStatement,
    InsertStatement,
    KeptStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
    SinkDefinition,
    Statement,
    StreamDefinition,
    TableDefinition,
    ViewDefinition,
)
from transom.plan.options import read_option
from transom.plan.reads import reads


def parse_statements(
    text: str, catalogue: Catalogue, parameters: Mapping[str, Value] = MappingProxyType({})
) -> list[Statement]:
    """The statements of a text, bound in their order. The catalogue learns their names once all of them are right.

    Every `$name` is the constant that `parameters` has for it.

    >>> catalogue = Catalogue()
    >>> [s] = parse_statements("CREATE TABLE t (a INTEGER)", catalogue)
    >>> s.text, list(catalogue.relations)
    ('CREATE TABLE t (a INTEGER)', ['t'])
    """
    return [statement for statement, _ in statements_in_place(text, catalogue, parameters)]


def statements_in_place(
    text: str, catalogue: Catalogue, parameters: Mapping[str, Value] = MappingProxyType({})
) -> list[tuple[Statement, Catalogue]]:
    """The same, each with the names at its place; those of later statements may be among them, but none is missing."""
    source = QueryText(text)
    bound: list[tuple[Statement, Catalogue]] = []
    with _bounded(source):
        work = Catalogue(
            dict(catalogue.relations),
            dict(catalogue.sinks),
            dict(catalogue.options),
            columns_of=catalogue.columns_of,
            functions=catalogue.functions,
        )
        for node in parse(text, parameters):
            if isinstance(node, syntax.Drop) or node.args.get("if_exists") == "replace":
                work.relations, work.sinks = dict(work.relations), dict(work.sinks)  # those before it keep theirs
            statement = _bind_statement(node, source, work)
            bound.append((statement, Catalogue(work.relations, work.sinks, work.options)))
    catalogue.relations, catalogue.sinks, catalogue.options = work.relations, work.sinks, work.options
    return bound


def bind_query(text: str, catalogue: Catalogue) -> Node:
    """The plan of a single query; the catalogue stays as it is."""
    source = QueryText(text)
    with _bounded(source):
        nodes = parse(text)
        if len(nodes) != 1 or isinstance(nodes[0], _STATEMENTS):
            span = source.span_at(nodes[-1]) if nodes else None
            raise QueryError("one query is expected", remedy="write SELECT .. FROM ..", span=span, text=text)
        return bind_query_node(nodes[0], source, catalogue)


@contextmanager
def _bounded(source: QueryText) -> Iterator[None]:
    """What is nested past all bounds ends as an error like any other."""
    try:
        yield
    except RecursionError:
        start = len(source.text) - len(source.text.lstrip())
        raise too_deep(source.span(start, start + 1), source.text) from None


_STATEMENTS = (
    syntax.CreateInput,
    syntax.CreateView,
    syntax.CreateSink,
    syntax.InsertInto,
    syntax.Explain,
    syntax.SetOption,
    syntax.Drop,
    syntax.Show,
)
_KIND_OF: Final = {StreamDefinition: "stream", TableDefinition: "table", ViewDefinition: "view", SinkDefinition: "sink"}
Definition = StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition


def _bind_statement(node: exp.Expr, source: QueryText, catalogue: Catalogue) -> Statement:
    start, stop = span_of(node)
    text, span = source.text[start:stop], source.span(start, stop)
    match node:
        case syntax.CreateInput() | syntax.CreateView() | syntax.CreateSink():
            declared = _definition(node.this.name, catalogue)
            if declared is not None and node.args.get("if_exists") == "keep":
                _need_kind(declared, node, source)
                return KeptStatement(text, span, declared)
            definition = _bind_create(node, source, catalogue, declared)
            notes = (*without_effect(node, shown=False), *counted_twice(definition))
            return CreateStatement(text, span, definition, notes=notes)
        case syntax.Drop():
            return DropStatement(text, span, _bind_drop(node, source, catalogue))
        case syntax.Show():
            name = node.args.get("name")
            if isinstance(name, syntax.FileName):
                return ShowStatement(text, span, node.this, bind_file(name, source, catalogue, windowed=False))
            if name is not None and _definition(name.name, catalogue) is None:
                raise source.error(
                    f"there is no '{name.name}'", name, "SHOW STREAMS, TABLES and VIEWS name what there is"
                )
            return ShowStatement(text, span, node.this, None if name is None else name.name.lower())
        case syntax.InsertInto():
            return _bind_insert(node, source, catalogue)
        case syntax.Explain():
            rows_looked_at(node.args["query"], source)
            query = bind_query_node(node.args["query"], source, catalogue)
            return ExplainStatement(text, span, query, node.args["analyze"], node.args["json"])
        case syntax.SetOption():
            return _bind_set(node, source, catalogue)
        case _:
            limit = rows_looked_at(node, source)
            query = bind_query_node(node, source, catalogue)
            order = order_shown(node, query.schema.names)
            return QueryStatement(text, span, query, order, limit, notes=without_effect(node, shown=True))


def _definition(name: str, catalogue: Catalogue) -> Definition | None:
    return catalogue.relations.get(name.lower()) or catalogue.sinks.get(name.lower())


def _kind_of(node: exp.Expr) -> str:
    if isinstance(node, syntax.CreateInput | syntax.Drop):
        return str(node.args["kind"]).lower()
    return "sink" if isinstance(node, syntax.CreateSink) else "view"


def _need_kind(definition: Definition, node: exp.Expr, source: QueryText) -> None:
    """What takes the place of something, or drops it, is of its kind."""
    kind = _KIND_OF[type(definition)]
    if kind != _kind_of(node):
        remedy = f"write {kind.upper()}, or choose another name"
        raise source.error(f"'{definition.name}' is a {kind}", node.this, remedy)


def _bind_drop(node: syntax.Drop, source: QueryText, catalogue: Catalogue) -> Definition | None:
    name = node.this.name.lower()
    definition = _definition(name, catalogue)
    if definition is None:
        if node.args.get("quiet"):
            return None
        raise source.error(
            f"there is no {_kind_of(node)} '{node.this.name}'", node.this, "write DROP .. IF EXISTS name"
        )
    _need_kind(definition, node, source)
    _reject_dropped(definition, node, source)
    for view in catalogue.relations.values():
        if isinstance(view, ViewDefinition) and view is not definition and reads(view.query, name):
            raise source.error(
                f"the view '{view.name}' reads '{definition.name}'", node.this, f"write DROP VIEW {view.name} first"
            )
    catalogue.relations.pop(name, None)
    catalogue.sinks.pop(name, None)
    return definition


def _reject_dropped(definition: Definition, node: exp.Expr, source: QueryText) -> None:
    if definition.name.lower().startswith("transom_"):
        raise source.error(f"'{definition.name}' is always there", node.this, "choose another name")


def _make_way(definition: Definition, node: exp.Expr, source: QueryText, catalogue: Catalogue) -> None:
    """What has the name already is replaced, or in the way."""
    if node.args.get("if_exists") != "replace":
        remedy = "choose another name, leave one of them out, or write CREATE OR REPLACE or IF NOT EXISTS"
        raise source.error(f"'{definition.name}' is declared already", node.this, remedy)
    _need_kind(definition, node, source)
    _reject_dropped(definition, node, source)
    catalogue.relations.pop(definition.name.lower(), None)
    catalogue.sinks.pop(definition.name.lower(), None)


def _check_views(
    before: Definition, after: Definition, node: exp.Expr, source: QueryText, catalogue: Catalogue
) -> None:
    """A view is bound to the columns that its inputs had."""
    if isinstance(before, ViewDefinition | SinkDefinition) or isinstance(after, ViewDefinition | SinkDefinition):
        return
    if (before.columns, before.invisible) == (after.columns, after.invisible):
        return
    for view in catalogue.relations.values():
        if isinstance(view, ViewDefinition) and reads(view.query, after.name.lower()):
            what = f"the view '{view.name}' reads '{after.name}', whose columns would be others"
            raise source.error(what, node.this, f"write DROP VIEW {view.name} first, or keep the columns")


def _bind_create(
    node: syntax.CreateInput | syntax.CreateView | syntax.CreateSink,
    source: QueryText,
    catalogue: Catalogue,
    declared: Definition | None,
) -> Definition:
    name = node.this.name
    if declared is not None:
        _make_way(declared, node, source, catalogue)
    if isinstance(node, syntax.CreateSink):
        sink = bind_sink(node, source)
        catalogue.sinks[name.lower()] = sink
        return sink
    definition: StreamDefinition | TableDefinition | ViewDefinition
    if isinstance(node, syntax.CreateView):
        query = bind_query_node(node.args["query"], source, catalogue)
        definition = ViewDefinition(name, renamed(query, node.args.get("columns"), source))
    else:
        definition = bind_input(node, source, catalogue.columns_of)
        if declared is not None:
            _check_views(declared, definition, node, source, catalogue)
    catalogue.relations[name.lower()] = definition
    return definition


def _bind_insert(node: syntax.InsertInto, source: QueryText, catalogue: Catalogue) -> Statement:
    name = node.this.name
    if name.lower() not in catalogue.sinks:
        if relation := catalogue.relations.get(name.lower()):
            remedy = f"write CREATE SINK {relation.name} WITH (..), without columns, in its place"
            raise source.error(f"'{relation.name}' is read, and a sink is what is written to", node.this, remedy)
        names = {sink.name.lower(): sink.name for sink in catalogue.sinks.values()}
        close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5) or sorted(names)[:8]
        remedy = f"did you mean {' or '.join(names[low] for low in close)}?" if close else "declare it with CREATE SINK"
        raise source.error(f"there is no sink '{name}'", node.this, remedy)
    start, stop = span_of(node)
    query = bind_query_node(node.args["query"], source, catalogue)
    notes = without_effect(node.args["query"], shown=False)
    return InsertStatement(source.text[start:stop], source.span(start, stop), name.lower(), query, notes=notes)


def _bind_set(node: syntax.SetOption, source: QueryText, catalogue: Catalogue) -> Statement:
    setting = node.this
    option = setting.this.name.lower()
    try:
        value = read_option(option, setting.args["value"].name)
    except TransomError as error:
        raise source.located(error, setting) from None
    catalogue.options[option] = value
    start, stop = span_of(node)
    return SetStatement(source.text[start:stop], source.span(start, stop), option, value)


__all__ = ["bind_query", "parse_statements", "statements_in_place"]
