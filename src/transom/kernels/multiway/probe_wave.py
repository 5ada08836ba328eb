"""All probes of a wave in one compiled call, with threads below it that need no interpreter (`compiled_threads.py`).

A probe gives, for each tuple that it starts from, the rows of one input that match: a semi-join. Where a formula is
asked of a row and one other input it is asked at once. As `walk.py`, tables are found by their addresses.
"""

from __future__ import annotations

from time import CLOCK_MONOTONIC
from typing import Final

import numpy as np
from numba.core import types
from numba.np.numpy_support import carray

from transom.kernels.address import of_the_system, pointer_to, prefetch, store_word, word_at
from transom.kernels.chain_table import BUCKETS, ENTRIES, HEAD, KEYED, MASK, OLDEST, equal_texts
from transom.kernels.compiled_threads import REQUEST, call, ended, finish, hand_out, take, wait, wait_for_others
from transom.kernels.formula import passing
from transom.kernels.jit import inlined, jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, TA, TE
from transom.kernels.multiway.pace import note_probe, sooner, waited

# Columns of a hop: the table of either input, and the formula that is asked, if it has operations.
SOURCE, SOURCE_TABLE, TARGET, TARGET_TABLE, PROGRAM, OPERATIONS, CONSTANTS, NUMBERS, DEPTH = range(9)
HOP: Final = 9
# What a job gives: tuples that it got to, matches and where they are, entries looked at, nanoseconds; or it failed.
DONE, FOUND, MEMBERS, LOOKED_AT, TOOK, FAILED = range(6)
RESULT: Final = 6
# Words of the sheet: addresses of the arrays, and their sizes.
TABLES, COLUMNS, COLUMN_COUNT, TUPLES, ROWS, WIDTH, WANTED, LIMIT, OFFSETS, HOPS, RESULTS = range(REQUEST, REQUEST + 11)

_allocate: Final = of_the_system("malloc", types.int64, types.int64)
_reallocate: Final = of_the_system("realloc", types.int64, types.int64, types.int64)
_release: Final = of_the_system("free", types.void, types.int64)
_clock: Final = of_the_system("clock_gettime", types.int32, types.int32, types.int64)


@inlined
def nanoseconds(time):  # type: ignore[no-untyped-def]
    """By a clock that never goes back; `time` is two words to be written to."""
    _clock(CLOCK_MONOTONIC, time.ctypes.data)
    return 1_000_000_000 * word_at(time.ctypes.data, 0) + word_at(time.ctypes.data, 1)


@jit
def probe(sheet, n):  # type: ignore[no-untyped-def]
    """Job n: the matches of all tuples that are wanted on the target of hop n; at LIMIT of them no tuple is begun."""
    time = np.empty(2, dtype=np.int64)
    began = nanoseconds(time)
    hop = carray(pointer_to(sheet[HOPS] + 8 * HOP * n), HOP, np.int64)
    result = carray(pointer_to(sheet[RESULTS] + 8 * RESULT * n), RESULT, np.int64)
    rows, width, limit = sheet[ROWS], sheet[WIDTH], sheet[LIMIT]
    offsets = carray(pointer_to(sheet[OFFSETS] + 8 * (rows + 1) * n), rows + 1, np.int64)
    tuples = carray(pointer_to(sheet[TUPLES]), (rows, width), np.int64)
    wanted = carray(pointer_to(sheet[WANTED]), rows, np.int64)
    source_table = carray(pointer_to(sheet[TABLES] + 72 * hop[SOURCE_TABLE]), 9, np.int64)
    other = carray(pointer_to(sheet[TABLES] + 72 * hop[TARGET_TABLE]), 9, np.int64)
    source = hop[SOURCE]
    oldest = other[OLDEST]
    size = rows + 1024
    members = _allocate(24 * size)
    result[MEMBERS] = members
    if members == 0:
        raise MemoryError
    count = 0
    offsets[0] = 0
    heads = np.empty(min(AHEAD, rows), dtype=np.int64)
    first = 0
    ready = 0
    row = 0
    while row < rows and (count < limit or row == 0):
        if row >= first + ready:
            first = row
            ready = min(AHEAD, rows - row)
            for i in range(ready):
                key = word_at(source_table[ENTRIES] + ((tuples[row + i, source] & source_table[MASK]) << 5), HASH)
                heads[i] = word_at(other[HEAD], key & other[BUCKETS])
                if heads[i] >= oldest:
                    prefetch(other[ENTRIES] + ((heads[i] & other[MASK]) << 5))
        at = heads[row - first] if wanted[row] else np.int64(-1)
        my_slot = tuples[row, source] & source_table[MASK]
        key = word_at(source_table[ENTRIES] + (my_slot << 5), HASH)
        ta, te = tuples[row, width - 2], tuples[row, width - 1]
        while at >= oldest:
            slot = at & other[MASK]
            entry = other[ENTRIES] + (slot << 5)
            if (
                word_at(entry, HASH) == key
                and ta < word_at(entry, TE)
                and word_at(entry, TA) < te
                and (not other[KEYED] or equal_texts(source_table, my_slot, other, slot))
            ):
                if count == size:
                    size *= 2
                    bigger = _reallocate(members, 24 * size)
                    if bigger == 0:
                        raise MemoryError
                    members = bigger
                    result[MEMBERS] = members
                to = members + 24 * count
                store_word(to, at)
                store_word(to + 8, word_at(entry, TA))
                store_word(to + 16, word_at(entry, TE))
                count += 1
            at = word_at(entry, CHAIN)
        row += 1
        offsets[row] = count
    result[DONE] = row
    result[LOOKED_AT] = count
    if hop[OPERATIONS] and count:
        count = _keep_passing(sheet, hop, tuples, offsets, members, row, count)
    result[FOUND] = count
    result[TOOK] = nanoseconds(time) - began


@jit
def _keep_passing(sheet, hop, tuples, offsets, members, rows, count):  # type: ignore[no-untyped-def]
    """Keep the matches of which the formula of the hop is true; how many."""
    program = carray(pointer_to(hop[PROGRAM]), (hop[OPERATIONS], 2), np.int64)
    constants = carray(pointer_to(hop[CONSTANTS]), hop[NUMBERS], np.float64)
    columns = carray(pointer_to(sheet[COLUMNS]), (sheet[COLUMN_COUNT], 5), np.int64)
    matches = carray(pointer_to(members), (count, 3), np.int64)
    of = np.empty(count, dtype=np.int64)
    for t in range(rows):
        of[offsets[t] : offsets[t + 1]] = t
    kept = passing(program, constants, hop[DEPTH], columns, tuples, of, matches, hop[TARGET])
    offsets[: rows + 1] = 0
    for n in range(len(kept)):
        at = kept[n]
        matches[n, 0], matches[n, 1], matches[n, 2] = matches[at, 0], matches[at, 1], matches[at, 2]
        offsets[of[at] + 1] += 1
    for t in range(rows):
        offsets[t + 1] += offsets[t]
    return len(kept)


@jit
def _try_probe(sheet, n):  # type: ignore[no-untyped-def]
    """Whoever waits for a job hears of its failure."""
    try:
        probe(sheet, n)
    except Exception:
        store_word(sheet[RESULTS] + 8 * (RESULT * n + FAILED), 1)


@jit
def help_probing(sheet):  # type: ignore[no-untyped-def]
    """The loop of a thread."""
    while wait(sheet):
        n = take(sheet)
        while n >= 0:
            _try_probe(sheet, n)
            if ended(sheet):
                finish(sheet)
            n = take(sheet)


@inlined
def _all_at_once(sheet, first, count, helpers):  # type: ignore[no-untyped-def]
    """Jobs `first` up to `count`, of which this thread does what nobody else begins; how many others did."""
    hand_out(sheet, first, count)
    call(sheet, helpers)
    own = 0
    last = False
    n = take(sheet)
    while n >= 0:
        _try_probe(sheet, n)
        last = ended(sheet)
        own += 1
        n = take(sheet)
    if not last:
        wait_for_others(sheet)
    return count - first - own


@jit
def probe_wave(  # type: ignore[no-untyped-def]
    sheet, tables, columns, hops, tuples, limit, helpers, price, extra, paces, probes, matches
):
    """The matches of tuples by each hop: offsets of each and members of all, and how many jobs others did.

    As many tuples as there is room for; members only where there is a product. In turn, and then all others at once
    where that is sooner (`pace.py`). `probes` and `matches` are counted as if it were all in turn: neither they nor the
    matches depend on who did it, or when. `extra` and `paces` may.
    """
    count, rows = len(hops), len(tuples)
    results = np.zeros((count, RESULT), dtype=np.int64)
    offsets = np.zeros((count, rows + 1), dtype=np.int64)
    wanted = np.ones(rows, dtype=np.int64)
    time = np.empty(2, dtype=np.int64)
    _write_down(sheet, tables, columns, hops, tuples, limit, wanted, offsets, results)
    helped = 0
    at = 0
    checked = rows
    while at < count and checked:
        following = at + 1
        if helpers and following < count:
            if sooner(paces, hops[at:, TARGET], checked, helpers, price + extra[0]):
                began = nanoseconds(time)
                following = count
                helped = _all_at_once(sheet, at, count, min(helpers, count - at - 1))
                waited(extra, results[at:, TOOK], helpers, price, nanoseconds(time) - began)
            else:
                extra[0] *= 0.99
        if following == at + 1:
            _try_probe(sheet, at)
        were = checked
        for n in range(at, following):
            finding = 0
            for t in range(results[n, DONE]):
                if offsets[n, t + 1] == offsets[n, t]:
                    wanted[t] = 0
                else:
                    finding += 1
            note_probe(paces[hops[n, TARGET]], were, finding, were + results[n, LOOKED_AT], results[n, TOOK])
        checked = wanted.sum()
        at = following
    failed = np.any(results[:, FAILED])
    done = rows
    for n in range(at):
        done = min(done, results[n, DONE])
    if not failed:
        note_wave(hops[:, TARGET], offsets, done, probes, matches)
    packed, members = _packed(results, offsets, done, failed)
    if failed:
        raise MemoryError
    return packed, members, helped


@jit
def probe_alone(sheet, tables, columns, hops, tuples, limit, wanted, by_formula):  # type: ignore[no-untyped-def]
    """The matches of the tuples that are wanted by the only hop, by its formula too if `by_formula`.

    Offsets, members, and how many entries were looked at.
    """
    rows = len(tuples)
    results = np.zeros((1, RESULT), dtype=np.int64)
    offsets = np.zeros((1, rows + 1), dtype=np.int64)
    hop_alone = hops.copy()
    if not by_formula:
        hop_alone[0, OPERATIONS] = 0
    _write_down(sheet, tables, columns, hop_alone, tuples, limit, wanted, offsets, results)
    _try_probe(sheet, 0)
    failed = results[0, FAILED] != 0
    done = results[0, DONE]
    packed, members = _packed(results, offsets, done, failed)
    if failed or len(hop_alone) == 0:  # looks at `hop_alone` once more: the sheet has its address
        raise MemoryError
    return packed[0], members, results[0, LOOKED_AT]


@inlined
def _write_down(sheet, tables, columns, hops, tuples, limit, wanted, offsets, results):  # type: ignore[no-untyped-def]
    sheet[TABLES], sheet[COLUMNS], sheet[COLUMN_COUNT] = tables.ctypes.data, columns.ctypes.data, len(columns)
    sheet[TUPLES], sheet[ROWS], sheet[WIDTH] = tuples.ctypes.data, tuples.shape[0], tuples.shape[1]
    sheet[LIMIT], sheet[WANTED], sheet[OFFSETS] = limit, wanted.ctypes.data, offsets.ctypes.data
    sheet[HOPS], sheet[RESULTS] = hops.ctypes.data, results.ctypes.data


@jit
def note_wave(targets, offsets, done, probes, matches):  # type: ignore[no-untyped-def]
    """Count probes and matches of the first tuples as if the inputs were probed in turn."""
    alive = np.ones(done, dtype=np.int64)
    for n in range(len(targets)):
        probed = 0
        match_count = 0
        for t in range(done):
            if alive[t]:
                probed += 1
                matched = offsets[n, t + 1] - offsets[n, t]
                match_count += matched
                alive[t] = matched > 0
        if probed == 0:
            break
        probes[targets[n]] += probed
        matches[targets[n]] += match_count


@jit
def _packed(results, offsets, done, failed):  # type: ignore[no-untyped-def]
    """The members of all jobs side by side, unless one has none; what the jobs allocated is released."""
    count = len(results)
    total = 0
    product = not failed
    for n in range(count):
        total += offsets[n, done]
        product = product and offsets[n, done] > 0
    packed = np.zeros((count, done + 1), dtype=np.int64)
    members = np.empty((total if product else 0, 3), dtype=np.int64)
    base = 0
    for n in range(count):
        if results[n, MEMBERS] == 0:
            continue
        if product:
            matches = carray(pointer_to(results[n, MEMBERS]), (results[n, FOUND], 3), np.int64)
            of = offsets[n, done]
            for row in range(of):
                for column in range(3):
                    members[base + row, column] = matches[row, column]
            for t in range(done + 1):
                packed[n, t] = base + offsets[n, t]
            base += of
        _release(results[n, MEMBERS])
    return packed, members
