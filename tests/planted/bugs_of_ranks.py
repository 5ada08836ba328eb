"""Bugs of rows by their place in an order."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

RANKS: Final = (
    Bug(
        "limit_lets_one_more_in",
        "kernels/top_n/places.py",
        "leaves = select(nodes, root, most + 1, ROWS, WEIGHT)",
        "leaves = select(nodes, root, most + 2, ROWS, WEIGHT)",
        "a row that a better one has pushed out of LIMIT n stays in the answer",
    ),
    Bug(
        "offset_forgotten_when_rows_go",
        "kernels/top_n/places.py",
        "enters = select(nodes, root, least, ROWS, WEIGHT)",
        "enters = -1",
        "with OFFSET, the rows behind do not move up when one before them leaves",
    ),
    Bug(
        "dense_rank_as_rank",
        "kernels/top_n/places.py",
        "if number <= most and (alone or not dense):",
        "if number <= most:",
        "a second row of a value moves the others, as if DENSE_RANK were RANK",
    ),
    Bug(
        "ties_enter_one_by_one",
        "kernels/top_n/places.py",
        "        if v >= 0 and nodes[v, FIRST]:\n            break",
        "        break",
        "of rows that share a rank only one takes a place when they all should",
    ),
    Bug(
        "numbers_behind_stay",
        "kernels/top_n/places.py",
        "if precedes(nodes, key[end], low, texts):",
        "if precedes(nodes, low, key[end], texts):",
        "of two rows that change at one instant the better one does not move the numbers behind it",
    ),
    Bug(
        "nulls_where_they_are_not_told_to_be",
        "kernels/top_n/row_order.py",
        "_FIRST if key.nulls_first else _LAST",
        "_FIRST if key.descending else _LAST",
        "NULLS FIRST is ignored, and NULL comes first in descending order",
    ),
    Bug(
        "descending_texts_end_like_ascending_ones",
        "kernels/top_n/row_order.py",
        "out[at] = data[j] ^ turn",
        "out[at] = data[j] ^ (turn if j < offsets[i] + 9 else np.uint8(0))",
        "texts that share their first letters are in the wrong order",
    ),
    Bug(
        "first_of_a_group_lost",
        "kernels/top_n/tree.py",
        "if after >= 0 and not nodes[after, FIRST]:",
        "if after < 0:",
        "when the first row of a group leaves, the group is counted with the one before it",
    ),
    Bug(
        "rows_counted_on_the_wrong_side",
        "kernels/top_n/tree.py",
        "if nodes[above, RIGHT] == at:",
        "if nodes[above, LEFT] == at:",
        "the rows behind a row are counted as if they were before it",
    ),
    Bug(
        "best_rows_forgotten_too_early",
        "kernels/top_n/places.py",
        "+ nodes[v, WEIGHT] - most",
        "+ nodes[v, WEIGHT] - most + 1",
        "of rows that never leave, the last that has a place is forgotten and pushed out by nobody",
    ),
    Bug(
        "rows_counted_that_were_forgotten",
        "kernels/top_n/top_n.py",
        "self.tally.counts[0, values] = self.nodes[values, WEIGHT]",
        "self.tally.counts[0, gone] = 0",
        "a checkpoint is rejected after equal rows of which some had no place",
    ),
    Bug(
        "filter_below_numbers",
        "plan/rewrites/push_filters.py",
        "columns_of(part) <= partition and not",
        "columns_of(part) <= set(range(len(node.input.schema))) and not",
        "a condition takes rows away before they are numbered",
    ),
    Bug(
        "bound_off_by_one",
        "plan/rewrites/push_filters.py",
        'value - 1 if function == "<" else None',
        'value if function == "<" else None',
        "rn < 3 lets three rows through",
    ),
    Bug(
        "partition_shown_in_wrong_state",
        "kernels/top_n/top_n.py",
        "self.partitions.forget(partitions[self.roots[partitions] < 0])",
        "self.partitions.forget(partitions)",
        "the rows of a partition that comes again are numbered apart from those that are there",
    ),
)
