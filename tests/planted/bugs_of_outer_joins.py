"""Bugs of outer, semi and anti joins, and of the rewrite that makes joins of sub-queries."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

OUTER_JOINS: Final = (
    Bug(
        "pair_as_of_ends_with_the_table",
        "cql/bind_as_of.py",
        "return Window(ToStream(joined, Change.ISTREAM), spec)",
        "return Window(ToStream(joined, Change.DSTREAM), spec)",
        "a pair of FOR SYSTEM_TIME AS OF begins when its rows part",
    ),
    Bug(
        "zero_of_the_row_around_without_its_sign",
        "plan/rewrites/per_row.py",
        "if pa.types.is_floating(each.type))",
        "if pa.types.is_floating(each.type) and False)",
        "a sub-query under an aggregate sees -0.0 of the row around it as 0.0",
    ),
    Bug(
        "alone_at_the_end_of_all_input_left_out",
        "kernels/outer_join/outer_join.py",
        "side.used() if self.over and not over else no_int64s()",
        "no_int64s()",
        "as lifetimes, rows that are without a partner forever are missing",
    ),
    Bug(
        "open_rows_never_leave",
        "kernels/to_stream/direct_stream.py",
        "(rows.te < FOREVER) | (rows.open_id != NO_OPEN_ID)",
        "rows.te < FOREVER",
        "a row without a partner stays among the changes when one comes",
    ),
    Bug(
        "alone_at_the_frontier",
        "kernels/outer_join/watch.py",
        "== 0 and cover < frontier",
        "== 0 and cover <= frontier",
        "a row is alone for an instant when the next partner comes as the last one leaves",
    ),
    Bug(
        "cover_of_the_last_partner",
        "kernels/outer_join/watch.py",
        "marks[slot, COVER] = max(cover, pairs[2, i])",
        "marks[slot, COVER] = pairs[2, i]",
        "a partner that leaves early hides one that stays",
    ),
    Bug(
        "open_partners_not_counted",
        "kernels/outer_join/watch.py",
        "marks[slot, OPEN_PARTNERS] += 1",
        "marks[slot, OPEN_PARTNERS] = 1",
        "of two open partners the first that leaves leaves the row alone",
    ),
    Bug(
        "row_that_is_over_looked_at_again",
        "kernels/outer_join/watch.py",
        "marks[slot, COVER] = OPEN_END",
        "marks[slot, COVER] = te",
        "a row that comes and goes within a step is alone for good",
    ),
    Bug(
        "cover_to_the_end_of_nobody",
        "kernels/outer_join/watch.py",
        "if cover < min(entries[slot, TE], FOREVER):",
        "if cover < min(entries[slot, TA], FOREVER):",
        "a row whose last partner leaves before it is not alone until something else happens to it",
    ),
    Bug(
        "null_last_among_changes",
        "kernels/to_stream/direct_stream.py",
        "return np.int64(1) if there else np.int64(-1)",
        "return np.int64(-1) if there else np.int64(1)",
        "changes of one instant have NULL behind all other values",
    ),
    Bug(
        "timer_not_set_again",
        "kernels/outer_join/watch.py",
        "            marks[slot, TIMER] = NONE\n            settle(",
        "            settle(",
        "a cover that grew runs out and nobody notices",
    ),
    Bug(
        "null_key_lost",
        "kernels/outer_join/outer_join.py",
        "if null.any():",
        "if null.all():",
        "a row with a NULL in the key is missing, unless all rows of the step have one",
    ),
    Bug(
        "marks_left_behind_when_a_ring_grows",
        "kernels/outer_join/watch.py",
        "marks[positions & side.mask] = self.marks[positions & self.mask]",
        "marks[positions & self.mask] = self.marks[positions & self.mask]",
        "rows of a ring that grew have the partners of others",
    ),
    Bug(
        "bound_without_its_last_instant",
        "planner/time_bounds.py",
        "-(-longest // tick) * tick + tick",
        "max(-(-longest // tick) * tick, tick)",
        "a row is gone when the last one that matches comes",
    ),
    Bug(
        "bounds_not_chained",
        "planner/time_bounds.py",
        "first + second)",
        "first)",
        "of three streams one is forgotten before the third comes",
    ),
    Bug(
        "not_in_without_nulls",
        "plan/rewrites/join_sub_queries.py",
        "condition.operand, unknown=True)",
        "condition.operand)",
        "NOT IN is true though there is a NULL in the sub-query",
    ),
    Bug(
        "selection_pushed_below_the_other_side",
        "plan/rewrites/push_filters.py",
        '(_only_below, _only_from) if join.side == "left"',
        '(_only_below, _only_from) if join.side == "right"',
        "a selection of rows without a partner is asked of partners",
    ),
    Bug(
        "zeros_of_partners_taken_for_one",
        "kernels/tally.py",
        "encode_keys(columns, rows, signed_zeros=True)",
        "encode_keys(columns, rows)",
        "under negative tuples -0.0 without a partner is shown as 0.0",
    ),
    Bug(
        "compared_with_all_rows_that_might",
        "cql/compared_rows.py",
        "return _answer(rows, false, unknown, False)",
        "return _answer(rows, false, false, False)",
        "a > ALL (query) is true though a NULL is in the query",
    ),
    Bug(
        "case_of_exists_tested_by_its_first_arm",
        "plan/rewrites/join_sub_queries.py",
        'return tuple(Call("not", (each,), BOOLEAN) for each in case.conditions)',
        'return tuple(Call("not", (each,), BOOLEAN) for each in case.conditions[:1])',
        "rows are kept for which NOT (a, b) IN (query) is unknown",
    ),
)
