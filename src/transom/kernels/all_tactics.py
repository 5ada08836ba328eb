"""The list of all tactics. Whoever plans, builds, explains or saves operators knows them from here."""

from __future__ import annotations

from typing import Final

from transom.kernels.aggregate.tactic import RunningTactic, SlidingTactic
from transom.kernels.deduplicate.tactic import DeduplicateTactic
from transom.kernels.join.tactic import LazyHashTactic, NestedLoopTactic, RingHashTactic
from transom.kernels.joinagg.tactic import (
    AdaptiveTactic,
    CreditTactic,
    FactorisedTactic,
    IncrementalTactic,
    MergeTactic,
)
from transom.kernels.kept_forever.tactic import KeptForeverTactic
from transom.kernels.multiway.tactic import AdaptiveJoinTactic, MJoinTactic, ParallelMJoinTactic, ParallelTreeTactic
from transom.kernels.operator import Tactic
from transom.kernels.outer_join.tactic import (
    AntiLazyHashTactic,
    AntiNestedLoopTactic,
    AntiRingHashTactic,
    OuterLazyHashTactic,
    OuterNestedLoopTactic,
    OuterRingHashTactic,
    SemiLazyHashTactic,
    SemiNestedLoopTactic,
    SemiRingHashTactic,
)
from transom.kernels.scan.tactic import ChangesTableTactic, ScanTactic, StaticTableTactic, UpsertTableTactic
from transom.kernels.select.tactic import ConcatenationTactic, FilterTactic, ProjectTactic
from transom.kernels.set_operation.tactic import DistinctTactic, SetOperationTactic
from transom.kernels.shared_join.tactic import (
    CountedTactic,
    NarrowRowsTactic,
    NarrowTactic,
    SharedLazyHashTactic,
    SharedNestedLoopTactic,
    SharedRingHashTactic,
)
from transom.kernels.shared_plan.tactic import SharedPlanTactic, WindowedTactic
from transom.kernels.slide_join.tactic import (
    FullSlideTactic,
    HybridSlideTactic,
    IncrementalSlideTactic,
    MarkersTactic,
)
from transom.kernels.to_stream.tactic import (
    DirectDStreamTactic,
    DirectIStreamTactic,
    DStreamTactic,
    IStreamTactic,
    RStreamTactic,
)
from transom.kernels.top_n.tactic import BestTactic, OrderedTactic
from transom.kernels.unnest.tactic import UnnestTactic
from transom.kernels.window.tactic import (
    PartitionRowsTactic,
    RangeTactic,
    RowsTactic,
    SessionTactic,
    SlideRangeTactic,
    SlideRowsTactic,
)
from transom.kernels.window_table.tactic import SessionWindowsTactic, TimeWindowsTactic, WindowAggregateTactic
from transom.plan.algebra import Node

TACTICS: Final[tuple[type[Tactic], ...]] = (
    ScanTactic,
    StaticTableTactic,
    ChangesTableTactic,
    UpsertTableTactic,
    FilterTactic,
    ProjectTactic,
    ConcatenationTactic,
    UnnestTactic,
    KeptForeverTactic,
    DeduplicateTactic,
    RangeTactic,
    SlideRangeTactic,
    RowsTactic,
    SlideRowsTactic,
    PartitionRowsTactic,
    SessionTactic,
    TimeWindowsTactic,
    SessionWindowsTactic,
    WindowAggregateTactic,
    RingHashTactic,
    LazyHashTactic,
    NestedLoopTactic,
    OuterRingHashTactic,
    OuterLazyHashTactic,
    OuterNestedLoopTactic,
    SemiRingHashTactic,
    SemiLazyHashTactic,
    SemiNestedLoopTactic,
    AntiRingHashTactic,
    AntiLazyHashTactic,
    AntiNestedLoopTactic,
    ParallelTreeTactic,
    MJoinTactic,
    ParallelMJoinTactic,
    AdaptiveJoinTactic,
    SlidingTactic,
    RunningTactic,
    FactorisedTactic,
    IncrementalTactic,
    CreditTactic,
    AdaptiveTactic,
    MergeTactic,
    DistinctTactic,
    SetOperationTactic,
    OrderedTactic,
    BestTactic,
    IStreamTactic,
    DStreamTactic,
    RStreamTactic,
    DirectIStreamTactic,
    DirectDStreamTactic,
    CountedTactic,
    SharedRingHashTactic,
    SharedLazyHashTactic,
    SharedNestedLoopTactic,
    NarrowTactic,
    NarrowRowsTactic,
    SharedPlanTactic,
    WindowedTactic,
    IncrementalSlideTactic,
    FullSlideTactic,
    HybridSlideTactic,
    MarkersTactic,
)
"""Of the tactics of one node, the first that can is taken where the planner does not estimate what they cost."""


def tactics_of(node: type[Node]) -> tuple[type[Tactic], ...]:
    """The tactics that run a node, in their order.

    >>> from transom.plan.algebra import Join
    >>> [tactic.name for tactic in tactics_of(Join)]
    ['ring_hash', 'lazy_hash', 'nested_loop']
    """
    return tuple(tactic for tactic in TACTICS if node in tactic.nodes)
