"""Aggregates, each also DISTINCT, with or without GROUP BY.

Meaning: at every instant, one row per group that has rows: its key and the aggregates of the snapshot. Without GROUP BY
    one row always, from the origin on; over nothing COUNT is 0 and the others are NULL.
Emits: an open row when a group's results change, and the end of the one before; nothing while they stay equal.
Keeps: per input row alive its group and its arguments (16 bytes each, texts whole); per group its key and totals. Sums
    are exact: three words for whole numbers, a superaccumulator for floating ones, two for variances. MIN, MAX and
    FIRST keep a heap over the rows, quantiles a search tree. Freed with the last row. Where no row ever leaves
    (`running`) nothing is kept of rows, only the totals, and the texts that are the least or the greatest of a group.
Needs: nothing.
Costs: a hash look-up and O(1) a row for COUNT, SUM, AVG and variances, O(log n) for the others, and sorting what
    begins and ends in the step.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"x": [3, 4]}), np.array([1, 2]), np.array([5, 9]), np.full(2, NO_OPEN_ID), frontier=9)
>>> kernel = AggregateKernel((), (AggregateSpec("max", 0, False),), pa.schema([("m", pa.int64())]), (pa.int64(),))
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist()
([None, 3, 4], [0, 1, 2])
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, no_int64s
from transom.core.errors import EvaluationError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.aggregate import accumulate as loop
from transom.kernels.aggregate import cells, exact_covariance, exact_sum, exact_variance, ranked
from transom.kernels.aggregate.ordered import check_heaps
from transom.kernels.columns import alike, empty_batch, fixed_array, is_text, validity
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys, normalised
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.nested import arrays_from
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import numbered
from transom.kernels.trim import trimmed_bytes
from transom.state.checks import need, rooms, within
from transom.state.slots import SlotPool, grown

_LONGEST = 2**31 - 1
_TREES = {
    "quantile_cont": loop.BETWEEN,
    "quantile_disc": loop.RANKED,
    "string_agg": loop.LISTED,
    "array_agg": loop.LISTED,
}
_COVARIANCES = {"covar_pop": loop.COVAR_POP, "covar_samp": loop.COVAR_SAMP}
_BITS = {"bit_and": loop.BIT_AND, "bit_or": loop.BIT_OR, "bit_xor": loop.BIT_XOR}
ORDERED = ("min", "max", "first", "quantile_cont", "quantile_disc", "string_agg", "array_agg")
"""Functions that keep rows in the order of their values; of those, DISTINCT is no matter of pairs."""


@dataclass(frozen=True)
class AggregateSpec:
    """One call: its function, the input column of its argument (None for COUNT(*)), and whether it is DISTINCT.

    `key` is the column that says which row FIRST shows: the one in which it is least, of those in which it is not NULL;
    and in which order STRING_AGG shows them, with the `separator` in between.
    `fraction` is where a quantile is, as two numbers of which the first is divided by the second; `other` is the second
    argument of a covariance.
    """

    function: str
    argument: int | None
    distinct: bool
    key: int | None = None
    fraction: tuple[int, int] = (0, 1)
    separator: str = ""
    other: int | None = None


def _zeros(*shape: int) -> Any:
    return np.zeros(shape, dtype=np.int64)


@dataclass
class AggregateState:
    """Rows by slot: group, cells, DISTINCT pairs, what heaps and trees know. Groups by number: totals and what they
    last showed."""

    STATE_VERSION: ClassVar[int] = 3

    key_values: RowStore
    texts: RowStore
    row_group: Int64s
    cell_hi: Int64s
    cell_lo: cells.Words
    valid: Any
    row_pair: Int64s
    links: Int64s
    tree_nodes: Int64s
    pairs: list[KeyIndex]
    pair_count: Int64s
    rows: Int64s
    shown: Int64s
    mark: Int64s
    totals: Int64s
    last: Int64s
    roots: Int64s
    tree_roots: Int64s
    floats: Int64s
    moments: Int64s
    keys: KeyIndex = field(default_factory=KeyIndex)
    slots: SlotPool = field(default_factory=SlotPool)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)
    started: bool = False

    def check(self) -> None:
        size, groups = len(self.row_group), len(self.rows)
        rows = (self.cell_hi, self.cell_lo, self.valid, self.row_pair, self.links)
        need(all(array.shape[-1] == size for array in rows))
        need(self.tree_nodes.shape[1:] == (size, ranked.NODE))
        need(all(array.shape[-1] == groups for array in (self.shown, self.mark, self.roots, self.tree_roots)))
        need(len(self.totals) == len(self.last) == groups)
        need(not self.mark.any())
        within(self.keys.slots.used(), min(groups, self.key_values.capacity))
        rooms(max([pairs.slots.high for pairs in self.pairs], default=0), self.pair_count)

    def owned(self) -> list[Int64s]:
        return [self.shown[self.shown != -1]]

    def compacted(self) -> AggregateState:
        """The state without the room for more groups; with no row alive, without what was kept for groups and rows."""
        high = min(self.keys.slots.high, len(self.rows))  # numbers that were given back were never used
        if not high:
            return self
        if self.slots.high and not self.slots.in_use and not self.keys.slots.in_use:
            by_row = ("row_group", "cell_hi", "cell_lo", "valid", "row_pair", "links")
            forgotten = {name: getattr(self, name)[..., :0] for name in by_row}
            nodes = self.tree_nodes[:, :0]
            return replace(self._of_groups(0), **forgotten, tree_nodes=nodes, slots=SlotPool(), keys=KeyIndex())
        return self._of_groups(high)

    def _of_groups(self, high: int) -> AggregateState:
        """The state with no room but for so many groups."""
        return replace(
            self,
            key_values=self.key_values.first(min(high, self.key_values.capacity)),
            rows=self.rows[:high],
            shown=self.shown[:high],
            mark=self.mark[:high],
            totals=self.totals[:high],
            last=self.last[:high],
            roots=self.roots[:, :high],
            tree_roots=self.tree_roots[:, :high],
            floats=self.floats[: high * (len(self.floats) // len(self.rows))],
            moments=self.moments[: high * (len(self.moments) // len(self.rows))],
        )

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())


@dataclass(frozen=True)
class AggregateKernel:
    """`keys` are input columns; none of them is an aggregate over everything. `schema` is keys, then calls.

    `running`: no row that comes ever leaves. `final`: only what a group shows when the step is over is wanted, so it is
    looked at once a step; at the end of all input also as of the last row.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateSpec, ...]
    schema: pa.Schema
    input_types: tuple[pa.DataType, ...]
    running: bool = False
    final: bool = False

    def start(self) -> AggregateState:
        columns = len(self.arguments)
        heaps, trees = len(self.heap_calls), self._trees
        distinct = int((self.table[:, loop.DISTINCT] >= 0).sum())
        return AggregateState(
            key_values=RowStore.of([self.input_types[i] for i in self.keys]),
            texts=RowStore.of([pa.binary()]),
            row_group=no_int64s(),
            cell_hi=_zeros(columns, 0),
            cell_lo=np.zeros((columns, 0), dtype=np.uint64),
            valid=np.zeros((columns, 0), dtype=np.uint8),
            row_pair=_zeros(distinct, 0),
            links=_zeros(heaps, 3, 0),
            tree_nodes=_zeros(trees, 0, ranked.NODE),
            pairs=[KeyIndex() for _ in range(distinct)],
            pair_count=_zeros(distinct, 0),
            rows=no_int64s(),
            shown=no_int64s(),
            mark=no_int64s(),
            totals=_zeros(0, self._widths[0]),
            last=_zeros(0, self._last_width),
            roots=_zeros(heaps, 0),
            tree_roots=_zeros(trees, 0),
            floats=_zeros(0, exact_sum.WIDTH),
            moments=_zeros(0, self._moment_size),
        )

    def check(self, state: AggregateState) -> None:
        """What the calls say of the arrays; every row alive is in the group, the pairs and the heaps of its values."""
        used = state.slots.mask()
        slots = np.flatnonzero(used)
        rooms(state.slots.high, state.row_group)
        self.check_groups(state)
        if self.keys:
            numbered(state.row_group[slots], state.keys.slots)
        else:
            within(state.row_group[slots], min(1, len(state.rows)))
        for d, pairs in enumerate(state.pairs):
            numbered(state.row_pair[d, slots], pairs.slots)
        for kind, argument, _, at, *_ in self.ordered_calls:
            members = np.zeros(len(state.row_group), dtype=np.bool_)
            members[slots] = state.valid[argument, slots] != 0
            self.check_order(state, kind, at, members, state.row_group)
        if not self.running:
            state.lifetimes.check_slots(used)

    def check_order(self, state: AggregateState, kind: int, at: int, members: Any, group: Int64s) -> None:
        """The heap or the tree of a call has these rows."""
        if kind >= loop.BETWEEN:
            ranked.check_trees(state.tree_roots[at], state.tree_nodes[at], members, group)
        else:
            check_heaps(state.roots[at], state.links[at], members, group)

    def check_groups(self, state: AggregateState) -> None:
        need(
            (state.totals.shape[1], state.last.shape[1], state.floats.shape[1], state.moments.shape[1])
            == (self._widths[0], self._last_width, exact_sum.WIDTH, self._moment_size)
        )
        need(len(state.floats) >= len(state.rows) * self.float_width)
        need(len(state.moments) >= len(state.rows) * self.moment_width)
        need(state.texts.capacity >= len(state.row_group) * self.text_width)
        need(bool(self.keys) or not state.started or len(state.rows) > 0)
        if self.keeps_texts:
            groups = state.keys.slots.used() if self.keys else np.arange(min(1, len(state.rows)))
            need(np.array_equal(np.unique(self._extremes(state, groups)), state.slots.used()))
        if self._last_width:
            within(state.last[:, self.table[:, loop.LAST]], 1 << 62)
        showing = np.isin(self.table[:, loop.KIND], (loop.LEAST, loop.GREATEST, loop.RANKED))
        for at in self.table[showing, loop.LAST]:
            within(state.last[state.last[:, at] > 0, at + 1], max(1, len(state.row_group)))

    def next_timer(self, state: AggregateState) -> int:
        """An aggregate over everything has a row from the origin on, whether or not something comes."""
        return state.lifetimes.next_timer if self.keys or state.started else BEGINNING

    def step(self, state: AggregateState, inputs: tuple[Delta], step: Step) -> Delta:
        (delta,) = inputs
        if self.running:
            return self._run(state, delta, step)
        parts: list[tuple[Int64s, Int64s, int]] = []  # t, slot, sign
        ended, te = state.lifetimes.leave(delta.ends, step.frontier)
        if len(ended):
            parts.append((te, ended, -1))
        if not self.keys and not state.started:
            parts.append((self._begin(state, step), np.array([-1]), 0))
        if len(delta):
            slots = self._admit(state, delta)
            parts.append((delta.ta, slots, 1))
            gone = (delta.te < step.frontier) & (delta.open_id == NO_OPEN_ID)
            if gone.any():
                parts.append((delta.te[gone], slots[gone], -1))
                ended = np.concatenate([ended, slots[gone]])
            state.lifetimes.add(slots[~gone], delta.te[~gone], delta.open_id[~gone])
        if not parts:
            return Delta(empty_batch(self.schema), no_int64s(), no_int64s(), no_int64s(), step.frontier)
        return self._advance(state, parts, ended, step)

    def _begin(self, state: AggregateState, step: Step) -> Int64s:
        """The only group of an aggregate over everything, and when it is looked at first."""
        self.make_groups(state, np.zeros(1, dtype=np.int64))
        state.started = True
        return np.array([step.origin])

    def _run(self, state: AggregateState, delta: Delta, step: Step) -> Delta:
        """A step of rows that stay."""
        t, values = delta.ta, delta.values
        begun = self._begin(state, step) if not self.keys and not state.started else None
        group = brought = self.group(state, values)
        slot, rows, row_pair, kept = self._passing(state, values, group)
        if begun is not None:
            t = np.concatenate([begun, t])
            slot, group = np.concatenate([[-1], slot]), np.zeros(len(t), dtype=np.int64)
        if not len(t):
            return Delta(empty_batch(self.schema), no_int64s(), no_int64s(), no_int64s(), step.frontier)
        if (t[1:] < t[:-1]).any():
            order = np.argsort(t, kind="stable")
            t, slot, group = t[order], slot[order], group[order]
        events = loop.GroupEvents(alike(t), slot, group, np.ones(len(t), dtype=np.int64))
        out = self._shown(state, events, rows, row_pair, step)
        self._drop_lesser(state, brought, kept)
        return out

    def run_unseen(self, state: AggregateState, values: pa.RecordBatch) -> tuple[Int64s, Int64s, Int64s]:
        """Rows that stay, at least one, added to groups that show nothing yet: the group of each row; and each of
        these groups once, with the words of its results as they are now."""
        assert self.running and (self.keys or state.started)
        group = self.group(state, values)
        slot, rows, row_pair, kept = self._passing(state, values, group)
        came = loop.GroupEvents(np.zeros(len(slot), dtype=np.int64), slot, group, np.ones(len(slot), dtype=np.int64))
        (changed, _, _, words), *_ = self.accumulate(state, came, self.table, rows, row_pair)
        state.shown[changed] = -1
        self._drop_lesser(state, group, kept)
        return group, changed, words

    def begin_unseen(self, state: AggregateState) -> Int64s:
        """The only group of an aggregate over everything, which shows nothing yet: the words of its results over
        nothing."""
        self.make_groups(state, np.zeros(1, dtype=np.int64))
        state.started = True
        nothing = empty_batch(pa.schema([(str(i), type_) for i, type_ in enumerate(self.input_types)]))
        look = loop.GroupEvents(*(np.array([value]) for value in (0, -1, 0, 1)))
        pairs = _zeros(len(state.pairs), 0)
        (*_, words), *_ = self.accumulate(state, look, self.table, self._cells(nothing), pairs)
        state.shown[0] = -1
        shown: Int64s = words
        return shown

    def _passing(
        self, state: AggregateState, values: pa.RecordBatch, group: Int64s
    ) -> tuple[Int64s, tuple[Any, ...], Int64s, Int64s]:
        """Rows that stay: their slots, cells and pairs, and the slots that are kept until now.

        Slots are for the step alone, but for those of texts that are the least or the greatest of their group.
        """
        if not self.keeps_texts:
            pairs = self.pair(state, values, group)
            row_pair = np.array(pairs, dtype=np.int64).reshape(len(pairs), len(values))
            return np.arange(len(values)), self._cells(values), row_pair, no_int64s()
        kept = self._extremes(state, each_once(group, state.mark))
        slots = self._placed(state, values, group)
        return slots, (state.cell_hi, state.cell_lo, state.valid), state.row_pair, np.concatenate([kept, slots])

    def _drop_lesser(self, state: AggregateState, group: Int64s, kept: Int64s) -> None:
        """Of the slots those that are the least or the greatest of no group any more."""
        if self.keeps_texts:
            still = self._extremes(state, each_once(group, state.mark))
            self._free_slots(state, np.setdiff1d(kept, still))

    def _extremes(self, state: AggregateState, groups: Int64s) -> Int64s:
        """The slots of the texts that are the least or the greatest of some groups."""
        at = self.table[self._compared_texts, loop.TOTAL]
        totals = state.totals[groups]
        slots: Int64s = totals[:, at + 1][totals[:, at] > 0]
        return slots

    @cached_property
    def _compared_texts(self) -> npt.NDArray[np.bool_]:
        """Of the calls MIN and MAX of texts over rows that stay."""
        kinds = self.table[:, loop.KIND]
        compared: npt.NDArray[np.bool_] = np.isin(kinds, (loop.LEAST_EVER, loop.GREATEST_EVER))
        return compared & (self.table[:, loop.TEXT] >= 0)

    @cached_property
    def keeps_texts(self) -> bool:
        """Whether rows that stay leave texts behind."""
        return bool(self._compared_texts.any())

    def _cells(self, values: pa.RecordBatch) -> tuple[Any, ...]:
        """The arguments of rows as cells, by the position of the row."""
        shape = len(self.arguments), len(values)
        hi, lo, valid = np.empty(shape, np.int64), np.empty(shape, np.uint64), np.ones(shape, np.uint8)
        for a, column in enumerate(self.arguments):
            hi[a], lo[a] = cells.to_cells(values.column(column))
            there = validity(values.column(column))
            if there is not None:
                valid[a] = there
        return hi, lo, valid

    def _advance(
        self, state: AggregateState, parts: list[tuple[Int64s, Int64s, int]], ended: Int64s, step: Step
    ) -> Delta:
        t = np.concatenate([part[0] for part in parts])
        slot = np.concatenate([part[1] for part in parts])
        sign = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int64) for part in parts])
        events = loop.GroupEvents(*in_order(np.argsort(t, kind="stable"), t, slot, sign, state.row_group))
        rows = (state.cell_hi, state.cell_lo, state.valid)
        out = self._shown(state, events, rows, state.row_pair, step)
        self._release(state, ended)
        return out

    def _shown(
        self, state: AggregateState, events: loop.GroupEvents, rows: tuple[Any, ...], row_pair: Int64s, step: Step
    ) -> Delta:
        """What groups show in place of what they have shown until now."""
        if self.final:
            events = events._replace(t=_folded(events.t, step))
        (out_group, ta, te, words), closed, listed = self.accumulate(state, events, self.table, rows, row_pair)
        ends = step.open_ids.close(*closed)
        values = pa.RecordBatch.from_arrays(self.results(state, out_group, words, listed), schema=self.schema)
        out, open_id = open_rows(values, ta, te, step, ends)
        still = te == OPEN_END
        state.shown[out_group[still]] = open_id[still]
        return out

    def accumulate(
        self, state: AggregateState, events: loop.GroupEvents, table: Int64s, rows: tuple[Any, ...], row_pair: Int64s
    ) -> tuple[tuple[Any, ...], tuple[Int64s, Int64s], Int64s]:
        """Apply events; `rows` are the cells by slot. See the loop for what it gives."""
        text = state.texts.columns[0]
        assert isinstance(text, TextColumn)
        groups = state.rows, state.shown, state.mark, state.totals, state.last
        most, words = self._most(state, events.t), self._widths[1]
        changes: tuple[tuple[Any, ...], tuple[Int64s, Int64s], Int64s] = loop.accumulate(
            events, not self.keys, most, words, table, rows, (row_pair, state.pair_count), groups,
            (state.roots, state.links, state.tree_roots, state.tree_nodes),
            (state.floats, self.float_width, state.moments, self.moment_width),
            (text.start, text.length, text.arena, self.text_width),
        )  # fmt: skip
        return changes

    def _most(self, state: AggregateState, t: Int64s) -> int:
        """How many results there are at most: one a row, and one a group where all is one instant."""
        return min(len(t), len(state.rows)) if t[0] == t[-1] else len(t)

    def results(
        self, state: AggregateState, group: Int64s, words: Int64s, listed: Int64s | None = None
    ) -> list[pa.Array]:
        """Result rows of groups as columns, from the words that the loop gives, and the slots that it lists."""
        listed = no_int64s() if listed is None else listed
        arrays = state.key_values.gather(group, [self.input_types[i] for i in self.keys])
        for c, spec in enumerate(self.calls):
            listing = _TREES.get(spec.function) == loop.LISTED
            arrays.append(self._text(state, c, spec, words, listed) if listing else self._result(state, c, spec, words))
        return arrays

    def _text(self, state: AggregateState, c: int, spec: AggregateSpec, words: Int64s, listed: Int64s) -> pa.Array:
        """STRING_AGG: the texts of the slots that are listed; ARRAY_AGG: the bytes of their values, as an array."""
        assert spec.argument is not None
        column = state.texts.columns[0]
        assert isinstance(column, TextColumn)
        at = self.table[c, loop.LAST]
        there, offsets, counts = (np.ascontiguousarray(words[:, at + word]) for word in (0, 2, 3))
        texts = column.start, column.length, column.arena, self.text_width, self._texts.index(spec.argument)
        separator = np.frombuffer(spec.separator.encode(), dtype=np.uint8)
        data, ends = loop.join_texts(offsets, np.where(there > 0, counts, 0), listed, texts, separator)
        if ends[-1] > _LONGEST:
            raise EvaluationError(
                "the values of STRING_AGG or ARRAY_AGG are too long", remedy="use a smaller window, or more groups"
            )
        if spec.function == "array_agg":
            return arrays_from(data, ends, (there > 0).astype(np.uint8))
        flags = pa.py_buffer(np.packbits(there > 0, bitorder="little"))
        return pa.Array.from_buffers(
            pa.string(), len(there), [flags, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
        )

    def words_of(self, c: int, words: Int64s) -> tuple[Int64s, Int64s, cells.Words, Int64s]:
        """The words of one call out of those of all calls: top, high, low, count."""
        at, kind = self.table[c, loop.LAST], self.table[c, loop.KIND]
        own = np.ascontiguousarray(words[:, at : at + loop.LAST_WORDS[kind]].T)
        n, *others = own
        nothing = np.zeros_like(n)
        if loop.SUM_FLOAT <= kind <= loop.BIT_XOR or kind == loop.BETWEEN:
            return nothing, nothing, others[0].view(np.uint64), n
        hi, lo, top = (*others, *[nothing] * (3 - len(others)))
        return top, hi, lo.view(np.uint64), n

    def _admit(self, state: AggregateState, delta: Delta) -> Int64s:
        """Slots for the new rows, with their groups and cells."""
        return self._placed(state, delta.values, self.group(state, delta.values))

    def _placed(self, state: AggregateState, values: pa.RecordBatch, group: Int64s) -> Int64s:
        slots = state.slots.take(len(values))
        self.keep(state, values, group, slots, state.slots.high)
        state.row_group[slots] = group
        return slots

    def group(self, state: AggregateState, values: pa.RecordBatch) -> Int64s:
        """The group of each row; new ones are made."""
        if not self.keys:
            return np.zeros(len(values), dtype=np.int64)
        columns = [values.column(i) for i in self.keys]
        group, brought = state.keys.number(encode_keys(columns, len(values)))
        if len(brought):
            self.make_groups(state, group[brought])
            state.key_values.reserve(len(state.rows))
            state.key_values.write(group[brought], normalised([c.take(pa.array(brought)) for c in columns]))
        return group

    def keep(self, state: AggregateState, values: pa.RecordBatch, group: Int64s, slots: Int64s, high: int) -> None:
        """Write the cells and DISTINCT pairs of rows into their slots, all of them below `high`."""
        width = self.text_width
        if high > len(state.row_group):
            state.row_group = grown(state.row_group, high)
            size = len(state.row_group)
            for name in ("cell_hi", "cell_lo", "valid", "row_pair", "links"):
                setattr(state, name, grown(getattr(state, name), size))
            state.tree_nodes = ranked.grown_nodes(state.tree_nodes, size)
            state.texts.reserve(size * width)
        text = 0
        for a, column in enumerate(self.arguments):
            array = values.column(column)
            state.cell_hi[a, slots], state.cell_lo[a, slots] = cells.to_cells(array)
            valid = validity(array)
            state.valid[a, slots] = 1 if valid is None else valid
            if is_text(array.type):
                state.texts.write(slots * width + text, [array.cast(pa.binary())])
                text += 1
        for d, pair in enumerate(self.pair(state, values, group)):
            state.row_pair[d, slots] = pair

    def pair(self, state: AggregateState, values: pa.RecordBatch, group: Int64s) -> list[Int64s]:
        """For every DISTINCT call, the number of each row's group and argument; new ones are made."""
        pairs = []
        for argument, d in self.table[self.table[:, loop.DISTINCT] >= 0][:, (loop.ARGUMENT, loop.DISTINCT)]:
            column = values.column(self.arguments[argument])
            pair, _ = state.pairs[d].number(encode_keys([pa.array(group), column], len(values)))
            if state.pairs[d].slots.high > state.pair_count.shape[1]:
                state.pair_count = grown(state.pair_count, state.pairs[d].slots.high)
            pairs.append(pair)
        return pairs

    def make_groups(self, state: AggregateState, groups: Int64s) -> None:
        high = int(groups.max()) + 1
        if high > len(state.rows):
            state.rows = grown(state.rows, high)
            size = len(state.rows)
            for name in ("shown", "roots", "tree_roots"):
                setattr(state, name, grown(getattr(state, name), size, -1))
            state.mark = grown(state.mark, size)
            sizes = {"totals": 1, "last": 1, "floats": self.float_width, "moments": self.moment_width}
            for name, rows in sizes.items():
                old = getattr(state, name)
                bigger = _zeros(rows * size, old.shape[1])
                bigger[: len(old)] = old
                setattr(state, name, bigger)
        state.totals[groups] = 0
        state.roots[:, groups] = -1
        state.tree_roots[:, groups] = -1
        state.shown[groups] = -1
        for index in range(self.float_width):
            state.floats[groups * self.float_width + index] = 0
        for index in range(self.moment_width):
            state.moments[groups * self.moment_width + index] = 0

    def _release(self, state: AggregateState, ended: Int64s) -> None:
        """Forget the rows that ended, the groups they were the last of, and their DISTINCT pairs."""
        if len(ended):
            self.forget(state, state.row_group[ended], state.row_pair[:, ended])
            self._free_slots(state, ended)

    def forget(self, state: AggregateState, group: Int64s, row_pair: Int64s) -> None:
        """Forget those of the groups and of the DISTINCT pairs that have no row any more."""
        for d, pairs in enumerate(state.pairs):
            pair = np.unique(row_pair[d])
            pairs.forget(pair[state.pair_count[d, pair] == 0])
        if self.keys:
            group = each_once(group, state.mark)
            gone = group[state.rows[group] == 0]
            if self.keeps_texts:
                self._free_slots(state, np.unique(self._extremes(state, gone)))
            state.keys.forget(gone)
            state.key_values.free(gone)

    def _free_slots(self, state: AggregateState, slots: Int64s) -> None:
        self.free_texts(state, slots)
        state.slots.give_back(slots)

    def free_texts(self, state: AggregateState, slots: Int64s) -> None:
        for text in range(self.text_width):
            state.texts.free(slots * self.text_width + text)

    def result_type(self, c: int) -> pa.DataType:
        """The type of the results of a call."""
        return self.schema.types[len(self.keys) + c]

    def _result(self, state: AggregateState, c: int, spec: AggregateSpec, words: Int64s) -> pa.Array:
        type_ = self.result_type(c)
        top, hi, lo, n = self.words_of(c, words)
        if spec.function == "count":
            return pa.array(n, pa.int64())
        assert spec.argument is not None
        argument_type = self.input_types[spec.argument]
        if spec.function == "sum":
            return cells.sums(type_, top, hi, lo, n)
        if spec.function == "avg":
            scale = argument_type.scale if pa.types.is_decimal(argument_type) else 0
            return cells.averages(pa.types.is_floating(argument_type), scale, top, hi, lo, n)
        if spec.function in ("var_pop", "var_samp", *_COVARIANCES, "quantile_cont"):
            return fixed_array(type_, lo.view(np.float64), (n > 0).astype(np.uint8))
        if spec.function in _BITS:
            return cells.from_cells(type_, hi, lo, n > 0)
        there = n > 0
        if not there.any():
            return pa.nulls(len(n), type_)
        if self.running and not is_text(type_):
            return cells.from_cells(type_, hi, lo, there)
        slots = np.where(there, hi, 0)
        a = self.arguments.index(spec.argument)
        there = there & (state.valid[a, slots] != 0)  # of the first row it may be NULL
        if is_text(type_):
            text = slots * self.text_width + self._texts.index(spec.argument)
            texts = state.texts.gather(text, [pa.binary()])[0]
            return pc.if_else(pa.array(there), texts, pa.scalar(None, pa.binary())).cast(type_)
        return cells.from_cells(type_, state.cell_hi[a, slots], state.cell_lo[a, slots], there)

    @cached_property
    def arguments(self) -> list[int]:
        """The input columns that are arguments, each once."""
        columns = {column for call in self.calls for column in (call.argument, call.key, call.other)}
        return sorted(column for column in columns if column is not None)

    @cached_property
    def _texts(self) -> list[int]:
        return [i for i in self.arguments if is_text(self.input_types[i])]

    @cached_property
    def text_width(self) -> int:
        return len(self._texts)

    @cached_property
    def ordered_calls(self) -> Int64s:
        """Of the table, one call for each heap and each tree."""
        kinds, at = self.table[:, loop.KIND], self.table[:, loop.OFFSET]
        first = np.array([kind < loop.BETWEEN or i not in at[:c][kinds[:c] >= loop.BETWEEN]
                          for c, (kind, i) in enumerate(zip(kinds, at, strict=True))], dtype=np.bool_)  # fmt: skip
        calls: Int64s = self.table[(kinds >= loop.LEAST) & first]
        return calls

    @cached_property
    def heap_calls(self) -> Int64s:
        calls: Int64s = self.ordered_calls[self.ordered_calls[:, loop.KIND] < loop.BETWEEN]
        return calls

    @cached_property
    def _trees(self) -> int:
        return len(self.ordered_calls) - len(self.heap_calls)

    @cached_property
    def float_width(self) -> int:
        return int((self.table[:, loop.KIND] == loop.SUM_FLOAT).sum())

    @cached_property
    def moment_width(self) -> int:
        return int(self._varying.sum())

    @cached_property
    def _moment_size(self) -> int:
        floating = bool((self._varying & (self.table[:, loop.PLACES] < 0)).any())
        pairs = bool(np.isin(self.table[:, loop.KIND], tuple(_COVARIANCES.values())).any())
        if pairs:
            return exact_covariance.FLOAT_WIDTH if floating else exact_covariance.WHOLE_WIDTH
        return exact_variance.FLOAT_WIDTH if floating else exact_variance.WHOLE_WIDTH

    @cached_property
    def _varying(self) -> npt.NDArray[np.bool_]:
        return np.isin(self.table[:, loop.KIND], (loop.VAR_POP, loop.VAR_SAMP, *_COVARIANCES.values()))

    @cached_property
    def _widths(self) -> tuple[int, int]:
        """How many words a group has in all: of totals, and of what it showed."""
        kinds = self.table[:, loop.KIND]
        return sum(loop.TOTAL_WORDS[kind] for kind in kinds), sum(loop.LAST_WORDS[kind] for kind in kinds)

    @property
    def result_words(self) -> int:
        """How many words the results of a group have."""
        return self._widths[1]

    @cached_property
    def _last_width(self) -> int:
        """None where no row leaves and all are counted: whatever comes to a group changes what it shows."""
        counted = self.running and bool((self.table[:, loop.KIND] == loop.COUNT_ROWS).any())
        return 0 if counted else self._widths[1]

    def _places(self, column: int | None) -> int:
        """Of an argument the places behind the point, -1 of a floating number."""
        assert column is not None
        type_ = self.input_types[column]
        if pa.types.is_floating(type_):
            return -1
        return int(type_.scale) if pa.types.is_decimal(type_) else 0

    @cached_property
    def table(self) -> Int64s:
        """Per call twelve numbers.

        Kind, argument (as a row of the cells), number of its DISTINCT pairs or -1, number of its float total, of its
        moments, of its heap or of its tree, number of its text or -1, decimal places or -1 of a floating number,
        whether equal values count once in its tree, the two numbers of its fraction, its second argument or -1, and
        where its totals begin, and what it showed. Quantiles of one argument share a tree; trees are numbered as they
        come.
        """
        rows: list[tuple[int, ...]] = []
        distinct = floats = heaps = moments = 0
        trees: dict[tuple[int, bool], int] = {}
        texts = self._texts
        for call in self.calls:
            if call.argument is None:
                rows.append((loop.COUNT_ROWS, -1, -1, -1, -1, -1, 0, 0, 1, -1))
                continue
            compared = call.argument if call.key is None else call.key
            type_ = self.input_types[call.argument]
            whole = not pa.types.is_floating(type_)
            places = self._places(call.argument)
            ordered = call.function in ORDERED
            if call.function == "count":
                kind, index = loop.COUNT, -1
            elif ordered and self.running:
                kind, index = (loop.LEAST_EVER if call.function == "min" else loop.GREATEST_EVER), -1
            elif call.function in _TREES:
                kind = _TREES[call.function]
                index = trees.setdefault((compared, call.distinct), len(trees))
            elif ordered:
                kind, index = (loop.GREATEST if call.function == "max" else loop.LEAST), heaps
                heaps += 1
            elif call.function in ("var_pop", "var_samp"):
                kind, index = (loop.VAR_POP if call.function == "var_pop" else loop.VAR_SAMP), moments
                moments += 1
            elif call.function in _COVARIANCES:
                kind, index = _COVARIANCES[call.function], moments
                moments += 1
                places += 0 if places < 0 else self._places(call.other)
            elif call.function in _BITS:
                kind, index = _BITS[call.function], -1
            elif whole:
                kind, index = loop.SUM_WHOLE, -1
            else:
                kind, index = loop.SUM_FLOAT, floats
                floats += 1
            text = texts.index(compared) if compared in texts else -1
            different = call.distinct and not ordered
            pair = distinct if different else -1
            other = -1 if call.other is None else self.arguments.index(call.other)
            own = (self.arguments.index(compared), pair, index, text, places, int(call.distinct), *call.fraction, other)
            rows.append((kind, *own))
            distinct += different
        table = np.array(rows, dtype=np.int64).reshape(-1, 10)
        widths = np.array([loop.TOTAL_WORDS, loop.LAST_WORDS], dtype=np.int64)[:, table[:, loop.KIND]]
        return np.hstack([table, (np.cumsum(widths, axis=1) - widths).T])


@jit
def in_order(order, t, slot, sign, row_group):  # type: ignore[no-untyped-def]
    """Events in the order of time, with the groups of their rows; slot -1 is of the only group."""
    out = np.empty((4, len(order)), dtype=np.int64)
    for i in range(len(order)):
        at = order[i]
        row = slot[at]
        out[0, i] = t[at]
        out[1, i] = row
        out[2, i] = row_group[row] if row >= 0 else 0
        out[3, i] = sign[at]
    return out[0], out[1], out[2], out[3]


@jit
def each_once(group, mark):  # type: ignore[no-untyped-def]
    """Each group once; `mark` is 0 everywhere before and after."""
    groups = np.empty(len(group), dtype=np.int64)
    count = 0
    for g in group:
        if mark[g] == 0:
            mark[g] = 1
            groups[count] = g
            count += 1
    for g in groups[:count]:
        mark[g] = 0
    return groups[:count].copy()


def _folded(t: Int64s, step: Step) -> Int64s:
    """All events, ascending, at the instant of the last one; at the end of all input those up to its last row apart."""
    instants = np.full_like(t, t[-1])
    if step.frontier == FOREVER:
        until = int(np.searchsorted(t, step.last_row, side="right"))
        instants[:until] = t[until - 1]
    return instants
