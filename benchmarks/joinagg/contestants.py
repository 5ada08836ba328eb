"""A cell of the experiment, run by each contestant in turn.

The operators of the query are stepped without doors and sinks around them: rows come as prepared batches and what comes
out is dropped. The plan is the one that `SET joinagg` gives, merge of partial results included.

Time is that of the processor: the work is done by one thread that waits for nobody, so on an idle machine it is the
time on the wall, and on a busy one the others are not counted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from benchmarks.harness import Outcome, agreed, digits, medians, take_turns
from benchmarks.joinagg.data import DECLARATIONS, FALLING_SECONDS, WINDOW_SECONDS, Brought, Cell, falling, steady
from transom.core.delta import Delta
from transom.core.errors import UnsupportedError
from transom.cql.statements import parse_statements
from transom.kernels.joinagg.credit import CreditKernel
from transom.kernels.joinagg.credit_scan import CreditScanKernel
from transom.kernels.joinagg.node import JoinAggregate
from transom.kernels.kernel import Kernel, Step
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import InputStatistics, JoinStatistics, KeyCounts, Machine
from transom.kernels.operator import Operator, scanned
from transom.pipeline.memory import state_bytes
from transom.pipeline.part import Part
from transom.plan.algebra import Join, Node, StreamScan
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.planner.statistics import Statistics, members_of

PC, IC, TC, TC_PAPER, FACTORISED = CONTESTANTS = ("pc", "ic", "tc", "tc_paper", "factorised")
# tc_paper has no groups, and with many inputs it is tc that is asked about.
WITHOUT_PAPER: Final = (PC, IC, TC, FACTORISED)
AUTO: Final = "auto"
"""What is taken if none is forced, by what a sample of the first rows shows."""


@dataclass(frozen=True)
class Effort:
    """Runs of every contestant, and how long each of them is measured for, at least.

    Beyond these limits a contestant takes too long or too much memory, and is left out.
    """

    runs: int
    seconds: float
    steps: int
    most_join_rows: int  # alive, for pc
    most_scanned_rows: int  # in a window, for tc_paper
    most_matches: int  # of a row in another input, for ic and tc


class PaperPart(Part):
    """A part whose join-aggregate is run by the paper's scan over the rows alive."""

    def _kernel(
        self, i: int, operator: Operator, catalogue: Catalogue, tick: int, indexes: int, shown_as: str
    ) -> tuple[Kernel, ...]:
        kernels = super()._kernel(i, operator, catalogue, tick, indexes, shown_as)
        return tuple(CreditScanKernel(k.spec) if isinstance(k, CreditKernel) else k for k in kernels)


class Ready:
    """A query ready to be run, as often as wanted; `root` is the number of the operator that answers."""

    def __init__(
        self,
        query: Node,
        catalogue: Catalogue,
        statistics: Statistics | None = None,
        changed: Callable[[Operator], Operator] = lambda root: root,
        part: type[Part] = Part,
    ) -> None:
        root = changed(plan(query, catalogue, statistics))
        operators = list(root.walk())
        scans = [operator for operator in operators if isinstance(operator.node, StreamScan)]
        ports = {(id(scan), 0): scanned(scan) for scan in scans}
        self.part = part(operators, ports, catalogue, 1)
        self.root = self.part.number[id(root)]
        self.joins = [i for i, operator in enumerate(self.part.operators) if isinstance(operator.node, Join)]

    def start(self) -> Running:
        return Running(self)


class Bench(Ready):
    """A query ready to be run by one contestant, as often as wanted. Raises RefusedError where it cannot be.

    Tactics do not change, unless `adaptive` is the contestant.
    """

    def __init__(self, cell: Cell, contestant: str) -> None:
        self.cell = cell
        catalogue = Catalogue()
        tactic = TC if contestant == TC_PAPER else contestant
        adapt = "on" if contestant == "adaptive" else "off"
        options = f"SET adapt = '{adapt}'; SET joinagg = '{tactic}';"
        statement = parse_statements(f"{DECLARATIONS} {options} {cell.text}", catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        paper = contestant == TC_PAPER
        super().__init__(
            statement.query,
            catalogue,
            Sampled(cell) if contestant == AUTO else None,
            _without_merge if paper else lambda root: root,
            PaperPart if paper else Part,
        )


def _without_merge(root: Operator) -> Operator:
    """The join-aggregate alone, which gives the answer itself."""
    (join_aggregate,) = (operator for operator in root.walk() if isinstance(operator.node, JoinAggregate))
    assert isinstance(join_aggregate.node, JoinAggregate)
    return replace(join_aggregate, node=replace(join_aggregate.node, partial=False))


@dataclass(frozen=True)
class Sampled:
    """What a planner knows that has seen the rows of the first window."""

    cell: Cell
    machine: Machine = field(default_factory=Machine)

    def join(self, node: MultiwayJoin) -> JoinStatistics:
        batches = next(steady(replace(self.cell, batch=self.cell.window))).batches
        now = np.array([np.bincount(rows.values.column("k"), minlength=self.cell.keys) for rows in batches.values()])
        alive = now.sum(1, keepdims=True).astype(np.float64)
        keys = KeyCounts(now.astype(np.float64), 0.9 * now, alive, 0.9 * alive)
        inputs = tuple(InputStatistics(1_000 / len(batches), float(rows[0]), "sampled") for rows in alive)
        members = members_of(node)
        return JoinStatistics(inputs, members, (keys,) * len(members))


class Running:
    """One run: `seconds` on the clock and `rows` brought since the last `reset`."""

    def __init__(self, bench: Ready) -> None:
        self.bench = bench
        self.state = bench.part.start()
        self._before = 0
        self._made = (0, 0.0)
        self.reset()

    def reset(self) -> None:
        self.rows, self.seconds = 0, 0.0
        self._made = self._joined()

    def take(self, brought: Brought) -> Delta:
        """The step with these rows, and what the query answers."""
        step = Step(self._before, brought.frontier, 0, self.state.open_ids)
        self._before = brought.frontier
        started = time.process_time()
        given, _ = self.bench.part.step(self.state, brought.batches, step, 0, {})
        self.state.open_ids.finish_step()
        self.bench.part.answered()
        self.bench.part.drain()
        self.seconds += time.process_time() - started
        self.rows += brought.rows
        out = given[self.bench.root]
        assert isinstance(out, Delta)
        return out

    def close(self) -> None:
        """No thread is left."""
        self.bench.part.close()

    def measured(self) -> dict[str, float]:
        """Rows of all streams a second, bytes of the operators' state; of pc the rows that its joins made a second."""
        rows, seconds = (now - before for now, before in zip(self._joined(), self._made, strict=True))
        figures = {"rows_per_s": self.rows / self.seconds, "state_bytes": float(state_bytes(self.state.operators))}
        return figures | ({"join_rows_per_s": rows / seconds} if rows else {})

    def _joined(self) -> tuple[int, float]:
        """Rows that the joins have made, and the time that they took."""
        counters = [self.state.counters[i] for i in self.bench.joins]
        return sum(c.rows_out for c in counters), sum(c.seconds for c in counters)


def measure_steady(cell: Cell, effort: Effort) -> Outcome:
    """What every contestant does once the windows are full, and why some are unsupported.

    State is measured apart, after steps that bring a tenth of a window each: arrays have room for what comes and goes
    within a step, too.
    """
    benches, unsupported = _benches(cell, effort)
    filled = {name: bench.start() for name, bench in benches.items()}
    answers = {name: Answer(cell) for name in benches}
    for name, running in filled.items():
        for batch in itertools.islice(steady(replace(cell, batch=max(cell.window // 10, 1))), 12):
            answers[name].follow(running.take(batch))
    agreed({name: answer.rows for name, answer in answers.items()})
    kept = {name: state_bytes(running.state.operators) for name, running in filled.items()}
    del filled, running

    def run(bench: Bench, number: int) -> dict[str, float]:
        running = bench.start()
        brought = steady(cell)
        for batch in itertools.islice(brought, -(-cell.window // cell.batch) + 1):
            running.take(batch)
        running.reset()
        steps = 0
        while steps < effort.steps or running.seconds < effort.seconds:
            running.take(next(brought))
            steps += 1
        return running.measured()

    runs = take_turns(benches, range(effort.runs), run)
    figures = {name: _figures(measured) | {"state_bytes": kept[name]} for name, measured in runs.items()}
    about = {"unsupported": unsupported} if unsupported else {}
    return Outcome(cell.as_json(), {name: figures.get(name) for name in requested(cell)}, about)


def measure_falling(cell: Cell, effort: Effort) -> list[Outcome]:
    """What every contestant does in each second of the falling rate."""
    benches, _ = _benches(cell, effort)
    answers = {name: Answer(cell) for name in benches}

    def run(name: str, number: int) -> list[dict[str, float]]:
        running = benches[name].start()
        seconds = []
        for batch in falling(cell):
            running.reset()
            out = running.take(batch)
            seconds.append(running.measured())
            if number == 0:
                answers[name].follow(out)
        return seconds[WINDOW_SECONDS:]

    runs = take_turns({name: name for name in benches}, range(effort.runs), run)
    agreed({name: answer.rows for name, answer in answers.items()})
    return [
        Outcome(
            {**cell.as_json(), "x": second + 1},
            {
                name: _figures([of_run[second] for of_run in runs[name]]) if name in runs else None
                for name in requested(cell)
            },
        )
        for second in range(FALLING_SECONDS)
    ]


def _figures(runs: list[dict[str, float]]) -> dict[str, float]:
    medians_of_runs = medians(runs)
    rounded: dict[str, float] = {name: round(value) for name, value in medians_of_runs.items()}
    return rounded | {"us_per_row": digits(1e6 / medians_of_runs["rows_per_s"])}


def contestants(cell: Cell, effort: Effort) -> tuple[str, ...]:
    """Those that are measured; others would take too long."""
    left_out = set()
    if cell.join_rows > effort.most_join_rows:
        left_out.add(PC)
    if cell.window > effort.most_scanned_rows:
        left_out.add(TC_PAPER)
    if cell.matches > effort.most_matches:
        left_out |= {IC, TC, TC_PAPER}
    return tuple(name for name in requested(cell) if name not in left_out)


def requested(cell: Cell) -> tuple[str, ...]:
    if cell.experiment == "matches":
        return (*WITHOUT_PAPER, AUTO)
    return CONTESTANTS if cell.experiment in ("window", "rate") else WITHOUT_PAPER


def _benches(cell: Cell, effort: Effort) -> tuple[dict[str, Bench], dict[str, str]]:
    benches, unsupported = {}, {}
    for name in contestants(cell, effort):
        try:
            benches[name] = Bench(cell, name)
        except UnsupportedError as error:
            unsupported[name] = str(error).splitlines()[0]
    return benches, unsupported


class Answer:
    """The rows of the answer: of each group, or of all, the last one. In these experiments no group becomes empty."""

    def __init__(self, cell: Cell) -> None:
        self.rows: dict[Any, tuple[Any, ...]] = {}
        self._grouped = cell.experiment == "grouped"

    def follow(self, out: Delta) -> None:
        shown = np.flatnonzero(out.te > out.ta)
        rows = list(zip(*(column.to_pylist() for column in out.values.columns), strict=True))
        for i in shown[np.argsort(out.ta[shown], kind="stable")].tolist():
            self.rows[rows[i][0] if self._grouped else None] = rows[i]
