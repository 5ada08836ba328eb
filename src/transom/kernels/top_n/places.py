"""What a change of the rows alive does to those that have a place: the values, by number, that are shown otherwise.

All changes of one instant in one partition are one change. Without the number in the answer a row that comes or goes
moves at most one row, or one group, over each of the two bounds: it is looked up. With it all rows behind move, so they
are taken away and shown anew, and those that are as before count for nothing.
"""

from __future__ import annotations

import numpy as np

from transom.kernels.jit import borrowing, jit
from transom.kernels.top_n.tree import (
    AHEAD,
    FIRST,
    GROUPS,
    LARGE,
    RIGHT,
    ROWS,
    WEIGHT,
    add_up,
    before,
    fetch_paths,
    group_at,
    last_of,
    link,
    neighbour,
    not_before,
    number_of,
    precedes,
    select,
    unlink,
)

ROW_NUMBER, RANK, DENSE_RANK = range(3)
NO_BOUND = 1 << 60
ENTRY = 6
T, VALUE, OLD, OLD_COUNT, NEW, NEW_COUNT = range(ENTRY)
"""An entry: at t a value that was shown OLD_COUNT times, by the number OLD, is shown NEW_COUNT times by the number NEW.
ROW_NUMBER gives equal rows numbers one behind the other, beginning with that one. Without numbers they are 0."""


@jit
def with_room(entries, done):  # type: ignore[no-untyped-def]
    """The entries with room for one more."""
    if done < len(entries):
        return entries
    bigger = np.empty((2 * done, ENTRY), dtype=np.int64)
    for e in range(done):
        copy_entry(entries, e, bigger, e)
    return bigger


@borrowing
def copy_entry(entries, e, to, at):  # type: ignore[no-untyped-def]
    for column in range(ENTRY):
        to[at, column] = entries[e, column]


@borrowing
def touch(entries, done, entry_of, t, v, number, count):  # type: ignore[no-untyped-def]
    """An entry for a value that was shown like that; there is room for it."""
    entry_of[v] = done
    entries[done, T] = t
    entries[done, VALUE] = v
    entries[done, OLD] = number
    entries[done, OLD_COUNT] = count
    entries[done, NEW] = 0
    entries[done, NEW_COUNT] = 0


@jit
def change_places(t, key, diff, rank, nodes, trees, shown, entry_of, texts):  # type: ignore[no-untyped-def]
    """Entries for all changes (diff[i] rows more of key[i] at t[i], ascending in t and then by partition).

    `rank` is function, least, most, whether numbers are shown, and whether what has no place is forgotten. Gives the
    entries, and the values of which rows were. `entry_of` is -1 everywhere before and after.
    """
    function, _, most, numbered, forgets = rank
    roots, part = trees
    entries = np.empty((len(t) + 64, ENTRY), dtype=np.int64)
    gone = np.empty(64, dtype=np.int64)
    done = np.int64(0)
    lost = np.int64(0)
    ways = np.empty(AHEAD + 1, dtype=np.int64)
    fetched = 0 if len(nodes) >= LARGE else len(t)
    i = 0
    while i < len(t):
        if i >= fetched:
            fetched = min(i + AHEAD, len(t))
            ways[AHEAD] = fetch_paths(nodes, trees, key, i, fetched, ways)
        now = t[i]
        partition = part[key[i]]
        end = i
        low = key[i]
        while end < len(t) and t[end] == now and part[key[end]] == partition:
            if precedes(nodes, key[end], low, texts):
                low = key[end]
            end += 1
        first = done
        if numbered:
            entries, done = list_behind(entries, done, False, now, low, rank, nodes, roots[partition], entry_of, texts)
            for k in range(i, end):
                change_rows(nodes, trees, key[k], diff[k], function, texts)
            entries, done = list_behind(entries, done, True, now, low, rank, nodes, roots[partition], entry_of, texts)
        else:
            for k in range(i, end):
                more = np.int64(1 if diff[k] > 0 else -1)
                for _ in range(abs(diff[k])):
                    entries, done = change_one(
                        entries, done, now, key[k], more, rank, nodes, trees, shown, entry_of, texts
                    )
            for e in range(first, done):
                entries[e, NEW_COUNT] = shown[entries[e, VALUE]]
        i = end
        last = done
        done = first
        for e in range(first, last):
            entry_of[entries[e, VALUE]] = -1
            same = entries[e, OLD] == entries[e, NEW] or entries[e, OLD_COUNT] == 0
            if entries[e, OLD_COUNT] != entries[e, NEW_COUNT] or not same:
                copy_entry(entries, e, entries, done)
                done += 1
        while forgets:
            v = beyond(nodes, roots[partition], function, most)
            if v < 0:
                break
            if lost == len(gone):
                gone = np.concatenate((gone, np.empty(lost, dtype=np.int64)))
            gone[lost] = v
            lost += 1
            surplus = before(nodes, v, ROWS, WEIGHT) + nodes[v, WEIGHT] - most
            if function == ROW_NUMBER and surplus < nodes[v, WEIGHT]:
                change_rows(nodes, trees, v, -surplus, function, texts)
                break
            unlink(nodes, trees, v, texts)
    return entries[:done], gone[:lost]


@borrowing
def change_rows(nodes, trees, v, diff, function, texts):  # type: ignore[no-untyped-def]
    """Count so many more rows of a value, or fewer; nobody is shown otherwise."""
    if nodes[v, WEIGHT] == 0:
        nodes[v, WEIGHT] = diff
        link(nodes, trees, v, function != ROW_NUMBER, texts)
    elif nodes[v, WEIGHT] + diff == 0:
        unlink(nodes, trees, v, texts)
    else:
        nodes[v, WEIGHT] += diff
        add_up(nodes, v, diff, 0)


@borrowing
def beyond(nodes, root, function, most):  # type: ignore[no-untyped-def]
    """The last value, if rows of it are behind the last place; -1: there is none."""
    v = last_of(nodes, root)
    if v < 0:
        return v
    if function == ROW_NUMBER:
        return v if nodes[root, ROWS] > most else -1
    return v if number_of(nodes, v, function == DENSE_RANK) > most else -1


@jit
def list_behind(entries, done, again, now, low, rank, nodes, root, entry_of, texts):  # type: ignore[no-untyped-def]
    """Note what is shown from the value `low` on: as what it was, and when it is done `again`, as what it is now."""
    function, least, most, _, _ = rank
    at = not_before(nodes, root, low, texts)
    if at < 0:
        return entries, done
    rows = before(nodes, at, ROWS, WEIGHT)
    groups = before(nodes, at, GROUPS, FIRST)
    if function == DENSE_RANK and groups + nodes[at, FIRST] < least:
        at = select(nodes, root, least, GROUPS, FIRST)
        groups = least - 1
    elif function != DENSE_RANK and rows + nodes[at, WEIGHT] < least:
        at = select(nodes, root, least, ROWS, WEIGHT)
        if at >= 0:
            rows = before(nodes, at, ROWS, WEIGHT)
    number = np.int64(0)
    if at >= 0 and function == RANK:
        number = number_of(nodes, at, False)
    while at >= 0:
        count = nodes[at, WEIGHT]
        groups += nodes[at, FIRST]
        if function == ROW_NUMBER:
            number = max(rows + 1, least)
            count = min(rows + count, most) - number + 1
        elif function == DENSE_RANK:
            number = groups
        elif nodes[at, FIRST]:
            number = rows + 1
        if number > most:
            break
        if number >= least and count > 0:
            e = entry_of[at]
            if e < 0:
                entries = with_room(entries, done)
                touch(entries, done, entry_of, now, at, number, count)
                if again:
                    entries[done, OLD] = 0
                    entries[done, OLD_COUNT] = 0
                e = done
                done += 1
            if again:
                entries[e, NEW] = number
                entries[e, NEW_COUNT] = count
        rows += nodes[at, WEIGHT]
        at = neighbour(nodes, at, RIGHT)
    return entries, done


@jit
def change_one(entries, done, now, v, more, rank, nodes, trees, shown, entry_of, texts):  # type: ignore[no-untyped-def]
    """One row of a value comes (`more` is 1) or goes (-1): who takes a place, who loses his."""
    function, least, most, _, _ = rank
    fresh = more > 0 and nodes[v, WEIGHT] == 0
    if more > 0:
        change_rows(nodes, trees, v, 1, function, texts)
    root = trees[0][trees[1][v]]
    enters = leaves = np.int64(-1)
    if function == ROW_NUMBER:
        number = before(nodes, v, ROWS, WEIGHT) + nodes[v, WEIGHT]
        if number <= most:
            leaves = select(nodes, root, most + 1, ROWS, WEIGHT)
            if number < least:
                enters = select(nodes, root, least, ROWS, WEIGHT)
    else:
        dense = function == DENSE_RANK
        number = number_of(nodes, v, dense)
        alone = False
        if nodes[v, FIRST] and (fresh or (more < 0 and nodes[v, WEIGHT] == 1)):
            after = neighbour(nodes, v, RIGHT)
            alone = after < 0 or nodes[after, FIRST] == 1
        if number <= most and (alone or not dense):
            leaves = group_at(nodes, root, most + 1, dense)
            if number < least:
                enters = group_at(nodes, root, least, dense)
    if more < 0:
        enters, leaves = leaves, enters
    if least <= most:
        if enters >= 0:
            entries, done = show_more(entries, done, now, enters, True, function, nodes, shown, entry_of)
        if leaves >= 0:
            entries, done = show_more(entries, done, now, leaves, False, function, nodes, shown, entry_of)
        if least <= number <= most:
            if entry_of[v] < 0:
                entries = with_room(entries, done)
                touch(entries, done, entry_of, now, v, 0, shown[v])
                done += 1
            shown[v] += more
    if more < 0:
        change_rows(nodes, trees, v, -1, function, texts)
    return entries, done


@jit
def show_more(entries, done, now, v, more, function, nodes, shown, entry_of):  # type: ignore[no-untyped-def]
    """One row of the value more, or fewer, is shown; of a group that has one number, all of its rows or none."""
    while v >= 0:
        if entry_of[v] < 0:
            entries = with_room(entries, done)
            touch(entries, done, entry_of, now, v, 0, shown[v])
            done += 1
        if function == ROW_NUMBER:
            shown[v] += 1 if more else -1
            break
        shown[v] = nodes[v, WEIGHT] if more else 0
        v = neighbour(nodes, v, RIGHT)
        if v >= 0 and nodes[v, FIRST]:
            break
    return entries, done
