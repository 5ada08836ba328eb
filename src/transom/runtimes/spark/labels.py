"""Labels: whole numbers by which Spark groups frames, chosen so that it puts every partition where we want it.

Spark sends a group to the partition that its hash names (Murmur3 of the label, seed 42, modulo the number of
partitions). Labels taken as they come would put two partitions into one partition and leave another without work.
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
    """The labels of a layout over `layout.partitions` partitions."""

    layout: Layout

    @cached_property
    def _of(self) -> dict[tuple[int, int, int], int]:
        """(stage, fragment, partition) -> label. Fragment 0 on a stage is frames that only pass it."""
        labels: dict[tuple[int, int, int], int] = {}
        spark_partitions = self.layout.partitions
        for stage_number in range(1, self.layout.stage_count + 1):
            wanted = [(SINK, partition, partition) for partition in range(spark_partitions)]
            for number, at in self.layout.stage_number.items():
                if at == stage_number:
                    # Fragments that have one partition each are spread over the partitions, too.
                    partitions = self.layout.partitions_of(number)
                    wanted += [
                        (number, b, b if partitions > 1 else (number - 1) % spark_partitions) for b in range(partitions)
                    ]
            numbers = count()
            spare: dict[int, list[int]] = {spark_partition: [] for spark_partition in range(spark_partitions)}
            for fragment, partition, spark_partition in wanted:
                while not spare[spark_partition]:
                    number = next(numbers)
                    spare[murmur3(number) % spark_partitions].append(number)
                labels[stage_number, fragment, partition] = spare[spark_partition].pop(0)
        return labels

    @cached_property
    def _partition_ids(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {
            (stage_number, label): (fragment, partition)
            for (stage_number, fragment, partition), label in self._of.items()
        }

    def label(self, stage_number: int, fragment: int, partition: int) -> int:
        """What frames for a partition are called when they enter a stage: its own label there, or one to pass by."""
        if stage_number > self.layout.stage_count:
            return 0
        if fragment != SINK and self.layout.stage_number[fragment] == stage_number:
            return self._of[stage_number, fragment, partition]
        return self._of[stage_number, SINK, partition % self.layout.partitions]

    def partition_id(self, stage_number: int, label: int) -> tuple[int, int]:
        """(fragment, partition) of a label on a stage; fragment 0: it only passes."""
        return self._partition_ids[stage_number, label]
