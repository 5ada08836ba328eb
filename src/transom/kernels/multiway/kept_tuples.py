"""The tuples that a forest keeps: those of all its nodes, in one array, and the hash tables by which they are found.

A tuple is the positions of its members on their inputs (the rows themselves are with the inputs), its lifetime, and the
words of its keys: equal keys are equal words (`key_words.py`), so nothing else is compared. The rows of each input are
tuples of one member. A tuple ends with the first of its members to end. Which one that is is known, or it is one of
those that are open; the tuple is in the lists of these rows, by a cell in each, and goes when one of them does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.multiway.forest import Forest, TupleGrowth
from transom.kernels.multiway.input_rows import LazyRows, RingRows
from transom.kernels.multiway.tuple_chains import CELL, CLASSES, LINK, NODE, WORDS, buckets_of, meet, spread
from transom.kernels.multiway.tuple_growth import (
    ALSO,
    AT,
    BACK,
    CELL_ROOM,
    HOP,
    MADE,
    NEXT,
    OF,
    OWNER,
    POSITION,
    ROOM,
    ROW,
    candidates,
    enter,
    grow,
    join_all,
    lower_ends,
    remove,
)
from transom.kernels.sound import belong, listed, numbered, owned
from transom.state.checks import need, within
from transom.state.slots import SlotPool, grown

_LEAST = 64


@dataclass(frozen=True)
class TupleLayout:
    """What is fixed about the arrays: which columns a tuple has, and by which classes a table is."""

    forest: Forest
    classes: int

    @cached_property
    def _links(self) -> int:
        return max(len(self.forest.tables_of(node)) for node in range(len(self.forest.nodes)))

    @cached_property
    def columns(self) -> Int64s:
        """Where the words end and where the members begin."""
        words = WORDS + self.classes
        return np.array([words, words + 2 * self._links], dtype=np.int64)

    @property
    def width(self) -> int:
        return int(self.columns[1]) + self.forest.inputs

    @cached_property
    def of_node(self) -> Int64s:
        """The first table of each node, and the one behind its last."""
        spans = [self.forest.tables_of(node) for node in range(len(self.forest.nodes))]
        return np.array([(own[0], own[-1] + 1) for own in spans], dtype=np.int64)

    @cached_property
    def fixed(self) -> Int64s:
        """Of each table: the column of its links, the number of its classes, and these."""
        fixed = np.zeros((len(self.forest.tables), CLASSES + max(self.classes, 1)), dtype=np.int64)
        for t, (node, classes) in enumerate(self.forest.tables):
            link = int(self.columns[0]) + 2 * (t - int(self.of_node[node, 0]))
            fixed[t, : CLASSES + len(classes)] = [link, len(classes), *classes]
        return fixed

    @cached_property
    def growths(self) -> list[Int64s]:
        return [
            np.array([(g.node, g.source, g.target) for g in own], dtype=np.int64).reshape(-1, 3)
            for own in self.forest.growths
        ]


@dataclass
class Fresh:
    """The tuples that are new since some rows came: those of node n are `made[spans[n, 0] : spans[n, 1]]`."""

    made: Int64s
    spans: Int64s
    cursor: Int64s

    def begun(self, node: int) -> int:
        """How many there are of a node that is not up to date yet."""
        return int(self.cursor[MADE] - self.spans[node, 0])

    def of(self, node: int) -> Int64s:
        return self.made[self.spans[node, 0] : self.spans[node, 1]]


@dataclass
class KeptTuples:
    """`sizes` counts what is free; `first` starts the lists of the rows of input i at `rooms[i, 0]`, by slot.

    `rooms[i]` is that place, and the mask and the number of the slots; `ranges[t]` where the heads of a table begin,
    and their mask. `counts` are the tuples of each node.
    """

    tuples: Int64s
    rooms: Int64s
    ranges: Int64s
    counts: Int64s
    heads: Int64s
    free: Int64s = field(default_factory=lambda: np.arange(_LEAST)[::-1].copy())
    cells: Int64s = field(default_factory=lambda: np.zeros((_LEAST, 7), dtype=np.int64))
    free_cells: Int64s = field(default_factory=lambda: np.arange(_LEAST)[::-1].copy())
    sizes: Int64s = field(default_factory=lambda: np.full(2, _LEAST))
    first: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def check_layout(self, layout: TupleLayout, inputs: Sequence[LazyRows | RingRows]) -> None:
        """Every tuple is in the chains of its node, and in the list of each row that it may end with."""
        tuples = SlotPool(len(self.tuples), self.free, int(self.sizes[ROOM]))
        cells = SlotPool(len(self.cells), self.free_cells, int(self.sizes[CELL_ROOM]))
        tuples.check()
        cells.check()
        need(len(self.free) >= tuples.high and len(self.free_cells) >= cells.high)
        used = tuples.used()
        node = self.tuples[used, NODE]
        within(node, len(self.counts))
        need(np.array_equal(np.bincount(node, minlength=len(self.counts)), self.counts))
        self._check_chains(layout, used, node)
        members = self.tuples[used, int(layout.columns[1]) :]
        for i, own in enumerate(inputs):
            there = np.zeros(own.capacity, dtype=np.bool_)
            there[own.used()] = True
            positions = members[members[:, i] != -1, i]
            need(own.mask >= 0 or not len(positions) or 0 <= positions.min() <= positions.max() < own.capacity)
            need(bool(there[positions & own.mask].all()))
            need(np.array_equal(np.sort(members[node == i, i] & own.mask), np.flatnonzero(there)))
            need(bool((members[node == i] != -1).sum() == (node == i).sum()))
        self._check_cells(inputs, tuples, cells)

    def _check_chains(self, layout: TupleLayout, used: Int64s, node: Int64s) -> None:
        sizes = self.ranges[:, 1] + 1
        need(bool((sizes > 0).all() and (sizes & self.ranges[:, 1] == 0).all()))
        need(np.array_equal(self.ranges[:, 0], np.cumsum(sizes) - sizes) and len(self.heads) == int(sizes.sum()))
        for table, (of, _) in enumerate(layout.forest.tables):
            at = int(layout.fixed[table, LINK])
            following, back = (np.ascontiguousarray(self.tuples[:, column]) for column in (at, at + 1))
            first = int(self.ranges[table, 0])
            heads = self.heads[first : first + int(sizes[table])]
            numbers = np.flatnonzero(listed(heads, following, len(self.tuples), back))
            need(np.array_equal(numbers, used[node == of]))
            buckets = np.full(len(self.tuples), -1, dtype=np.int64)
            buckets[numbers] = buckets_of(numbers, table, layout.fixed, self.ranges, self.tuples)
            need(bool(belong(heads, first + np.arange(len(heads)), following, buckets)))

    def _check_cells(self, inputs: Sequence[LazyRows | RingRows], tuples: SlotPool, cells: SlotPool) -> None:
        start, mask, size = self.rooms.T
        need(bool((size >= 0).all()) and len(self.first) == size.sum())
        need(np.array_equal(start, np.cumsum(size) - size))
        need(all(m == own.mask and n == own.capacity for m, n, own in zip(mask, size, inputs, strict=True) if n))
        used = cells.used()
        columns = {name: np.ascontiguousarray(self.cells[:, name]) for name in range(self.cells.shape[1])}
        numbered(columns[OF][used], tuples)
        within(columns[OWNER][used], len(inputs))
        owner = np.clip(columns[OWNER], 0, len(inputs) - 1)
        index = columns[POSITION] & mask[owner]
        need(bool(((index[used] >= 0) & (index[used] < size[owner[used]])).all()))
        owned(self.first, np.arange(len(self.first)), columns[NEXT], start[owner] + index, cells, columns[BACK])
        of = tuples.used()
        owned(self.tuples[of, CELL], of, columns[ALSO], columns[OF], cells, None)
        node = self.tuples[columns[OF][used], NODE]
        alone = node < len(inputs)  # a tuple of one member ends with that one
        need(bool((owner[used][alone] == node[alone]).all()))

    @staticmethod
    def of(layout: TupleLayout) -> KeptTuples:
        tables, forest = len(layout.forest.tables), layout.forest
        return KeptTuples(
            np.zeros((_LEAST, layout.width), dtype=np.int64),
            np.zeros((forest.inputs, 3), dtype=np.int64),
            np.stack([_LEAST * np.arange(tables), np.full(tables, _LEAST - 1)], axis=1),
            np.zeros(len(forest.nodes), dtype=np.int64),
            np.full(_LEAST * tables, -1, dtype=np.int64),
        )

    @property
    def alive(self) -> int:
        """Tuples of two members or more."""
        return int(self.counts[len(self.rooms) :].sum())

    def enter(self, layout: TupleLayout, i: int, own: LazyRows | RingRows, rows: Arrived) -> Fresh:
        """New rows of an input become tuples of one member."""
        count = len(rows.positions)
        self._fit(i, own)
        self._make_room(count, count)
        self._widen(layout, i, int(self.counts[i]) + count)
        spans = np.zeros((len(self.counts), 2), dtype=np.int64)
        fresh = Fresh(np.empty(len(self.tuples), dtype=np.int64), spans, np.array([0, -1, -2, count, 0]))
        enter(
            i, rows.positions, rows.words, rows.ta, rows.te, fresh.made, spans,
            layout.fixed, layout.of_node, layout.columns, self._store,
        )  # fmt: skip
        return fresh

    def grow(self, layout: TupleLayout, i: int, fresh: Fresh, stop: int) -> None:
        """The next growths of input i, up to number `stop`, none of which has a check."""
        growths = layout.growths[i]
        while not grow(
            growths, stop, fresh.cursor, fresh.made, fresh.spans,
            layout.fixed, layout.of_node, layout.columns, self._store,
        ):  # fmt: skip
            node = int(growths[fresh.cursor[HOP], 0])
            self._make_room(1, len(self.rooms))
            self._widen(layout, node, int(self.counts[node]) + fresh.begun(node) + 1)
            self._lengthen(fresh)

    def pairs(self, layout: TupleLayout, growth: TupleGrowth, rows: Int64s, row: int, at: int, limit: int) -> Any:
        """Pairs of tuples that could be new ones of the node, from `rows`; and where to go on."""
        of = np.array([growth.node, growth.source, growth.target])
        return candidates(of, rows, row, at, limit, layout.fixed, self._store)

    def members(self, layout: TupleLayout, pairs: Int64s) -> Int64s:
        """The positions of the members of pairs of tuples, -1 on inputs of which there is none."""
        begin = int(layout.columns[1])
        positions: Int64s = self.tuples[pairs[:, 0], begin:] & self.tuples[pairs[:, 1], begin:]
        return positions

    def join(self, layout: TupleLayout, node: int, pairs: Int64s, fresh: Fresh) -> None:
        """These pairs are new tuples of the node."""
        self._make_room(len(pairs), len(pairs) * len(self.rooms))
        self._widen(layout, node, int(self.counts[node]) + len(pairs))
        self._lengthen(fresh)
        start = int(fresh.cursor[MADE])
        join_all(node, pairs, fresh.made, start, layout.fixed, layout.of_node, layout.columns, self._store)
        fresh.cursor[MADE] += len(pairs)

    def begin(self, fresh: Fresh, node: int) -> None:
        fresh.spans[node] = fresh.cursor[MADE]

    def finish(self, fresh: Fresh, node: int) -> None:
        """The node of the next growth is up to date."""
        fresh.spans[node, 1] = fresh.cursor[MADE]
        fresh.cursor[[HOP, ROW, AT]] = int(fresh.cursor[HOP]) + 1, -1, -2

    def meet(
        self,
        layout: TupleLayout,
        partial: Int64s,
        words: Int64s,
        table: int,
        row: int,
        at: int,
        limit: int,
        frontier: int,
    ) -> Any:
        """Partial answers from number `row` on, with what they meet in a table; and where to go on."""
        return meet(partial, words, table, row, at, limit, frontier, layout.fixed, layout.columns, self._store)

    def end(self, i: int, own: LazyRows | RingRows, positions: Int64s) -> None:
        """Ends of rows of input i that became known."""
        if len(positions):
            lower_ends(i, positions, own.te[positions & own.mask], self._store)

    def remove(self, layout: TupleLayout, i: int, positions: Int64s) -> Int64s:
        """Rows of input i go, and all tuples that they are in; gives the words of those that were in."""
        gone = remove(i, positions, layout.fixed, layout.of_node, self._store)
        return self.tuples[gone, WORDS : int(layout.columns[0])]

    @property
    def _store(self) -> tuple[Int64s, ...]:
        return (
            self.tuples, self.free, self.cells, self.free_cells, self.sizes,
            self.first, self.rooms, self.heads, self.ranges, self.counts,
        )  # fmt: skip

    def _make_room(self, tuples: int, cells: int) -> None:
        if self.sizes[ROOM] < tuples:
            self.tuples, self.free = _more(self.tuples, self.free, self.sizes, ROOM, tuples)
        if self.sizes[CELL_ROOM] < cells:
            self.cells, self.free_cells = _more(self.cells, self.free_cells, self.sizes, CELL_ROOM, cells)

    def _lengthen(self, fresh: Fresh) -> None:
        if len(fresh.made) < len(self.tuples):
            fresh.made = grown(fresh.made, len(self.tuples))

    def _widen(self, layout: TupleLayout, node: int, count: int) -> None:
        """Tables of a node as wide as it has tuples."""
        begin, end = layout.of_node[node]
        if count <= self.ranges[begin, 1] + 1:
            return
        old = [self.heads[start : start + mask + 1] for start, mask in self.ranges]
        self.ranges[begin:end, 1] = (1 << (2 * count - 1).bit_length()) - 1
        sizes = self.ranges[:, 1] + 1
        self.ranges[:, 0] = np.cumsum(sizes) - sizes
        self.heads = np.full(int(sizes.sum()), -1, dtype=np.int64)
        for t, heads in enumerate(old):
            if begin <= t < end:
                spread(t, heads, self.heads, layout.fixed, self.ranges, self.tuples)
            else:
                self.heads[self.ranges[t, 0] : self.ranges[t, 0] + len(heads)] = heads

    def _fit(self, i: int, own: LazyRows | RingRows) -> None:
        """A list for each slot of an input, whose rows may have got other slots."""
        capacity = own.capacity
        if self.rooms[i, 2] == capacity:
            return
        lists = [self.first[start : start + size] for start, _, size in self.rooms]
        laid = np.full(capacity, -1, dtype=np.int64)
        if own.mask < 0:
            laid[: len(lists[i])] = lists[i]
        elif len(lists[i]):
            positions = np.arange(own.oldest, own.oldest + own.alive)[: len(lists[i])]
            laid[positions & own.mask] = lists[i][positions & self.rooms[i, 1]]
        lists[i] = laid
        self.first = np.concatenate(lists)
        self.rooms[i, 1:] = own.mask, capacity
        self.rooms[:, 0] = np.cumsum(self.rooms[:, 2]) - self.rooms[:, 2]


@dataclass(frozen=True)
class Arrived:
    """New rows of an input: where they are, the words of their keys, and their lifetimes (OPEN_END where open)."""

    positions: Int64s
    words: Int64s
    ta: Int64s
    te: Int64s

    def part(self, first: int, size: int) -> Arrived:
        if first == 0 and len(self.positions) <= size:
            return self
        span = slice(first, first + size)
        return Arrived(self.positions[span], self.words[span], self.ta[span], self.te[span])


def _more(items: Int64s, free: Int64s, sizes: Int64s, which: int, needed: int) -> tuple[Int64s, Int64s]:
    """At least twice as many items as before, the new ones free."""
    count = len(items)
    size = max(2 * count, count + needed)
    bigger = np.zeros((size, items.shape[1]), dtype=np.int64)
    bigger[:count] = items
    room = int(sizes[which])
    stack = np.empty(size, dtype=np.int64)
    stack[:room] = free[:room]
    stack[room : room + size - count] = np.arange(count, size)[::-1]
    sizes[which] += size - count
    return bigger, stack
