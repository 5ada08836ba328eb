"""The loop of the aggregate.

Rows come and go in the order of time, and each group that changed is looked at once an instant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.aggregate import exact_covariance, exact_sum, exact_variance, ordered, ranked
from transom.kernels.jit import borrowing, jit
from transom.kernels.kernel import OPEN_END

COUNT_ROWS, COUNT, SUM_WHOLE, SUM_FLOAT, VAR_POP, VAR_SAMP, COVAR_POP, COVAR_SAMP = range(8)
BIT_AND, BIT_OR, BIT_XOR, LEAST_EVER, GREATEST_EVER = range(8, 13)
LEAST, GREATEST, BETWEEN, RANKED, LISTED = range(13, 18)
"""Kinds of calls. Those of bits count how many values have each. MIN and MAX come twice: over rows that never leave,
where a group has the value, of a text its slot, and with a heap of the rows alive. The last three have a tree of the
rows alive: quantiles between two values, those that are one of them, and all rows in order."""

BITS = 64

KIND, ARGUMENT, DISTINCT, OFFSET, TEXT, PLACES, ONCE, PART, WHOLE, OTHER, TOTAL, LAST = range(12)
"""Columns of `calls`: see AggregateKernel.table."""

TOTAL_WORDS = (0, 1, 4, 1, 1, 1, 1, 1, *(1 + BITS,) * 3, 3, 3, 1, 1, 0, 0, 1)
"""Of a group each kind has so many: the count, then the high and the low word, and what is above both; or the bits."""

LAST_WORDS = (1, 1, 4, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 4)
"""What a group shows, in the same order; of what is a floating number the low word alone, of a heap the slot. Of all
rows in order: how often they changed, and where they are among the slots that are listed."""


@jit
def add_wide(hi, lo, other_hi, other_lo, sign):  # type: ignore[no-untyped-def]
    """(hi, lo) + sign * (other_hi, other_lo) as 128-bit numbers, and what is over: the sum is that and over * 2^128."""
    if sign < 0:
        low = lo - other_lo
        high = hi - other_hi - (np.int64(1) if lo < other_lo else np.int64(0))
        left = ((hi ^ other_hi) & (hi ^ high)) < 0
    else:
        low = lo + other_lo
        high = hi + other_hi + (np.int64(1) if low < lo else np.int64(0))
        left = ((hi ^ high) & (other_hi ^ high)) < 0
    if left:
        return high, low, np.int64(-1) if hi < 0 else np.int64(1)
    return high, low, np.int64(0)


@borrowing
def combined_bits(kind, counts):  # type: ignore[no-untyped-def]
    """The bits that all values have, that one has, or that an odd number of them has."""
    combined = np.uint64(0)
    for bit in range(BITS):
        have = counts[1 + bit]
        if kind == BIT_AND:
            is_set = 0 < have == counts[0]
        elif kind == BIT_OR:
            is_set = have > 0
        else:
            is_set = have % 2 == 1
        if is_set:
            combined |= np.uint64(1) << np.uint64(bit)
    return np.int64(combined)


@borrowing
def change_tree(root, slot, way, times, once, nodes, values, text):  # type: ignore[no-untyped-def]
    """The tree when a row came (way 1) or left (-1), which is in it `times` now: the very row, or one equal to it."""
    if way > 0 and times == 1:
        if once:
            return ranked.insert_once(root, slot, nodes, values, text)
        return ranked.insert(root, slot, 1, nodes, values, text)
    if way < 0 and times == 0:
        if once:
            return ranked.remove_once(root, slot, nodes, values, text)
        return ranked.remove(root, slot, nodes)
    if not once:
        ranked.weigh(slot, way, nodes)
    return root


@borrowing
def at_fraction(root, kind, part, whole, nodes, bits):  # type: ignore[no-untyped-def]
    """A quantile: the slot, or the bits of the double that lies between two slots."""
    n = nodes[root, ranked.WEIGHT]
    if kind == RANKED:
        return ranked.kth(root, max(np.int64(1), (n * part + whole - np.int64(1)) // whole) - np.int64(1), nodes)
    at = (n - np.int64(1)) * part
    left = at % whole
    at //= whole
    low = np.uint64(bits[ranked.kth(root, at, nodes)]).view(np.float64)
    value = low
    if left > 0:
        high = np.uint64(bits[ranked.kth(root, at + np.int64(1), nodes)]).view(np.float64)
        if low != high:
            value = low + (high - low) * (np.float64(left) / np.float64(whole)) + 0.0
    return np.float64(value if value == value else np.nan).view(np.int64)  # one NaN


@jit
def list_tree(root, nodes, listed, filled):  # type: ignore[no-untyped-def]
    """The slots of a tree in order, each as often as it counts, behind what is listed already."""
    need = filled + (nodes[root, ranked.WEIGHT] if root >= 0 else 0)
    if need > len(listed):
        bigger = np.empty(2 * need, dtype=np.int64)
        bigger[:filled] = listed[:filled]
        listed = bigger
    at = root
    while at >= 0 and nodes[at, ranked.LEFT] >= 0:
        at = nodes[at, ranked.LEFT]
    while at >= 0:
        for _ in range(nodes[at, ranked.OWN]):
            listed[filled] = at
            filled += 1
        at = ranked.beside(at, ranked.RIGHT, nodes)
    return listed, filled


@jit
def list_trees(roots, nodes, groups):  # type: ignore[no-untyped-def]
    """The slots of the trees of some groups, and how many there are of each."""
    listed = np.empty(16, dtype=np.int64)
    counts = np.empty(len(groups), dtype=np.int64)
    filled = 0
    for i in range(len(groups)):
        before = filled
        listed, filled = list_tree(roots[groups[i]], nodes, listed, filled)
        counts[i] = filled - before
    return listed[:filled].copy(), counts


@jit
def join_texts(offsets, counts, slots, texts, separator):  # type: ignore[no-untyped-def]
    """The texts in some slots, one behind the other: their bytes, and where each of the results begins."""
    start, length, arena, width, k = texts
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    for i in range(len(counts)):
        size = max(np.int64(0), counts[i] - 1) * len(separator)
        for at in range(offsets[i], offsets[i] + counts[i]):
            size += length[slots[at] * width + k]
        ends[i + 1] = ends[i] + size
    out = np.empty(ends[-1] + 1, dtype=np.uint8)
    to = 0
    fetched = 0
    for i in range(len(counts)):
        if i == fetched:  # texts that lie anywhere come sooner if they are asked for before they are needed
            fetched = min(i + ranked.AHEAD, len(counts))
            for following in range(i, fetched):
                for at in range(offsets[following], offsets[following] + min(counts[following], ranked.AHEAD)):
                    text = slots[at] * width + k
                    if length[text]:
                        out[-1] ^= arena[start[text]]
        for at in range(offsets[i], offsets[i] + counts[i]):
            if at > offsets[i]:
                for byte in separator:
                    out[to] = byte
                    to += 1
            text = slots[at] * width + k
            for j in range(start[text], start[text] + length[text]):
                out[to] = arena[j]
                to += 1
    return out[:-1], ends


class GroupEvents(NamedTuple):
    """Rows, by their slot, that come to groups or leave them (`sign`), ascending in time."""

    t: Int64s
    slot: Int64s
    group: Int64s
    sign: Int64s


@jit
def accumulate(  # type: ignore[no-untyped-def]
    events, everything, most, words, calls, cells, pairs, groups, heaps, exact, texts
):
    """Apply the events, ascending in t, and write a result for every group that shows another one than before.

    slot -1 makes an instant be looked at without a row (the origin of an aggregate over everything). There are `most`
    results at most. What belongs to a group lies together: its `totals`, and the words that it showed `last`; those are
    not kept where each row that comes changes what is shown. Results are (out_group, out_ta, out_te, out), with so many
    `words` in a row of `out`.
    Sums of whole numbers have three words, so that they may leave 128 bits on the way from one instant to the next.
    """
    t, slot, group, sign = events
    hi, lo, valid = cells
    row_pair, pair_count = pairs
    rows, shown, mark, totals, last = groups
    roots, links, tree_roots, tree_nodes = heaps
    start, length, arena, text_width = texts
    floats, width, moments, moment_width = exact
    scratch = np.zeros(exact_covariance.SCRATCH, dtype=np.int64)
    listed = np.empty(16, dtype=np.int64)
    filled = 0
    n = len(t)
    ncalls = len(calls)
    out_group = np.empty(most, dtype=np.int64)
    out_ta = np.empty(most, dtype=np.int64)
    out_te = np.full(most, OPEN_END, dtype=np.int64)
    out = np.empty((most, words), dtype=np.int64)
    closed_id = np.empty(most, dtype=np.int64)
    closed_te = np.empty(most, dtype=np.int64)
    touched = np.empty(most, dtype=np.int64)
    now_shown = np.zeros(words, dtype=np.int64)
    compares = last.shape[1] == words  # also where there is nothing but the group itself
    ways = np.empty(ranked.AHEAD + 1, dtype=np.int64)
    fetched = 0 if len(tree_roots) and tree_nodes.shape[1] >= ranked.LARGE else n
    made = 0
    closed = 0
    i = 0
    while i < n:
        if i >= fetched:
            fetched = min(i + ranked.AHEAD, n)
            trees = 0
            for c in range(ncalls):
                if calls[c, KIND] >= BETWEEN and calls[c, OFFSET] == trees:
                    a = calls[c, ARGUMENT]
                    ways[ranked.AHEAD] = ranked.fetch_paths(
                        slot, group, i, fetched, tree_roots[trees], tree_nodes[trees], (hi[a], lo[a]), ways
                    )
                    trees += 1
        now = t[i]
        ntouched = 0
        while i < n and t[i] == now:
            g = group[i]
            s = slot[i]
            if mark[g] == 0:
                mark[g] = 1
                touched[ntouched] = g
                ntouched += 1
            if s >= 0:
                way = sign[i]
                rows[g] += way
                trees = 0
                for c in range(ncalls):
                    kind = calls[c, KIND]
                    if kind == COUNT_ROWS:
                        continue
                    a = calls[c, ARGUMENT]
                    d = calls[c, DISTINCT]
                    if kind >= BETWEEN:
                        h = calls[c, OFFSET]
                        if kind == LISTED and valid[a, s]:
                            totals[g, calls[c, TOTAL]] += 1
                        if h == trees:  # the first call with this tree
                            trees += 1
                            times = np.int64(1 if way > 0 else 0)
                            if d >= 0:
                                pair = row_pair[d, s]
                                pair_count[d, pair] += way
                                times = pair_count[d, pair]
                            if valid[a, s]:
                                text = (start, length, arena, text_width, calls[c, TEXT])
                                tree_roots[h, g] = change_tree(
                                    tree_roots[h, g], s, way, times, calls[c, ONCE], tree_nodes[h], (hi[a], lo[a]), text
                                )
                        continue
                    if d >= 0:  # only the first and the last of equal values count
                        pair = row_pair[d, s]
                        pair_count[d, pair] += way
                        if pair_count[d, pair] != (1 if way > 0 else 0):
                            continue
                    if valid[a, s] == 0:
                        continue
                    at = calls[c, TOTAL]
                    totals[g, at] += way
                    if kind == SUM_WHOLE:
                        high, low, over = add_wide(
                            totals[g, at + 1], np.uint64(totals[g, at + 2]), hi[a, s], lo[a, s], way
                        )
                        totals[g, at + 1] = high
                        totals[g, at + 2] = np.int64(low)
                        if over != 0:
                            totals[g, at + 3] += over
                    elif kind == SUM_FLOAT:
                        exact_sum.add(floats[g * width + calls[c, OFFSET]], np.uint64(lo[a, s]).view(np.float64), way)
                    elif VAR_POP <= kind <= VAR_SAMP:
                        both = exact_variance.part_of(moments[g * moment_width + calls[c, OFFSET]])
                        if calls[c, PLACES] < 0:
                            exact_variance.add_float(both, np.uint64(lo[a, s]).view(np.float64), way, scratch)
                        else:
                            exact_variance.add_whole(both, hi[a, s], lo[a, s], way, scratch)
                    elif LEAST_EVER <= kind <= GREATEST_EVER and calls[c, TEXT] >= 0:
                        turn = 1 if kind == LEAST_EVER else -1
                        text = (start, length, arena, text_width, calls[c, TEXT])
                        if totals[g, at] == 1 or turn * ordered.compare(s, totals[g, at + 1], (hi[a], lo[a]), text) < 0:
                            totals[g, at + 1] = s
                    elif COVAR_POP <= kind <= COVAR_SAMP:
                        b = calls[c, OTHER]
                        exact_covariance.add(
                            moments[g * moment_width + calls[c, OFFSET]],
                            hi[a, s],
                            lo[a, s],
                            hi[b, s],
                            lo[b, s],
                            calls[c, PLACES] < 0,
                            way,
                            scratch,
                        )
                    elif BIT_AND <= kind <= BIT_XOR:
                        for bit in range(BITS):
                            totals[g, at + 1 + bit] += way * np.int64((lo[a, s] >> np.uint64(bit)) & np.uint64(1))
                    elif LEAST_EVER <= kind <= GREATEST_EVER:
                        a_hi, a_lo, b_hi, b_lo = hi[a, s], lo[a, s], totals[g, at + 1], np.uint64(totals[g, at + 2])
                        if kind == LEAST_EVER:
                            better = a_hi < b_hi or (a_hi == b_hi and a_lo < b_lo)
                        else:
                            better = a_hi > b_hi or (a_hi == b_hi and a_lo > b_lo)
                        if better or totals[g, at] == 1:
                            totals[g, at + 1] = a_hi
                            totals[g, at + 2] = np.int64(a_lo)
                    elif LEAST <= kind <= GREATEST:
                        h = calls[c, OFFSET]
                        turn = 1 if kind == LEAST else -1
                        values = (hi[a], lo[a])
                        text = (start, length, arena, text_width, calls[c, TEXT])
                        if way > 0:
                            roots[h, g] = ordered.insert(roots[h, g], s, turn, links[h], values, text)
                        else:
                            roots[h, g] = ordered.remove(roots[h, g], s, turn, links[h], values, text)
            i += 1
        for k in range(ntouched):
            g = touched[k]
            mark[g] = 0
            if not everything and rows[g] == 0:
                if shown[g] >= 0:
                    closed_id[closed] = shown[g]
                    closed_te[closed] = now
                    closed += 1
                elif shown[g] <= -2:
                    out_te[-2 - shown[g]] = now
                shown[g] = -1
                continue
            same = compares and shown[g] != -1
            for c in range(ncalls):
                kind = calls[c, KIND]
                at = calls[c, TOTAL]
                to = calls[c, LAST]
                now_shown[to] = rows[g] if kind == COUNT_ROWS else totals[g, at]
                if kind == SUM_WHOLE:
                    for j in range(1, 4):
                        now_shown[to + j] = totals[g, at + j]
                elif kind == SUM_FLOAT:
                    total = exact_sum.rounded(floats[g * width + calls[c, OFFSET]])
                    now_shown[to + 1] = np.float64(total).view(np.int64)
                elif VAR_POP <= kind <= VAR_SAMP:
                    least = 1 if kind == VAR_POP else 2
                    now_shown[to] = 1 if totals[g, at] >= least else 0
                    now_shown[to + 1] = 0
                    if now_shown[to]:
                        both = exact_variance.part_of(moments[g * moment_width + calls[c, OFFSET]])
                        spread = exact_variance.variance(both, totals[g, at], kind == VAR_SAMP, calls[c, PLACES])
                        now_shown[to + 1] = np.float64(spread).view(np.int64)
                elif COVAR_POP <= kind <= COVAR_SAMP:
                    least = 1 if kind == COVAR_POP else 2
                    now_shown[to] = 1 if totals[g, at] >= least else 0
                    now_shown[to + 1] = 0
                    if now_shown[to]:
                        pairs_total = moments[g * moment_width + calls[c, OFFSET]]
                        spread = exact_covariance.covariance(
                            pairs_total, totals[g, at], kind == COVAR_SAMP, calls[c, PLACES]
                        )
                        now_shown[to + 1] = np.float64(spread).view(np.int64)
                elif BIT_AND <= kind <= BIT_XOR:
                    now_shown[to] = 1 if totals[g, at] > 0 else 0
                    now_shown[to + 1] = combined_bits(kind, totals[g, at : at + 1 + BITS])
                elif LEAST_EVER <= kind <= GREATEST_EVER:
                    now_shown[to] = 1 if totals[g, at] > 0 else 0
                    now_shown[to + 1] = totals[g, at + 1]
                    now_shown[to + 2] = totals[g, at + 2]
                elif LEAST <= kind <= GREATEST:
                    now_shown[to + 1] = roots[calls[c, OFFSET], g]
                    now_shown[to] = 1 if now_shown[to + 1] >= 0 else 0
                if kind == LISTED:
                    now_shown[to] = 1 if tree_roots[calls[c, OFFSET], g] >= 0 else 0
                    now_shown[to + 1] = totals[g, at]
                elif kind >= BETWEEN:
                    root = tree_roots[calls[c, OFFSET], g]
                    now_shown[to] = 1 if root >= 0 else 0
                    now_shown[to + 1] = 0
                    if root >= 0:
                        now_shown[to + 1] = at_fraction(
                            root,
                            kind,
                            calls[c, PART],
                            calls[c, WHOLE],
                            tree_nodes[calls[c, OFFSET]],
                            lo[calls[c, ARGUMENT]],
                        )
                if not same:
                    continue
                if now_shown[to] != last[g, to]:
                    same = False
                elif kind == LISTED:
                    same = now_shown[to + 1] == last[g, to + 1]
                elif kind < LEAST or kind == BETWEEN:
                    for j in range(to + 1, to + LAST_WORDS[kind]):
                        same = same and now_shown[j] == last[g, j]
                elif now_shown[to] and now_shown[to + 1] != last[g, to + 1]:
                    a = calls[c, ARGUMENT]
                    text = (start, length, arena, text_width, calls[c, TEXT])
                    same = ordered.compare(now_shown[to + 1], last[g, to + 1], (hi[a], lo[a]), text) == 0
            for j in range(last.shape[1]):
                last[g, j] = now_shown[j]
            if same:
                continue
            for c in range(ncalls):
                if calls[c, KIND] == LISTED:
                    h = calls[c, OFFSET]
                    to = calls[c, LAST]
                    now_shown[to + 2] = filled
                    listed, filled = list_tree(tree_roots[h, g], tree_nodes[h], listed, filled)
                    now_shown[to + 3] = filled - now_shown[to + 2]
            if shown[g] >= 0:
                closed_id[closed] = shown[g]
                closed_te[closed] = now
                closed += 1
            elif shown[g] <= -2:
                out_te[-2 - shown[g]] = now
            shown[g] = -2 - made
            out_group[made] = g
            out_ta[made] = now
            for j in range(len(now_shown)):
                out[made, j] = now_shown[j]
            made += 1
    results = (out_group[:made], out_ta[:made], out_te[:made], out[:made])
    return results, (closed_id[:closed], closed_te[:closed]), listed[:filled]
