"""What the buckets of queries on one join remember, carried over to a plan in which other queries are there.

Queries come and go between two steps. Those that stay have the same operators in both plans, in fragments that are
spread alike (`Layout.open`); so every bucket that was there goes on in the same place with what it has, and nothing
moves from one to another. Operators are known by the name of their query and their number in it. Holders of a query
that has left stay taken, eight bytes each: they are numbers in a pool that all operators of a bucket share.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final, TypeVar

from transom.kernels.join.join import JoinState
from transom.kernels.shared_join.carry import carried
from transom.kernels.shared_join.counted_window import CountedWindowState
from transom.pipeline.admission import Ledger
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BucketState
from transom.pipeline.group import kept_sides
from transom.pipeline.layout import Layout
from transom.pipeline.part import PartState
from transom.plan.outlets import Outlet, Outlets
from transom.plan.sharing import SharedJoin
from transom.planner.operator import Operator

T = TypeVar("T")
Name = tuple[str, int]
Place = tuple[int, int]
"""A fragment and a bucket of it."""

_JOIN: Final = ""
"""Stands for the name of a query before what all of them share."""


class CarryOver:
    """From one layout to another; both are open, over equally many buckets."""

    def __init__(self, old: Layout, new: Layout) -> None:
        assert old.open and new.open and old.buckets == new.buckets
        self.old, self.new = old, new
        self._old_names, self._new_names = names_of(old.root), names_of(new.root)

    @cached_property
    def goes_on_as(self) -> dict[int, int]:
        """By the number of an old fragment, that of the new one with operators of the same queries."""
        before = {name: f.number for f in self.old.fragments for name in self._names(f.operators, self._old_names)}
        after = {name: f.number for f in self.new.fragments for name in self._names(f.operators, self._new_names)}
        pairs = {(before[name], after[name]) for name in before.keys() & after.keys()}
        found = dict(pairs)
        assert len(found) == len(set(found.values())) == len(pairs), "what was one fragment is two, or the reverse"
        assert all(self.old.buckets_of(one) == self.new.buckets_of(other) for one, other in pairs)
        return found

    @property
    def fresh(self) -> list[Place]:
        """Buckets that were not there before."""
        known = set(self.goes_on_as.values())
        numbers = [fragment.number for fragment in self.new.fragments if fragment.number not in known]
        return [(number, bucket) for number in numbers for bucket in range(self.new.buckets_of(number))]

    def carried(self, old: Bucket) -> tuple[Place, BucketState] | None:
        """Where a bucket goes on, and with what; None where its queries have left."""
        number = self.goes_on_as.get(old.fragment.number)
        if number is None:
            return None
        new = Bucket(self.new, number, old.bucket)
        assert new.source_of == old.source_of, "the same rows come to it as before"
        was, state = old.state, new.state
        self._carry_operators(old, new)
        ports = {(self._old_names[id(p.exchange.into)], p.exchange.place): name for name, p in old.ports.items()}
        for name, port in new.ports.items():
            known = ports.get((self._new_names[id(port.exchange.into)], port.exchange.place))
            if name in state.feeds and known is not None:
                state.feeds[name] = was.feeds[known]
        return (number, old.bucket), replace(
            state,
            doors=was.doors,
            reasons=was.reasons,
            slides=self._renumbered(was.slides),
            on_the_way=self._renumbered(was.on_the_way),
            rows_out=was.rows_out,
            steps=was.steps,
        )

    def begun(self, place: Place, like: Bucket) -> BucketState:
        """The memory of a fresh bucket: it knows how far time has come, as every old one does."""
        new, doors = Bucket(self.new, *place), like.state.doors
        known = {source: doors.inputs[name] for name, source in like.source_of.items()}
        inputs = {name: replace(known[source], waiting=[], ledger=Ledger()) for name, source in new.source_of.items()}
        return replace(new.state, doors=replace(doors, inputs=inputs, seen={}))

    def _renumbered(self, known: dict[str, T]) -> dict[str, T]:
        """What is known of operators by their numbers in the old plan, by those in the new one."""
        now = {self._new_names[id(operator)]: str(i) for i, operator in enumerate(self.new.operators)}
        names = [self._old_names[id(operator)] for operator in self.old.operators]
        return {now[name]: known[str(i)] for i, name in enumerate(names) if str(i) in known and name in now}

    def _carry_operators(self, old: Bucket, new: Bucket) -> None:
        was, part = old.state.part, new.state.part
        place = {self._old_names[id(operator)]: i for i, operator in enumerate(old.part.operators)}
        for i, operator in enumerate(new.part.operators):
            at = place.get(self._new_names[id(operator)])
            if at is not None:
                part.counters[i] = was.counters[at]
                self._carry_operator(part, i, operator, was, at, old.part.operators[at])
        part.holders = was.holders

    def _carry_operator(
        self, part: PartState, i: int, operator: Operator, was: PartState, at: int, before: Operator
    ) -> None:
        if isinstance(operator.node, SharedJoin):
            (join,) = was.operators[at]
            assert isinstance(join, JoinState)
            part.operators[i] = [carried(join, kept_sides(before), kept_sides(operator))]
        elif self._new_names[id(operator)][0] != _JOIN or _counts(was.operators[at]):
            part.operators[i] = was.operators[at]

    def _names(self, operators: tuple[Operator, ...], known: dict[int, Name]) -> list[Name]:
        """The end of all answers has nothing to remember, and may be anywhere."""
        return [known[id(operator)] for operator in operators if not isinstance(operator.node, Outlets)]


def names_of(root: Operator) -> dict[int, Name]:
    """By the id of an operator, what it is called in every plan that its query is in."""
    (join,) = [operator for operator in root.walk() if isinstance(operator.node, SharedJoin)]
    found = {id(operator): (_JOIN, i) for i, operator in enumerate(join.walk())}
    shared = set(found)
    for outlet in root.inputs:
        assert isinstance(outlet.node, Outlet)
        own = [operator for operator in outlet.walk() if id(operator) not in shared]
        found |= {id(operator): (outlet.node.name, i) for i, operator in enumerate(own)}
    return {**found, id(root): (_JOIN, -1)}


def _counts(memories: list[object]) -> bool:
    """Windows by time remember nothing that the widest of other windows could not do without."""
    return any(isinstance(memory, CountedWindowState) for memory in memories)
