"""The driver of two-way joins.

Meaning: a pair of rows that satisfy the predicate is alive on the intersection of their lifetimes.
Emits: each pair once, in the step in which the younger row came; its end at once where it is determined, else when the
    first member ends.
Keeps: both sides (`ring_hash.py`, `lazy_hash.py`), and pairs with open ends (`open_pairs.py`).
Needs: what the tactic needs; `nested_loop` is the lazy tactic with one chain for everything and takes any predicate.
Costs: a look-up per row and its matches, and what the tactic says. New rows are taken in the order of time, so of a key
    that changes often within a step each meets what is alive then. Payload is gathered once the pairs are known.

>>> import pyarrow as pa
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"k": [1]}), np.array([1]), np.array([9]), np.full(1, NO_OPEN_ID), frontier=5)
>>> schema = pa.schema([("k", pa.int64()), ("j", pa.int64())])
>>> key = ColumnRef(0, pa.int64(), "k")
>>> join = JoinKernel("ring_hash", (key,), (key,), None, schema, 1)
>>> out = join.step(join.start(), (rows, rows), Step(0, 5, 0, OpenIdPool()))
>>> out.values.to_pylist(), out.te.tolist()
([{'k': 1, 'j': 1}], [9])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Bytes, Delta, Ends, Halves, Int64s, no_int64s, no_open_ids
from transom.kernels import scalar
from transom.kernels.formula import NO_MEMBERS, Formula, formula, passing
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.lazy_sweep import lazy_pairs
from transom.kernels.join.open_pairs import OpenPairs
from transom.kernels.join.predicate import JoinPredicate
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.ring_sweep import ring_pairs
from transom.kernels.join.side import LEFT, RIGHT, arrivals
from transom.kernels.kernel import Step, open_rows
from transom.kernels.mould import FEW, ColumnAddresses, Moulds
from transom.plan.expression import Expression
from transom.state.codec import saved_bytes

BLOCK = 1 << 18  # candidate pairs looked at together


@dataclass
class JoinState:
    """Where the columns are is found again from the sides, so it is not saved."""

    left: RingSide | LazySide
    right: RingSide | LazySide
    open_pairs: OpenPairs = field(default_factory=OpenPairs)

    def check(self) -> None:
        self.open_pairs.check_members(self.left, self.right)

    def __post_init__(self) -> None:
        self.addresses = ColumnAddresses([self.left.rows, self.right.rows], [self.left.mask, self.right.mask])

    def compacted(self) -> JoinState:
        """The state without the room for more, where nothing open knows rows by their positions."""
        if not isinstance(self.left, RingSide) or not isinstance(self.right, RingSide) or not self._settled:
            return self
        return JoinState(self.left.trimmed(), self.right.trimmed())

    def compacted_bytes(self) -> int:
        sides = (self.left, self.right)
        if not self._settled:
            return saved_bytes([*sides, self.open_pairs])
        return sum(side.trimmed_bytes() if isinstance(side, RingSide) else saved_bytes(side) for side in sides)

    @property
    def _settled(self) -> bool:
        undetermined = self.left.lifetimes.undetermined + self.right.lifetimes.undetermined
        return not undetermined and not self.open_pairs.slots.in_use


@dataclass(frozen=True)
class JoinKernel(JoinPredicate):
    """Rows with lifetimes in, pairs with lifetimes out."""

    def start(self) -> JoinState:
        side = RingSide if self.tactic == "ring_hash" else LazySide
        types = self.schema.types
        return JoinState(side.of(types[: self.left_width], self.keyed), side.of(types[self.left_width :], self.keyed))

    @cached_property
    def sides(self) -> Bytes:
        """Of which side each column of a pair is."""
        sides = np.zeros(len(self.schema), dtype=np.uint8)
        sides[self.left_width :] = 1
        return sides

    @cached_property
    def _moulds(self) -> Moulds:
        return Moulds(self.schema, range(len(self.schema)))

    @cached_property
    def _formula(self) -> Formula | None:
        """The residual, if it can be asked of the rows where they are kept."""
        return None if self.residual is None else formula(self.residual)

    def next_timer(self, state: JoinState) -> int:
        return min(state.left.next_timer, state.right.next_timer)

    def step(self, state: JoinState, inputs: tuple[Delta, Delta], step: Step) -> Delta:
        left, right = state.left, state.right
        of_left = self._take(left, inputs[0], evaluated(self.left_keys, inputs[0]))
        of_right = self._take(right, inputs[1], evaluated(self.right_keys, inputs[1]))
        if len(of_left):
            state.addresses.refresh(0, left.mask)
        if len(of_right):
            state.addresses.refresh(1, right.mask)
        parts = self._pairs(state, of_left, of_right, step.frontier)
        if not parts:
            out = Delta(self.no_values, no_int64s(), no_int64s(), no_int64s(), step.frontier)
        else:
            out = self._emit(state, parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), step)
        return self._expire(state, out, step)

    def load(self, state: JoinState, inputs: tuple[Delta, Delta]) -> None:
        """Keep rows, all of them with known ends, whose pairs with each other are known elsewhere."""
        for n, (side, delta, keys) in enumerate(
            zip((state.left, state.right), inputs, (self.left_keys, self.right_keys), strict=True)
        ):
            positions = self._take(side, delta, evaluated(keys, delta))
            if len(positions):
                side.link(positions)
                state.addresses.refresh(n, side.mask)

    def _take(self, side: RingSide | LazySide, delta: Delta, keys: Sequence[pa.Array]) -> Int64s:
        """Write down the ends that became known, and keep the new rows; where those are, not linked yet."""
        if delta.ends.chunks:
            slots, te = side.lifetimes.closed(delta.ends)
            if len(slots):
                side.end(slots, te)
        if not len(delta):
            return no_int64s()
        rows = arrivals(delta, keys)
        side.reserve(len(rows))
        return side.insert(rows)

    def _pairs(self, state: JoinState, of_left: Int64s, of_right: Int64s, frontier: int) -> list[Int64s]:
        """Link the new rows; the pairs (left, right, ta, te) that they make and that satisfy the whole predicate."""
        parts: list[Int64s] = []
        for pairs in _swept(state.left, state.right, of_left, of_right, frontier):
            if not pairs.shape[1]:
                continue
            if self.residual is not None:
                kept = self._kept(state, pairs)
                pairs = pairs if kept is None else pairs[:, kept]
            parts.append(pairs)
        return parts

    def _kept(self, state: JoinState, pairs: Int64s) -> Int64s | None:
        """Which pairs satisfy the residual, None if all do."""
        formula = self._formula
        if formula is None or formula.columns & ~state.addresses.plain:
            return self.satisfying(state.left, state.right, pairs[LEFT], pairs[RIGHT])
        members = np.ascontiguousarray(pairs[:2].T)
        addresses = state.addresses.addresses
        kept: Int64s = passing(
            formula.program, formula.constants, formula.depth, addresses, members, no_int64s(), NO_MEMBERS, -1
        )
        return kept if len(kept) < len(members) else None

    def _emit(self, state: JoinState, pairs: Int64s, step: Step) -> Delta:
        left, right, ta, te = pairs
        values = None
        if len(left) <= FEW:
            values = self._moulds.batch(state.addresses, np.ascontiguousarray(pairs[:2].T))
        if values is None:
            values = self.values(state.left, state.right, left, right)
        halves = Halves(self.sides, pairs[:2])
        if not state.left.lifetimes.undetermined and not state.right.lifetimes.undetermined:
            return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier, halves=halves)
        delta, open_id = open_rows(values, ta, te, step, Ends(), halves)
        is_open = open_id != NO_OPEN_ID
        if not is_open.all():
            left, right, open_id = left[is_open], right[is_open], open_id[is_open]
        state.open_pairs.add(
            left, right, open_id,
            state.left.first_pair, state.left.mask, state.right.first_pair, state.right.mask,
        )  # fmt: skip
        return delta

    def _expire(self, state: JoinState, out: Delta, step: Step) -> Delta:
        """Drop the rows that ended, and end the open pairs that they were in."""
        left, right = state.left, state.right
        dead = (left.expire(step.frontier), right.expire(step.frontier))
        if not len(dead[0]) and not len(dead[1]):
            return out
        ends = Ends()
        for side in (0, 1):
            open_id, te, _ = state.open_pairs.close(dead[side], side, left, right)
            ends += step.open_ids.close(open_id, te)
        left.free(dead[0])
        right.free(dead[1])
        return replace(out, ends=ends) if ends.chunks else out


def evaluated(keys: Sequence[Expression], delta: Delta) -> list[pa.Array]:
    """The keys of the rows that came."""
    return [scalar.evaluate(key, delta.values) for key in keys] if len(delta) else []


def _swept(
    left: RingSide | LazySide, right: RingSide | LazySide, of_left: Int64s, of_right: Int64s, frontier: int
) -> Iterator[Int64s]:
    """Link the new rows at these positions; the pairs (left, right, ta, te) of equal keys that they make."""
    if isinstance(left, RingSide) and isinstance(right, RingSide):
        return ring_pairs(np.array([left.table(), right.table()]), of_left, of_right, BLOCK, frontier)
    assert isinstance(left, LazySide) and isinstance(right, LazySide)
    return lazy_pairs(left.arrays(), right.arrays(), of_left, of_right, BLOCK, frontier)
