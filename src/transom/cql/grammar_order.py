"""The grammar of order: ORDER BY, LIMIT, OFFSET, FETCH, and what stands behind OVER."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from transom.cql import syntax
from transom.cql.foreign import reject_clause
from transom.cql.reader import Reader, Word

RANKS: Final = ("ROW_NUMBER", "RANK", "DENSE_RANK")
CLAUSES: Final = ("ORDER", "LIMIT", "OFFSET", "FETCH")
_FRAMES: Final = ("ROWS", "RANGE", "GROUPS")
_A_NUMBER: Final = "write a number, as in LIMIT 10"


def read_order(reader: Reader) -> exp.Expr | None:
    """ORDER BY .. LIMIT n OFFSET m behind a query, any of them; None where there is none."""
    start = reader.word()
    if start.capitals not in CLAUSES:
        return None
    keys = read_sort_keys(reader)
    limit = offset = None
    while word := reader.take_one_of("LIMIT", "OFFSET", "FETCH"):
        if (limit if word != "OFFSET" else offset) is not None:
            reader.reject(f"there are two {word}s", "leave one of them out", reader.word(-1))
        if word == "LIMIT":
            limit = _read_limit(reader)
        elif word == "OFFSET":
            offset = reader.literal("number", "a number", _A_NUMBER)
            reader.take_one_of("ROW", "ROWS")
        else:
            limit = _read_fetch(reader)
    return reader.spanned(syntax.OrderClause(keys=keys, limit=limit, offset=offset), start)


def _read_limit(reader: Reader) -> exp.Expr:
    start = reader.word()
    if reader.take_one_of("ALL", "NULL"):
        return reader.spanned(exp.Null(), start)
    return reader.literal("number", "a number", _A_NUMBER)


def _read_fetch(reader: Reader) -> exp.Expr:
    """FETCH FIRST n ROWS ONLY."""
    if not reader.take_one_of("FIRST", "NEXT"):
        reader.reject("FETCH is not followed by FIRST", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10")
    start = reader.word()
    no_count = reader.at("ROW") or reader.at("ROWS")
    count = (
        exp.Literal.number(1) if no_count else reader.literal("number", "a number", "write FETCH FIRST 10 ROWS ONLY")
    )
    reader.take_one_of("ROW", "ROWS")
    if reader.at("WITH"):
        reader.reject("WITH TIES is not supported", "write QUALIFY RANK() OVER (ORDER BY ..) <= 10")
    reader.need("ONLY")
    return reader.spanned(count, start) if no_count else count


def read_sort_keys(reader: Reader) -> list[exp.Expr]:
    if not reader.take("ORDER"):
        return []
    reader.need("BY")
    if reader.at("ALL"):
        reader.reject("ORDER BY ALL is not supported", "write the columns, as in ORDER BY 1, 2")
    return reader.listed(lambda: _read_sort_key(reader))


def _read_sort_key(reader: Reader) -> exp.Expr:
    start = reader.word()
    value = reader.value()
    descending = reader.take_one_of("ASC", "DESC") == "DESC"
    nulls_first = False
    if reader.take("NULLS"):
        where = reader.take_one_of("FIRST", "LAST")
        if where is None:
            reader.reject("NULLS is not followed by FIRST or LAST", "write NULLS FIRST or NULLS LAST")
        nulls_first = where == "FIRST"
    return reader.spanned(syntax.SortItem(this=value, descending=descending, nulls_first=nulls_first), start)


def read_over(reader: Reader, call: exp.Expr, start: Word) -> exp.Expr:
    """OVER (PARTITION BY .. ORDER BY .. ROWS ..) behind a call; the word OVER stands here."""
    name = start.capitals
    if name in RANKS and (call.expressions or isinstance(call, syntax.ModifiedCall)):
        what = "no argument" if call.expressions else "neither FILTER nor ORDER BY nor NULLS"
        reader.reject(f"{name} takes {what}", f"write {name}() OVER (..)", start)
    reader.skip()
    made = syntax.Ranked(this=name.lower()) if name in RANKS else syntax.OverCall(this=call)
    if reader.at("("):
        _see(made, *reader.wrapped(lambda: _read_seen(reader)))
    else:
        made.set("named", reader.name("the name of a window, or what it is in parentheses,"))
    return reader.spanned(made, start)


Seen = tuple[list[exp.Expr], list[exp.Expr], exp.Expr | None]
"""What stands in the parentheses of OVER: the partition, the order, the frame."""


def _see(call: exp.Expr, partition: list[exp.Expr], keys: list[exp.Expr], frame: exp.Expr | None) -> None:
    call.set("partition", partition)
    call.set("keys", keys)
    call.set("frame", frame)


def _read_seen(reader: Reader) -> Seen:
    partition: list[exp.Expr] = []
    if reader.take("PARTITION"):
        reader.need("BY")
        partition = reader.listed(reader.value)
    keys = read_sort_keys(reader)
    reject_clause(reader)
    return partition, keys, _read_frame(reader) if reader.word().capitals in _FRAMES else None


def at_named_windows(reader: Reader) -> bool:
    """Whether WINDOW w AS ( stands here."""
    return reader.at("WINDOW") and reader.word(1).is_name and reader.word(2).capitals == "AS"


def read_named_windows(reader: Reader) -> dict[str, Seen]:
    """WINDOW w AS (PARTITION BY .. ORDER BY ..), .."""
    seen_by_name: dict[str, Seen] = {}
    if not at_named_windows(reader):
        return seen_by_name
    reader.skip()

    def read_one() -> None:
        name = reader.name("the name of a window")
        reader.need("AS")
        if seen_by_name.setdefault(name.name.lower(), (seen := reader.wrapped(lambda: _read_seen(reader)))) is not seen:
            reader.reject(f"there are two windows '{name.name}'", "give one of them another name", reader.word(-1))

    reader.listed(read_one)
    return seen_by_name


def fill_in_windows(select: exp.Select, seen_by_name: dict[str, Seen]) -> None:
    """What OVER w means in a query block."""
    for call in list(select.find_all(syntax.OverCall, syntax.Ranked)):
        named = call.args.get("named")
        if named is not None and (seen := seen_by_name.get(named.name.lower())) is not None:
            partition, keys, frame = seen
            copied = [value.copy() for value in partition], [key.copy() for key in keys]
            _see(call, *copied, None if frame is None else frame.copy())
            call.set("named", None)


def _read_frame(reader: Reader) -> exp.Expr:
    """ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, or ROWS 2 PRECEDING; GROUPS alike, RANGE with distances."""
    start = reader.word()
    unit = reader.take_one_of(*_FRAMES) or ""
    peers = unit != "ROWS"
    between = reader.take("BETWEEN")
    bounds = [_read_bound(reader, unit, "PRECEDING")]
    if between:
        reader.need("AND")
        bounds.append(_read_bound(reader, unit, "FOLLOWING"))
    else:
        bounds.append(_places(0))
    if reader.at("EXCLUDE"):
        reader.reject("EXCLUDE is not supported", "leave it out, or subtract what the row itself adds")
    first, last = (int(bound.name) if isinstance(bound, exp.Literal) else None for bound in bounds)
    if first is not None and last is not None and first > last:
        reader.reject("the frame ends before it begins", "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", start)
    return reader.spanned(syntax.FrameClause(peers=peers, start=bounds[0], end=bounds[1]), start)


def _read_bound(reader: Reader, unit: str, open_to: str) -> exp.Expr | None:
    """How many places away from the row, before it below 0, or which distance; None where there is no bound."""
    start = reader.word()
    if reader.take("UNBOUNDED"):
        reader.need(open_to)
        return None
    if reader.take("CURRENT"):
        reader.need("ROW")
        return _places(0)
    if unit == "RANGE":
        far = reader.value()
        return reader.spanned(syntax.Distance(this=far, following=_follows(reader)), start)
    count = reader.literal("number", "a number of rows", "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
    if not count.name.isdigit() or len(count.name) > 9:
        reader.reject(f"'{count.name}' is no number of rows", "write a whole number", start)
    return _places(int(count.name) * (1 if _follows(reader) else -1))


def _follows(reader: Reader) -> bool:
    word = reader.take_one_of("PRECEDING", "FOLLOWING")
    if word is None:
        reader.need("PRECEDING")
    return word == "FOLLOWING"


def _places(number: int) -> exp.Literal:
    return exp.Literal(this=str(number), is_string=False)
