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
)
