"""The grammar of TUMBLE, HOP and SESSION in FROM, as Transom, Flink and RisingWave write them, and of DEDUPLICATE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from transom.cql import syntax
from transom.cql.grammar_window import read_column, read_duration
from transom.cql.reader import Reader, Word

WINDOW_FUNCTIONS: Final = {
    "TUMBLE": "TUMBLE(s, ts, INTERVAL '10' SECOND)",
    "HOP": "HOP(s, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "SESSION": "SESSION(s PARTITION BY k, ts, INTERVAL '10' SECOND)",
}
"""Each with an example: the slide of HOP stands before its size."""

DEDUPLICATE: Final = "DEDUPLICATE(s PARTITION BY k, INTERVAL '10' SECOND)"

_BOUNDS: Final = "the columns window_start and window_end of"
GROUP_WINDOWS: Final = {
    "window": f"FROM {WINDOW_FUNCTIONS['TUMBLE']} .. GROUP BY window_start, window_end; or HOP where windows overlap",
    "session_window": f"FROM {WINDOW_FUNCTIONS['SESSION']} .. GROUP BY k, window_start, window_end",
    **{
        name.lower(): f"FROM {example} .. GROUP BY {'k, ' * (name == 'SESSION')}window_start, window_end"
        for name, example in WINDOW_FUNCTIONS.items()
    },
    **{
        f"{name.lower()}_{bound}": f"{_BOUNDS} {example} in FROM"
        for name, example in WINDOW_FUNCTIONS.items()
        for bound in ("start", "end", "rowtime", "proctime")
    },
}
"""Windows as functions of a column, in GROUP BY and SELECT of other systems: what to write instead."""

ReadInput = Callable[[Reader], exp.Expr]


def at_table_function(reader: Reader) -> bool:
    """Whether a function that gives rows is called here, perhaps within TABLE(..)."""
    ahead = 2 if reader.at("TABLE", "(") else 0
    names = (*WINDOW_FUNCTIONS, "CUMULATE", "DEDUPLICATE")
    return reader.word(ahead).capitals in names and reader.word(ahead + 1).text == "("


def read_table_function(reader: Reader, read_input: ReadInput) -> exp.Expr:
    start = reader.word()
    if reader.take("TABLE"):
        return reader.spanned(reader.wrapped(lambda: _read_function(reader, read_input)), start)
    return _read_function(reader, read_input)


def _read_function(reader: Reader, read_input: ReadInput) -> exp.Expr:
    start = reader.word()
    reader.skip()
    if start.capitals == "CUMULATE":
        reader.reject("CUMULATE is not supported", "write TUMBLE for each step and add them up, or HOP", start)
    if start.capitals == "DEDUPLICATE":
        return _read_deduplication(reader, read_input, start)
    example = f"write {WINDOW_FUNCTIONS[start.capitals]}"
    reader.need("(")
    _skip_name(reader, "DATA")
    this = read_input(reader)
    partition = _read_partition(reader, _time_follows)
    _need_comma(reader, "the time column is missing", example)
    _skip_name(reader, "TIMECOL")
    time = _read_time(reader)
    named = {}
    durations = []
    while reader.take(","):
        name = reader.word().capitals
        if _skip_name(reader, name):
            named[name] = read_duration(reader)
        else:
            durations.append(read_duration(reader))
    durations += [named.pop(name) for name in ("SLIDE", "SIZE", "GAP", "OFFSET") if name in named]
    if named:
        reader.reject(f"{start.capitals} has no parameter '{next(iter(named))}'", example, start)
    if not durations:
        reader.reject(f"{start.capitals} has no length", example)
    reader.need(")")
    node = syntax.WindowFunction(this=this, kind=start.capitals, partition=partition, time=time, durations=durations)
    return reader.spanned(node, start)


def _read_deduplication(reader: Reader, read_input: ReadInput, start: Word) -> exp.Expr:
    example = f"write {DEDUPLICATE}"
    reader.need("(")
    this = read_input(reader)
    partition = _read_partition(reader, _length_follows)
    if partition is None:
        reader.reject("DEDUPLICATE has no key", example)
    _need_comma(reader, "DEDUPLICATE has no length", example)
    node = syntax.Deduplication(this=this, partition=partition, length=read_duration(reader))
    reader.need(")")
    return reader.spanned(node, start)


def _need_comma(reader: Reader, what: str, example: str) -> None:
    if not reader.take(","):
        reader.reject(f"{what} before {reader.word()}", example)


def _skip_name(reader: Reader, name: str) -> bool:
    """The name of a parameter, as in DATA => TABLE s."""
    return reader.take(name, "=", ">")


def _read_partition(reader: Reader, ended: Callable[[Reader], bool]) -> list[exp.Expr] | None:
    """The keys; the comma behind them is that behind which the next parameter follows, rather than another key."""
    if not reader.take("PARTITION"):
        return None
    reader.need("BY")
    if reader.at("("):
        return reader.wrapped(lambda: reader.listed(lambda: read_column(reader)))
    columns = [read_column(reader)]
    while reader.at(",") and not ended(reader):
        reader.skip()
        columns.append(read_column(reader))
    return columns


def _time_follows(reader: Reader) -> bool:
    """Whether the time column is next: it is followed by a duration, and a key by another column."""
    first = reader.word(1)
    if _length_follows(reader) or first.capitals in ("DESCRIPTOR", "TIMECOL"):
        return True
    ahead = 4 if reader.word(2).text == "." else 2
    behind = reader.word(ahead + 1)
    return reader.word(ahead).text == "," and (behind.kind == "number" or behind.capitals in ("INTERVAL", "GAP"))


def _length_follows(reader: Reader) -> bool:
    first = reader.word(1)
    return first.kind == "number" or first.capitals == "INTERVAL"


def _read_time(reader: Reader) -> exp.Expr:
    if reader.at("DESCRIPTOR"):
        reader.skip()
        return reader.wrapped(lambda: read_column(reader))
    return read_column(reader)
