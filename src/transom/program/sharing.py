"""Which queries of a run share a join, or another part that is the same in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transom.kernels.joinagg.node import JoinAggregate
from transom.plan.catalogue import ExplainStatement, InsertStatement, QueryStatement
from transom.plan.options import OPTIONS
from transom.planner.sharing import Request
from transom.planner.sharing_plan import SharablePlan, sharable_plans
from transom.planner.sharing_shape import Sharable, sharable
from transom.planner.sharing_windows import SharableWindows, differ, sharable_windows, widened
from transom.program.planned import Planned


@dataclass(frozen=True)
class Sharing:
    """What of several queries, by index, those request that share, who shares with whom, and why others do not."""

    requests: dict[int, Request]
    groups: tuple[tuple[int, ...], ...]
    unsupported: dict[int, str]

    def group_of(self, index: int) -> tuple[int, ...]:
        """The queries that share with this one, itself among them; () if it shares with nobody."""
        return next((group for group in self.groups if index in group), ())


def request_of(planned: Planned) -> Sharable | str:
    """What a query asks of a shared join, or why it has none."""
    sharing, schedule = (planned.catalogue.options.get(name, OPTIONS[name].default) for name in ("sharing", "schedule"))
    if sharing == "off":
        return "SET sharing is 'off'"
    assert isinstance(planned.statement, QueryStatement | InsertStatement | ExplainStatement)
    sharable_part = sharable(planned.statement.query, planned.catalogue)
    if isinstance(sharable_part, Sharable) and sharing == "auto" and schedule in ("off", "auto"):
        tactic = _without_the_join(planned)
        if tactic is not None:
            return _needs_no_pairs(tactic)
    return sharable_part


def _needs_no_pairs(tactic: str) -> str:
    """A row with many matches costs it no more than one with few: with a join it would."""
    return f"join-aggregate {tactic} may need no pairs; SET sharing = 'on' makes them for all"


def _without_the_join(planned: Planned) -> str | None:
    """The tactic by which the query, alone, makes an aggregate over its join without the join."""
    operators = () if planned.root is None else planned.root.walk()
    return next((each.tactic.name for each in operators if isinstance(each.node, JoinAggregate)), None)


def sharing_of(planned: Sequence[Planned]) -> Sharing:
    """Queries with the same part share it, or the same join, where there are two or more."""
    wanted = {index: request_of(query) for index, query in enumerate(planned)}
    unsupported = {index: request_or_why for index, request_or_why in wanted.items() if isinstance(request_or_why, str)}
    with_join: dict[object, list[int]] = {}
    for index, request_or_why in wanted.items():
        if isinstance(request_or_why, Sharable):
            with_join.setdefault(request_or_why.join, []).append(index)
    by_windows = _by_windows(planned)
    parts, without = _parts(planned, [set(group) for group in with_join.values()], [set(group) for group in by_windows])
    unsupported |= {index: _needs_no_pairs(tactic) for index, tactic in without.items()}
    requests: dict[int, Request] = dict(parts)
    by_part: dict[object, list[int]] = {}
    for index, part in parts.items():
        by_part.setdefault(part.common, []).append(index)
    groups = list(by_part.values())
    for windows_of in by_windows:
        left = [index for index in windows_of if index not in requests]
        if len(left) > 1:
            groups.append(left)
            requests |= dict(zip(left, widened([windows_of[index] for index in left]), strict=True))
    for indexes in with_join.values():
        left = [index for index in indexes if index not in requests]
        if len(left) > 1:
            groups.append(left)
            requests |= {index: request for index in left if isinstance(request := wanted[index], Sharable)}
        elif left:
            unsupported[left[0]] = "no other query has this join"
    return Sharing(requests, tuple(map(tuple, groups)), unsupported)


def _by_windows(planned: Sequence[Planned]) -> list[dict[int, SharableWindows]]:
    """The queries whose joins, of more than two streams or of windows that slide, differ in their windows."""
    by_join: dict[object, dict[int, SharableWindows]] = {}
    for index, query in enumerate(planned):
        assert isinstance(query.statement, QueryStatement | InsertStatement | ExplainStatement)
        windows = sharable_windows(query.statement.query, query.catalogue)
        if isinstance(windows, str):
            continue
        if _aside(query) is not None:
            continue  # it may need no pairs
        by_join.setdefault(windows.common, {})[index] = windows
    return [windows_of for windows_of in by_join.values() if len(windows_of) > 1 and differ(list(windows_of.values()))]


def _parts(
    planned: Sequence[Planned], with_join: Sequence[set[int]], by_windows: Sequence[set[int]]
) -> tuple[dict[int, SharablePlan], dict[int, str]]:
    """The queries that share a part, with the largest that they have in common; and, with the tactic that they take
    instead, those that leave a join to others, as they may need no pairs.

    Queries that have the same join as others share that, unless the part has more to it and is all of theirs.
    """
    by_part: dict[object, dict[int, SharablePlan]] = {}
    for index, query in enumerate(planned):
        statement = query.statement
        assert isinstance(statement, QueryStatement | InsertStatement | ExplainStatement)
        plans = sharable_plans(statement.query, query.catalogue)
        for part in () if isinstance(plans, str) else plans:
            by_part.setdefault(part.common, {})[index] = part
    shared: dict[int, SharablePlan] = {}
    without: dict[int, str] = {}
    for plan_of in sorted(by_part.values(), key=_worth, reverse=True):
        group = {index: part for index, part in plan_of.items() if index not in shared}
        if len(group) > 1 and any(part.only_joins for part in group.values()):
            # Made for all, pairs would cost those that need none.
            aside = {index: tactic for index in group if (tactic := _aside(planned[index])) is not None}
            without |= aside
            group = {index: part for index, part in group.items() if index not in aside}
        if len(group) > 1 and not _better_as_joins(group, with_join, by_windows):
            shared |= group
    return shared, {index: tactic for index, tactic in without.items() if index not in shared}


def _worth(plan_of: Mapping[int, SharablePlan]) -> tuple[int, int, int]:
    """By how much it computes, then by how many have it: a selection that only some have in common is no reason to make
    a join once more for the others."""
    part = next(iter(plan_of.values()))
    return part.works, len(plan_of), part.size


def _aside(query: Planned) -> str | None:
    """The tactic by which a query does without the pairs of a join, unless it is told to share them."""
    return None if query.catalogue.options.get("sharing") == "on" else _without_the_join(query)


def _better_as_joins(
    group: Mapping[int, SharablePlan], with_join: Sequence[set[int]], by_windows: Sequence[set[int]]
) -> bool:
    only_joins = any(part.only_joins for part in group.values())
    if only_joins and any(group.keys() <= joined for joined in by_windows):
        return True
    return any(only_joins if group.keys() == joined else group.keys() <= joined for joined in with_join)
