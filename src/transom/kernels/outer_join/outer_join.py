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
[(None, 1, 3), (None, 5, 8), (1, 3, 5)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import MISSING, NAMELESS, NO_OPEN_ID, Delta, Ends, Halves, Int64s, forever, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import alike, empty_batch, validity
from transom.kernels.join.join import JoinKernel, JoinState, evaluated
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import LEFT, OPEN_ID, RIGHT, OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.side import PAIR_TA, PAIR_TE, TE
from transom.kernels.kernel import OPEN_END, Step, open_rows, select_rows
from transom.kernels.mould import FEW
from transom.kernels.outer_join.kinds import PAIRS, SIDES, padded
from transom.kernels.outer_join.watch import SHOWN, SideLines, Watch, advance
from transom.state.checks import need
from transom.state.codec import saved_bytes


@dataclass
class PartnerPairs(OpenPairs):
    """Open pairs, which have open row ids only where pairs are shown."""

    def owned(self) -> list[Int64s]:
        open_ids = self.pairs[OPEN_ID, self.slots.used()]
        return [open_ids[open_ids != NO_OPEN_ID]]


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
        next_timer = min(super().next_timer(state), *(watch.timers.next_timer for watch in state.watches))
        alive = any(state.sides[i].alive for i in state.watched)
        # At the end of all input all is shown.
        return min(next_timer, FOREVER - 1) if self.over and alive else next_timer

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
        if self.kind not in PAIRS:
            self._remember(state, pairs)
        alone = [_NO_ROWS, _NO_ROWS]
        for watch, i in zip(state.watches, state.watched, strict=True):
            alone[i], stopped = self._watched(state, watch, i, (new[i], pairs, closed, dead[i]), step)
            ends += stopped
        out = self._shown(state, alone, pairs if self.kind in PAIRS else pairs[:, :0], ends, step)
        if self.kind != "semi" and self.left_keys:
            for i in state.watched:
                out = self._with_never_paired(out, inputs[i], keys[i], i)
        state.left.free(dead[0])
        state.right.free(dead[1])
        return out

    def _ended(self, state: OuterJoinState, dead: tuple[Int64s, Int64s], step: Step) -> tuple[Int64s, Ends]:
        """The open pairs that ended with their first member (left, right, te), and the ends of those that are shown."""
        ended: list[Int64s] = []
        ends = Ends()
        for side in (0, 1):
            open_id, te, places = state.open_pairs.close(dead[side], side, state.left, state.right)
            ended.append(np.stack([*state.open_pairs.pairs[[LEFT, RIGHT]][:, places], te]))
            if self.kind in PAIRS:
                ends += step.open_ids.close(open_id, te)
        return np.concatenate(ended, axis=1), ends

    def _remember(self, state: OuterJoinState, pairs: Int64s) -> None:
        """Open pairs that nobody sees: whoever is in one has a partner until it ends."""
        pairs = pairs[:, pairs[PAIR_TE] == OPEN_END]
        if pairs.shape[1]:
            self._add_open_pairs(state, pairs, np.full(pairs.shape[1], NO_OPEN_ID, dtype=np.int64))

    def _add_open_pairs(self, state: OuterJoinState, pairs: Int64s, open_id: Int64s) -> None:
        left, right = state.left, state.right
        state.open_pairs.add(
            pairs[LEFT], pairs[RIGHT], open_id, left.first_pair, left.mask, right.first_pair, right.mask
        )  # fmt: skip

    def _watched(
        self, state: OuterJoinState, watch: Watch, i: int, brought: tuple[Int64s, Int64s, Int64s, Int64s], step: Step
    ) -> tuple[Int64s, Ends]:
        """What is shown of the rows of one side by themselves (position, ta, te), and the ends of what was shown."""
        side = state.sides[i]
        new, pairs, closed, dead = brought
        due = watch.due(step.frontier)
        over = self.over and step.frontier < FOREVER
        others = side.used() if self.over and not over else no_int64s()
        te = forever(len(dead)) if self.stays else side.entries[dead & watch.mask, TE]
        rows, ends, timers = advance(
            SideLines(watch.marks, watch.mask, side.entries), new, alike(pairs), i, closed, dead, alike(te),
            due, others, step.frontier, self.kind == "semi", over,
        )  # fmt: skip
        watch.add_timers(timers)
        return rows, step.open_ids.close(ends[0], ends[1])

    def _shown(self, state: OuterJoinState, alone: Sequence[Int64s], pairs: Int64s, ends: Ends, step: Step) -> Delta:
        """Rows of the left by themselves, pairs, and rows of the right by themselves, one behind the other."""
        of_left, of_right = alone[0].shape[1], alone[1].shape[1]
        count = of_left + pairs.shape[1] + of_right
        if not count:
            return Delta(empty_batch(self.answer), no_int64s(), no_int64s(), no_int64s(), step.frontier, ends)
        values = halves = None
        if self.kind not in PAIRS:
            types = self.schema.types[: self.left_width]
            values = pa.RecordBatch.from_arrays(
                state.left.gather(alone[0][0], range(len(types)), types), schema=self.answer
            )
            ta, te = alone[0][1:]
        else:
            names = np.full((2, count), MISSING, dtype=np.int64)
            names[LEFT, : count - of_right] = np.concatenate([alone[0][0], pairs[LEFT]])
            names[RIGHT, of_left:] = np.concatenate([pairs[RIGHT], alone[1][0]])
            halves = Halves(self.sides, names)
            ta = np.concatenate([alone[0][1], pairs[PAIR_TA], alone[1][1]])
            te = np.concatenate([alone[0][2], pairs[PAIR_TE], alone[1][2]])
            if count == pairs.shape[1] <= FEW:
                values = self._moulds.batch(state.addresses, np.ascontiguousarray(pairs[:2].T))
            if values is None:
                types = self.schema.types
                arrays = state.left.gather_among_nulls(
                    names[LEFT, : count - of_right], types[: self.left_width], 0, of_right
                )
                arrays += state.right.gather_among_nulls(names[RIGHT, of_left:], types[self.left_width :], of_left, 0)
                values = pa.RecordBatch.from_arrays(arrays, schema=self.answer)
            elif values.schema is not self.answer:
                values = pa.RecordBatch.from_arrays(values.columns, schema=self.answer)
        delta, open_id = open_rows(values, ta, te, step, ends, halves)
        self._note_open(state, alone, pairs, open_id)
        return delta

    def _note_open(self, state: OuterJoinState, alone: Sequence[Int64s], pairs: Int64s, open_id: Int64s) -> None:
        """Who has to be told of the ends of rows that are open."""
        if not (open_id != NO_OPEN_ID).any():
            return
        of_left, behind = alone[0].shape[1], alone[0].shape[1] + pairs.shape[1]
        its_ids = (open_id[:of_left], open_id[behind:])
        for watch, i in zip(state.watches, state.watched, strict=True):
            is_open = its_ids[i] != NO_OPEN_ID
            watch.marks[alone[i][0, is_open] & watch.mask, SHOWN] = its_ids[i][is_open]
        is_open = open_id[of_left:behind] != NO_OPEN_ID
        if is_open.any():
            self._add_open_pairs(state, pairs[:, is_open], open_id[of_left:behind][is_open])

    def _with_never_paired(self, out: Delta, delta: Delta, keys: Sequence[pa.Array], i: int) -> Delta:
        """Rows with a NULL in the key besides, as they came: no side keeps them."""
        ends = out.ends + delta.ends
        null = np.zeros(len(delta), dtype=np.bool_)
        for valid in map(validity, keys):
            if valid is not None:
                null |= valid == 0
        if not null.any():
            return replace(out, ends=ends) if delta.ends.chunks else out
        lonely = select_rows(delta, null)
        te = forever(len(lonely)) if self.stays else lonely.te
        values = padded(lonely.values.columns, self.answer, i)
        halves = None
        if out.halves is not None or not len(out):
            names = np.full((2, len(lonely)), MISSING, dtype=np.int64)
            names[i] = NAMELESS
            halves = Halves(self.sides[: len(self.answer)], names)
            if out.halves is not None:
                halves = Halves(out.halves.sides, np.concatenate([out.halves.names, names], axis=1))
        return Delta(
            pa.concat_batches([out.values, values]) if len(out) else values,
            np.concatenate([out.ta, lonely.ta]),
            np.concatenate([out.te, te]),
            np.concatenate([out.open_id, lonely.open_id]),
            out.frontier,
            ends,
            halves,
        )


_NO_ROWS: Final = np.empty((3, 0), dtype=np.int64)


def _bounds(side: RingSide | LazySide) -> tuple[int, int]:
    return (side.oldest, side.newest) if isinstance(side, RingSide) else (0, 0)
