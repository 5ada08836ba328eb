"""Which joins a forest keeps: few, each once, of connected inputs alone, and enough for every row's answer."""

from __future__ import annotations

from random import Random

import pytest

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import SHAPES, K, M, Shape
from transom.kernels.multiway.forest import Forest, connectivity, forest, shared
from transom.kernels.multiway.graph import JoinGraph


def graph_of(shape: Shape) -> JoinGraph:
    return tuples.kernel(shape).graph


def one_key(count: int) -> Shape:
    return Shape(count, (dict.fromkeys(range(count), K),))


def kept(found: Forest) -> list[tuple[int, ...]]:
    return [node.members for node in found.nodes[found.inputs :]]


def connected(graph: JoinGraph, members: tuple[int, ...]) -> bool:
    reached = {members[0]}
    while more := {j for j in members if j not in reached and shared(graph, tuple(reached), (j,))}:
        reached |= more
    return len(reached) == len(members)


def check_whole(graph: JoinGraph, found: Forest) -> None:
    """Everything that any forest must be."""
    nodes, tables = found.nodes, found.tables
    assert [node.members for node in nodes[: graph.count]] == [(i,) for i in range(graph.count)]
    assert len({node.members for node in nodes}) == len(nodes)
    for number, node in enumerate(nodes[graph.count :], graph.count):
        one, other = (nodes[part].members for part in node.parts)
        assert max(node.parts) < number and sorted((*one, *other)) == list(node.members)
        assert shared(graph, one, other) and connected(graph, node.members)
    for i in range(graph.count):
        visited = [tables[visit.table] for visit in found.visits[i]]
        outside = [nodes[node].members for node, _ in visited]
        assert sorted(j for members in outside for j in members) == [j for j in range(graph.count) if j != i]
        # Components: nothing connects one with another.
        assert not any(shared(graph, a, b) for n, a in enumerate(outside) for b in outside[:n])
        assert all(by == shared(graph, (i,), nodes[node].members) for node, by in visited)
        assert [bool(by) for _, by in visited] == sorted((bool(by) for _, by in visited), reverse=True)
        # Every node with input i, in an order in which its new tuples are there before they are needed.
        grown = [growth.node for growth in found.growths[i]]
        assert grown == [n for n, node in enumerate(nodes) if i in node.members and n >= graph.count]
        for growth in found.growths[i]:
            target, by = tables[growth.target]
            assert {growth.source, target} == set(nodes[growth.node].parts) and i in nodes[growth.source].members
            assert by == shared(graph, nodes[growth.source].members, nodes[target].members)
    checked = {visit.table for visits in found.visits for visit in visits}
    checked |= {growth.target for growths in found.growths for growth in growths}
    assert checked == set(range(len(tables)))


@pytest.mark.parametrize("name", SHAPES)
def test_any_forest_is_whole(name: str) -> None:
    graph = graph_of(SHAPES[name])
    check_whole(graph, forest(graph))
    order = list(range(graph.count))
    Random(name).shuffle(order)
    check_whole(graph, forest(graph, order))


@pytest.mark.parametrize(("count", "nodes"), [(2, 0), (3, 3), (4, 6), (5, 9), (8, 18), (20, 54)])
def test_one_key_keeps_three_joins_an_input_and_answers_with_one_probe(count: int, nodes: int) -> None:
    graph = graph_of(one_key(count))
    found = forest(graph)
    check_whole(graph, found)
    assert len(kept(found)) == nodes <= 3 * count
    assert [len(visits) for visits in found.visits] == [1] * count
    if count > 2:
        assert {len(growths) for growths in found.growths} == {2 * nodes // 3}
    # A table a node: all are probed by the one key.
    assert len(found.tables) == count + nodes


def test_four_inputs_share_the_joins_of_two_as_in_the_paper() -> None:
    """Figure 6: of the four trees, two have one join of two in common, and two the other."""
    found = forest(graph_of(one_key(4)), (1, 2, 0, 3))
    pairs = [node for node in found.nodes[4:] if len(node.members) == 2]
    assert [node.members for node in pairs] == [(0, 3), (1, 2)]
    triples = [node for node in found.nodes if len(node.members) == 3]
    assert len(triples) == 4
    for pair in pairs:
        used = [node for node in triples if found.nodes.index(pair) in node.parts]
        assert len(used) == 2
    # Trees apart would make each of the joins of two twice, and so 8.
    assert len(kept(found)) == 6


def test_a_chain_keeps_its_ends_and_no_products() -> None:
    shape = Shape(20, tuple({i: K, i + 1: M} for i in range(19)))
    graph = graph_of(shape)
    found = forest(graph)
    check_whole(graph, found)
    assert all(members[-1] - members[0] == len(members) - 1 for members in kept(found))
    assert len(kept(found)) <= 60
    # A row in the middle probes what is before it and what is behind it.
    assert [len(visits) for visits in found.visits] == [1, *[2] * 18, 1]


def test_a_star_falls_apart_without_its_centre() -> None:
    shape = Shape(6, tuple({0: K, i: M} for i in range(1, 6)))
    graph = graph_of(shape)
    found = forest(graph)
    check_whole(graph, found)
    assert [len(visits) for visits in found.visits] == [5, 1, 1, 1, 1, 1]
    assert all(0 in members for members in kept(found))


def test_inputs_without_keys_are_probed_whole() -> None:
    cross = forest(graph_of(SHAPES["cross"]))
    assert not kept(cross) and cross.tables == ((0, ()), (1, ()), (2, ()))
    islands = forest(graph_of(SHAPES["two islands"]))
    assert kept(islands) == [(2, 3), (0, 1)]
    assert [[islands.tables[visit.table][1] for visit in visits] for visits in islands.visits] == [
        [(0,), ()], [(0,), ()], [(1,), ()], [(1,), ()],
    ]  # fmt: skip


def test_predicates_are_asked_where_their_inputs_are_first_together() -> None:
    found = forest(graph_of(SHAPES["a key and a predicate"]))
    checked = {node.members: node.check is not None for node in found.nodes}
    assert checked == {(0,): False, (1,): False, (2,): False, (1, 2): False, (0, 2): True, (0, 1): False}
    # A row of input 1 meets tuples of which it was asked already.
    assert [visits[0].check is not None for visits in found.visits] == [True, False, True]
    alone = forest(graph_of(SHAPES["one input alone"]))
    assert [node.members for node in alone.nodes if node.check is not None] == [(1,)]


def test_the_order_follows_the_keys() -> None:
    # A chain whose inputs come in another order: 3 - 0 - 2 - 1.
    shape = Shape(4, ({3: K, 0: K}, {0: M, 2: M}, {2: K, 1: K}))
    assert connectivity(graph_of(shape)) in ((1, 2, 0, 3), (3, 0, 2, 1))
    assert connectivity(graph_of(SHAPES["cross"])) == (0, 1, 2)
