"""From text to statements: the door of this room."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from sqlglot import exp

from transom.core.errors import QueryError, TransomError
from transom.core.values import Value
from transom.cql import syntax
from transom.cql.bind_definition import bind_input, bind_sink
from transom.cql.bind_order import order_shown, orders_without_effect, rows_looked_at
from transom.cql.bind_query import bind_query_node, renamed
from transom.cql.dialect import parse
from transom.cql.nesting import too_deep
from transom.cql.query_text import QueryText, span_of
from transom.plan.algebra import Node
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    ExplainStatement,
    InsertStatement,
    QueryStatement,
    SetStatement,
    SinkDefinition,
    Statement,
    StreamDefinition,
    TableDefinition,
    ViewDefinition,
)
from transom.plan.options import read_option


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
    source = QueryText(text)
    with _bounded(source):
        work = Catalogue(dict(catalogue.relations), dict(catalogue.sinks), dict(catalogue.options))
        statements = [_bind_statement(node, source, work) for node in parse(text, parameters)]
    catalogue.relations, catalogue.sinks, catalogue.options = work.relations, work.sinks, work.options
    return statements


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
)


def _bind_statement(node: exp.Expr, source: QueryText, catalogue: Catalogue) -> Statement:
    start, stop = span_of(node)
    text, span = source.text[start:stop], source.span(start, stop)
    match node:
        case syntax.CreateInput() | syntax.CreateView() | syntax.CreateSink():
            notes = orders_without_effect(node, shown=False)
            return CreateStatement(text, span, _bind_create(node, source, catalogue), notes=notes)
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
            return QueryStatement(text, span, query, order, limit, notes=orders_without_effect(node, shown=True))


def _bind_create(
    node: syntax.CreateInput | syntax.CreateView | syntax.CreateSink, source: QueryText, catalogue: Catalogue
) -> StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition:
    name = node.this.name
    if name.lower() in catalogue.relations or name.lower() in catalogue.sinks:
        raise source.error(f"'{name}' is declared already", node.this, "choose another name, or leave one of them out")
    if isinstance(node, syntax.CreateSink):
        sink = bind_sink(node, source)
        catalogue.sinks[name.lower()] = sink
        return sink
    definition: StreamDefinition | TableDefinition | ViewDefinition
    if isinstance(node, syntax.CreateView):
        query = bind_query_node(node.args["query"], source, catalogue)
        definition = ViewDefinition(name, renamed(query, node.args.get("columns"), source))
    else:
        definition = bind_input(node, source)
    catalogue.relations[name.lower()] = definition
    return definition


def _bind_insert(node: syntax.InsertInto, source: QueryText, catalogue: Catalogue) -> Statement:
    name = node.this.name
    if name.lower() not in catalogue.sinks:
        names = {sink.name.lower(): sink.name for sink in catalogue.sinks.values()}
        close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5) or sorted(names)[:8]
        remedy = f"did you mean {' or '.join(names[low] for low in close)}?" if close else "declare it with CREATE SINK"
        raise source.error(f"there is no sink '{name}'", node.this, remedy)
    start, stop = span_of(node)
    query = bind_query_node(node.args["query"], source, catalogue)
    notes = orders_without_effect(node.args["query"], shown=False)
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


__all__ = ["bind_query", "parse_statements"]
