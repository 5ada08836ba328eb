"""The plan cut into fragments: pieces that can run in many partitions at once, each partition on its own rows.

A **partition** is one of several places that run the same fragment. Rows are spread over the partitions of a fragment
by its partitioning: `any` (wherever they are), `by (keys)` (rows that agree on the keys go to the same partition), or
`single` (there is one partition). A **fragment** is a largest set of operators that can run so without a row moving
from partition to partition; where rows have to move there is an **exchange**: from a source, or from another fragment.
Streams and static tables are sources and belong to no fragment. A changing table belongs to one: all changes of a row
have to meet. Filters and projections of streams before a fragment are on the pushed-down prefix of an exchange.

A key is followed through the plan by what it is computed from, not by its name: a projection may rename it, a join on
it makes both sides carry it, a grouping keeps it as a column, and what does not keep it ends the fragment. A fragment
is spread by all the keys that suit every operator in it: a join on (a, b) under GROUP BY a is spread by a. Whoever
spreads rows hashes integers by their value, whatever their width, and takes equal for equal: 0.0 and -0.0, NULL and
NULL.

What needs a single partition (a row-count window, a global aggregate) is kept as small as possible: it is fed by a
fragment that runs in many, and what has a key above it is spread again. No fragment feeds itself by way of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from transom.kernels.operator import ANY, SINGLE, Operator, Partitioning, column
from transom.plan.algebra import StreamFilter, StreamProject, StreamScan, TableScan
from transom.plan.expression import Expression
from transom.plan.same_key import same_key
from transom.planner.key_path import keys_below


@dataclass(frozen=True)
class Exchange:
    """Rows that move to input `index` of an operator, from a source (by name) or from a fragment (by number).

    `prefix` are the filters and projections of a stream that its rows pass last before they come in. Rows of one
    instant have an order, which is known where the way begins and lost behind it; so the rows travel as they are there,
    and pass the way where they arrive. The partitioning is over the columns of what comes in.
    """

    into: Operator
    index: int
    partitioning: Partitioning
    source: str | None = None
    fragment: int | None = None
    prefix: tuple[Operator, ...] = ()

    @property
    def sender(self) -> Operator:
        """The operator of another fragment whose rows travel here."""
        if self.index == ANSWER:
            return self.into
        return self.prefix[0].inputs[0] if self.prefix else self.into.inputs[self.index]


@dataclass(frozen=True)
class Fragment:
    """Operators that run together, children before parents. The partitioning is that of the first exchange."""

    number: int
    partitioning: Partitioning
    operators: tuple[Operator, ...]
    exchanges: tuple[Exchange, ...]


ANSWER: Final = -1
"""The place of an exchange into a fragment that has no operators and emits the answer."""


def fragments(root: Operator, meeting: tuple[int, ...] | None = None, whole: bool = False) -> list[Fragment]:
    """The fragments of a plan, each after those that feed it; numbers begin at 1. A `whole` plan is a single one.

    A shared join is spread by all its keys, whatever is above it: so nothing has to move when something else comes to
    be above it.

    Whoever emits the changes of an answer wants rows of it in one partition that agree on the columns `meeting`: what
    leaves in one and enters in another at once is no change. If the last fragment does not see to that, one without
    operators follows it.
    """
    cut = _Cut(root, whole)
    cut_fragments = cut.fragments()
    if meeting is None or cut.rows_meet(root, meeting):
        return cut_fragments
    (last,) = [fragment for fragment in cut_fragments if any(operator is root for operator in fragment.operators)]
    spread = Partitioning("keys", tuple(column(root.schema, i) for i in meeting)) if meeting else SINGLE
    answer = Exchange(root, ANSWER, spread, fragment=last.number)
    return [*cut_fragments, Fragment(len(cut_fragments) + 1, spread, (), (answer,))]


def kept_together(root: Operator) -> str | None:
    """Why a plan runs in one partition of a process, however many are there; None where it can be spread."""
    for operator in root.walk():
        if operator.tactic.in_one_partition is not None:
            return operator.tactic.in_one_partition
    if all(fragment.partitioning.kind == "single" for fragment in fragments(root)):
        return "all of its rows have to meet"
    return None


# Where a key has been followed to: the output of an operator in the fragment (its id), or what is brought to an input.
_Point = int | tuple[int, int]
_Slot = dict[_Point, Expression]


@dataclass(eq=False)
class _Part:
    """A fragment that is growing. `slots` are the keys that suit all of it; without any it may be spread anyhow."""

    operators: list[Operator] = field(default_factory=list)
    slots: list[_Slot] = field(default_factory=list)
    single: bool = False

    @property
    def free(self) -> bool:
        return not self.slots and not self.single


class _Cut:
    def __init__(self, root: Operator, whole: bool) -> None:
        self.root = root
        self._whole = whole
        self.part_of: dict[int, _Part] = {}
        self._followed: dict[tuple[int, Expression, tuple[int, ...]], _Slot | None] = {}
        for operator in root.walk():
            if operator is root or not self._before_any_fragment(operator):
                self._index(operator)
        self.order = [operator for operator in root.walk() if id(operator) in self.part_of]

    # --- growing -----------------------------------------------------------------------------------------------------

    def _index(self, operator: Operator) -> None:
        below = self._parts_below(operator)
        kinds = {need.kind for need in operator.needs}
        if self._whole:
            self._merge(operator, below, [], single=True)
        elif "single" in kinds:
            joining = [part for part in below if part.single]
            self._merge(operator, joining if self._may_merge(joining, below) else [], [], single=True)
        elif "keys" in kinds:
            self._assign_keyed(operator, below)
        else:
            self._assign_unkeyed(operator, below)

    def _assign_keyed(self, operator: Operator, below: list[_Part]) -> None:
        """With as many of its inputs as agree with it on a key."""
        count = len(operator.needs[0].keys)
        for joining in _subsets([part for part in below if not part.single]):
            if self._may_merge(joining, below):
                slots = [slot for i in range(count) for slot in self._slots(operator, i, joining)]
                for part in joining:
                    slots = _as_before(part, slots)
                if slots:
                    self._merge(operator, joining, slots)
                    return

    def _assign_unkeyed(self, operator: Operator, below: list[_Part]) -> None:
        """With its inputs where they are all spread alike; otherwise with those that may be spread as you like."""
        if self._may_merge(below, below):
            if len(below) == 1 or (below and all(part.single for part in below)):
                self._merge(operator, below, below[0].slots, below[0].single)
                return
            if not any(part.single for part in below) and not all(part.free for part in below):
                schema = operator.schema
                followed = [self._follow(operator, column(schema, i), below) for i in range(len(schema))]
                slots = [slot for key in followed if key is not None for slot in _agreeing(key, below)]
                if slots:
                    self._merge(operator, below, slots)
                    return
        free = [part for part in below if part.free]
        self._merge(operator, free if self._may_merge(free, below) else [], [])

    def _merge(self, operator: Operator, parts: Iterable[_Part], slots: list[_Slot], single: bool = False) -> None:
        merged = _Part([*(o for part in parts for o in part.operators), operator], slots, single)
        for member in merged.operators:
            self.part_of[id(member)] = merged
        self._followed.clear()

    def _may_merge(self, joining: list[_Part], below: list[_Part]) -> bool:
        """Not when one would then feed itself, by way of another fragment."""
        outside = [part for part in below if part not in joining]
        reached = [other for part in outside for other in (part, *self._feeding(part))]
        reached += [other for part in joining for other in self._feeding(part)]
        return not any(part in reached for part in joining)

    def _feeding(self, part: _Part) -> list[_Part]:
        """All fragments that rows of this one come from."""
        feeding: list[_Part] = []
        pending = [part]
        while pending:
            at = pending.pop()
            for operator in at.operators:
                for other in self._parts_below(operator):
                    if other is not at and other not in feeding:
                        feeding.append(other)
                        pending.append(other)
        return feeding

    def _parts_below(self, operator: Operator) -> list[_Part]:
        below = (self.part_of.get(id(child)) for child in operator.inputs)
        return list(dict.fromkeys(part for part in below if part is not None))

    def _before_any_fragment(self, operator: Operator) -> bool:
        """Sources, and what passes their rows on as they are."""
        if _passes_on(operator):
            return id(operator.inputs[0]) not in self.part_of
        return not operator.inputs and operator.needs == (ANY,)

    # --- keys --------------------------------------------------------------------------------------------------------

    def _slots(self, operator: Operator, i: int, joining: list[_Part]) -> list[_Slot]:
        """The i-th key of the operator, followed through the fragments that are to join, if it suits them."""
        wanted = tuple(need.keys[i] for need in operator.needs)
        followed = self._follow_inputs(operator, wanted, joining)
        return [] if followed is None else _agreeing(followed, joining)

    def _follow(self, operator: Operator, key: Expression, joining: list[_Part]) -> _Slot | None:
        """Once for each key of an operator, however many read it, until a fragment grows."""
        lookup = id(operator), key, tuple(map(id, joining))
        if lookup not in self._followed:
            wanted = keys_below(operator, key)
            below = None if wanted is None else self._follow_inputs(operator, wanted, joining)
            self._followed[lookup] = None if below is None else _together(below, {id(operator): key})
        return self._followed[lookup]

    def _follow_inputs(self, operator: Operator, wanted: tuple[Expression, ...], joining: list[_Part]) -> _Slot | None:
        shared: _Slot | None = {}
        for index, key in enumerate(wanted):
            child = operator.inputs[index] if operator.inputs else None
            if child is not None and self.part_of.get(id(child)) in joining:
                below = self._follow(child, key, joining)
            else:
                below = {(id(operator), index): key}
            shared = None if shared is None or below is None else _together(shared, below)
        return shared

    # --- the result --------------------------------------------------------------------------------------------------

    def fragments(self) -> list[Fragment]:
        parts: list[_Part] = []
        for operator in self.order:
            self._list(self.part_of[id(operator)], parts)
        return [self._fragment(part, parts) for part in parts]

    def rows_meet(self, root: Operator, meeting: tuple[int, ...]) -> bool:
        """Whether rows of the answer that agree on these columns are in one partition: it is spread by no others."""
        part = self.part_of[id(root)]
        if part.single or part.free:
            return part.single
        schema = root.schema
        columns = [self._follow(root, column(schema, i), [part]) for i in meeting]
        answer = [slot for slot in columns if slot is not None]
        return all(
            any(slot.keys() & kept.keys() and _together(slot, kept) is not None for slot in answer)
            for kept in part.slots
        )

    def _list(self, part: _Part, parts: list[_Part]) -> None:
        """After all that feed it."""
        if part in parts:
            return
        for other in self._feeding(part):
            self._list(other, parts)
        parts.append(part)

    def _fragment(self, part: _Part, parts: list[_Part]) -> Fragment:
        operators = self._wanted(part)
        exchanges: list[Exchange] = []
        for operator in operators:
            if not operator.inputs:
                assert isinstance(operator.node, StreamScan | TableScan)
                exchanges.append(Exchange(operator, 0, _spread(part, (id(operator), 0)), source=operator.node.name))
            for index, child in enumerate(operator.inputs):
                if self.part_of.get(id(child)) is part:
                    continue
                spread = _spread(part, (id(operator), index))
                below, prefix = _prefix(child)
                if id(below) in self.part_of:
                    number = parts.index(self.part_of[id(below)]) + 1
                    exchanges.append(Exchange(operator, index, spread, fragment=number, prefix=prefix))
                else:
                    assert isinstance(below.node, StreamScan | TableScan)
                    exchanges.append(Exchange(operator, index, spread, source=below.node.name, prefix=prefix))
        return Fragment(parts.index(part) + 1, exchanges[0].partitioning, tuple(operators), tuple(exchanges))

    def _wanted(self, part: _Part) -> list[Operator]:
        """The operators of a fragment, without those that are read in others alone: they are on the way there."""
        wanted: list[Operator] = []
        read: set[int] = {id(self.root)}
        for operator in reversed(self.order):
            if self.part_of[id(operator)] is part and (id(operator) in read or not _passes_on(operator)):
                wanted.append(operator)
                read |= {id(child) for child in operator.inputs}
        return wanted[::-1]


def _as_before(part: _Part, slots: list[_Slot]) -> list[_Slot]:
    """Those of the slots that leave a shared join in a fragment spread as it was; none where it would not be."""
    if not any(operator.tactic.stays_spread for operator in part.operators):
        return slots
    kept: list[_Slot] = []
    for held in part.slots:
        same = (slot for slot in slots if all(point in slot and same_key(slot[point], held[point]) for point in held))
        kept += [slot for slot in [next(same, None)] if slot is not None]
    return kept if len(kept) == len(part.slots) else []


def _passes_on(operator: Operator) -> bool:
    return isinstance(operator.node, StreamFilter | StreamProject)


def _prefix(child: Operator) -> tuple[Operator, tuple[Operator, ...]]:
    """Where the rows of an input come from, and what they pass on the way."""
    prefix: list[Operator] = []
    while _passes_on(child):
        prefix.append(child)
        (child,) = child.inputs
    return child, tuple(reversed(prefix))


def _subsets(parts: list[_Part]) -> Iterable[list[_Part]]:
    """All choices from the parts, the largest first."""
    for size in range(len(parts), -1, -1):
        yield from (list(chosen) for chosen in combinations(parts, size))


def _spread(part: _Part, point: tuple[int, int]) -> Partitioning:
    if part.single:
        return SINGLE
    keys = tuple(slot[point] for slot in part.slots if point in slot)
    return Partitioning("keys", keys) if keys else ANY


def _together(left: _Slot, right: _Slot) -> _Slot | None:
    """Both, unless they want to spread the same rows in different ways."""
    if any(not same_key(left[point], key) for point, key in right.items() if point in left):
        return None
    return {**right, **left}


def _agreeing(followed: _Slot, joining: list[_Part]) -> list[_Slot]:
    """The key together with each slot of the fragments that is the same key."""
    agreeing = [followed]
    for part in joining:
        if not part.free:
            pairs = [(a, b) for a in agreeing for b in part.slots if a.keys() & b.keys()]
            agreeing = [slot for a, b in pairs if (slot := _together(a, b)) is not None]
    return agreeing
