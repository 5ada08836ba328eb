"""The grammar of statements: CREATE, INSERT, EXPLAIN, SET, or a query."""

from __future__ import annotations

from typing import Final, NoReturn

from sqlglot import exp

from transom.cql import syntax
from transom.cql.foreign import STATEMENTS, reject_clause
from transom.cql.grammar_expression import read_type
from transom.cql.grammar_query import EMIT, EMIT_CHANGES, at_query, read_file_name, read_query
from transom.cql.grammar_window import read_interval
from transom.cql.reader import Reader

_STATEMENTS: Final = (
    "write CREATE, DROP, INSERT INTO sink, EXPLAIN, SET, or a query that begins with SELECT or ISTREAM("
)
_KINDS: Final = ("STREAM", "TABLE", "VIEW", "SINK")
SHOWN: Final = ("STREAMS", "TABLES", "VIEWS", "SINKS", "FUNCTIONS", "OPTIONS")
_FOREIGN_KINDS: Final = {
    "INDEX": "leave it out: each join keeps the index that it needs",
    "FUNCTION": "write the expression itself, or bring a function of Python: @session.function(..)",
    "MACRO": "write the expression itself, or bring a function of Python: @session.function(..)",
    "TYPE": "write the types of the columns one by one",
    "SCHEMA": "leave it out: names have one part",
    "DATABASE": "leave it out: names have one part",
    "CATALOG": "leave it out: names have one part",
    "CONNECTION": "write the properties of the connector in WITH (..)",
    "SECRET": "write the name of an environment variable in WITH: password = '$NAME'",
}


def read_statement(reader: Reader) -> exp.Expr:
    start = reader.word()
    if not _names_a_column(reader):
        if reader.take("DROP"):
            return reader.spanned(_read_drop(reader), start)
        if reader.take_one_of("DESCRIBE", "DESC"):
            return reader.spanned(syntax.Show(this="COLUMNS", name=_read_described(reader)), start)
        if reader.take("SHOW"):
            return reader.spanned(_read_show(reader), start)
    match reader.take_one_of("CREATE", "INSERT", "EXPLAIN", "SET"):
        case "CREATE":
            node = _read_create(reader)
        case "INSERT":
            node = _read_insert(reader)
        case "EXPLAIN":
            node = _read_explain(reader)
        case "SET":
            node = syntax.SetOption(this=_read_setting(reader))
        case _:
            if not at_query(reader):
                remedy = STATEMENTS.get(start.capitals, _STATEMENTS)
                reader.reject(f"a statement cannot begin with {start}", remedy)
            return _read_whole_query(reader)
    return reader.spanned(node, start)


def _read_described(reader: Reader) -> exp.Expr:
    if reader.word().kind == "text":
        return read_file_name(reader)
    return reader.name("the name of a stream, table or view")


def _read_create(reader: Reader) -> exp.Expr:
    replace = reader.take("OR", "REPLACE")
    reader.take_one_of("TEMPORARY", "TEMP")
    if reader.at("MATERIALIZED", "VIEW"):  # what is computed when, EXPLAIN says: to the answer it is all the same
        reader.skip()
    word = reader.word()
    kind = reader.take_one_of(*_KINDS, "SOURCE")
    if kind == "SOURCE":  # as RisingWave and Materialize call what comes in
        kind = "STREAM"
    if kind is None:
        what = _FOREIGN_KINDS.get(word.capitals, "write CREATE STREAM, TABLE, VIEW or SINK")
        reader.reject(f"CREATE cannot be followed by {word}", what)
    kept = reader.take("IF", "NOT", "EXISTS")
    if kept and replace:
        reader.reject("OR REPLACE and IF NOT EXISTS exclude each other", "leave one of them out", reader.word(-1))
    if_exists = "replace" if replace else "keep" if kept else None
    name = reader.name("a name")
    if kind != "VIEW" and reader.word().capitals in ("AS", "FROM", "LIKE"):
        remedy = {
            "LIKE": "write its columns, as in CREATE TABLE t (a INTEGER)",
            "FROM": f"write CREATE SINK {name.name} WITH (..); INSERT INTO {name.name} SELECT * FROM .."
            if kind == "SINK"
            else f"write CREATE STREAM {name.name} (columns, WATERMARK FOR ts AS ts) WITH (connector = 'kafka', ..)",
        }.get(reader.word().capitals, f"write CREATE VIEW {name.name} AS SELECT .., or INSERT INTO a sink")
        reader.reject(f"CREATE {kind} .. {reader.word().capitals} is not supported", remedy)
    if kind == "SINK":
        if reader.word().text == "(":
            reader.reject(
                "a sink declares no columns: it has those of its query", f"write CREATE SINK {name.name} WITH (..)"
            )
        return syntax.CreateSink(this=name, settings=_read_settings(reader), if_exists=if_exists)
    if kind == "VIEW":
        columns = reader.column_names_if_any()
        emit = reader.take(*EMIT)
        reader.need("AS")
        view = syntax.CreateView(this=name, columns=columns, query=_read_whole_query(reader), if_exists=if_exists)
        view.args["query"].set("emit", emit or view.args["query"].args.get("emit"))
        return view
    parts = reader.wrapped(lambda: reader.listed(lambda: _read_declaration(reader))) if reader.at("(") else []
    if reader.take("APPEND", "ONLY") and any(isinstance(part, syntax.Watermark) for part in parts):
        kind = "STREAM"  # rows that come at their time and are never taken back
    settings = _read_settings(reader)
    return syntax.CreateInput(this=name, kind=kind, parts=parts, settings=settings, if_exists=if_exists)


def _read_whole_query(reader: Reader) -> exp.Expr:
    """A query that is nowhere within another: EMIT ON WINDOW CLOSE, or EMIT CHANGES, may stand behind it."""
    start = reader.word()
    query = read_query(reader)
    if reader.take(*EMIT_CHANGES):  # an answer is kept up to date without a word
        if reader.at("LIMIT"):
            reader.reject("LIMIT behind EMIT CHANGES is not supported", "write LIMIT 5 EMIT CHANGES")
    elif reader.take(*EMIT):
        query.set("emit", True)
    return reader.spanned(query, start)


def _names_a_column(reader: Reader) -> bool:
    """No statement begins with a name; those that are words of others are told by what follows."""
    return reader.word().kind != "name" or reader.word(1).text in ("", ".", ",", "=")


def _read_drop(reader: Reader) -> exp.Expr:
    reader.take("MATERIALIZED")
    word = reader.word()
    kind = reader.take_one_of(*_KINDS)
    if kind is None:
        reader.reject(f"DROP cannot be followed by {word}", "write DROP STREAM, TABLE, VIEW or SINK and the name")
    quiet = reader.take("IF", "EXISTS")
    name = reader.name("a name")
    if reader.at("CASCADE"):
        reader.reject("CASCADE is not supported", "drop the views that read it first")
    reader.take("RESTRICT")
    return syntax.Drop(this=name, kind=kind, quiet=quiet)


def _read_show(reader: Reader) -> exp.Expr:
    word = reader.word()
    if word.capitals == "COLUMNS" and reader.word(1).capitals in ("FROM", "IN"):
        reader.skip(2)
        return syntax.Show(this="COLUMNS", name=reader.name("the name of a stream, table or view"))
    if word.capitals not in SHOWN:
        reader.reject(f"SHOW cannot show {word}", f"write SHOW and one of {', '.join(SHOWN)}, or DESCRIBE name")
    reader.skip()
    return syntax.Show(this=word.capitals)


_RULES: Final = {
    "DEFAULT": "leave it out, and write COALESCE(a, 0) in a view",
    "CHECK": "leave it out, and select in a view: CREATE VIEW v AS SELECT * FROM s WHERE a > 0",
    "UNIQUE": "write PRIMARY KEY where a later row is to replace an earlier one",
}


def _read_declaration(reader: Reader) -> exp.Expr:
    start = reader.word()
    if reader.take("WATERMARK", "FOR"):
        column = reader.name("a column name")
        reader.need("AS")
        source = reader.name("a column name")
        bound = read_interval(reader) if reader.take("-") else None
        return reader.spanned(syntax.Watermark(this=column, source=source, bound=bound), start)
    if reader.take("PRIMARY", "KEY"):
        key = syntax.KeyDeclaration(expressions=reader.column_names())
        reader.take("NOT", "ENFORCED")  # as Flink wants it said
        return reader.spanned(key, start)
    column = reader.name("a column name", any_word=True)
    if reader.at("AS"):
        _reject_computed(reader)
    kind = read_type(reader)
    metadata = _read_metadata(reader, column)
    invisible = primary = not_null = False
    while True:
        if reader.take("INVISIBLE"):
            invisible = True
        elif reader.take("PRIMARY", "KEY"):
            primary = True
        elif reader.take("NOT", "NULL"):
            not_null = True
        elif not reader.take("NULL"):  # what a column may be without a word
            break
    if reader.at("AS"):
        _reject_computed(reader)
    for rule in ("DEFAULT", "CHECK", "UNIQUE", "REFERENCES", "COMMENT"):
        if reader.at(rule):
            remedy = _RULES.get(rule, "leave it out; of rules there is NOT NULL")
            reader.reject(f"columns take no such rule: {rule} is not supported", remedy)
    reject_clause(reader)
    declaration = syntax.ColumnDeclaration(
        this=column, kind=kind, invisible=invisible, primary=primary, not_null=not_null, metadata=metadata
    )
    return reader.spanned(declaration, start)


def _reject_computed(reader: Reader) -> NoReturn:
    remedy = "compute it in a view: CREATE VIEW v AS SELECT *, a + 1 AS b FROM s"
    reader.reject("a computed column is not supported", remedy)


def _read_metadata(reader: Reader, column: exp.Identifier) -> str | None:
    """METADATA [FROM 'offset'] [VIRTUAL]: what the connector fills the column with; by default what its name says."""
    if not reader.take("METADATA"):
        return None
    named = column.name
    if reader.take("FROM"):
        word = reader.word()
        if word.kind != "text":
            reader.reject(f"a text is expected, not {word}", "write METADATA FROM 'offset'")
        reader.skip()
        named = word.text
    reader.take("VIRTUAL")  # as Flink wants it said
    return named


def _read_settings(reader: Reader) -> list[exp.Expr]:
    if not reader.take("WITH"):
        return []
    return reader.wrapped(lambda: reader.listed(lambda: _read_setting(reader)))


def _read_setting(reader: Reader) -> exp.Expr:
    """key = value: the key a word, dotted words or a text; the value a text, a number or a word."""
    start = reader.word()
    if start.kind == "text":
        reader.skip()
        key = start.text
    else:
        words = [reader.name("an option", any_word=True)]
        while reader.take("."):
            words.append(reader.name("an option", any_word=True))
        key = ".".join(word.name for word in words)
    option = reader.spanned(exp.Identifier(this=key, quoted=True), start)
    if not reader.take("TO"):
        reader.need("=")
    first = reader.word()
    sign = "-" if reader.take("-") else ""
    value = reader.word()
    if value.kind not in (("number",) if sign else ("text", "number", "name", "quoted", "keyword")):
        reader.reject(f"a value is expected, not {value}", "write a text in 'quotes', a number or a word")
    reader.skip()
    literal = exp.Literal(this=sign + value.text, is_string=value.kind != "number")
    return syntax.Setting(this=option, value=reader.spanned(literal, first))


def _read_insert(reader: Reader) -> exp.Expr:
    if reader.at("OVERWRITE"):
        reader.reject(
            "INSERT OVERWRITE is not supported", "write INSERT INTO: what an earlier run has left is replaced"
        )
    reader.need("INTO")
    sink = reader.name("the name of a sink")
    if not at_query(reader):
        reader.reject("INSERT INTO takes a query", f"write INSERT INTO {sink.name} SELECT ..")
    return syntax.InsertInto(this=sink, query=_read_whole_query(reader))


def _read_explain(reader: Reader) -> exp.Expr:
    analyze, json = reader.take("ANALYZE"), reader.take("JSON")
    reader.take("PLAN", "FOR")  # as Flink wants it said
    if not at_query(reader):
        reader.reject("EXPLAIN takes a query", "write EXPLAIN [ANALYZE] [JSON] SELECT ..")
    return syntax.Explain(query=_read_whole_query(reader), analyze=analyze, json=json)
