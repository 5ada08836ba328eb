"""Joins of many inputs: the tactic, and the operator that runs it.

They are in `kernels/multiway/tactic.py`, and there is the tree: joins of two, one upon the other.
Unless one is forced, the one that costs the least is taken (`multiway_choice.py`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from transom.kernels.all_tactics import tactics_of
from transom.kernels.joinagg.shape import Shape, equal, may_fail
from transom.kernels.multiway.join_tree import Tree, leaves
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.tactic import AdaptiveJoinTactic, MultiwayTactic
from transom.kernels.operator import SINGLE, Operator, Partitioning
from transom.plan.algebra import Join, a_relation
from transom.plan.expression import Expression, columns_of, conjunction, conjuncts, remap
from transom.planner.multiway_choice import MultiwayChoice


def operator(node: MultiwayJoin, inputs: tuple[Operator, ...], choice: MultiwayChoice) -> Operator:
    """The join of all inputs as one, spread by the keys that all of them are joined on."""
    common = node.common_keys
    needs = tuple(Partitioning("keys", tuple(_key(own[c]) for c in common)) if common else SINGLE for own in node.keys)
    (kind,) = (each for each in tactics_of(MultiwayJoin) if each.name == choice.name)
    assert issubclass(kind, MultiwayTactic)
    chosen = kind.chosen(node, inputs)
    if isinstance(chosen, AdaptiveJoinTactic):
        assert choice.decision.tree is not None
        trees = other_shapes(node, choice.decision.tree)
        chosen = replace(chosen, trees=trees, first=choice.first, watch=choice.adapt)
    tactic = choice.onto(chosen)
    return Operator(node, tactic, inputs, None, needs, open_ends=any(below.open_ends for below in inputs))


def other_shapes(node: MultiwayJoin, tree: Tree) -> tuple[Tree, ...]:
    """The trees that a join of three may change to, those without combinations of all rows; this one first."""
    if len(node.relations) != 3:
        return (tree,)
    pairs = [(i, j) for i, j in combinations(range(3), 2) if _linked(node, i, j)]
    shapes: list[Tree] = [((i, j), 3 - i - j) for i, j in pairs]
    return (tree, *(shape for shape in shapes if _first_pair(shape) != _first_pair(tree)))


def _first_pair(tree: Tree) -> frozenset[int]:
    assert not isinstance(tree, int)
    return frozenset(next(leaves(side) for side in tree if not isinstance(side, int)))


def _linked(node: MultiwayJoin, i: int, j: int) -> bool:
    return any(a is not None and b is not None for a, b in zip(node.keys[i], node.keys[j], strict=True))


def multiway_join(join: Join, inputs: tuple[Operator, ...]) -> MultiwayJoin:
    """Equalities between inputs become classes of keys; what does not follow from these is left as predicates."""
    shape = Shape(join.relations, conjuncts(join.predicate), (), ())
    keys: list[tuple[Expression | None, ...]] = []
    for i in range(len(inputs)):
        keys.append(tuple(next((key for at, key in key_members if at == i), None) for key_members in shape.classes))
    parts = [part for part in shape.predicates if shape.equality(part) is None]
    # Where a class is several expressions of one input, these are compared.
    for key_members in shape.classes:
        for i in range(len(inputs)):
            own_keys = [_placed(shape, i, key) for at, key in key_members if at == i]
            parts += [equal(own_keys[0], other) for other in own_keys[1:]]
    harmless = tuple(part for part in parts if not may_fail(part))
    last = tuple(part for part in parts if may_fail(part))
    relations = tuple(a_relation(below.node) for below in inputs)
    return MultiwayJoin(relations, tuple(keys), harmless, conjunction(last))


def _placed(shape: Shape, i: int, key: Expression) -> Expression:
    """Over the columns of all inputs side by side."""
    return remap(key, {at: at + shape.bounds[i] for at in columns_of(key)})


def _key(key: Expression | None) -> Expression:
    assert key is not None
    return key
