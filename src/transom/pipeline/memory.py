"""Everything a running query remembers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.time import BEGINNING
from transom.pipeline.admission import InputState, Ledger
from transom.state.holders import HolderPool


@dataclass
class Counters:
    """What an operator has done: rows and ends that left it, and the time it took."""

    rows_in: int = 0
    rows_out: int = 0
    ends_out: int = 0
    seconds: float = 0.0


@dataclass
class PipelineState:
    """Everything that a restart needs. `upto` is the instant all output is complete to."""

    operators: list[Any]
    emit: Any
    inputs: dict[str, InputState]
    counters: list[Counters]
    holders: HolderPool = field(default_factory=HolderPool)
    static: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    static_ledgers: dict[str, Ledger] = field(default_factory=dict)
    origin: int | None = None
    upto: int | None = None
    clock: int = BEGINNING
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
