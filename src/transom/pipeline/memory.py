"""Everything a running query remembers, and how much that is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.key_index import KeyIndex
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.multiplicity import Shown
from transom.kernels.multiway.input_rows import LazyRows, RingRows
from transom.kernels.multiway.kept_tuples import KeptTuples
from transom.kernels.multiway.open_tuples import OpenTuples
from transom.kernels.negative.window import NegativeWindowState
from transom.pipeline.admission import Ledger
from transom.pipeline.exchange import FeedState
from transom.pipeline.input_gates import InputGatesState
from transom.pipeline.part import Counters, PartState
from transom.state import codec
from transom.state.fifo import Fifo
from transom.state.open_ids import OpenIdQueue
from transom.state.slots import SlotPool


@dataclass
class StageMemory:
    """What one stage remembers; of many partitions each has one for every fragment."""

    part: PartState
    emit: Any
    feeds: dict[str, FeedState] = field(default_factory=dict)
    rows_out: int = 0


@dataclass
class PipelineState:
    """Everything that a restart needs. `outside` is what operators did that belong to no stage, by their numbers."""

    stages: list[StageMemory]
    gates: InputGatesState
    static: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    static_ledgers: dict[str, Ledger] = field(default_factory=dict)
    outside: dict[str, Counters] = field(default_factory=dict)

    @property
    def whole(self) -> StageMemory:
        """The memory of the stage, where there is one for all of the plan."""
        (whole,) = self.stages
        return whole

    @property
    def part(self) -> PartState:
        return self.whole.part

    @property
    def emit(self) -> Any:
        return self.whole.emit

    @property
    def rows_out(self) -> int:
        return sum(stage.rows_out for stage in self.stages)


def state_rows(state: Any) -> int:
    """Rows that a state holds: those in slots, queues and batches. Keys, ends and what was emitted are no rows."""
    if isinstance(state, KeyIndex | LifetimeSet | OpenPairs | OpenTuples | Shown):
        return 0
    if isinstance(state, RingSide | LazySide | RingRows | LazyRows | KeptTuples):
        return state.alive
    if isinstance(state, SlotPool):
        return state.in_use
    if isinstance(state, Fifo | OpenIdQueue | pa.RecordBatch):
        return len(state)
    if isinstance(state, NegativeWindowState):
        return state.alive
    if isinstance(state, list | tuple):
        return sum(state_rows(item) for item in state)
    if isinstance(state, dict):
        return sum(state_rows(item) for item in state.values())
    if not dataclasses.is_dataclass(state):
        return 0
    parts = [getattr(state, f.name) for f in dataclasses.fields(state)]
    in_slots = [part for part in parts if isinstance(part, SlotPool | OpenIdQueue)]
    # Queues beside slots are of the same rows.
    return sum(state_rows(part) for part in (in_slots or parts))


def state_bytes(state: Any) -> int:
    """Bytes of all arrays in a state."""
    return codec.saved_bytes(state, whole=True)
