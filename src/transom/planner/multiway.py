"""Joins of many inputs: the tactic, and the operator that runs it.

| tactic | takes | keeps |
| --- | --- | --- |
| tree | anything: joins of two, one upon the other | the rows alive of all inputs, and those of the joins between |
| parallel_tree | anything, if lifetimes are told directly | the rows alive of all inputs, and tuples of most of them |
| mjoin | anything, if lifetimes are told directly | the rows alive of all inputs |
| parallel_mjoin | anything, if lifetimes are told directly | the rows alive of all inputs |

Unless one is asked for, the one that costs the least is taken (`multiway_choice.py`).
"""

from __future__ import annotations

from typing import Final

from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import SINGLE, Operator, Partitioning, Tactic
from transom.plan.algebra import Join, a_relation
from transom.plan.expression import Expression, columns_of, conjunction, conjuncts, remap
from transom.planner.joinagg_shape import Shape, equal, may_fail
from transom.planner.multiway_choice import Choice


def operator(node: MultiwayJoin, inputs: tuple[Operator, ...], choice: Choice) -> Operator:
    """The join of all inputs as one, spread by the keys that all of them are joined on."""
    common = node.common_keys
    needs = tuple(Partitioning("keys", tuple(_key(own[c]) for c in common)) if common else SINGLE for own in node.keys)
    open_ends = any(below.open_ends for below in inputs)
    tuples = ", and a list node per open tuple and input" if open_ends else ""
    tables = max(len({key for other in node.keys if (key := _shared(own, other))}) for own in node.keys)
    hashed = "a hash table each" if tables < 2 else f"up to {tables} hash tables each"
    kept = ", and tuples of positions of most of them" if choice.name == "parallel_tree" else ""
    keeps = f"the rows alive of all {len(inputs)} inputs once, in {hashed}{kept}{tuples}"
    expire = "O(1)" if all(below.ends_grow for below in inputs) else "O(log n)"
    work = f"{_WORK[choice.name].format(len(inputs) - 1)}; {expire} to expire"
    if not common:
        work += "; all in one bucket, as there is no key of all inputs"
    return Operator(node, choice.onto(Tactic(choice.name, keeps, work)), inputs, None, needs, open_ends=open_ends)


_WORK: Final = {
    "mjoin": "{} probes a row, one more per partial match",
    "parallel_mjoin": "{} probes a row at once, in threads",
    "parallel_tree": "a probe a row to its answer, in threads a tuple kept per partial match",
}


def multiway_join(join: Join, inputs: tuple[Operator, ...]) -> MultiwayJoin:
    """Equalities between inputs become classes of keys; what does not follow from these is left as predicates."""
    shape = Shape(join.relations, conjuncts(join.predicate), (), ())
    keys: list[tuple[Expression | None, ...]] = []
    for i in range(len(inputs)):
        keys.append(tuple(next((key for at, key in known if at == i), None) for known in shape.classes))
    parts = [part for part in shape.predicates if shape.equality(part) is None]
    # Where a class is several expressions of one input, these are compared.
    for known in shape.classes:
        for i in range(len(inputs)):
            mine = [_placed(shape, i, key) for at, key in known if at == i]
            parts += [equal(mine[0], other) for other in mine[1:]]
    harmless = tuple(part for part in parts if not may_fail(part))
    last = tuple(part for part in parts if may_fail(part))
    relations = tuple(a_relation(below.node) for below in inputs)
    return MultiwayJoin(relations, tuple(keys), harmless, conjunction(last))


def _placed(shape: Shape, i: int, key: Expression) -> Expression:
    """Over the columns of all inputs side by side."""
    return remap(key, {at: at + shape.bounds[i] for at in columns_of(key)})


def _shared(one: tuple[Expression | None, ...], other: tuple[Expression | None, ...]) -> tuple[int, ...]:
    if one is other:
        return ()
    return tuple(c for c, (a, b) in enumerate(zip(one, other, strict=True)) if a is not None and b is not None)


def _key(key: Expression | None) -> Expression:
    assert key is not None
    return key
