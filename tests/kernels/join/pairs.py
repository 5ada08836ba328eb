"""Random relations with keys of every kind, the join of them by definition, and the join kernel run over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Relation, Stepped, Values
from transom.core.schema import BOOLEAN
from transom.core.time import FOREVER
from transom.kernels.join.join import JoinKernel
from transom.plan.expression import Call, ColumnRef, Expression
from transom.runtimes.reference.history import canonical, grouped

INTEGERS = (0, 1, -1, 2**63 - 1, None)
TEXTS = ("", "a", "a\0", "\0", "a text that is longer than sixteen bytes", None)
KINDS: dict[str, tuple[tuple[pa.DataType, tuple[Any, ...]], ...]] = {
    "integer": ((pa.int64(), INTEGERS),),
    "small": ((pa.int8(), (0, 1, -1, None)),),
    "text": ((pa.string(), TEXTS),),
    "decimal": ((pa.decimal128(20, 2), (Decimal("0.10"), Decimal("-0.10"), Decimal(10) ** 17, None)),),
    "float": ((pa.float64(), (0.0, -0.0, 1.5, float("nan"), float("inf"), None)),),
    "boolean": ((pa.bool_(), (True, False, None)),),
    "both": ((pa.int64(), (0, 1, None)), (pa.string(), TEXTS[1:])),
    "three": (
        (pa.float64(), (0.0, -0.0, float("nan"), None)),
        (pa.decimal128(9, 3), (Decimal(1), None)),
        (pa.int8(), (0, 1)),
    ),
}
PAYLOAD = (pa.string(), pa.int64())
LAST = 60

CUTS = st.sets(st.integers(1, LAST - 1), max_size=12).map(lambda cuts: [*sorted(cuts), LAST])


def types_of(kind: str) -> list[pa.DataType]:
    return [type_ for type_, _ in KINDS[kind]] + list(PAYLOAD)


@st.composite
def relations(draw: Any, kind: str, growing: bool) -> Relation:
    """Rows with lifetimes in [0, 50), or open to the end, or forever; `growing`: they come and end in their order."""
    begins = sorted(draw(st.lists(st.integers(0, 40), max_size=12)))
    ends = [ta + draw(st.sampled_from([1, 2, 5, 9, FOREVER, 2 * FOREVER])) for ta in begins]
    if growing:
        ends = [max(ta + 1, te) for ta, te in zip(begins, sorted(ends), strict=True)]
    lives: list[Life] = []
    for i, (ta, te) in enumerate(zip(begins, ends, strict=True)):
        key = tuple(draw(st.sampled_from(values)) for _, values in KINDS[kind])
        end = None if te >= 2 * FOREVER else min(te, FOREVER)
        lives.append(((*key, draw(st.sampled_from(["x", None, "y" * 30])), i), ta, end))
    opened = draw(st.frozensets(st.integers(0, 12)))
    if not growing:
        lives = draw(st.permutations(lives))
    return Relation(lives, types_of(kind), opened)


def join(kind: str, tactic: str, residual: Expression | None = None) -> JoinKernel:
    """The kernel that joins two relations of a kind on their whole key."""
    types = types_of(kind)
    width = len(types)
    keys = tuple(ColumnRef(i, types[i], f"k{i}") for i in range(len(KINDS[kind])))
    if tactic == "nested_loop":
        parts = [Call("=", (key, ColumnRef(key.index + width, key.type, "")), BOOLEAN) for key in keys]
        for part in parts:
            residual = part if residual is None else Call("and", (part, residual), BOOLEAN)
        keys = ()
    schema = pa.schema([(f"c{i}", type_) for i, type_ in enumerate(types * 2)])
    return JoinKernel(tactic, keys, keys, residual, schema, width)


def by_definition(
    kind: str, left: Sequence[Life], right: Sequence[Life], also: Callable[[Values, Values], bool] = lambda a, b: True
) -> list[Life]:
    """Every pair with equal keys, alive while both are; a pair is open while its end is."""
    width = len(KINDS[kind])
    found: list[Life] = []
    rights: dict[Values, list[Life]] = {}
    for life in right:
        rights.setdefault(grouped(life[0][:width]), []).append(life)
    for a, a_begin, a_end in left:
        key = grouped(a[:width])
        for b, b_begin, b_end in () if None in key else rights.get(key, ()):
            if not also(a, b):
                continue
            begin = max(a_begin, b_begin)
            ends = [end for end in (a_end, b_end) if end is not None]
            end = min(ends, default=None)
            if end is None or begin < end:
                is_open = len(ends) < 2 and (end is None or end >= FOREVER)
                found.append((canonical(a + b), begin, None if is_open else end))
    return sorted(found, key=repr)


def joined(kernel: JoinKernel, left: Relation, right: Relation, cuts: list[int], restart: bool = False) -> Stepped:
    return Stepped(kernel, restart=restart).feed((left, right), cuts)


def kept(lives: Sequence[Life], kind: str) -> int:
    """How many rows a side must still hold when all is over."""
    width = len(KINDS[kind])
    return sum((te is None or te >= LAST) and None not in values[:width] for values, _, te in lives)
