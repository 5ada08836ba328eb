"""FROM 'data/x.parquet': a file in the place of a table or, with a window, of a stream."""

from __future__ import annotations

import os

from sqlglot import exp

from transom.core.schema import TIMESTAMP, TIMESTAMPTZ, Schema
from transom.cql import syntax
from transom.cql.query_text import QueryText
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition, TimeColumn, ViewDefinition
from transom.plan.reads import reads


def bind_file(node: syntax.FileName, source: QueryText, catalogue: Catalogue, *, windowed: bool) -> str:
    """The name by which the catalogue knows a file that stands in FROM: a table that never changes or, where a window
    stands behind it, a stream in the order of its only TIMESTAMP column. Rows out of that order end the query: nobody
    has said what is to become of them."""
    path = node.name
    if catalogue.columns_of is None:
        raise source.error("a file cannot be read here", node, "declare it with CREATE TABLE")
    properties = {"connector": "files", "path": path}
    name = f"{path} [..]" if windowed else path
    before = catalogue.relations.get(name.lower())
    if before is not None and (isinstance(before, ViewDefinition) or before.properties.get("path") != path):
        remedy = "declare it with CREATE TABLE t WITH (connector = 'files', path = ..)"
        raise source.error(f"'{before.name}' is the name of another one already", node, remedy)
    if before is not None and _has_readers(name.lower(), catalogue):
        return name.lower()
    with source.at(node):
        schema = catalogue.columns_of(name, properties)
    if windowed:
        time = TimeColumn(_only_time(path, schema, node, source), 0)
        catalogue.relations[name.lower()] = StreamDefinition(
            name, schema, time, "fail", properties=properties, of_files=True
        )
    else:
        catalogue.relations[name.lower()] = TableDefinition(name, schema, properties=properties, of_files=True)
    return name.lower()


def stem(path: str) -> str:
    """What a file is called in a query.

    >>> stem("data/trades.csv")
    'trades'
    """
    return os.path.splitext(os.path.basename(path))[0]


def _has_readers(name: str, catalogue: Catalogue) -> bool:
    """A view is bound to the columns that its inputs had."""
    views = [definition for definition in catalogue.relations.values() if isinstance(definition, ViewDefinition)]
    return any(reads(view.query, name) for view in views)


def _only_time(path: str, schema: Schema, node: exp.Expr, source: QueryText) -> str:
    names_of_times = [column.name for column in schema if column.type in (TIMESTAMP, TIMESTAMPTZ)]
    if len(names_of_times) == 1:
        return names_of_times[0]
    why = (
        f"it has several TIMESTAMP columns: {', '.join(names_of_times)}"
        if names_of_times
        else "it has no TIMESTAMP column"
    )
    named = f"path = '{path}', time = '{(names_of_times or ['ts'])[0]}'"
    remedy = f"write CREATE STREAM s WITH (connector = 'files', {named}), and FROM s"
    raise source.error(f"a window needs a time, and nothing says which column of '{path}' is it: {why}", node, remedy)
