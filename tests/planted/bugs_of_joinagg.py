"""Bugs of aggregates over joins."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

JOINAGG: Final = (
    Bug(
        "matches_counted_once",
        "kernels/joinagg/factorised_loop.py",
        "wide.times_count(weight, b_rows[current[j]])",
        "wide.times_count(weight, min(b_rows[current[j]], 1))",
        "a row counts once, however many rows of the other input it matches",
    ),
    Bug(
        "sum_multiplied_by_its_own_rows",
        "kernels/joinagg/factorised_loop.py",
        "times = weight // b_rows[other]",
        "times = weight",
        "SUM over another input than the one that changes is too large by a factor",
    ),
    Bug(
        "extreme_of_a_bundle_only_comes",
        "kernels/joinagg/factorised_loop.py",
        "changed[c] = b_roots[index, bundle] != root",
        "changed[c] = way > 0",
        "MIN and MAX go on showing a value whose row has left",
    ),
    Bug(
        "entry_kept_without_rows",
        "kernels/joinagg/factorised_loop.py",
        "alive[entry] = not went",
        "alive[entry] = True",
        "state grows with every key that has been",
    ),
    Bug(
        "exact_change_not_emitted_by_a_partition",
        "kernels/joinagg/totals.py",
        "same = False  # the exact sum",
        "same = same  # the exact sum",
        "a floating SUM stays as it was where one row leaves a partition and another comes",
    ),
    Bug(
        "null_extreme_of_a_partition_merged",
        "kernels/joinagg/merge.py",
        "np.where(state.kept.valid[a, slots] > 0, slots, -1)",
        "slots",
        "MIN over partitions is that of one which has no value at all",
    ),
    Bug(
        "digits_beyond_the_second_lost",
        "kernels/joinagg/exact_times.py",
        "_add_digit(total, index + 1, above & _LOW, low, high, sign)",
        "_add_digit(total, index + 1, above & _LOW, low, np.int64(0), sign)",
        "a floating SUM over more than 2^32 matches is wrong",
    ),
    Bug(
        "credit_where_ends_are_open",
        "kernels/joinagg/tactic.py",
        "if operator.open_ends:",
        "if operator.open_ends and i > 9:",
        "tc counts on ends that nobody knows yet",
    ),
    Bug(
        "two_columns_of_one_key_not_compared",
        "kernels/joinagg/shape.py",
        "equalities += [equal(first, other) for other in others]",
        "equalities += [equal(first, first) for other in others]",
        "a join on a.k = b.k AND a.x = b.k forgets the second condition",
    ),
    Bug(
        "a_change_begins_its_rows_anew",
        "kernels/joinagg/adaptive.py",
        "instead[still] = shown[positions[still]]",
        "instead[still] = out.open_id[still]",
        "what was shown when a tactic changed stays in the answer forever",
    ),
    Bug(
        "a_change_ends_rows_too_early",
        "kernels/alive_rows.py",
        "np.where(te == OPEN_END, FOREVER, te)",
        "np.where(te == OPEN_END, FOREVER, te - 1)",
        "after a change from pc rows end an instant too early",
    ),
    Bug(
        "a_change_turns_rows_around",
        "kernels/joinagg/hosted.py",
        'np.argsort(state.came[slots], kind="stable")',
        'np.argsort(-state.came[slots], kind="stable")',
        "after a change to pc rows that have ended keep others from ending",
    ),
    Bug(
        "a_change_forgets_open_ends",
        "kernels/alive_rows.py",
        "open_id = own.lifetimes.open_ids(own.capacity)[slots]",
        "open_id = np.full(len(slots), -1, dtype=np.int64)",
        "rows whose end was open when the tactic changed never end",
    ),
    Bug(
        "pairs_wait_after_a_change",
        "kernels/joinagg/adaptive.py",
        "        was.close(old, step)\n",
        "",
        "open row ids of pairs are never used again after a change",
    ),
    Bug(
        "changes_between_equals",
        "kernels/changing.py",
        "if now > BETTER * cost and",
        "if now > cost and",
        "a tactic changes to one that is hardly better",
    ),
)
