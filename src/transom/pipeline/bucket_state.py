"""Everything that one bucket of a fragment remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from transom.pipeline.branch import BranchState
from transom.pipeline.doors import DoorsState
from transom.pipeline.exchange import FeedState
from transom.pipeline.memory import StageMemory
from transom.pipeline.part import PartState
from transom.pipeline.registry import STATE_CLASSES
from transom.pipeline.routes import Routes


@dataclass
class BucketState:
    """Everything a bucket remembers. `slides` is as `Part.last_of_slides`, by number, of fragments before this one.

    `on_the_way` counts, for operators that belong to no fragment, the rows that came to them and that went on. Numbers
    are those of operators in their own query. `consumers` is what queries remember that run beside a join they share.
    `routes` says by port where rows went whose ends are open.
    `stages` is what partitions within this bucket remember; where there are any, `part` is empty.
    """

    part: PartState
    doors: DoorsState
    emit: Any
    feeds: dict[str, FeedState]
    static: dict[str, list[pa.RecordBatch]]
    consumers: dict[str, BranchState]
    routes: dict[str, Routes]
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    slides: dict[str, int] = field(default_factory=dict)
    on_the_way: dict[str, list[int]] = field(default_factory=dict)
    rows_out: int = 0
    steps: int = 0
    stages: list[StageMemory] = field(default_factory=list)


BUCKET_CLASSES: Final[tuple[type, ...]] = (*STATE_CLASSES, BranchState, BucketState, Routes)
"""The closed list of what a saved bucket may hold."""
