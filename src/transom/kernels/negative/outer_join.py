"""Rows with and without a partner under negative tuples.

Meaning: at every instant a row that is l times on its side, and r times in pairs, is without a partner l times if
    r = 0, and has one l times if r > 0; the pairs themselves are those of the inner join.
Emits: the pairs, where they are wanted; arrivals when a row becomes one to be shown, departures when it is none any
    more.
Keeps: what the inner join keeps; of a side that is looked at, each distinct row alive once with its two counts.
Needs: what the tactic of the inner join needs.
Costs: the inner join, and a hash look-up for each row and each pair of a side that is looked at, whenever it arrives
    and departs.

>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> key = ColumnRef(0, pa.int64(), "k")
>>> schema = pa.schema([("k", pa.int64()), ("j", pa.int64())])
>>> rows = Changelog(pa.record_batch({"k": [1]}), np.array([1]), departed=0, frontier=9)
>>> later = Changelog(pa.record_batch({"k": [1]}), np.array([3]), departed=0, frontier=9)
>>> join = NegativeOuterJoinKernel("left", NegativeJoinKernel("ring_hash", (key,), (key,), None, schema, 1), schema)
>>> out = join.step(join.start(), (rows, later), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(1).to_pylist(), out.t.tolist(), out.departed
([None, 1, None], [3, 3, 1], 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Int64s
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.negative.join import NegativeJoinKernel, NegativeJoinState
from transom.kernels.outer_join.kinds import PAIRS, SIDES, padded, side_schema
from transom.kernels.tally import SignedTally


@dataclass
class NegativeOuterJoinState:
    """`tallies` of the sides that are looked at."""

    join: NegativeJoinState
    tallies: list[SignedTally]


@dataclass(frozen=True)
class NegativeOuterJoinKernel:
    """`join` makes the pairs; `schema` is what comes out: rows of both sides, or of the left."""

    kind: str  # left, right, full, semi, anti
    join: NegativeJoinKernel
    schema: pa.Schema

    def start(self) -> NegativeOuterJoinState:
        tallies = [SignedTally.of(self._schemas[side].types) for side in SIDES[self.kind]]
        return NegativeOuterJoinState(self.join.start(), tallies)

    def next_timer(self, state: NegativeOuterJoinState) -> int:
        return FOREVER

    @cached_property
    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        both, width = self.join.schema, self.join.left_width
        return side_schema(both, width, 0), side_schema(both, width, 1)

    def step(self, state: NegativeOuterJoinState, inputs: tuple[Changelog, Changelog], step: Step) -> Changelog:
        pairs = self.join.step(state.join, inputs, step)
        parts = [pairs] if self.kind in PAIRS else []
        for tally, side in zip(state.tallies, SIDES[self.kind], strict=True):
            steps = tally.advance((inputs[side], self._members(pairs, side)), step.frontier)
            grew = self._times(steps.after) - self._times(steps.before)
            fewer, more = np.maximum(-grew, 0), np.maximum(grew, 0)
            key = np.concatenate([np.repeat(steps.key, fewer), np.repeat(steps.key, more)])
            t = np.concatenate([np.repeat(steps.t, fewer), np.repeat(steps.t, more)])
            values = padded(tally.values.gather(key, self._schemas[side].types), self.schema, side)
            tally.forget_gone(steps)
            parts.append(Changelog(values, t, int(fewer.sum()), step.frontier))
        return parts[0] if len(parts) == 1 else _together(parts)

    def _times(self, counts: Int64s) -> Int64s:
        rows, pairs = counts
        return np.where((pairs > 0) == (self.kind == "semi"), rows, 0)

    def _members(self, pairs: Changelog, side: int) -> Changelog:
        """The pairs as rows of one side, which come and go with them."""
        width = self.join.left_width
        columns = pairs.values.columns[:width] if side == 0 else pairs.values.columns[width:]
        values = pa.RecordBatch.from_arrays(columns, schema=self._schemas[side])
        return Changelog(values, pairs.t, pairs.departed, pairs.frontier)


def _together(parts: Sequence[Changelog]) -> Changelog:
    """What departed from all of them, then what arrived."""
    cut = [(part.values[: part.departed], part.t[: part.departed]) for part in parts]
    cut += [(part.values[part.departed :], part.t[part.departed :]) for part in parts]
    values = pa.concat_batches([values for values, _ in cut])
    t = np.concatenate([t for _, t in cut])
    return Changelog(values, t, sum(part.departed for part in parts), parts[0].frontier)
