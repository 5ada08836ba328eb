"""The graph of a join of many inputs: which keys connect them, what else must hold, and the routes of probes over it.

A class is a set of expressions, at most one on each input, that equalities and what follows from them hold equal. An
input is probed by the classes that it shares with one of the inputs before it; so there is a hash table for each set
of classes that it shares with another input, however the probes are ordered. Whatever is bound as well is compared.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.schema import BIGINT, BOOLEAN
from transom.kernels import scalar
from transom.kernels.columns import is_text, storage_dtype
from transom.kernels.formula import Formula, formula
from transom.kernels.scalar.rows import Compiled
from transom.plan.expression import Call, Cast, Expression, columns_of, conjunction, remap

Classes = tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """A predicate over some columns of some inputs: (input, its columns), in this order.

    `indexes` are the same columns among those of all inputs side by side, and `whole` is the predicate over these.
    """

    whole: Expression
    columns: tuple[tuple[int, tuple[int, ...]], ...]
    indexes: tuple[int, ...]

    @cached_property
    def predicate(self) -> Expression:
        """Over the columns that it reads alone."""
        return remap(self.whole, {at: n for n, at in enumerate(self.indexes)})

    @cached_property
    def parts(self) -> tuple[Compiled, ...]:
        """What Arrow is asked."""
        return scalar.parts(self.predicate)

    @cached_property
    def formula(self) -> Formula | None:
        """What a compiled loop is asked, where that can be."""
        return formula(self.whole)


@dataclass(frozen=True)
class Hop:
    """From a bound input to the next one: the hash table of either, and what can be checked then."""

    source: int
    source_index: int
    target: int
    target_index: int
    check: Check | None


@dataclass(frozen=True)
class Route:
    """The hops of a row of one input; `check` is what can be said of that row alone."""

    check: Check | None
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class JoinGraph:
    """`keys[i][c]` is the expression of class c over the columns of input i, None where it has none.

    Residual and last predicates are over the columns of all inputs side by side; the last one is for whole tuples
    alone, after everything else: it could fail on others. `growing[i]`: rows of input i end in the order in which they
    come.
    """

    types: tuple[tuple[pa.DataType, ...], ...]
    keys: tuple[tuple[Expression | None, ...], ...]
    residual: tuple[Expression, ...] = ()
    last: Expression | None = None
    growing: tuple[bool, ...] = ()
    routes: dict[tuple[int, ...], Route] = field(default_factory=dict, compare=False, repr=False)
    _read: dict[Expression, tuple[frozenset[int], frozenset[int]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Columns and inputs that predicates read: each order of the probes asks for them again and again."""

    def __post_init__(self) -> None:
        if not self.growing:
            object.__setattr__(self, "growing", (False,) * len(self.types))

    @property
    def count(self) -> int:
        return len(self.types)

    @cached_property
    def bounds(self) -> list[int]:
        bounds = [0]
        for types in self.types:
            bounds.append(bounds[-1] + len(types))
        return bounds

    @cached_property
    def classes(self) -> list[frozenset[int]]:
        """The classes that each input takes part in."""
        return [frozenset(c for c, key in enumerate(own) if key is not None) for own in self.keys]

    @cached_property
    def indexes(self) -> list[list[Classes]]:
        """Per input the sets of classes that it needs hash tables for; () where it may have to be probed without."""
        indexes: list[list[Classes]] = []
        for i in range(self.count):
            sets = {self.shared(i, j) for j in range(self.count) if j != i}
            if self._connected:
                sets.discard(())
            else:
                sets.add(())
            indexes.append(sorted(sets))
        return indexes

    def shared(self, i: int, j: int) -> Classes:
        return tuple(sorted(self.classes[i] & self.classes[j]))

    @cached_property
    def _connected(self) -> bool:
        reached, pending = {0}, [0]
        while pending:
            at = pending.pop()
            fresh = [j for j in range(self.count) if j not in reached and self.shared(at, j)]
            reached.update(fresh)
            pending += fresh
        return len(reached) == self.count

    def keyed(self, classes: Classes) -> bool:
        """Whether equal hashes do not yet mean equal keys."""
        if len(classes) != 1:
            return bool(classes)
        key = next(key for own in self.keys if (key := own[classes[0]]) is not None)
        return is_text(key.type) or pa.types.is_decimal(key.type)

    @cached_property
    def words(self) -> list[list[np.dtype[Any] | None]]:
        """Per input and hash table the type of its key where that is a single word, None where bytes are compared."""
        words: list[list[np.dtype[Any] | None]] = []
        for keys, indexes in zip(self.keys, self.indexes, strict=True):
            single = [None if not classes or self.keyed(classes) else keys[classes[0]] for classes in indexes]
            words.append([None if key is None else storage_dtype(key.type) for key in single])
        return words

    @cached_property
    def whole(self) -> Check | None:
        """What whole tuples are held to."""
        return None if self.last is None else self.check([self.last])

    def route(self, order: tuple[int, ...]) -> Route:
        """The probes of a row of input order[0], which visits the others in this order."""
        route = self.routes.get(order)
        if route is None:
            route = self.routes[order] = self._route(order)
            for hop in route.hops:  # no row should have to wait for that
                if hop.check is not None:
                    hop.check.formula  # noqa: B018
        return route

    def _route(self, order: tuple[int, ...]) -> Route:
        start, *others = order
        waiting = list(self.residual)
        alone = self.ready((start,), waiting)
        bound = [start]
        hops: list[Hop] = []
        for target in others:
            source = max(bound, key=lambda i: len(self.shared(i, target)))
            by = self.shared(source, target)
            parts = [
                self.equality(c, next(i for i in bound if c in self.classes[i]), target)
                for c in sorted(self.classes[target] - set(by))
                if any(c in self.classes[i] for i in bound)
            ]
            bound.append(target)
            ready = self.ready(bound, waiting)
            check = self.check([*parts, *ready]) if parts or ready else None
            hops.append(Hop(source, self.indexes[source].index(by), target, self.indexes[target].index(by), check))
        return Route(self.check(alone) if alone else None, tuple(hops))

    def check_of(self, inputs: Sequence[int], parts: Sequence[Sequence[int]]) -> Check | None:
        """What can be asked of tuples of these inputs, and could not of those parts of them."""
        predicates = [
            predicate
            for predicate in self.residual
            if self.inputs_of(predicate) <= set(inputs)
            and not any(self.inputs_of(predicate) <= set(part) for part in parts)
        ]
        return self.check(predicates) if predicates else None

    def inputs_of(self, expression: Expression) -> frozenset[int]:
        """The inputs whose columns an expression reads."""
        return self._read_by(expression)[1]

    def _read_by(self, expression: Expression) -> tuple[frozenset[int], frozenset[int]]:
        read = self._read.get(expression)
        if read is None:
            columns = columns_of(expression)
            inputs = frozenset(bisect_right(self.bounds, at) - 1 for at in columns)
            read = self._read[expression] = columns, inputs
        return read

    def ready(self, inputs: Iterable[int], waiting: list[Expression]) -> list[Expression]:
        """Takes out of `waiting` what these inputs are enough for."""
        there = frozenset(inputs)
        ready = [part for part in waiting if self.inputs_of(part) <= there]
        waiting[:] = [part for part in waiting if not self.inputs_of(part) <= there]
        return ready

    def equality(self, c: int, left: int, right: int) -> Expression:
        """That two inputs have the same key of class c, over the columns of all."""
        sides = []
        for i in (left, right):
            key = self.keys[i][c]
            assert key is not None
            sides.append(remap(key, {at: at + self.bounds[i] for at in columns_of(key)}))
        if sides[0].type != sides[1].type:  # integers of different width
            sides = [Cast(side, BIGINT) for side in sides]
        return Call("=", tuple(sides), BOOLEAN)

    def check(self, parts: Sequence[Expression]) -> Check:
        """What all these parts ask together, over the columns that they read."""
        whole = conjunction(tuple(parts))
        assert whole is not None
        used = sorted(frozenset().union(*(self._read_by(part)[0] for part in parts)))
        columns = []
        for i in range(self.count):
            own_columns = tuple(at - self.bounds[i] for at in used if self.bounds[i] <= at < self.bounds[i + 1])
            if own_columns:
                columns.append((i, own_columns))
        return Check(whole, tuple(columns), tuple(used))
