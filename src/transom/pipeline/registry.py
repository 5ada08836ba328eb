"""The closed list of what a saved query may hold."""

from __future__ import annotations

from typing import Final

from transom.kernels.aggregate.aggregate import AggregateState
from transom.kernels.join.join import JoinState
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.joinagg.bundles import Bundles
from transom.kernels.joinagg.credit import CreditState
from transom.kernels.joinagg.credits import Credits
from transom.kernels.joinagg.factorised import FactorisedState
from transom.kernels.joinagg.incremental import IncrementalState
from transom.kernels.joinagg.live_rows import LiveRows
from transom.kernels.joinagg.merge import MergeAggregateState
from transom.kernels.joinagg.rows import Parts, Rows
from transom.kernels.joinagg.totals import Totals
from transom.kernels.joinagg.tuple_index import TupleIndex
from transom.kernels.key_index import KeyIndex
from transom.kernels.lifetimes import LifetimeSet, Run
from transom.kernels.multiplicity import Shown
from transom.kernels.multiway.input_rows import HashTable, LazyRows, RingRows
from transom.kernels.multiway.kept_tuples import KeptTuples
from transom.kernels.multiway.key_words import KeyNumbers, KeyWords
from transom.kernels.multiway.mjoin import MJoinState
from transom.kernels.multiway.open_tuples import OpenTuples
from transom.kernels.multiway.parallel_mjoin import ParallelMJoinState
from transom.kernels.multiway.parallel_tree import ParallelTreeState
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.negative.aggregate import NegativeAggregateState
from transom.kernels.negative.beginnings import Beginnings
from transom.kernels.negative.counting_side import CountedRows
from transom.kernels.negative.join import NegativeJoinState
from transom.kernels.negative.ring_side import NegativeRing
from transom.kernels.negative.window import AliveBatch, NegativeWindowState
from transom.kernels.record_ring import RecordRing
from transom.kernels.row_store import FixedColumn, RowStore, TextColumn
from transom.kernels.scan.table import ChangesTableState
from transom.kernels.set_operation.set_operation import SetOperationState
from transom.kernels.shared_join.counted_window import CountedWindowState
from transom.kernels.shared_join.narrow_rows import NarrowRowsState
from transom.kernels.slide_join.estimates import Average, Estimates
from transom.kernels.slide_join.memory import BasicWindow, Loose, SlideJoinState, SlideWork, Stored
from transom.kernels.slide_join.piece import Piece
from transom.kernels.slide_join.report import SlideReport
from transom.kernels.tally import Tally
from transom.kernels.to_stream.direct_stream import AliveRows
from transom.kernels.to_stream.to_stream import ToStreamState
from transom.kernels.window.partition_rows import PartitionRowsWindowState
from transom.kernels.window.rows import RowsWindowState
from transom.kernels.window.slide_range import SlideRangeWindowState, Waiting
from transom.kernels.window.slide_rows import SlideRowsWindowState
from transom.pipeline.admission import InputState, Ledger, WaitingRows
from transom.pipeline.doors import DoorsState
from transom.pipeline.emit import LifetimesState
from transom.pipeline.exchange import FeedState
from transom.pipeline.leap import Leap
from transom.pipeline.memory import PipelineState, StageMemory
from transom.pipeline.net import NetState
from transom.pipeline.part import Counters, PartState
from transom.state.fifo import Fifo
from transom.state.holders import HolderPool, HolderQueue
from transom.state.slots import SlotPool
from transom.state.spill import SpillFile

STATE_CLASSES: Final[tuple[type, ...]] = (
    AliveRows,
    AliveBatch,
    NegativeWindowState,
    AggregateState,
    Beginnings,
    ChangesTableState,
    CountedRows,
    CountedWindowState,
    Counters,
    DoorsState,
    FeedState,
    Fifo,
    FixedColumn,
    HolderPool,
    HolderQueue,
    InputState,
    JoinState,
    KeyIndex,
    LazySide,
    Leap,
    Ledger,
    LifetimeSet,
    LifetimesState,
    NarrowRowsState,
    NegativeJoinState,
    NetState,
    NegativeRing,
    NegativeAggregateState,
    OpenPairs,
    PartitionRowsWindowState,
    PartState,
    PipelineState,
    RecordRing,
    RingSide,
    RowStore,
    RowsWindowState,
    Run,
    SetOperationState,
    Shown,
    SlideRangeWindowState,
    SlideRowsWindowState,
    SlotPool,
    StageMemory,
    Tally,
    TextColumn,
    ToStreamState,
    Waiting,
    WaitingRows,
    CreditState,
    Credits,
    Bundles,
    FactorisedState,
    IncrementalState,
    LiveRows,
    MergeAggregateState,
    Parts,
    Rows,
    Totals,
    TupleIndex,
    HashTable,
    KeptTuples,
    KeyNumbers,
    KeyWords,
    LazyRows,
    MJoinState,
    ParallelMJoinState,
    OpenTuples,
    ParallelTreeState,
    ProbeOrder,
    RingRows,
    Average,
    BasicWindow,
    Estimates,
    Loose,
    Piece,
    SlideJoinState,
    SlideReport,
    SlideWork,
    SpillFile,
    Stored,
)
