"""The grammar of queries: WITH, set operations, SELECT, FROM with its windows and joins."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from transom.cql import syntax
from transom.cql.foreign import CALLS, reject_clause
from transom.cql.grammar_grouping import read_group
from transom.cql.grammar_order import CLAUSES, at_named_windows, fill_in_windows, read_named_windows, read_order
from transom.cql.grammar_table_function import at_table_function, read_table_function
from transom.cql.grammar_window import read_window
from transom.cql.reader import Reader, Word

CHANGES: Final = ("ISTREAM", "DSTREAM", "RSTREAM")
EMIT: Final = ("EMIT", "ON", "WINDOW", "CLOSE")
EMIT_CHANGES: Final = ("EMIT", "CHANGES")

_UNSUPPORTED_JOINS: Final = {
    "POSITIONAL": ("POSITIONAL JOIN is not supported", "write JOIN .. ON condition"),
}
_QUERIES: Final = "write SELECT .. FROM .., ISTREAM(SELECT ..), or SELECT * FROM name for a whole stream or table"


def at_query(reader: Reader, ahead: int = 0) -> bool:
    """Whether a query begins here, or some words ahead, perhaps in parentheses."""
    while reader.word(ahead).capitals == "(":
        ahead += 1
    return reader.word(ahead).capitals in ("SELECT", "WITH", "VALUES", "FROM") or _at_change(reader, ahead)


def _at_change(reader: Reader, ahead: int = 0) -> bool:
    """Whether ISTREAM( or one of its sisters stands there."""
    return reader.word(ahead).capitals in CHANGES and reader.word(ahead + 1).capitals == "("


def read_query(reader: Reader) -> exp.Expr:
    start = reader.word()
    named = None
    if reader.take("WITH"):
        if reader.at("RECURSIVE") or reader.at("MUTUALLY", "RECURSIVE"):
            reader.reject("recursive queries are not supported", "write the steps out as named queries")
        if reader.word(1).capitals == "AS" and reader.word(2).capitals == "CHANGELOG":
            remedy = "write ISTREAM(SELECT * FROM r) for the rows that come, DSTREAM(..) for those that go"
            reader.skip(2)
            reader.reject("AS CHANGELOG is not supported", remedy)
        named = reader.listed(lambda: _read_named_query(reader))
    query = _with_order(_read_set_operations(reader), read_order(reader))
    if named:
        query = syntax.WithQuery(this=query, expressions=named)
    return reader.spanned(query, start)


def _with_order(query: exp.Expr, ordering: exp.Expr | None) -> exp.Expr:
    """A block sees its own ordering, which may name what it does not show; other queries are ordered as a whole."""
    if ordering is None:
        return query
    block = query.this if isinstance(query, syntax.StreamOf) and query.args.get("word") else query
    if not isinstance(block, exp.Select):
        return syntax.Ordered(this=query, ordering=ordering)
    block.set("ordering", ordering)
    return query


def _read_named_query(reader: Reader) -> exp.Expr:
    name = reader.name("the name of a query")
    columns = reader.column_names_if_any()
    reader.need("AS")
    if reader.at("NOT", "MATERIALIZED"):
        reader.skip(2)
    else:
        reader.take("MATERIALIZED")  # what is computed when, EXPLAIN says
    return syntax.NamedQuery(this=reader.wrapped(lambda: read_query(reader)), alias=name, columns=columns)


def _read_set_operations(reader: Reader) -> exp.Expr:
    start = reader.word()
    query = _read_intersections(reader)
    while word := reader.take_one_of("UNION", "EXCEPT"):
        kind = exp.Union if word == "UNION" else exp.Except
        how = _read_how(reader)
        query = reader.spanned(kind(this=query, expression=_read_intersections(reader), **how), start)
    return query


def _read_intersections(reader: Reader) -> exp.Expr:
    start = reader.word()
    query = _read_plain_query(reader)
    while reader.take("INTERSECT"):
        how = _read_how(reader)
        node = exp.Intersect(this=query, expression=_read_plain_query(reader), **how)
        query = reader.spanned(node, start)
    return query


def _read_how(reader: Reader) -> dict[str, Any]:
    """ALL or DISTINCT, and CORRESPONDING [BY (columns)]: of both sides the columns of one name. BY NAME, as DuckDB has
    it, are the columns of either side."""
    distinct = reader.take_one_of("ALL", "DISTINCT") != "ALL"
    if reader.at("BY"):
        if reader.word(-1).capitals not in ("UNION", "ALL", "DISTINCT") or not reader.take("BY", "NAME"):
            reader.reject("set operations match columns by position", "write CORRESPONDING, or UNION BY NAME")
        return {"distinct": distinct, "by_name": True}
    if not reader.take("CORRESPONDING"):
        return {"distinct": distinct}
    return {"distinct": distinct, "corresponding": reader.column_names() if reader.take("BY") else []}


def _read_plain_query(reader: Reader) -> exp.Expr:
    start = reader.word()
    if _at_change(reader):
        reader.skip()
        query = reader.wrapped(lambda: read_query(reader))
        return reader.spanned(syntax.StreamOf(this=query, change=start.text.lower()), start)
    if reader.at("("):
        return reader.spanned(syntax.Bracketed(this=reader.wrapped(lambda: read_query(reader))), start)
    if reader.take("VALUES"):
        rows = reader.listed(lambda: reader.wrapped(lambda: exp.Tuple(expressions=reader.listed(reader.value))))
        return reader.spanned(syntax.Values(expressions=rows), start)
    if not reader.at("SELECT") and not reader.at("FROM"):
        reader.reject(f"a query is expected, not {start}", _QUERIES)
    return _read_select(reader)


def _read_select(reader: Reader) -> exp.Expr:
    start = reader.word()
    from_ = _read_from(reader)  # DuckDB lets it stand first, and alone
    change = distinct = None
    items: list[exp.Expr] = [syntax.Item(this=reader.spanned(exp.Star(), start), text="*")]
    if from_ is None or reader.at("SELECT"):
        reader.need("SELECT")
        if reader.at("STREAM", "*"):
            reject_clause(reader)
        change = reader.word().capitals if _at_change_word(reader) else None
        if change:
            reader.skip()
        distinct = exp.Distinct() if reader.take("DISTINCT") else None
        if distinct is None:
            reader.take("ALL")
        elif reader.take("ON"):
            distinct.set("on", exp.Tuple(expressions=reader.wrapped(lambda: reader.listed(reader.value))))
        items = reader.listed(lambda: _read_item(reader))
    select = exp.Select(expressions=items, distinct=distinct, from_=from_ or _read_from(reader))
    if reader.take("WHERE"):
        select.set("where", exp.Where(this=reader.value()))
    if reader.take("GROUP"):
        reader.need("BY")
        select.set("group", read_group(reader))
    if reader.take("HAVING"):
        select.set("having", exp.Having(this=reader.value()))
    windows = read_named_windows(reader)
    if reader.take("QUALIFY"):
        select.set("qualify", exp.Qualify(this=reader.value()))
    fill_in_windows(select, windows)
    reader.spanned(select, start)
    if not change:
        return select
    return reader.spanned(syntax.StreamOf(this=select, change=change.lower(), word=True), start)


def _read_from(reader: Reader) -> exp.Expr | None:
    if not reader.take("FROM"):
        return None
    return exp.From(this=exp.Tuple(expressions=reader.listed(lambda: _read_joined(reader))))


def _at_change_word(reader: Reader) -> bool:
    """SELECT ISTREAM a ..; but in SELECT istream FROM .. it is the name of a column."""
    follows = reader.word(1)
    return (
        reader.word().capitals in CHANGES
        and follows.kind != "end"
        and follows.text not in (",", ".", ")")
        and (follows.capitals not in ("FROM", "AS"))
    )


def _read_item(reader: Reader) -> exp.Expr:
    start = reader.word()
    value = reader.value()
    star = isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star))
    if star and reader.word(1).text == "(" and reader.word(2).is_name and reader.take_one_of("EXCEPT", "EXCLUDE"):
        value.set("left_out", reader.column_names())
    if star and reader.at("REPLACE", "("):
        reader.skip()
        value.set("replaced", reader.wrapped(lambda: reader.listed(lambda: _read_replacement(reader))))
    if value.args.get("left_out") or value.args.get("replaced"):
        return syntax.Item(this=value, text="*")
    text = _text_since(reader, start).lower()
    alias = None
    if reader.take("AS"):
        alias = reader.name("a name", any_word=True)
    elif reader.word().is_name:
        alias = reader.name("a name")
    return syntax.Item(this=value, alias=alias, text=text)


def _read_replacement(reader: Reader) -> exp.Expr:
    """value AS column, in * REPLACE (..)."""
    start, value = reader.word(), reader.value()
    reader.need("AS")
    return reader.spanned(syntax.Item(this=value, alias=reader.name("the name of a column"), text=""), start)


def _text_since(reader: Reader, start: Word) -> str:
    """What was read, as it was written, with one space for each gap and comment."""
    text, ahead, follows = "", -1, reader.word(-1)
    while follows.start >= start.start and follows.kind != "end":
        before = reader.word(ahead - 1)
        gap = " " if before.stop < follows.start and before.start >= start.start else ""
        if before.start != follows.start:  # or they are words of one parameter
            text = gap + reader.source.text[follows.start : follows.stop] + text
        ahead, follows = ahead - 1, before
    return text


# --- FROM ------------------------------------------------------------------------------------------------------------


def _read_joined(reader: Reader) -> exp.Expr:
    start = reader.word()
    first, joins = _read_source(reader), []
    while join := _read_join(reader):
        joins.append(join)
    return reader.spanned(syntax.JoinedSources(this=first, joins=joins), start) if joins else first


def _read_join(reader: Reader) -> exp.Expr | None:
    start = reader.word()
    if what := _UNSUPPORTED_JOINS.get(start.capitals):
        reader.reject(*what)
    if reader.word(1).capitals == "APPLY":
        reject_clause(reader)
    closest = reader.take("ASOF")
    natural = not closest and reader.take("NATURAL")
    kind = reader.take_one_of("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "SEMI", "ANTI")
    if kind in ("LEFT", "RIGHT", "FULL"):
        # Spark says LEFT SEMI JOIN.
        kind = (reader.take_one_of("SEMI", "ANTI") if kind == "LEFT" else None) or kind
        reader.take("OUTER")
    if closest and kind not in (None, "INNER", "LEFT"):
        remedy = "write ASOF JOIN, or ASOF LEFT JOIN"
        reader.reject(f"ASOF {kind} JOIN is not supported", remedy, start)
    if kind or natural or closest:
        reader.need("JOIN")
    elif not reader.take("JOIN"):
        return None
    join = exp.Join(this=_read_source(reader), kind=(kind or "INNER").lower())
    if closest:
        right = join.this
        if not isinstance(right, syntax.FromItem) or right.args.get("lateral") or right.args.get("as_of"):
            remedy = "write a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts, with a stream, a table, a view or a query b"
            reader.reject("ASOF JOIN does not go with UNNEST, LATERAL or FOR SYSTEM_TIME", remedy, start)
        join.set("closest", True)
    if natural:
        join.set("natural", True)
        if kind == "CROSS" or reader.at("ON") or reader.at("USING"):
            reader.reject("a NATURAL JOIN has its condition", "write JOIN .. ON, or NATURAL JOIN alone", start)
    elif kind != "CROSS":
        _read_condition(reader, join, start)
    return reader.spanned(join, start)


def _read_condition(reader: Reader, join: exp.Join, start: Word) -> None:
    if reader.take("ON"):
        join.set("on", reader.value())
    elif reader.take("USING"):
        join.set("using", reader.column_names())
    else:
        reject_clause(reader)
        reader.reject("the join has no condition", "write ON condition, USING (columns), or CROSS JOIN", start)


def _read_source(reader: Reader) -> exp.Expr:
    start = reader.word()
    this: exp.Expr
    lateral = False
    if reader.at("(") and not _query_in_bracket(reader):
        this = reader.wrapped(lambda: _read_joined(reader))
    elif reader.at("(") or _at_change(reader):
        this = _read_plain_query(reader)
    elif reader.at("LATERAL", "UNNEST", "("):
        reader.skip()
        return _read_unnest(reader)
    elif start.capitals in _SERIES and start.kind == "name" and reader.word(1).text == "(":
        return _read_series(reader)
    elif start.capitals == "LATERAL" and (reader.word(1).is_name or reader.word(1).text == "("):
        reader.skip()
        if not reader.at("(") or not _query_in_bracket(reader):
            remedy = "write LATERAL (SELECT ..) AS b, or UNNEST(array) AS u(x)"
            reader.reject("LATERAL is for queries: LATERAL of anything else is not supported", remedy, start)
        this, lateral = _read_plain_query(reader), True
    elif reader.at("UNNEST", "("):
        return _read_unnest(reader)
    elif at_table_function(reader):
        this = read_table_function(reader, _read_function_input)
    elif start.is_name and reader.word(1).text == "(":
        remedy = CALLS.get(start.text.lower(), "write the name of a stream, table or view")
        reader.reject(f"{start} is a function, and FROM takes none", remedy)
    elif start.kind == "text":
        this = read_file_name(reader)
    else:
        this = reader.name("a stream, table, view or query")
    if reader.at("."):
        reader.reject("names have one part", "write the name alone")
    window = read_window(reader) if reader.at("[") else None
    as_of = _read_as_of(reader) if reader.at("FOR", "SYSTEM_TIME") else None
    alias = columns = None
    goes_on = reader.at(*EMIT) or reader.at(*EMIT_CHANGES) or at_named_windows(reader)
    if not goes_on:
        reject_clause(reader)
    if not goes_on and (reader.take("AS") or reader.word().is_name):
        alias = reader.name("a name")
        columns = reader.column_names_if_any()
        if window is None and reader.at("["):
            reader.reject("the window stands behind the alias", f"write S [..] AS {alias.name}")
        if reader.at("FOR", "SYSTEM_TIME"):
            remedy = f"write {start} FOR SYSTEM_TIME AS OF .. AS {alias.name}"
            reader.reject("FOR SYSTEM_TIME AS OF stands behind the alias", remedy.replace("'", ""))
    item = syntax.FromItem(this=this, lateral=lateral, window=window, as_of=as_of, alias=alias, columns=columns)
    return reader.spanned(item, start)


def _read_as_of(reader: Reader) -> exp.Expr:
    """FOR SYSTEM_TIME AS OF, behind which others write a column or a call."""
    reader.skip(2)
    reader.need("AS")
    reader.need("OF")
    start = reader.word()
    return reader.spanned(reader.value(), start)


def read_file_name(reader: Reader) -> exp.Expr:
    start = reader.word()
    reader.skip()
    return reader.spanned(syntax.FileName(this=start.text), start)


def _read_unnest(reader: Reader) -> exp.Expr:
    """UNNEST(array) [WITH ORDINALITY] [AS u (x, n)]"""
    start = reader.word()
    reader.skip()
    array = reader.wrapped(reader.value)
    numbered = reader.take("WITH", "ORDINALITY")
    if reader.at("["):
        reader.reject("a window belongs to a stream", "write it behind the stream that has the arrays")
    alias = columns = None
    reject_clause(reader)
    if reader.take("AS") or reader.word().is_name:
        alias = reader.name("a name")
        columns = reader.column_names_if_any()
    numbered = reader.take("WITH", "ORDINALITY") or numbered
    made = syntax.UnnestItem(this=array, alias=alias, columns=columns, numbered=numbered)
    return reader.spanned(made, start)


_SERIES: Final = ("GENERATE_SERIES", "RANGE")


def _read_series(reader: Reader) -> exp.Expr:
    """generate_series(1, 10) [AS t (x)]: the elements of that array."""
    start, array = reader.word(), reader.value()
    alias, columns = exp.to_identifier(start.text.lower()), None
    reject_clause(reader)
    if reader.take("AS") or reader.word().is_name:
        alias = reader.name("a name")
        columns = reader.column_names_if_any()
    return reader.spanned(syntax.UnnestItem(this=array, alias=alias, columns=columns, numbered=False), start)


def _read_function_input(reader: Reader) -> exp.Expr:
    """What a table function is over: a name, perhaps behind TABLE, a query, or another one."""
    if reader.at("(") or _at_change(reader):
        return _read_plain_query(reader)
    if at_table_function(reader):
        return read_table_function(reader, _read_function_input)
    reader.take("TABLE")
    if reader.word().kind == "text":
        declared = f"CREATE STREAM s WITH (connector = 'files', path = '{reader.word().text}', time = 'ts')"
        reader.reject(f"a stream or a view is expected, not the file {reader.word()}", f"{declared}, and write s here")
    return reader.name("a stream or a view")


def _query_in_bracket(reader: Reader) -> bool:
    """Whether the bracket here holds a query, rather than inputs of which the first is a query in brackets."""
    if not at_query(reader):
        return False
    first = 2 if _at_change(reader, 1) else 1
    if reader.word(first).capitals != "(":
        return True
    return _after_bracket(reader, first).capitals in (")", "", "UNION", "EXCEPT", "INTERSECT", *CLAUSES)


def _after_bracket(reader: Reader, ahead: int) -> Word:
    """The word behind the bracket that opens at a word."""
    depth = 0
    while (word := reader.word(ahead)).kind != "end":
        depth += (word.capitals == "(") - (word.capitals == ")")
        ahead += 1
        if depth == 0:
            return reader.word(ahead)
    return word
