"""Random relations to join and to aggregate, and what the aggregates are by definition at an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kernels.aggregate.definition import CUTS, LAST, POOLS, TYPES, WIDE, aggregate
from tests.kernels.join.pairs import KINDS
from tests.kernels.stepping import Life, Relation, Stepped, Values, snapshot
from transom.core.schema import BOOLEAN
from transom.core.time import FOREVER
from transom.kernels.aggregate.aggregate import AggregateSpec
from transom.kernels.joinagg.spec import JoinAggregateSpec, JoinCall
from transom.plan.expression import Call, ColumnRef, Expression
from transom.runtimes.reference.history import grouped as one_of_equals
from transom.state.codec import saved_bytes

GROUP, WHOLE, FLOATING, WIDE_NUMBER, TEXT = range(len(TYPES))  # behind the key; no more columns than a call can name
SUMS = (
    ("count", None, None), ("count", 1, TEXT), ("sum", 0, WHOLE), ("sum", 1, WHOLE), ("avg", 1, WHOLE),
    ("sum", 0, FLOATING), ("avg", 1, FLOATING), ("sum", 1, WIDE_NUMBER),
)  # fmt: skip
EXTREMES = (
    ("min", 0, FLOATING), ("max", 1, FLOATING), ("max", 0, WIDE_NUMBER), ("min", 1, TEXT), ("max", 0, TEXT),
)  # fmt: skip

Named = Sequence[tuple[Any, int | None, int | None]]  # calls: function, input, and column behind the key


def result_type(function: str, column: int | None) -> pa.DataType:
    if function == "count" or column is None:
        return pa.int64()
    if function == "avg":
        return pa.float64()
    return WIDE if function == "sum" and column == WHOLE else TYPES[column]


def spec_of(
    kind: str | None, inputs: int, grouped: Iterable[int], named: Named, residual: bool = False
) -> JoinAggregateSpec:
    """A join on the keys of a kind (None: on nothing), grouped by the group columns of some inputs."""
    keys = [type_ for type_, _ in KINDS[kind]] if kind else []
    types = (*keys, *TYPES)
    width = len(keys)
    group = tuple((i, width + GROUP) for i in grouped)
    calls = tuple(JoinCall(f, i, None if c is None else width + c) for f, i, c in named)
    fields = [(f"g{k}", TYPES[GROUP]) for k in range(len(group))]
    fields += [(f"c{k}", result_type(f, c)) for k, (f, _, c) in enumerate(named)]
    condition: Expression | None = None
    if residual:
        sides = [ColumnRef(i * len(types) + width + WHOLE, TYPES[WHOLE], "") for i in (0, inputs - 1)]
        condition = Call("<=", tuple(sides), BOOLEAN)
    return JoinAggregateSpec(
        (types,) * inputs, (tuple(range(width)),) * inputs, condition, group, calls, pa.schema(fields)
    )


@st.composite
def relations(draw: Any, kind: str | None, inputs: int, rows: int = 8, opened: bool = False) -> list[Relation]:
    pools = [values for _, values in KINDS[kind]] if kind else []
    # Few values of a key, or little would match.
    pools = [draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2)) for pool in pools]
    found = []
    for _ in range(inputs):
        lives: list[Life] = []
        for _ in range(draw(st.integers(0, rows))):
            ta = draw(st.integers(0, 20))
            longer = draw(st.sampled_from([1, 3, 3, 8, 8, FOREVER, None if opened else 5]))
            values = tuple(draw(st.sampled_from(pool)) for pool in (*pools, *POOLS))
            lives.append((values, ta, None if longer is None else min(ta + longer, FOREVER)))
        waiting = draw(st.frozensets(st.integers(0, rows))) if opened else frozenset()
        types = [*(type_ for type_, _ in (KINDS[kind] if kind else ())), *TYPES]
        found.append(Relation(sorted(lives, key=lambda life: life[1]), types, waiting))
    return found


def by_definition(spec: JoinAggregateSpec, lives: Sequence[Sequence[Life]], instant: int) -> Counter[Values]:
    """The aggregates of the join of the snapshots."""
    width = len(spec.key_columns[0])
    groups: dict[Values, list[Values]] = {} if spec.group else {(): []}
    for rows in _joined([snapshot(each, instant) for each in lives], width):
        least, greatest = rows[0][width + WHOLE], rows[-1][width + WHOLE]
        if spec.residual is not None and (least is None or greatest is None or least > greatest):
            continue
        groups.setdefault(tuple(rows[i][c] for i, c in spec.group), []).append(sum(rows, ()))
    across = len(spec.input_types[0])
    calls = [
        AggregateSpec(call.function, None if call.input is None else call.input * across + (call.column or 0), False)
        for call in spec.calls
    ]
    return Counter(one_of_equals((*key, *(aggregate(call, rows) for call in calls))) for key, rows in groups.items())


def _joined(snapshots: Sequence[Counter[Values]], width: int) -> Iterator[tuple[Values, ...]]:
    """The tuples of rows with equal keys."""
    by_key: list[dict[Values, list[Values]]] = []
    for each in snapshots:
        rows_of: dict[Values, list[Values]] = {}
        for values in each.elements():
            if None not in values[:width]:
                rows_of.setdefault(one_of_equals(values[:width]), []).append(values)
        by_key.append(rows_of)
    for key in by_key[0]:
        yield from product(*(rows_of.get(key, ()) for rows_of in by_key))


def agrees(
    kernel: Callable[[JoinAggregateSpec], Any], spec: JoinAggregateSpec, given: Sequence[Relation], cuts: list[int],
    restart: bool,
) -> Stepped:  # fmt: skip
    """Step the kernel, and compare at every instant."""
    stepped = Stepped(kernel(spec), restart=restart).feed(given, cuts)
    for instant in range(LAST):
        expected = by_definition(spec, [each.lives for each in given], instant)
        assert stepped.snapshot(instant) == expected, instant
    return stepped


def check(
    kernel: Callable[[JoinAggregateSpec], Any], spec: JoinAggregateSpec, given: Sequence[Relation], cuts: list[int],
    restart: bool,
) -> Stepped:  # fmt: skip
    """The same, and nothing is kept of what is over."""
    stepped = agrees(kernel, spec, given, cuts, restart)
    width = len(spec.key_columns[0])
    alive = [
        one_of_equals(values[:width])
        for each in given
        for values, _, te in each.lives
        if (te is None or te >= LAST) and None not in values[:width]
    ]
    live = stepped.state.live
    assert live.rows.slots.in_use == len(alive)
    assert live.keys.slots.in_use == (len(set(alive)) if width else 0)
    assert stepped.state.totals.groups.slots.in_use == len(stepped.open)
    assert stepped.open_ids.in_use == len(stepped.open) + sum(len(each.waiting) for each in given)
    return stepped


def crowd(inputs: int, rows: int, values: int) -> list[Relation]:
    """Many rows of one key, so many of them that loops must come back for more room; `values` to group by."""
    types = [pa.int64(), *TYPES]
    found = []
    for i in range(inputs):
        lives: list[Life] = []
        for k in range(rows):
            ta, longer = (7 * k + i) % 20, 3 + (5 * k + i) % 9
            pooled = [pool[k % len(pool)] for pool in POOLS[1:]]
            lives.append(((1, f"g{k % values}", *pooled), ta, ta + longer))
        found.append(Relation(sorted(lives, key=lambda life: life[1]), types))
    return found


def steady(kernel: Callable[[JoinAggregateSpec], Any], named: Named) -> tuple[int, int]:
    """How many bytes the state has after some windows and after many more of the same, with keys that come and go."""
    spec = spec_of("integer", 2, (0, 1), named)
    lives: list[Life] = []
    for t in range(400):
        values = (t // 9, f"group {t // 3}", t, 0.5 * t, None, "text " * (t % 7))
        lives.append((values, t, t + 12))
    stepped = Stepped(kernel(spec), restart=True)
    relations = [Relation(lives, spec.input_types[0]) for _ in range(2)]
    sizes = [saved_bytes(stepped.feed(relations, range(first, first + 200)).state) for first in (1, 201)]
    return sizes[0], sizes[1]


__all__ = [
    "CUTS",
    "EXTREMES",
    "LAST",
    "SUMS",
    "agrees",
    "by_definition",
    "check",
    "crowd",
    "relations",
    "spec_of",
    "steady",
]
