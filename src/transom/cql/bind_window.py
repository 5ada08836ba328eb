"""What a window means: the table of semantics.md, and what is not supported."""

from __future__ import annotations

import difflib
from typing import Final

from sqlglot import exp

from transom.core.time import BEGINNING, FOREVER, format_duration
from transom.cql import syntax
from transom.cql.context import Context
from transom.cql.literals import bind_duration
from transom.plan.algebra import Node, Stream, WindowSpec

LONGEST: Final = FOREVER - BEGINNING
"""Whatever begins within the time domain and lives that long lives forever: longer durations are cut to it."""


def bind_window(
    clause: syntax.WindowClause | None, stream: Stream, qualifiers: list[str], context: Context
) -> WindowSpec:
    """The window behind a stream that goes by one of the qualifiers; none at all is unbounded."""
    if clause is None:
        return WindowSpec()
    _reject_mixtures(clause, context)
    if clause.args.get("now"):
        return WindowSpec(now=True)
    rows, range_ = _rows(clause, "rows", context), _range(clause, context)
    partition = clause.args.get("partition")
    keys = tuple(bind_partition_column(c, stream, qualifiers, context) for c in partition or ())
    if (gap := clause.args.get("session")) is not None:
        return WindowSpec(partition=keys, session=_gap(gap, context))
    return WindowSpec(range=range_, rows=rows, partition=keys or None, slide=_slide(clause, context))


def _reject_mixtures(clause: syntax.WindowClause, context: Context) -> None:
    said = {key for key in clause.arg_types if clause.args.get(key)}
    error = context.source.error
    if "slide" in said:
        for key, word in (("partition", "PARTITION BY"), ("now", "NOW"), ("unbounded", "RANGE UNBOUNDED")):
            if key in said:
                remedy = "leave SLIDE out, or write [RANGE 10 SECONDS SLIDE 5 SECONDS] or [ROWS 10 SLIDE 5]"
                raise error(f"SLIDE with {word} is not defined", clause, remedy)
        if {"rows", "range"} <= said:
            raise error("SLIDE with both ROWS and RANGE is not defined", clause, "leave ROWS or RANGE out")
        if not said & {"rows", "range"}:
            raise error("SLIDE alone is no window", clause, "write [RANGE 10 SECONDS SLIDE 5 SECONDS]")
    if "now" in said and len(said) > 1:
        raise error("NOW stands alone in a window", clause, "write [NOW]")
    if "unbounded" in said and "range" in said:
        raise error("the window is both bounded and unbounded", clause, "write one RANGE")
    if "session" in said and not said <= {"session", "partition"}:
        remedy = "write [PARTITION BY column SESSION 10 SECONDS]"
        raise error("SESSION stands alone in a window, or behind PARTITION BY", clause, remedy)
    if "partition" in said and not said & {"rows", "session"}:
        remedy = "write [PARTITION BY column ROWS 10] or [PARTITION BY column SESSION 10 SECONDS]"
        raise error("PARTITION BY needs ROWS or SESSION", clause, remedy)


def _rows(clause: syntax.WindowClause, key: str, context: Context) -> int | None:
    """A number of rows, of ROWS or of the SLIDE that goes with it."""
    node = clause.args.get(key)
    if node is None:
        return None
    word, number = key.upper(), node.this if isinstance(node, syntax.Duration) else node
    if isinstance(node, syntax.Duration) and (node.args.get("unit") is not None or number.is_string):
        raise context.source.error("SLIDE beside ROWS is a number of rows", node, "write [ROWS 10 SLIDE 5]")
    text = number.name
    if not text.isdigit() or len(text) > 19 or int(text) >= 1 << 63:
        raise context.source.error(f"{word} takes a number of rows, not {text}", number, f"write {word} 10")
    if int(text) == 0:
        remedy = "write [ROWS 1] for the last row" if key == "rows" else "write [ROWS 10 SLIDE 5]"
        raise context.source.error(f"{word} 0 would be no window at all", number, remedy)
    return int(text)


def _range(clause: syntax.WindowClause, context: Context) -> int | None:
    node = clause.args.get("range")
    if node is None:
        return None
    micros = bind_duration(node, context.source)
    if micros == 0:
        raise context.source.error("RANGE 0 would be no window at all", node, "write NOW, as in S [NOW]")
    return in_ticks(micros, node, "RANGE", context)


def _gap(node: syntax.Duration, context: Context) -> int:
    micros = bind_duration(node, context.source)
    if micros == 0:
        raise context.source.error("SESSION 0 would be no window at all", node, "write SESSION 10 SECONDS")
    return in_ticks(micros, node, "SESSION", context)


def _slide(clause: syntax.WindowClause, context: Context) -> int | None:
    node = clause.args.get("slide")
    if node is None:
        return None
    if clause.args.get("range") is None:
        return _rows(clause, "slide", context)
    if node.args.get("unit") is None and not node.this.is_string:
        raise context.source.error("SLIDE beside RANGE is a duration", node, "write SLIDE 5 SECONDS")
    micros = bind_duration(node, context.source)
    if micros == 0:
        raise context.source.error("SLIDE 0 is no step", node, "leave SLIDE out, or write SLIDE 5 SECONDS")
    return in_ticks(micros, node, "SLIDE", context)


def in_ticks(micros: int, node: exp.Expr, word: str, context: Context) -> int:
    if micros >= LONGEST:
        return LONGEST
    if micros % context.tick:
        tick = format_duration(context.tick)
        remedy = f"write a multiple of {tick}, or SET tick to a shorter duration"
        raise context.source.error(f"{word} is not a multiple of the tick, {tick}", node, remedy)
    return micros


def bind_partition_column(node: exp.Column, stream: Node, qualifiers: list[str], context: Context) -> int:
    names = stream.schema.names
    table = node.args.get("table")
    if table is not None and table.name.lower() not in [q.lower() for q in qualifiers]:
        remedy = f"write {qualifiers[0]}.{node.name}" if qualifiers else f"write {node.name}"
        raise context.source.error(f"'{table.name}' is not the stream of this window", node, remedy)
    indexes = [i for i, name in enumerate(names) if name.lower() == node.name.lower()]
    if len(indexes) > 1:
        remedy = "give the columns of the stream different names"
        raise context.source.error(f"the stream has several columns '{node.name}'", node, remedy)
    if not indexes:
        close = difflib.get_close_matches(node.name.lower(), [n.lower() for n in names], n=3, cutoff=0.5)
        remedy = f"the stream has {', '.join(n for n in names if n.lower() in close) or ', '.join(names[:8])}"
        raise context.source.error(f"the stream has no column '{node.name}'", node, remedy)
    return indexes[0]
