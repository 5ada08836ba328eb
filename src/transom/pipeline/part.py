"""Operators that step together in one place: a whole plan, or the part of it that one bucket hosts.

What comes from outside is brought to an input of an operator through a **port**: the rows of a source, or what another
part sends. Everything inside goes by reference.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transom.core.delta import Delta, Int64s, SignedDelta, StreamDelta, no_int64s
from transom.core.errors import TransomError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.kernel import Kernel, Step
from transom.kernels.negative.departures import DeparturesKernel
from transom.kernels.table import ChangesTable
from transom.kernels.window.slide_range import SlideRangeWindowState
from transom.pipeline.agenda import Agenda, Brought, Given
from transom.pipeline.build import operator_kernel, slide_windows_below, table_kernel
from transom.plan.algebra import StreamScan, TableScan, ToStream
from transom.plan.catalogue import Catalogue, TableDefinition
from transom.planner.describe import describe
from transom.planner.operator import Operator
from transom.state.allocator import keep_freed_memory
from transom.state.holders import HolderPool


@dataclass
class Counters:
    """What an operator has done: rows and ends that left it, and the time it took.

    Under negative tuples rows count as often as they pass, and the ends are those that departed.
    """

    rows_in: int = 0
    rows_out: int = 0
    ends_out: int = 0
    seconds: float = 0.0


@dataclass
class PartState:
    """What the operators remember, and the holders that they share."""

    operators: list[Any]
    counters: list[Counters]
    holders: HolderPool = field(default_factory=HolderPool)


class Part:
    """`ports` names what comes to input `place` of an operator: (id of the operator, place) -> port."""

    def __init__(
        self, operators: Sequence[Operator], ports: Mapping[tuple[int, int], str], catalogue: Catalogue, tick: int
    ) -> None:
        keep_freed_memory()
        # Scans first: what a table refuses is known before anything above asks for the last admitted row.
        self.operators = sorted(operators, key=lambda operator: bool(operator.inputs))
        self.number = {id(operator): i for i, operator in enumerate(self.operators)}
        self._ports = dict(ports)
        self._tables: dict[int, TableDefinition] = {}
        self._kernels: list[tuple[Kernel, ...]] = [
            self._kernel(i, operator, catalogue, tick) for i, operator in enumerate(self.operators)
        ]
        self._sources = [
            [self._source(operator, place) for place in range(max(len(operator.inputs), 1))]
            for operator in self.operators
        ]
        self._changing = {
            i for i, kernels in enumerate(self._kernels) if kernels and isinstance(kernels[0], ChangesTable)
        }
        self._agenda = Agenda(self._kernels, self._sources)

    def start(self) -> PartState:
        return PartState(
            [[kernel.start() for kernel in kernels] for kernels in self._kernels], [Counters() for _ in self.operators]
        )

    def step(
        self, state: PartState, brought: Mapping[str, Brought], step: Step, last_used: int, slides: Mapping[int, int]
    ) -> tuple[Given, dict[str, Int64s]]:
        """What every operator gave, and by port the changes of tables that were refused (their positions).

        `last_used` is the time of the last row that the query has taken; `slides` is as `last_of_slides`, for sliding
        windows in other parts.
        """
        refused: dict[str, Int64s] = {}
        deltas = self._agenda.begin(state, brought, step.upto)
        for i in self._agenda.wanted:
            operator = self.operators[i]
            started = time.perf_counter()
            inputs = tuple([deltas[child] if port is None else brought[port] for port, child in self._sources[i]])
            at = step
            if step.upto == FOREVER and isinstance(operator.node, ToStream) and slide_windows_below(operator):
                at = replace(step, horizon=self._horizon(operator, state, last_used, slides))
            try:
                delta = self._run(i, state.operators[i], inputs, at, refused)
            except TransomError as error:
                error.operator = f"{operator.tactic.name}: {describe(operator)}"
                raise
            if i in self._changing:
                last_used = max(last_used, self._last_matched(i, inputs[0], refused))
            deltas[i] = delta
            self._agenda.note(i, state.operators[i], delta)
            self._count(state.counters[i], inputs if operator.inputs else (), delta, time.perf_counter() - started)
        return deltas, refused

    def _count(self, counters: Counters, inputs: Sequence[Brought], delta: Brought, seconds: float) -> None:
        counters.seconds += seconds
        for part in inputs:
            counters.rows_in += len(part)
        counters.rows_out += len(delta)
        if isinstance(delta, Delta):
            for holders, _ in delta.ends.chunks:
                counters.ends_out += len(holders)
        elif isinstance(delta, SignedDelta):
            counters.ends_out += delta.departed

    def last_of_slides(self, state: PartState) -> dict[int, int]:
        """The last instant at which a row of a RANGE .. SLIDE window begins or ends, by the id of the window."""
        windows = zip(self.operators, state.operators, strict=True)
        return {id(o): s[0].last for o, s in windows if s and isinstance(s[0], SlideRangeWindowState)}

    def _horizon(self, operator: Operator, state: PartState, last_used: int, slides: Mapping[int, int]) -> int:
        known = {**slides, **self.last_of_slides(state)}
        return max([last_used, *(known[id(window)] for window in slide_windows_below(operator))])

    def _kernel(self, i: int, operator: Operator, catalogue: Catalogue, tick: int) -> tuple[Kernel, ...]:
        node = operator.node
        if isinstance(node, StreamScan):
            return ()
        if not isinstance(node, TableScan):
            return operator_kernel(operator, tick)
        definition = catalogue.relations[node.name.lower()]
        assert isinstance(definition, TableDefinition)
        self._tables[i] = definition
        departures = (DeparturesKernel(operator.schema.arrow()),) if operator.negative else ()
        return (table_kernel(definition), *departures)

    def _source(self, operator: Operator, place: int) -> tuple[str | None, int]:
        """What comes to an input: by a port, or from another operator, by its number."""
        port = self._ports.get((id(operator), place))
        return (None, self.number[id(operator.inputs[place])]) if port is None else (port, -1)

    def _run(
        self, i: int, memories: list[Any], inputs: tuple[Brought, ...], step: Step, refused: dict[str, Int64s]
    ) -> Brought:
        kernels: tuple[Any, ...] = self._kernels[i]
        if not kernels:  # a stream is what came in
            return inputs[0]
        given: Brought
        if i in self._changing:
            assert isinstance(inputs[0], StreamDelta)
            given, unmatched = kernels[0].apply(memories[0], self._arranged(i, inputs[0]), step)
            if len(unmatched):
                refused[self._ports[id(self.operators[i]), 0]] = unmatched
        else:
            given = kernels[0].step(memories[0], inputs, step)
        for kernel, memory in zip(kernels[1:], memories[1:], strict=True):
            given = kernel.step(memory, (given,), step)
        return given

    def _last_matched(self, i: int, changes: Brought, refused: dict[str, Int64s]) -> int:
        assert isinstance(changes, StreamDelta)
        unmatched = refused.get(self._ports[id(self.operators[i]), 0], no_int64s())
        return int(np.delete(changes.t, unmatched).max(initial=BEGINNING))

    def _arranged(self, i: int, changes: StreamDelta) -> StreamDelta:
        """The columns of the relation, then the change."""
        definition = self._tables[i]
        names = [column.name for column in definition.columns]
        order = [names.index(column.name) for column in definition.relation_columns]
        if definition.change_column is not None:
            order.append(names.index(definition.change_column))
        return replace(changes, values=changes.values.select(order))
