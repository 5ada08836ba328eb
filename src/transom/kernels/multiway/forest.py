"""Which joins of some of the inputs are kept, so that a row of any input finds its answer in one probe (paper 3, 3.1).

Tree i answers for input i: its root joins a row of input i with the tuples of all the other inputs. The trees are grown
together, so that each sub-tree is there once. The inputs are laid in an order in which those that share a key are near
each other, and halved again and again. What is kept is the join of each part, and the join of everything outside of it:

    outside(half) = outside(part) joined with the other half

which for one input is all the others. So N inputs that share a key keep 3 N - 6 joins, each made of two others, where N
trees apart would keep N (N - 2). Joins are only kept of inputs that their keys connect, never products: what is not
connected falls apart into components, which a row probes in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transom.kernels.multiway.graph import Check, Classes, JoinGraph


@dataclass(frozen=True)
class ForestNode:
    """A join that is kept, of two other nodes; or an input by itself. `check` is what these can be asked at first."""

    members: tuple[int, ...]
    parts: tuple[int, ...]
    check: Check | None


@dataclass(frozen=True)
class TupleGrowth:
    """New tuples of the node `source` and those found in the table `target` are new tuples of `node`."""

    node: int
    source: int
    target: int


@dataclass(frozen=True)
class Visit:
    """A row, and what it has met so far, probes a table; then there is more that can be asked."""

    table: int
    check: Check | None


@dataclass(frozen=True)
class Forest:
    """Nodes are numbered, inputs first, parts before wholes. A table is of a node, by some classes of keys.

    `growths[i]` brings up to date what input i is in, `visits[i]` gives the answers for its rows.
    """

    nodes: tuple[ForestNode, ...]
    tables: tuple[tuple[int, Classes], ...]
    growths: tuple[tuple[TupleGrowth, ...], ...]
    visits: tuple[tuple[Visit, ...], ...]

    @property
    def inputs(self) -> int:
        return len(self.visits)

    def tables_of(self, node: int) -> list[int]:
        return [t for t, (of, _) in enumerate(self.tables) if of == node]


def forest(graph: JoinGraph, order: Sequence[int] = ()) -> Forest:
    """The forest for a graph; inputs that are next to each other in `order` are joined first."""
    plants = _Plants(graph)
    plants.plant(tuple(order) or connectivity(graph), [])
    used, pending = set(range(graph.count)), [at for nodes_outside in plants.outside.values() for at in nodes_outside]
    while pending:
        node = pending.pop()
        used.add(node)
        pending += plants.parts[node]
    number = {old: new for new, old in enumerate(sorted(used))}
    members = [tuple(sorted(plants.members[old])) for old in sorted(used)]
    parts = [tuple(number[part] for part in plants.parts[old]) for old in sorted(used)]
    outside = [[number[at] for at in plants.outside[i]] for i in range(graph.count)]
    nodes = [
        ForestNode(own, of, graph.check_of(own, [members[part] for part in of]))
        for own, of in zip(members, parts, strict=True)
    ]
    return _with_tables(graph, nodes, outside)


def connectivity(graph: JoinGraph) -> tuple[int, ...]:
    """From an input with few neighbours on, along the keys as deep as they lead: chains stay chains."""
    near = [{j for j in range(graph.count) if j != i and graph.shared(i, j)} for i in range(graph.count)]
    order: list[int] = []
    rest = list(range(graph.count))
    while rest:
        last = next((i for i in reversed(order) if near[i] & set(rest)), None)
        following = [j for j in rest if last is None or j in near[last]]
        order.append(min(following, key=lambda j: len(near[j])))
        rest.remove(order[-1])
    return tuple(order)


@dataclass
class _Plants:
    """Nodes as they are found; the same inputs are the same node, whatever it is made of."""

    graph: JoinGraph
    members: list[frozenset[int]] = field(default_factory=list)
    parts: list[tuple[int, ...]] = field(default_factory=list)
    number_of: dict[frozenset[int], int] = field(default_factory=dict)
    outside: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for i in range(self.graph.count):
            self._node(frozenset({i}), ())

    def plant(self, order: tuple[int, ...], outside: list[int]) -> None:
        """`outside` are the nodes of everything but this part of the order."""
        if len(order) == 1:
            self.outside[order[0]] = outside
            return
        left, right = order[: len(order) // 2], order[len(order) // 2 :]
        self.plant(left, self._joined([*outside, *self._inside(right)]))
        self.plant(right, self._joined([*outside, *self._inside(left)]))

    def _inside(self, order: tuple[int, ...]) -> list[int]:
        """The nodes of this part of the order, one for each of its components."""
        if len(order) == 1:
            return [order[0]]
        half = len(order) // 2
        return self._joined([*self._inside(order[:half]), *self._inside(order[half:])])

    def _joined(self, nodes: list[int]) -> list[int]:
        """Nodes joined until none shares a key with another; if possible, to something that is there already."""
        joined: list[int] = []
        rest = sorted(set(nodes), key=nodes.index)
        while rest:
            at = rest.pop(0)
            while near := [node for node in rest if shared(self.graph, self.members[at], self.members[node])]:
                there = [node for node in near if self.members[at] | self.members[node] in self.number_of]
                other = (there or near)[0]
                rest.remove(other)
                at = self._node(self.members[at] | self.members[other], (at, other))
            joined.append(at)
        return joined

    def _node(self, members: frozenset[int], parts: tuple[int, ...]) -> int:
        if members not in self.number_of:
            self.number_of[members] = len(self.members)
            self.members.append(members)
            self.parts.append(parts)
        return self.number_of[members]


def shared(graph: JoinGraph, some: Sequence[int] | frozenset[int], others: Sequence[int] | frozenset[int]) -> Classes:
    """The classes of keys that are on both sides."""
    classes = frozenset[int]().union(*(graph.classes[i] for i in some))
    return tuple(sorted(classes & frozenset[int]().union(*(graph.classes[i] for i in others))))


def _with_tables(graph: JoinGraph, nodes: Sequence[ForestNode], outside: Sequence[list[int]]) -> Forest:
    needed: set[tuple[int, Classes]] = set()
    for node in nodes[graph.count :]:
        left, right = node.parts
        by = shared(graph, nodes[left].members, nodes[right].members)
        needed |= {(left, by), (right, by)}
    for i, components in enumerate(outside):
        needed |= {(node, shared(graph, (i,), nodes[node].members)) for node in components}
    tables = sorted(needed)
    growths, visits = [], []
    for i, components in enumerate(outside):
        own = []
        for number, node in enumerate(nodes[graph.count :], graph.count):
            if i in node.members:
                source, other = sorted(node.parts, key=lambda part: i not in nodes[part].members)
                by = shared(graph, nodes[source].members, nodes[other].members)
                own.append(TupleGrowth(number, source, tables.index((other, by))))
        growths.append(tuple(own))
        visits.append(tuple(_visits(graph, nodes, i, components, tables)))
    return Forest(tuple(nodes), tuple(tables), tuple(growths), tuple(visits))


def _visits(
    graph: JoinGraph, nodes: Sequence[ForestNode], i: int, components: list[int], tables: list[tuple[int, Classes]]
) -> list[Visit]:
    """What shares most keys with a row comes first, what shares none last."""
    by = {node: shared(graph, (i,), nodes[node].members) for node in components}
    bound: tuple[int, ...] = (i,)
    visits = []
    for node in sorted(components, key=lambda node: -len(by[node])):
        members = nodes[node].members
        check = graph.check_of((*bound, *members), [bound, members])
        bound = (*bound, *members)
        visits.append(Visit(tables.index((node, by[node])), check))
    return visits
