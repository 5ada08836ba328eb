"""What is known of a join of many inputs and of where it runs: the planner estimates it, an operator may count it.

Nothing of it changes an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import log, prod
from typing import Final
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from transom.kernels.multiway.node import MultiwayJoin
from transom.plan.expression import columns_of

Floats = npt.NDArray[np.float64]

SEEN: Final = 8.0
"""Fewer tuples than this in a sample say nothing."""

PASSING: Final = 1 / 3
"""The share of tuples that pass a predicate of which nobody knows more."""


@dataclass(frozen=True)
class Machine:
    """Where the query runs. `handover_us`: a task to another thread and its result back. `one_by_one`: rows of streams
    that are stamped on arrival pass on their own; otherwise rows come in batches."""

    cores: int = 1
    handover_us: float = 30.0
    partitions: int = 1
    one_by_one: bool = True


Origin = OneOf["declared", "sampled", "assumed"]


@dataclass(frozen=True)
class InputStatistics:
    """New rows a second, the rows alive at once, and how the rate is known. The rate of what never changes is 0."""

    rate: float
    alive: float
    origin: Origin = "assumed"


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """Of a class of keys: how many of the rows alive of input i have value v, at some instants. Values that one input
    alone has are left out; `alive` counts all rows, by input and instant.

    `before` counts the rows of `now` that were alive a little earlier as well. `growth` says what becomes of matches
    in windows that are larger than the sample: 0 where they grow with the window, 1 where a probe finds as many. Fewer
    tuples than `least` say nothing.
    """

    now: Floats
    before: Floats
    alive: Floats
    alive_before: Floats
    growth: float = 0.0
    larger: float = 1.0
    least: float = SEEN
    _shares: dict[int, float] = field(default_factory=dict, repr=False)
    _sums: dict[int, tuple[float, float]] = field(default_factory=dict, repr=False)
    _products: dict[int, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def share(self, members: int) -> float:
        """Of the combinations of rows alive of these inputs (bits), the share that agrees on the key."""
        if members.bit_count() < 2:
            return 1.0
        return float(self._share(members) / self.larger ** (self.growth * (members.bit_count() - 1)))

    def staying(self, members: int) -> float:
        """Of the tuples that agree on the key, the share that was there before."""
        now, before = self._sum(members)
        if not now or now < self.least:
            return prod(self.staying_alone(i) for i in bits(members))
        return before / now

    def staying_alone(self, i: int) -> float:
        return self._staying[i]

    @cached_property
    def _staying(self) -> list[float]:
        return [_ratio(before, now) for before, now in zip(self.alive_before.sum(1), self.alive.sum(1), strict=True)]

    def _share(self, members: int) -> float:
        share = self._shares.get(members)
        if share is None:
            count = self._sum(members)[0]
            if count >= self.least or members.bit_count() == 2:
                share = max(count, 0.5) / max(float(np.prod(self.alive[bits(members)], axis=0).sum()), 1.0)
            else:  # too few to count: as if the last input had to do with one of the others alone
                last = 1 << members.bit_length() - 1
                rest = members & ~last
                share = self._share(rest) * sum(self._share(1 << i | last) for i in bits(rest)) / rest.bit_count()
            self._shares[members] = share
        return share

    def _sum(self, members: int) -> tuple[float, float]:
        sums = self._sums.get(members)
        if sums is None:
            now, before = self._product(members)
            sums = self._sums[members] = (float(now.sum()), float(before.sum()))
        return sums

    def _product(self, members: int) -> tuple[Floats, Floats]:
        product = self._products.get(members)
        if product is None:
            last = members.bit_length() - 1
            rest = members & ~(1 << last)
            product = self.now[last], self.before[last]
            if rest:
                now, before = self._product(rest)
                product = product[0] * now, product[1] * before
            self._products[members] = product
        return product


@dataclass(frozen=True, eq=False)
class JoinStatistics:
    """What is known of a join: its inputs, its classes of keys (None: one match a probe), and the share of tuples that
    passes each of its other predicates. Sets of inputs are bits."""

    inputs: tuple[InputStatistics, ...]
    members: tuple[int, ...]
    keys: tuple[KeyCounts | None, ...]
    residual: tuple[tuple[int, float], ...] = ()
    _alive: dict[int, float] = field(default_factory=dict, repr=False)
    _births: dict[int, float] = field(default_factory=dict, repr=False)

    @property
    def all(self) -> int:
        return (1 << len(self.inputs)) - 1

    @cached_property
    def has_facts(self) -> bool:
        """Whether anything of it is more than assumed."""
        return any(input_.origin != "assumed" for input_ in self.inputs) or any(keys is not None for keys in self.keys)

    @cached_property
    def even(self) -> bool:
        """Whether all inputs are much alike, and probes find as many matches everywhere."""
        matches = [self.found_by(i, 1 << i | 1 << j) for i, j in self.linked]
        return _alike([own.rate for own in self.inputs], 1.25) and _alike(matches, 1.5)

    @cached_property
    def linked(self) -> list[tuple[int, int]]:
        """The pairs of inputs that share a key."""
        count = range(len(self.inputs))
        return [
            (i, j) for i in count for j in count
            if i != j and any(members >> i & 1 and members >> j & 1 for members in self.members)
        ]  # fmt: skip

    @cached_property
    def rate(self) -> float:
        """Rows a second of all inputs together."""
        return sum(input_.rate for input_ in self.inputs)

    def alive(self, tuples: int) -> float:
        """How many tuples of rows of these inputs, that satisfy all predicates over them, are alive at once."""
        alive = self._alive.get(tuples)
        if alive is None:
            alive = prod(self.inputs[i].alive for i in bits(tuples))
            for members, keys, values in zip(self.members, self.keys, self._values, strict=True):
                both = members & tuples
                if both.bit_count() > 1:
                    alive *= values ** (1 - both.bit_count()) if keys is None else keys.share(both)
            alive *= prod(share for over, share in self.residual if over & tuples == over)
            self._alive[tuples] = alive
        return alive

    def births(self, tuples: int) -> float:
        """How many such tuples come to be in a second."""
        births = self._births.get(tuples)
        if births is None:
            births = self._births[tuples] = self.alive(tuples) * self._turnover(tuples)
        return births

    def found_by(self, i: int, tuples: int) -> float:
        """How many tuples over these inputs, i among them, a new row of input i completes."""
        own = self.inputs[i]
        fresh = sum(_ratio(self.inputs[j].rate, self.inputs[j].alive) for j in bits(tuples))
        return _ratio(self.births(tuples), own.alive * fresh)

    def parts(self, tuples: int) -> list[int]:
        """The inputs in sets of those that share keys, directly or by way of others among them."""
        components: list[int] = []
        rest = tuples
        while rest:
            reached, last = rest & -rest, 0
            while reached != last:
                last = reached
                for members in self.members:
                    if members & reached:
                        reached |= members & tuples
            components.append(reached)
            rest &= ~reached
        return components

    @cached_property
    def _values(self) -> list[float]:
        """How many values each class of keys has, where that is assumed: a probe of the slowest input finds a match."""
        values = []
        for members in self.members:
            own = [self.inputs[i] for i in bits(members)]
            slowest = min((input_.rate for input_ in own if input_.rate), default=1.0)
            values.append(max(1.0, *(input_.alive * (slowest / input_.rate if input_.rate else 1.0) for input_ in own)))
        return values

    def _turnover(self, tuples: int) -> float:
        """The share of the tuples that is new every second."""
        fresh = sum(_ratio(self.inputs[i].rate, self.inputs[i].alive) for i in bits(tuples))
        counted = [
            (members & tuples, keys)
            for members, keys in zip(self.members, self.keys, strict=True)
            if keys is not None and (members & tuples).bit_count() > 1
        ]
        if not counted:
            return fresh
        # What comes together stays together: keys that move on with time are found by the last of their rows alone.
        staying = sum(_log(keys.staying(members)) for members, keys in counted)
        chance = 0.0
        for i in bits(tuples):
            among = [keys for members, keys in counted if members >> i & 1]
            if among:
                alone = _log(among[0].staying_alone(i))
                chance += alone
                staying += alone * (1 - len(among))
        return fresh * min(1.0, max(0.0, staying / chance)) if chance else fresh


def predicates_over(node: MultiwayJoin) -> tuple[int, ...]:
    """The inputs that each predicate reads, the last one included."""
    bounds = np.cumsum([len(relation.schema) for relation in node.relations])
    parts = (*node.residual, *(() if node.last is None else (node.last,)))
    return tuple(of(int(np.searchsorted(bounds, at, side="right")) for at in columns_of(part)) for part in parts)


def bits(members: int) -> list[int]:
    """
    >>> bits(0b1011)
    [0, 1, 3]
    """
    return [i for i in range(members.bit_length()) if members >> i & 1]


def of(members: Iterable[int]) -> int:
    """
    >>> bin(of([0, 1, 3]))
    '0b1011'
    """
    mask = 0
    for i in members:
        mask |= 1 << i
    return mask


def _alike(values: list[float], within: float) -> bool:
    return max(values, default=0.0) <= within * min(values, default=0.0)


def _log(share: float) -> float:
    return log(min(1.0, max(share, 1e-3)))


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0
