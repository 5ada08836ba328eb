"""The probe finds every row with the key, also where hashes collide, and goes on where it stopped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from transom.kernels.slide_join.probe import match
from transom.kernels.slide_join.sorted_run import Bundle, ProbeTable, SortedRun, sorted_run
from transom.kernels.slide_join.spec import HASH, KEY
from transom.state.spill import SpillStore

Pairs = set[tuple[int, int]]


def table(hashes: list[int], keys: list[bytes] | None = None) -> ProbeTable:
    arrays = {HASH: pa.array(hashes, pa.uint64())}
    return ProbeTable(pa.record_batch(arrays if keys is None else {**arrays, KEY: pa.array(keys, pa.binary())}))


def pairs(mine: ProbeTable, other: ProbeTable, limit: int, keyed: bool) -> Pairs:
    rows = np.arange(len(mine.hashes))
    found: Pairs = set()
    row, at = 0, -1
    while row < len(rows):
        some, row, at = match(
            rows, mine.hashes, row, at, other.hashes, other.directory, other.shift, limit, keyed, mine.keys, other.keys
        )
        assert some.shape[1] <= limit
        fresh = set(zip(*some.tolist(), strict=True))
        assert len(fresh) == some.shape[1] and not fresh & found, "a pair comes twice"
        found |= fresh
    return found


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("spread", [1, 1 << 59, 1 << 63])
def test_all_pairs_of_equal_hashes(limit: int, spread: int) -> None:
    random = np.random.default_rng(5)
    step, values = np.uint64(spread), min(2**64 // spread, 40)  # few in number, and near each other or far apart
    many, few = (np.sort(random.integers(0, values, n).astype(np.uint64) * step) for n in (90, 7))
    for one, other in ((many, few), (few, many), (few, few[:0])):
        expected = {(i, j) for i, a in enumerate(one) for j, b in enumerate(other) if a == b}
        assert pairs(table(one.tolist()), table(other.tolist()), limit, False) == expected


def test_keys_of_equal_hashes_are_compared() -> None:
    mine, other = table([5, 5, 9], [b"a", b"b", b"c"]), table([5, 5, 9], [b"b", b"bb", b"c"])
    assert pairs(mine, other, 10, True) == {(1, 0), (2, 2)}


def test_shares_of_a_piece_and_of_a_bundle_on_disk_are_all_of_it() -> None:
    random = np.random.default_rng(3)
    batches = [
        pa.record_batch({HASH: pa.array(random.integers(0, 2**64, n, dtype=np.uint64))}) for n in (5_000, 900, 1)
    ]
    store = SpillStore()
    runs = [sorted_run(0, 0, 10, [batch]) for batch in batches]
    for run in runs:
        run.spill(store)
    assert [run.bits for run in runs] == [2, 0, 0]
    for bits in (0, 1, 3):
        units: list[tuple[SortedRun | Bundle, pa.RecordBatch]] = list(zip(runs, batches, strict=True))
        for unit, batch in [*units, (Bundle(runs), pa.concat_batches(batches))]:
            found = []
            for number in range(1 << bits):
                if not unit.is_empty(number, bits):
                    share = ProbeTable(unit.read(number, bits))
                    first, last = share.share(number, bits)
                    found += share.hashes[first:last].tolist()
            assert found == sorted(batch.column(0).to_pylist())
    store.close()
