"""Windows in GROUP BY, as Flink had them first: GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR) means TUMBLE in FROM.

TUMBLE_START(..) and its sisters with the same arguments are then columns of it. What does not fit is left as it is, and
rejected where it is bound.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from transom.cql import syntax
from transom.cql.grammar_table_function import WINDOW_FUNCTIONS

_COLUMNS: Final = {"start": "window_start", "end": "window_end", "rowtime": "window_time"}


def with_windows_in_from(select: exp.Select) -> exp.Select:
    """The block with the window of its GROUP BY in FROM; the block itself where there is none that can be there."""
    group, from_ = select.args.get("group"), select.args.get("from_")
    grouped: list[exp.Expr] = [] if group is None else group.expressions
    windows = [each for each in grouped if _is_window(each)]
    if len(windows) != 1 or from_ is None or len(from_.this.expressions) != 1:
        return select
    (window,), (source,) = windows, from_.this.expressions
    named = isinstance(source, syntax.FromItem) and isinstance(source.this, exp.Identifier | syntax.Bracketed)
    if not named or source.args.get("lateral"):
        return select
    keys = [each for each in grouped if each is not window]
    session = window.name.upper() == "SESSION"
    # The sessions are those of the rows that WHERE lets through, and a window in FROM is of all of them.
    if source.args.get("window") is not None or (session and (select.args.get("where") or not _are_columns(keys))):
        return select
    time, *durations = window.expressions
    made = select.copy()
    (source,) = made.args["from_"].this.expressions
    function = syntax.WindowFunction(
        this=source.this,
        kind=window.name.upper(),
        partition=[_bare(key) for key in keys] if session else None,
        time=_bare(time),
        durations=[each.copy() for each in durations],
    )
    function.meta.update(window.meta)
    source.set("this", function)
    read = {"window_start", "window_end"}
    for call in list(made.find_all(exp.Anonymous)):
        kind, _, bound = call.name.lower().rpartition("_")
        if kind == window.name.lower() and bound in _COLUMNS and call.expressions == window.expressions:
            call.replace(_column(_COLUMNS[bound], call))
            read.add(_COLUMNS[bound])
    bounds = [_column(name, window) for name in _COLUMNS.values() if name in read]
    made.args["group"].set("expressions", [*(key.copy() for key in keys), *bounds])
    return made


def _is_window(node: exp.Expr) -> bool:
    """A call of a window with a column and durations."""
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in WINDOW_FUNCTIONS or len(node.expressions) < 2:
        return False
    time, *durations = node.expressions
    return isinstance(time, exp.Column) and all(isinstance(each, syntax.Duration) for each in durations)


def _are_columns(keys: list[exp.Expr]) -> bool:
    return all(isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier) for key in keys)


def _bare(column: exp.Expr) -> exp.Expr:
    """The column without the name of its input, which is the only one."""
    bare = exp.Column(this=column.this.copy())
    bare.meta.update(column.meta)
    return bare


def _column(name: str, instead_of: exp.Expr) -> exp.Expr:
    column = exp.Column(this=exp.to_identifier(name))
    column.meta.update(instead_of.meta)
    return column
