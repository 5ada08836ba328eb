"""Tactics of an aggregate over a join of two, as they are hosted by the adaptive one: each can hand over all it knows.

Meaning: that of the tactic that is hosted.
Emits: the same.
Keeps: what it keeps; factorised beside that all columns of the rows alive, and the order in which they came.
Needs: two inputs joined on one set of keys and by nothing else.
Costs: as it costs, and some ten nanoseconds a row and column more.

What is known is the rows alive, in the order in which they came, and which rows of the answer are open. So any of them
can go on where another stopped: it takes the rows as if they had all come at the last instant that is over, and then
shows what the other one showed, which is the same by value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec, AggregateState
from transom.kernels.alive_rows import alive_rows, replace_ids
from transom.kernels.jit import jit
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.joinagg.factorised import FactorisedKernel, FactorisedState
from transom.kernels.joinagg.spec import JoinAggregateSpec
from transom.kernels.joinagg.step_delta import group_keys, sum_words
from transom.kernels.kernel import Step
from transom.kernels.row_store import RowStore
from transom.plan.expression import ColumnRef
from transom.state.checks import need, rooms, within
from transom.state.slots import grown

SAMPLED = 512  # rows of an input and a step whose matches are counted where nothing else counts them


class Traffic(NamedTuple):
    """What passed in a step: rows that came, pairs that they made or would have made, and groups that they met."""

    rows: int
    pairs: float
    groups: float


class HostedTactic(Protocol):
    """A kernel that can hand over what it knows, and go on from what another one knew."""

    @property
    def name(self) -> str: ...

    def start(self) -> Any: ...

    def check(self, state: Any) -> None: ...

    def next_timer(self, state: Any) -> int: ...

    def step(self, state: Any, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, Traffic]: ...

    def alive(self, state: Any) -> int:
        """How many rows are alive."""

    def pairs_alive(self, state: Any) -> float:
        """How many pairs of them meet, about."""

    def rows(self, state: Any) -> tuple[Delta, ...]:
        """The rows alive of each input, the oldest first; where they began is not said."""

    def shown(self, state: Any) -> tuple[list[pa.Array], Int64s]:
        """The keys of the groups that show something, and the open row ids of what they show."""

    def adopt(self, state: Any, open_ids: Int64s, instead: Int64s) -> None:
        """The rows that the tactic shows under `open_ids` are shown under the ids of `instead` from now on."""

    def close(self, state: Any, step: Step) -> None:
        """The tactic is put down: nobody waits for the open row ids that it alone knows."""


@dataclass
class JoinedState:
    """The join, and the aggregate of its rows."""

    join: JoinState
    aggregate: AggregateState


@dataclass(frozen=True)
class PartialAggregateKernel(AggregateKernel):
    """An aggregate whose results are partial ones, for a merge; the first call counts rows. No sum is floating."""

    def result_type(self, c: int) -> pa.DataType:
        argument = self.calls[c].argument
        assert argument is not None
        return self.input_types[argument]

    def results(
        self, state: AggregateState, group: Int64s, words: Int64s, listed: Int64s | None = None
    ) -> list[pa.Array]:
        arrays = state.key_values.gather(group, [self.input_types[i] for i in self.keys])
        for c, spec in enumerate(self.calls):
            if spec.function in ("min", "max"):
                arrays.append(self._result(state, c, spec, words))
                continue
            top, hi, lo, n = self.words_of(c, words)
            if c and spec.argument is None:  # the rows are counted already
                continue
            arrays.append(pa.array(n, pa.int64()))
            if spec.function in ("sum", "avg"):
                arrays += sum_words(top, hi, lo)
        return arrays


@dataclass(frozen=True)
class PipelineHost:
    """pc: the join, and the aggregate of its rows. `final` is as for the aggregate."""

    spec: JoinAggregateSpec
    join_tactic: str
    final: bool = False
    name = "pc"

    @cached_property
    def join(self) -> JoinKernel:
        sides = [
            tuple(ColumnRef(c, self.spec.input_types[i][c], str(c)) for c in columns)
            for i, columns in enumerate(self.spec.key_columns)
        ]
        types = [type_ for types in self.spec.input_types for type_ in types]
        schema = pa.schema([(str(i), type_) for i, type_ in enumerate(types)])
        return JoinKernel(
            self.join_tactic, sides[0], sides[1], self.spec.residual, schema, len(self.spec.input_types[0])
        )

    @cached_property
    def aggregate(self) -> AggregateKernel:
        first = (0, len(self.spec.input_types[0]))
        keys = tuple(first[i] + c for i, c in self.spec.group)
        calls = []
        for call in self.spec.calls:
            argument = None
            if call.input is not None and call.column is not None:
                argument = first[call.input] + call.column
            calls.append(AggregateSpec(call.function, argument, False))
        types = tuple(self.join.schema.types)
        if self.spec.partial:
            counted = (AggregateSpec("count", None, False), *calls)
            return PartialAggregateKernel(keys, counted, self.spec.schema, types)
        return AggregateKernel(keys, tuple(calls), self.spec.schema, types, final=self.final)

    def start(self) -> JoinedState:
        return JoinedState(self.join.start(), self.aggregate.start())

    def check(self, state: JoinedState) -> None:
        self.aggregate.check(state.aggregate)

    def next_timer(self, state: JoinedState) -> int:
        return min(self.join.next_timer(state.join), self.aggregate.next_timer(state.aggregate))

    def step(self, state: JoinedState, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, Traffic]:
        left, right = inputs
        pairs = self.join.step(state.join, (left, right), step)
        out = self.aggregate.step(state.aggregate, (pairs,), step)
        groups = state.aggregate.keys.slots.in_use if self._grouped_apart else 1
        made, rows = len(pairs), len(left) + len(right)
        return out, Traffic(rows, made, min(made, rows * groups))

    @cached_property
    def _grouped_apart(self) -> bool:
        """Whether rows of one key may be of several groups."""
        return any(c not in self.spec.key_columns[i] for i, c in self.spec.group)

    def alive(self, state: JoinedState) -> int:
        return state.join.left.alive + state.join.right.alive

    def pairs_alive(self, state: JoinedState) -> float:
        return state.aggregate.slots.in_use

    def rows(self, state: JoinedState) -> tuple[Delta, ...]:
        sides = (state.join.left, state.join.right)
        return tuple(alive_rows(side, types) for side, types in zip(sides, self.spec.input_types, strict=True))

    def shown(self, state: JoinedState) -> tuple[list[pa.Array], Int64s]:
        aggregate = state.aggregate
        groups = aggregate.keys.slots.used() if self.spec.group else np.arange(min(1, len(aggregate.shown)))
        groups = groups[aggregate.shown[groups] >= 0]
        types = [self.aggregate.input_types[i] for i in self.aggregate.keys]
        return aggregate.key_values.gather(groups, types), aggregate.shown[groups]

    def adopt(self, state: JoinedState, open_ids: Int64s, instead: Int64s) -> None:
        replace_ids(state.aggregate.shown, open_ids, instead)

    def close(self, state: JoinedState, step: Step) -> None:
        for own in state.join.open_pairs.owned():
            step.open_ids.close(own, np.full(len(own), step.before, dtype=np.int64))


@dataclass
class MovableState(FactorisedState):
    """`columns` are all columns of the rows alive, by input and slot; `came` says in which order they came.

    `latest` are some of the rows of the step that is under way, and `met` what the last step's have met: pairs, groups.
    """

    columns: list[RowStore] = field(default_factory=list)
    came: Int64s = field(default_factory=no_int64s)
    count: int = 0
    latest: list[Int64s] = field(default_factory=list)
    met: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def compacted(self) -> MovableState:
        shorter = super().compacted()
        assert isinstance(shorter, MovableState)
        return replace(shorter, came=self.came[: self.rows.slots.high])


@dataclass(frozen=True)
class MovableKernel(FactorisedKernel):
    """The factorised join-aggregate, which keeps all columns of its rows for whoever goes on, and counts matches."""

    def start(self) -> MovableState:
        base = super().start()
        columns = [RowStore.of(types) for types in self.spec.input_types]
        return MovableState(base.rows, base.totals, base.bundles, base.links, base.lifetimes, columns=columns)

    def check(self, state: FactorisedState) -> None:
        assert isinstance(state, MovableState)
        super().check(state)
        rooms(state.rows.slots.high, state.came)
        need(not state.latest and len(state.met) == 2)
        slots = state.rows.slots.used()
        for i, store in enumerate(state.columns):
            within(slots[state.rows.input[slots] == i], store.capacity)

    def step(self, state: FactorisedState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        assert isinstance(state, MovableState)
        out = super().step(state, inputs, step)
        state.latest = []
        return out

    def _admit(self, state: FactorisedState, i: int, delta: Delta) -> tuple[Int64s, Delta]:
        assert isinstance(state, MovableState)
        slots, admitted = super()._admit(state, i, delta)
        if state.rows.slots.high > len(state.came):
            state.came = grown(state.came, state.rows.slots.high)
        state.came[slots] = np.arange(state.count, state.count + len(slots))
        state.count += len(slots)
        state.columns[i].reserve(len(state.came))
        state.columns[i].write(slots, admitted.values.columns)
        state.latest.append(slots[:: -(-len(slots) // SAMPLED) or 1])
        return slots, admitted

    def _release(self, state: FactorisedState, ended: Int64s) -> None:
        assert isinstance(state, MovableState)
        slots = np.concatenate([no_int64s(), *state.latest])
        if len(slots):
            pairs, groups = met_by(slots, state.row_bundle, state.bundles.arrays())
            state.met = [pairs / len(slots), groups / len(slots)]
        for i, store in enumerate(state.columns):
            store.free(ended[state.rows.input[ended] == i])
        super()._release(state, ended)


@jit
def met_by(slots, row_bundle, bundles):  # type: ignore[no-untyped-def]
    """How many rows of the other of two inputs these rows meet in all, and how many groups of them."""
    list_of, rows, first, following = bundles.words[0], bundles.rows, bundles.first, bundles.following
    pairs = np.int64(0)
    groups = np.int64(0)
    for slot in slots:
        other = first[list_of[row_bundle[slot]] ^ 1]
        while other >= 0:
            pairs += rows[other]
            groups += np.int64(rows[other] > 0)
            other = following[other]
    return pairs, groups


@dataclass(frozen=True)
class FactorisedHost:
    """factorised, with all columns of the rows alive beside it."""

    spec: JoinAggregateSpec
    name = "factorised"

    @cached_property
    def kernel(self) -> MovableKernel:
        return MovableKernel(self.spec)

    def start(self) -> MovableState:
        return self.kernel.start()

    def check(self, state: MovableState) -> None:
        self.kernel.check(state)

    def next_timer(self, state: MovableState) -> int:
        return self.kernel.next_timer(state)

    def step(self, state: MovableState, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, Traffic]:
        out = self.kernel.step(state, inputs, step)
        rows = sum(map(len, inputs))
        return out, Traffic(rows, rows * state.met[0], rows * state.met[1])

    def alive(self, state: MovableState) -> int:
        return state.rows.slots.in_use

    def pairs_alive(self, state: MovableState) -> float:
        return float(state.totals.rows[state.totals.groups.slots.used()].sum())

    def rows(self, state: MovableState) -> tuple[Delta, ...]:
        slots = state.rows.slots.used()
        slots = slots[np.argsort(state.came[slots], kind="stable")]
        return tuple(self._of_input(state, i, slots[state.rows.input[slots] == i]) for i in range(len(state.columns)))

    def _of_input(self, state: MovableState, i: int, slots: Int64s) -> Delta:
        types, lifetimes = self.spec.input_types[i], state.lifetimes[i]
        arrays = state.columns[i].gather(slots, types)
        values = pa.RecordBatch.from_arrays(arrays, names=[str(c) for c in range(len(types))])
        room = len(state.came)
        return Delta(values, no_int64s(), lifetimes.ends(room)[slots], lifetimes.open_ids(room)[slots], FOREVER)

    def shown(self, state: MovableState) -> tuple[list[pa.Array], Int64s]:
        totals = state.totals
        groups = totals.groups.slots.used()
        groups = groups[totals.shown[groups] >= 0]
        keys = group_keys(self.spec, totals, state.rows, groups) if len(groups) else self._no_keys
        return keys, totals.shown[groups]

    @cached_property
    def _no_keys(self) -> list[pa.Array]:
        return [pa.nulls(0, self.spec.input_types[i][c]) for i, c in self.spec.group]

    def adopt(self, state: MovableState, open_ids: Int64s, instead: Int64s) -> None:
        replace_ids(state.totals.shown, open_ids, instead)

    def close(self, state: MovableState, step: Step) -> None:
        """All its open row ids are those of rows that it shows."""
