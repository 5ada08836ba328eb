"""A cell of the experiment, run by each method in turn.

The operators of the query are stepped without doors and sinks around them: rows come as prepared batches and what comes
out is dropped, so that the clock sees windows, operators and open row ids alone. The query is planned as it is written,
the operator above its windows as in the paper; the rewrites of a normal plan would filter and project before the
window.

Time is that of the processor: the work is done by one thread that waits for nobody, so on an idle machine it is the
time on the wall, and on a busy one the others are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchmarks.harness import Outcome, medians, take_turns
from benchmarks.lifetimes.data import DECLARATIONS, JOINS, Cell, deltas
from benchmarks.lifetimes.sorted_insertion import with_sorted_insertion
from transom.core.delta import StreamDelta
from transom.cql.statements import parse_statements
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator, scanned
from transom.pipeline.part import Part, PartState
from transom.plan.algebra import StreamScan
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.plan.rewrites import rewrite
from transom.planner.lifetimes import with_negative_tuples
from transom.planner.plan import Planner

DIRECT, NEGATIVE, LAZY, SORTED = "direct", "negative", "direct_lazy_hash", "sorted_insertion"
# Steps that are prepared together, to look at the clock less often, unless they have more rows than this.
_BLOCK, _BLOCK_ROWS = 20, 20_000


@dataclass(frozen=True)
class Effort:
    """How much is measured: runs of every method, and how long each of them is measured for, at least.

    `settling` steps go before, beyond those that fill and turn over the windows.
    """

    runs: int
    seconds: float
    steps: int
    settling: int
    most_sorted_rows: int  # the greatest window for sorted insertion, whose cost a row grows with the window
    most_sorted_batch: int = 1_000  # and the greatest batch: the set holds the rows of a batch, too


class Bench:
    """A query ready to be run by one method, as often as wanted."""

    def __init__(self, cell: Cell, method: str) -> None:
        self.cell = cell
        self.method = method
        root, catalogue = _planned(cell, method)
        operators = list(root.walk())
        scans = [operator for operator in operators if isinstance(operator.node, StreamScan)]
        self.part = Part(operators, {(id(scan), 0): scanned(scan) for scan in scans}, catalogue, 1)
        self._root = self.part.number[id(root)]

    def start(self) -> Running:
        state = self.part.start()
        return Running(self, with_sorted_insertion(state) if self.method == SORTED else state, deltas(self.cell))

    def visits(self, state: PartState) -> int:
        """Rows that have come into the operator above the windows."""
        return state.counters[self._root].rows_in


@dataclass
class Running:
    """One run: `seconds` on the clock and `rows` brought since the last `reset`."""

    bench: Bench
    state: PartState
    brought: Iterator[dict[str, StreamDelta]]
    rows: int = 0
    seconds: float = 0.0
    _before: int = 0
    _visited: int = 0

    def advance(self, steps: int) -> None:
        prepared = [self._prepared() for _ in range(steps)]
        started = time.process_time()
        for batches, step in prepared:
            self.bench.part.step(self.state, batches, step, 0, {})
            self.state.open_ids.finish_step()
        self.seconds += time.process_time() - started
        self.rows += steps * self.bench.cell.batch * self.bench.cell.sides

    def warm_up(self, settling: int) -> None:
        """Until the windows are full and have turned over once, and so many steps more."""
        left = 2 * self.bench.cell.side_rows // self.bench.cell.batch + 1 + settling
        while left:
            self.advance(min(left, self._block))
            left -= min(left, self._block)
        self.reset()

    def reset(self) -> None:
        self.rows, self.seconds = 0, 0.0
        self._visited = self.bench.visits(self.state)

    def measure(self, seconds: float, least: int) -> dict[str, float]:
        """The rate over so much time and at least so many steps.

        Visits are the rows that came into the operator above the windows.
        """
        steps = 0
        while steps < least or self.seconds < seconds:
            self.advance(self._block)
            steps += self._block
        visited = self.bench.visits(self.state) - self._visited
        return {"rows_per_s": self.rows / self.seconds, "visits_per_row": visited / self.rows}

    @property
    def _block(self) -> int:
        return max(1, min(_BLOCK, _BLOCK_ROWS // self.bench.cell.batch))

    def _prepared(self) -> tuple[dict[str, StreamDelta], Step]:
        batches = next(self.brought)
        before, self._before = self._before, max(batch.frontier for batch in batches.values())
        return batches, Step(before, self._before, 0, self.state.open_ids)


def measure_cell(cell: Cell, effort: Effort) -> Outcome:
    """The rate of every method, None where sorted insertion would take too long."""

    def run(bench: Bench, number: int) -> dict[str, float]:
        running = bench.start()
        running.warm_up(effort.settling)
        return running.measure(effort.seconds, effort.steps)

    benches = {method: Bench(cell, method) for method in _methods(cell, effort)}
    runs = take_turns(benches, range(effort.runs), run)
    figures: dict[str, dict[str, float] | None] = {}
    for method, measured in runs.items():
        assert len({of_run["visits_per_row"] for of_run in measured}) == 1, "rows came by another number of times"
        rate = medians(measured)
        figures[method] = {**rate, "rows_per_s": round(rate["rows_per_s"]), "runs": len(measured)}
    if cell.query in JOINS:
        figures.setdefault(SORTED, None)
    return Outcome({"experiment": "cells", **asdict(cell)}, figures)


def _methods(cell: Cell, effort: Effort) -> list[str]:
    methods = [DIRECT, NEGATIVE]
    if cell.query in JOINS:
        methods.append(LAZY)
        if cell.rows <= effort.most_sorted_rows and cell.batch <= effort.most_sorted_batch:
            methods.append(SORTED)
    return methods


def _planned(cell: Cell, method: str) -> tuple[Operator, Catalogue]:
    catalogue = Catalogue()
    lifetimes = NEGATIVE if method == NEGATIVE else DIRECT
    join = "lazy_hash" if method in (LAZY, SORTED) else "auto"
    text = f"{DECLARATIONS} SET lifetimes = '{lifetimes}'; SET join = '{join}'; {cell.text}"
    statement = parse_statements(text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    # It takes the rewrites to make the equality in WHERE that of the join. They change nothing else in these queries.
    query = rewrite(statement.query) if cell.query in JOINS else statement.query
    planner = Planner(catalogue)
    root = planner.plan(query)
    return with_negative_tuples(root) if planner.negative else root, catalogue
