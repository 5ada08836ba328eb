"""Which queries of a run share a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transom.kernels.joinagg.node import JoinAggregate
from transom.plan.catalogue import ExplainStatement, InsertStatement, QueryStatement
from transom.plan.options import OPTIONS
from transom.planner.sharing_shape import Sharable, sharable
from transom.program.planned import Planned


@dataclass(frozen=True)
class Sharing:
    """Of several queries, by their places: what those ask that share, who shares with whom, and why others do not."""

    request: dict[int, Sharable]
    groups: tuple[tuple[int, ...], ...]
    unsupported: dict[int, str]

    def group_of(self, index: int) -> tuple[int, ...]:
        """Those that share with this one, itself among them; () if it shares with nobody."""
        return next((group for group in self.groups if index in group), ())


def request_of(planned: Planned) -> Sharable | str:
    """What a query asks of a shared join, or why it has none."""
    sharing, schedule = (planned.catalogue.options.get(name, OPTIONS[name].default) for name in ("sharing", "schedule"))
    if sharing == "off":
        return "SET sharing is 'off'"
    assert isinstance(planned.statement, QueryStatement | InsertStatement | ExplainStatement)
    found = sharable(planned.statement.query, planned.catalogue)
    if isinstance(found, Sharable) and sharing == "auto" and schedule == "off":
        tactic = _without_the_join(planned)
        if tactic is not None:
            # A row with many matches costs it no more than one with few: with a join it would.
            return f"join-aggregate {tactic} needs no pairs; SET sharing = 'on' makes them for all"
    return found


def _without_the_join(planned: Planned) -> str | None:
    """The tactic by which the query, alone, makes an aggregate over its join without the join."""
    operators = () if planned.root is None else planned.root.walk()
    return next((each.tactic.name for each in operators if isinstance(each.node, JoinAggregate)), None)


def sharing_of(planned: Sequence[Planned]) -> Sharing:
    """Queries with the same join share it where there are two or more."""
    found = {index: request_of(one) for index, one in enumerate(planned)}
    request = {index: one for index, one in found.items() if isinstance(one, Sharable)}
    unsupported = {index: one for index, one in found.items() if isinstance(one, str)}
    by_join: dict[object, list[int]] = {}
    for index, one in request.items():
        by_join.setdefault(one.join, []).append(index)
    groups = tuple(tuple(indexes) for indexes in by_join.values() if len(indexes) > 1)
    for indexes in by_join.values():
        if len(indexes) == 1:
            unsupported[indexes[0]] = "no other query has this join"
    shared = {index for group in groups for index in group}
    return Sharing({index: one for index, one in request.items() if index in shared}, groups, unsupported)
