"""ISTREAM, DSTREAM and RSTREAM, and the changes that a sink writes.

Meaning: ISTREAM at t is the bag difference R(t) - R(t-), DSTREAM is R(t-) - R(t), RSTREAM is R(t) at every instant at
    which R changed, or, over windows with a RANGE slide alone, at every multiple of a slide, up to the last finite end.
    CHANGES is both differences, with a column that says which.
Emits: stream rows ascending in time; rows of one instant in the order of their values (CHANGES: what left first).
Keeps: each value alive once with its count, two numbers per row alive (of negative tuples: none).
Needs: nothing.
Costs: a hash look-up a row, sorting what begins and ends in the step; RSTREAM writes the whole snapshot each time.

>>> from transom.core.delta import NO_OPEN_ID, Delta
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"a": [7, 7]}), np.array([1, 4]), np.array([4, 6]), np.full(2, NO_OPEN_ID), frontier=9)
>>> kernel = ToStreamKernel("istream", pa.schema([("a", pa.int64())]))
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.t.tolist()  # the second 7 enters when the first leaves: they cancel
[1]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Delta, Int64s, StreamDelta, no_int64s
from transom.core.errors import EvaluationError
from transom.core.schema import CHANGE_COLUMN
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.kernel import Step
from transom.kernels.mould import Moulds
from transom.kernels.tally import Steps, Tally
from transom.state.checks import need
from transom.state.codec import saved_bytes
from transom.state.slots import grown

MOST_ROWS = 1 << 26  # of an RSTREAM in one step: over slides a leap of time makes any number of them


@dataclass
class ToStreamState:
    """`shown` is the snapshot as of the last instant that RSTREAM has looked at."""

    tally: Tally
    shown: Int64s = field(default_factory=no_int64s)

    def check(self) -> None:
        """RSTREAM looks at values by their numbers."""
        high = self.tally.keys.slots.high
        need(bool((self.shown >= 0).all()) and not self.shown[high:].any())

    def compacted(self) -> ToStreamState:
        """The state without the room for more; RSTREAM knows values by their numbers, so there it stays as it is."""
        return self if len(self.shown) else ToStreamState(self.tally.trimmed())

    def compacted_bytes(self) -> int:
        return saved_bytes([self.tally, self.shown]) if len(self.shown) else self.tally.trimmed_bytes()


@dataclass(frozen=True)
class ToStreamKernel:
    change: str  # istream, dstream, rstream, changes
    schema: pa.Schema
    slides: tuple[int, ...] = ()

    def start(self) -> ToStreamState:
        return ToStreamState(Tally.of(self.schema.types))

    def next_timer(self, state: ToStreamState) -> int:
        """RSTREAM over slides says what is there at every multiple of one."""
        return BEGINNING if self.slides and self.change == "rstream" else state.tally.lifetimes.next_timer

    def step(self, state: ToStreamState, inputs: tuple[Delta | Changelog], step: Step) -> StreamDelta:
        steps = state.tally.advance(inputs, step.frontier)
        if self.change == "rstream":
            t, key = self._snapshots(state, steps, step)
            sign = no_int64s()
        else:
            t, key, sign = self._differences(steps)
        order = self._order(state, t, key, sign)
        if order is not None:
            t, key = t[order], key[order]
            sign = sign[order] if len(sign) else sign
        values = self._moulds.batch(state.tally.addresses, key.reshape(-1, 1))
        if values is None:
            arrays = state.tally.values.gather(key, self.schema.types)
            values = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if self.change == "changes":
            texts = pa.DictionaryArray.from_arrays(pa.array(sign), pa.array(["-", "+"]))
            values = values.add_column(0, CHANGE_COLUMN, texts.cast(pa.string()))
        state.tally.forget_gone(steps)
        return StreamDelta(values, t, step.frontier)

    @cached_property
    def _moulds(self) -> Moulds:
        return Moulds(self.schema, range(len(self.schema)))

    def _order(self, state: ToStreamState, t: Int64s, key: Int64s, sign: Int64s) -> Int64s | None:
        """Rows of one instant by sign and value; None where no two rows share one. Time ascends already."""
        same = t[1:] == t[:-1]
        if not same.any():
            return None
        tied = np.zeros(len(t), dtype=np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        indexes = np.flatnonzero(tied)
        by = [state.tally.keys.ranks(key[indexes]), t[indexes]]
        if len(sign):
            by.insert(1, sign[indexes])
        order = np.arange(len(t))
        order[indexes] = indexes[np.lexsort(by)]
        return order

    def _differences(self, steps: Steps) -> tuple[Int64s, Int64s, Int64s]:
        """Time, value and sign (0 left, 1 entered) of every row that changed."""
        grew = steps.after[0] - steps.before[0]
        if self.change == "istream":
            times = np.maximum(grew, 0)
        elif self.change == "dstream":
            times = np.maximum(-grew, 0)
        else:
            times = np.abs(grew)
        signs = np.repeat((grew > 0).astype(np.int64), times) if self.change == "changes" else no_int64s()
        return np.repeat(steps.t, times), np.repeat(steps.key, times), signs

    def _snapshots(self, state: ToStreamState, steps: Steps, step: Step) -> tuple[Int64s, Int64s]:
        if state.tally.counts.shape[1] > len(state.shown):
            state.shown = grown(state.shown, state.tally.counts.shape[1])
        changed, first = np.unique(steps.t, return_index=True)
        bounds = np.append(first, len(steps.t))
        # At the end of all input slides go on up to the horizon only.
        limit = step.frontier if step.frontier < FOREVER else step.horizon + 1
        edges = [step.before, *changed.tolist(), limit]
        parts: list[tuple[Int64s, Int64s]] = []
        rows = 0
        for i, (begin, end) in enumerate(pairwise(edges)):
            if i:
                entries = slice(bounds[i - 1], bounds[i])
                state.shown[steps.key[entries]] = steps.after[0, entries]
            elif not self.slides:
                continue
            alive = np.flatnonzero(state.shown)
            if not len(alive):
                continue  # time may leap far ahead here: nothing is shown on the way
            count = sum(max(end - begin, 0) // slide + 1 for slide in self.slides) or 1
            rows += count * int(state.shown[alive].sum())
            if rows > MOST_ROWS:
                raise EvaluationError(
                    f"RSTREAM would emit more than {MOST_ROWS:,} rows in one step",
                    remedy="SET batch_rows to a smaller number, write a longer SLIDE, or ISTREAM for what is new alone",
                )
            instants = self._multiples(begin, end) if self.slides else np.array([begin])
            keys = np.repeat(alive, state.shown[alive])
            parts.append((np.repeat(instants, len(keys)), np.tile(keys, len(instants))))
        if not parts:
            return no_int64s(), no_int64s()
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _multiples(self, begin: int, end: int) -> Int64s:
        """Multiples of the slides in [begin, end)."""
        parts = [np.arange(-(-begin // slide) * slide, end, slide, dtype=np.int64) for slide in self.slides]
        return np.unique(np.concatenate(parts))
