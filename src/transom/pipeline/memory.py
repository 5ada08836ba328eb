"""Everything a running query remembers, and how much that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from transom.pipeline.admission import Ledger
from transom.pipeline.doors import DoorsState
from transom.pipeline.part import PartState
from transom.state import codec


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
    return codec.saved_bytes(state, whole=True)
