"""Rows with and without a partner, by counting.

Meaning: at every instant a row that is l times on its side, and r times in pairs, is without a partner l times if
    r = 0, and has one l times if r > 0; the pairs themselves are those of the inner join.
Emits: the pairs, where they are wanted; an open row when a row becomes one to be shown, its end when it is none any
    more. Negative tuples: arrivals and departures, in the order of time.
Keeps: what the inner join keeps; of a side that is looked at, each distinct row alive once with its two counts.
Needs: what the tactic of the inner join needs.
Costs: the inner join, and a hash look-up for each row and each pair of a side that is looked at.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> key = ColumnRef(0, pa.int64(), "k")
>>> schema = pa.schema([("k", pa.int64()), ("j", pa.int64())])
>>> def rows(key, ta, te):
...     return Delta(pa.record_batch({"k": [key]}), np.array([ta]), np.array([te]), np.full(1, NO_OPEN_ID), frontier=9)
>>> join = CountingKernel("left", JoinKernel("ring_hash", (key,), (key,), None, schema, 1), schema)
>>> out = join.step(join.start(), (rows(1, 1, 8), rows(1, 3, 5)), Step(0, 9, 0, OpenIdPool()))
>>> list(zip(out.values.column(1).to_pylist(), out.ta.tolist(), out.te.tolist()))
[(1, 3, 5), (None, 1, 3), (None, 5, 8)]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Delta, Ends, Int64s
from transom.core.time import FOREVER
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.kernel import Step
from transom.kernels.multiplicity import Shown, show
from transom.kernels.negative.join import NegativeJoinKernel, NegativeJoinState
from transom.kernels.tally import SignedTally, Steps

SIDES: Final = {"left": (0,), "right": (1,), "full": (0, 1), "semi": (0,), "anti": (0,)}
"""Of which sides it matters whether a row has a partner, by the kind of the join."""

PAIRS: Final = ("left", "right", "full")
"""The kinds that show pairs."""


@dataclass
class CountingState:
    """`tallies` and `shown` of the sides that are looked at; nothing is shown by number of negative tuples."""

    join: JoinState | NegativeJoinState
    tallies: list[SignedTally]
    shown: list[Shown] = field(default_factory=list)


@dataclass(frozen=True)
class CountingKernel:
    """`join` makes the pairs; `schema` is what comes out: rows of both sides, or of the left."""

    kind: str  # left, right, full, semi, anti
    join: JoinKernel | NegativeJoinKernel
    schema: pa.Schema

    def start(self) -> CountingState:
        tallies = [SignedTally.of(self._schema_of(side).types) for side in SIDES[self.kind]]
        shown = [] if self.negative else [Shown() for _ in tallies]
        return CountingState(self.join.start(), tallies, shown)

    def check(self, state: CountingState) -> None:
        for tally, shown in zip(state.tallies, state.shown, strict=False):
            shown.check_counts(self._times(tally.counts))

    def next_timer(self, state: CountingState) -> int:
        if isinstance(state.join, NegativeJoinState):
            return FOREVER
        assert isinstance(self.join, JoinKernel)
        return min(self.join.next_timer(state.join), *(tally.lifetimes.next_timer for tally in state.tallies))

    @cached_property
    def negative(self) -> bool:
        return isinstance(self.join, NegativeJoinKernel)

    def step(self, state: CountingState, inputs: tuple[Delta | Changelog, ...], step: Step) -> Delta | Changelog:
        pairs = self.join.step(state.join, inputs, step)  # type: ignore[arg-type]
        parts: list[Delta | Changelog] = [pairs] if self.kind in PAIRS else []
        for number, side in enumerate(SIDES[self.kind]):
            tally = state.tallies[number]
            steps = tally.advance((inputs[side], self._members(pairs, side)), step.frontier)
            before, after = self._times(steps.before), self._times(steps.after)
            if isinstance(pairs, Changelog):
                found: Delta | Changelog = self._changes(tally, steps, after - before, side, step)
            else:
                shown = state.shown[number]
                found = show(shown, tally, steps.t, steps.key, before, after, self._schema_of(side), step)
            tally.forget_gone(steps)
            parts.append(self._padded(found, side))
        return parts[0] if len(parts) == 1 else _together(parts, step)

    def _times(self, counts: Int64s) -> Int64s:
        rows, pairs = counts
        return np.where((pairs > 0) == (self.kind == "semi"), rows, 0)

    def _schema_of(self, side: int) -> pa.Schema:
        both, width = self.join.schema, self.join.left_width
        return pa.schema([both.field(i) for i in (range(width) if side == 0 else range(width, len(both)))])

    def _members(self, pairs: Delta | Changelog, side: int) -> Delta | Changelog:
        """The pairs as rows of one side, which live as long."""
        width = self.join.left_width
        columns = pairs.values.columns[:width] if side == 0 else pairs.values.columns[width:]
        values = pa.RecordBatch.from_arrays(columns, schema=self._schema_of(side))
        if isinstance(pairs, Changelog):
            return Changelog(values, pairs.t, pairs.departed, pairs.frontier)
        return Delta(values, pairs.ta, pairs.te, pairs.open_id, pairs.frontier, pairs.ends)

    def _changes(self, tally: SignedTally, steps: Steps, grew: Int64s, side: int, step: Step) -> Changelog:
        fewer, more = np.maximum(-grew, 0), np.maximum(grew, 0)
        key = np.concatenate([np.repeat(steps.key, fewer), np.repeat(steps.key, more)])
        t = np.concatenate([np.repeat(steps.t, fewer), np.repeat(steps.t, more)])
        schema = self._schema_of(side)
        values = pa.RecordBatch.from_arrays(tally.values.gather(key, schema.types), schema=schema)
        return Changelog(values, t, int(fewer.sum()), step.frontier)

    def _padded(self, rows: Delta | Changelog, side: int) -> Delta | Changelog:
        """Rows of one side as rows of the answer, with NULLs where the partner would be."""
        if self.kind not in PAIRS:
            values = rows.values.rename_columns(self.schema.names)
        else:
            values = padded(rows.values, self.schema, side)
        if isinstance(rows, Changelog):
            return Changelog(values, rows.t, rows.departed, rows.frontier)
        return Delta(values, rows.ta, rows.te, rows.open_id, rows.frontier, rows.ends)


def padded(values: pa.RecordBatch, schema: pa.Schema, side: int) -> pa.RecordBatch:
    """Columns of the left (0) or the right side (1) with NULLs for those of the other."""
    own = values.columns
    types = schema.types[len(own) :] if side == 0 else schema.types[: len(schema) - len(own)]
    nulls = [pa.nulls(len(values), type_) for type_ in types]
    return pa.RecordBatch.from_arrays([*own, *nulls] if side == 0 else [*nulls, *own], schema=schema)


def _together(parts: list[Delta | Changelog], step: Step) -> Delta | Changelog:
    deltas = [part for part in parts if isinstance(part, Delta)]
    if deltas:
        return together(deltas, step.frontier)
    logs = [part for part in parts if isinstance(part, Changelog)]
    cut = [(part.values[: part.departed], part.t[: part.departed]) for part in logs]
    cut += [(part.values[part.departed :], part.t[part.departed :]) for part in logs]
    values = pa.concat_batches([values for values, _ in cut])
    return Changelog(values, np.concatenate([t for _, t in cut]), sum(p.departed for p in logs), step.frontier)


def together(parts: list[Delta], frontier: int) -> Delta:
    """The rows of all, one after the other, with the ends of all."""
    ends = sum((part.ends for part in parts), Ends())
    full = [part for part in parts if len(part)] or parts[:1]
    if len(full) == 1:
        one = full[0]
        return Delta(one.values, one.ta, one.te, one.open_id, frontier, ends)
    return Delta(
        pa.concat_batches([part.values for part in full]),
        np.concatenate([part.ta for part in full]),
        np.concatenate([part.te for part in full]),
        np.concatenate([part.open_id for part in full]),
        frontier,
        ends,
    )
