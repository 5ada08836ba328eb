"""What TUMBLE, HOP and SESSION in FROM mean: a stream, the windows of its rows, and their time column; DEDUPLICATE."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from transom.core.time import format_duration
from transom.cql import syntax
from transom.cql.bind_window import bind_partition_column, in_ticks
from transom.cql.context import Context
from transom.cql.grammar_table_function import DEDUPLICATE, WINDOW_FUNCTIONS
from transom.cql.literals import bind_duration
from transom.plan.algebra import (
    WINDOW_COLUMNS,
    Change,
    Deduplicate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    Relation,
    Stream,
    StreamScan,
    ToStream,
    Window,
    WindowTable,
    WindowTableSpec,
)
from transom.plan.catalogue import StreamDefinition
from transom.plan.expression import ColumnRef

MOST_WINDOWS: Final = 10_000
"""That hold one row: each of them has its own copy of it, or its own totals."""

HIDDEN: Final = frozenset(WINDOW_COLUMNS[2:])
"""`*` leaves it out, as the other systems do that have it or have it not."""


def bind_window_function(
    node: syntax.WindowFunction, bound: Node, qualifiers: list[str], context: Context
) -> WindowTable:
    """The window table over a stream, or over a relation whose rows are those of a stream and never leave."""
    kind = node.args["kind"]
    stream = stream_of(bound, kind, node, context)
    time = node.args["time"]
    check_time(time, bind_partition_column(time, bound, qualifiers, context), bound, context)
    columns = node.args.get("partition")
    if columns and kind != "SESSION":
        remedy = f"write GROUP BY for the keys, and {WINDOW_FUNCTIONS[kind]}"
        raise context.source.error(f"{kind} has the same windows for all keys", columns[0], remedy)
    durations = node.args["durations"]
    most = {"TUMBLE": 2, "HOP": 3, "SESSION": 1}[kind]
    if len(durations) > most:
        remedy = f"write {WINDOW_FUNCTIONS[kind]}"
        raise context.source.error(f"{kind} has too many durations", durations[most], remedy)
    if kind == "SESSION":
        partition = tuple(bind_partition_column(c, stream, qualifiers, context) for c in columns or ())
        return WindowTable(stream, WindowTableSpec(_length(durations[0], kind, context), partition=partition))
    if kind == "HOP" and len(durations) == 1:
        remedy = f"write {WINDOW_FUNCTIONS[kind]}: how far they are apart, then how long they are"
        raise context.source.error("HOP has a slide and a size", durations[0], remedy)
    slide = _length(durations[0], kind, context)
    size = _length(durations[1], kind, context) if kind == "HOP" else slide
    offset = in_ticks(bind_duration(durations[-1], context.source), durations[-1], "the offset", context)
    if size // slide >= MOST_WINDOWS:
        remedy = f"write a longer slide, such as {format_duration(-(-size // 100 // context.tick) * context.tick)}"
        raise context.source.error(f"each row would be in {size // slide:,} windows", durations[0], remedy)
    shifted = offset % slide if len(durations) == most else 0
    return WindowTable(stream, WindowTableSpec(size, slide, shifted))


def bind_deduplication(node: syntax.Deduplication, bound: Node, qualifiers: list[str], context: Context) -> Deduplicate:
    """Of the rows of a key the first, and the next that comes so much later."""
    stream = stream_of(bound, "DEDUPLICATE", node, context)
    keys = tuple(bind_partition_column(c, stream, qualifiers, context) for c in node.args["partition"])
    length = node.args["length"]
    micros = bind_duration(length, context.source)
    if micros == 0:
        raise context.source.error("DEDUPLICATE has no length", length, f"write {DEDUPLICATE}")
    return Deduplicate(stream, keys, in_ticks(micros, length, "the length of DEDUPLICATE", context))


def stream_of(bound: Node, kind: str, node: exp.Expr, context: Context) -> Stream:
    """A stream; of a relation to which rows only come, that of the rows that come."""
    if isinstance(bound, Stream):
        return bound
    assert isinstance(bound, Relation)
    stream = stream_below(bound)
    if stream is None:
        remedy = "give it a stream, or a view that selects rows of a stream without a window"
        raise context.source.error(f"{kind} takes the rows of one stream", node.this, remedy)
    return stream


def stream_below(relation: Relation) -> Stream | None:
    """The rows that come to a relation that selects rows of a stream and lets none go; None: it is another one."""
    return None if _scan_below(relation) is None else ToStream(relation, Change.ISTREAM)


def has_window_table(node: Node) -> bool:
    """Whether rows of TUMBLE, HOP or SESSION are in a relation, and not only in a stream that it is made of."""
    pending, seen = [node], set()
    while pending:
        at = pending.pop()
        if isinstance(at, WindowTable):
            return True
        if id(at) not in seen and not isinstance(at, Stream):
            seen.add(id(at))
            pending.extend(at.inputs)
    return False


def _scan_below(relation: Relation) -> StreamScan | None:
    """The stream of which a relation selects rows and columns, for as long as time lasts."""
    below: Node = relation
    while isinstance(below, Filter | Project):
        below = below.input
    unbounded = isinstance(below, Window) and below.spec.unbounded
    return below.input if unbounded and isinstance(below.input, StreamScan) else None  # type: ignore[attr-defined]


def own_time(node: Node, context: Context) -> ColumnRef | None:
    """The time of rows that are selected from one stream: the column by which it is in order."""
    if isinstance(node, StreamScan):
        definition = context.catalogue.relations[node.name.lower()]
        assert isinstance(definition, StreamDefinition)
        at = next(i for i, column in enumerate(node.schema) if column.name.lower() == definition.time.column.lower())
    elif isinstance(node, Filter | Project | Window):
        time = own_time(node.input, context)
        if time is None or not isinstance(node, Project):
            return time
        places = [i for i, e in enumerate(node.expressions) if isinstance(e, ColumnRef) and e.index == time.index]
        if not places:
            return None
        at = places[0]
    else:
        return None
    return ColumnRef(at, node.schema[at].type, node.schema[at].name)


def check_time(time: exp.Expr, at: int, bound: Node, context: Context) -> None:
    """The column must be that by which the stream is in order."""
    below: Node = bound
    while not isinstance(below, StreamScan):
        if isinstance(below, Project):
            value = below.expressions[at]
            if not isinstance(value, ColumnRef):
                break
            at = value.index
        elif isinstance(below, ToStream):
            if not _pairs_of_an_instant(below) or at >= len(below.input.inputs[0].schema):
                break
            below = below.input
        elif not below.inputs:
            break
        below = below.inputs[0]
    if isinstance(below, StreamScan):
        definition = context.catalogue.relations[below.name.lower()]
        assert isinstance(definition, StreamDefinition)
        own = definition.time.column
        if below.schema[at].name.lower() == own.lower():
            return
        remedy = f"write {own}; only by that column the rows are in order"
        raise context.source.error(f"'{time.name}' is not the time column of '{below.name}'", time, remedy)
    remedy = "take the declared stream, or a view that selects its time column as it is"
    raise context.source.error(f"'{time.name}' is not the time column of a stream", time, remedy)


def _pairs_of_an_instant(stream: ToStream) -> bool:
    """Whether its rows begin with rows of a stream that are there for an instant, and have the time of those."""
    joined = stream.input
    if stream.change is not Change.ISTREAM or not isinstance(joined, Join | OuterJoin):
        return False
    first = joined.inputs[0]
    return isinstance(first, Window) and first.spec.now


def _length(node: syntax.Duration, kind: str, context: Context) -> int:
    micros = bind_duration(node, context.source)
    if micros == 0:
        raise context.source.error(f"{kind} has windows without a length", node, "write INTERVAL '10' SECOND")
    return in_ticks(micros, node, f"the length of {kind}", context)
