"""The loop of the aggregate.

Rows come and go in the order of time, and each group that changed is looked at once an instant.
"""

from __future__ import annotations

import numpy as np

from transom.kernels.aggregate import exact_sum, ordered
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END

COUNT_ROWS, COUNT, SUM_WHOLE, SUM_FLOAT, LEAST_EVER, GREATEST_EVER, LEAST, GREATEST = range(8)
"""Kinds of calls. MIN and MAX come twice: over rows that never leave, and with a heap of the rows alive."""

KIND, ARGUMENT, DISTINCT, PLACE, TEXT = range(5)  # columns of `calls`: see AggregateKernel.table


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


@jit
def accumulate(  # type: ignore[no-untyped-def]
    t, slot, group, sign, everything, most, calls, cells, row_pair, pair_count, groups, heaps, floats, width, texts
):
    """Apply the events, ascending in t, and write a result for every group that shows another one than before.

    slot -1 makes an instant be looked at without a row (the origin of an aggregate over everything). There are `most`
    results at most.
    Results are (out_group, out_ta, out_te, out) with out[0..3, call, i] = top word, high word or slot, low word, count.
    Sums of whole numbers have three words, so that they may leave 128 bits on the way from one instant to the next.
    """
    hi, lo, valid = cells
    rows, shown, mark, counts, sum_top, sum_hi, sum_lo, last_top, last_hi, last_lo, last_n = groups
    roots, links = heaps
    start, length, arena, text_width = texts
    n = len(t)
    ncalls = len(calls)
    out_group = np.empty(most, dtype=np.int64)
    out_ta = np.empty(most, dtype=np.int64)
    out_te = np.full(most, OPEN_END, dtype=np.int64)
    out_top = np.empty((ncalls, most), dtype=np.int64)
    out_hi = np.empty((ncalls, most), dtype=np.int64)
    out_lo = np.empty((ncalls, most), dtype=np.uint64)
    out_n = np.empty((ncalls, most), dtype=np.int64)
    closed_holder = np.empty(most, dtype=np.int64)
    closed_te = np.empty(most, dtype=np.int64)
    touched = np.empty(most, dtype=np.int64)
    now_top = np.zeros(ncalls, dtype=np.int64)
    now_hi = np.zeros(ncalls, dtype=np.int64)
    now_lo = np.zeros(ncalls, dtype=np.uint64)
    now_n = np.zeros(ncalls, dtype=np.int64)
    made = 0
    closed = 0
    i = 0
    while i < n:
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
                for c in range(ncalls):
                    kind = calls[c, KIND]
                    if kind == COUNT_ROWS:
                        continue
                    a = calls[c, ARGUMENT]
                    d = calls[c, DISTINCT]
                    if d >= 0:  # only the first and the last of equal values count
                        pair = row_pair[d, s]
                        pair_count[d, pair] += way
                        if pair_count[d, pair] != (1 if way > 0 else 0):
                            continue
                    if valid[a, s] == 0:
                        continue
                    counts[c, g] += way
                    if kind == SUM_WHOLE:
                        sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], hi[a, s], lo[a, s], way)
                        if over != 0:
                            sum_top[c, g] += over
                    elif kind == SUM_FLOAT:
                        at = g * width + calls[c, PLACE]
                        exact_sum.add(floats[at], np.uint64(lo[a, s]).view(np.float64), way)
                    elif LEAST_EVER <= kind <= GREATEST_EVER:
                        a_hi, a_lo, b_hi, b_lo = hi[a, s], lo[a, s], sum_hi[c, g], sum_lo[c, g]
                        if kind == LEAST_EVER:
                            better = a_hi < b_hi or (a_hi == b_hi and a_lo < b_lo)
                        else:
                            better = a_hi > b_hi or (a_hi == b_hi and a_lo > b_lo)
                        if better or counts[c, g] == 1:
                            sum_hi[c, g] = a_hi
                            sum_lo[c, g] = a_lo
                    elif kind >= LEAST:
                        h = calls[c, PLACE]
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
                    closed_holder[closed] = shown[g]
                    closed_te[closed] = now
                    closed += 1
                elif shown[g] <= -2:
                    out_te[-2 - shown[g]] = now
                shown[g] = -1
                continue
            same = shown[g] != -1
            for c in range(ncalls):
                kind = calls[c, KIND]
                now_n[c] = rows[g] if kind == COUNT_ROWS else counts[c, g]
                now_top[c] = 0
                now_hi[c] = 0
                now_lo[c] = np.uint64(0)
                if kind == SUM_WHOLE:
                    now_top[c] = sum_top[c, g]
                    now_hi[c] = sum_hi[c, g]
                    now_lo[c] = sum_lo[c, g]
                elif kind == SUM_FLOAT:
                    at = g * width + calls[c, PLACE]
                    now_lo[c] = np.float64(exact_sum.rounded(floats[at])).view(np.uint64)
                elif LEAST_EVER <= kind <= GREATEST_EVER:
                    now_n[c] = 1 if counts[c, g] > 0 else 0
                    now_hi[c] = sum_hi[c, g]
                    now_lo[c] = sum_lo[c, g]
                elif kind >= LEAST:
                    now_hi[c] = roots[calls[c, PLACE], g]
                    now_n[c] = 1 if now_hi[c] >= 0 else 0
                if now_n[c] != last_n[c, g]:
                    same = False
                elif kind < LEAST:
                    same = same and now_hi[c] == last_hi[c, g] and now_lo[c] == last_lo[c, g]
                    same = same and now_top[c] == last_top[c, g]
                elif same and now_n[c] and now_hi[c] != last_hi[c, g]:
                    a = calls[c, ARGUMENT]
                    text = (start, length, arena, text_width, calls[c, TEXT])
                    same = ordered.compare(now_hi[c], last_hi[c, g], (hi[a], lo[a]), text) == 0
            for c in range(ncalls):
                last_top[c, g] = now_top[c]
                last_hi[c, g] = now_hi[c]
                last_lo[c, g] = now_lo[c]
                last_n[c, g] = now_n[c]
            if same:
                continue
            if shown[g] >= 0:
                closed_holder[closed] = shown[g]
                closed_te[closed] = now
                closed += 1
            elif shown[g] <= -2:
                out_te[-2 - shown[g]] = now
            shown[g] = -2 - made
            out_group[made] = g
            out_ta[made] = now
            for c in range(ncalls):
                out_top[c, made] = now_top[c]
                out_hi[c, made] = now_hi[c]
                out_lo[c, made] = now_lo[c]
                out_n[c, made] = now_n[c]
            made += 1
    words = (out_top[:, :made], out_hi[:, :made], out_lo[:, :made], out_n[:, :made])
    return (out_group[:made], out_ta[:made], out_te[:made], *words), (closed_holder[:closed], closed_te[:closed])
