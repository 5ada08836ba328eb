"""A tree of joins of two as operators, and the columns back in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from transom.kernels.joinagg.shape import KeyMember, Shape, equal
from transom.kernels.multiway.join_tree import Tree
from transom.kernels.operator import ANY, Operator, Tactic, column
from transom.kernels.select.tactic import ProjectTactic
from transom.plan.algebra import Join, Project, a_relation
from transom.plan.expression import Expression, columns_of, conjuncts, remap
from transom.planner import join as joins


@dataclass
class JoinOperators:
    """`forced` is the tactic of joins of two, `once` makes equal operators the same one, and `described` is said of the
    root of the tree: why the join is one."""

    join: Join
    inputs: tuple[Operator, ...]
    forced: str
    once: Callable[[Operator], Operator]
    described: Callable[[Tactic], Tactic]
    waiting: list[Expression] = field(default_factory=list)

    def of(self, tree: Tree) -> Operator:
        shape = Shape(self.join.relations, conjuncts(self.join.predicate), (), ())
        self.waiting = list(shape.predicates)
        side = self._side(tree, shape)
        root, indexes = side.operator, side.indexes
        back = sorted(range(len(indexes)), key=indexes.__getitem__)
        if back == list(range(len(back))):
            return root
        columns = tuple(column(root.schema, i) for i in back)
        project = Project(a_relation(root.node), columns, tuple(root.schema[i].name for i in back))
        return Operator(project, ProjectTactic("nothing"), (root,), None, (ANY,), open_ends=root.open_ends)

    def _side(self, tree: Tree, shape: Shape) -> _OperatorSide:
        if isinstance(tree, int):
            indexes = list(range(shape.bounds[tree], shape.bounds[tree + 1]))
            own = [[member for member in members_of_key if member[0] == tree] for members_of_key in shape.classes]
            return _OperatorSide(self.inputs[tree], indexes, own)
        left, right = (self._side(side, shape) for side in tree)
        indexes = [*left.indexes, *right.indexes]
        at = {index: i for i, index in enumerate(indexes)}
        ready = [part for part in self.waiting if all(index in at for index in columns_of(part))]
        now = set(ready)
        self.waiting = [part for part in self.waiting if part not in now]
        ready, leading = _enough(shape, ready, left, right)
        keys = joins.split_keys(tuple(remap(part, at) for part in ready), len(left.indexes))
        chosen = joins.choose(left.operator, right.operator, keys, self.forced)
        tactic: Tactic = chosen
        if len(indexes) == shape.bounds[-1]:
            tactic = self.described(tactic)
        below = left.operator, right.operator
        made = Operator(
            Join((a_relation(below[0].node), a_relation(below[1].node)), None),
            tactic,
            below,
            keys,
            chosen.needs(keys),
            open_ends=any(each.open_ends for each in below),
        )
        return _OperatorSide(self.once(made), indexes, leading)


@dataclass(frozen=True)
class _OperatorSide:
    """A side of a join: which column of the whole join each of its columns is, and for each class of keys those that
    its last join is on. By these its rows are spread, so the next join had better be on them, too."""

    operator: Operator
    indexes: list[int]
    keys: list[list[KeyMember]]


def _enough(
    shape: Shape, ready: list[Expression], left: _OperatorSide, right: _OperatorSide
) -> tuple[list[Expression], list[list[KeyMember]]]:
    """One equality between the sides for each class of keys on both, even if nobody wrote it; and all other predicates.

    Within a side the keys of a class are equal already, unless some input has several of them.
    """
    class_of = {member: number for number, key_members in enumerate(shape.classes) for member in key_members}
    across: list[list[Expression]] = [[] for _ in shape.classes]
    indexes = set(left.indexes), set(right.indexes)
    for part in ready:
        pair = shape.equality(part)
        if pair is not None and all(columns_of(part) & side for side in indexes):
            across[class_of[pair[0]]].append(part)
    replaced: set[Expression] = set()
    wanted: list[Expression] = []
    leading: list[list[KeyMember]] = []
    for key_members, parts, ones, others in zip(shape.classes, across, left.keys, right.keys, strict=True):
        leading.append(ones or others)
        if not ones or not others:
            continue
        keys = {*ones, *others}
        fitting = [part for part in parts if all(member in keys for member in _pair(shape, part))]
        if len({i for i, _ in key_members}) < len(key_members):
            fitting = parts  # some input has several keys of the class, and every equality says something
        if not fitting:
            fitting = [equal(*(_placed(shape, members[0]) for members in (ones, others)))]
        replaced |= set(parts)
        wanted += fitting if fitting is parts else fitting[:1]
        leading[-1] = [member for part in fitting[:1] for member in _pair(shape, part)]
    needed = [part for part in ready if part not in replaced] + wanted
    order = {id(part): i for i, part in enumerate(ready)}
    return sorted(needed, key=lambda part: order.get(id(part), len(order))), leading


def _pair(shape: Shape, equality: Expression) -> tuple[KeyMember, KeyMember]:
    pair = shape.equality(equality)
    assert pair is not None
    return pair


def _placed(shape: Shape, member: KeyMember) -> Expression:
    """Over the columns of the whole join."""
    i, key = member
    return remap(key, {at: at + shape.bounds[i] for at in columns_of(key)})
