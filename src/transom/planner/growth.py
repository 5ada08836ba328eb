"""What keeps more and more for as long as input comes: operators that keep the rows alive, over rows that never end.

A row of a stream without a window lives forever. Selections and projections keep nothing and pass it on. A join,
DISTINCT and a set operation keep something for each row alive, so they grow with the stream, unless the condition of an
join bounds the times of its streams to each other (`time_bounds.py`); so does an answer that is written as its
latest snapshot, and an aggregate with the groups that there are or the distinct values that it counts. A stream of
changes, or an answer written so, does if there are rows whose ends are not known when they come; otherwise it keeps
those that will end. A join with an input whose rows end has rows that end, and an aggregate without GROUP BY has one
row; tables, static or changing, are as large as what they stand for, and partitions (`PARTITION BY k ROWS n`) as many
as their keys. What is sealed (`planner/sealed.py`) keeps nothing of rows that never end.
"""

from __future__ import annotations

from dataclasses import dataclass

from transom.kernels.operator import Alive, Operator
from transom.kernels.window_table.node import WindowAggregate
from transom.plan.algebra import Filter, OuterJoin, Project, Relation, SemiJoin, WindowTable
from transom.planner.explain import title


@dataclass(frozen=True)
class StateGrowth:
    """What grows, by the name that EXPLAIN gives it, and the streams whose rows it keeps forever."""

    what: str
    streams: tuple[str, ...]
    kept: str = "rows"
    windowed: bool = False
    """Whether some of the rows are those of windows that are over: the others could be forgotten with these."""

    def __str__(self) -> str:
        """
        >>> print(StateGrowth("aggregate sliding", ("s",)))
        state grows while input comes: aggregate sliding keeps the rows of s, which never end; write s [RANGE 1 HOUR]
        """
        windows = " and ".join(f"{name} [RANGE 1 HOUR]" for name in self.streams)
        names = " and ".join(self.streams)
        kept = f"keeps the {self.kept} of {names}"
        if self.windowed:
            windows = "window_end among its keys"
        return f"state grows while input comes: {self.what} {kept}, which never end; write {windows}"


def growing(root: Operator, emit: str) -> list[StateGrowth]:
    """All that grows in a plan whose answer is written in this form, in the order of the plan."""
    below_by_id: dict[int, Alive] = {}
    growths: dict[StateGrowth, None] = {}
    for operator in root.walk():
        below = [below_by_id[id(child)] for child in operator.inputs]
        forever = Alive.streams(below)
        kept = operator.tactic.grows_by(operator) if forever and not operator.sealed else None
        if kept is not None:
            named = title(operator.kind, operator.tactic.name)
            growths.setdefault(StateGrowth(named, forever, kept, _has_windows(operator)))
        below_by_id[id(operator)] = Alive(forever) if operator.sealed else operator.tactic.alive(operator, below)
    if isinstance(root.node, Relation) and below_by_id[id(root)].forever and _written_from_memory(root, emit):
        growths.setdefault(StateGrowth("the answer", below_by_id[id(root)].forever, windowed=_has_windows(root)))
    return list(growths)


def _has_windows(operator: Operator) -> bool:
    """Whether rows of TUMBLE, HOP or SESSION come to it."""
    return any(isinstance(below.node, WindowTable | WindowAggregate) for below in operator.walk())


def _written_from_memory(root: Operator, emit: str) -> bool:
    """Whether an answer in this form is made of the rows alive, those that never end among them.

    Of rows that know their end when they come, changes need those that will leave; and of negative tuples net changes
    need none. Rows that a join will say of that they stay are kept until then.
    """
    below = root
    while isinstance(below.node, Filter | Project):
        (below,) = below.inputs
    stays = isinstance(below.node, OuterJoin | SemiJoin) and below.node.stays
    open_ends = root.open_ends and not stays
    return emit == "latest" or (emit == "changes" and (open_ends or root.negative)) or (emit == "net" and open_ends)
