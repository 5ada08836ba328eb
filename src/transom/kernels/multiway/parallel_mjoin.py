"""Parallel MJoin: the other inputs are probed at once, and the product of what they find is not written down (paper 3).

Meaning: as MJoin (`mjoin.py`).
Emits: as MJoin.
Keeps: as MJoin.
Needs: nothing. Inputs that share keys with the row are probed at once while the row is linked, then those that share
    keys with these, and so on (`waves.py`); predicates over a row and one other input are asked by those who probe.
    Threads are used where that pays; without them the answer is the same, and in the same order.
Costs: as MJoin, but every input of a wave is probed, though another one may find nothing; the way to an answer is the
    longest probe of each wave, and a product that nothing is asked of is walked once for each input (`match_sets.py`).

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.kernels.multiway.graph import JoinGraph
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"k": [1]}), np.array([1]), np.array([9]), np.full(1, NO_OPEN_ID), frontier=5)
>>> graph = JoinGraph(((pa.int64(),),) * 3, ((ColumnRef(0, pa.int64(), "k"),),) * 3)
>>> join = ParallelMJoinKernel(graph, pa.schema([(name, pa.int64()) for name in "abc"]))
>>> out = join.step(join.start(), (rows, rows, rows), Step(0, 5, 0, OpenIdPool()))
>>> out.values.to_pylist(), out.te.tolist()
([{'a': 1, 'b': 1, 'c': 1}], [9])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, no_int64s, no_open_ids
from transom.kernels.jit import jit
from transom.kernels.kernel import Step, open_rows
from transom.kernels.multiway import mjoin
from transom.kernels.multiway.match_sets import MatchSets
from transom.kernels.multiway.meeting import Meeting
from transom.kernels.multiway.mjoin import MJoinKernel, MJoinState
from transom.kernels.multiway.pace import ENTRIES, UNSEEN, sooner
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.multiway.probing import Probing
from transom.kernels.multiway.waves import WavedRoute, waved_route
from transom.kernels.worker_pool import measured_handover

FEW = 1 << 11
"""Entries of hash chains up to which all inputs are probed in one go by MJoin: to call somebody takes longer.

It is a number and not a time: the two ways remember different things of the probes, and so differ in the order of what
comes out later. A step that is taken again, anywhere, must give the same."""


@dataclass
class ParallelMJoinState(MJoinState):
    """What probing needs is not saved: it decides on who does something, and on nothing else."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.probing = Probing(len(self.inputs), self.directory)


@dataclass(frozen=True)
class ParallelMJoinKernel(MJoinKernel):
    uses_worker_pool: ClassVar[bool] = True
    routes: dict[tuple[int, ...], WavedRoute] = field(default_factory=dict, compare=False, repr=False)

    def start(self) -> ParallelMJoinState:
        plain = super().start()
        for order in plain.order.orders.tolist():
            self._route(tuple(order))
        return ParallelMJoinState(plain.inputs, plain.order, plain.open_tuples)

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> ParallelMJoinKernel:
        return replace(self, schema=schema, picks=tuple(self._picks[at] for at in picks))

    def _meet(self, state: MJoinState, i: int, rows: Int64s, step: Step, made: list[Any]) -> None:
        assert isinstance(state, ParallelMJoinState)
        if self._few(state, i, len(rows)) or not all(own.alive for own in state.inputs):
            super()._meet(state, i, rows, step, made)
        else:
            state.inputs[i].link(rows)
            self._meeting(state, i, len(rows), step, made).run(self._begun(state, i, rows))

    def _few(self, state: ParallelMJoinState, i: int, rows: int) -> bool:
        """Whether the rows of input i are better left to MJoin; where predicates are asked, they never are."""
        return not self._checks and bool(rows * expected_entries(state.order.probes, state.order.matches, i) < FEW)

    def _meeting(
        self, state: ParallelMJoinState, i: int, rows: int, step: Step, made: list[Int64s | MatchSets]
    ) -> Meeting:
        if state.order.turn(self.graph, i, rows):
            state.walks[i] = None  # few rows will have another way, too
        route = self._route(tuple(state.order.orders[i].tolist()))
        return Meeting(
            self.graph, route, state.inputs, state.directory.addresses, state.order, state.probing, i, step.frontier,
            mjoin.BLOCK, step.worker_pool, made,
        )  # fmt: skip

    def _route(self, order: tuple[int, ...]) -> WavedRoute:
        route = self.routes.get(order)
        if route is None:
            route = self.routes[order] = waved_route(self.graph, order)
            route.prepare()
        return route

    @cached_property
    def _checks(self) -> bool:
        return any(self._route(tuple(order)).checks for order in ProbeOrder.of(self.graph).orders.tolist())

    # --- what comes out ----------------------------------------------------------------------------------------------

    def _out(self, state: MJoinState, made: list[Int64s | MatchSets], step: Step) -> Delta:
        assert isinstance(state, ParallelMJoinState)
        if not any(isinstance(part, MatchSets) for part in made):
            return super()._out(state, made, step)
        lives = [(part[:, -2], part[:, -1]) if not isinstance(part, MatchSets) else part.lifetimes() for part in made]
        ta, te = (np.concatenate([life[at] for life in lives]) for at in range(2))
        if not len(ta):
            return Delta(self._no_values, no_int64s(), no_int64s(), no_int64s(), step.frontier)

        def gathered(i: int, columns: list[int]) -> list[tuple[int, pa.Array]]:
            own_arrays = state.inputs[i].gather(_positions(made, i), columns, self.graph.types[i])
            return list(zip([self.graph.bounds[i] + at for at in columns], own_arrays, strict=True))

        tasks = [partial(gathered, i, columns) for i, columns in self._needed]
        copying = [len(columns) for _, columns in self._needed]
        if step.worker_pool is not None and copied_sooner(copying, len(ta), step.worker_pool.workers):
            arrays = step.worker_pool.each(tasks)
        else:
            arrays = [task() for task in tasks]
        of_all = dict(pair for pairs in arrays for pair in pairs)
        values = pa.RecordBatch.from_arrays([of_all[at] for at in self._picks], schema=self.schema)
        if not any(own.lifetimes.undetermined for own in state.inputs):
            return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier)
        delta, open_id = open_rows(values, ta, te, step, Ends())
        is_open = open_id != NO_OPEN_ID
        members = [_positions(made, i)[is_open] for i in range(self.graph.count)]
        state.open_tuples.add(np.stack(members, axis=1), open_id[is_open], state.inputs)
        return delta


def _positions(made: Sequence[Int64s | MatchSets], i: int) -> Int64s:
    return np.concatenate([part.positions(i) if isinstance(part, MatchSets) else part[:, i] for part in made])


def copied_sooner(columns: Sequence[int], rows: int, workers: int) -> bool:
    """Whether it pays to call others to gather so many columns of each input: a position found, a number copied."""
    paces = np.full((len(columns), 3), UNSEEN)
    paces[:, ENTRIES] = 2.0 * np.array(columns)
    return bool(sooner(paces, np.arange(len(columns)), rows, workers, 1000 * measured_handover()))


@jit
def expected_entries(probes, matches, i):  # type: ignore[no-untyped-def]
    """About how many entries a row of input i looks at on all others, by what was found so far."""
    expected = 0.0
    for j in range(len(probes)):
        if j != i:
            expected += 1 + (matches[i, j] + 1) / (probes[i, j] + 1)
    return expected
