"""Bugs of keys, tables, plans, growing state and expressions."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

KEYS: Final = (
    Bug(
        "zero_has_a_sign",
        "kernels/keys.py",
        "unified = values.copy() if signed_zeros else values + values.dtype.type(0.0)",
        "unified = values.copy()",
        "-0.0 and 0.0 are two groups and do not join",
    ),
    Bug(
        "nan_differs_from_nan",
        "kernels/keys.py",
        "np.copyto(unified, np.nan, where=np.isnan(unified))",
        "pass",
        "NaNs of different origin (of inf - inf, of a file) are different groups",
    ),
    Bug(
        "nan_is_the_least",
        "kernels/keys.py",
        "negative = (bits & _SIGN) != 0",
        "negative = ((bits & _SIGN) != 0) | np.isnan(doubles)",
        "NaN comes first in a derived stream, and MAX is not NaN",
    ),
    Bug(
        "null_groups_by_what_lies_beneath",
        "kernels/keys.py",
        "hashes[null] =",
        "hashes[:0] =",
        "NULLs are told apart by the number that happens to stand under them",
    ),
    Bug(
        "text_keys_run_together",
        "kernels/keys.py",
        "out[at] = 255",
        "out[at] = 0",
        "a text with a zero byte ends early, and the columns after it run into it",
    ),
    Bug(
        "equal_hash_is_equal_group",
        "kernels/key_index.py",
        "elif equal_bytes(data, offsets[i], size, arena, start[at], length[at]):",
        "elif at >= 0:",
        "texts whose hashes collide are one group",
    ),
)

TABLES: Final = (
    Bug(
        "upsert_keeps_the_old_row",
        "kernels/scan/table.py",
        "if old >= 0 and (upsert or not enters[i]):",
        "if old >= 0 and not enters[i]:",
        "a key of an upsert table has all its rows at once",
    ),
    Bug(
        "minus_without_its_row_accepted",
        "kernels/scan/table.py",
        "count += 1",
        "count += 0",
        "a - that took nothing away is counted as used",
    ),
    Bug(
        "table_lost_close",
        "kernels/scan/table.py",
        "closed += 1",
        "closed = 1",
        "of several rows that leave a table in one step all but one stay",
    ),
    Bug(
        "static_table_from_the_step_on",
        "kernels/scan/table.py",
        "ta = np.full(count, step.origin, dtype=np.int64)",
        "ta = np.full(count, step.frontier - 1, dtype=np.int64)",
        "reference data is not there at the origin",
    ),
)

PLAN: Final = (
    Bug(
        "filter_pushed_below_rows",
        "plan/rewrites/push_filters.py",
        "return window.partition is not None and columns_of(predicate)",
        "return window.partition is None or columns_of(predicate)",
        "ROWS N counts only the rows that pass the filter",
    ),
    Bug(
        "filter_on_any_column_pushed_below_partition",
        "plan/rewrites/push_filters.py",
        "columns_of(predicate) <= set(window.partition)",
        "len(window.partition) > 0",
        "PARTITION BY .. ROWS N counts only the rows that pass the filter",
    ),
    Bug(
        "filter_pushed_below_a_slide",
        "plan/rewrites/push_filters.py",
        "return window.slide is None",
        "return True",
        "RSTREAM over slides stops before the last row that the filter hides has ended",
    ),
    Bug(
        "filter_on_one_side_of_a_set_operation",
        "plan/rewrites/push_filters.py",
        "right=self._push(node.right, parts))",
        "right=self._push(node.right, ()))",
        "a filter above UNION ALL passes the rows of the right",
    ),
    Bug(
        "growth_of_a_join_unnamed",
        "planner/growth.py",
        "if forever and not operator.sealed else None",
        "if forever and not operator.sealed and len(below) < 2 else None",
        "a join of streams without windows grows, and nobody says so",
    ),
    Bug(
        "column_of_union_pruned",
        "plan/rewrites/prune_columns.py",
        'node.kind == "union" and node.all:',
        'node.kind == "union":',
        "UNION compares only the columns that somebody reads, and loses rows",
    ),
    Bug(
        "key_of_a_join_pruned",
        "plan/rewrites/prune_columns.py",
        "(columns_of(predicate) if predicate is not None else frozenset())",
        "frozenset()",
        "a join on a column that is not selected cannot be planned",
    ),
    Bug(
        "inner_predicate_not_moved",
        "plan/rewrites/flatten_joins.py",
        "column: column + first for column",
        "column: column for column",
        "the predicate of a join inside a join reads the columns of another input",
    ),
    Bug(
        "rows_window_spread_over_partitions",
        "kernels/window/tactic.py",
        'rows{more}"), SINGLE, True, True)',
        'rows{more}"), ANY, True, True)',
        "a fragment with a ROWS window would count the rows of each partition by themselves",
    ),
)

GROWTH: Final = (
    Bug(
        "ring_loses_open_pairs_as_it_grows",
        "kernels/join/ring_hash.py",
        "first_pair[new] = self.first_pair[old]",
        "first_pair[new] = -1",
        "open pairs made before the ring grew never end",
    ),
    Bug(
        "chains_cut_as_the_table_grows",
        "kernels/join/lazy_hash.py",
        "entries[slot, CHAIN] = fresh[to]",
        "entries[slot, CHAIN] = -1",
        "rows of a join are not found any more once a side has grown",
    ),
    Bug(
        "keys_lost_as_the_index_grows",
        "kernels/key_index.py",
        "chain[at] = fresh[to]",
        "chain[at] = -1",
        "a group is begun a second time once there are many",
    ),
    Bug(
        "texts_not_followed_as_they_move",
        "kernels/row_store.py",
        "column.start[slots] = ends - lengths",
        "column.start[slots[:1]] = 0",
        "texts turn into pieces of others when the arena is packed",
    ),
    Bug(
        "block_of_pairs_begins_anew",
        "kernels/join/ring_sweep.py",
        "if at < oldest:",
        "if at < oldest or count == room:",
        "the rest of the partners of a row is skipped when a block of pairs is full",
    ),
)

SCALAR: Final = (
    Bug(
        "nan_compares_with_nothing",
        "kernels/scalar/comparison.py",
        "if a_nan is not None or b_nan is not None:",
        "if a_nan is not None and b_nan is None:",
        "NaN = NaN is false in a WHERE and true in a GROUP BY",
    ),
    Bug(
        "unknown_and_false_is_unknown",
        "kernels/scalar/comparison.py",
        '"and": pc.and_kleene',
        '"and": pc.and_',
        "NULL AND FALSE is NULL, and its NOT keeps no row",
    ),
    Bug(
        "guarded_branch_run_on_all_rows",
        "kernels/scalar/compiler.py",
        "return _folded(run_guarded if guarded else run,",
        "return _folded(run,",
        "CASE WHEN b <> 0 THEN a // b END fails on a row that does not take the branch",
    ),
    Bug(
        "month_without_an_end",
        "kernels/scalar/dates.py",
        "np.minimum(days - first, length - 1)",
        "(days - first)",
        "a month after January 31 is in March",
    ),
    Bug(
        "bucket_rounded_to_zero",
        "kernels/scalar/dates.py",
        "starts = pc.add(pc.multiply(floor_divide(passed, micros), whole(micros)), first)",
        "starts = pc.add(pc.multiply(pc.divide(passed, whole(micros)), whole(micros)), first)",
        "a moment before the year 2000 is in the bucket behind it",
    ),
    Bug(
        "part_that_is_not_there_is_empty",
        "kernels/scalar/text.py",
        "pc.greater(pc.list_value_length(pieces), at)",
        "pc.is_valid(pieces)",
        "SPLIT_INDEX beyond the last part is '', not NULL",
    ),
    Bug(
        "numbers_of_a_format_give_way",
        "kernels/scalar/formats.py",
        "{width if glued else 1},{width}",
        "1,{width}",
        "strptime('20241', '%Y%m%d') reads the year 202",
    ),
    Bug(
        "a_function_sees_null",
        "plan/python_function.py",
        "values = self._called([column.filter(whole) for column in columns])",
        "values = self._called(columns).filter(whole)",
        "a function of a program is called for the rows that have a NULL, though it is not to be",
    ),
    Bug(
        "any_length_will_do",
        "plan/python_function.py",
        "if len(values) != len(columns[0]):",
        "if len(values) > len(columns[0]):",
        "a function that gives too few values shifts those of the rows behind",
    ),
    Bug(
        "the_earlier_of_two_hours",
        "kernels/scalar/zones.py",
        "np.where(by_old & by_new, np.maximum(before, after)",
        "np.where(by_old & by_new, np.minimum(before, after)",
        "a local time that comes twice when clocks go back is taken for the earlier instant",
    ),
    Bug(
        "rules_end_in_2499",
        "kernels/scalar/zones.py",
        "like = year - (year - _LAST + _CYCLE - 1) // _CYCLE * _CYCLE",
        "like = year - (year - _LAST + _CYCLE) // _CYCLE * _CYCLE + 1",
        "beyond the years that are looked up, the clocks are set on the days of another year",
    ),
)
