"""The shape of a tree of joins of two: which inputs are joined first.

Its cost is what passes its joins in a second: rows that probe, and rows that are built. Inputs that share no key are
combined last. In partitions, rows that have to move between two joins cost much more than that, so inputs on one key
stay together.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

from transom.kernels.multiway.statistics import JoinStatistics, bits, of

Tree = int | tuple["Tree", "Tree"]
"""An input by its number, or two trees that are joined."""

SEARCHED: Final = 9
"""Up to so many inputs all trees are compared; of more, the cheapest join is made first, and so on."""

MOVE: Final = 10.0
"""Rows that move between two joins cost so many times the work of the tree as it is written."""

WORTH: Final = 0.9
"""Another tree than the written one is taken if it does no more than this share of its work."""

WORTH_IF_EVEN: Final = 0.7
"""Where all inputs are alike another tree is taken at this share: it is not they that speak for it."""


def left_deep(order: list[int]) -> Tree:
    """
    >>> left_deep([0, 2, 1])
    ((0, 2), 1)
    """
    tree: Tree = order[0]
    for i in order[1:]:
        tree = (tree, i)
    return tree


def leaves(tree: Tree) -> list[int]:
    """
    >>> leaves(((0, 2), (3, 1)))
    [0, 2, 3, 1]
    """
    return [tree] if isinstance(tree, int) else [*leaves(tree[0]), *leaves(tree[1])]


def joins_of(tree: Tree) -> Iterator[tuple[int, int]]:
    """Each join as its two sides, sets of inputs as bits; those below before those above."""
    if not isinstance(tree, int):
        yield from joins_of(tree[0])
        yield from joins_of(tree[1])
        yield of(leaves(tree[0])), of(leaves(tree[1]))


def best_tree(statistics: JoinStatistics, written: Tree, spread: bool) -> Tree:
    """The cheapest tree, or the written one if that is about as good; `spread`: over several partitions."""
    search = _Search(statistics, written, spread)
    plain = search.plans_of(written)
    if not statistics.has_facts and not spread:
        return written  # nothing speaks for another one
    plans = search.best()
    if not statistics.has_facts:
        return plans.tree if plans.cost < plain.cost - search.move / 2 else written
    return plans.tree if plans.cost < (WORTH_IF_EVEN if statistics.even else WORTH) * plain.cost else written


class _Plans:
    """The best trees over a set of inputs: by the class of keys that the rows of the last join are spread by."""

    __slots__ = ("by_key", "cost", "members", "tree")

    def __init__(self, members: int) -> None:
        self.members = members
        single = members.bit_count() == 1
        self.by_key: dict[int, tuple[float, Tree]] = {}
        self.cost = 0.0 if single else inf
        self.tree: Tree = members.bit_length() - 1

    def add(self, key: int, cost: float, tree: Tree) -> None:
        if key not in self.by_key or cost < self.by_key[key][0]:
            self.by_key[key] = cost, tree
        if cost < self.cost:
            self.cost, self.tree = cost, tree


_ALONE: Final = -1
"""Stands for the key of a join that has none: all its rows are in one partition."""


class _Search:
    def __init__(self, statistics: JoinStatistics, written: Tree, spread: bool) -> None:
        self.statistics = statistics
        self.move = 0.0
        self._plans: dict[int, _Plans] = {}
        self._is_connected: dict[int, bool] = {}
        if spread:
            self.move = MOVE * self.plans_of(written).cost

    def best(self) -> _Plans:
        parts = [self._within(part) for part in self.statistics.parts(self.statistics.all)]
        while len(parts) > 1:  # those of which the fewest tuples are made, first
            pairs = [(a, b) for i, a in enumerate(parts) for b in parts[i + 1 :]]
            a, b = min(pairs, key=lambda pair: self.statistics.alive(pair[0].members | pair[1].members))
            joined = self._joined(a, b)
            parts = [joined if part is a else part for part in parts if part is not b]
        return parts[0]

    def plans_of(self, tree: Tree) -> _Plans:
        """The cost of a given tree."""
        return _Plans(1 << tree) if isinstance(tree, int) else self._joined(*map(self.plans_of, tree))

    # --- trees over a connected set ----------------------------------------------------------------------------------

    def _within(self, members: int) -> _Plans:
        return self._searched(members) if members.bit_count() <= SEARCHED else self._greedy(members)

    def _searched(self, members: int) -> _Plans:
        plans = self._plans.get(members)
        if plans is None:
            plans = self._plans[members] = _Plans(members)
            for left, right in self._splits(members):
                self._join(self._searched(left), self._searched(right), plans)
        return plans

    def _splits(self, members: int) -> Iterator[tuple[int, int]]:
        """The ways to cut a connected set into two such; the first input is always on the left."""
        first = members & -members
        rest = members & ~first
        part = rest
        connected = self._connected
        while part:
            left = members & ~part
            if connected(left) and connected(part):
                yield left, part
            part = (part - 1) & rest

    def _greedy(self, members: int) -> _Plans:
        parts = [_Plans(1 << i) for i in bits(members)]
        while len(parts) > 1:
            made = [
                (self._joined(part, other).cost - part.cost - other.cost, i, j)
                for i, part in enumerate(parts)
                for j, other in enumerate(parts)
                if i < j and self._shared(part.members, other.members)
            ]
            _, i, j = min(made)
            parts[i] = self._joined(parts[i], parts[j])
            del parts[j]
        return parts[0]

    # --- one join ----------------------------------------------------------------------------------------------------

    def _joined(self, left: _Plans, right: _Plans) -> _Plans:
        joined = _Plans(left.members | right.members)
        self._join(left, right, joined)
        return joined

    def _join(self, one: _Plans, other: _Plans, into: _Plans) -> None:
        births = self.statistics.births
        work = births(one.members) + births(other.members) + births(one.members | other.members)
        for key in self._shared(one.members, other.members) or (_ALONE,):
            (a, left), (b, right) = self._spread_by(one, key), self._spread_by(other, key)
            into.add(key, a + b + work, (left, right))

    def _spread_by(self, plans: _Plans, key: int) -> tuple[float, Tree]:
        """The best tree whose rows are spread by the key, if need be after they have moved."""
        if plans.members.bit_count() == 1:
            return plans.cost, plans.tree
        moved = plans.cost + self.move, plans.tree
        kept = plans.by_key.get(key, moved)
        return kept if kept[0] <= moved[0] else moved

    # --- connections -------------------------------------------------------------------------------------------------

    def _shared(self, left: int, right: int) -> list[int]:
        """The classes of keys that both sides have."""
        return [c for c, members in enumerate(self.statistics.members) if members & left and members & right]

    def _connected(self, members: int) -> bool:
        is_connected = self._is_connected.get(members)
        if is_connected is None:
            is_connected = self._is_connected[members] = len(self.statistics.parts(members)) == 1
        return is_connected
