"""FOR SYSTEM_TIME AS OF: each row of a stream beside the rows of a table that are alive at its time.

    FROM o [window] JOIN r FOR SYSTEM_TIME AS OF o.ts ON c    is    FROM ISTREAM(o [NOW] JOIN r ON c) [window]

A pair lives as long as the row of the stream, whatever becomes of the row of the table, and so does the row of a LEFT
JOIN that met none. What `ISTREAM` gives of one instant are the pairs of that instant, and no others: their rows carry
their own time, so that none is equal to one of the instant before. A row-count window would count pairs instead of
rows, and a session would not see the rows without a pair: those are not supported.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from transom.cql.bind_expression import ExpressionBinder
from transom.cql.bind_table_function import check_time, stream_below
from transom.cql.context import Context
from transom.cql.scope import Scope
from transom.plan.algebra import (
    Change,
    Join,
    OuterJoin,
    Relation,
    Stream,
    ToStream,
    Window,
    WindowSpec,
)
from transom.plan.expression import ColumnRef, Expression

_EXAMPLE: Final = "write FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"


def bind_stream_as_of(
    time: exp.Expr, relations: tuple[Relation, ...], scope: Scope, context: Context
) -> tuple[Stream, WindowSpec]:
    """The stream whose rows meet the table at their time, and the window in which they live.

    PROCTIME() is that time, whatever the stream goes by.
    """
    error = context.source.error
    by_clock = isinstance(time, exp.Anonymous) and time.name.lower() == "proctime" and not time.expressions
    if not isinstance(time, exp.Column) and not by_clock:
        raise error("FOR SYSTEM_TIME AS OF takes the time column of the stream", time, _EXAMPLE)
    if len(relations) > 1:
        remedy = f"{_EXAMPLE}, and join the others behind it"
        raise error("FOR SYSTEM_TIME AS OF stands behind one stream, not behind several inputs", time, remedy)
    relation = relations[0]
    spec = relation.spec if isinstance(relation, Window) else WindowSpec()
    stream = relation.input if isinstance(relation, Window) else stream_below(relation)
    if stream is None:
        raise error("FOR SYSTEM_TIME AS OF is for the rows of a stream", time, _EXAMPLE)
    if not by_clock:
        column = ExpressionBinder(context, scope, "FOR SYSTEM_TIME AS OF", sub_queries=False).bind(time)
        assert isinstance(column, ColumnRef)
        check_time(time, column.index, relation, context)
    if spec.rows is not None or spec.session is not None:
        remedy = "write RANGE, or FROM ISTREAM(SELECT .. FROM o [NOW] JOIN r ON ..) [..], which has a window of pairs"
        raise error(f"FOR SYSTEM_TIME AS OF does not go with the window {spec}", time, remedy)
    return stream, spec


def pairs_as_of(
    stream: Stream,
    spec: WindowSpec,
    table: Relation,
    kind: str,
    predicate: Expression | None,
    node: exp.Expr,
    context: Context,
) -> Window:
    """The rows of the stream with those of the table at their time; with `left` also those that meet none."""
    now = Window(stream, WindowSpec(now=True))
    joined: Relation
    if kind == "inner":
        joined = Join((now, table), predicate)
    elif kind == "left" and predicate is not None:
        joined = OuterJoin(now, table, "left", predicate)
    else:
        raise context.source.error(f"FOR SYSTEM_TIME AS OF does not go with a {kind.upper()} JOIN", node, _EXAMPLE)
    return Window(ToStream(joined, Change.ISTREAM), spec)
