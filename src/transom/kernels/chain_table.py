"""Where a table of hash chains is: a row of addresses, for loops that go over the tables of several inputs."""

from __future__ import annotations

from transom.core.delta import Int64s
from transom.kernels.address import address_of, byte_at, word_at
from transom.kernels.jit import inlined
from transom.kernels.row_store import RowStore, TextColumn

HEAD, BUCKETS, ENTRIES, MASK, OLDEST, KEYED, START, LENGTH, ARENA = range(9)  # columns of a row


def table_row(head: Int64s, entries: Int64s, mask: int, oldest: int, keys: RowStore) -> list[int]:
    """Whoever writes it down keeps the arrays as well, and writes it anew when one is replaced."""
    row = [address_of(head), len(head) - 1, address_of(entries), mask, oldest]
    for key in keys.columns:
        assert isinstance(key, TextColumn)
        return [*row, 1, address_of(key.start), address_of(key.length), address_of(key.arena)]
    return [*row, 0, 0, 0, 0]


@inlined
def equal_texts(one_table, one_slot, other_table, other_slot):  # type: ignore[no-untyped-def]
    """Whether the keys in two slots are the same bytes; the rows that describe their tables."""
    length = word_at(one_table[LENGTH], one_slot)
    if length != word_at(other_table[LENGTH], other_slot):
        return False
    here = one_table[ARENA] + word_at(one_table[START], one_slot)
    there = other_table[ARENA] + word_at(other_table[START], other_slot)
    same = 0
    while same < length and byte_at(here, same) == byte_at(there, same):
        same += 1
    return same == length
