"""Bugs of FILTER, of variances, of what is first in an order, and of quantiles."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

AGGREGATES: Final = (
    Bug(
        "filter_ignored",
        "plan/aggregate_functions.py",
        "return value if self.condition is None else Case",
        "return value if self.arguments else Case",
        "FILTER leaves nothing out but of COUNT(*)",
    ),
    Bug(
        "sample_taken_for_all",
        "kernels/aggregate/exact_variance.py",
        "n - 1 if sample else n",
        "n",
        "VAR_SAMP is VAR_POP",
    ),
    Bug(
        "square_of_what_left_kept",
        "kernels/aggregate/exact_variance.py",
        "2 * used, 2 * power, sign_of_square)",
        "2 * used, 2 * power, abs(sign_of_square))",
        "a variance remembers what has passed",
    ),
    Bug(
        "descending_forgotten",
        "kernels/scalar/sort_key.py",
        "255 if way & 1 else 0",
        "0",
        "ARG_MAX is ARG_MIN",
    ),
    Bug(
        "null_before_all",
        "kernels/scalar/sort_key.py",
        "out[at] = 0 if way & 2 else 2",
        "out[at] = 0",
        "NULL comes first in an order in which it is last",
    ),
    Bug(
        "heir_forgotten",
        "kernels/aggregate/ranked.py",
        "weigh(heir, 1, nodes)",
        "weigh(heir, 0, nodes)",
        "of equal values one leaves, and a quantile of DISTINCT values misses the others",
    ),
    Bug(
        "weight_on_the_left_when_it_rises",
        "kernels/aggregate/ranked.py",
        "nodes[slot, BEFORE] = below + nodes[parent, BEFORE] + nodes[parent, OWN]",
        "nodes[slot, BEFORE] = below + nodes[parent, BEFORE]",
        "a quantile is off by the rows that changed places with others",
    ),
    Bug(
        "weight_left_behind",
        "kernels/aggregate/ranked.py",
        "weigh(slot, -nodes[slot, OWN], nodes)",
        "weigh(slot, 0, nodes)",
        "rows that left a tree are counted still",
    ),
    Bug(
        "quantile_one_too_far",
        "kernels/aggregate/accumulate.py",
        "(n * part + whole - np.int64(1)) // whole) - np.int64(1)",
        "(n * part + whole) // whole) - np.int64(1)",
        "QUANTILE_DISC is the next value where the fraction is met exactly",
    ),
    Bug(
        "separator_before_all",
        "kernels/aggregate/accumulate.py",
        "if at > offsets[i]:",
        "if at >= offsets[i] and counts[i] > 1 and len(separator) == 0:",
        "texts stand side by side with nothing in between",
    ),
    Bug(
        "listed_after_the_change",
        "kernels/negative/aggregate.py",
        "words[:, at + 3] = counts",
        "words[:, at + 3] = 0",
        "what departs of STRING_AGG under negative tuples is not what arrived",
    ),
    Bug(
        "total_of_a_rollup_is_left_out",
        "cql/grammar_grouping.py",
        "for count in range(len(parts), -1, -1)]\n\n\ndef _cube",
        "for count in range(len(parts), 0, -1)]\n\n\ndef _cube",
        "ROLLUP has no group of all",
    ),
    Bug(
        "bits_of_grouping_turned_round",
        "cql/bind_select.py",
        "for place in bits if",
        "for place in reversed(bits) if",
        "GROUPING(a, b) has the bit of a where that of b belongs",
    ),
)
