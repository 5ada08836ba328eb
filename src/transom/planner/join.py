"""Joins: the order of the inputs, the keys of each pair, and the tactic.

| tactic | takes | keeps |
| --- | --- | --- |
| ring_hash | an equality, and ends that grow with arrival on both sides | the rows alive, in rings |
| lazy_hash | an equality | the rows alive, ends in a lazily sorted set |
| nested_loop | anything | the rows alive |
"""

from __future__ import annotations

from transom.core.errors import RefusedError
from transom.kernels.operator import SINGLE, JoinKeys, Operator, Partitioning, Tactic
from transom.plan.algebra import Join, Relation
from transom.plan.expression import Call, Expression, columns_of, conjunction, conjuncts, remap

TACTICS = ("ring_hash", "lazy_hash", "nested_loop")


def join_order(join: Join) -> list[int]:
    """Inputs in an order in which each, if it can, shares an equality with those before it."""
    bounds = _bounds(join.relations)
    equalities = [
        {_input_of(column, bounds) for column in columns_of(part)}
        for part in conjuncts(join.predicate)
        if isinstance(part, Call) and part.function == "="
    ]
    order, rest = [0], list(range(1, len(join.relations)))
    while rest:
        linked = [i for i in rest if any(i in edge and edge - {i} and edge - {i} <= set(order) for edge in equalities)]
        following = (linked or rest)[0]
        order.append(following)
        rest.remove(following)
    return order


def split_keys(parts: tuple[Expression, ...], left_width: int) -> JoinKeys:
    """Equalities between the sides become keys, everything else is residual."""
    left: list[Expression] = []
    right: list[Expression] = []
    residual: list[Expression] = []
    for part in parts:
        sides = _equality(part, left_width)
        if sides is None:
            residual.append(part)
        else:
            left.append(sides[0])
            right.append(sides[1])
    return JoinKeys(tuple(left), tuple(right), conjunction(tuple(residual)))


def choose(left: Operator, right: Operator, keys: JoinKeys, forced: str) -> Tactic:
    """The first tactic that says yes; a forced one that says no is refused with its reason."""
    growing = left.ends_grow and right.ends_grow
    side = "right" if left.ends_grow else "left"
    reasons = {
        "ring_hash": (
            "there is no equality between the sides"
            if not keys.left
            else None
            if growing
            else f"rows of the {side} input do not end in the order in which they came"
        ),
        "lazy_hash": None if keys.left else "there is no equality between the sides",
        "nested_loop": None,
    }
    if forced != "auto":
        reason = reasons[forced]
        if reason is not None:
            possible = [name for name in TACTICS if reasons[name] is None]
            raise RefusedError(
                f"the join tactic '{forced}' cannot run this join: {reason}",
                remedy=f"SET join = 'auto', or one of: {', '.join(possible)}",
            )
        keys_of = forced
    else:
        keys_of = next(name for name in TACTICS if reasons[name] is None)
    refused = [(name, reason) for name, reason in reasons.items() if reason is not None and name != keys_of]
    for name in TACTICS[TACTICS.index(keys_of) + 1 :]:
        if reasons[name] is None:
            refused.append((name, f"{keys_of} does it with less work" if forced == "auto" else "not asked for"))
    pairs = ", and a list node per open pair" if left.open_ends or right.open_ends else ""
    costs = {
        "ring_hash": "O(1 + matches) a row",
        "lazy_hash": "O(1 + matches) a row, O(log n) to expire",
        "nested_loop": "O(rows alive on the other side) a row",
    }
    return Tactic(keys_of, f"the rows alive of both sides{pairs}", costs[keys_of], tuple(refused))


def partitioning(keys: JoinKeys, tactic: str) -> tuple[Partitioning, Partitioning]:
    if tactic == "nested_loop" or not keys.left:
        return SINGLE, SINGLE
    return Partitioning("keys", keys.left), Partitioning("keys", keys.right)


def reordered(join: Join, order: list[int]) -> tuple[Join, list[int]]:
    """The join with its inputs in another order, and for each old column its new position."""
    bounds = _bounds(join.relations)
    positions = [0] * bounds[-1]
    width = 0
    for i in order:
        for column in range(bounds[i], bounds[i + 1]):
            positions[column] = width
            width += 1
    predicate = join.predicate
    if predicate is not None:
        predicate = remap(predicate, dict(enumerate(positions)))
    return Join(tuple(join.relations[i] for i in order), predicate), positions


def _equality(part: Expression, left_width: int) -> tuple[Expression, Expression] | None:
    if not isinstance(part, Call) or part.function != "=":
        return None
    first, second = part.arguments
    for a, b in ((first, second), (second, first)):
        used_a, used_b = columns_of(a), columns_of(b)
        if used_a and used_b and max(used_a) < left_width <= min(used_b):
            return a, remap(b, {column: column - left_width for column in used_b})
    return None


def _bounds(relations: tuple[Relation, ...]) -> list[int]:
    bounds = [0]
    for relation in relations:
        bounds.append(bounds[-1] + len(relation.schema))
    return bounds


def _input_of(column: int, bounds: list[int]) -> int:
    return next(i for i in range(len(bounds) - 1) if bounds[i] <= column < bounds[i + 1])
