"""Operators that step together in one place: a whole plan, or the part of it that one partition hosts.

What comes from outside is brought to an input of an operator through a **channel**: the rows of a source, or what
another part sends. Everything inside goes by reference.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from transom.core.delta import TAKEN_BACK, Changelog, Delta, Int64s, StreamDelta, no_int64s
from transom.core.errors import TransomError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.kernel import Kernel, Step
from transom.kernels.operator import Operator, Site
from transom.kernels.scan.table import ChangesTable
from transom.kernels.sealed import sealed
from transom.kernels.slide_join.budget import BudgetPool
from transom.kernels.worker_pool import WorkerPool
from transom.pipeline.folding import fold_merges, fold_projections
from transom.pipeline.part_slides import PartSlides
from transom.pipeline.spilling import Spilling, store_of
from transom.pipeline.timers import Brought, Timers
from transom.plan.algebra import TableScan
from transom.plan.catalogue import Catalogue, TableDefinition
from transom.state.allocator import keep_freed_memory
from transom.state.checks import alike
from transom.state.open_ids import OpenIdPool
from transom.state.spill import SpillStore

_NO_FINALS: Final[Mapping[int, str]] = MappingProxyType({})


@dataclass
class Counters:
    """What an operator has done: rows that came, rows and ends that left it, and the time it took.

    Under negative tuples rows count as often as they pass, and the ends are those that departed. A row that is given
    again when it is over is an end, too.
    """

    rows_in: int = 0
    rows_out: int = 0
    ends_out: int = 0
    seconds: float = 0.0

    @staticmethod
    def united(parts: Sequence[Counters]) -> Counters:
        """All of them together; one is itself."""
        if len(parts) == 1:
            return parts[0]
        return Counters(*(sum(getattr(part, each.name) for part in parts) for each in fields(Counters)))


@dataclass
class PartState:
    """What the operators remember, and the open row ids that they share."""

    operators: list[Any]
    counters: list[Counters]
    open_ids: OpenIdPool = field(default_factory=OpenIdPool)


class Part:
    """`channels` names what comes to input `index` of an operator: (id of the operator, index) -> channel.

    `whole`: nobody outside asks for what an operator gives, but for the last one and those in `given` (by their ids).
    `store` is room on disk for what does not fit into memory; without it there is some for as long as the process runs.
    A memory budget is divided among the `partitions` that the same operators run in; `pool` are those who share a part
    of it. The operators in `finals` (by their ids) are seen by an answer of this form alone.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        channels: Mapping[tuple[int, int], str],
        catalogue: Catalogue,
        tick: int,
        *,
        whole: bool = False,
        given: Collection[int] = (),
        store: SpillStore | None = None,
        partitions: int = 1,
        finals: Mapping[int, str] = _NO_FINALS,
        pool: BudgetPool | None = None,
    ) -> None:
        keep_freed_memory()
        # Scans first: what a table rejects is known before anything above asks for the last admitted row.
        self.operators = sorted(operators, key=lambda operator: bool(operator.inputs))
        self.number = {id(operator): i for i, operator in enumerate(self.operators)}
        self._channels = dict(channels)
        self._tables: dict[int, TableDefinition] = {}
        self._gives_twice = "changes" in finals.values()
        self._kernels: list[tuple[Kernel, ...]] = [
            self._kernel(i, operator, catalogue, tick, partitions, finals.get(id(operator), ""))
            for i, operator in enumerate(self.operators)
        ]
        fold_merges(self.operators, self._kernels, given, finals)
        if whole:
            fold_projections(self.operators, self._kernels, given)
        self._sources = [
            [self._source(operator, index) for index in range(max(len(operator.inputs), 1))]
            for operator in self.operators
        ]
        self._changing = {
            i for i, kernels in enumerate(self._kernels) if kernels and isinstance(kernels[0], ChangesTable)
        }
        self._timers = Timers(self._kernels, self._sources)
        uses_worker_pool = any(
            getattr(kernel, "uses_worker_pool", False) for kernels in self._kernels for kernel in kernels
        )
        self.worker_pool = WorkerPool() if uses_worker_pool else None
        self.spilling = None
        if Spilling.wanted(self._kernels):
            bounded = catalogue.options.get("memory") is not None
            self.spilling = Spilling(store or store_of(catalogue), bounded, pool)
        self.slides = PartSlides(self.operators, self._kernels, self.spilling)

    def check(self, state: PartState, feeds: Iterable[Any] = ()) -> None:
        """Raise Unsound where a state that was read back cannot be one of these operators.

        `feeds` are the other owners of open row ids here: of rows that came from elsewhere.
        """
        alike(self.start(), state)
        self.check_kernels(state, feeds)

    def check_kernels(self, state: PartState, feeds: Iterable[Any] = ()) -> None:
        """Raise Unsound where a kernel says that its state cannot be one of its; all of it is built as a fresh one."""
        for kernels, states in zip(self._kernels, state.operators, strict=True):
            for kernel, own in zip(kernels, states, strict=True):
                if hasattr(kernel, "check"):
                    kernel.check(own)
        state.open_ids.check_owned(list(owned([state.operators, *feeds])))

    def start(self) -> PartState:
        return PartState(
            [[kernel.start() for kernel in kernels] for kernels in self._kernels], [Counters() for _ in self.operators]
        )

    def step(
        self, state: PartState, brought: Mapping[str, Brought], step: Step, last_used: int, slides: Mapping[int, int]
    ) -> tuple[list[Brought], dict[str, Int64s]]:
        """What every operator gave, and by channel the changes of tables that were rejected (their positions).

        `last_used` is the time of the last row that the query has taken; `slides` is as `PartSlides.last_of_windows`,
        for windows in other parts.
        """
        rejected_rows: dict[str, Int64s] = {}
        if self.worker_pool is not None:
            step = replace(step, worker_pool=self.worker_pool)
        if self.spilling is not None:
            step = self.spilling.given(step)
        deltas = self._timers.begin(state, brought, step.frontier)
        for i in self._timers.wanted:
            operator = self.operators[i]
            started = time.perf_counter()
            inputs = tuple(
                [deltas[child] if channel is None else brought[channel] for channel, child in self._sources[i]]
            )
            if not self._kernels[i]:  # a stream is what came in
                deltas[i] = inputs[0]
                self._timers.note(i, (), inputs[0])
                self._count(state.counters[i], inputs if operator.inputs else (), inputs[0], 0.0)
                continue
            at = step
            if step.frontier == FOREVER:
                horizon = self.slides.horizon(operator, state, last_used, slides)
                at = step if horizon is None else replace(step, horizon=horizon)
            try:
                delta = self._run(i, state.operators[i], inputs, at, rejected_rows)
            except TransomError as error:
                error.operator = f"{operator.tactic.name}: {operator.tactic.describe(operator)}"
                raise
            if i in self._changing:
                last_used = max(last_used, self._last_matched(i, inputs[0], rejected_rows))
            deltas[i] = delta
            self._timers.note(i, state.operators[i], delta)
            self._count(state.counters[i], inputs if operator.inputs else (), delta, time.perf_counter() - started)
        if self.spilling is not None:
            self.spilling.end_step()
        return deltas, rejected_rows

    def next_timer(self, state: PartState) -> int:
        """The first instant at which an operator has something to do though nothing comes (see `Stage.next_timer`)."""
        return self._timers.next_timer(state)

    def _count(self, counters: Counters, inputs: Sequence[Brought], delta: Brought, seconds: float) -> None:
        counters.seconds += seconds
        counters.rows_in += sum(len(each) - self._taken_back(each) for each in inputs)
        over = self._taken_back(delta)
        counters.rows_out += len(delta) - over
        counters.ends_out += over
        if isinstance(delta, Delta):
            for open_ids, _ in delta.ends.chunks:
                counters.ends_out += len(open_ids)
        elif isinstance(delta, Changelog):
            counters.ends_out += delta.departed

    def _taken_back(self, delta: Brought) -> int:
        if not self._gives_twice or not isinstance(delta, Delta):
            return 0
        return int(np.count_nonzero(delta.open_id == TAKEN_BACK))

    def states(self, state: PartState, operators: Iterable[Operator]) -> Iterator[tuple[Operator, Counters, list[Any]]]:
        """Of these operators, what each has done, and what its kernels remember."""
        for operator in operators:
            index = self.number[id(operator)]
            yield operator, state.counters[index], state.operators[index]

    def attach(self, state: PartState) -> None:
        """A state that comes from elsewhere is used here from now on."""
        if self.spilling is not None:
            self.spilling.attach(state.operators)

    def answered(self) -> None:
        """What kernels gave in this step is out: other threads may begin with what they have left for later."""
        if self.worker_pool is not None:
            self.worker_pool.go()

    def drain(self) -> None:
        """Wait for what kernels have left to their worker pool: nobody else may look at the state while that goes
        on."""
        if self.worker_pool is not None:
            self.worker_pool.drain()

    def close(self) -> None:
        """No thread is left; the next step would start some again."""
        if self.worker_pool is not None:
            self.worker_pool.close()
        if self.spilling is not None:
            self.spilling.close()

    def _kernel(
        self, i: int, operator: Operator, catalogue: Catalogue, tick: int, partitions: int, shown_as: str
    ) -> tuple[Kernel, ...]:
        if isinstance(operator.node, TableScan):
            definition = catalogue.relations[operator.node.name.lower()]
            assert isinstance(definition, TableDefinition)
            self._tables[i] = definition
        kernels = operator.tactic.kernels(operator, Site(catalogue, tick, partitions, shown_as))
        return sealed(kernels) if operator.sealed else kernels

    def _source(self, operator: Operator, index: int) -> tuple[str | None, int]:
        """What comes to an input: by a channel, or from another operator, by its number."""
        channel = self._channels.get((id(operator), index))
        return (None, self.number[id(operator.inputs[index])]) if channel is None else (channel, -1)

    def _run(
        self, i: int, memories: list[Any], inputs: tuple[Brought, ...], step: Step, rejected_rows: dict[str, Int64s]
    ) -> Brought:
        kernels: tuple[Any, ...] = self._kernels[i]
        given: Brought
        if i in self._changing:
            assert isinstance(inputs[0], StreamDelta)
            given, unmatched = kernels[0].apply(memories[0], self._arranged(i, inputs[0]), step)
            if len(unmatched):
                rejected_rows[self._channels[id(self.operators[i]), 0]] = unmatched
        else:
            given = kernels[0].step(memories[0], inputs, step)
        for kernel, memory in zip(kernels[1:], memories[1:], strict=True):
            given = kernel.step(memory, (given,), step)
        return given

    def _last_matched(self, i: int, changes: Brought, rejected_rows: dict[str, Int64s]) -> int:
        assert isinstance(changes, StreamDelta)
        unmatched = rejected_rows.get(self._channels[id(self.operators[i]), 0], no_int64s())
        return int(np.delete(changes.t, unmatched).max(initial=BEGINNING))

    def _arranged(self, i: int, changes: StreamDelta) -> StreamDelta:
        """The columns of the relation, then the change."""
        definition = self._tables[i]
        names = [column.name for column in definition.columns]
        order = [names.index(column.name) for column in definition.relation_columns]
        if definition.change_column is not None:
            order.append(names.index(definition.change_column))
        return replace(changes, values=changes.values.select(order))


def owned(state: Any) -> Iterator[Int64s]:
    """The open row ids that the operators have given to rows which are still open."""
    if hasattr(state, "owned"):
        yield from state.owned()
    elif isinstance(state, list | tuple):
        for part in state:
            yield from owned(part)
    elif is_dataclass(state):
        for part in fields(state):
            yield from owned(getattr(state, part.name))
