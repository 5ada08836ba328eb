"""The bugs to plant: one mistake each, in one place, of the kind that an engineer really makes.

`old` occurs exactly once in its file below `src/transom`. Short texts from the middle of the code, so that a new
wording of a comment does not touch them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Bug:
    """In `file`, `old` becomes `new`; `why` says what a user would see."""

    name: str
    file: str
    old: str
    new: str
    why: str


WINDOWS: Final = (
    Bug(
        "rows_window_lost_close",
        "kernels/window/rows.py",
        "close(state.open.column(1)[:old].copy(), te)",
        "close(state.open.column(1)[1:old].copy(), te[1:])",
        "the oldest row of a ROWS window is pushed out and stays in the answer forever",
    ),
    Bug(
        "rows_range_ignores_range",
        "pipeline/build.py",
        "return RowsWindow(spec.rows, length)",
        "return RowsWindow(spec.rows)",
        "ROWS N RANGE T ends by count alone",
    ),
    Bug(
        "partition_range_ignores_earlier_end",
        "kernels/window/partition_rows.py",
        "end = min(t[i], nodes[2, old])",
        "end = t[i]",
        "a row of PARTITION BY .. ROWS N RANGE T that ended by time lives on to the row that pushes it out",
    ),
    Bug(
        "partition_window_lost_close",
        "kernels/window/partition_rows.py",
        "elif holder >= 0:\n                closed_holder[closed] = holder\n                closed_te[closed] = end",
        "elif holder > 0:\n                closed_holder[closed] = holder\n                closed_te[closed] = end",
        "the row with the first holder is pushed out of its partition and never ends",
    ),
    Bug(
        "partition_range_ends_the_wrong_row",
        "kernels/window/partition_rows.py",
        "if nodes[3, node] != serials[i]:",
        "if nodes[3, node] < 0:",
        "the time of a row that is long gone ends the row that has its place now",
    ),
    Bug(
        "slide_rounds_down",
        "kernels/window/slide_range.py",
        "-(-t // slide) * slide",
        "t // slide * slide",
        "a row shows at the multiple before it arrived",
    ),
    Bug(
        "slide_rows_ends_a_step_late",
        "kernels/window/slide_rows.py",
        'side="right"',
        'side="left"',
        "the last row that a sample of ROWS N SLIDE M should lose is never taken out",
    ),
    Bug(
        "window_beyond_the_end_of_time",
        "kernels/window/range.py",
        "np.minimum(t, FOREVER - length) + length",
        "t + length",
        "a long window near the end of time ends after forever, or overflows into the past",
    ),
    Bug(
        "now_lasts_a_microsecond",
        "pipeline/build.py",
        "return RangeWindow(tick)",
        "return RangeWindow(1)",
        "NOW ends within the tick, between two instants",
    ),
)

PROGRESS: Final = (
    Bug(
        "late_row_used",
        "pipeline/admission.py",
        "codes[timed[late]] = LATE",
        "codes[timed[late]] = FIT",
        "what was final is revised",
    ),
    Bug(
        "row_on_the_watermark_is_late",
        "pipeline/admission.py",
        "late: Mask = t < mark",
        "late: Mask = t <= mark",
        "a row that came exactly as late as was allowed is lost",
    ),
    Bug(
        "lateness_judged_by_batch",
        "pipeline/admission.py",
        "np.maximum.accumulate(t[:-1], out=before[1:])",
        "before[1:] = before[0]",
        "whether a row is late depends on how the input was cut",
    ),
    Bug(
        "equal_times_turned_in_a_batch",
        "pipeline/admission.py",
        'order = np.argsort(t, kind="stable")\n            rows, t',
        'order = np.argsort(-t, kind="stable")[::-1]\n            rows, t',
        "rows of one instant lose their arrival order when a batch is sorted, and ROWS counts other rows",
    ),
    Bug(
        "equal_times_turned_across_batches",
        "pipeline/admission.py",
        'order = np.argsort(t, kind="stable")\n            t, values',
        'order = np.argsort(-t, kind="stable")[::-1]\n            t, values',
        "rows of one instant from several batches lose their arrival order",
    ),
    Bug(
        "row_at_progress_released",
        "pipeline/admission.py",
        "count = int(np.searchsorted(part.t, upto))",
        'count = int(np.searchsorted(part.t, upto, side="right"))',
        "a row of the instant that is not final yet is taken before those that may still come ahead of it",
    ),
    Bug(
        "tick_not_applied",
        "pipeline/admission.py",
        "if self.tick > 1:",
        "if self.tick < 1:",
        "instants are not floored to the tick",
    ),
    Bug(
        "null_key_of_a_table_used",
        "pipeline/admission.py",
        "codes[null.to_numpy(zero_copy_only=False) & (codes == FIT)] = MISSING_KEY",
        "codes[null.to_numpy(zero_copy_only=False) & (codes == FIT)] = FIT",
        "an upsert without a key becomes a row that nothing can replace",
    ),
    Bug(
        "progress_of_the_fastest_input",
        "pipeline/driver.py",
        "return min((self.watermark(name) for name in self.inputs), default=FOREVER)",
        "return max((self.watermark(name) for name in self.inputs), default=FOREVER)",
        "rows of the slower input are taken after their time was called final",
    ),
    Bug(
        "origin_of_the_last_input",
        "pipeline/driver.py",
        "first = min((t for t in firsts if t is not None), default=None)",
        "first = max((t for t in firsts if t is not None), default=None)",
        "time begins when the last input has a row, and what came before it is lost",
    ),
    Bug(
        "set_origin_ignored",
        "pipeline/driver.py",
        'catalogue.options.get("origin")',
        "None",
        "SET origin does nothing",
    ),
    Bug(
        "refused_change_counted_twice",
        "pipeline/driver.py",
        "ledger.used -= len(unmatched)",
        "ledger.used -= 0",
        "the ledger of a table does not add up",
    ),
    Bug(
        "silent_stream_runs_ahead",
        "pipeline/driver.py",
        "reached = min(others, default=BEGINNING)",
        "reached = max(others, default=BEGINNING)",
        "an idle stream is raised past a stream that is slower than the fastest, and its rows become late",
    ),
    Bug(
        "idle_row_called_late",
        "pipeline/admission.py",
        "codes[timed[by_idleness]] = IDLE",
        "codes[timed[by_idleness]] = LATE",
        "the side table gives the wrong reason",
    ),
)

LIFETIMES: Final = (
    Bug(
        "ghost_kept",
        "kernels/kernel.py",
        "step.upto, ends), ta < te), holder",
        "step.upto, ends), ta <= te), holder",
        "a row that ends when it begins is shown to the user",
    ),
    Bug(
        "ghost_emitted_as_a_lifetime",
        "pipeline/emit.py",
        "kept = np.flatnonzero(te > ta)",
        "kept = np.flatnonzero(te >= ta)",
        "a row that turned out a ghost is written with an empty lifetime",
    ),
    Bug(
        "end_at_progress_is_due",
        "kernels/lifetimes.py",
        'np.searchsorted(run.te, upto, side="left")',
        'np.searchsorted(run.te, upto, side="right")',
        "a row leaves a step before the row that replaces it comes: they do not cancel",
    ),
    Bug(
        "unsorted_ends_looked_at_too_late",
        "kernels/lifetimes.py",
        "int(te.min())",
        "int(te.max())",
        "rows outlive their end until the latest of their batch is due",
    ),
    Bug(
        "only_the_first_observer_hears",
        "kernels/lifetimes.py",
        "slot = following[slot]",
        "slot = -1",
        "of the rows that share an open end, all but one stay forever",
    ),
    Bug(
        "holder_reused_within_the_step",
        "state/holders.py",
        "self.closed.append(holders)",
        "self.slots.give_back(holders)",
        "a closing is taken for that of the row that has the holder now",
    ),
    Bug(
        "union_loses_closings_of_the_right",
        "kernels/select.py",
        "left.ends + right.ends",
        "left.ends",
        "rows from the right of a UNION ALL never end",
    ),
)

RESTART: Final = (
    Bug(
        "restart_one_row_short",
        "state/codec.py",
        "return _checked(next(iter(reader)))",
        "return (batch := _checked(next(iter(reader)))).slice(0, max(len(batch) - 1, 1))",
        "the last of several waiting rows is lost by a restart",
    ),
    Bug(
        "restart_forgets_the_holders",
        "pipeline/driver.py",
        'self.state = saved["state"]',
        'self.state = replace(saved["state"], holders=self.state.holders)',
        "after a restart the ends of open rows reach others",
    ),
    Bug(
        "restart_a_queue_one_short",
        "state/codec.py",
        "return cls(**fields)",
        'return cls(**fields | ({"last": max(fields["last"] - 1, 0)} if "first" in fields else {}))',
        "the youngest open row of a row-count window is forgotten by a restart and never ends",
    ),
    Bug(
        "restart_forgets_unsorted_ends",
        "state/codec.py",
        "for f in dataclasses.fields(value)}",
        'for f in dataclasses.fields(value) if f.name != "unsorted"}',
        "a part of the state is not saved: rows whose end was known before a restart never leave",
    ),
)

COUNTING: Final = (
    Bug(
        "end_at_progress_counted",
        "kernels/tally.py",
        "gone = (delta.te < upto)",
        "gone = (delta.te <= upto)",
        "a row leaves a step before the row that replaces it comes: ISTREAM shows a row that did not change",
    ),
    Bug(
        "cancellation_skipped",
        "kernels/tally.py",
        "entry = entry_of[k]",
        "entry = -1",
        "a row that leaves as an equal one enters is told as new",
    ),
    Bug(
        "change_told_without_one",
        "kernels/tally.py",
        "if counts[0, k] != before[0, entry] or counts[1, k] != before[1, entry]:",
        "if k >= 0:",
        "RSTREAM speaks though the snapshot is what it was",
    ),
    Bug(
        "value_forgotten_too_early",
        "kernels/tally.py",
        "(self.counts[:, touched] == 0).all(axis=0)",
        "(self.counts[:, touched] == 0).any(axis=0)",
        "a value that is in one input of a set operation only is forgotten while it is there",
    ),
    Bug(
        "multiplicity_lost_close",
        "kernels/multiplicity.py",
        "closed += 1",
        "closed = 1",
        "of several rows that a set operation ends in one step all but one stay",
    ),
    Bug(
        "except_all_as_except",
        "kernels/set_operation.py",
        "np.maximum(left - right, 0) if self.all else (left > 0)",
        "np.minimum(left, 1) * (right == 0) if self.all else (left > 0)",
        "EXCEPT ALL forgets how often a row is there",
    ),
    Bug(
        "intersect_all_takes_the_greater_count",
        "kernels/set_operation.py",
        "np.minimum(left, right) if self.all",
        "np.maximum(left, right) if self.all",
        "INTERSECT ALL has rows that one side lacks",
    ),
    Bug(
        "union_keeps_duplicates",
        "planner/plan.py",
        "if node.all:\n                return both",
        "if node is not None:\n                return both",
        "UNION is UNION ALL",
    ),
    Bug(
        "istream_without_counts",
        "kernels/to_stream.py",
        "times = np.maximum(grew, 0)",
        "times = (grew > 0).astype(np.int64)",
        "of two equal rows that enter at once ISTREAM shows one",
    ),
    Bug(
        "dstream_shows_what_enters",
        "kernels/to_stream.py",
        "times = np.maximum(-grew, 0)",
        "times = np.abs(grew)",
        "DSTREAM has what enters as well",
    ),
    Bug(
        "rstream_without_counts",
        "kernels/to_stream.py",
        "np.repeat(alive, state.shown[alive])",
        "alive",
        "RSTREAM shows equal rows once",
    ),
    Bug(
        "rstream_stops_a_slide_early",
        "kernels/to_stream.py",
        "step.horizon + 1",
        "step.horizon",
        "the sample at the last end is missing",
    ),
    Bug(
        "rows_of_one_instant_in_any_order",
        "kernels/to_stream.py",
        "order = np.lexsort(by)",
        'order = np.argsort(t, kind="stable")',
        "the order of a derived stream depends on batches and history, and so does every ROWS window over it",
    ),
    Bug(
        "changes_enter_before_they_leave",
        "kernels/to_stream.py",
        "state.tally.keys.ranks(key), sign, t)",
        "state.tally.keys.ranks(key), 1 - sign, t)",
        "within an instant + comes before -, and an upsert on a key ends with the old row",
    ),
)

JOIN: Final = (
    Bug(
        "pair_of_rows_that_only_touch",
        "kernels/join/side.py",
        "and ta < entries[o, TE]",
        "and ta <= entries[o, TE]",
        "a row that leaves as its partner comes makes a pair without a lifetime",
    ),
    Bug(
        "pair_of_rows_that_only_touch_turned",
        "kernels/join/side.py",
        "and entries[o, TA] < te",
        "and entries[o, TA] <= te",
        "the same, when the row that leaves is the one that is looked for",
    ),
    Bug(
        "pair_begins_with_the_older_row",
        "kernels/join/join.py",
        "ta = np.maximum(state.left.ta[l], state.right.ta[r])",
        "ta = np.minimum(state.left.ta[l], state.right.ta[r])",
        "a pair is told for a time when one of its rows was not there",
    ),
    Bug(
        "open_pair_lost_close",
        "kernels/join/join.py",
        "for side in (0, 1):",
        "for side in (0,):",
        "a pair whose right row ends first never ends",
    ),
    Bug(
        "open_pair_ends_with_the_left_row",
        "kernels/join/open_pairs.py",
        "ends[count] = min(left_te[l], right_te[r])",
        "ends[count] = left_te[l]",
        "a pair whose right row ends first has no end, or a later one",
    ),
    Bug(
        "open_pair_left_in_the_other_list",
        "kernels/join/open_pairs.py",
        "elif side == 0:\n                first_right[r] = following",
        "elif side == 1:\n                first_right[r] = following",
        "a pair that has ended is ended again when its other row leaves",
    ),
    Bug(
        "oldest_row_of_the_ring_not_found",
        "kernels/join/side.py",
        "while at >= oldest:",
        "while at > oldest:",
        "the row at the tail of the ring makes no pairs any more",
    ),
    Bug(
        "ring_tail_moved_too_far",
        "kernels/join/ring_hash.py",
        "entries[oldest & mask, TE] < upto:",
        "entries[(oldest + 1) & mask, TE] < upto:",
        "a row is dropped when its successor would be due",
    ),
    Bug(
        "ring_for_ends_in_any_order",
        "planner/join.py",
        "growing = left.ends_grow and right.ends_grow",
        "growing = left.ends_grow or right.ends_grow",
        "a ring waits for its oldest row while younger ones have long ended",
    ),
    Bug(
        "null_keys_match",
        "kernels/join/side.py",
        "if not null.any():",
        "if len(null):",
        "NULL = NULL, or NULL = 0, is true in a join",
    ),
    Bug(
        "residual_skipped_for_a_single_pair",
        "kernels/join/join.py",
        "if self.residual is not None and len(a):",
        "if self.residual is not None and len(a) > 1:",
        "the rest of the predicate is not asked when a step has one candidate",
    ),
    Bug(
        "hash_taken_for_the_key",
        "kernels/join/side.py",
        "(not keyed or equal_bytes(",
        "(True or equal_bytes(",
        "texts whose hashes collide join",
    ),
    Bug(
        "unlinked_row_still_leads_on",
        "kernels/join/lazy_hash.py",
        "if following >= 0:\n            before[following] = previous",
        "if following < 0:\n            before[following] = previous",
        "a chain breaks when the neighbour of an ended row ends",
    ),
)

AGGREGATE: Final = (
    Bug(
        "aggregate_end_at_progress",
        "kernels/aggregate/aggregate.py",
        "gone = (delta.te < step.upto)",
        "gone = (delta.te <= step.upto)",
        "a group is empty for no time between a row that leaves and the one that replaces it: ISTREAM flickers",
    ),
    Bug(
        "aggregate_lost_close",
        "kernels/aggregate/accumulate.py",
        "rows[g] == 0:\n                if shown[g] >= 0:",
        "rows[g] == 0:\n                if shown[g] > 0:",
        "the last row of a group leaves and its result stays",
    ),
    Bug(
        "empty_group_keeps_a_row",
        "kernels/aggregate/accumulate.py",
        "if not everything and rows[g] == 0:",
        "if not everything and rows[g] < 0:",
        "a group without rows is shown with COUNT 0",
    ),
    Bug(
        "no_row_over_nothing",
        "kernels/aggregate/aggregate.py",
        "parts.append((np.array([step.origin]), np.array([-1]), 0))",
        "parts.extend(())",
        "a global aggregate has no row before the first row comes",
    ),
    Bug(
        "group_forgotten_too_early",
        "kernels/aggregate/aggregate.py",
        "gone = group[state.rows[group] == 0]",
        "gone = group[state.rows[group] <= 1]",
        "a group is forgotten with one row still in it, and its next row begins a second one",
    ),
    Bug(
        "same_total_by_the_high_word",
        "kernels/aggregate/accumulate.py",
        "same = same and now_hi[c] == last_hi[c, g] and now_lo[c] == last_lo[c, g]",
        "same = same and now_hi[c] == last_hi[c, g]",
        "a SUM that changes while the count does not is not told",
    ),
    Bug(
        "heap_loses_what_was_below",
        "kernels/aggregate/ordered.py",
        "return meld(root, below, turn, links, values, texts)",
        "return root",
        "MIN or MAX forgets rows when one in the middle leaves",
    ),
    Bug(
        "text_compared_by_its_first_bytes",
        "kernels/aggregate/ordered.py",
        "if k < 0:\n        return 0",
        "if k < 99:\n        return 0",
        "MIN of texts that agree on 16 bytes is any of them",
    ),
    Bug(
        "count_distinct_counts_duplicates",
        "kernels/aggregate/accumulate.py",
        "if pair_count[d, pair] != (1 if way > 0 else 0):",
        "if pair_count[d, pair] < 0:",
        "COUNT(DISTINCT) is COUNT",
    ),
    Bug(
        "float_sum_rounds_at_every_row",
        "kernels/aggregate/accumulate.py",
        "exact_sum.add(floats[at], np.uint64(lo[a, s]).view(np.float64), way)",
        "total = exact_sum.rounded(floats[at]) + way * np.uint64(lo[a, s]).view(np.float64)\n"
        "                        floats[at] = 0\n"
        "                        exact_sum.add(floats[at], total, 1)",
        "a SUM of floats depends on order and history",
    ),
    Bug(
        "float_sum_rounds_half_up",
        "kernels/aggregate/exact_sum.py",
        "if kept & np.int64(1) and (sticky or mantissa & np.int64(1)):",
        "if kept & np.int64(1):",
        "a SUM of floats is off by one in the last place at ties",
    ),
    Bug(
        "integer_sum_of_64_bits",
        "kernels/aggregate/cells.py",
        "return _decimals(type_, hi, lo, (n > 0).astype(np.uint8))",
        "return _decimals(type_, lo.view(np.int64) >> 63, lo, (n > 0).astype(np.uint8))",
        "a SUM of integers beyond 64 bits wraps around",
    ),
    Bug(
        "average_of_integers_is_an_integer",
        "kernels/aggregate/cells.py",
        "quotient = whole.astype(np.float64) / divisor",
        "quotient = whole.astype(np.float64) // divisor",
        "AVG of 1 and 2 is 1",
    ),
    Bug(
        "null_group_dropped",
        "kernels/aggregate/aggregate.py",
        "if len(delta):\n            slots",
        "if len(delta) and not any(delta.values.column(i).null_count == len(delta) for i in self.keys):\n            slots",
        "rows whose group is NULL are lost",
    ),
)

KEYS: Final = (
    Bug(
        "zero_has_a_sign",
        "kernels/keys.py",
        "doubles = values.astype(np.float64) + 0.0",
        "doubles = values.astype(np.float64)",
        "-0.0 and 0.0 are two groups and do not join",
    ),
    Bug(
        "nan_differs_from_nan",
        "kernels/keys.py",
        "np.where(np.isnan(doubles), np.nan, doubles).view(np.uint64)",
        "doubles.view(np.uint64)",
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
        "out[at + 1] = 0",
        "out[at + 1] = 1",
        "the order of texts that begin alike is not that of their bytes",
    ),
    Bug(
        "equal_hash_is_equal_group",
        "kernels/key_index.py",
        "elif equal_bytes(data, offsets[i], size, arena, start[at], length[at]):",
        "elif at >= 0:",
        "texts whose hashes collide are one group",
    ),
    Bug(
        "forgotten_key_stays_in_its_chain",
        "kernels/key_index.py",
        "chain[at] = chain[number]",
        "chain[at] = chain[at]",
        "a key that nobody holds is found again, with another's number",
    ),
)

TABLES: Final = (
    Bug(
        "upsert_keeps_the_old_row",
        "kernels/table.py",
        "if old >= 0 and (upsert or not enters[i]):",
        "if old >= 0 and not enters[i]:",
        "a key of an upsert table has all its rows at once",
    ),
    Bug(
        "minus_without_its_row_accepted",
        "kernels/table.py",
        "refused += 1",
        "refused += 0",
        "a - that took nothing away is counted as used",
    ),
    Bug(
        "table_lost_close",
        "kernels/table.py",
        "closed += 1",
        "closed = 1",
        "of several rows that leave a table in one step all but one stay",
    ),
    Bug(
        "static_table_from_the_step_on",
        "kernels/table.py",
        "ta = np.full(count, step.origin, dtype=np.int64)",
        "ta = np.full(count, step.upto - 1, dtype=np.int64)",
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
        "right=_push(node.right, parts))",
        "right=_push(node.right, ()))",
        "a filter above UNION ALL passes the rows of the right",
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
        "(columns_of(join.predicate) if join.predicate is not None else frozenset())",
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
        "rows_window_spread_over_buckets",
        "planner/window.py",
        'rows"), SINGLE, True, True)',
        'rows"), ANY, True, True)',
        "a fragment with a ROWS window would count the rows of each bucket by themselves",
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
        "kernels/join/side.py",
        "row, at, seen\n            o =",
        "row + 1, -2, seen\n            o =",
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
)

BUGS: Final = (
    *WINDOWS,
    *PROGRESS,
    *LIFETIMES,
    *RESTART,
    *COUNTING,
    *JOIN,
    *AGGREGATE,
    *KEYS,
    *TABLES,
    *PLAN,
    *GROWTH,
    *SCALAR,
)
