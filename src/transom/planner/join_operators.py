"""A tree of joins of two as operators, and the columns back in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from transom.kernels.joinagg.shape import Member, Shape, equal
from transom.kernels.operator import ANY, Operator, Tactic, column
from transom.kernels.select.tactic import ProjectTactic
from transom.plan.algebra import Join, Project, a_relation
from transom.plan.expression import Expression, columns_of, conjuncts, remap
from transom.planner import join as joins
from transom.planner.join_tree import Tree


@dataclass
class JoinOperators:
    """`forced` is the tactic of joins of two, `once` makes equal operators the same one, and `told` is said of the root
    of the tree: why the join is one."""

    join: Join
    inputs: tuple[Operator, ...]
    forced: str
    once: Callable[[Operator], Operator]
    told: Callable[[Tactic], Tactic]
    waiting: list[Expression] = field(default_factory=list)

    def of(self, tree: Tree) -> Operator:
        shape = Shape(self.join.relations, conjuncts(self.join.predicate), (), ())
        self.waiting = list(shape.predicates)
        side = self._side(tree, shape)
        root, places = side.operator, side.places
        back = sorted(range(len(places)), key=places.__getitem__)
        if back == list(range(len(back))):
            return root
        columns = tuple(column(root.schema, i) for i in back)
        project = Project(a_relation(root.node), columns, tuple(root.schema[i].name for i in back))
        return Operator(project, ProjectTactic("nothing"), (root,), None, (ANY,), open_ends=root.open_ends)

    def _side(self, tree: Tree, shape: Shape) -> _Side:
        if isinstance(tree, int):
            places = list(range(shape.bounds[tree], shape.bounds[tree + 1]))
            own = [[member for member in known if member[0] == tree] for known in shape.classes]
            return _Side(self.inputs[tree], places, own)
        left, right = (self._side(side, shape) for side in tree)
        places = [*left.places, *right.places]
        at = {place: i for i, place in enumerate(places)}
        ready = [part for part in self.waiting if all(place in at for place in columns_of(part))]
        now = set(ready)
        self.waiting = [part for part in self.waiting if part not in now]
        ready, leading = _enough(shape, ready, left, right)
        keys = joins.split_keys(tuple(remap(part, at) for part in ready), len(left.places))
        chosen = joins.choose(left.operator, right.operator, keys, self.forced)
        tactic: Tactic = chosen
        if len(places) == shape.bounds[-1]:
            tactic = self.told(tactic)
        below = left.operator, right.operator
        made = Operator(
            Join((a_relation(below[0].node), a_relation(below[1].node)), None),
            tactic,
            below,
            keys,
            chosen.needs(keys),
            open_ends=any(each.open_ends for each in below),
        )
        return _Side(self.once(made), places, leading)


@dataclass(frozen=True)
class _Side:
    """A side of a join: which column of the whole join each of its columns is, and for each class of keys those that
    its last join is on. By these its rows are spread, so the next join had better be on them, too."""

    operator: Operator
    places: list[int]
    keys: list[list[Member]]


def _enough(
    shape: Shape, ready: list[Expression], left: _Side, right: _Side
) -> tuple[list[Expression], list[list[Member]]]:
    """One equality between the sides for each class of keys on both, even if nobody wrote it; and all other predicates.

    Within a side the keys of a class are equal already, unless some input has several of them.
    """
    class_of = {member: number for number, known in enumerate(shape.classes) for member in known}
    across: list[list[Expression]] = [[] for _ in shape.classes]
    places = set(left.places), set(right.places)
    for part in ready:
        pair = shape.equality(part)
        if pair is not None and all(columns_of(part) & side for side in places):
            across[class_of[pair[0]]].append(part)
    replaced: set[Expression] = set()
    wanted: list[Expression] = []
    leading: list[list[Member]] = []
    for known, parts, ones, others in zip(shape.classes, across, left.keys, right.keys, strict=True):
        leading.append(ones or others)
        if not ones or not others:
            continue
        keys = {*ones, *others}
        fitting = [part for part in parts if all(member in keys for member in _pair(shape, part))]
        if len({i for i, _ in known}) < len(known):
            fitting = parts  # some input has several keys of the class, and every equality says something
        if not fitting:
            fitting = [equal(*(_placed(shape, members[0]) for members in (ones, others)))]
        replaced |= set(parts)
        wanted += fitting if fitting is parts else fitting[:1]
        leading[-1] = [member for part in fitting[:1] for member in _pair(shape, part)]
    found = [part for part in ready if part not in replaced] + wanted
    order = {id(part): i for i, part in enumerate(ready)}
    return sorted(found, key=lambda part: order.get(id(part), len(order))), leading


def _pair(shape: Shape, equality: Expression) -> tuple[Member, Member]:
    pair = shape.equality(equality)
    assert pair is not None
    return pair


def _placed(shape: Shape, member: Member) -> Expression:
    """Over the columns of the whole join."""
    i, key = member
    return remap(key, {at: at + shape.bounds[i] for at in columns_of(key)})
