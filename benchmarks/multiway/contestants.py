"""A join of many inputs by one tactic, ready to be measured.

It is planned as a user has it, by a session, with `SET multiway` in its text and the first rows of each stream for the
planner to look at; what runs is read off the plan.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.multiway.data import Batch, Cell, Feed, Row
from transom.kernels.multiway.join_tree import left_deep
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator, scanned
from transom.pipeline.memory import state_bytes, state_rows
from transom.plan.algebra import Join, StreamScan
from transom.planner.multiway_choice import MultiwayDecision
from transom.runtimes.local.query import LocalQuery
from transom.session import Session, workspace_of

TREE, PARALLEL_TREE, MJOIN, PARALLEL_MJOIN = TACTICS = ("tree", "parallel_tree", "mjoin", "parallel_mjoin")
AUTO: Final = "auto"
CHAIN: Final = "chain"
"""A tree in which every join has a stream on its right; no option asks for it."""

LOOKED_AT: Final = 2_048
"""Rows of each stream that the planner may look at before it decides."""


class Contestant:
    """A query by one tactic, ready to take rows."""

    def __init__(self, cell: Cell, name: str) -> None:
        self.cell, self.name = cell, name
        session = Session()
        session.execute(cell.declarations())
        for stream, rows in Feed(cell).batch(min(LOOKED_AT, 4 * cell.window)):
            session.append(stream, rows if cell.timed else rows.drop_columns(["arrival_time"]))
        tactic = TREE if name == CHAIN else name
        planned = workspace_of(session).prepare(f"SET multiway = '{tactic}'; {cell.query()}")[-1]
        if name == CHAIN:
            planned = planned.decided((MultiwayDecision(TREE, left_deep(list(range(cell.streams)))),))
        query = workspace_of(session).assemble([planned], emit=cell.emit).queries[0]
        assert isinstance(query, LocalQuery)
        self.pipeline = query.pipeline
        self.chosen = tactic_of(self.pipeline.root)
        assert tactic in (AUTO, self.chosen), f"{tactic} was requested, and {self.chosen} is in the plan"
        operators = self.pipeline.operators
        self._joins = [i for i, one in enumerate(operators) if isinstance(one.node, Join | MultiwayJoin)]

    def take_batch(self, batch: Batch, at: int = 0) -> pa.RecordBatch | None:
        """One step with all these rows, and everything that it leaves to other threads."""
        for name, rows in batch:
            self.pipeline.push(name, rows, at)
        output, _ = self.pipeline.advance()
        self.pipeline.drain()
        return None if output is None else output.rows

    def take(self, rows: Sequence[Row], paced: bool = False) -> Span:
        """A step for every row."""
        pipeline, clock, found = self.pipeline, time.perf_counter_ns, Span()
        pipeline.drain()
        handed, joined = self.submitted, self.join_seconds
        begun = clock()
        for row in rows:
            if paced:
                due = begun + 1_000 * (row.at - rows[0].at)
                time.sleep(max(due - clock(), 0) / 1e9)
            started = clock()
            pipeline.push(row.stream, row.batch, row.at)
            output, _ = pipeline.advance()
            done = clock()
            if not paced:
                pipeline.drain()
            found.background.append(clock() - done)
            found.nanos.append(done - started)
            found.outputs.append(None if output is None or not len(output.rows) else output.rows)
            found.join_nanos.append(1e9 * (self.join_seconds - joined))
            joined = self.join_seconds
            found.submitted.append(self.submitted - handed)
            handed = self.submitted
        pipeline.drain()
        return found

    @property
    def join_seconds(self) -> float:
        """What the joins took of the steps so far."""
        counters = self.pipeline.state.part.counters
        return sum([counters[i].seconds for i in self._joins])

    @property
    def submitted(self) -> int:
        """Tasks that were done by other threads so far."""
        worker_pool = self.pipeline.part.worker_pool
        return 0 if worker_pool is None else worker_pool.submitted

    def state(self) -> tuple[int, int]:
        """Rows and bytes of all operators."""
        self.pipeline.drain()
        memory = self.pipeline.state.part.operators
        return state_rows(memory), state_bytes(memory)

    def path(self, workers: int | None = None) -> float:
        """Probes that follow one another before the answer to a row is complete; the mean of all streams.

        Of a tree these are the joins between its stream and the answer, of mjoin all other streams. A parallel tree has
        a tree for each stream, in which that is one join; a parallel mjoin probes all other streams at once, if there
        are `workers` for all of them.
        """
        others = self.cell.streams - 1
        if self.chosen == TREE:
            return statistics.mean(_depths(self.pipeline.root).values())
        return {MJOIN: others, PARALLEL_TREE: 1, PARALLEL_MJOIN: -(-others // min(workers or others, others))}[
            self.chosen
        ]

    def close(self) -> None:
        self.pipeline.close()


@dataclass
class Span:
    """What a contestant did with some rows: nanoseconds of each, and what came out."""

    nanos: list[int] = field(default_factory=list)
    background: list[int] = field(default_factory=list)
    join_nanos: list[float] = field(default_factory=list)
    submitted: list[int] = field(default_factory=list)
    outputs: list[pa.RecordBatch | None] = field(default_factory=list)

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """The rows that yielded a result; what only ends is none."""
        return np.array([results_of(output) is not None for output in self.outputs])


def results_of(output: pa.RecordBatch | None) -> pa.RecordBatch | None:
    if output is None or not len(output):
        return None
    if "change" in output.schema.names:
        output = output.filter(pc.equal(output.column("change"), "+"))
    return output if len(output) else None


# --- plans -----------------------------------------------------------------------------------------------------------


def tactic_of(root: Operator) -> str:
    """The tactic of the join in a plan: that of the operator for all inputs, or a tree of joins of two."""
    many = [one.tactic.name for one in root.walk() if isinstance(one.node, MultiwayJoin)]
    assert many or any(isinstance(one.node, Join) for one in root.walk()), "there is no join in the plan"
    return many[0] if many else TREE


def is_chain(root: Operator) -> bool:
    """Whether no join has a join on its right."""
    joins = [one for one in root.walk() if isinstance(one.node, Join)]
    return all(not isinstance(below.node, Join) for one in joins for below in one.inputs[1].walk())


def _depths(operator: Operator, above: int = 0) -> dict[str, int]:
    """By stream, the joins between it and the answer."""
    if isinstance(operator.node, StreamScan):
        return {scanned(operator): above}
    here = above + isinstance(operator.node, Join)
    found: dict[str, int] = {}
    for below in operator.inputs:
        found |= _depths(below, here)
    return found
