"""Labels: whole numbers by which Spark groups cargo, chosen so that it puts every bucket where we want it.

Spark sends a group to the partition that its hash names (Murmur3 of the label, seed 42, modulo the number of
partitions). Labels taken as they come would put two buckets into one partition and leave another without work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count

from transom.pipeline.layout import SINK, Layout

_MASK = 0xFFFFFFFF


def murmur3(number: int, seed: int = 42) -> int:
    """Spark's hash of an INT.

    >>> [murmur3(n) % 2 for n in (0, 1)]
    [1, 1]
    """
    k = (number & _MASK) * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    h = (seed ^ (k * 0x1B873593 & _MASK)) & _MASK
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


@dataclass(frozen=True)
class Labels:
    """The labels of a layout over `layout.buckets` partitions."""

    layout: Layout

    @cached_property
    def _of(self) -> dict[tuple[int, int, int], int]:
        """(level, fragment, bucket) -> label. Fragment 0 on a level is cargo that only passes it."""
        found: dict[tuple[int, int, int], int] = {}
        partitions = self.layout.buckets
        for level in range(1, self.layout.levels + 1):
            wanted = [(SINK, bucket, bucket) for bucket in range(partitions)]
            for number, at in self.layout.level.items():
                if at == level:
                    # Fragments that have one bucket each are spread over the partitions, too.
                    buckets = self.layout.buckets_of(number)
                    wanted += [(number, b, b if buckets > 1 else (number - 1) % partitions) for b in range(buckets)]
            numbers = count()
            spare: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
            for fragment, bucket, partition in wanted:
                while not spare[partition]:
                    number = next(numbers)
                    spare[murmur3(number) % partitions].append(number)
                found[level, fragment, bucket] = spare[partition].pop(0)
        return found

    @cached_property
    def _place(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {(level, label): (fragment, bucket) for (level, fragment, bucket), label in self._of.items()}

    def label(self, level: int, fragment: int, bucket: int) -> int:
        """What cargo for a bucket is called when it enters a level: its own label there, or one to pass by."""
        if level > self.layout.levels:
            return 0
        if fragment != SINK and self.layout.level[fragment] == level:
            return self._of[level, fragment, bucket]
        return self._of[level, SINK, bucket % self.layout.buckets]

    def place(self, level: int, label: int) -> tuple[int, int]:
        """(fragment, bucket) of a label on a level; fragment 0: it only passes."""
        return self._place[level, label]
