"""The parts of expressions that CQL reads by its own strict grammar: calls, CASE, IN, BETWEEN, brackets, literals."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from transom.cql import syntax
from transom.cql.foreign import TYPES, reject_clause
from transom.cql.grammar_order import read_over
from transom.cql.grammar_query import at_query, read_query
from transom.cql.reader import Reader, Word


def read_type(reader: Reader) -> exp.Expr:
    """A type: its words in capitals and its numbers."""
    start = reader.word()
    if start.kind != "name" and start.capitals != "INTERVAL":
        reader.reject(f"a type is expected, not {start}", "write a type such as INTEGER, DOUBLE, VARCHAR or TIMESTAMP")
    reader.skip()
    name = start.capitals
    if name == "DOUBLE":
        reader.take("PRECISION")
    if name in ("CHARACTER", "CHAR") and reader.take("VARYING"):
        name = "VARCHAR"
    data_type = (_read_nested_type if name in NESTED_TYPES else _read_plain_type)(reader, name, start)
    while reader.at("["):
        reader.skip()
        if not reader.take("]"):
            reader.reject("the length of an array is not part of its type", f"write {name}[]")
        data_type = reader.spanned(syntax.NestedType(this="ARRAY", types=[data_type]), start)
    return data_type


NESTED_TYPES: Final = ("ARRAY", "LIST", "STRUCT", "ROW")


def _read_nested_type(reader: Reader, name: str, start: Word) -> exp.Expr:
    """ARRAY(T), ARRAY<T>, STRUCT(a T, b U), ROW<a T>."""
    opening = reader.word().text
    if opening not in ("(", "<"):
        remedy = "write INTEGER[]" if name in ("ARRAY", "LIST") else "write STRUCT(a INTEGER, b VARCHAR)"
        reader.reject(f"the type {name} does not say of what", remedy, start)
    reader.skip()
    if name in ("ARRAY", "LIST"):
        data_type = syntax.NestedType(this="ARRAY", types=[read_type(reader)])
    else:
        names, types = [], []
        while True:
            names.append(reader.name("the name of a field"))
            reader.take(":")
            types.append(read_type(reader))
            if not reader.take(","):
                break
        data_type = syntax.NestedType(this="STRUCT", names=names, types=types)
    reader.need(")" if opening == "(" else ">")
    return reader.spanned(data_type, start)


def _read_plain_type(reader: Reader, name: str, start: Word) -> exp.Expr:
    if reader.at("<") or (name == "MAP" and reader.at("(")):
        reader.reject(f"there is no type '{name}'", TYPES.get(name), start)
    numbers: list[exp.Literal] = []
    if reader.at("("):
        remedy = "write DECIMAL(10, 2)"
        numbers = reader.wrapped(lambda: reader.listed(lambda: reader.literal("number", "a number", remedy)))
    if name == "TIMESTAMP":
        if reader.take("WITH", "TIME", "ZONE") or reader.take("WITH", "LOCAL", "TIME", "ZONE"):
            name = "TIMESTAMPTZ"
        reader.take("WITHOUT", "TIME", "ZONE")
    return reader.spanned(syntax.TypeName(this=name, expressions=numbers), start)


_MOMENTS: Final = ("DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPTZ", "TIMESTAMP_LTZ")
_OTHERS: Final = """BOOLEAN BOOL SMALLINT INT2 INTEGER INT INT4 BIGINT INT8 REAL FLOAT4 FLOAT8 DOUBLE NUMERIC DECIMAL
VARCHAR TEXT""".split()


def at_typed_literal(reader: Reader) -> bool:
    zoned = reader.at("TIMESTAMP", "WITH", "TIME", "ZONE")
    return reader.word().capitals in (*_MOMENTS, *_OTHERS) and reader.word(4 if zoned else 1).kind == "text"


def read_typed_literal(reader: Reader) -> exp.Expr:
    """DATE '2024-05-01': a type and a text. Of other types, as INT '1' of PostgreSQL, it is a cast."""
    start = reader.word()
    kind = read_type(reader)
    text = reader.literal("text", "a text", "write DATE '2024-05-01'")
    if start.capitals in _OTHERS:
        return reader.spanned(exp.Cast(this=text, to=kind), start)
    return reader.spanned(syntax.TypedLiteral(this=text, to=kind), start)


def read_case(reader: Reader) -> exp.Expr:
    start = reader.word()
    reader.need("CASE")
    operand = None if reader.at("WHEN") else reader.value()
    arms: list[exp.Expr] = []
    while reader.take("WHEN"):
        condition = reader.value()
        reader.need("THEN")
        arms.append(exp.If(this=condition, true=reader.value()))
    if not arms:
        reader.need("WHEN")
    default = reader.value() if reader.take("ELSE") else None
    reader.need("END")
    return reader.spanned(exp.Case(this=operand, ifs=arms, default=default), start)


def read_between(reader: Reader, this: exp.Expr | None) -> exp.Expr:
    symmetric = reader.take("SYMMETRIC")
    low = _operand(reader)
    reader.need("AND")
    return exp.Between(this=_before(reader, this), low=low, high=_operand(reader), symmetric=symmetric)


def read_in(reader: Reader, this: exp.Expr | None) -> exp.Expr:
    """IN (values) or IN (query); the word IN is read already."""
    this = _before(reader, this)
    if not reader.at("("):
        reader.reject("IN takes a list or a query in parentheses", "write IN (1, 2, 3) or IN (SELECT ..)")
    if at_query(reader):
        return exp.In(this=this, query=reader.wrapped(lambda: read_query(reader)))
    return exp.In(this=this, expressions=reader.wrapped(lambda: reader.listed(reader.value)))


def read_predicate(reader: Reader, this: exp.Expr | None) -> exp.Expr | None:
    """Tests whose words are names elsewhere: a ISNULL, a NOTNULL, text RLIKE 'pattern', text SIMILAR TO 'pattern'.

    The first word is read already, and given back where it is none of them.
    """
    start = reader.word(-1)
    if this is not None and start.capitals in ("ISNULL", "NOTNULL"):
        test = exp.Is(this=this, expression=exp.Null(), negate=start.capitals == "NOTNULL")
        return reader.spanned(test, start)
    function = _PATTERNS.get(start.capitals)
    follows = 1 if start.capitals == "SIMILAR" and reader.at("TO") else 0
    if this is None or function is None or reader.word(follows).kind != "text":
        reader.skip(-1)
        return None
    reader.skip(follows)
    return reader.spanned(exp.Anonymous(this=function, expressions=[this, _operand(reader)]), start)


_PATTERNS: Final = {"RLIKE": "regexp_matches", "REGEXP": "regexp_matches", "SIMILAR": "regexp_full_match"}


def _operand(reader: Reader) -> exp.Expr:
    operand = reader.operand()
    if operand is None:
        reader.reject(f"a value is missing before {reader.word()}", "write a column, a constant or an expression")
    return operand


def _before(reader: Reader, this: exp.Expr | None) -> exp.Expr:
    if this is None:
        reader.reject(f"a value is missing before {reader.word(-1)}", "write it", reader.word(-1))
    return this


def read_bracket(reader: Reader) -> exp.Expr | None:
    """( expression ), ( query ) or ( several, values )."""
    start = reader.word()
    if not reader.at("("):
        return None
    if at_query(reader):
        return reader.spanned(exp.Subquery(this=reader.wrapped(lambda: read_query(reader))), start)
    values = reader.wrapped(lambda: reader.listed(reader.value))
    if len(values) > 1:
        return reader.spanned(exp.Tuple(expressions=values), start)
    return exp.Paren(this=values[0])


# --- arrays and structs ----------------------------------------------------------------------------------------------

_WINDOWS: Final = ("RANGE", "ROWS", "NOW", "PARTITION", "SESSION")


def read_nested(reader: Reader) -> exp.Expr | None:
    """[a, b], ARRAY[a, b] or {'a': x, 'b': y}."""
    start = reader.word()
    if reader.at("ARRAY", "(") and start.kind == "name" and at_query(reader, 2):
        remedy = "write (SELECT ARRAY_AGG(a ORDER BY b) FROM ..), which is NULL where there are no rows"
        reader.reject("ARRAY of a query is not supported", remedy, start)
    if reader.at("MAP", "[") or reader.at("MAP", "{"):
        reader.reject("a MAP is not supported", TYPES["MAP"], start)
    if start.kind == "symbol" and start.text == "{":
        return _read_struct(reader)
    if not (reader.at("[") or reader.at("ARRAY", "[")) or start.kind == "quoted":
        return None
    reader.take("ARRAY")
    _reject_window(reader)
    reader.skip()
    values = [] if reader.at("]") else reader.listed(reader.value)
    if reader.at("FOR"):
        remedy = "write (SELECT ARRAY_AGG(x + 1) FROM UNNEST(a) AS u (x)), or UNNEST(a) in FROM"
        reader.reject("an array made by FOR is not supported", remedy)
    reader.need("]")
    return reader.spanned(_call("list_value", values), start)


def _read_struct(reader: Reader) -> exp.Expr:
    start = reader.word()
    reader.skip()
    pairs = reader.listed(lambda: _read_field(reader, ":"))
    reader.need("}")
    return reader.spanned(_struct(pairs), start)


def _read_field(reader: Reader, between: str) -> tuple[exp.Expr, exp.Expr]:
    is_text = reader.word().kind == "text"
    name = reader.literal("text", "", "") if is_text else reader.name("the name of a field", any_word=True)
    for symbol in between:
        reader.need(symbol)
    return name, reader.value()


def _struct(pairs: list[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    return syntax.StructValue(names=[name for name, _ in pairs], expressions=[value for _, value in pairs])


_BEHIND_ALL: Final = 2**62


def read_part(reader: Reader, this: exp.Expr) -> exp.Expr:
    """value[index], or value[from:to]."""
    start = reader.word()
    _reject_window(reader)
    reader.skip()
    index = exp.Literal.number(1) if reader.at(":") else reader.value()
    if reader.take(":"):
        last = exp.Literal.number(_BEHIND_ALL) if reader.at("]") else reader.value()
        reader.need("]")
        cut = reader.spanned(_call("list_slice", [this, index, last]), start)
        cut.meta["start"] = this.meta.get("start", start.start)
        return cut
    reader.need("]")
    subscript = reader.spanned(syntax.Subscript(this=this, index=index), start)
    subscript.meta["start"] = this.meta.get("start", start.start)
    return subscript


def _reject_window(reader: Reader) -> None:
    if reader.word(1).capitals in _WINDOWS and reader.word(1).kind == "name" and reader.word(2).text != "(":
        after = reader.word(2)
        if after.text != "]" or reader.word(1).capitals == "NOW":
            remedy = "write FROM S [ROWS 10]; behind a value stands the index of an element, as in a[1]"
            reader.reject("a window can only follow a stream in FROM", remedy)


# --- calls -----------------------------------------------------------------------------------------------------------


def read_call(reader: Reader) -> exp.Expr | None:
    """name( arguments ), and the calls with a grammar of their own."""
    start = reader.word()
    if start.capitals in ("ANY", "SOME", "ALL") and start.kind != "quoted" and reader.word(1).text == "(":
        reader.skip()
        if at_query(reader):
            query = reader.wrapped(lambda: read_query(reader))
            return reader.spanned(syntax.Quantified(this=start.capitals, query=query), start)
        if reader.word(-2).kind == "symbol" and reader.word(-2).text in ("=", "==", "<>", "!=", "<", "<=", ">", ">="):
            array, *others = reader.wrapped(lambda: reader.listed(reader.value))
            if others:
                what = f"{start.capitals} takes a query or an array"
                reader.reject(what, "write a = ANY (ARRAY[1, 2]), or a IN (1, 2)", start)
            return reader.spanned(syntax.Quantified(this=start.capitals, array=array), start)
        reader.skip(-1)
    named = start.is_name or start.capitals in ("LEFT", "RIGHT", "EXISTS")
    if not named or reader.word(1).text != "(" or reader.word(1).kind != "symbol":
        return None
    reader.skip(2)
    call = _read_nulls(reader, reader.spanned(_read_arguments(reader, start), start), start)
    reject_clause(reader)
    reader.need(")")
    call = _read_within(reader, reader.spanned(call, start), start)
    call = _read_filter(reader, _read_nulls(reader, call, start), start)
    return read_over(reader, call, start) if reader.at("OVER") else call


def _read_nulls(reader: Reader, call: exp.Expr, start: Word) -> exp.Expr:
    """IGNORE NULLS in the parentheses of a call or behind them; RESPECT NULLS says nothing."""
    which = next((word for word in ("IGNORE", "RESPECT") if reader.at(word, "NULLS")), None)
    if which is None or not isinstance(call, exp.Anonymous | syntax.ModifiedCall):
        return call
    reader.skip(2)
    return reader.spanned(_modified(call, "nulls", exp.Var(this=which)), start)


def _modified(call: exp.Expr, what: str, value: exp.Expr | list[exp.Expr]) -> exp.Expr:
    modified = call if isinstance(call, syntax.ModifiedCall) else syntax.ModifiedCall(this=call)
    modified.set(what, value)
    return modified


def _read_filter(reader: Reader, call: exp.Expr, start: Word) -> exp.Expr:
    """Behind a call, `filter` without a bracket may also be the name that the result is given."""
    if not isinstance(call, exp.Anonymous | syntax.ModifiedCall) or not reader.at("FILTER"):
        return call
    if reader.word(1).text != "(":
        return call
    reader.skip()
    if not reader.at("(", "WHERE"):
        reader.reject("FILTER takes a condition", "write FILTER (WHERE condition)")

    def read() -> exp.Expr:
        reader.need("WHERE")
        return reader.value()

    return reader.spanned(_modified(call, "condition", reader.wrapped(read)), start)


def _read_within(reader: Reader, call: exp.Expr, start: Word) -> exp.Expr:
    """WITHIN GROUP (ORDER BY ..)."""
    if not isinstance(call, exp.Anonymous) or not reader.at("WITHIN", "GROUP"):
        return call
    reader.skip(2)
    return reader.spanned(syntax.ModifiedCall(this=call, order=reader.wrapped(lambda: _read_order(reader))), start)


def _read_order(reader: Reader) -> list[exp.Expr]:
    reader.need("ORDER", "BY")
    return reader.listed(lambda: _read_ordered(reader))


def _read_ordered(reader: Reader) -> exp.Expr:
    start, value = reader.word(), reader.value()
    descending = reader.take_one_of("ASC", "DESC") == "DESC"
    first = False
    if reader.take("NULLS"):
        word = reader.take_one_of("FIRST", "LAST")
        if word is None:
            reader.reject("NULLS is not followed by FIRST or LAST", "write NULLS FIRST or NULLS LAST")
        first = word == "FIRST"
    return reader.spanned(exp.Ordered(this=value, desc=descending, nulls_first=first), start)


def read_path(reader: Reader, this: exp.Expr) -> exp.Expr:
    """value -> 'path' and value ->> 'path'."""
    start = reader.word()
    reader.skip()
    sign = "-" if reader.take("-") else ""
    path = reader.word()
    if path.kind not in (("number",) if sign else ("number", "text")):
        reader.reject(
            f"the path behind {start} is a constant", "write json -> '$.a[0]', json -> 'a' or json -> 0", path
        )
    reader.skip()
    constant: exp.Expr = exp.Literal(this=path.text, is_string=path.kind == "text")
    constant = reader.spanned(exp.Neg(this=constant) if sign else constant, path)
    name = "json_extract" if start.text == "->" else "json_extract_string"
    return reader.spanned(exp.Anonymous(this=name, expressions=[this, constant]), start)


def _read_json_value(reader: Reader) -> exp.Expr:
    """JSON_VALUE(json, path [RETURNING type] [NULL ON EMPTY] [NULL ON ERROR]), as Flink and the standard write it."""
    start = reader.word()
    call = exp.Anonymous(this="json_value", expressions=reader.listed(reader.value))
    kind = read_type(reader) if reader.take("RETURNING") else None
    while (word := reader.word()).capitals in ("NULL", "ERROR", "DEFAULT"):
        if not (reader.take("NULL", "ON", "EMPTY") or reader.take("NULL", "ON", "ERROR")):
            reader.reject(f"JSON_VALUE with {word} is not supported", "write COALESCE(json_value(..), default)")
    if kind is None:
        return call
    # Of a text its characters, as of every value that is not to stay JSON.
    whole = reader.spanned(exp.Literal(this="$", is_string=True), start)
    call = exp.Anonymous(this="json_extract_string", expressions=[reader.spanned(call, start), whole])
    return exp.TryCast(this=reader.spanned(call, start), to=kind)


def _read_arguments(reader: Reader, start: Word) -> exp.Expr:
    match start.capitals:
        case "JSON_VALUE":
            return _read_json_value(reader)
        case "EXISTS":
            if not at_query(reader):
                reader.reject("EXISTS takes a query", "write EXISTS (SELECT .. WHERE ..)")
            return exp.Exists(this=read_query(reader))
        case "CAST" | "TRY_CAST":
            value = reader.value()
            reader.need("AS")
            kind = exp.TryCast if start.capitals == "TRY_CAST" else exp.Cast
            return kind(this=value, to=read_type(reader))
        case "SAFE_CAST":
            reader.reject("there is no function 'safe_cast'", "write TRY_CAST(value AS type)", start)
        case "EXTRACT":
            part = reader.literal("text", "", "") if reader.word().kind == "text" else reader.name("a part of a date")
            reader.need("FROM")
            return _call("date_part", [exp.Literal.string(part.name), reader.value()])
        case "STRUCT_PACK" if reader.word(1).text == ":":
            return _struct(reader.listed(lambda: _read_field(reader, ":=")))
        case "TRIM":
            return _read_trim(reader)
        case "POSITION":
            return _read_position(reader)
        case "SUBSTRING":
            return _read_substring(reader)
        case _:
            arguments = [] if reader.at(")") else reader.listed(lambda: _read_argument(reader))
            if start.capitals in ("FLOOR", "CEIL", "CEILING") and len(arguments) == 1 and reader.at("TO"):
                return _read_floor(reader, start, arguments[0])
            call = _read_nulls(reader, reader.spanned(_call(start.text, arguments), start), start)
            if not arguments or not reader.at("ORDER"):
                return call
            return _modified(call, "order", _read_order(reader))


def _call(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=arguments)


def _read_argument(reader: Reader) -> exp.Expr:
    start = reader.word()
    if reader.take("DISTINCT"):
        return reader.spanned(exp.Distinct(expressions=[reader.value()]), start)
    reader.take("ALL")
    if reader.at("*") and reader.word(1).text == ")":
        reader.skip()
        return reader.spanned(exp.Star(), start)
    return reader.value()


def _read_floor(reader: Reader, start: Word, moment: exp.Expr) -> exp.Expr:
    """FLOOR(moment TO HOUR), as Flink has it."""
    if start.capitals != "FLOOR":
        remedy = "write date_trunc('hour', ts) + INTERVAL '1' HOUR"
        reader.reject(f"{start.capitals}(.. TO ..) is not supported", remedy, start)
    reader.need("TO")
    return _call("date_trunc", [exp.Literal.string(reader.name("a part of a date").name), moment])


def _read_trim(reader: Reader) -> exp.Expr:
    """TRIM(text), TRIM(text, characters), TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
    side = reader.take_one_of("BOTH", "LEADING", "TRAILING")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side or "", "trim")
    first = [] if reader.at("FROM") else [reader.value()]
    if reader.take("FROM"):
        return _call(name, [reader.value(), *first])
    if side is not None:
        reader.need("FROM")
    if reader.take(","):
        first.append(reader.value())
    return _call(name, first)


def _read_position(reader: Reader) -> exp.Expr:
    """POSITION(part IN text), or the text first when written with a comma."""
    first = _operand(reader)
    if reader.take("IN"):
        return _call("position", [reader.value(), first])
    reader.need(",")
    return _call("position", [first, reader.value()])


def _read_substring(reader: Reader) -> exp.Expr:
    """SUBSTRING(text, start[, count]) or SUBSTRING(text FROM start [FOR count])."""
    arguments = [reader.value()]
    if reader.take("FROM"):
        arguments.append(reader.value())
        if reader.take("FOR"):
            arguments.append(reader.value())
        return _call("substring", arguments)
    while reader.take(","):
        arguments.append(reader.value())
    return _call("substring", arguments)
