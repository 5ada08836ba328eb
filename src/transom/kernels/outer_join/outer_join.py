"""Joins that know which rows have a partner: outer, semi and anti joins.

Meaning: LEFT, RIGHT, FULL: the pairs of the inner join, and a row of the named side with NULLs at the instants at which
    no partner is alive. A semi join has the rows of the left while one is alive, an anti join those while none is.
Emits: pairs as the inner join does; a row alone, or with a partner, open when that begins, and its end; or once it is
    over, where nobody wants it before. Rows with a NULL in the key never have a partner: where rows alone are shown
    they pass as they are, elsewhere they are left out.
Keeps: both sides, as the inner join does; how far each row is covered by partners (`watch.py`); pairs with open ends.
Needs: what the tactic needs.
Costs: as the inner join, a few numbers more a pair, and O(log n) moves of a timer a row. Semi and anti joins gather no
    pairs.

>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> key = ColumnRef(0, pa.int64(), "k")
>>> schema = pa.schema([("k", pa.int64()), ("j", pa.int64())])
>>> def rows(key, ta, te):
...     return Delta(pa.record_batch({"k": [key]}), np.array([ta]), np.array([te]), np.full(1, NO_OPEN_ID), frontier=9)
>>> join = OuterJoinKernel("ring_hash", (key,), (key,), None, schema, 1, "left", schema)
>>> out = join.step(join.start(), (rows(1, 1, 8), rows(1, 3, 5)), Step(0, 9, 0, OpenIdPool()))
>>> list(zip(out.values.column(1).to_pylist(), out.ta.tolist(), out.te.tolist()))
[(1, 3, 5), (None, 1, 3), (None, 5, 8)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, forever, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch, validity
from transom.kernels.join.join import JoinKernel, JoinState, evaluated
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import LEFT, OPEN_ID, RIGHT, OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.side import PAIR_TE, TE
from transom.kernels.kernel import OPEN_END, Step, open_rows, select_rows
from transom.kernels.outer_join.kinds import PAIRS, SIDES, padded
from transom.kernels.outer_join.watch import SHOWN, Watch, advance
from transom.state.checks import need
from transom.state.codec import saved_bytes


@dataclass
class PartnerPairs(OpenPairs):
    """Open pairs, which have open row ids only where pairs are shown."""

    def owned(self) -> list[Int64s]:
        found = self.pairs[OPEN_ID, self.slots.used()]
        return [found[found != NO_OPEN_ID]]


@dataclass
class OuterJoinState(JoinState):
    """`watches` of the sides of which it matters whether a row has a partner."""

    open_pairs: PartnerPairs = field(default_factory=PartnerPairs)
    watches: list[Watch] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)

    def check(self) -> None:
        super().check()
        need(len(self.watches) == len(self.watched) <= 2 and set(self.watched) <= {0, 1})
        for watch, side in zip(self.watches, self.watched, strict=True):
            watch.check_side(self.sides[side])

    def owned(self) -> list[Int64s]:
        shown = [w.owned_by(self.sides[i].used()) for w, i in zip(self.watches, self.watched, strict=True)]
        return [*self.open_pairs.owned(), *shown]

    @property
    def sides(self) -> tuple[RingSide | LazySide, RingSide | LazySide]:
        return self.left, self.right

    def compacted(self) -> JoinState:
        return self

    def compacted_bytes(self) -> int:
        return saved_bytes([self.left, self.right, self.open_pairs, self.watches])


@dataclass(frozen=True)
class OuterJoinKernel(JoinKernel):
    """`schema` is that of a pair, `answer` that of what comes out: rows of both sides, or of the left.

    `over`: what is shown of rows by themselves is wanted once it is over, and is not given before. `stays`: pairs stay,
    and a row that is alone when it ends has FOREVER as its end; no end is open in the inputs.
    """

    kind: str  # left, right, full, semi, anti
    answer: pa.Schema
    over: bool = False
    stays: bool = False

    def start(self) -> OuterJoinState:
        empty = super().start()
        sides = SIDES[self.kind]
        return OuterJoinState(empty.left, empty.right, watches=[Watch() for _ in sides], watched=list(sides))

    def next_timer(self, state: JoinState) -> int:
        assert isinstance(state, OuterJoinState)
        known = min(super().next_timer(state), *(watch.timers.next_timer for watch in state.watches))
        alive = any(state.sides[i].alive for i in state.watched)
        return min(known, FOREVER - 1) if self.over and alive else known  # at the end of all input all is shown

    def step(self, state: JoinState, inputs: tuple[Delta, Delta], step: Step) -> Delta:
        assert isinstance(state, OuterJoinState)
        bounds = [_bounds(side) for side in state.sides]
        keys = (evaluated(self.left_keys, inputs[0]), evaluated(self.right_keys, inputs[1]))
        new = (self._take(state.left, inputs[0], keys[0]), self._take(state.right, inputs[1], keys[1]))
        for i, side in enumerate(state.sides):
            if len(new[i]):
                state.addresses.refresh(i, side.mask)
        for watch, i in zip(state.watches, state.watched, strict=True):
            watch.fit(state.sides[i], *bounds[i])
        parts = self._pairs(state, *new, step.frontier)
        pairs = np.empty((4, 0), dtype=np.int64) if not parts else np.concatenate(parts, axis=1)
        if self.stays:
            pairs[PAIR_TE] = FOREVER
        dead = (state.left.expire(step.frontier), state.right.expire(step.frontier))
        closed, ends = self._ended(state, dead, step)
        out: list[Delta] = []
        if self.kind in PAIRS and pairs.shape[1]:
            out.append(self._emit(state, pairs, step))
        elif self.kind not in PAIRS:
            self._remember(state, pairs)
        for watch, i in zip(state.watches, state.watched, strict=True):
            out.append(self._watched(state, watch, i, (new[i], pairs, closed, dead[i]), step))
            if self.kind != "semi" and self.left_keys:
                out.append(self._never_paired(inputs[i], keys[i], i, step))
        state.left.free(dead[0])
        state.right.free(dead[1])
        return self._together(out, ends, step)

    def _ended(self, state: OuterJoinState, dead: tuple[Int64s, Int64s], step: Step) -> tuple[Int64s, Ends]:
        """The open pairs that ended with their first member (left, right, te), and the ends of those that are shown."""
        found: list[Int64s] = []
        ends = Ends()
        for side in (0, 1):
            open_id, te, places = state.open_pairs.close(dead[side], side, state.left, state.right)
            found.append(np.stack([*state.open_pairs.pairs[[LEFT, RIGHT]][:, places], te]))
            if self.kind in PAIRS:
                ends += step.open_ids.close(open_id, te)
        return np.concatenate(found, axis=1), ends

    def _remember(self, state: OuterJoinState, pairs: Int64s) -> None:
        """Open pairs that nobody sees: whoever is in one has a partner until it ends."""
        pairs = pairs[:, pairs[PAIR_TE] == OPEN_END]
        if pairs.shape[1]:
            nobody = np.full(pairs.shape[1], NO_OPEN_ID, dtype=np.int64)
            left, right = state.left, state.right
            state.open_pairs.add(
                pairs[0], pairs[1], nobody, left.first_pair, left.mask, right.first_pair, right.mask
            )  # fmt: skip

    def _watched(
        self, state: OuterJoinState, watch: Watch, i: int, brought: tuple[Int64s, Int64s, Int64s, Int64s], step: Step
    ) -> Delta:
        """What is shown of the rows of one side by themselves."""
        side = state.sides[i]
        new, pairs, closed, dead = brought
        due = watch.due(step.frontier)
        over = self.over and step.frontier < FOREVER
        others = side.used() if self.over and not over else no_int64s()
        te = forever(len(dead)) if self.stays else side.entries[dead & watch.mask, TE]
        rows, ends, timers = advance(
            watch.marks, watch.mask, side.entries, new, pairs[[i, 2, 3]], closed[[i, 2]], np.stack([dead, te]),
            due, others, step.frontier, self.kind == "semi", over,
        )  # fmt: skip
        watch.add_timers(timers)
        stopped = step.open_ids.close(ends[0], ends[1])
        if not rows.shape[1]:
            return Delta(empty_batch(self.answer), no_int64s(), no_int64s(), no_int64s(), step.frontier, stopped)
        types = self.schema.types[: self.left_width] if i == 0 else self.schema.types[self.left_width :]
        values = padded(side.gather(rows[0], range(len(types)), types), self.answer, i)
        delta, open_id = open_rows(values, rows[1], rows[2], step, stopped)
        is_open = rows[2] == OPEN_END
        watch.marks[rows[0, is_open] & watch.mask, SHOWN] = open_id[is_open]
        return delta

    def _never_paired(self, delta: Delta, keys: Sequence[pa.Array], i: int, step: Step) -> Delta:
        """Rows with a NULL in the key, as they came: no side keeps them."""
        null = np.zeros(len(delta), dtype=np.bool_)
        for valid in map(validity, keys):
            if valid is not None:
                null |= valid == 0
        lonely = Delta(delta.values[:0], no_int64s(), no_int64s(), no_int64s(), step.frontier, delta.ends)
        if null.any():
            lonely = select_rows(delta, null)
            if self.stays:
                lonely = replace(lonely, te=forever(len(lonely)))
        values = padded(lonely.values.columns, self.answer, i)
        return Delta(values, lonely.ta, lonely.te, lonely.open_id, step.frontier, lonely.ends)

    def _together(self, parts: list[Delta], ends: Ends, step: Step) -> Delta:
        """The rows of all, one after the other, with the ends of all."""
        ends = sum((part.ends for part in parts), ends)
        full = [part for part in parts if len(part)]
        if not full:
            return Delta(empty_batch(self.answer), no_int64s(), no_int64s(), no_int64s(), step.frontier, ends)
        if len(full) == 1:
            (one,) = full
            return Delta(one.values, one.ta, one.te, one.open_id, step.frontier, ends)
        values = pa.concat_batches([part.values.rename_columns(self.answer.names) for part in full])
        ta, te, open_id = (
            np.concatenate([getattr(part, name) for part in full]) for name in ("ta", "te", "open_id")
        )  # fmt: skip
        return Delta(values, ta, te, open_id, step.frontier, ends)


def _bounds(side: RingSide | LazySide) -> tuple[int, int]:
    return (side.oldest, side.newest) if isinstance(side, RingSide) else (0, 0)
