"""What keeps more and more for as long as input comes: operators that keep the rows alive, over rows that never end.

A row of a stream without a window lives forever. Selections and projections keep nothing and pass it on. A join,
DISTINCT and a set operation keep something for each row alive, so they grow with the stream, whatever a condition on
times says; so does an answer that is written as its latest snapshot, and an aggregate with the groups that there are
or the distinct values that it counts. A stream of changes, or an answer written so, does if there are rows whose ends
are not known when they come; otherwise it keeps those that will end. A join with an input whose rows end has rows that
end, and an aggregate without GROUP BY has one row; tables, static or changing, are as large as what they stand for, and
partitions (`PARTITION BY k ROWS n`) as many as their keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator, told_directly
from transom.kernels.shared_join.node import SharedJoin
from transom.plan.algebra import Aggregate, Join, Relation, SetOperation, StreamScan, TableScan, Window
from transom.planner.explain import title
from transom.planner.lasting import counts_once


@dataclass(frozen=True)
class Growth:
    """What grows, by the name that EXPLAIN gives it, and the streams whose rows it keeps forever."""

    what: str
    streams: tuple[str, ...]
    kept: str = "rows"

    def __str__(self) -> str:
        """
        >>> print(Growth("aggregate sliding", ("s",)))
        state grows while input comes: aggregate sliding keeps the rows of s, which never end; write s [RANGE 1 HOUR]
        """
        windows = " and ".join(f"{name} [RANGE 1 HOUR]" for name in self.streams)
        names = " and ".join(self.streams)
        kept = f"keeps the {self.kept} of {names}"
        return f"state grows while input comes: {self.what} {kept}, which never end; write {windows}"


@dataclass(frozen=True)
class _Rows:
    """The rows of a relation: the streams of which they are alive forever, and whether all of them end by a window."""

    forever: tuple[str, ...] = ()
    end: bool = False


def growing(root: Operator, emit: str) -> list[Growth]:
    """All that grows in a plan whose answer is written in this form, in the order of the plan."""
    known: dict[int, _Rows] = {}
    found: dict[Growth, None] = {}
    for operator in root.walk():
        below = [known[id(child)] for child in operator.inputs]
        forever = _streams(below)
        kept = _kept_of(operator) if forever else None
        if kept is not None:
            found.setdefault(Growth(title(operator.kind, operator.tactic.name), forever, kept))
        known[id(operator)] = _rows(operator, below)
    if isinstance(root.node, Relation) and known[id(root)].forever and _written_from_memory(root, emit):
        found.setdefault(Growth("the answer", known[id(root)].forever))
    return list(found)


def _kept_of(operator: Operator) -> str | None:
    """What an operator keeps of rows that never end; None if it does not grow with them."""
    node = operator.node
    if operator.tactic.keeps == "nothing" or told_directly(node, operator.inputs):
        return None
    if not isinstance(node, Aggregate) or operator.tactic.name != "running":
        return "rows"
    return "distinct values" if counts_once(node) else "groups" if node.grouped else None


def _written_from_memory(root: Operator, emit: str) -> bool:
    """Whether an answer in this form is made of the rows alive, those that never end among them.

    Of rows that tell their end when they come, changes need those that will leave; and of negative tuples net changes
    need none.
    """
    return emit == "latest" or (emit == "changes" and not root.ends_known) or (emit == "net" and root.open_ends)


def _rows(operator: Operator, below: Sequence[_Rows]) -> _Rows:
    node = operator.node
    if isinstance(node, Window):
        return _Rows(_scanned(operator)) if node.spec.unbounded else _Rows(end=True)
    if isinstance(node, TableScan) or not isinstance(node, Relation):
        return _Rows()  # streams have no rows alive
    if isinstance(node, Aggregate | JoinAggregate | MergeAggregate) and not _grouped(node):
        return _Rows()  # the one row
    if isinstance(node, SetOperation) and node.kind == "except":
        return below[0]
    together = isinstance(node, Join | MultiwayJoin | SharedJoin | JoinAggregate)
    together = together or (isinstance(node, SetOperation) and node.kind == "intersect")
    if together and any(rows.end for rows in below):
        return _Rows(end=True)
    return _Rows(_streams(below), bool(below) and all(rows.end for rows in below))


def _grouped(node: Aggregate | JoinAggregate | MergeAggregate) -> bool:
    return node.key_count > 0 if isinstance(node, MergeAggregate) else bool(node.keys)


def _streams(below: Sequence[_Rows]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rows in below for name in rows.forever))


def _scanned(operator: Operator) -> tuple[str, ...]:
    """The streams that a window is over; for one made by ISTREAM, those that it is made of."""
    return tuple(dict.fromkeys(o.node.name for o in operator.walk() if isinstance(o.node, StreamScan)))
