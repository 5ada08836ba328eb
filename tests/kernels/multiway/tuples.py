"""Join graphs of many shapes, random relations for them, and their join by definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from tests.kernels.stepping import Life, Relation
from transom.core.schema import BOOLEAN
from transom.core.time import FOREVER
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.mjoin import MJoinKernel
from transom.plan.expression import Call, ColumnRef, Expression
from transom.runtimes.reference.history import canonical, grouped

# Every input has the same columns.
K, M, T, F, ID = range(5)
TYPES = (pa.int64(), pa.int8(), pa.string(), pa.float64(), pa.int64())
VALUES: tuple[tuple[Any, ...], ...] = (
    (0, 0, 1, None),
    (0, 1, 1, None),
    ("", "a", "a", "a\0", None),
    (0.0, -0.0, float("nan"), 1.5),
)
LAST = 60


@dataclass(frozen=True)
class Shape:
    """Classes of equal columns (input to column), and pairs of columns (input, column) of which the first is less."""

    inputs: int
    classes: tuple[dict[int, int], ...]
    less: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    same: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()


SHAPES = {
    "two": Shape(2, ({0: K, 1: K},)),
    "two texts": Shape(2, ({0: T, 1: T},), less=(((0, ID), (1, ID)),)),
    "one key": Shape(3, (dict.fromkeys(range(3), K),)),
    "one key of five": Shape(5, (dict.fromkeys(range(5), K),)),
    "one text": Shape(4, (dict.fromkeys(range(4), T),)),
    "one float": Shape(3, (dict.fromkeys(range(3), F),)),
    "composite": Shape(3, (dict.fromkeys(range(3), K), dict.fromkeys(range(3), T))),
    "some share more": Shape(4, (dict.fromkeys(range(4), K), {0: T, 1: T}, {1: M, 3: M})),
    "chain": Shape(5, ({0: K, 1: M}, {1: K, 2: M}, {2: K, 3: M}, {3: T, 4: T})),
    "star": Shape(4, ({0: K, 1: K}, {0: T, 2: T}, {0: M, 3: K})),
    "cycle": Shape(3, ({0: K, 1: K}, {1: M, 2: M}, {2: T, 0: T})),
    "cycle of four": Shape(4, ({0: K, 1: M}, {1: K, 2: M}, {2: K, 3: M}, {3: K, 0: M})),
    "theta": Shape(3, (), less=(((0, ID), (1, ID)), ((1, K), (2, K)))),
    "cross": Shape(3, ()),
    "two islands": Shape(4, ({0: K, 1: K}, {2: T, 3: T}), less=(((1, ID), (3, ID)),)),
    "a key and a predicate": Shape(3, (dict.fromkeys(range(3), K),), less=(((2, ID), (0, ID)),)),
    "one input alone": Shape(3, (dict.fromkeys(range(3), K),), same=(((1, K), (1, M)),)),
}


def kernel(shape: Shape, last: bool = False, growing: tuple[bool, ...] = ()) -> MJoinKernel:
    """The kernel of a shape; `last`: predicates are asked of whole tuples alone; `growing`: which inputs are rings."""
    width = len(TYPES)

    def ref(at: tuple[int, int]) -> Expression:
        return ColumnRef(at[0] * width + at[1], TYPES[at[1]], "")

    keys = tuple(
        tuple(ColumnRef(own[i], TYPES[own[i]], "") if i in own else None for own in shape.classes)
        for i in range(shape.inputs)
    )
    parts = [Call("<", (ref(a), ref(b)), BOOLEAN) for a, b in shape.less]
    parts += [Call("=", (ref(a), ref(b)), BOOLEAN) for a, b in shape.same]
    whole = None
    if last and parts:
        whole, parts = parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN), []
    graph = JoinGraph((TYPES,) * shape.inputs, keys, tuple(parts), whole, growing)
    return MJoinKernel(graph, pa.schema([(f"c{n}", type_) for n, type_ in enumerate(TYPES * shape.inputs)]))


def relation(random: Random, most: int, nulls: bool = True, growing: bool = False) -> Relation:
    """Rows with lifetimes in [0, 50), or open to the end, or forever; `growing`: their ends come in their order."""
    begins = sorted(random.randint(0, 40) for _ in range(random.randint(0, most)))
    ends = [ta + random.choice([1, 5, 9, 15, FOREVER, 2 * FOREVER]) for ta in begins]
    if growing:
        ends = [max(ta + 1, te) for ta, te in zip(begins, sorted(ends), strict=True)]
    lives: list[Life] = []
    for i, (ta, te) in enumerate(zip(begins, ends, strict=True)):
        values = tuple(random.choice([v for v in known if nulls or v is not None]) for known in VALUES)
        lives.append(((*values, i), ta, None if te >= 2 * FOREVER else min(te, FOREVER)))
    return Relation(lives, TYPES, frozenset(i for i in range(most) if random.random() < 0.5))


def cuts(random: Random) -> list[int]:
    return [*sorted(random.sample(range(1, LAST), random.randint(0, 10))), LAST]


def by_definition(shape: Shape, inputs: Sequence[Sequence[Life]]) -> list[Life]:
    """Every tuple that satisfies the predicates, alive while all its members are; open while its end is."""
    partial: list[list[Life]] = [[]]
    for own in inputs:
        partial = [[*members, life] for members in partial for life in own if _meet([*members, life])]
    found: list[Life] = []
    for members in partial:
        rows = [canonical(values) for values, _, _ in members]
        if not _satisfies(shape, [grouped(row) for row in rows]):
            continue
        begin = max(ta for _, ta, _ in members)
        ends = [te for _, _, te in members if te is not None]
        end = min(ends, default=None)
        is_open = len(ends) < len(members) and (end is None or end >= FOREVER)
        found.append((tuple(value for row in rows for value in row), begin, None if is_open else end))
    return sorted(found, key=repr)


def _meet(members: list[Life]) -> bool:
    return max(ta for _, ta, _ in members) < min(2 * FOREVER if te is None else te for _, _, te in members)


def _satisfies(shape: Shape, rows: list[Any]) -> bool:
    for own in shape.classes:  # in tuples, as NaN equals NaN there
        values = [rows[i][column] for i, column in own.items()]
        if None in values or any((value,) != (values[0],) for value in values):
            return False
    for (i, a), (j, b) in shape.less:
        if rows[i][a] is None or rows[j][b] is None or not rows[i][a] < rows[j][b]:
            return False
    return all(rows[i][a] is not None and rows[i][a] == rows[j][b] for (i, a), (j, b) in shape.same)
