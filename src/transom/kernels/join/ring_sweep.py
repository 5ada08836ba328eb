"""The sweep of two rings: new rows are linked in the order of time, and meet those that were linked before.

The chains of a ring lead from new rows to old ones and are never changed, so what a row will meet is known from the
head of its chain at the moment when it is linked. That is written down for all rows first (`link`), and the chains are
followed after that (`meet`), those of many rows at once: the n-th row of every chain, then the next one of each that
goes on. So loads do not wait for each other, and nothing is guessed that the processor would have to take back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.address import prefetch, store_word, word_at
from transom.kernels.chain_table import BUCKETS, ENTRIES, HEAD, KEYED, MASK, OLDEST, equal_texts
from transom.kernels.jit import inlined, jit
from transom.kernels.join.side import CHAIN, HASH, LEFT, NOT_BEGUN, PAIR_TA, PAIR_TE, RIGHT, TA, TE
from transom.kernels.kernel import OPEN_END

SIDE, POSITION, AT = range(3)  # columns of a sequence: a new row, and the head of the chain that it follows
ROW, CHAIN_AT, LOOKED_AT = range(3)  # where to go on, and how many rows were looked at
AHEAD = 32  # rows whose chains are fetched before they are linked
BLOCK = 256  # rows whose chains are followed together
LEVELS = 8  # pairs to each of them at most; beyond that one row after the other
FEW = 32  # rows that are not worth a block


def ring_pairs(tables: Int64s, of_left: Int64s, of_right: Int64s, limit: int, frontier: int) -> Iterator[Int64s]:
    """Link new rows at these positions of either ring; the pairs that they make, as `sweep` gives them."""
    sequence = link(tables, of_left, of_right)
    index = np.array([0, NOT_BEGUN, 0])
    while index[ROW] < len(sequence):
        yield meet(tables, sequence, index, limit, frontier)


@inlined
def entry(tables, side, position):  # type: ignore[no-untyped-def]
    """The address of what is known of a row."""
    return tables[side, ENTRIES] + ((position & tables[side, MASK]) << 5)


@jit
def link(tables, of_left, of_right):  # type: ignore[no-untyped-def]
    """Link the rows in the order of time, of one instant first those of the right; the sequence of them."""
    count = len(of_left) + len(of_right)
    sequence = np.empty((count, 3), dtype=np.int64)
    i = 0
    j = 0
    for n in range(count):
        l_ta = word_at(entry(tables, LEFT, of_left[i]), TA) if i < len(of_left) else OPEN_END
        r_ta = word_at(entry(tables, RIGHT, of_right[j]), TA) if j < len(of_right) else OPEN_END
        if r_ta <= l_ta:
            sequence[n, SIDE] = RIGHT
            sequence[n, POSITION] = of_right[j]
            j += 1
        else:
            sequence[n, SIDE] = LEFT
            sequence[n, POSITION] = of_left[i]
            i += 1
    for n in range(-AHEAD, count):
        if n + AHEAD < count:
            h = word_at(entry(tables, sequence[n + AHEAD, SIDE], sequence[n + AHEAD, POSITION]), HASH)
            prefetch(tables[LEFT, HEAD] + 8 * (h & tables[LEFT, BUCKETS]))
            prefetch(tables[RIGHT, HEAD] + 8 * (h & tables[RIGHT, BUCKETS]))
        if n >= 0:
            side = sequence[n, SIDE]
            other = LEFT + RIGHT - side
            address = entry(tables, side, sequence[n, POSITION])
            h = word_at(address, HASH)
            sequence[n, AT] = word_at(tables[other, HEAD], h & tables[other, BUCKETS])
            bucket = tables[side, HEAD] + 8 * (h & tables[side, BUCKETS])
            store_word(address + 8 * CHAIN, word_at(bucket, 0))
            store_word(bucket, sequence[n, POSITION])
    return sequence


@inlined
def pair_end(te, other_te, frontier):  # type: ignore[no-untyped-def]
    """The end of a pair, OPEN_END where it is not known: an open member ends at `frontier` or later."""
    end = min(te, other_te)
    return OPEN_END if (end > frontier) & (max(te, other_te) == OPEN_END) else end


@jit
def enlarged(matches, count, room):  # type: ignore[no-untyped-def]
    bigger = np.empty((4, room), dtype=np.int64)
    bigger[:, :count] = matches[:, :count]
    return bigger, room


@jit
def meet(tables, sequence, index, limit, frontier):  # type: ignore[no-untyped-def]
    """The pairs of rows that are alive together, in the order of the sequence, at most `limit`; `index`: from where on.

    Rows of a chain that have ended are alive with nobody who comes later, and those before them have ended as well.
    """
    rows = len(sequence)
    keyed = tables[LEFT, KEYED] == 1
    most = LEVELS * min(BLOCK, rows)
    room = min(limit, rows + most)
    matches = np.empty((4, room), dtype=np.int64)
    count = 0
    n, at, visits = index
    one_by_one = n if at == NOT_BEGUN else n + 1  # rows before this one are not taken in a block
    hashes = np.empty(min(BLOCK, rows), dtype=np.int64)
    ta = np.empty_like(hashes)
    te = np.empty_like(hashes)
    to = np.empty_like(hashes)
    active = np.empty_like(hashes)
    active_at = np.empty_like(hashes)
    met = np.empty((most + 1, 3), dtype=np.int64)  # row, whom it met, and that one's end
    while n < rows:
        if n >= one_by_one:
            block = min(BLOCK, rows - n)
            one_by_one = n + block
            if block > FEW and limit - count < most and count > 0:
                break
            if block > FEW and limit - count >= most:
                if room - count < most:
                    matches, room = enlarged(matches, count, min(limit, 2 * room + most))
                for r in range(block):
                    side = sequence[n + r, SIDE]
                    other = LEFT + RIGHT - side
                    address = entry(tables, side, sequence[n + r, POSITION])
                    hashes[r] = word_at(address, HASH)
                    ta[r] = word_at(address, TA)
                    te[r] = word_at(address, TE)
                    to[r] = 0
                    prefetch(entry(tables, other, max(sequence[n + r, AT], tables[other, OLDEST])))
                pairs = 0
                goes_on = 0
                for side in range(2):
                    other = LEFT + RIGHT - side
                    entries, mask, oldest = tables[other, ENTRIES], tables[other, MASK], tables[other, OLDEST]
                    goes_on = 0
                    for r in range(block):
                        active[goes_on] = r
                        active_at[goes_on] = sequence[n + r, AT]
                        goes_on += (sequence[n + r, SIDE] == side) & (sequence[n + r, AT] >= oldest)
                    while goes_on > 0 and pairs + goes_on <= most:
                        visits += goes_on
                        polled_at = goes_on
                        goes_on = 0
                        for k in range(polled_at):
                            r = active[k]
                            here = active_at[k]
                            address = entries + ((here & mask) << 5)
                            following = word_at(address, CHAIN)
                            prefetch(entries + ((max(following, oldest) & mask) << 5))
                            other_te = word_at(address, TE)
                            alive = other_te > ta[r]
                            meets = alive & (word_at(address, HASH) == hashes[r])
                            if keyed and meets:
                                slot = sequence[n + r, POSITION] & tables[side, MASK]
                                meets = equal_texts(tables[side], slot, tables[other], here & mask)
                            met[pairs, 0] = r
                            met[pairs, 1] = here
                            met[pairs, 2] = other_te
                            pairs += meets
                            to[r] += meets
                            active[goes_on] = r
                            active_at[goes_on] = following
                            goes_on += alive & (following >= oldest)
                    if goes_on > 0:
                        break
                if goes_on > 0:  # there are too many
                    continue
                for r in range(block):
                    pairs_of = to[r]
                    to[r] = count
                    count += pairs_of
                for k in range(pairs):
                    r = met[k, 0]
                    side = sequence[n + r, SIDE]
                    matches[side, to[r]] = sequence[n + r, POSITION]
                    matches[LEFT + RIGHT - side, to[r]] = met[k, 1]
                    matches[PAIR_TA, to[r]] = ta[r]
                    matches[PAIR_TE, to[r]] = pair_end(te[r], met[k, 2], frontier)
                    to[r] += 1
                n += block
                continue
        side = sequence[n, SIDE]
        other = LEFT + RIGHT - side
        oldest = tables[other, OLDEST]
        position = sequence[n, POSITION]
        address = entry(tables, side, position)
        if at == NOT_BEGUN:
            at = sequence[n, AT]
        while at >= oldest and count < room:
            visits += 1
            there = entry(tables, other, at)
            if word_at(there, TE) <= word_at(address, TA):
                at = -1
                break
            if word_at(there, HASH) == word_at(address, HASH) and (
                not keyed
                or equal_texts(tables[side], position & tables[side, MASK], tables[other], at & tables[other, MASK])
            ):
                matches[side, count] = position
                matches[other, count] = at
                matches[PAIR_TA, count] = word_at(address, TA)
                matches[PAIR_TE, count] = pair_end(word_at(address, TE), word_at(there, TE), frontier)
                count += 1
            at = word_at(there, CHAIN)
        if at < oldest:
            at = NOT_BEGUN
            n += 1
        elif room == limit:
            break
        else:
            matches, room = enlarged(matches, count, min(limit, 2 * room))
    index[ROW] = n
    index[CHAIN_AT] = at
    index[LOOKED_AT] = visits
    return matches[:, :count]
