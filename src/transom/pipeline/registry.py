"""The closed list of what a saved query may hold."""

from __future__ import annotations

from typing import Final

from transom.kernels.aggregate.aggregate import AggregateState
from transom.kernels.join.join import JoinState
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.key_index import KeyIndex
from transom.kernels.lifetimes import LifetimeSet, Run
from transom.kernels.multiplicity import Shown
from transom.kernels.row_store import FixedColumn, RowStore, TextColumn
from transom.kernels.set_operation import SetOperationState
from transom.kernels.table import ChangesTableState
from transom.kernels.tally import Tally
from transom.kernels.to_stream import ToStreamState
from transom.kernels.window.partition_rows import PartitionRowsWindowState
from transom.kernels.window.rows import RowsWindowState
from transom.kernels.window.slide_range import SlideRangeWindowState, Waiting
from transom.kernels.window.slide_rows import SlideRowsWindowState
from transom.pipeline.admission import InputState, Ledger, WaitingRows
from transom.pipeline.doors import DoorsState
from transom.pipeline.emit import LifetimesState
from transom.pipeline.memory import PipelineState
from transom.pipeline.part import Counters, PartState
from transom.state.fifo import Fifo
from transom.state.holders import HolderPool
from transom.state.slots import SlotPool

STATE_CLASSES: Final[tuple[type, ...]] = (
    AggregateState,
    ChangesTableState,
    Counters,
    DoorsState,
    Fifo,
    FixedColumn,
    HolderPool,
    InputState,
    JoinState,
    KeyIndex,
    LazySide,
    Ledger,
    LifetimeSet,
    LifetimesState,
    OpenPairs,
    PartitionRowsWindowState,
    PartState,
    PipelineState,
    RingSide,
    RowStore,
    RowsWindowState,
    Run,
    SetOperationState,
    Shown,
    SlideRangeWindowState,
    SlideRowsWindowState,
    SlotPool,
    Tally,
    TextColumn,
    ToStreamState,
    Waiting,
    WaitingRows,
)
