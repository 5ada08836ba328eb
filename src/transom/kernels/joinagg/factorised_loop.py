"""The loop of the factorised join-aggregate.

Rows come and go in the order of time. What a row changes in the answer follows from the partial aggregates of the other
inputs' bundles under its key: n rows of a bundle stand for n join rows, so nothing is multiplied out.

What happens to every row borrows its arrays: to count references to them costs more than what is done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.aggregate import exact_sum, ordered
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.jit import borrowing, jit
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.spec import (
    ARGUMENT,
    COUNT_ROWS,
    INPUT,
    INPUT_OFFSET,
    KIND,
    LEAST,
    OFFSET,
    SUM_FLOAT,
    SUM_WHOLE,
    TEXT,
)
from transom.kernels.joinagg.totals import CLOSED, COUNT_LEFT, GONE, MADE, TOUCHED, emit_rows, set_entry
from transom.kernels.joinagg.tuple_index import IndexArrays, find_or_make, hash_tuple

CLOCK, GROUPS, ENTRIES, LEFT = range(4)  # the instant, how many of the fresh groups and entries are used, entries left


class Happening(NamedTuple):
    """Rows that come and go, ascending in time."""

    t: Int64s
    slot: Int64s
    sign: Int64s


class BundleLayout(NamedTuple):
    """The query: how many inputs there are, those that are grouped by, the calls, and how many floating sums each
    group and each bundle has. Then the bundle of each row, and the links of the heaps that rows are in."""

    inputs: int
    group_inputs: Int64s
    everything: bool
    partial: bool
    table: Int64s
    width: int
    bundle_width: int
    row_bundle: Int64s
    links: Int64s


class Entries(NamedTuple):
    """The entries by (key, group), which of them have rows, and those that some instant left without."""

    pairs: IndexArrays
    alive: Int64s
    left: Int64s


class FreshNumbers(NamedTuple):
    """Numbers for groups and for entries."""

    groups: Int64s
    entries: Int64s


@jit
def factorise(i, events, layout, bundles, entries, fresh, used, cells, index, groups, out):  # type: ignore[no-untyped-def]
    """Resume from event i as far as there is room: the next event, and how many groups it may touch.

    `used` says how many of the fresh numbers are, and where the loop stands.
    """
    t, slot, sign = events
    inputs, group_inputs, everything, partial, table, width, _, row_bundle, links = layout
    pairs, alive, left = entries
    fresh_groups, fresh_entries = fresh
    words, b_rows, b_roots = bundles.words, bundles.rows, bundles.roots
    first, length, following = bundles.first, bundles.length, bundles.following
    rows, mark, touched, fill = groups.rows, groups.mark, out.touched, out.fill
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
                emit_rows(used[CLOCK], everything, partial, table, width, cells, groups, out)
            used[CLOCK] = t[i]
        s = slot[i]
        way = sign[i]
        bundle = row_bundle[s]
        key = words[0, bundle] // inputs
        me = words[0, bundle] % inputs
        met = 1
        for j in range(inputs):
            current[j] = first[key * inputs + j]
            if j != me:
                met *= length[key * inputs + j]
        current[me] = bundle
        room = len(touched) - max(max(fill[MADE], fill[CLOSED]), fill[GONE]) - fill[TOUCHED]
        room = min(room, len(fresh_groups) - used[GROUPS])
        if heaps:
            room = min(room, min(len(fresh_entries) - used[ENTRIES], len(left) - used[LEFT]))
        if met > room:
            return i, met
        i += 1
        came = b_rows[bundle] == 0
        b_rows[bundle] += way
        went = b_rows[bundle] == 0
        other = False  # whether the bundle has another MIN or MAX
        if not plain:
            other = _update(s, way, bundle, me, layout, changed, cells, bundles)
            if heaps:
                other = _reorder(s, way, bundle, me, table, changed, cells, b_roots, links)
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
                g = _enter(group_key, index, fresh_groups, used, mark, touched, fill)
                rows[g], beyond = wide.add_count(rows[g], way * weight)
                if beyond:
                    fill[COUNT_LEFT] = 1
                if not plain:
                    _contribute(g, s, way, me, weight, current, layout, cells, bundles, groups)
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
                            top = b_roots[table[c, INPUT_OFFSET], current[table[c, INPUT]]]
                            set_entry(c, g, entry, np.int64(-1) if went else top, table, cells, groups)
            for j in range(inputs):  # the next choice of bundles, as an odometer counts
                if j != me:
                    current[j] = following[current[j]]
                    if current[j] >= 0:
                        break
                    current[j] = first[key * inputs + j]
    emit_rows(used[CLOCK], everything, partial, table, width, cells, groups, out)
    return i, 0


@borrowing
def _enter(key, index, fresh, used, mark, touched, fill):  # type: ignore[no-untyped-def]
    """The group of these parts, to which something happens now."""
    words, head, chain = index
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


@borrowing
def _update(s, way, bundle, me, layout, changed, cells, bundles):  # type: ignore[no-untyped-def]
    """The row joins the counts and sums of its bundle, or leaves them."""
    table, width = layout.table, layout.bundle_width
    cell_hi, cell_lo, valid = cells.hi, cells.lo, cells.valid
    b_n, b_top, b_hi, b_lo, b_floats = bundles.n, bundles.top, bundles.hi, bundles.lo, bundles.floats
    for c in range(len(table)):
        changed[c] = 0
        kind = table[c, KIND]
        if kind == COUNT_ROWS or table[c, INPUT] != me:
            continue
        a = table[c, ARGUMENT]
        if valid[a, s] == 0:
            continue
        b_n[c, bundle] += way
        if kind == SUM_WHOLE:
            b_hi[c, bundle], b_lo[c, bundle], over = add_wide(
                b_hi[c, bundle], b_lo[c, bundle], cell_hi[a, s], cell_lo[a, s], way
            )
            if over != 0:
                b_top[c, bundle] += over
        elif kind == SUM_FLOAT:
            value = np.uint64(cell_lo[a, s]).view(np.float64)
            exact_sum.add(b_floats[bundle * width + table[c, INPUT_OFFSET]], value, way)
    return False


@borrowing
def _reorder(s, way, bundle, me, table, changed, cells, b_roots, links):  # type: ignore[no-untyped-def]
    """The row joins the heaps of its bundle, or leaves them. `changed` marks the calls that have another value
    now."""
    cell_hi, cell_lo, valid, start, length, arena, text_width = cells
    other = False
    for c in range(len(table)):
        kind = table[c, KIND]
        a = table[c, ARGUMENT]
        if kind < LEAST or table[c, INPUT] != me or valid[a, s] == 0:
            continue
        turn = 1 if kind == LEAST else -1
        index = table[c, INPUT_OFFSET]
        values = (cell_hi[a], cell_lo[a])
        text = (start, length, arena, text_width, table[c, TEXT])
        root = b_roots[index, bundle]
        if way > 0:
            b_roots[index, bundle] = ordered.insert(root, s, turn, links[index], values, text)
        else:
            b_roots[index, bundle] = ordered.remove(root, s, turn, links[index], values, text)
        changed[c] = b_roots[index, bundle] != root
        other = other or changed[c] != 0
    return other


@borrowing
def _contribute(g, s, way, me, weight, current, layout, cells, bundles, groups):  # type: ignore[no-untyped-def]
    """`weight` join rows of the row in slot s and the current bundles of the other inputs come to a group, or go."""
    table, width, bundle_width = layout.table, layout.width, layout.bundle_width
    cell_hi, cell_lo, valid = cells.hi, cells.lo, cells.valid
    b_rows, b_n, b_floats = bundles.rows, bundles.n, bundles.floats
    b_top, b_hi, b_lo = bundles.top, bundles.hi, bundles.lo
    counts, floats = groups.counts, groups.floats
    sum_top, sum_hi, sum_lo = groups.sum_top, groups.sum_hi, groups.sum_lo
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
                exact_times.add_value(floats[g * width + table[c, OFFSET]], value, way * weight)
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
            total = b_floats[other * bundle_width + table[c, INPUT_OFFSET]]
            exact_times.add_total(floats[g * width + table[c, OFFSET]], total, way * times)
