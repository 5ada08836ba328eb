"""The loop of the factorised join-aggregate.

Rows come and go in the order of time. What a row changes in the answer follows from the partial aggregates of the other
inputs' bundles under its key: n rows of a bundle stand for n join rows, so nothing is multiplied out.

What happens to every row takes its arrays one by one: to take them out of tuples costs more than what is done.
"""

from __future__ import annotations

import numpy as np

from transom.kernels.aggregate import exact_sum, ordered
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.jit import inlined, jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    COUNT_ROWS,
    INPUT,
    INPUT_PLACE,
    KIND,
    LEAST,
    PLACE,
    SUM_FLOAT,
    SUM_WHOLE,
    TEXT,
)
from transom.kernels.joinagg.totals import CLOSED, COUNT_LEFT, GONE, MADE, TOUCHED, set_entry, tell
from transom.kernels.joinagg.tuple_index import find_or_make, hash_tuple

CLOCK, GROUPS, ENTRIES, LEFT = range(4)  # the instant, how many of the fresh groups and entries are used, entries left


@jit
def factorise(  # type: ignore[no-untyped-def]
    i, t, slot, sign, row_bundle, links, inputs, group_inputs, bundles, pairs, alive, left, fresh, used,
    partial, table, widths, cells, index, groups, out,
):  # fmt: skip
    """Go on from event i as far as there is room: the next event, and how many groups it may touch.

    `pairs` and `alive` are the entries by (key, group), `left` those that some instant left without rows; `fresh` are
    numbers for groups and entries. `widths` are those of the floats of groups and of bundles.
    """
    words, b_rows, b_n, b_top, b_hi, b_lo, b_roots, b_floats, first, length, following = bundles
    cell_hi, cell_lo, valid, text_start, text_length, arena, text_width = cells
    rows, shown, mark, counts, sum_hi, sum_lo, last_hi, last_lo, last_n, floats, roots, _, at = groups[:13]
    out_group, out_ta, out_te, out_rows, out_hi, out_lo, out_n, out_floats, holder, end, gone, touched, fill = out[:13]
    sum_top, last_top, out_top = groups[13], groups[14], out[13]
    group_words, head, chain = index
    fresh_groups, fresh_entries = fresh
    heaps = len(b_roots) > 0
    plain = True  # COUNT(*) alone
    for c in range(len(table)):
        plain = plain and table[c, KIND] == COUNT_ROWS
    current = np.empty(inputs, dtype=np.int64)
    group_key = np.zeros(max(len(group_inputs), 1), dtype=np.int64)
    entry_key = np.empty(2, dtype=np.int64)
    changed = np.zeros(len(table), dtype=np.int64)
    while i < len(t):
        if t[i] != used[CLOCK]:
            if fill[TOUCHED]:
                tell(
                    used[CLOCK], False, partial, table, widths[0],
                    cell_hi, cell_lo, text_start, text_length, arena, text_width, rows, shown, mark, counts, sum_top,
                    sum_hi, sum_lo, last_top, last_hi, last_lo, last_n, floats, roots, at, out_group, out_ta, out_te,
                    out_rows, out_top, out_hi, out_lo, out_n, out_floats, holder, end, gone, touched, fill,
                )  # fmt: skip
            used[CLOCK] = t[i]
        s = slot[i]
        way = sign[i]
        mine = row_bundle[s]
        key = words[0, mine] // inputs
        me = words[0, mine] % inputs
        met = 1
        for j in range(inputs):
            current[j] = first[key * inputs + j]
            if j != me:
                met *= length[key * inputs + j]
        current[me] = mine
        room = len(touched) - max(max(fill[MADE], fill[CLOSED]), fill[GONE]) - fill[TOUCHED]
        room = min(room, len(fresh_groups) - used[GROUPS])
        if heaps:
            room = min(room, min(len(fresh_entries) - used[ENTRIES], len(left) - used[LEFT]))
        if met > room:
            return i, met
        i += 1
        came = b_rows[mine] == 0
        b_rows[mine] += way
        went = b_rows[mine] == 0
        other = False  # whether the bundle has another MIN or MAX
        if not plain:
            other = _update(
                s, way, mine, me, table, widths[1], changed, cell_hi, cell_lo, valid, b_n, b_top, b_hi, b_lo, b_floats
            )
            if heaps:
                other = _reorder(s, way, mine, me, table, changed, cells, b_roots, links)
        while met > 0:
            met -= 1
            weight = np.int64(1)
            for j in range(inputs):
                if j != me:
                    weight, beyond = wide.times_count(weight, b_rows[current[j]])
                    if beyond:
                        fill[COUNT_LEFT] = 1
            if weight > 0:
                for p in range(len(group_inputs)):
                    group_key[p] = words[1, current[group_inputs[p]]]
                g = _enter(group_key, group_words, head, chain, fresh_groups, used, mark, touched, fill)
                rows[g], beyond = wide.add_count(rows[g], way * weight)
                if beyond:
                    fill[COUNT_LEFT] = 1
                if not plain:
                    _contribute(
                        g, s, way, me, weight, current, table, widths[0], widths[1], cell_hi, cell_lo, valid,
                        b_rows, b_n, b_top, b_hi, b_lo, b_floats, counts, sum_top, sum_hi, sum_lo, floats,
                    )  # fmt: skip
                if heaps and (came or went or other):
                    entry_key[0] = key
                    entry_key[1] = g
                    entry, used[ENTRIES] = find_or_make(entry_key, pairs, fresh_entries, used[ENTRIES])
                    alive[entry] = not went
                    if went:
                        left[used[LEFT]] = entry
                        used[LEFT] += 1
                    for c in range(len(table)):
                        if table[c, KIND] >= LEAST and (came or went or changed[c]):
                            top = b_roots[table[c, INPUT_PLACE], current[table[c, INPUT]]]
                            set_entry(c, g, entry, np.int64(-1) if went else top, table, cells, groups)
            for j in range(inputs):  # the next choice of bundles, as an odometer counts
                if j != me:
                    current[j] = following[current[j]]
                    if current[j] >= 0:
                        break
                    current[j] = first[key * inputs + j]
    tell(
        used[CLOCK], False, partial, table, widths[0],
        cell_hi, cell_lo, text_start, text_length, arena, text_width, rows, shown, mark, counts, sum_top,
        sum_hi, sum_lo, last_top, last_hi, last_lo, last_n, floats, roots, at, out_group, out_ta, out_te,
        out_rows, out_top, out_hi, out_lo, out_n, out_floats, holder, end, gone, touched, fill,
    )  # fmt: skip
    return i, 0


@inlined
def _enter(key, words, head, chain, fresh, used, mark, touched, fill):  # type: ignore[no-untyped-def]
    """The group of these parts, to which something happens now."""
    bucket = hash_tuple(key, len(words)) & np.uint64(len(head) - 1)
    g = head[bucket]
    while g >= 0:
        same = True
        for w in range(len(words)):
            same = same and words[w, g] == key[w]
        if same:
            break
        g = chain[g]
    if g < 0:
        g = fresh[used[GROUPS]]
        used[GROUPS] += 1
        for w in range(len(words)):
            words[w, g] = key[w]
        chain[g] = head[bucket]
        head[bucket] = g
    if mark[g] == 0:
        mark[g] = 1
        touched[fill[TOUCHED]] = g
        fill[TOUCHED] += 1
    return g


@inlined
def _update(  # type: ignore[no-untyped-def]
    s, way, mine, me, table, width, changed, cell_hi, cell_lo, valid, b_n, b_top, b_hi, b_lo, b_floats
):
    """The row joins the counts and sums of its bundle, or leaves them."""
    for c in range(len(table)):
        changed[c] = 0
        kind = table[c, KIND]
        if kind == COUNT_ROWS or table[c, INPUT] != me:
            continue
        a = table[c, ARGUMENT]
        if valid[a, s] == 0:
            continue
        b_n[c, mine] += way
        if kind == SUM_WHOLE:
            b_hi[c, mine], b_lo[c, mine], over = add_wide(
                b_hi[c, mine], b_lo[c, mine], cell_hi[a, s], cell_lo[a, s], way
            )
            if over != 0:
                b_top[c, mine] += over
        elif kind == SUM_FLOAT:
            value = np.uint64(cell_lo[a, s]).view(np.float64)
            exact_sum.add(b_floats[mine * width + table[c, INPUT_PLACE]], value, way)
    return False


@inlined
def _reorder(s, way, mine, me, table, changed, cells, b_roots, links):  # type: ignore[no-untyped-def]
    """The row joins the heaps of its bundle, or leaves them. `changed` tells the calls that have another value now."""
    cell_hi, cell_lo, valid, start, length, arena, text_width = cells
    other = False
    for c in range(len(table)):
        kind = table[c, KIND]
        a = table[c, ARGUMENT]
        if kind < LEAST or table[c, INPUT] != me or valid[a, s] == 0:
            continue
        turn = 1 if kind == LEAST else -1
        place = table[c, INPUT_PLACE]
        values = (cell_hi[a], cell_lo[a])
        text = (start, length, arena, text_width, table[c, TEXT])
        root = b_roots[place, mine]
        if way > 0:
            b_roots[place, mine] = ordered.insert(root, s, turn, links[place], values, text)
        else:
            b_roots[place, mine] = ordered.remove(root, s, turn, links[place], values, text)
        changed[c] = b_roots[place, mine] != root
        other = other or changed[c] != 0
    return other


@inlined
def _contribute(  # type: ignore[no-untyped-def]
    g, s, way, me, weight, current, table, width, bundle_width, cell_hi, cell_lo, valid,
    b_rows, b_n, b_top, b_hi, b_lo, b_floats, counts, sum_top, sum_hi, sum_lo, floats,
):  # fmt: skip
    """`weight` join rows of the row in slot s and the current bundles of the other inputs come to a group, or go."""
    for c in range(len(table)):
        kind = table[c, KIND]
        if kind == COUNT_ROWS or kind >= LEAST:
            continue
        if table[c, INPUT] == me:
            a = table[c, ARGUMENT]
            if valid[a, s] == 0:
                continue
            counts[c, g] += way * weight  # never more than there are join rows
            if kind == SUM_WHOLE:
                hi, lo, top = wide.times(cell_hi[a, s], cell_lo[a, s], weight)
                sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], hi, lo, way)
                if over != 0 or top != 0:
                    sum_top[c, g] += over + way * top
            elif kind == SUM_FLOAT:
                value = np.uint64(cell_lo[a, s]).view(np.float64)
                exact_times.add_value(floats[g * width + table[c, PLACE]], value, way * weight)
            continue
        other = current[table[c, INPUT]]
        if b_n[c, other] == 0:
            continue
        times = weight // b_rows[other]  # of each row of that bundle: what is left of the weight without it
        counts[c, g] += way * times * b_n[c, other]
        if kind == SUM_WHOLE:
            hi, lo, top = wide.times(b_hi[c, other], b_lo[c, other], times)
            top += b_top[c, other] * times
            sum_hi[c, g], sum_lo[c, g], over = add_wide(sum_hi[c, g], sum_lo[c, g], hi, lo, way)
            if over != 0 or top != 0:
                sum_top[c, g] += over + way * top
        elif kind == SUM_FLOAT:
            total = b_floats[other * bundle_width + table[c, INPUT_PLACE]]
            exact_times.add_total(floats[g * width + table[c, PLACE]], total, way * times)
