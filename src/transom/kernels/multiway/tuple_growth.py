"""How the tuples that a forest keeps come and go (`kept_tuples.py` says what is in which array).

Those of all nodes are in one array, so that one call does for a new row what there is to do in all the nodes that it is
in. Where room runs out a loop stops, says where, and is called again.
"""

from __future__ import annotations

import numpy as np

from transom.core.time import FOREVER
from transom.kernels.jit import inlined, jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.multiway.tuple_chains import (
    AHEAD,
    BEGIN,
    CELL,
    END,
    LINK,
    NODE,
    OPEN,
    WORDS,
    bucket,
    link_all,
    same,
    unlink,
)

OF, OWNER, POSITION, NEXT, BACK, ALSO, WAITING = range(7)  # of a cell
ROOM, CELL_ROOM = range(2)  # free tuples and cells
HOP, ROW, AT, MADE, SEEN = range(5)  # where a loop goes on


@inlined
def note(p, owner, position, waiting, store):  # type: ignore[no-untyped-def]
    """The tuple p ends with that row, perhaps."""
    tuples, _, cells, free_cells, sizes, first, rooms, _, _, _ = store
    sizes[CELL_ROOM] -= 1
    cell = free_cells[sizes[CELL_ROOM]]
    head = rooms[owner, 0] + (position & rooms[owner, 1])
    following = first[head]
    cells[cell, OF] = p
    cells[cell, OWNER] = owner
    cells[cell, POSITION] = position
    cells[cell, NEXT] = following
    cells[cell, BACK] = -1
    cells[cell, ALSO] = tuples[p, CELL]
    cells[cell, WAITING] = waiting
    if following >= 0:
        cells[following, BACK] = cell
    first[head] = cell
    tuples[p, CELL] = cell


@inlined
def join(a, b, node, members_at, store):  # type: ignore[no-untyped-def]
    """A new tuple of two, not linked yet; there must be room.

    What one of the two has not is 0 among its words and -1 among its members.
    """
    tuples, free, cells, _, sizes, _, _, _, _, _ = store
    sizes[ROOM] -= 1
    p = free[sizes[ROOM]]
    tuples[p, NODE] = node
    tuples[p, BEGIN] = max(tuples[a, BEGIN], tuples[b, BEGIN])
    tuples[p, END] = min(tuples[a, END], tuples[b, END])
    tuples[p, OPEN] = tuples[a, OPEN] | tuples[b, OPEN]
    tuples[p, CELL] = -1
    for c in range(WORDS, members_at[0]):
        tuples[p, c] = tuples[a, c] | tuples[b, c]
    for m in range(members_at[1], tuples.shape[1]):
        tuples[p, m] = tuples[a, m] & tuples[b, m]
    # It ends with the first member that ends: that of the earliest end that is known, or one that is open.
    cell = tuples[a, CELL]
    while cell >= 0:
        if cells[cell, WAITING] or tuples[a, END] <= tuples[b, END]:
            note(p, cells[cell, OWNER], cells[cell, POSITION], cells[cell, WAITING], store)
        cell = cells[cell, ALSO]
    cell = tuples[b, CELL]
    while cell >= 0:
        if cells[cell, WAITING] or tuples[b, END] < tuples[a, END]:
            note(p, cells[cell, OWNER], cells[cell, POSITION], cells[cell, WAITING], store)
        cell = cells[cell, ALSO]
    return p


@jit
def enter(node, positions, words, begins, ends, made, spans, fixed, of_node, members_at, store):  # type: ignore[no-untyped-def]
    """New rows of an input; there must be room."""
    tuples, free, _, _, sizes, _, _, _, _, _ = store
    for i in range(len(positions)):
        sizes[ROOM] -= 1
        p = free[sizes[ROOM]]
        tuples[p, NODE] = node
        tuples[p, BEGIN] = begins[i]
        tuples[p, END] = ends[i]
        tuples[p, OPEN] = 1 if ends[i] == OPEN_END else 0
        tuples[p, CELL] = -1
        for c in range(words.shape[1]):
            tuples[p, WORDS + c] = words[i, c]
        for m in range(members_at[1], tuples.shape[1]):
            tuples[p, m] = -1
        tuples[p, members_at[1] + node] = positions[i]
        if ends[i] != FOREVER:
            note(p, node, positions[i], tuples[p, OPEN], store)
        made[i] = p
    spans[node, 0] = 0
    spans[node, 1] = len(positions)
    return link_all(node, made, 0, len(positions), np.empty(AHEAD, dtype=np.int64), fixed, of_node, store)


@jit
def grow(growths, stop, cursor, made, spans, fixed, of_node, members_at, store):  # type: ignore[no-untyped-def]
    """Bring nodes up to date, from growth `cursor[HOP]` on up to `stop`; whether all is done, or room is needed.

    `made` lists the tuples that are new, those of node n in `spans[n]`. The heads of the next chains are read ahead:
    loads that do not wait for each other take the time of one. (Something of what was read goes to the cursor, too, or
    the compiler would leave the reading out.)
    """
    tuples, _, _, _, sizes, _, rooms, heads, ranges, counts = store
    ahead = np.empty(AHEAD, dtype=np.int64)
    while cursor[HOP] < stop:
        node, source, table = growths[cursor[HOP]]
        at = fixed[table, LINK]
        most = ranges[of_node[node, 0], 1]
        row = cursor[ROW]
        p = cursor[AT]
        if row < 0:
            row = spans[source, 0]
            spans[node, 0] = cursor[MADE]
        first = row
        ready = 0
        while row < spans[source, 1]:
            if row >= first + ready:
                first = row
                ready = min(AHEAD, spans[source, 1] - row)
                for i in range(ready):
                    ahead[i] = heads[bucket(tuples[made[row + i]], WORDS, table, fixed, ranges)]
                for i in range(ready):
                    if ahead[i] >= 0:
                        cursor[SEEN] += tuples[ahead[i], END]
            a = made[row]
            if p == -2:
                p = ahead[row - first]
            while p >= 0:
                if (
                    tuples[a, BEGIN] < tuples[p, END]
                    and tuples[p, BEGIN] < tuples[a, END]
                    and same(tuples[a], WORDS, table, fixed, tuples[p])
                ):
                    new = cursor[MADE] - spans[node, 0]
                    if sizes[ROOM] == 0 or sizes[CELL_ROOM] < len(rooms) or counts[node] + new > most:
                        cursor[ROW] = row
                        cursor[AT] = p
                        return False
                    made[cursor[MADE]] = join(a, p, node, members_at, store)
                    cursor[MADE] += 1
                p = tuples[p, at]
            row += 1
            p = -2
        spans[node, 1] = cursor[MADE]
        cursor[SEEN] += link_all(node, made, spans[node, 0], spans[node, 1], ahead, fixed, of_node, store)
        cursor[HOP] += 1
        cursor[ROW] = -1
        cursor[AT] = -2
    return True


@jit
def candidates(growth, rows, row, p, limit, fixed, store):  # type: ignore[no-untyped-def]
    """Pairs of tuples that could be joined; and where to go on after `limit` of them."""
    tuples, _, _, _, _, _, _, heads, ranges, _ = store
    table = growth[2]
    pairs = np.empty((limit, 2), dtype=np.int64)
    count = 0
    while row < len(rows):
        a = rows[row]
        if p == -2:
            p = heads[bucket(tuples[a], WORDS, table, fixed, ranges)]
        while p >= 0:
            if (
                tuples[a, BEGIN] < tuples[p, END]
                and tuples[p, BEGIN] < tuples[a, END]
                and same(tuples[a], WORDS, table, fixed, tuples[p])
            ):
                if count == limit:
                    return pairs, row, p
                pairs[count, 0] = a
                pairs[count, 1] = p
                count += 1
            p = tuples[p, fixed[table, LINK]]
        row += 1
        p = -2
    return pairs[:count], row, p


@jit
def join_all(node, pairs, made, start, fixed, of_node, members_at, store):  # type: ignore[no-untyped-def]
    """The tuples of these pairs; there must be room."""
    for i in range(len(pairs)):
        made[start + i] = join(pairs[i, 0], pairs[i, 1], node, members_at, store)
    return link_all(node, made, start, start + len(pairs), np.empty(AHEAD, dtype=np.int64), fixed, of_node, store)


@jit
def lower_ends(owner, positions, ends, store):  # type: ignore[no-untyped-def]
    """Rows of an input whose ends became known, and what they are in."""
    tuples, _, cells, _, _, first, rooms, _, _, _ = store
    for i in range(len(positions)):
        cell = first[rooms[owner, 0] + (positions[i] & rooms[owner, 1])]
        while cell >= 0:
            p = cells[cell, OF]
            tuples[p, END] = min(tuples[p, END], ends[i])
            cell = cells[cell, NEXT]


@jit
def remove(owner, positions, fixed, of_node, store):  # type: ignore[no-untyped-def]
    """Take out all tuples that end with these rows of an input; the rows' own are returned."""
    tuples, free, cells, free_cells, sizes, first, rooms, _, _, _ = store
    own = np.empty(len(positions), dtype=np.int64)
    count = 0
    for position in positions:
        head = rooms[owner, 0] + (position & rooms[owner, 1])
        while first[head] >= 0:
            p = cells[first[head], OF]
            unlink(p, tuples[p, NODE], fixed, of_node, store)
            cell = tuples[p, CELL]
            while cell >= 0:
                following = cells[cell, NEXT]
                previous = cells[cell, BACK]
                if previous >= 0:
                    cells[previous, NEXT] = following
                else:
                    first[rooms[cells[cell, OWNER], 0] + (cells[cell, POSITION] & rooms[cells[cell, OWNER], 1])] = (
                        following
                    )
                if following >= 0:
                    cells[following, BACK] = previous
                free_cells[sizes[CELL_ROOM]] = cell
                sizes[CELL_ROOM] += 1
                cell = cells[cell, ALSO]
            free[sizes[ROOM]] = p
            sizes[ROOM] += 1
            if tuples[p, NODE] == owner:
                own[count] = p
                count += 1
    return own[:count]
