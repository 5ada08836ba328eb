"""Joins that know which rows have a partner: outer, semi and anti joins.

Meaning: LEFT, RIGHT, FULL: the pairs of the inner join, and a row of the named side with NULLs at the instants at which
    no partner is alive. A semi join has the rows of the left while one is alive, an anti join those while none is.
Emits: pairs as the inner join does; a row alone, or with a partner, open when that begins, and its end; to who writes
    changes that row again instead of the end; or once it is over, where nobody wants it before. Rows with a NULL in the
    key never have a partner: where rows alone are shown they pass as they are, elsewhere they are left out.
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

from transom.core.delta import (
    GIVEN_AGAIN,
    MISSING,
    NAMELESS,
    NO_OPEN_ID,
    TAKEN_BACK,
    Delta,
    Ends,
    Halves,
    Int64s,
    forever,
    no_int64s,
)
from transom.core.time import FOREVER
from transom.kernels.columns import alike, empty_batch, validity
from transom.kernels.jit import jit
from transom.kernels.join.join import JoinKernel, JoinState, evaluated
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import LEFT, OPEN_ID, RIGHT, OpenPairs
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.side import PAIR_TA, PAIR_TE
from transom.kernels.kernel import OPEN_END, Step, select_rows
from transom.kernels.mould import FEW
from transom.kernels.outer_join.kinds import PAIRS, SIDES, padded
from transom.kernels.outer_join.watch import SHOWN, TAKEN, Events, SideLines, Watch, advance
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

    `over`: what is shown of rows by themselves is wanted once it is over, and is not given before. `twice`: it is given
    when it begins, and again when it is over, to somebody who keeps nothing of it. `stays`: pairs stay, and a row that
    is alone when it ends has FOREVER as its end; no end is open in the inputs.
    """

    kind: str  # left, right, full, semi, anti
    answer: pa.Schema
    over: bool = False
    stays: bool = False
    twice: bool = False

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
        pairs = parts[0] if len(parts) == 1 else np.concatenate([_NO_PAIRS, *parts], axis=1)
        if self.stays:
            pairs[PAIR_TE] = FOREVER
        dead = (state.left.expire(step.frontier), state.right.expire(step.frontier))
        closed, ends = self._ended(state, dead, step)
        if self.kind not in PAIRS:
            self._remember(state, pairs)
        alone = [_NO_ROWS, _NO_ROWS]
        for watch, i in zip(state.watches, state.watched, strict=True):
            due, due_at = watch.due(step.frontier)
            others = state.sides[i].used() if self.over and step.frontier == FOREVER else no_int64s()
            events = Events(
                new[i], pairs[i], pairs[PAIR_TA], pairs[PAIR_TE], closed[i], closed[2], dead[i], due, due_at, others
            )
            alone[i], stopped = self._watched(state, watch, i, events, step)
            ends += stopped
        out = self._shown(state, alone, pairs if self.kind in PAIRS else _NO_PAIRS, ends, step)
        if self.kind != "semi" and self.left_keys:
            for i in state.watched:
                out = self._with_never_paired(out, inputs[i], keys[i], i)
        state.left.free(dead[0])
        state.right.free(dead[1])
        return out

    def _ended(
        self, state: OuterJoinState, dead: tuple[Int64s, Int64s], step: Step
    ) -> tuple[tuple[Int64s, Int64s, Int64s], Ends]:
        """The open pairs that ended with their first member (left, right, te), and the ends of those that are shown."""
        if not state.open_pairs.slots.in_use:
            return _NO_ROWS, Ends()
        ended: list[tuple[Int64s, Int64s, Int64s]] = []
        ends = Ends()
        for side in (0, 1):
            open_id, te, places = state.open_pairs.close(dead[side], side, state.left, state.right)
            ended.append((state.open_pairs.pairs[LEFT, places], state.open_pairs.pairs[RIGHT, places], te))
            if self.kind in PAIRS:
                ends += step.open_ids.close(open_id, te)
        left, right, te = (np.concatenate(both) for both in zip(*ended, strict=True))
        return (left, right, te), ends

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

    def _watched(self, state: OuterJoinState, watch: Watch, i: int, events: Events, step: Step) -> tuple[Rows, Ends]:
        """What is shown of the rows of one side by themselves, and the ends of what was shown."""
        over = self.over and step.frontier < FOREVER
        lines = SideLines(watch.marks, watch.mask, state.sides[i].entries)
        events = Events(*map(alike, events))
        rows, ends, timers = advance(lines, events, step.frontier, self.kind == "semi", over, self.stays)
        watch.timers.add_determined(*timers)
        return rows, step.open_ids.close(*ends)

    def _shown(self, state: OuterJoinState, alone: Sequence[Rows], pairs: Int64s, ends: Ends, step: Step) -> Delta:
        """Rows of the left by themselves, pairs, and rows of the right by themselves, one behind the other."""
        of_left, of_right = len(alone[0][0]), len(alone[1][0])
        count = of_left + pairs.shape[1] + of_right
        if not count:
            return Delta(empty_batch(self.answer), no_int64s(), no_int64s(), no_int64s(), step.frontier, ends)
        names, (ta, te, open_id), wanted, ghosts = lay_out(
            alone[0], (pairs[LEFT], pairs[RIGHT], pairs[PAIR_TA], pairs[PAIR_TE]), alone[1], self.twice
        )
        if wanted:
            open_id[open_id == WANTED] = step.open_ids.take(wanted)
        values = halves = None
        types = self.schema.types
        if self.kind not in PAIRS:
            arrays = state.left.gather(names[LEFT], range(self.left_width), types[: self.left_width])
            values = pa.RecordBatch.from_arrays(arrays, schema=self.answer)
        else:
            halves = Halves(self.sides, names)
            if count == pairs.shape[1] <= FEW:
                values = self._moulds.batch(state.addresses, np.ascontiguousarray(pairs[:2].T))
            if values is None:
                arrays = state.left.gather_among_nulls(
                    names[LEFT, : count - of_right], types[: self.left_width], 0, of_right
                )
                arrays += state.right.gather_among_nulls(names[RIGHT, of_left:], types[self.left_width :], of_left, 0)
                values = pa.RecordBatch.from_arrays(arrays, schema=self.answer)
            elif values.schema is not self.answer:
                values = pa.RecordBatch.from_arrays(values.columns, schema=self.answer)
        if wanted:
            self._note_open(state, alone, pairs, open_id)
        delta = Delta(values, ta, te, open_id, step.frontier, ends, halves)
        return select_rows(delta, ta < te) if ghosts else delta

    def _note_open(self, state: OuterJoinState, alone: Sequence[Rows], pairs: Int64s, open_id: Int64s) -> None:
        """Who has to be told of the ends of rows that are open."""
        of_left, behind = len(alone[0][0]), len(alone[0][0]) + pairs.shape[1]
        its_ids = (open_id[:of_left], open_id[behind:])
        for watch, i in zip(state.watches, state.watched, strict=True):
            is_open = its_ids[i] >= 0
            watch.marks[alone[i][0][is_open] & watch.mask, SHOWN] = its_ids[i][is_open]
        is_open = open_id[of_left:behind] >= 0
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


Rows = tuple[Int64s, Int64s, Int64s]  # positions, ta and te
WANTED: Final = -4  # instead of an open row id: it is to have one

_NO_ROWS: Final[Rows] = (no_int64s(), no_int64s(), no_int64s())
_NO_PAIRS: Final = np.empty((4, 0), dtype=np.int64)


def _bounds(side: RingSide | LazySide) -> tuple[int, int]:
    return (side.oldest, side.newest) if isinstance(side, RingSide) else (0, 0)


@jit
def lay_out(left, pairs, right, twice):  # type: ignore[no-untyped-def]
    """Rows of the left by themselves, pairs, and rows of the right by themselves, one behind the other.

    Gives their names, times (ta, te and open row ids), how many are still to have an open row id, and how many are
    ghosts.
    """
    of_left, of_pairs, of_right = len(left[0]), len(pairs[0]), len(right[0])
    count = of_left + of_pairs + of_right
    names = np.empty((2, count), dtype=np.int64)
    ta = np.empty(count, dtype=np.int64)
    te = np.empty(count, dtype=np.int64)
    open_id = np.empty(count, dtype=np.int64)
    without = GIVEN_AGAIN if twice else WANTED
    wanted, ghosts = 0, 0
    for side in range(2):
        rows = left if side == 0 else right
        first = 0 if side == 0 else of_left + of_pairs
        for i in range(len(rows[0])):
            names[side, first + i] = rows[0][i]
            names[1 - side, first + i] = MISSING
            begin, end = rows[1][i], rows[2][i]
            ta[first + i] = begin
            te[first + i] = FOREVER if end == OPEN_END else end
            over = TAKEN_BACK if begin == TAKEN else NO_OPEN_ID
            open_id[first + i] = without if end == OPEN_END else over
            wanted += (end == OPEN_END) & (not twice)
            ghosts += begin >= end
    for i in range(of_pairs):
        n = of_left + i
        names[LEFT, n] = pairs[LEFT][i]
        names[RIGHT, n] = pairs[RIGHT][i]
        begin, end = pairs[PAIR_TA][i], pairs[PAIR_TE][i]
        ta[n] = begin
        te[n] = FOREVER if end == OPEN_END else end
        open_id[n] = WANTED if end == OPEN_END else NO_OPEN_ID
        wanted += end == OPEN_END
        ghosts += begin >= end
    return names, (ta, te, open_id), wanted, ghosts
