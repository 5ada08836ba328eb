"""The loop of the merge: partial rows come and go in the order of time, and each group that changed is emitted once."""

from __future__ import annotations

import numpy as np

from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.jit import jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.spec import COUNT_ROWS, KIND, LEAST, OFFSET, SUM_FLOAT, SUM_WHOLE
from transom.kernels.joinagg.totals import COUNT_LEFT, TOUCHED, emit_rows, set_entry


@jit
def add_up(  # type: ignore[no-untyped-def]
    t, slot, group, sign, brought, everything, table, width, cells, groups, out
):
    """Apply the events, ascending in t. Slot -1 makes its group be looked at without a row.

    A partial row in a slot has brought[0][slot] join rows, and per call counts, sums in three words, and exact floating
    sums (slot * width + place); in the heap h it is the entry of its own number with the value of the row in slot
    at[h, slot], which is its own, or -1.
    """
    p_rows, p_n, p_top, p_hi, p_lo, p_floats, p_at = brought
    rows, mark, counts, floats = groups.rows, groups.mark, groups.counts, groups.floats
    sum_top, sum_hi, sum_lo = groups.sum_top, groups.sum_hi, groups.sum_lo
    touched, fill = out.touched, out.fill
    i = 0
    while i < len(t):
        now = t[i]
        while i < len(t) and t[i] == now:
            g = group[i]
            s = slot[i]
            way = sign[i]
            i += 1
            if mark[g] == 0:
                mark[g] = 1
                touched[fill[TOUCHED]] = g
                fill[TOUCHED] += 1
            if s < 0:
                continue
            rows[g], beyond = wide.add_count(rows[g], way * p_rows[s])
            if beyond:
                fill[COUNT_LEFT] = 1
            for c in range(len(table)):
                kind = table[c, KIND]
                if kind == COUNT_ROWS:
                    continue
                if kind >= LEAST:
                    set_entry(c, g, s, p_at[table[c, OFFSET], s] if way > 0 else np.int64(-1), table, cells, groups)
                    continue
                counts[c, g] += way * p_n[c, s]  # never more than there are join rows
                if kind == SUM_WHOLE:
                    sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], p_hi[c, s], p_lo[c, s], way)
                    sum_top[c, g] += over + way * p_top[c, s]
                elif kind == SUM_FLOAT:
                    index = table[c, OFFSET]
                    exact_times.add_total(floats[g * width + index], p_floats[s * width + index], way)
        emit_rows(now, everything, np.bool_(False), table, width, cells, groups, out)
