"""The order in which a row visits the other inputs, learnt from what its probes found.

For the rows of each input it is counted how many tuples were probed with on every other input and how many came out.
An order takes next the input with the fewest matches a probe among those that share a key with what is bound, and only
then one that shares none. It is made anew after some rows, ever fewer times; what was seen long ago counts less. Any
order gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.multiway.graph import JoinGraph
from transom.state.checks import need

SOON, SELDOM = 64, 1 << 14  # rows between two looks, at first and later on
MANY = 1 << 16  # probes from which on the past counts half


@dataclass
class ProbeOrder:
    """`probes[i, j]` and `matches[i, j]`: of rows of input i on input j. `orders[i]` begins with i."""

    probes: Int64s
    matches: Int64s
    orders: Int64s
    rows: Int64s
    due: Int64s

    def check(self) -> None:
        need(bool((self.probes >= 0).all() and (self.matches >= 0).all()))
        need(all(sorted(order) == list(range(len(self.orders))) for order in self.orders.tolist()))
        need(bool((self.orders[:, 0] == np.arange(len(self.orders))).all()))

    @staticmethod
    def of(graph: JoinGraph) -> ProbeOrder:
        count = graph.count
        nothing = np.zeros((count, count), dtype=np.int64)
        order = ProbeOrder(
            nothing, nothing.copy(), nothing.copy(), np.zeros(count, dtype=np.int64), np.full(count, SOON)
        )
        for i in range(count):
            order.orders[i] = order.best(graph, i)
        return order

    def turn(self, graph: JoinGraph, i: int, rows: int) -> bool:
        """There are so many more rows of input i; whether their order was made anew."""
        anew = bool(self.rows[i] >= self.due[i])
        if anew:
            self.orders[i] = self.best(graph, i)
            self.due[i] = self.rows[i] + min(max(SOON, int(self.rows[i])), SELDOM)
            old = self.probes[i] > MANY
            self.probes[i, old] //= 2
            self.matches[i, old] //= 2
        self.rows[i] += rows
        return anew

    def order(self, graph: JoinGraph, i: int, rows: int) -> tuple[int, ...]:
        """For so many more rows of input i."""
        self.turn(graph, i, rows)
        return tuple(self.orders[i].tolist())

    def note(self, i: int, target: int, probes: int, matches: int) -> None:
        self.probes[i, target] += probes
        self.matches[i, target] += matches

    def best(self, graph: JoinGraph, i: int) -> list[int]:
        """The order that the counts speak for; inputs nobody has probed yet are taken for one match a probe."""
        expected = ((self.matches[i] + 1) / (self.probes[i] + 1)).tolist()
        order = [i]
        bound = graph.classes[i]
        rest = [j for j in range(graph.count) if j != i]
        while rest:
            linked = [j for j in rest if bound & graph.classes[j]]
            following = min(linked or rest, key=expected.__getitem__)
            order.append(following)
            bound |= graph.classes[following]
            rest.remove(following)
        return order
