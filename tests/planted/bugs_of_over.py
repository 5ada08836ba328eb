"""Bugs of aggregates and values with OVER."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

OVER: Final = (
    Bug(
        "frame_without_its_end",
        "plan/rewrites/join_frames.py",
        '("<=", frame.end)',
        '("<", frame.end)',
        "the last row of a frame is not aggregated",
    ),
    Bug(
        "lag_is_lead",
        "plan/rewrites/join_frames.py",
        "_later(place, -node.frame.start)",
        "_later(place, node.frame.start)",
        "LAG looks at the row behind",
    ),
    Bug(
        "empty_frame_loses_its_row",
        "plan/rewrites/join_frames.py",
        'OuterJoin(rows, groups, "left", predicate, excerpt=node.excerpt)',
        "Join((rows, groups), predicate)",
        "a row whose frame is empty is not in the answer",
    ),
    Bug(
        "last_is_first",
        "cql/bind_order.py",
        'back = over.end == "last"',
        "back = False",
        "LAST_VALUE of a partition is its first",
    ),
    Bug(
        "a_known_value_may_be_null",
        "cql/bind_expression.py",
        "        if over.no_nulls:\n            call = replace(",
        "        if not over.no_nulls:\n            call = replace(",
        "IGNORE NULLS takes NULLs, and what is without it does not",
    ),
    Bug(
        "groups_by_time_are_microseconds",
        "planner/running_frames.py",
        "    if frame.start is not None and frame.distance is None:",
        "    if False:",
        "GROUPS BETWEEN 1 PRECEDING reaches back a microsecond",
    ),
    Bug(
        "all_tiles_are_as_long",
        "cql/distribution.py",
        'within = functions.resolve("<", (before, in_longer))',
        'within = functions.resolve("<", (before, _number(0)))',
        "NTILE gives the rows that are left over a part of their own",
    ),
    Bug(
        "oldest_row_of_a_frame_is_out",
        "planner/running_frames.py",
        "WindowSpec(range=1 - reach)",
        "WindowSpec(range=max(1, -reach))",
        "a row that is just as old as RANGE allows is not in the frame",
    ),
    Bug(
        "rows_to_come_are_not_in_the_frame",
        "planner/running_frames.py",
        "return not key.descending and",
        "return",
        "with ORDER BY ts DESC a row is not told of those that come later",
    ),
    Bug(
        "all_of_a_coarse_tick_in_the_frame",
        "planner/running_frames.py",
        "if tick == 1 else query",
        "",
        "within a tick a row sees rows that come later",
    ),
    Bug(
        "descending_distance_ascends",
        "plan/rewrites/join_frames.py",
        "sign, far = {",
        "sign, _ = {",
        "with ORDER BY a DESC what precedes a row is what follows it",
    ),
)
