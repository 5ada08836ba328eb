"""Everything a running query remembers, and how much that is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.pipeline.admission import Ledger
from transom.pipeline.doors import DoorsState
from transom.pipeline.part import PartState


@dataclass
class PipelineState:
    """Everything that a restart needs."""

    part: PartState
    doors: DoorsState
    emit: Any
    static: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    static_ledgers: dict[str, Ledger] = field(default_factory=dict)
    rows_out: int = 0


def state_bytes(state: Any) -> int:
    """Bytes of all arrays in a state."""
    if isinstance(state, np.ndarray | pa.RecordBatch):
        return int(state.nbytes)
    if isinstance(state, list | tuple):
        return sum(state_bytes(item) for item in state)
    if isinstance(state, dict):
        return sum(state_bytes(item) for item in state.values())
    if dataclasses.is_dataclass(state):
        return sum(state_bytes(getattr(state, f.name)) for f in dataclasses.fields(state))
    return 0
