"""Everything that one partition of a fragment remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from transom.pipeline.consumer_runner import ConsumerState
from transom.pipeline.exchange import FeedState
from transom.pipeline.input_gates import InputGatesState
from transom.pipeline.memory import StageMemory
from transom.pipeline.part import PartState
from transom.pipeline.registry import STATE_CLASSES
from transom.pipeline.routes import Routes
from transom.pipeline.scheduled_state import SCHEDULED_IN_PARTITIONS, ScheduledMemory


@dataclass
class PartitionState:
    """Everything a partition remembers. `slides` is as `PartSlides.last_of_windows`, by number, of fragments
    before this one.

    `in_prefix` counts, for operators that belong to no fragment, the rows that came to them and that went on. Numbers
    are those of operators in their own query. `consumers` is what queries remember that run beside a join they share.
    `routes` says by channel where rows went whose ends are open.
    `stages` is what partitions within this partition remember; where there are any, `part` is empty. `scheduled` is
    what a join remembers whose work is put in order.
    """

    part: PartState
    gates: InputGatesState
    emit: Any
    feeds: dict[str, FeedState]
    static: dict[str, list[pa.RecordBatch]]
    consumers: dict[str, ConsumerState]
    routes: dict[str, Routes]
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    slides: dict[str, int] = field(default_factory=dict)
    in_prefix: dict[str, list[int]] = field(default_factory=dict)
    rows_out: int = 0
    steps: int = 0
    stages: list[StageMemory] = field(default_factory=list)
    scheduled: list[ScheduledMemory] = field(default_factory=list)


PARTITION_CLASSES: Final[tuple[type, ...]] = (
    *STATE_CLASSES,
    *SCHEDULED_IN_PARTITIONS,
    ConsumerState,
    PartitionState,
    Routes,
)
"""The closed list of what a saved partition may hold."""
