"""Joins: the order of the inputs, the keys of each pair, and the tactic."""

from __future__ import annotations

from typing import Final

from transom.core.errors import UnsupportedError
from transom.kernels.all_tactics import tactics_of
from transom.kernels.join.tactic import JoinTactic
from transom.kernels.operator import JoinKeys, Operator
from transom.plan.algebra import Join, Node, Relation
from transom.plan.expression import Call, Expression, columns_of, conjunction, conjuncts, remap

TACTICS: Final = tuple(tactic.name for tactic in tactics_of(Join))


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


def choose(left: Operator, right: Operator, keys: JoinKeys, forced: str, node: type[Node] = Join) -> JoinTactic:
    """The first tactic of the node that says yes; a forced one that says no is an error with its reason."""
    tactics = {tactic.name: tactic for tactic in tactics_of(node) if issubclass(tactic, JoinTactic)}
    reasons = {name: tactic.unsupported(left, right, keys) for name, tactic in tactics.items()}
    possible = [name for name, reason in reasons.items() if reason is None]
    name = possible[0] if forced == "auto" else forced
    reason = reasons[name]
    if reason is not None:
        raise UnsupportedError(
            f"the join tactic '{forced}' cannot run this join: {reason}",
            remedy=f"SET join = 'auto', or one of: {', '.join(possible)}",
        )
    not_taken = [(other, reason) for other, reason in reasons.items() if reason is not None]
    names = list(tactics)
    for other in names[names.index(name) + 1 :]:
        if other in possible:
            not_taken.append((other, f"{name} does it with less work" if forced == "auto" else "not requested"))
    return tactics[name].chosen(left, right, tuple(not_taken))


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
